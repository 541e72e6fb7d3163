"""What work costs: the processor time of the daemon's threads, or of a process and all below it.

What else the machine does matters little to it; what else the daemon does counts.
"""

import contextlib
import os
import statistics
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

CALLS = 9
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


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


@dataclass(frozen=True, slots=True)
class _Process:
    parent: int
    spent_s: float
    """Its own, and that of those below it that have ended."""


def own_s(pid: int) -> float:
    """What a process has spent."""
    return _looked_at(Path(f"/proc/{pid}/stat")).spent_s


def tree_s(pid: int) -> float:
    """What a process and all that it has started have spent."""
    return sum(process.spent_s for process in _tree(pid).values())


def below(pid: int) -> list[int]:
    """A process, and all that it has started and that run."""
    return list(_tree(pid))


def _tree(pid: int) -> dict[int, _Process]:
    processes = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            processes[int(stat.parent.name)] = _looked_at(stat)
    found, left = {}, [pid]
    while left:
        one = left.pop()
        if one in processes:
            found[one] = processes[one]
        left += [child for child, process in processes.items() if process.parent == one]
    return found


def _looked_at(stat: Path) -> _Process:
    fields = stat.read_text().rpartition(")")[2].split()
    return _Process(int(fields[1]), sum(map(int, fields[11:15])) / _TICKS_A_SECOND)
