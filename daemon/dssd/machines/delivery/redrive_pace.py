"""When dead letters of a lane come back, and how many at a time.

A redrive says over how long its dead letters come back; that is the same for each lane of its
operation. So each lane has its part of the operation's rate by how many it has, and all end
together. Some come at once, for each move costs a read and an append. When the first of a lane come
is told by the wall clock and the number of the lane: so the lanes of a redrive do not all begin at
the same moment, and one that is lent again and again neither hurries nor starves. Invariants: the
rate is never exceeded but by what one pause of twice the usual may catch up; a lane that is lent
anew goes on at the same rate. This module must not know which they are.
"""

from collections.abc import Iterator

from dss_core.ids import StreamId
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Ranges, total
from dssd.limits import MOVE_RECORDS_MAX
from dssd.machines.delivery.causes import REDRIVEN
from dssd.machines.delivery.events import MovePiece
from dssd.machines.queues import Redrive

REDRIVE_RECORDS = 200
REDRIVE_MS_MIN = 50
REDRIVE_MS_MAX = 1_000
"""A lane brings back about so many dead letters at a time, no more often than so, and no less often
where its rate has fewer in that: each time costs a read, an append and a delivery."""


GOLDEN_PERMILLE = 618
"""Multiples of it, modulo 1,000, lie evenly however many lanes there are."""


class RedrivePace:
    """Of one lane, for one holder."""

    def __init__(self, redrive: Redrive, lane: StreamId, wall_ahead_ms: int) -> None:
        self.at_ms: int | None = None
        """When the next come back; None: none do."""
        self._records = max(total(redrive.ranges), 1)
        # A row of before rates says nothing: a thousand a second.
        self._over_ms = redrive.over_ms or self._records
        usual_ms = self._lasts_ms(REDRIVE_RECORDS)
        self._gap_ms = max(
            min(max(usual_ms, REDRIVE_MS_MIN), REDRIVE_MS_MAX),
            self._lasts_ms(1),
        )
        # Where all of them come together, they do so within the time of the redrive.
        self._turn_ms = min(self._gap_ms, self._over_ms)
        share = sum(lane) * GOLDEN_PERMILLE % 1_000
        self._behind_ms = wall_ahead_ms - self._turn_ms * share // 1_000
        self._counted_ms = 0
        """Up to then, what came back is counted."""

    def begin(self, now_ms: int) -> None:
        """There are some to bring back: the first at the lane's next turn."""
        self.at_ms = now_ms + -(now_ms + self._behind_ms) % self._turn_ms
        self._counted_ms = self.at_ms - self._gap_ms

    def end(self) -> None:
        """All are back."""
        self.at_ms = None

    def later(self, now_ms: int) -> None:
        """Those before are still on their way."""
        self.at_ms = now_ms + self._gap_ms

    def pieces(self, left: Ranges, operation: int, now_ms: int) -> Iterator[MovePiece]:
        """Those of what is left that come back now."""
        room = self.take(now_ms)
        for start, end in left:
            cut = min(end, start + room)
            if start < cut:
                yield MovePiece(DEAD, start, cut, RETRY, 0, 0, REDRIVEN, operation=operation)
                room -= cut - start

    def take(self, now_ms: int) -> int:
        """How many come back now."""
        self.later(now_ms)
        since_ms = max(self._counted_ms, now_ms - 2 * self._gap_ms)
        allowed = (now_ms - since_ms) * self._records // self._over_ms
        taken = min(allowed, MOVE_RECORDS_MAX)
        self._counted_ms = since_ms + self._lasts_ms(taken)
        return taken

    def _lasts_ms(self, records: int) -> int:
        """How long so many take, at least."""
        return -(-records * self._over_ms // self._records)
