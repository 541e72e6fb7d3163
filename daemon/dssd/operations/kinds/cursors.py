"""Rewind, skip, seek, import, records skipped by hand, and their undo.

All of them are moves of cursors: `dssd.machines.leader.cursor_moves` has the theory. A plan shows
the progress that each move would make from the present one. Applying it commits the moves as rows;
the leader makes each of them as soon as nobody holds its stream. Invariant: a stream on which the
change has no effect is not touched, so its holder goes on undisturbed.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from dss_core.answers import StreamPlan
from dss_core.changes import (
    BySpan,
    Change,
    Direction,
    ImportOffsets,
    MoveCursors,
    RecordSpan,
    RedeliverRecords,
    SkipRecords,
    StreamOffsets,
    StreamTarget,
    ToOffset,
    Undo,
)
from dss_core.errors import (
    IllegalArgument,
    NotUndoable,
    OffsetOutOfRange,
    OffsetsDoNotFit,
    StreamNotRead,
)
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId, StreamName
from dss_core.progress import Progress, Ranges, clipped, normalised, without
from dssd.leaders.generations import descendants
from dssd.leaders.groups import Groups
from dssd.leaders.lag import GroupSurvey, StreamSurvey, selects_whole
from dssd.leaders.progress_columns import packed_ranges, unpacked_ranges
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.machines.leader.cursor_moves import all_of, everything_below, moved
from dssd.machines.leader.events import CancelMoves, CursorMove, Instruction
from dssd.machines.leader.events import MoveCursors as MoveCursorsNow
from dssd.machines.start_point import OFFSET_MAX
from dssd.operations.cursor_targets import Placed, found_target, times_of_span, within
from dssd.operations.kinds.cursor_sentences import (
    alone,
    closed_by,
    effects_of,
    left_alone,
    left_in_queues,
    summary_of,
)
from dssd.operations.kinds.queued_origins import queued_origins
from dssd.operations.plans import Begun, Made, Plan, subject_of
from dssd.store.paging import scan_all
from dssd.store.port import Put, Store, Write
from dssd.store.rows import GroupRow, MadeMoveRow, OperationRow, PendingMoveRow
from dssd.topics.catalogue import Catalogue, Topic
from dssd.topics.internal import refuse_internal

RECORDS_SKIPPED_MAX = 1_000
"""How many records one operation skips by hand; to pass over more, name an offset to skip to."""


STREAMS_MOVED_MAX = 10_000
"""How many cursors one operation moves: a leader begins them in one step, which took 55 us each,
and a plan of them fits into a message."""


OfRecords = SkipRecords | RedeliverRecords
Cursors = MoveCursors | ImportOffsets | OfRecords

ALL: Ranges = ((0, OFFSET_MAX),)


@dataclass(frozen=True, slots=True)
class _Moving:
    """A stream, and the move that a change asks of it."""

    stream: StreamSurvey
    dropped: Ranges
    added: Ranges
    target: int
    clamped: bool = False

    def move(self, number: int) -> CursorMove:
        return CursorMove(self.stream.view.stream, number, self.dropped, self.added)

    @property
    def after(self) -> Progress:
        return moved(self.stream.view.progress, self.move(0))

    @property
    def changes(self) -> bool:
        return self.after != self.stream.view.progress


class CursorMoves:
    """Plans and begins operations that move cursors."""

    def __init__(
        self, store: Store, groups: Groups, registry: Registry, catalogue: Catalogue, log: Log
    ) -> None:
        self._store = store
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue
        self._log = log

    async def plan(self, change: Cursors) -> Plan:
        """What the change would do.

        Raises:
            GroupNotFound, GroupAmbiguous, StreamNotRead, OffsetOutOfRange, OffsetsDoNotFit,
            IllegalArgument: it cannot be done.
        """
        group = self._groups.find(change.group)
        survey = await self._registry.survey(group)
        resolved, moving = await self._resolved(change, group, survey)
        plan = await self._planned(resolved, kind_of(change), group, moving, survey)
        plan = replace(plan, effects=(*plan.effects, *await self._told_of_queues(group, plan)))
        if isinstance(change, ImportOffsets):
            return replace(plan, effects=(*plan.effects, *self._left_alone(change, survey)))
        if isinstance(change, RedeliverRecords):
            return replace(plan, effects=(*plan.effects, *alone(group, plan.streams)))
        if isinstance(change, SkipRecords) or change.direction is Direction.SKIP:
            waiting = sum(each.stream.queued.retrying for each in moving)
            return replace(plan, effects=(*plan.effects, *left_in_queues(group, waiting)))
        return plan

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The pending moves, and the instruction to make them."""
        assert plan.group is not None
        return _begun(plan.group, plan.found, number)

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """What taking it back would do.

        Raises:
            NotUndoable: a later operation moved one of its cursors, or a topic is gone.
        """
        group = self._groups.get(undone.group_id)
        survey = await self._registry.survey(group)
        moving = await self._moving_back(undone, survey)
        plan = await self._planned(Undo(undone.number), undone.kind, group, moving, survey)
        return replace(plan, summary=f"take back operation {undone.number}: {undone.summary}")

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """As `begin`."""
        return await self.begin(plan, number)

    async def resumed(self, row: OperationRow) -> Begun:
        """The leader reads the moves that are pending when it takes over."""
        return Begun(instruction=MoveCursorsNow(row.number, ()))

    def cancellation(self, row: OperationRow) -> Instruction:
        """Cursors that were not moved yet stay."""
        return CancelMoves(row.number)

    async def made(self, row: OperationRow) -> Made:
        """The cursors that moved."""
        moved = await scan_all(self._store, MadeMoveRow, (row.number,))
        return Made(len(moved), json.loads(row.after)["moves"], "cursors have moved")

    # Resolving

    async def _resolved(
        self, change: Cursors, group: GroupRow, survey: GroupSurvey
    ) -> tuple[Cursors, list[_Moving]]:
        by_name = {str(stream.name): stream for stream in survey.streams}
        match change:
            case MoveCursors():
                return await self._resolved_move(change, group, by_name)
            case ImportOffsets():
                return change, self._resolved_import(change, group, by_name)
            case SkipRecords() | RedeliverRecords():
                return change, self._resolved_records(change, group, by_name)
            case _:
                assert_never(change)

    async def _resolved_move(
        self, change: MoveCursors, group: GroupRow, by_name: dict[str, StreamSurvey]
    ) -> tuple[MoveCursors, list[_Moving]]:
        moving: list[_Moving] = []
        turn = LoopTurn()
        targets = change.targets or await self._targets(change, group, by_name)
        _check_count(len(targets))
        if len({target.stream for target in targets}) != len(targets):
            raise IllegalArgument(argument="the change", rule="it names each stream once")
        for target in targets:
            await turn.give_way()
            stream = _read(by_name, group, target.stream)
            if stream.view.stream.storage_topic_id != target.storage_topic_id:
                raise StreamNotRead(group=subject_of(group), stream=target.stream)
            found = within(target.offset, self._log.bounds(stream.view.stream))
            moving.append(_moving_to(change.direction, stream, found.offset, found.clamped))
        return MoveCursors(change.group, change.direction, targets=tuple(targets)), moving

    async def _targets(
        self, change: MoveCursors, group: GroupRow, by_name: dict[str, StreamSurvey]
    ) -> list[StreamTarget]:
        names = list(dict.fromkeys(change.streams)) or list(by_name)
        if change.to is None:
            raise IllegalArgument(argument="the change", rule="it says where to move the cursors")
        if isinstance(change.to, ToOffset) and len(names) != 1:
            raise IllegalArgument(
                argument="an offset", rule=f"it needs one --stream; the group reads {len(names)}"
            )
        streams = [_read(by_name, group, name) for name in names]
        targets: list[StreamTarget] = []
        turn = LoopTurn()
        by_topic: Mapping[str, Placed] = {}
        if isinstance(change.to, BySpan):
            by_topic = await times_of_span(change.to.span_ms, streams, self._log)
        for stream in streams:
            await turn.give_way()
            to = by_topic[stream.name.topic] if isinstance(change.to, BySpan) else change.to
            found = await found_target(to, stream, self._log)
            number = stream.view.stream.storage_topic_id
            targets.append(StreamTarget(str(stream.name), number, found.offset))
        return targets

    def _resolved_import(
        self, change: ImportOffsets, group: GroupRow, by_name: dict[str, StreamSurvey]
    ) -> list[_Moving]:
        _check_count(len(change.streams))
        named = {_name_of(each) for each in change.streams}
        if len(named) != len(change.streams):
            raise IllegalArgument(argument="the import", rule="it names each stream once")
        return [
            self._imported(each, group, by_name)
            for each in change.streams
            if not self._is_gone(each, by_name)
        ]

    def _is_gone(self, offsets: StreamOffsets, by_name: dict[str, StreamSurvey]) -> bool:
        """Whether the offsets are of a deleted storage topic of a topic that the group reads."""
        topic = self._catalogue.find(offsets.topic)
        if topic is None or offsets.ordinal >= topic.storage_topics[0].ordinal:
            return False
        return any(stream.name.topic == offsets.topic for stream in by_name.values())

    def _left_alone(self, change: ImportOffsets, survey: GroupSurvey) -> Iterable[str]:
        """Sentences about streams that the import does not name, and about deleted ones."""
        by_name = {str(stream.name): stream for stream in survey.streams}
        gone = [str(_name_of(each)) for each in change.streams if self._is_gone(each, by_name)]
        named = {str(_name_of(each)) for each in change.streams}
        return left_alone(gone, [name for name in by_name if name not in named])

    def _imported(
        self, offsets: StreamOffsets, group: GroupRow, by_name: dict[str, StreamSurvey]
    ) -> _Moving:
        name = str(_name_of(offsets))
        stream = _read(by_name, group, name)
        part = self._catalogue.get(offsets.topic).part(offsets.ordinal)
        if part is None:  # it went meanwhile
            raise StreamNotRead(group=subject_of(group), stream=name)
        if part.partitions != offsets.partitions:
            why = f"it has {part.partitions} partitions beside it, not {offsets.partitions}"
            raise OffsetsDoNotFit(stream=name, why=why)
        bounds = self._log.bounds(stream.view.stream)
        progress = offsets.progress
        reaches = max(offsets.end, progress.floor, *(high for _, high in progress.ranges), 0)
        if reaches > bounds.end:
            raise OffsetsDoNotFit(stream=name, why=f"it ends at {bounds.end}, not at {reaches}")
        return _Moving(
            stream,
            ALL,
            all_of(progress),
            max(progress.floor, bounds.start),
            clamped=progress.floor < bounds.start,
        )

    def _resolved_records(
        self, change: OfRecords, group: GroupRow, by_name: dict[str, StreamSurvey]
    ) -> list[_Moving]:
        spans = (RecordSpan(change.stream, change.offset, change.count), *change.more)
        count = sum(span.count for span in spans)
        if not all(span.count >= 1 for span in spans) or count > RECORDS_SKIPPED_MAX:
            raise IllegalArgument(
                argument=f"a count of {count:,}",
                rule=f"1 to {RECORDS_SKIPPED_MAX:,} by hand; dssctl offsets skip passes over more",
            )
        named: dict[str, list[tuple[int, int]]] = {}
        for span in spans:
            stream = _read(by_name, group, span.stream)
            named.setdefault(span.stream, []).append(self._within_log(span, stream))
        ranges = {name: normalised(each) for name, each in named.items()}
        if isinstance(change, RedeliverRecords):
            return [_reopening(by_name[name], each) for name, each in ranges.items()]
        return [_skipping(by_name[name], each) for name, each in ranges.items()]

    def _within_log(self, span: RecordSpan, stream: StreamSurvey) -> tuple[int, int]:
        """The offsets of these records, the end not included.

        Raises:
            OffsetOutOfRange: the log does not have all of them.
        """
        bounds, end = self._log.bounds(stream.view.stream), span.offset + span.count
        if not bounds.start <= span.offset < end <= bounds.end:
            is_end = bounds.start <= span.offset < bounds.end
            raise OffsetOutOfRange(
                offset=end - 1 if is_end else span.offset,
                start=bounds.start,
                end=bounds.end,
                stream=span.stream,
            )
        return span.offset, end

    async def _moving_back(self, undone: OperationRow, survey: GroupSurvey) -> list[_Moving]:
        by_id = {stream.view.stream: stream for stream in survey.streams}
        moving: list[_Moving] = []
        for found in await scan_all(self._store, MadeMoveRow, (undone.number,)):
            made = found.row
            stream = by_id.get(StreamId(made.storage_topic_id, made.partition))
            if stream is None:
                continue  # its topic was removed: nothing of it is left to take back
            last = stream.view.cursor_generation
            if last != undone.number and await self._took_back(last, undone):
                continue  # a cancelled undo had already moved it back
            if last != undone.number and not undone.kind.startswith("records."):
                why = f"operation {last} moved the cursor of {stream.name} after it"
                raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
            before = Progress(made.floor_before, unpacked_ranges(made.ranges_before))
            given = Progress(made.floor_after, unpacked_ranges(made.ranges_after))
            if last != undone.number:
                moving.append(self._taken_back_alone(stream, before, given))
                continue
            moving.append(_Moving(stream, all_of(given), all_of(before), before.floor))
        return moving

    def _taken_back_alone(self, stream: StreamSurvey, before: Progress, given: Progress) -> _Moving:
        """The undo for single records that the log still has; changes of other operations stay."""
        bounds = self._log.bounds(stream.view.stream)
        passed = clipped(without(all_of(given), all_of(before)), bounds.start, bounds.end)
        reopened = without(all_of(before), all_of(given))
        floor = stream.view.progress.floor
        return _Moving(stream, passed, reopened, min((at for at, _ in passed), default=floor))

    async def _took_back(self, number: int, undone: OperationRow) -> bool:
        """Whether an operation undid the other one in any stream."""
        found = await self._store.read(OperationRow, (number,))
        return found is not None and found.row.undoes == undone.number

    # Telling

    async def _told_of_queues(self, group: GroupRow, plan: Plan) -> tuple[str, ...]:
        """Sentences about records that are reopened although they wait in queues."""
        if not (group.max_deliver and plan.reopened):
            return ()
        reopened = {name: ranges for name, _, ranges in plan.reopened}
        streams = [each.stream for each in plan.found if str(each.stream.name) in reopened]
        named = [(each, reopened[str(each.name)]) for each in streams]
        return tuple((await queued_origins(self._log, named)).told(group))

    async def _planned(
        self,
        change: Change,
        kind: str,
        group: GroupRow,
        moving: Sequence[_Moving],
        survey: GroupSurvey,
    ) -> Plan:
        streams: list[StreamPlan] = []
        wanted = TopicFilter.parse(group.filter)
        turn = LoopTurn()
        for each in moving:
            await turn.give_way()
            streams.append(self._stream_plan(each, wanted))
        touched = [each for each in moving if each.changes]
        members = sorted({each.stream.view.client_id for each in touched} - {""})
        return Plan(
            change=change,
            kind=kind,
            subject=subject_of(group),
            revision=group.revision,
            summary=summary_of(kind, group, len(touched), streams),
            group=group,
            streams=tuple(streams),
            effects=(
                *effects_of(group, streams, members),
                *self._closed_by(group, touched, streams, survey),
            )
            if touched
            else (),
            members=tuple(members),
            nothing_to_do=not touched,
            reopened=tuple(reopened for each in touched if (reopened := self._reopened(each))[2]),
            found=moving,
        )

    def _closed_by(
        self,
        group: GroupRow,
        touched: Sequence[_Moving],
        streams: Sequence[StreamPlan],
        survey: GroupSurvey,
    ) -> Iterable[str]:
        """Sentences about streams that wait until finished parents are read again."""
        if not group.ordered:
            return ()
        topic = self._catalogue.get(touched[0].stream.name.topic)
        again = [each.stream for each in touched if _reopens(each, topic)]
        later = descendants(topic, [each.view.stream for each in again])
        return closed_by(
            [str(each.name) for each in again],
            [each for each in survey.streams if each.view.stream in later],
            streams,
        )

    def _stream_plan(self, moving: _Moving, wanted: TopicFilter) -> StreamPlan:
        view = moving.stream.view
        before, after = all_of(view.progress), all_of(moving.after)
        again, again_exact = self._records(view.stream, without(before, after))
        passed, passed_exact = self._records(view.stream, without(after, before))
        whole = selects_whole(wanted, self._catalogue.topic_of(view.stream))
        return StreamPlan(
            stream=str(moving.stream.name),
            floor=view.progress.floor,
            target=moving.target if moving.changes else view.progress.floor,
            again=again,
            passed=passed,
            exact=(again_exact and passed_exact and whole) or again + passed == 0,
            clamped=moving.clamped,
            client_id=view.client_id,
        )

    def _reopened(self, moving: _Moving) -> tuple[str, StreamId, Ranges]:
        view = moving.stream.view
        bounds = self._log.bounds(view.stream)
        reopened = without(all_of(view.progress), all_of(moving.after))
        kept = clipped(reopened, bounds.start, bounds.end)
        return str(moving.stream.name), view.stream, kept

    def _records(self, stream: StreamId, ranges: Ranges) -> tuple[int, bool]:
        bounds = self._log.bounds(stream)
        kept = clipped(ranges, bounds.start, bounds.end)
        counts = [self._log.count(stream, low, high) for low, high in kept]
        return sum(count for count, _ in counts), all(exact for _, exact in counts)


