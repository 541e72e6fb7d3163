"""The process of a driver, as whoever started it knows it.

Invariant: it is only looked at: a driver outlives the command that started it.
"""

import os


class StartedDriver:
    """A driver's process, which this one has started."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._how = ""

    def how_it_ended(self) -> str:
        """In words; empty while it runs."""
        if not self._how:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if pid else 0
            ended = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            self._how = ended if pid else ""
        return self._how
