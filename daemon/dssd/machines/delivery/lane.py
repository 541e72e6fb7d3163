"""A lane inside the delivery window: a stream with its retry queue and dead letters.

::

              fails                      fails for the last time
    main ───────────────► retry queue ──────────────────────────► dead letters
      │                    ▲ │  └─ fails: a new entry ─┐               │
      │                    │ └─────────────────────────┘               │
      │                    └───────────────── redriven ────────────────┘
      └──────────── rejected, or fails for the last time ──────────────►

What fails is moved: appended to a queue, and once that is durable, acknowledged where it was. An
entry acknowledges its source, so what a queue holds beyond `applied_end` is taken in when the lane
is opened, by the same code as the answer to a move (docs/decisions/0053). Invariants: nothing is
read before the lane is open, also not of the retry queue, for dead letters may say that it is done;
one move of a lane is under way at a time, and what fails meanwhile goes with the next; a report has
the queues as they are at the same moment. What cannot be moved stays where it is, and is tried
again. This module does not know credit, turns or the log.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dss_core.lane import DEAD, MAIN, RETRY
from dss_core.progress import Ranges, clipped, covers, normalised, total, without
from dssd.limits import (
    ISOLATE_AFTER_DOUBTS,
    LATE_ACKS_MAX,
    MOVE_RECORDS_MAX,
    REFUSED_MOVE_MS,
)
from dssd.machines.delivery.copying import to_copy
from dssd.machines.delivery.entries import WaitingEntries
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
from dssd.machines.delivery.redrive_pace import RedrivePace
from dssd.machines.delivery.retry import Resting
from dssd.machines.delivery.stream import NEVER_HELD, DeliveredStream
from dssd.machines.fate import Fate
from dssd.machines.messages import GrantedStream
from dssd.machines.queues import Queues, QueueState, RetryPolicy

REFUSED, REJECTED, ACK_WAIT, DIED, REDRIVEN = (
    "refused",
    "rejected",
    "ack wait",
    "died",
    "redriven",
)
"""Why a record is moved."""


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
        """As they were lent; the dead letters as they are."""
        self.retry = self._retry_stream(installed, resting, now_ms)
        self.entries = WaitingEntries(installed.wall_ahead_ms)
        self.retry.entries = self.entries
        self.is_open = False
        self._killed_before = bool(retry.fate.failures)
        self._pending: list[MovePiece] = []
        self._under_way: tuple[MovePiece, ...] = ()
        self._leaving = 0
        """Records of main that wait to be moved, or are on their way."""
        self._failed_size = 1
        """Of a record of main that failed last, in bytes."""
        self._dead_bytes = 0
        """Of the entries of the dead letters that are not done."""
        self.again_ms: int | None = None
        """Nothing is moved before."""
        self._late: dict[tuple[int, int], int] = {}
        """The entries of what was not acknowledged in time, by its level and offset; the newest."""
        self._pace = RedrivePace(dead.redrive)
        self.ends_once_moved = False
        """The client gave it back; what it refused is still on its way to the queues."""
        for part in (main, self.retry):
            part.lane = self
            part.records.failed = []
            part.records.suspects_rest_ms = self._suspects_rest_ms
            part.is_shut = True

    def _retry_stream(self, installed: Installed, resting: Resting, now_ms: int) -> DeliveredStream:
        """All of it comes again: nothing is read by a cursor, and no frontier tells anything."""
        queue = self._retry
        granted = GrantedStream(
            queue.stream,
            installed.granted.grant_epoch,
            queue.progress,
            frontier=NEVER_HELD,
            attempts=queue.attempts,
            suspect_end=0,
            fate=queue.fate,
        )
        given = replace(installed, grant=installed.grant + RETRY, granted=granted, policy=None)
        stream = DeliveredStream(given, self.main.credit_records, resting, now_ms)
        stream.level = RETRY
        stream.cursor = stream.records.sent = stream.records.frontier = NEVER_HELD
        stream.at_tail = True
        return stream

    def _suspects_rest_ms(self, doubts: int) -> int:
        """As for failures, from the first time on that it comes alone."""
        return self.policy.rest_ms(doubts - ISOLATE_AFTER_DOUBTS + 1)

    @property
    def parts(self) -> tuple[DeliveredStream, DeliveredStream]:
        """What is delivered of it, by level."""
        return self.main, self.retry

    @property
    def is_moving(self) -> bool:
        """Whether something waits to be moved, or is on its way."""
        return bool(self._pending or self._under_way)

    def moves(self, level: int, offset: int) -> bool:
        """Whether a record waits to be moved, or is on its way."""
        return any(piece.start <= offset < piece.end for piece in self._moving(level))

    def queues(self) -> Queues:
        """As the group protocol carries them."""
        records = self.retry.records
        retry = replace(
            self._retry,
            progress=records.progress,
            attempts=records.marking.attempts(),
            fate=records.fate(),
        )
        return retry, self._dead

    # Opening

    def opening(self) -> OpenLane:
        """What begins it."""
        return OpenLane(
            self.main.grant,
            self.main.stream,
            self.main.grant_epoch,
            self._retry.stream,
            self._retry.progress.floor,
            self._dead.stream,
            self._dead.applied_end,
        )

    def take_entries(self, given: EntriesRead) -> None:
        """Entries that the queues held when the lane was lent."""
        known = self._queue(given.level).applied_end
        self._apply(given.level, [each for each in given.entries if each.offset >= known])
        if given.level == RETRY:
            self._enter([each for each in given.entries if each.offset < known])
            self._close_origins(given.entries)
        self._note_applied(given.level, given.end)

    def _close_origins(self, entries: Sequence[Entry]) -> None:
        """What an operator reopened in the stream, and waits in the retry queue, comes from there
        alone."""
        main, retry = self.main.records, self.retry.records.progress
        origins = [each.origin for each in entries if each.origin is not None]
        if not origins or main.progress.is_acked_all(min(origins), max(origins) + 1):
            return
        waiting = (
            (each.origin, each.origin + 1)
            for each in entries
            if each.origin is not None
            and not retry.is_acked(each.offset)
            and not main.progress.is_acked(each.origin)
        )
        if reopened := normalised(waiting):
            main.moved(reopened)

    def opened(self, now_ms: int, dead_size: int) -> None:
        """All of them were read: begin. A dead letter has so many bytes, on average."""
        self.is_open = True
        self._retry = self._retry.end()
        self._dead_bytes = dead_size * self._dead_records()
        for part in self.parts:
            part.is_shut = False
            part.begins()
        self._bury_killers()
        if self._to_redrive():
            self._pace.begin(now_ms)

    def close(self) -> None:
        """It was given back: what it knows of a million entries goes now, not once somebody looks
        for dead cycles."""
        self.entries = self.retry.entries = WaitingEntries(self._wall_ahead_ms)

    def _bury_killers(self) -> None:
        """What its consumers died of for the last time under older grants. What was refused so
        often, and could not be moved, comes again: nobody knows its error any more."""
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
        self._add(MovePiece(level, start, end, DEAD, failures, 0, DIED))

    # What fails

    def take_failed(self, now_ms: int) -> None:
        """Judge what has failed since this was asked last."""
        for level, part in enumerate(self.parts):
            failed, part.records.failed = part.records.failed, []
            for start, end, nak, size in failed or ():
                if level == MAIN:
                    self._failed_size = max(size // (end - start), 1)
                for low, high, failures in self._failures(level, start, end):
                    self._judge(level, (low, high, failures), nak, now_ms)

    def _failures(self, level: int, start: int, end: int) -> list[tuple[int, int, int]]:
        """By how often it failed, this time too: that is durable with the entry, and its error."""
        counted = self.parts[level].records.marking.failed
        known = self.entries.failures(start, end, counted) if level else counted(start, end)
        return [(low, high, failures + 1) for low, high, failures in known]

    def _judge(self, level: int, each: tuple[int, int, int], nak: Nak | None, now_ms: int) -> None:
        start, end, failures = each
        delay_ms = None if nak is None else nak.delay_ms
        rest_ms = self.policy.rest_ms(failures) if delay_ms is None else delay_ms
        if level == MAIN and end - start > (room := self._room()):
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
        self._add(MovePiece(level, start, end, to, failures, due_ms, cause, error, kind))

    def _add(self, piece: MovePiece) -> None:
        self._pending.append(piece)
        self._note_leaving(piece)

    def _note_leaving(self, piece: MovePiece) -> None:
        """What waits to be moved from main counts like what rests there."""
        if piece.level == MAIN:
            self.main.records.moving += 1
            self._leaving += piece.end - piece.start

    def _count_moving(self) -> None:
        pieces = (*self._pending, *self._under_way)
        sizes = [piece.end - piece.start for piece in pieces if piece.level == MAIN]
        self.main.records.moving, self._leaving = len(sizes), sum(sizes)

    def _room(self) -> int:
        """How many more records may leave main: at 0 the queues hold as much as they may."""
        records = self.entries.records + self._dead_records() + self._leaving
        size = self._failed_size
        bytes_ = self.entries.bytes + self._dead_bytes + self._leaving * size
        # Whole records: the last one may be larger than what is left.
        fitting = -(-(self.policy.queue_bytes - bytes_) // size)
        return max(min(self.policy.queue_records - records, fitting), 0)

    def _dead_records(self) -> int:
        end = self._dead.applied_end
        return end - self._dead.progress.acked_in(0, end)

    # Moving

    def next_move(self, now_ms: int) -> Move | None:
        """What is moved now, if anything: as much as fits into one move."""
        if not self.is_open or self._under_way or not self._pending:
            return None
        if self.again_ms is not None and now_ms < self.again_ms:
            return None
        self.again_ms = None
        pieces, left = self._first_pending()
        self._pending, self._under_way = left, pieces
        self._count_moving()
        self._retry = self._retry.begin() if pieces else self._retry
        return Move(self.main.grant, pieces) if pieces else None

    def _first_pending(self) -> tuple[tuple[MovePiece, ...], list[MovePiece]]:
        pieces: list[MovePiece] = []
        left: list[MovePiece] = []
        room = MOVE_RECORDS_MAX
        done = [self._done(level) for level in (MAIN, RETRY, DEAD)]
        for at, piece in enumerate(self._pending):
            if not room:
                return tuple(pieces), left + self._pending[at:]
            for each in self._still_idle(piece) if piece.is_copied else piece.left(done):
                cut = min(each.end, each.start + room)
                if each.start < cut:
                    pieces.append(each._replace(end=cut))
                    room -= cut - each.start
                if cut < each.end:
                    left.append(each._replace(start=cut))
        return tuple(pieces), left

    def _still_idle(self, piece: MovePiece) -> Iterator[MovePiece]:
        """What of it waits for its time still: what came meanwhile may have failed anew."""
        busy = normalised((at, at + 1) for at in self.entries.attempts)
        return piece.left(((), normalised((*busy, *self._done(RETRY)))))

    def _drop(self, done: Ranges) -> None:
        """Of what waits to be moved from the stream, these are done: nothing is read behind them
        for longer than they wait."""
        of_level = (done, (), ())
        self._pending = [left for each in self._pending for left in each.left(of_level)]
        if not self._pending:
            self.again_ms = None
        self._count_moving()

    def _done(self, level: int) -> Ranges:
        if level == DEAD:
            progress = self._dead.progress
            return ((0, progress.floor), *progress.ranges)
        return self.parts[level].records.consumed.done()

    def take_moved(self, given: Moved, now_ms: int) -> None:
        """A move was answered: what arrived leaves where it was; what did not stays."""
        expired = [self._expired(level) for level in (MAIN, RETRY)]
        self._under_way = ()
        self._retry = self._retry.end()
        for level in (RETRY, DEAD):
            arrived = [entry for to, entry in given.entries if to == level]
            if any(expired) and level == RETRY:
                self._note_late(arrived, expired)
            self._apply(level, arrived)
            if arrived:
                self._note_applied(level, arrived[-1].offset + 1)
        for level, start, end in given.lost:
            self._lose(level, start, end)
        done = [self._done(level) for level in (MAIN, RETRY, DEAD) if given.failed]
        if failed := [left for each in given.failed for left in each.left(done)]:
            self._pending[:0] = failed
            self.again_ms = now_ms + REFUSED_MOVE_MS
        self._drop(self._done(MAIN))
        self.copy_forward()

    def _apply(self, level: int, entries: list[Entry]) -> None:
        """The entries acknowledge their sources. Where the user did meanwhile, they are done."""
        live = self._live(entries)
        if len(live) < len(entries):
            gone = {each.offset for each in entries} - {each.offset for each in live}
            self._finish(level, normalised((at, at + 1) for at in gone))
        if level == RETRY:
            self._enter(live)
        self._dead_bytes += sum(each.size for each in live) if level == DEAD else 0
        for source in {each.source_level for each in live}:
            offsets = (each.source_offset for each in live if each.source_level == source)
            self._settle(source, normalised((at, at + 1) for at in offsets))

    def _live(self, entries: list[Entry]) -> list[Entry]:
        """Those whose source was not acknowledged before they came."""
        progress = [*(part.records.progress for part in self.parts), self._dead.progress]
        for level in {each.source_level for each in entries}:
            offsets = [each.source_offset for each in entries if each.source_level == level]
            if progress[level].acked_in(min(offsets), max(offsets) + 1):
                return [
                    each
                    for each in entries
                    if not progress[each.source_level].is_acked(each.source_offset)
                ]
        return entries

    def _settle(self, level: int, ranges: Ranges) -> None:
        """What was moved is done where it was."""
        if level == DEAD:
            self._close_dead(ranges, "retried")
            return
        self.parts[level].records.moved(ranges)
        if level == RETRY:
            self.entries.forget(ranges)

    def _finish(self, level: int, ranges: Ranges) -> None:
        """Entries whose record was acknowledged while they were on their way."""
        if level == DEAD:
            self._close_dead(ranges, "acked")
        else:
            self.retry.records.consumed.ack(ranges)

    def _close_dead(self, ranges: Ranges, kind: str) -> None:
        """They are done. One that was brought back before anybody told of it is already."""
        before = self._dead_records()
        counts = self._dead.fate.counts.plus(kind, total(without(ranges, self._done(DEAD))))
        progress = self._dead.progress.with_acked(ranges)
        self._dead = replace(self._dead, progress=progress, fate=Fate(counts=counts))
        # Sizes are not kept by entry: each counts as the average.
        self._dead_bytes = self._dead_bytes * self._dead_records() // max(before, 1)

    def _enter(self, entries: list[Entry]) -> None:
        """They wait in the retry queue, as far as they are not done there; in order."""
        records = self.retry.records
        if entries and records.progress.acked_in(entries[0].offset, entries[-1].offset + 1):
            entries = [each for each in entries if not records.progress.is_acked(each.offset)]
        if self._killed_before:
            for each in entries:
                self._bury_killer(each)
        if records.held_back:
            held = [each for each in entries if covers(records.held_back, each.offset)]
            self.entries.ask(held)
            entries = [each for each in entries if not covers(records.held_back, each.offset)]
        self.entries.add(entries)

    def _bury_killer(self, entry: Entry) -> None:
        """If consumers died of it for the last time under older grants, it is dead.

        Other failures are counted by entries alone.
        """
        offset = entry.offset
        ((_, _, deaths),) = self.retry.records.marking.failed(offset, offset + 1)
        if deaths and deaths + entry.attempt >= self.policy.max_deliver:
            self._bury(RETRY, offset, offset + 1, deaths + entry.attempt)

    def _lose(self, level: int, start: int, end: int) -> None:
        if level == DEAD:
            self._settle(DEAD, ((start, end),))
            return
        part = self.parts[level]
        part.lose(((start, end),))
        if level == RETRY:
            self.entries.forget(((start, end),))

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
        """What of these counts: of a queue only what is out, was until its ack wait ran out in a
        pause, or is on its way to a queue."""
        if self._late:
            self._settle_late(level, acked)
        if level == MAIN:
            if self._pending:
                self._drop(acked)
            return acked
        handed = [(piece.start, piece.end) for piece in self._moving(level)]
        handed += self.retry.records.spared
        out = self.retry.records.out
        counted = [each for span in acked for each in out.within(*span)]
        counted += [each for span in acked for part in handed for each in clipped((part,), *span)]
        ranges = normalised(counted)
        self.entries.forget(without(ranges, self._done(RETRY)))
        return ranges

    def _moving(self, level: int) -> Iterable[MovePiece]:
        return (each for each in (*self._under_way, *self._pending) if each.level == level)

    def _expired(self, level: int) -> Ranges:
        """What is moved from the level because its ack wait ran out."""
        pieces = (each for each in self._moving(level) if each.cause == ACK_WAIT)
        return normalised((piece.start, piece.end) for piece in pieces)

    def _note_late(self, arrived: list[Entry], expired: Sequence[Ranges]) -> None:
        for entry in arrived:
            level, offset = entry.source_level, entry.source_offset
            if level != DEAD and covers(expired[level], offset):
                self._late[level, offset] = entry.offset
        while len(self._late) > LATE_ACKS_MAX:
            del self._late[next(iter(self._late))]

    def _settle_late(self, level: int, acked: Ranges) -> None:
        """Acknowledged after the ack wait: the entry is done, unless it is with a client."""
        for start, end in acked:
            late = [each for each in self._late if each[0] == level and start <= each[1] < end]
            for source in late:
                offset = self._late.pop(source)
                records = self.retry.records
                if records.progress.is_acked(offset) or records.out.within(offset, offset + 1):
                    continue
                records.consumed.ack(((offset, offset + 1),))
                self.entries.forget(((offset, offset + 1),))

    # Upkeep

    def copy_forward(self) -> bool:
        """What waits for long goes to the end of the queue, where its place costs too much; tells
        whether there is such now."""
        if any(piece.is_copied for piece in self._moving(RETRY)):
            return False
        ranges = list(to_copy(self.retry.records.progress, self.entries, self._retry.applied_end))
        for start, end in ranges:
            self._add(MovePiece(RETRY, start, end, RETRY, 0, 0, "", is_copied=True))
        return bool(ranges)

    def _to_redrive(self) -> Ranges:
        ranges = without(self._dead.redrive.ranges, self._done(DEAD))
        return clipped(ranges, 0, self._dead.applied_end)

    def next_ms(self) -> int | None:
        """When it has something to do by itself."""
        times = [at_ms for at_ms in (self.again_ms, self._pace.at_ms) if at_ms is not None]
        return min(times, default=None)

    def wake(self, now_ms: int) -> None:
        """Its time has come: bring back the next dead letters that shall come back."""
        if self._pace.at_ms is None or now_ms < self._pace.at_ms:
            return
        if any(self._moving(DEAD)):
            self._pace.later(now_ms)
        elif left := self._to_redrive():
            self._bring_back(left, self._pace.take(now_ms), now_ms)
        else:
            self._pace.end()

    def _bring_back(self, left: Ranges, room: int, now_ms: int) -> None:
        due_ms = now_ms + self._wall_ahead_ms
        number = self._dead.redrive.operation
        for start, end in left:
            cut = min(end, start + room)
            if start < cut:
                self._add(MovePiece(DEAD, start, cut, RETRY, 0, due_ms, REDRIVEN, operation=number))
                room -= cut - start