def _reopens(moving: _Moving, topic: Topic) -> bool:
    """Whether the move reopens a sealed stream that was read to the end."""
    stream, part = moving.stream.view.stream, topic.part(moving.stream.name.ordinal)
    if part is None or part.ends is None:
        return False
    end = part.ends[stream.partition]
    return moving.stream.view.progress.floor >= end > moving.after.floor


def _name_of(offsets: StreamOffsets) -> StreamName:
    return StreamName(offsets.topic, offsets.ordinal, offsets.partition)


def kind_of(change: Cursors) -> str:
    """The kind of the operation, as people read it."""
    match change:
        case MoveCursors():
            return f"offsets.{change.direction}"
        case ImportOffsets():
            return "offsets.import"
        case SkipRecords():
            return "records.skip"
        case RedeliverRecords():
            return "records.redeliver"
        case _:
            assert_never(change)


def _check_count(streams: int) -> None:
    if streams > STREAMS_MOVED_MAX:
        raise IllegalArgument(
            argument=f"a change of {streams:,} streams",
            rule=f"at most {STREAMS_MOVED_MAX:,} at a time; name them with --stream",
        )


def _read(by_name: dict[str, StreamSurvey], group: GroupRow, name: str) -> StreamSurvey:
    stream = by_name.get(name)
    if stream is None:
        refuse_internal(name)
        raise StreamNotRead(group=subject_of(group), stream=name)
    return stream


