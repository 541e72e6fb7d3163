"""The operator of a world: moves cursors of live groups, undoes moves, cancels them.

It plays `dssd.operations`: an operation is committed with the group's next revision and the pending
moves, then the group's leader is instructed; a daemon that starts asks again for what its
predecessor left undone. Invariant: one operation at a time runs on a group, and an operation
depends only on the seed, its number and the progress that it finds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from dss_core.ids import StreamId
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Progress, Ranges, normalised, without
from dss_sim.groups.history import ErrandEnded
from dss_sim.groups.queue_plans import REDRIVES_MS
from dss_sim.groups.store import at_once
from dssd.leaders.generations import parts_with_parents
from dssd.leaders.lanes import queues_of
from dssd.leaders.progress_columns import packed_ranges, progress_of, unpacked_ranges
from dssd.machines.leader.cursor_moves import all_of, everything_below, moved
from dssd.machines.leader.events import CancelMoves, CursorMove, Instruction, MoveCursors
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.queues import BLOCK, BURY, RETRY_LATER, RETRY_NOW, SKIP, Queues, QueueState
from dssd.machines.start_point import OFFSET_MAX
from dssd.store.port import PreconditionFailed, Put, VersionIs, Write
from dssd.store.rows import GroupRow, MadeMoveRow, PendingMoveRow, ProgressRow

if TYPE_CHECKING:
    from random import Random

    from dss_sim.groups.world import World

KINDS = ("rewind", "skip", "seek", "skip records", "import")
RECORDS_SKIPPED = (1, 3)
ERRANDS = (RETRY_NOW, SKIP, BURY)


@dataclass(slots=True)
class Operation:
    """An operation on cursors."""

    number: int
    group: GroupRow
    moves: tuple[CursorMove, ...]
    incarnation: int
    """The incarnation of the daemon that was asked."""
    undoes: int = 0
    applied: bool = False
    """The operation is durable."""
    followed: bool = False
    """The daemon that asked knows that, or a later one has found it."""
    cancelled: bool = False
    asked: list[Instruction] = field(default_factory=list)
    """The leaders of the group that concluded it, in the present daemon."""


class CursorOperator:
    """All operations of a run."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._asked: dict[int, Operation] = {}
        self._running: dict[int, Operation] = {}
        """Operations by group."""
        self._ended: dict[int, Operation] = {}
        """The newest operation of each group."""

    # What operators ask

    def move(self, group: GroupRow, kind: str | None = None) -> None:
        """Move all cursors of the group by one kind of operation, halfway; or some by any kind."""
        number = len(self._asked) + 1
        chance = self._world.chance.of(f"operation {number}")
        streams = sorted(self._streams(group))
        chosen = [stream for stream in streams if kind or chance.random() < 0.7]
        drawn = kind or chance.choice(KINDS)
        moves: list[CursorMove] = []
        for stream in chosen:
            end = self._world.log.bounds(stream).end
            to = end // 2 if kind else chance.randint(0, end)
            moves.append(_move_of(drawn, stream, number, end, to, chance))
        self._apply(group, number, moves)

    def redrive(self, group: GroupRow, *, whole: bool = False) -> None:
        """Redrive all dead letters of the group, or some, and discard some others.

        It is refused while dead letters of these lanes come back, as those of a cancelled redrive
        do. Entries in a closed lane are left out.
        """
        number = len(self._asked) + 1
        chance = self._world.chance.of(f"redrive {number}")
        is_whole = group.ordered and self._world.chance.of(f"whole {number}").random() < 0.5
        over_ms = 0 if whole else self._world.chance.of(f"rate {number}").choice(REDRIVES_MS)
        moves: list[CursorMove] = []
        for stream in sorted(self._streams(group)):
            dead = self._dead_letters(group, stream)
            if dead is None or self._is_closed(group, stream):
                continue
            left = dead.progress.unacked(self._world.log.bounds(dead.stream).end)
            if left and dead.redriving:
                return
            letters = [(at, at + 1) for part in left for at in range(*part)]
            drawn = [0.0 if whole else chance.random() for _ in letters]
            back = normalised(at for at, each in zip(letters, drawn, strict=True) if each < 0.6)
            given_up = normalised(at for at, each in zip(letters, drawn, strict=True) if each > 0.9)
            if is_whole and group.on_dead_letter == BLOCK:
                move = CursorMove(stream, number, (), (), redriven=left, whole_keys=True)
            else:
                move = CursorMove(stream, number, (), (), redriven=back, discarded=given_up)
            moves.append(replace(move, redrive_ms=over_ms))
        self._apply(group, number, moves)

    def errand(self, group: GroupRow) -> None:
        """Bring forward, pass over, or bury some entries of the group's retry queues.

        The latter two need a holder, so entries in a closed lane are left out.
        """
        number = len(self._asked) + 1
        chance = self._world.chance.of(f"errand {number}")
        what = chance.choice(ERRANDS)
        moves: list[CursorMove] = []
        for stream in sorted(self._streams(group)):
            queues = self._queues(group, stream)
            if not queues or (what != RETRY_NOW and self._is_closed(group, stream)):
                continue
            retry = queues[RETRY - 1]
            left = retry.progress.unacked(self._world.log.bounds(retry.stream).end)
            entries = [(at, at + 1) for part in left for at in range(*part)]
            chosen = normalised(each for each in entries if chance.random() < 0.5)
            if chosen:
                moves.append(CursorMove(stream, number, (), (), errand=what, entries=chosen))
        self._apply(group, number, moves)

    def undo(self, group: GroupRow) -> None:
        """Undo the newest operation of the group, unless something moved its cursors since."""
        last = self._ended.get(group.group_id)
        if last is None:
            return
        number = len(self._asked) + 1
        if of_queues := [move for move in last.moves if move.redriven or move.errand]:
            self._apply(group, number, list(self._taken_back(group, number, of_queues)))
            return
        moves: list[CursorMove] = []
        for made in self._made(last):
            stream = StreamId(made.storage_topic_id, made.partition)
            row = self._row(group, stream)
            if row is None or stream not in self._world.log:
                continue
            if row.cursor_generation != last.number:
                return
            before = Progress(made.floor_before, unpacked_ranges(made.ranges_before))
            given = Progress(made.floor_after, unpacked_ranges(made.ranges_after))
            moves.append(CursorMove(stream, number, all_of(given), all_of(before)))
        self._apply(group, number, moves, undoes=last.number)

    def _taken_back(
        self, group: GroupRow, number: int, moves: list[CursorMove]
    ) -> Iterator[CursorMove]:
        """The undo as the daemon plans it: entries of a redrive that still wait are dead again,
        buried entries come again, and hurried ones wait for their time."""
        for move in moves:
            queues = self._queues(group, move.stream)
            if not queues:
                continue
            retry, dead = queues
            made_by = partial(self._made_by, number=move.number)
            if move.redriven and (left := made_by(retry)):
                yield CursorMove(move.stream, number, (), (), errand=BURY, entries=left)
            elif move.errand == BURY and (left := made_by(dead)) and not dead.redriving:
                yield CursorMove(move.stream, number, (), (), redriven=left)
            elif move.errand == RETRY_NOW and retry.hurried.operation == move.number:
                left = without(retry.hurried.ranges, all_of(retry.progress))
                if left:
                    yield CursorMove(move.stream, number, (), (), errand=RETRY_LATER, entries=left)

    def _made_by(self, queue: QueueState, number: int) -> Ranges:
        """The entries that an operation made."""
        return without(
            self._world.queue_work.log.made_by(queue.stream, number), all_of(queue.progress)
        )

    def cancel(self, group: GroupRow) -> None:
        """Cancel the running operation of the group."""
        running = self._running.get(group.group_id)
        if running is not None and running.followed:
            running.cancelled = True
            self._ask(running, CancelMoves(running.number))

    def repeat(self, group: GroupRow) -> None:
        """Repeat the last instruction to the group's leader, whether it is done or not."""
        group_id = group.group_id
        known = self._running.get(group_id) or self._ended.get(group_id)
        if known is not None and known.followed and not known.cancelled:
            self._instruct(group_id, MoveCursors(known.number, known.moves))

    # The outcome of operations

    def resume(self) -> None:
        """The daemon starts: unfinished operations of its predecessor are asked for again."""
        for group_id, operation in list(self._running.items()):
            if operation.applied:
                self._resume(operation)
            else:
                # Its commit may still come; until then nobody knows of the operation.
                del self._running[group_id]

    def resume_on(self, group_id: int) -> None:
        """The leader of a group is gone, and its instructions with it."""
        for instruction in self.asked_of(group_id):
            self._instruct(group_id, instruction)

    def asked_of(self, group_id: int) -> list[Instruction]:
        """The instructions for a leader of the group."""
        running = self._running.get(group_id)
        return [] if running is None else list(running.asked)

    def _resume(self, operation: Operation) -> None:
        operation.followed = True
        operation.asked.clear()
        self._ask(operation, MoveCursors(operation.number, ()))
        if operation.cancelled:
            self._ask(operation, CancelMoves(operation.number))

    def applied(self, number: int) -> None:
        """The commit of an operation took effect."""
        operation = self._asked[number]
        if operation.applied:
            return
        operation.applied = True
        world, group_id = self._world, operation.group.group_id
        self._running[group_id] = operation
        if world.leaders.host.incarnation != operation.incarnation:
            # The daemon that asked died meanwhile; the next one finds the operation.
            operation.followed = True
            self._ask(operation, MoveCursors(number, operation.moves))

    def concluded(self, group_id: int, number: int) -> None:
        """A leader says that an operation is done.

        Raises:
            Violation: it is not.
        """
        operation = self._asked.get(number)
        if operation is None:
            return
        world = self._world
        there = {move.stream for move in operation.moves if move.stream in world.log}
        done = {StreamId(each.storage_topic_id, each.partition) for each in self._made(operation)}
        cancelled = there if operation.cancelled else self._rehomed(operation)
        world.ledger.check_concluded(group_id, number, there - done, cancelled)
        if self._running.get(group_id) is operation:
            del self._running[group_id]
            self._ended[group_id] = operation
            if not operation.cancelled:
                world.tell(ErrandEnded(world.schedule.now_us, operation.group.name, number))

    def forget(self, group_id: int) -> None:
        """The group is removed."""
        self._running.pop(group_id, None)
        self._ended.pop(group_id, None)

    def is_running(self, group_id: int) -> bool:
        """Whether an operation on the group's cursors has not ended."""
        return group_id in self._running

    def undoes(self, number: int) -> int:
        """The operation that an operation undoes; 0: none."""
        return self._asked[number].undoes

    def unended(self) -> list[int]:
        """Operations that are not done."""
        return [operation.number for operation in self._running.values()]

    # How it is asked

    def _apply(
        self, group: GroupRow, number: int, moves: list[CursorMove], undoes: int = 0
    ) -> None:
        """A stream on which the operation has no effect is not touched."""
        changing = tuple(
            move
            for move in moves
            if move.redriven
            or move.discarded
            or move.errand
            or moved(known := self._progress(group, move.stream), move) != known
        )
        leaders = self._world.leaders
        busy = self.is_running(group.group_id) or self._world.hold_operator.holds(group.group_id)
        if not changing or busy or not leaders.takes_sessions:
            return
        found = at_once(self._world.store.rows.read(GroupRow, (group.group_id,)))
        if found is None:
            return
        operation = Operation(number, group, changing, leaders.host.incarnation, undoes)
        self._asked[number] = self._running[group.group_id] = operation
        raised = replace(found.row, revision=found.row.revision + 1, cursor_generation=number)
        writes: list[Write] = [Put(raised), *map(partial(_pending, group), changing)]
        unmoved = VersionIs(GroupRow, (group.group_id,), found.version)
        answered = partial(self._answered, operation)
        self._world.say("operator", operation)
        self._world.store.commit(leaders.host, writes, [unmoved], answered)

    def _answered(self, operation: Operation, answer: list[int] | PreconditionFailed) -> None:
        group_id = operation.group.group_id
        if isinstance(answer, PreconditionFailed):
            self._running.pop(group_id, None)
            return
        operation.followed = True
        self._ask(operation, MoveCursors(operation.number, operation.moves))

    def _ask(self, operation: Operation, instruction: Instruction) -> None:
        operation.asked.append(instruction)
        self._instruct(operation.group.group_id, instruction)

    def _instruct(self, group_id: int, instruction: Instruction) -> None:
        """A frozen daemon hears it when it thaws; a dead one, when it restarts."""
        leaders = self._world.leaders
        hear = partial(leaders.instruct, group_id, instruction)
        self._world.schedule.after(0, hear, leaders.host)

    # The state that it finds

    def _streams(self, group: GroupRow) -> Iterator[StreamId]:
        for topic in self._world.catalogue.topics.values():
            if group in self._world.selecting(topic):
                yield from topic.streams()

    def _is_closed(self, group: GroupRow, stream: StreamId) -> bool:
        acting = self._world.leaders.leading.get(group.group_id)
        lent = acting.leader.streams.get(stream) if acting and acting.leader else None
        if lent is not None:
            return lent.state is StreamState.CLOSED
        before = (
            parents
            for topic in self._world.catalogue.topics.values()
            for part, of_part in parts_with_parents(topic, group)
            for each, parents in zip(part.streams(), of_part, strict=True)
            if each == stream
        )
        rows = [self._row(group, each) for parents in before for each in parents or ()]
        return any(row is None or not row.finished for row in rows)

    def _progress(self, group: GroupRow, stream: StreamId) -> Progress:
        """The progress as its leader has it, if there is one."""
        acting = self._world.leaders.leading.get(group.group_id)
        if acting is not None and acting.leader is not None:
            lent = acting.leader.streams.get(stream)
            if lent is not None:
                return lent.progress
        return progress_of(self._row(group, stream))

    def _rehomed(self, operation: Operation) -> set[StreamId]:
        """Streams whose queues were durably re-homed, with what the operation asked of them. The
        leader cancelled that, and the daemon says that the operation failed."""
        return {
            move.stream
            for move in operation.moves
            if operation.group.ordered and (move.redriven or move.discarded or move.errand)
            if (row := self._row(operation.group, move.stream)) is not None and row.finished
        }

    def _row(self, group: GroupRow, stream: StreamId) -> ProgressRow | None:
        rows = self._world.store.rows
        found = at_once(rows.read(ProgressRow, (group.group_id, *stream)))
        return None if found is None else found.row

    def _dead_letters(self, group: GroupRow, stream: StreamId) -> QueueState | None:
        """The stored dead letters."""
        queues = self._queues(group, stream)
        return queues[DEAD - 1] if queues else None

    def _queues(self, group: GroupRow, stream: StreamId) -> Queues | None:
        named = self._world.catalogue.queues_of(group.group_id, stream)
        if named is None:
            return None
        rows = {each: row for each in named if (row := self._row(group, each)) is not None}
        return queues_of(self._world.catalogue, group, stream, rows)

    def _made(self, operation: Operation) -> list[MadeMoveRow]:
        rows = self._world.store.rows
        return [found.row for found in at_once(rows.scan(MadeMoveRow, (operation.number,)))]


