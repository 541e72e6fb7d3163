"""The new entries for entries that are moved to the queues of another lane.

Pending requests of operations for the entries are carried out on the way: redriven entries go to
retry queues, entries that an operator gave up go to the dead letters, skipped entries go nowhere,
and entries that were brought forward are due. Invariant: any other entry stays unchanged. This
module must not know which lane it goes to, nor when.
"""

from collections.abc import Iterator
from itertools import chain

from dss_core.decode import DecodedBatch, Row
from dss_core.lane import DEAD, RETRY, LaneEntry
from dss_core.progress import covers
from dss_core.rows_layout import Headers
from dssd.limits import ISOLATE_AFTER_DOUBTS
from dssd.machines.delivery.attempt_counts import AttemptCounts
from dssd.machines.delivery.causes import DIED, GIVEN_UP, REDRIVEN
from dssd.machines.delivery.errands import is_meant
from dssd.machines.delivery.events import MovePiece
from dssd.machines.queues import BURY, SKIP, Queues
from dssd.queues.entries import Maker, NewEntry, brief_of, lane_of

Record = tuple[Row, int]
"""A row of a queue, and when it was appended."""


class Making:
    """Makes the new entries for those of a lane."""

    def __init__(self, maker: Maker, queues: Queues, max_deliver: int) -> None:
        retry, dead = queues
        self._maker = maker
        self._max_deliver = max_deliver
        self._failures = AttemptCounts(retry.fate.failures)
        self._doubts = AttemptCounts(retry.fate.doubts)
        self._redrive = dead.redrive
        self._errand = retry.errand
        self._redriven_keys: set[bytes] = set()

    def made(self, level: int, record: Record) -> NewEntry | None:
        """The new entry for a record of a queue; None: it is passed over.

        Raises:
            FrameCorrupt: it is no entry.
        """
        row, append_time_us = record
        piece = self._of_dead(row) if level == DEAD else self._of_retry(row)
        return None if piece is None else self._maker.made(row, append_time_us, piece)

    def _of_dead(self, row: Row) -> MovePiece:
        place = DEAD, row[0], row[0] + 1
        if not self._comes_back(row):
            return MovePiece(*place, DEAD, 0, 0, "", is_copied=True)
        due_ms, operation = self._maker.now_ms, self._redrive.operation
        return MovePiece(*place, RETRY, 0, due_ms, REDRIVEN, operation=operation)

    def _comes_back(self, row: Row) -> bool:
        """Whether a redrive brings it back. A redrive of whole keys also brings followers that died
        since, as `RedrivenKeys` does when the lane is lent."""
        offset, key, redrive = row[0], row[2], self._redrive
        if covers(redrive.ranges, offset):
            if redrive.whole_keys and key:
                self._redriven_keys.add(key)
            return True
        follows = key in self._redriven_keys and offset >= redrive.ranges[-1][1]
        return follows and not lane_of(row[4]).attempt

    def _of_retry(self, row: Row) -> MovePiece | None:
        offset = row[0]
        place = RETRY, offset, offset + 1
        failures, doubts = _at(self._failures, offset), _at(self._doubts, offset)
        is_plain = not failures and doubts < ISOLATE_AFTER_DOUBTS
        if is_plain and not self._errand.ranges:
            return MovePiece(*place, RETRY, 0, 0, "", is_copied=True)
        before = lane_of(row[4])
        attempt, errand = before.attempt + failures, self._errand
        if errand.what in (SKIP, BURY) and is_meant(errand, offset, before):
            if errand.what == SKIP:
                return None
            return MovePiece(*place, DEAD, attempt, 0, GIVEN_UP, operation=errand.operation)
        if is_plain:
            return MovePiece(*place, RETRY, 0, 0, "", is_copied=True)
        # Counts of the lane do not move with a record, so its deaths must be in its entry.
        if failures and attempt >= self._max_deliver:
            return MovePiece(*place, DEAD, attempt, 0, DIED)
        return MovePiece(*place, RETRY, attempt, before.due_ms, DIED)


def _at(counts: AttemptCounts, offset: int) -> int:
    return counts.segments(offset, offset + 1, 0)[0][2] if counts else 0


class Offsets:
    """A set of offsets of a queue, at a bit each."""

    def __init__(self, start: int, end: int) -> None:
        self._start = start
        self._bits = bytearray((max(end - start, 0) + 7) // 8)

    def add(self, offset: int) -> None:
        """Add an offset; one out of bounds is done already, and ignored."""
        at = offset - self._start
        if 0 <= at < 8 * len(self._bits):
            self._bits[at >> 3] |= 1 << (at & 7)

    def has(self, offset: int) -> bool:
        """Whether it is in the set."""
        at = offset - self._start
        return bool(self._bits[at >> 3] >> (at & 7) & 1)


def rows(batch: DecodedBatch, _: int) -> Iterator[tuple[int, Record]]:
    """The records of a batch, for a `QueueReading`."""
    all_rows = chain.from_iterable(batch.rows())
    for row, append_time_us in zip(all_rows, batch.append_times_us, strict=True):
        yield row[0], (row, append_time_us)


def headers(batch: DecodedBatch, _: int) -> Iterator[tuple[int, Headers]]:
    """The headers of a batch's entries, which tell where these come from."""
    yield from zip(batch.offsets, batch.headers, strict=True)


def said(_: int, named: Headers) -> LaneEntry:
    """Of an entry, by its headers."""
    return brief_of(named)
