"""When dead letters of a lane are redriven, and how many at a time.

A redrive names the duration over which its dead letters come back, the same for all its lanes. So
each lane gets a share of the operation's rate, in proportion to its dead letters, and all lanes end
together. Dead letters come back in batches, as each move costs a read and an append. The wall clock
and the number of the lane decide when the first batch comes. So the lanes do not all begin at the
same moment, and a lane that is lent again and again is neither faster nor starved. Invariants: the
rate is exceeded only to catch up, by at most one batch; a lane that is lent anew goes on at the
same rate. This module must not know which dead letters they are.
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
"""A lane redrives about so many dead letters in a batch: each batch costs a read, an append and a
delivery. The time between batches is at least the smaller bound, and at most the larger one: a low
rate makes smaller batches."""


GOLDEN_PERMILLE = 618
"""Multiples of it, modulo 1,000, lie evenly however many lanes there are."""


class RedrivePace:
    """The pace of one lane, for one holder."""

    def __init__(self, redrive: Redrive, lane: StreamId, wall_ahead_ms: int) -> None:
        self.at_ms: int | None = None
        """When the next batch is due; None: there is none."""
        self._records = max(total(redrive.ranges), 1)
        # A row from before redrives had a duration has none: a thousand a second.
        self._over_ms = redrive.over_ms or self._records
        usual_ms = self._lasts_ms(REDRIVE_RECORDS)
        self._gap_ms = max(
            min(max(usual_ms, REDRIVE_MS_MIN), REDRIVE_MS_MAX),
            self._lasts_ms(1),
        )
        # The first batch is due within the redrive's duration, even if it is the only one.
        self._turn_ms = min(self._gap_ms, self._over_ms)
        share = sum(lane) * GOLDEN_PERMILLE % 1_000
        self._behind_ms = wall_ahead_ms - self._turn_ms * share // 1_000
        self._counted_ms = 0
        """Until then the rate is used up by dead letters that came back."""

    def begin(self, now_ms: int) -> None:
        """There are dead letters to redrive: the first batch at the lane's next turn."""
        self.at_ms = now_ms + -(now_ms + self._behind_ms) % self._turn_ms
        self._counted_ms = self.at_ms - self._gap_ms

    def end(self) -> None:
        """All are back."""
        self.at_ms = None

    def later(self, now_ms: int) -> None:
        """The batch before is still being moved."""
        self.at_ms = now_ms + self._gap_ms

    def pieces(self, left: Ranges, operation: int, now_ms: int) -> Iterator[MovePiece]:
        """The dead letters to redrive now, from the first of those left."""
        room = self.take(now_ms)
        for start, end in left:
            cut = min(end, start + room)
            if start < cut:
                yield MovePiece(DEAD, start, cut, RETRY, 0, 0, REDRIVEN, operation=operation)
                room -= cut - start

    def take(self, now_ms: int) -> int:
        """How many to redrive now; takes them from the rate."""
        self.later(now_ms)
        since_ms = max(self._counted_ms, now_ms - 2 * self._gap_ms)
        allowed = (now_ms - since_ms) * self._records // self._over_ms
        taken = min(allowed, MOVE_RECORDS_MAX)
        self._counted_ms = since_ms + self._lasts_ms(taken)
        return taken

    def _lasts_ms(self, records: int) -> int:
        """How long so many records take at the rate."""
        return -(-records * self._over_ms // self._records)