def _pending(group: GroupRow, move: CursorMove) -> Write:
    return Put(
        PendingMoveRow(
            group.group_id,
            *move.stream,
            move.number,
            packed_ranges(move.dropped),
            packed_ranges(move.added),
            packed_ranges(move.redriven),
            packed_ranges(move.discarded),
            move.redrive_ms,
            move.whole_keys,
            move.errand,
            packed_ranges(move.entries),
        )
    )


def _move_of(
    kind: str, stream: StreamId, number: int, end: int, at: int, chance: "Random"
) -> CursorMove:
    """A move in a stream of this end; to this offset, if its kind has a target."""
    from_there_on: Ranges = ((at, OFFSET_MAX),)
    match kind:
        case "rewind":
            return CursorMove(stream, number, from_there_on, ())
        case "skip":
            return CursorMove(stream, number, (), everything_below(at))
        case "seek":
            return CursorMove(stream, number, from_there_on, everything_below(at))
        case "skip records":
            records = normalised([(at, min(at + chance.randint(*RECORDS_SKIPPED), end))])
            return CursorMove(stream, number, (), records)
        case _:
            parts = sorted(chance.randint(0, end) for _ in range(4))
            kept = normalised([(0, parts[0]), (parts[1], parts[2])])
            return CursorMove(stream, number, ((0, OFFSET_MAX),), kept)
