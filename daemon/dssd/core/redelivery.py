"""When and how a record comes again: known hand-outs, back-off, ack waits.

A record's *known hand-outs* are counted in two ways. Below the hand-out frontier of a stream every
unacked record was handed out once: that needs no entry. Only where the count is another is there
an entry, so a stream whose records come once keeps none.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush

from dss_core.progress import Range
from dssd.core.messages import Attempts

REDELIVERY_MS = 1_000
"""The first nak brings a record back after this; each further one doubles it."""

REDELIVERY_MS_MAX = 60_000

ACK_WAIT_GRAIN_MS = 50
"""Hand-outs this near to each other share one ack wait, or a busy stream would keep thousands."""

ACK_WAIT_GRAINS = 256
"""A long ack wait is kept coarser, so that its entries stay this few."""


def backoff_ms(hand_outs: int) -> int:
    """How long a record rests after so many known hand-outs."""
    doublings = min(max(hand_outs - 1, 0), 16)
    return min(REDELIVERY_MS << doublings, REDELIVERY_MS_MAX)


def run_records_max(whole: int, hand_outs: int) -> int:
    """How many records of so many known hand-outs may go together: halved each time."""
    return max(1, whole >> min(hand_outs, 63))


class HandOuts:
    """Known hand-outs of unacked records, where they differ from what the frontier says."""

    __slots__ = ("_entries",)

    def __init__(self, attempts: Attempts = ()) -> None:
        self._entries: list[tuple[int, int, int]] = list(attempts)

    def __bool__(self) -> bool:
        """Whether there is any entry."""
        return bool(self._entries)

    def end(self) -> int:
        """No entry reaches to this offset or above."""
        return self._entries[-1][1] if self._entries else 0

    def entries(self) -> Attempts:
        """As the group protocol carries them."""
        return tuple(self._entries)

    def segments(self, start: int, end: int, frontier: int) -> list[tuple[int, int, int]]:
        """``[start, end)`` cut into stretches of one count, in order, without holes."""
        found: list[tuple[int, int, int]] = []
        at = start
        for low, high, count in self._between(start, end):
            found.extend(_implied(at, max(at, low), frontier))
            found.append((max(low, start), min(high, end), count))
            at = min(high, end)
        found.extend(_implied(at, end, frontier))
        return found

    def charge(self, start: int, end: int, frontier: int) -> None:
        """Count one more hand-out of the records in ``[start, end)``."""
        raised = [
            (low, high, count + 1) for low, high, count in self.segments(start, end, frontier)
        ]
        self._replace(start, end, raised)

    def forget(self, start: int, end: int) -> None:
        """Drop what is known of ``[start, end)``: it was acknowledged."""
        if self._entries:
            self._replace(start, end, [])

    def _span(self, start: int, end: int) -> tuple[int, int]:
        first = bisect_right(self._entries, start, key=lambda entry: entry[1])
        last = bisect_left(self._entries, end, key=lambda entry: entry[0])
        return first, max(first, last)

    def _between(self, start: int, end: int) -> list[tuple[int, int, int]]:
        first, last = self._span(start, end)
        return self._entries[first:last]

    def _replace(self, start: int, end: int, new: list[tuple[int, int, int]]) -> None:
        first, last = self._span(start, end)
        old = self._entries[first:last]
        left = [(low, start, count) for low, _, count in old[:1] if low < start]
        right = [(end, high, count) for _, high, count in old[-1:] if high > end]
        first_joined = max(0, first - 1)
        joined: list[tuple[int, int, int]] = []
        for entry in (*self._entries[first_joined:first], *left, *new, *right):
            if joined and joined[-1][1] == entry[0] and joined[-1][2] == entry[2]:
                joined[-1] = (joined[-1][0], entry[1], entry[2])
            else:
                joined.append(entry)
        self._entries[first_joined:last] = joined


def _implied(start: int, end: int, frontier: int) -> Iterable[tuple[int, int, int]]:
    if start < min(end, frontier):
        yield start, min(end, frontier), 1
    if max(start, frontier) < end:
        yield max(start, frontier), end, 0


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


class AckWaits:
    """Deadlines of what was handed out, in the order of the hand-outs."""

    __slots__ = ("_entries", "_grain_ms", "_wait_ms")

    def __init__(self, wait_ms: int) -> None:
        self._wait_ms = wait_ms
        self._grain_ms = max(ACK_WAIT_GRAIN_MS, wait_ms // ACK_WAIT_GRAINS)
        # [first handed out at, deadline, start, end]
        self._entries: deque[tuple[int, int, int, int]] = deque()

    def handed_out(self, start: int, end: int, now_ms: int) -> None:
        """The wait of the range begins now."""
        deadline_ms = now_ms + self._wait_ms
        if self._entries:
            since_ms, _, low, high = self._entries[-1]
            if high == start and now_ms - since_ms < self._grain_ms:
                self._entries[-1] = (since_ms, deadline_ms, low, end)
                return
        self._entries.append((now_ms, deadline_ms, start, end))

    def next_ms(self) -> int | None:
        """The next deadline."""
        return self._entries[0][1] if self._entries else None

    def settled_below(self, floor: int) -> None:
        """Forget leading waits that lie below the ack floor."""
        entries = self._entries
        while entries and entries[0][3] <= floor:
            entries.popleft()

    def expired(self, now_ms: int) -> list[Range]:
        """Take the ranges whose wait ran out, less what was handed out or renewed later."""
        over: list[Range] = []
        while self._entries and self._entries[0][1] <= now_ms:
            _, _, start, end = self._entries.popleft()
            over.extend(self._without_later(start, end))
        return over

    def clear(self) -> None:
        """Forget all waits."""
        self._entries.clear()

    def _without_later(self, start: int, end: int) -> list[Range]:
        left = [(start, end)]
        for _, _, low, high in self._entries:
            left = [
                piece
                for a, b in left
                for piece in ((a, min(b, low)), (max(a, high), b))
                if piece[0] < piece[1]
            ]
        return left
