"""Reads of one stream that fail: why, and when they are tried again.

Invariant: after a failure nothing is read before the pause is over; pauses double up to a bound,
and begin anew after a read that succeeds.
"""

from dssd.limits import READ_AGAIN_MS, READ_AGAIN_MS_MAX
from dssd.machines.messages import Stall


class ReadTrouble:
    """What the last read met."""

    __slots__ = ("_pause_ms", "again_ms", "stall")

    def __init__(self) -> None:
        self.stall = Stall.NONE
        self.again_ms: int | None = None
        """Nothing is read before."""
        self._pause_ms = READ_AGAIN_MS

    def met(self, stall: Stall, now_ms: int) -> None:
        """A read failed, or met damage at which the group stops."""
        self.stall = stall
        self.again_ms = now_ms + self._pause_ms
        self._pause_ms = min(2 * self._pause_ms, READ_AGAIN_MS_MAX)

    def again_now(self, now_ms: int) -> None:
        """The cause may be gone: read again without waiting for the pause."""
        if self.again_ms is not None:
            self.again_ms = now_ms

    def over(self) -> None:
        """A read succeeded."""
        self.stall = Stall.NONE
        self._pause_ms = READ_AGAIN_MS

    def wake(self, now_ms: int) -> None:
        """Read again, if it is time."""
        if self.again_ms is not None and self.again_ms <= now_ms:
            self.again_ms = None
