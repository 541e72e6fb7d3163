"""A lane inside the delivery window: a stream with its retry queue and dead letters.

::

              fails                      fails for the last time
    main ───────────────► retry queue ──────────────────────────► dead letters
      │                    ▲ │  └─ fails: a new entry ─┐               │
      │                    │ └─────────────────────────┘               │
      │                    └───────────────── redriven ────────────────┘
      └──────────── rejected, or fails for the last time ──────────────►

A record that fails is moved: appended to a queue and, once that is durable, acknowledged where it
was. An entry acknowledges its source, so entries beyond `applied_end` are applied when the lane is
opened, by the same code as the answer to a move (docs/decisions/0053). Invariants: no level is read
before the lane is open, as dead letters may acknowledge entries of the retry queue; one move of a
lane is under way at a time, and what fails meanwhile goes with the next; a report has the state of
the queues at the same moment. What cannot be moved stays where it is, and is tried again. This
module does not know credit, turns or the log.
"""

from collections.abc import Sequence
from dataclasses import replace

from dss_core.lane import DEAD, MAIN, RETRY
from dss_core.progress import Ranges, clipped, covers, normalised, total, without
from dssd.limits import ISOLATE_AFTER_DOUBTS, MOVE_RECORDS_MAX
from dssd.machines.delivery.causes import ACK_WAIT, DIED, FOLLOWS, REFUSED, REJECTED
from dssd.machines.delivery.copying import still_to_go, to_copy
from dssd.machines.delivery.entries import WaitingEntries
from dssd.machines.delivery.errands import Errands
from dssd.machines.delivery.events import (
    EntriesRead,
    Entry,
    Installed,
    Move,
    Moved,
    MovePiece,
    Nak,
    OpenLane,
)
from dssd.machines.delivery.keyed_lane import KeyedLane
from dssd.machines.delivery.late_acks import LateAcks
from dssd.machines.delivery.pending_moves import PendingMoves
from dssd.machines.delivery.redrive_pace import RedrivePace
from dssd.machines.delivery.redriven_keys import RedrivenKeys
from dssd.machines.delivery.reopened import reopened_of
from dssd.machines.delivery.retry import Resting
from dssd.machines.delivery.retry_stream import retry_stream
from dssd.machines.delivery.stream import DeliveredStream
from dssd.machines.delivery.unreported import living
from dssd.machines.fate import Fate
from dssd.machines.queues import Queues, QueueState, RetryPolicy