def _moving_to(direction: Direction, stream: StreamSurvey, offset: int, clamped: bool) -> _Moving:
    from_there_on: Ranges = ((offset, OFFSET_MAX),)
    match direction:
        case Direction.REWIND:
            return _Moving(stream, from_there_on, (), offset, clamped)
        case Direction.SKIP:
            return _Moving(stream, (), everything_below(offset), offset, clamped)
        case Direction.SEEK:
            return _Moving(stream, from_there_on, everything_below(offset), offset, clamped)
        case _:
            assert_never(direction)


def _skipping(stream: StreamSurvey, ranges: Ranges) -> _Moving:
    """Skip single records: the floor follows from them."""
    floor = stream.view.progress.with_acked(ranges).floor
    return _Moving(stream, (), ranges, floor)


def _reopening(stream: StreamSurvey, ranges: Ranges) -> _Moving:
    """Reopen single records, as far as they are acknowledged."""
    return _Moving(stream, ranges, (), stream.view.progress.floor)


def _begun(group: GroupRow, moving: Iterable[_Moving], number: int) -> Begun:
    moves = tuple(each.move(number) for each in moving if each.changes)
    writes: list[Write] = [
        Put(
            PendingMoveRow(
                group.group_id,
                *move.stream,
                number=number,
                dropped=packed_ranges(move.dropped),
                added=packed_ranges(move.added),
            )
        )
        for move in moves
    ]
    return Begun(
        writes=writes,
        group=replace(group, cursor_generation=number) if moves else None,
        instruction=MoveCursorsNow(number, moves) if moves else None,
        after={"moves": len(moves)},
    )
