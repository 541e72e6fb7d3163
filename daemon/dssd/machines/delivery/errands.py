"""What operations ask for entries of a retry queue, done by the holder that opens the lane.

An operation names entries by their offsets. *Hurried* entries are due at once. Those of an *errand*
are passed over, or go to the dead letters. While the lane is taken back for that, a record in
flight may fail, and a new entry replaces the named one. The new entry names its source, so the
errand applies to it instead. It applies once: an entry that the operation itself made carries the
operation's number. Invariants: an errand is over once all its entries are durably elsewhere, so if
a holder dies, the next one begins the errand anew; no entry that comes after the lane was opened
belongs to an errand. This module does not know keys or moves.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dss_core.lane import DEAD, RETRY, LaneEntry
from dss_core.progress import Range, Ranges, clipped, covers, normalised, without
from dssd.machines.delivery.causes import GIVEN_UP
from dssd.machines.delivery.events import EntriesRead, Entry, MovePiece
from dssd.machines.delivery.record_states import RecordStates
from dssd.machines.queues import BURY, SKIP, Errand, QueueState


class Errands:
    """The errands of one lane, for one holder. ``bury`` queues a piece for its move."""

    def __init__(
        self, retry: QueueState, records: RecordStates, bury: Callable[[MovePiece], None]
    ) -> None:
        self._errand, self._hurried = retry.errand, retry.hurried.ranges
        self._records = records
        self._is_over = not self._errand.ranges
        self._passed: list[Range] = []
        self._bury = bury

    def take(self, given: EntriesRead) -> EntriesRead:
        """Apply errands to entries that were read: begin the moves of those that go to the dead
        letters, and return the entries as the lane takes them."""
        if given.level != RETRY:
            return given
        if self._errand.what == BURY:
            self._bury_meant(given.entries)
        elif self._errand.what == SKIP:
            meant = filter(self._is_meant, given.entries)
            self._passed += [(each.offset, each.offset + 1) for each in meant]
        if not self._hurried:
            return given
        return replace(given, entries=tuple(map(self._hurry, given.entries)))

    def _hurry(self, entry: Entry) -> Entry:
        return entry._replace(due_ms=0) if covers(self._hurried, entry.offset) else entry

    def _bury_meant(self, entries: Sequence[Entry]) -> None:
        records, operation = self._records, self._errand.operation
        met: list[tuple[int, int]] = []
        for each in filter(self._is_meant, entries):
            met.append((each.offset, each.offset + 1))
            self._bury(
                MovePiece(RETRY, *met[-1], DEAD, each.attempt, 0, GIVEN_UP, operation=operation)
            )
            records.waiting.drop(*met[-1])
        records.held_back = normalised((*records.held_back, *met))

    def are_over(self, leaving: Iterable[MovePiece]) -> bool:
        """Whether all entries of the errand are elsewhere or done; true in one call only."""
        if self._is_over:
            return False
        is_done = self._records.progress.is_acked_all
        self._is_over = all(
            is_done(each.start, each.end) for each in leaving if each.cause == GIVEN_UP
        )
        return self._is_over

    def may_copy(self, span: Range) -> bool:
        """Whether no entry in the span is hurried: a copy would get its own due time back."""
        return not clipped(self._hurried, *span)

    def passed_over(self) -> Ranges:
        """The entries to pass over, once both queues were read: those that a dead letter does not
        acknowledge."""
        return without(normalised(self._passed), self._records.consumed.done())

    def _is_meant(self, entry: Entry) -> bool:
        is_done = self._records.progress.is_acked(entry.offset)
        return not is_done and is_meant(self._errand, entry.offset, entry)


def is_meant(errand: Errand, offset: int, entry: Entry | LaneEntry) -> bool:
    """Whether the errand is about an entry: it names the entry, or the one it was made of."""
    if entry.operation == errand.operation:
        return False
    is_of_lane = entry.source_level == RETRY and not entry.is_rehomed
    is_made_of_one = is_of_lane and covers(errand.ranges, entry.source_offset)
    return is_made_of_one or covers(errand.ranges, offset)
