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
from dssd.machines.messages import Attempts

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
    """Deadlines of what was handed out, by offset: disjoint ranges, in order."""

    __slots__ = ("_grain_ms", "_next_ms", "_wait_ms", "_waits")

    def __init__(self, wait_ms: int) -> None:
        self._wait_ms = wait_ms
        self._grain_ms = max(ACK_WAIT_GRAIN_MS, wait_ms // ACK_WAIT_GRAINS)
        # (start, end, deadline, first handed out at)
        self._waits: list[tuple[int, int, int, int]] = []
        self._next_ms: int | None = None
        """No deadline is before it, but for those less than a grain after the last look."""

    def handed_out(self, start: int, end: int, now_ms: int) -> None:
        """The wait of the range begins now."""
        waits = self._waits
        deadline_ms = now_ms + self._wait_ms
        if not waits:
            self._next_ms = deadline_ms
        elif waits[-1][1] == start:
            low, _, _, since_ms = waits[-1]
            if now_ms - since_ms < self._grain_ms:
                waits[-1] = (low, end, deadline_ms, since_ms)
                return
        elif start < waits[-1][1]:
            first, last, left, right = self._around(start, end)
            waits[first:last] = [*left, (start, end, deadline_ms, now_ms), *right]
            return
        waits.append((start, end, deadline_ms, now_ms))

    def next_ms(self) -> int | None:
        """When to ask what has expired."""
        return self._next_ms

    def settled_below(self, floor: int) -> None:
        """Forget waits that lie below the ack floor."""
        waits = self._waits
        settled = 0
        while settled < len(waits) and waits[settled][1] <= floor:
            settled += 1
        if settled:
            del waits[:settled]
            if not waits:
                self._next_ms = None

    def expired(self, now_ms: int) -> list[Range]:
        """Take the ranges whose wait ran out, in order."""
        if self._next_ms is None or now_ms < self._next_ms:
            return []
        over = [(start, end) for start, end, deadline_ms, _ in self._waits if deadline_ms <= now_ms]
        self._waits = [wait for wait in self._waits if wait[2] > now_ms]
        # A look costs time for each wait, so there is one a grain at most.
        soonest_ms = min((wait[2] for wait in self._waits), default=None)
        self._next_ms = None if soonest_ms is None else max(soonest_ms, now_ms + self._grain_ms)
        return over

    def clear(self) -> None:
        """Forget all waits."""
        self._waits.clear()
        self._next_ms = None

    def _around(
        self, start: int, end: int
    ) -> tuple[int, int, list[tuple[int, int, int, int]], list[tuple[int, int, int, int]]]:
        """Where the waits lie that meet the range, and what of them it leaves on both sides."""
        waits = self._waits
        first = bisect_right(waits, start, key=lambda wait: wait[1])
        last = max(first, bisect_left(waits, end, key=lambda wait: wait[0]))
        met = waits[first:last]
        left = [(low, start, at, since) for low, _, at, since in met[:1] if low < start]
        right = [(end, high, at, since) for _, high, at, since in met[-1:] if high > end]
        return first, last, left, right
