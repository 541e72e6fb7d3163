"""What a call costs the daemon: the processor time that all its threads spend meanwhile.

What else the machine does matters little to it; what else the daemon does counts.
"""

import contextlib
import statistics
from collections.abc import Awaitable, Callable
from pathlib import Path

CALLS = 9


class Meter:
    """Times calls by the processor time of a daemon."""

    def __init__(self, pid: int) -> None:
        self._tasks = Path(f"/proc/{pid}/task")

    async def median_ms(self, call: Callable[[], Awaitable[object]], calls: int = CALLS) -> float:
        """Of so many calls."""
        took = []
        for _ in range(calls):
            began_ns = self._spent_ns()
            await call()
            took.append((self._spent_ns() - began_ns) / 1e6)
        return statistics.median(took)

    def _spent_ns(self) -> int:
        spent_ns = 0
        for task in self._tasks.iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread ended
                spent_ns += int((task / "schedstat").read_text().split()[0])
        return spent_ns
