"""Records that come again: how long they rest, and which are due.

Invariant: a range rests or is due, never both. This module does not know why a record comes again.
"""

from collections import deque
from heapq import heappop, heappush

from dss_core.progress import Range
from dssd.limits import REDELIVERY_MS, REDELIVERY_MS_MAX


def backoff_ms(attempts: int) -> int:
    """How long a record rests after this number of attempts."""
    doublings = min(max(attempts - 1, 0), 16)
    return min(REDELIVERY_MS << doublings, REDELIVERY_MS_MAX)


class Resting:
    """Ranges that come again: some rest until their time, some are due now, oldest first."""

    __slots__ = ("_due", "_resting")

    def __init__(self) -> None:
        self._resting: list[tuple[int, int, int]] = []
        self._due: deque[Range] = deque()

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self._resting) + len(self._due)

    def rest(self, start: int, end: int, until_ms: int) -> None:
        """Bring the range again at the time."""
        heappush(self._resting, (until_ms, start, end))

    def next_ms(self) -> int | None:
        """When the next range becomes due."""
        return self._resting[0][0] if self._resting else None

    def wake(self, now_ms: int) -> bool:
        """Make due what has rested long enough; whether there was any."""
        awake: list[Range] = []
        while self._resting and self._resting[0][0] <= now_ms:
            _, start, end = heappop(self._resting)
            awake.append((start, end))
        self._due.extend(sorted(awake))
        return bool(awake)

    def due(self) -> Range | None:
        """The range that goes next."""
        return self._due[0] if self._due else None

    def sent(self, upto: int) -> None:
        """The due range went up to this offset."""
        start, end = self._due.popleft()
        if upto < end:
            self._due.appendleft((max(start, upto), end))

    def clear(self) -> None:
        """Forget all ranges."""
        self._resting.clear()
        self._due.clear()