class Lane:
    """One lane. Owned by the delivery window."""

    def __init__(
        self, installed: Installed, main: DeliveredStream, resting: Resting, now_ms: int
    ) -> None:
        retry, dead = installed.granted.queues
        assert installed.policy is not None
        self.policy: RetryPolicy = installed.policy
        self.main = main
        self._wall_ahead_ms = installed.wall_ahead_ms
        self._retry, self._dead = retry, dead
        """The retry queue's progress and fate are as lent; the dead letters are current."""
        self.retry = retry_stream(installed, main.credit_records, resting, now_ms)
        self.entries = WaitingEntries(installed.wall_ahead_ms)
        self.retry.entries = self.entries
        self.is_open = False
        self._killed_before = bool(retry.fate.failures)
        self._moves = PendingMoves(main.records)
        self._failed_size = 1
        """The size in bytes of the record of main that failed last."""
        self._dead_bytes = 0
        """The size of the dead letters that are not done."""
        self._late = LateAcks()
        self._pace = RedrivePace(dead.redrive, main.stream, self._wall_ahead_ms)
        self._keys_back = RedrivenKeys(dead)
        self._errands = Errands(retry, self.retry.records, self._moves.add)
        self.ends_once_moved = False
        """The client gave the stream back; records that it refused are still being moved."""
        for part in (main, self.retry):
            part.lane = self
            part.records.failed = []
            part.records.suspects_rest_ms = self._suspects_rest_ms
            part.is_shut = True
        self.keyed: KeyedLane | None = None
        """Only in an ordered group."""
        if self.policy.ordered:
            self.keyed = KeyedLane(self.parts, self.policy, self._moves.add, self._is_redriving)

    def _suspects_rest_ms(self, doubts: int) -> int:
        """The policy's backoff, counted from the first time that a record is sent alone."""
        return self.policy.rest_ms(doubts - ISOLATE_AFTER_DOUBTS + 1)

    @property
    def parts(self) -> tuple[DeliveredStream, DeliveredStream]:
        """The levels that are delivered: the stream and its retry queue."""
        return self.main, self.retry

    @property
    def again_ms(self) -> int | None:
        """When failed moves are tried again."""
        return self._moves.again_ms

    @property
    def is_full(self) -> bool:
        """Whether nothing more may leave main."""
        return self._room(0) <= 0

    @property
    def is_moving(self) -> bool:
        """Whether records wait to be moved, or are being moved."""
        return bool(self._moves or self.main.records.following)

    def moves(self, level: int, offset: int) -> bool:
        """Whether a record waits to be moved, or is being moved."""
        held_back = () if level or self.keyed is None else self.main.records.held_back
        return covers(held_back, offset) or any(
            piece.start <= offset < piece.end for piece in self._moves.of_level(level)
        )

    def queues(self) -> Queues:
        """The queues for a report of the group protocol."""
        records = self.retry.records
        if self.is_open and self._errands.are_over(self._moves.of_level(RETRY)):
            self._retry = self._retry.end_errand()
        retry = replace(
            self._retry,
            progress=records.progress,
            attempts=records.marking.attempts(),
            fate=records.fate(),
        )
        return retry, self._dead

    # Opening

    def opening(self) -> OpenLane:
        """The effect that opens the lane. Dead letters that hold up their keys are read from their
        floor; from `applied_end` where it is lower, as some were discarded unapplied."""
        applied_end, floor = self._dead.applied_end, self._dead.progress.floor
        return OpenLane(
            self.main.grant,
            self.main.stream,
            self.main.grant_epoch,
            self._retry.stream,
            self._retry.progress.floor,
            self._dead.stream,
            min(floor, applied_end) if self._dead_letters_block else applied_end,
        )

    @property
    def _dead_letters_block(self) -> bool:
        return self.keyed is not None and self.keyed.blocks

    def take_entries(self, given: EntriesRead) -> None:
        """Entries that the queues held when the lane was lent."""
        given = self._errands.take(given)
        known = self._queue(given.level).applied_end
        fresh = [each for each in given.entries if each.offset >= known]
        if rehomed := [each for each in fresh if each.is_rehomed]:
            # They acknowledge no source in this lane, but may be the sources of other entries.
            fresh = [each for each in fresh if not each.is_rehomed]
            self._enter(rehomed if given.level == RETRY else [])
        self._apply(given.level, fresh)
        before = [each for each in given.entries if each.offset < known]
        if given.level == RETRY:
            self._enter(before)
        elif self.keyed is not None:
            self._dead = self._keys_back.followed(self._dead, given.entries)
            done = self._dead.progress.is_acked
            entered = (each for each in (*before, *rehomed) if not done(each.offset))
            self.keyed.enter_dead([*entered])
        if given.level == RETRY or self._dead_letters_block:
            self._close_origins(given.level, given.entries)
        self._note_applied(given.level, given.end)

    def _close_origins(self, level: int, entries: Sequence[Entry]) -> None:
        """An operator reopened records that wait in a queue: they are sent from there only."""
        main = self.main.records
        queue = self.retry.records.progress if level == RETRY else self._dead.progress
        if reopened := reopened_of(entries, queue, main.progress):
            main.moved(reopened)

    def opened(self, now_ms: int, dead_size: int) -> None:
        """All entries were read: begin. ``dead_size`` is the average size of a dead letter."""
        self.is_open = True
        self._retry = self._retry.end()
        if passed_over := self._errands.passed_over():
            self.retry.records.pass_over(passed_over)
            self.lost(RETRY, passed_over)
        self._dead_bytes = dead_size * self._dead_records()
        for part in self.parts:
            part.is_shut = False
            part.begins()
        if self._to_redrive():
            self._pace.begin(now_ms)
        if self.keyed is None:
            self._bury_killers()
        else:
            self.keyed.opened()

    def close(self) -> None:
        """The lane was given back: free up to a million entries now, rather than at the next
        collection of reference cycles."""
        self.entries = self.retry.entries = WaitingEntries(self._wall_ahead_ms)

    def _bury_killers(self) -> None:
        """Make dead letters of records that killed their last allowed consumer under older grants.
        A record that was refused that often, but not moved, is sent again: its error is lost."""
        records, most = self.main.records, self.policy.max_deliver
        for start, end, failures in records.marking.failures():
            for low, high in records.not_done(((start, end),)) if failures >= most else ():
                for at, until, deaths in records.marking.deaths(low, high):
                    if deaths >= most:
                        self._bury(MAIN, at, until, deaths)

    def _bury(self, level: int, start: int, end: int, failures: int) -> None:
        records = self.parts[level].records
        records.held_back = normalised((*records.held_back, (start, end)))
        records.waiting.drop(start, end)
        self._moves.add(MovePiece(level, start, end, DEAD, failures, 0, DIED))

    # What fails

    def take_failed(self, now_ms: int) -> None:
        """Queue the records that failed since the last call for their moves."""
        for level, part in enumerate(self.parts):
            failed, part.records.failed = part.records.failed, []
            for start, end, nak, size in failed or ():
                if level == MAIN:
                    self._failed_size = max(size // (end - start), 1)
                for low, high, failures in self._failures(level, start, end):
                    self._judge(level, (low, high, failures), nak, now_ms)

    def _failures(self, level: int, start: int, end: int) -> list[tuple[int, int, int]]:
        """The range cut by number of failures, this one included; the entry makes it durable."""
        counted = self.parts[level].records.marking.failed
        known = self.entries.failures(start, end, counted) if level else counted(start, end)
        return [(low, high, failures + 1) for low, high, failures in known]

    def _judge(self, level: int, each: tuple[int, int, int], nak: Nak | None, now_ms: int) -> None:
        start, end, failures = each
        delay_ms = None if nak is None else nak.delay_ms
        rest_ms = self.policy.rest_ms(failures) if delay_ms is None else delay_ms
        # In an ordered group the record waits for its move, as its key must not go on.
        rests = level == MAIN and self.keyed is None
        if rests and end - start > (room := self._room(self._moves.leaving)):
            self.main.records.marking.note_failed(start + room, end)
            self.main.records.rest(start + room, end, now_ms + rest_ms)
            end = start + room
            if not room:
                return
        rejected = nak is not None and nak.reject
        cause = ACK_WAIT if nak is None else REJECTED if rejected else REFUSED
        error, kind = ("", "") if nak is None else (nak.error, nak.error_type)
        is_dead = rejected or failures >= self.policy.max_deliver
        due_ms = 0 if is_dead else now_ms + self._wall_ahead_ms + rest_ms
        to = DEAD if is_dead else RETRY
        self._moves.add(MovePiece(level, start, end, to, failures, due_ms, cause, error, kind))

    def _room(self, leaving: int) -> int:
        """How many more records may leave main for the queues; 0: the queues are full, counting
        the records that leave already."""
        records = self.entries.records + self._dead_records() + leaving
        size = self._failed_size
        bytes_ = self.entries.bytes + self._dead_bytes + leaving * size
        # Whole records: the last one may be larger than what is left.
        fitting = -(-(self.policy.queue_bytes - bytes_) // size)
        return max(min(self.policy.queue_records - records, fitting), 0)

    def _dead_records(self) -> int:
        end = self._dead.applied_end
        return end - self._dead.progress.acked_in(0, end)

    # Moving

    def next_move(self, now_ms: int) -> Move | None:
        """The move to begin now, if any: as much as fits into one."""
        moves = self._moves
        if not (self.is_open and self.is_moving) or moves.under_way or not moves.is_time(now_ms):
            return None
        if self.keyed is not None:
            for piece in self.keyed.next_followers(MOVE_RECORDS_MAX - moves.records):
                moves.add(piece)
        room = self._room(0)
        done = [self._done(level) for level in (MAIN, RETRY, DEAD)]
        pieces = moves.begin(
            lambda piece: still_to_go(piece, self.entries, done),
            lambda piece, gone: self._may_go(piece, room - gone),
            now_ms,
        )
        if not pieces:
            return None
        self.entries.moving(pieces)
        self._retry = self._retry.begin()
        return Move(self.main.grant, pieces)

    def _may_go(self, piece: MovePiece, room: int) -> int:
        keyed = None if piece.level else self.keyed
        return MOVE_RECORDS_MAX if keyed is None else keyed.may_go(piece.start, room)

    def _done(self, level: int) -> Ranges:
        if level == DEAD:
            progress = self._dead.progress
            return ((0, progress.floor), *progress.ranges)
        return self.parts[level].records.consumed.done()

    def take_moved(self, given: Moved, now_ms: int) -> None:
        """A move was answered: records that arrived are done where they were; others stay there."""
        expired = [self._expired(level) for level in (MAIN, RETRY)]
        self._moves.answered()
        self.entries.moving(())
        self._retry = self._retry.end()
        for level in (RETRY, DEAD):
            arrived = [entry for to, entry in given.entries if to == level]
            if any(expired) and level == RETRY:
                self._late.note(arrived, expired)
            self._apply(level, arrived)
            if arrived:
                self._note_applied(level, arrived[-1].offset + 1)
        for level, start, end in given.lost:
            self._lose(level, start, end)
        done = [self._done(level) for level in (MAIN, RETRY, DEAD) if given.failed]
        if failed := [left for each in given.failed for left in each.left(done)]:
            self._moves.put_back(failed, now_ms)
        self._moves.drop(self._done(MAIN))
        self.copy_forward(now_ms)

    def _apply(self, level: int, entries: list[Entry]) -> None:
        """The entries acknowledge their sources. An entry whose source was acked before is done."""
        live = self._live(level, entries)
        if len(live) < len(entries):
            gone = {each.offset for each in entries} - {each.offset for each in live}
            self._finish(level, normalised((at, at + 1) for at in gone))
        if level == RETRY:
            self._bury_killers_of(live)
        if self.keyed is not None:
            self.keyed.arrived(level, live, self.retry.records.held_back)
        elif level == RETRY:
            self._wait(live)
        self._dead_bytes += sum(each.size for each in live) if level == DEAD else 0
        for source in {each.source_level for each in live}:
            offsets = (each.source_offset for each in live if each.source_level == source)
            self._settle(source, normalised((at, at + 1) for at in offsets))

    def _live(self, level: int, entries: list[Entry]) -> list[Entry]:
        """The entries whose source was not done before they came."""
        progress = [*(part.records.progress for part in self.parts), self._dead.progress]
        for source in {each.source_level for each in entries}:
            offsets = [each.source_offset for each in entries if each.source_level == source]
            if progress[source].acked_in(min(offsets), max(offsets) + 1):
                return living(level, entries, progress)
        return entries

    def _settle(self, level: int, ranges: Ranges) -> None:
        """Records that were moved are done where they were."""
        if level == DEAD:
            self._close_dead(ranges, "retried")
            return
        self.parts[level].records.moved(ranges)
        if level == RETRY:
            self.entries.forget(ranges)

    def _finish(self, level: int, ranges: Ranges) -> None:
        """These entries are done: their records were acknowledged while they were moved."""
        if level == DEAD:
            self._close_dead(ranges, "acked")
        else:
            self.retry.records.consumed.ack(ranges)

    def _close_dead(self, ranges: Ranges, kind: str) -> None:
        """Dead letters are done; one may be already, if its redrive was not reported before."""
        before = self._dead_records()
        counts = self._dead.fate.counts.plus(kind, total(without(ranges, self._done(DEAD))))
        progress = self._dead.progress.with_acked(ranges)
        self._dead = replace(self._dead, progress=progress, fate=Fate(counts=counts))
        # Sizes are not kept by entry: each counts as the average.
        self._dead_bytes = self._dead_bytes * self._dead_records() // max(before, 1)

    def _enter(self, entries: list[Entry]) -> None:
        """Entries, in order, wait in the retry queue, except those that are done."""
        records = self.retry.records
        if entries and records.progress.acked_in(entries[0].offset, entries[-1].offset + 1):
            entries = [each for each in entries if not records.progress.is_acked(each.offset)]
        self._bury_killers_of(entries)
        if self.keyed is not None:
            self.keyed.enter(entries, records.held_back)
        else:
            self._wait(entries)

    def _wait(self, entries: list[Entry]) -> None:
        records = self.retry.records
        if records.held_back:
            held = [each for each in entries if covers(records.held_back, each.offset)]
            self.entries.ask(held)
            entries = [each for each in entries if not covers(records.held_back, each.offset)]
        self.entries.add(entries)

    def _bury_killers_of(self, entries: list[Entry]) -> None:
        """Make dead letters of entries that killed their last allowed consumer under older grants.

        All other failures are counted in the entries.
        """
        marking = self.retry.records.marking
        for offset, attempt in [each[0:3:2] for each in entries] if self._killed_before else ():
            ((_, _, deaths),) = marking.failed(offset, offset + 1)
            if deaths and deaths + attempt >= self.policy.max_deliver:
                self._bury(RETRY, offset, offset + 1, deaths + attempt)

    def _lose(self, level: int, start: int, end: int) -> None:
        if level == DEAD:
            self._settle(DEAD, ((start, end),))
            return
        self.parts[level].lose(((start, end),))
        self.lost(level, ((start, end),))

    def lost(self, level: int, ranges: Ranges) -> None:
        """The log has them no more."""
        if level == RETRY:
            self.entries.forget(ranges)
        if self.keyed is not None:
            self.keyed.settled(level, ranges)

    def _queue(self, level: int) -> QueueState:
        return self._retry if level == RETRY else self._dead

    def _note_applied(self, level: int, end: int) -> None:
        queue = self._queue(level)
        raised = replace(queue, applied_end=max(queue.applied_end, end))
        if level == RETRY:
            self._retry = raised
        else:
            self._dead = raised

    # Acks

    def acks_of(self, level: int, acked: Ranges) -> Ranges:
        """The acks that count. In the retry queue these are acks of entries that are out, were out
        until their ack wait ran out in a pause, or are being moved."""
        self._settle_late(self._late.take(level, acked))
        if level == MAIN:
            return self._acks_of_main(acked)
        handed = [(piece.start, piece.end) for piece in self._moves.of_level(level)]
        handed += self.retry.records.spared
        out = self.retry.records.out
        counted = [each for span in acked for each in out.within(*span)]
        counted += [each for span in acked for part in handed for each in clipped((part,), *span)]
        ranges = normalised(counted)
        self.entries.forget(without(ranges, self._done(RETRY)))
        if self.keyed is not None:
            self.keyed.settled(RETRY, ranges)
        return ranges

    def _acks_of_main(self, acked: Ranges) -> Ranges:
        waited = acked
        if self.keyed is not None:
            acked = self.keyed.acked(acked)
            waited = self.keyed.settled(MAIN, acked)
        if self._moves.wait and waited:
            self._moves.drop(waited)
        return acked

    def _expired(self, level: int) -> Ranges:
        """Records of the level that are being moved because their ack wait ran out."""
        pieces = (each for each in self._moves.of_level(level) if each.cause == ACK_WAIT)
        return normalised((piece.start, piece.end) for piece in pieces)

    def _settle_late(self, entries: Sequence[int]) -> None:
        """Records were acked after their ack wait: their entries are done, unless they are out."""
        for offset in entries:
            records, span = self.retry.records, ((offset, offset + 1),)
            if records.progress.is_acked(offset) or records.out.within(offset, offset + 1):
                continue
            records.consumed.ack(span)
            self.entries.forget(span)
            if self.keyed is not None:
                self.keyed.settled(RETRY, span)

    # Upkeep

    def copy_forward(self, now_ms: int) -> bool:
        """Copy entries with a long backoff to the end of the queue, where their place costs too
        much; returns whether there are any."""
        if any(piece.is_copied for piece in self._moves.of_level(RETRY)):
            return False
        ranges = to_copy(self.retry.records.progress, self.entries, self._retry.applied_end)
        ranges = filter(self._errands.may_copy, ranges)
        may_leave = None if self.keyed is None else self.keyed.may_leave
        going = [each for each in ranges if may_leave is None or may_leave(*each, now_ms)]
        for start, end in going:
            self._moves.add(MovePiece(RETRY, start, end, RETRY, 0, 0, "", is_copied=True))
        return bool(going)

    def _is_redriving(self) -> bool:
        return bool(self._dead.redrive.ranges and self._to_redrive())

    def _to_redrive(self) -> Ranges:
        ranges = without(self._dead.redrive.ranges, self._done(DEAD))
        return clipped(ranges, 0, self._dead.applied_end)

    def next_ms(self) -> int | None:
        """When it has something to do without an input."""
        keyed_ms = None if self.keyed is None else self.keyed.next_ms()
        times = self.again_ms, self._pace.at_ms, keyed_ms
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def go_on(self) -> bool:
        """The cursor may have moved on; returns whether there is something to move."""
        if self.keyed is not None:
            self.keyed.go_on()
        return self.keyed is not None and self.is_moving

    def given_back(self) -> bool:
        """The client gave the stream back; returns whether refused records are to be moved first.
        Followers, and records without room in the queues, are not: they are sent again."""
        if self.keyed is not None:
            self.keyed.drop_followers()
            room = self._room(0)
            self._moves.keep(lambda each: each.cause != FOLLOWS and self._may_go(each, room) > 0)
        return self.is_moving

    def wake(self, now_ms: int) -> None:
        """Its time has come: redrive the next dead letters."""
        self.go_on()
        if self._pace.at_ms is None or now_ms < self._pace.at_ms:
            return
        if any(self._moves.of_level(DEAD)):
            self._pace.later(now_ms)
        elif left := self._to_redrive():
            for piece in self._pace.pieces(left, self._dead.redrive.operation, now_ms):
                self._moves.add(piece._replace(due_ms=now_ms + self._wall_ahead_ms))
        else:
            self._pace.end()
