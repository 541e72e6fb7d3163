"""Dead letters that come back, or are given up: `dlq redrive` and `dlq discard`.

A plan names the entries, by their offsets among the dead letters of each stream: what dies later is
none of them. Applying it commits them as rows, like moves of cursors; the leader tells each lane as
soon as nobody holds it. What comes back is brought by whoever holds the lane then, and that is done
when all is back. All lanes take the same time for it, so together they have the rate that was asked
for. In an ordered group whose dead letters block, a redrive takes whole keys: what is named brings
along what waits for it (`whole_keys`). Invariant: a lane of which nothing is chosen is not touched.
Neither can be taken back.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from shlex import quote

from dss_core.answers import StreamPlan
from dss_core.changes import DiscardDeadLetters, LaneRanges, RedriveDeadLetters
from dss_core.counted import counted
from dss_core.errors import (
    IllegalArgument,
    KeysBeyondLook,
    OperationInProgress,
    PartOfKey,
    StreamNotRead,
)
from dss_core.ids import StreamName
from dss_core.lane import DEAD
from dss_core.limits import REDRIVE_RATE, REDRIVE_RATE_MAX
from dss_core.progress import Ranges, clipped, normalised, total
from dss_core.times import text_of_span
from dssd.leaders.groups import Groups
from dssd.leaders.lag import GroupSurvey, StreamSurvey, hindrance_sentence
from dssd.leaders.progress_columns import packed_ranges
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.machines.leader.events import CancelMoves, CursorMove, Instruction
from dssd.machines.leader.events import MoveCursors as MoveCursorsNow
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.queues import BLOCK
from dssd.operations.kinds.clients_named import they
from dssd.operations.kinds.final import Final
from dssd.operations.kinds.whole_keys import WholeKeys, runs_of, whole_keys
from dssd.operations.plans import Begun, Made, Plan, subject_of
from dssd.queues.looking import Choice, EntryLook, Lane, may_hold
from dssd.store.port import Put
from dssd.store.rows import GroupRow, OperationRow, PendingMoveRow

Change = RedriveDeadLetters | DiscardDeadLetters

REDRIVE, DISCARD = "dlq.redrive", "dlq.discard"

CHOICE_RANGES_MAX = 10_000
"""Ranges of dead letters that one operation names: 160 KB in rows, and some hundred in a plan."""

CHOICE_BYTES_MAX = 256 << 20
"""What a plan reads to choose dead letters by error or key: a second or two. The same command does
the rest afterwards."""


@dataclass(slots=True)
class _Budget:
    """What one plan may read."""

    bytes: int = CHOICE_BYTES_MAX

    @property
    def spent(self) -> bool:
        return self.bytes <= 0


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Dead letters of one stream."""

    stream: StreamSurvey
    ranges: Ranges
    keys: int = 0
    """So many whole keys, where they were told apart."""
    along: int = 0
    """Of these, so many come along with their keys."""

    @property
    def count(self) -> int:
        return total(self.ranges)


class DeadLetters(Final):
    """Plans and begins them."""

    def __init__(self, groups: Groups, registry: Registry, log: Log) -> None:
        self._groups = groups
        self._registry = registry
        self._log = log

    async def plan(self, change: Change) -> Plan:
        """Which dead letters it would be.

        Raises:
            GroupNotFound, GroupAmbiguous, IllegalArgument, IllegalName, StreamNotRead: it cannot
                be done.
            OperationInProgress: some of them come back already.
            PartOfKey, KeysBeyondLook: they are a part of a key, or that cannot be told.
            LogUnreadable, FrameCorrupt: a queue cannot be read.
        """
        group = self._groups.find(change.group)
        _check_has_queues(group)
        change = _with_rate(change)
        survey = await self._registry.survey(group)
        streams = {str(each.name): each for each in survey.streams if each.view.queues}
        _check_reads(group, survey, change)
        look = EntryLook(self._log, _Budget())
        is_cut = False
        if change.lanes:
            chosen = _still_dead(look, group, streams, change.lanes)
        elif _takes_whole_keys(group, change):
            chosen, is_cut = await _chosen_keys(look, group, streams, change)
        else:
            chosen = await _chosen(look, group, streams, change)
        is_cut, has_members = is_cut or _is_cut(look, chosen), bool(survey.members)
        chosen, closed = _without_closed(change, chosen)
        _check_none_comes_back(group, chosen)
        if not chosen:
            plan = _nothing_planned(change, group, survey.queued.dead, is_cut=is_cut)
        else:
            plan = _planned(change, group, chosen, has_members=has_members, is_cut=is_cut)
        return replace(plan, effects=(*plan.effects, *_left_out(closed)))

    async def begin(self, plan: Plan, number: int) -> Begun:
        """What each lane is to do, and the instruction to tell it."""
        assert plan.group is not None
        over_ms = _over_ms(plan.change, plan.found)
        moves = tuple(_move(each, number, over_ms) for each in plan.found)
        rows = (_row(plan.group, move) for move in moves)
        return Begun(
            writes=[Put(row) for row in rows],
            group=replace(plan.group, cursor_generation=number) if moves else None,
            instruction=MoveCursorsNow(number, moves) if moves else None,
            after={"moves": len(moves), "records": sum(each.count for each in plan.found)},
        )

    async def resumed(self, row: OperationRow) -> Begun:
        """The leader knows what is pending, and what is not back, when it takes over."""
        return Begun(instruction=MoveCursorsNow(row.number, ()))

    def cancellation(self, row: OperationRow) -> Instruction:
        """Lanes that were not told are not; what is not back stays dead."""
        return CancelMoves(row.number)

    async def made(self, row: OperationRow) -> Made:
        """As `records_made`."""
        return await self.records_made(row)

    async def records_made(self, row: OperationRow) -> Made:
        """How many of the dead letters came back, or were given up."""
        survey = await self._registry.survey(self._groups.get(row.group_id))
        dead = {
            str(each.name): each.view.queues[DEAD - 1].progress
            for each in survey.streams
            if each.view.queues
        }
        done = sum(
            dead[lane["stream"]].acked_in(start, end)
            for lane in json.loads(row.change)["lanes"]
            for start, end in lane["ranges"]
            if lane["stream"] in dead
        )
        became = "came back" if row.kind == REDRIVE else "were given up"
        return Made(done, json.loads(row.after)["records"], f"dead letters {became}")


def _check_has_queues(group: GroupRow) -> None:
    if not group.max_deliver:
        command = f"dssctl groups edit {quote(subject_of(group))} --max-deliver 5"
        rule = f"its records come again for ever, and none is dead, until {command}"
        raise IllegalArgument(argument=f"the group {subject_of(group)}", rule=rule)


def _check_reads(group: GroupRow, survey: GroupSurvey, change: Change) -> None:
    known = {str(each.name) for each in survey.streams}
    if change.stream and str(StreamName.parse(change.stream)) not in known:
        raise StreamNotRead(group=subject_of(group), stream=change.stream)


def _with_rate(change: Change) -> Change:
    if isinstance(change, DiscardDeadLetters):
        return change
    rate = REDRIVE_RATE if change.rate is None else change.rate
    if not 0 < rate <= REDRIVE_RATE_MAX:
        rule = f"1 to {REDRIVE_RATE_MAX:,} records a second, of all streams together"
        raise IllegalArgument(argument=f"rate {rate}", rule=rule)
    return replace(change, rate=rate)


def _over_ms(change: object, chosen: Sequence[_Chosen]) -> int:
    """How long all of them take at the rate; 0: they do not come back."""
    if not isinstance(change, RedriveDeadLetters) or not change.rate:
        return 0
    return -(-sum(each.count for each in chosen) * 1_000 // change.rate)


def _without_closed(
    change: Change, chosen: Sequence[_Chosen]
) -> tuple[list[_Chosen], list[_Chosen]]:
    """What can come back now, and what lies in streams that are closed.

    That would wait until these are open, and keep the operation on the group for as long; what they
    wait for may itself need a redrive, where its queues are full.
    """
    if not isinstance(change, RedriveDeadLetters):
        return [*chosen], []
    closed = [each for each in chosen if each.stream.view.state == StreamState.CLOSED.value]
    return [each for each in chosen if each not in closed], closed


def _left_out(closed: Sequence[_Chosen]) -> Iterator[str]:
    if closed:
        count, first = sum(each.count for each in closed), closed[0].stream
        why = hindrance_sentence(first.view, first.waits_for)
        what = counted(count, "dead letter is", "dead letters are")
        yield (
            f"{what} left out, for they lie in new streams that are not open yet: {first.name} is "
            f"{why}. The same command brings them back then."
        )


def _check_none_comes_back(group: GroupRow, chosen: Sequence[_Chosen]) -> None:
    for each in chosen:
        number = each.stream.view.queues[DEAD - 1].redriving
        if number:
            raise OperationInProgress(subject=subject_of(group), number=number, kind=REDRIVE)


def _is_cut(look: EntryLook, chosen: Sequence[_Chosen]) -> bool:
    return look.budget.spent or sum(len(each.ranges) for each in chosen) >= CHOICE_RANGES_MAX


async def _chosen(
    look: EntryLook, group: GroupRow, streams: dict[str, StreamSurvey], change: Change
) -> list[_Chosen]:
    """What the change says, the oldest of each stream, as far as the bounds go."""
    choice = _choice(change)
    stream = choice.stream
    chosen: list[_Chosen] = []
    room = CHOICE_RANGES_MAX
    for each in streams.values():
        has_room = room > 0 and not look.budget.spent
        if has_room and may_hold(each.name, stream, ordered=group.ordered):
            ranges = (await _ranges(look, group, each, choice))[:room]
            room -= len(ranges)
            chosen += [_Chosen(each, ranges)] if ranges else []
    return chosen


def _choice(change: Change) -> Choice:
    stream = StreamName.parse(change.stream) if change.stream else None
    if change.offset is not None and stream is None:
        raise IllegalArgument(argument="offset", rule="it needs a stream")
    return Choice(change.error, change.key, stream, change.offset)


def _takes_whole_keys(group: GroupRow, change: Change) -> bool:
    """Whether what it names may be a part of a key that must not come alone."""
    blocks = group.ordered and group.on_dead_letter == BLOCK
    is_redrive = isinstance(change, RedriveDeadLetters) and not change.unordered
    # A stream may have a part of a key, of which more lies with streams before it.
    return blocks and is_redrive and (_names_some(change) or bool(change.stream))


def _names_some(change: Change) -> bool:
    """Whether it may leave some of a stream; all of a stream is whole keys."""
    return bool(change.error) or change.key is not None or change.offset is not None


async def _chosen_keys(
    look: EntryLook, group: GroupRow, streams: dict[str, StreamSurvey], change: Change
) -> tuple[list[_Chosen], bool]:
    """The same by whole keys, and whether there is more."""
    choice = _choice(change)
    chosen: list[_Chosen] = []
    is_cut, room = False, CHOICE_RANGES_MAX
    for each in streams.values():
        if not may_hold(each.name, choice.stream, ordered=group.ordered):
            continue
        queue = each.view.queues[DEAD - 1]
        if choice == Choice(stream=each.name):
            # All that lies there is whole keys, whatever streams it was of at first.
            ranges = look.waiting(queue)[:room]
            room -= len(ranges)
            chosen += [_Chosen(each, ranges)] if ranges else []
            continue
        lane = Lane(each.name.topic, DEAD, queue)
        found = await whole_keys(look, lane, choice, room)
        if found.is_beyond and not chosen:
            raise KeysBeyondLook(group=quote(subject_of(group)), stream=each.name)
        if choice.offset is not None and found.along:
            raise _part_of_key(group, choice, found)
        if found.ranges:
            chosen.append(_Chosen(each, found.ranges, found.keys, found.along))
        room -= len(found.ranges)
        is_cut = is_cut or found.is_cut or found.is_beyond
        if is_cut:
            break
    return chosen, is_cut


def _part_of_key(group: GroupRow, choice: Choice, found: WholeKeys) -> PartOfKey:
    return PartOfKey(
        group=quote(subject_of(group)),
        stream=choice.stream,
        offset=choice.offset,
        key=quote(found.first_key.decode(errors="backslashreplace")),
        count=f"{total(found.ranges):,}",
    )


async def _ranges(look: EntryLook, group: GroupRow, stream: StreamSurvey, choice: Choice) -> Ranges:
    queue = stream.view.queues[DEAD - 1]
    # Where the order of keys is kept, a lane may have those of other streams too.
    if choice == Choice() or (not group.ordered and choice == Choice(stream=stream.name)):
        return look.waiting(queue)
    offsets: list[int] = []
    lane = Lane(stream.name.topic, DEAD, queue)
    async with aclosing(look.entries(lane, key=choice.key)) as pieces:
        async for _, found in pieces:
            offsets += [each.queue_offset for each in found if choice.takes(each)]
            if len(offsets) >= CHOICE_RANGES_MAX and len(runs_of(offsets)) >= CHOICE_RANGES_MAX:
                break
    return runs_of(offsets)


def _still_dead(
    look: EntryLook,
    group: GroupRow,
    streams: dict[str, StreamSurvey],
    lanes: Sequence[LaneRanges],
) -> list[_Chosen]:
    """Of what a plan named, that which is dead now."""
    chosen: list[_Chosen] = []
    if sum(len(lane.ranges) for lane in lanes) > CHOICE_RANGES_MAX:
        rule = f"at most {CHOICE_RANGES_MAX:,} ranges at a time"
        raise IllegalArgument(argument="the change", rule=rule)
    for lane in lanes:
        stream = streams.get(lane.stream)
        if stream is None or stream.view.stream.storage_topic_id != lane.storage_topic_id:
            raise StreamNotRead(group=subject_of(group), stream=lane.stream)
        waiting = look.waiting(stream.view.queues[DEAD - 1])
        named = normalised(lane.ranges)
        ranges = normalised(each for span in named for each in clipped(waiting, *span))
        chosen += [_Chosen(stream, ranges)] if ranges else []
    return chosen


def _planned(
    change: Change, group: GroupRow, chosen: list[_Chosen], *, has_members: bool, is_cut: bool
) -> Plan:
    kind = _kind(change)
    count = sum(each.count for each in chosen)
    lanes = tuple(
        LaneRanges(str(each.stream.name), each.stream.view.stream.storage_topic_id, each.ranges)
        for each in chosen
    )
    members = sorted({each.stream.view.client_id for each in chosen} - {""})
    effects = [
        *_effects(change, chosen, members, has_members=has_members, is_cut=is_cut),
        *_effects_on_order(change, group, chosen),
    ]
    verb = kind.partition(".")[2]
    told = f"{counted(count, 'dead letter')} in {counted(len(chosen), 'stream')}"
    return Plan(
        change=replace(change, lanes=lanes),
        kind=kind,
        subject=subject_of(group),
        revision=group.revision,
        summary=f"{verb} {told} of {subject_of(group)}",
        group=group,
        streams=tuple(_stream_plan(kind, each) for each in chosen),
        effects=tuple(effects),
        members=tuple(members),
        not_undoable_because=_FINAL[kind],
        found=chosen,
    )


def _nothing_planned(change: Change, group: GroupRow, dead: int, *, is_cut: bool) -> Plan:
    """Of a choice that takes none of its dead letters."""
    kind = _kind(change)
    name = subject_of(group)
    why = f"none of its {counted(dead, 'dead letter')} is {_named(change)}"
    if not dead:
        why = "it has no dead letters"
    effects = [f"See what is there: dssctl dlq errors {quote(name)}"] if dead else []
    if is_cut:
        effects.insert(0, "They were not looked through to the end.")
    return Plan(
        change=replace(change, lanes=()),
        kind=kind,
        subject=name,
        revision=group.revision,
        summary=f"{kind.partition('.')[2]} nothing of {name}: {why}",
        group=group,
        effects=tuple(effects),
        not_undoable_because=_FINAL[kind],
        nothing_to_do=True,
        found=[],
    )


def _named(change: Change) -> str:
    """What was chosen, for people."""
    if change.lanes:
        return "what a plan named before"
    key = "" if change.key is None else change.key.decode(errors="backslashreplace")
    place = change.stream if change.offset is None else f"{change.stream}@{change.offset}"
    told = {"error": change.error, "key": key, "stream": place}
    if change.offset is not None:
        told["record"] = told.pop("stream")
    named = ", ".join(f"of the {what} {named}" for what, named in told.items() if named)
    return named or "what was named"


def _kind(change: Change) -> str:
    return REDRIVE if isinstance(change, RedriveDeadLetters) else DISCARD


_FINAL = {
    REDRIVE: "who gets the records again may have done what they ask for",
    DISCARD: "what is discarded may leave the disk at once",
}


def _stream_plan(kind: str, each: _Chosen) -> StreamPlan:
    view = each.stream.view
    floor = view.progress.floor
    again, passed = (each.count, 0) if kind == REDRIVE else (0, each.count)
    return StreamPlan(
        str(each.stream.name), floor, floor, again, passed, True, False, view.client_id
    )


def _effects(
    change: Change,
    chosen: Sequence[_Chosen],
    members: Sequence[str],
    *,
    has_members: bool,
    is_cut: bool,
) -> list[str]:
    told = [_what_becomes(change, chosen)]
    if isinstance(change, RedriveDeadLetters) and not has_members:
        told.append("Nobody is a member: they come back once somebody is.")
    if members:
        told.append(
            f"{they(members, 'gives', 'give')} these streams back and "
            f"{'gets' if len(members) == 1 else 'get'} them anew, without being disconnected."
        )
    if is_cut:
        told.append("Not all could be chosen at once: the same command does the rest afterwards.")
    return told


def _what_becomes(change: Change, chosen: Sequence[_Chosen]) -> str:
    count = sum(each.count for each in chosen)
    if isinstance(change, DiscardDeadLetters):
        return f"{counted(count, 'record is', 'records are')} given up, and handed to nobody."
    come = counted(count, "record comes", "records come")
    told = f"{come} again at the first attempt, due at once, at most {change.rate:,} a second"
    over_ms = _over_ms(change, chosen)
    return f"{told}: in {text_of_span(over_ms)} or more." if over_ms >= 1_000 else f"{told}."


def _effects_on_order(change: Change, group: GroupRow, chosen: Sequence[_Chosen]) -> Iterator[str]:
    """Of an ordered group: what is kept of its order."""
    if not group.ordered:
        return
    if group.on_dead_letter != BLOCK:
        if isinstance(change, RedriveDeadLetters):
            yield "They come out of order: later records of their keys went on without them."
        return
    if isinstance(change, DiscardDeadLetters):
        if _names_some(change):
            yield "What else is dead of their keys stays so, and holds these keys up."
    elif change.unordered:
        yield (
            "Of each key what is named comes, up to the first dead letter of it that is not named: "
            "that holds up its key as before, and what is behind it goes back to it."
        )
    else:
        yield from _whole_keys_told(chosen)
        yield "Each key comes back whole, in order, and before what comes to it from now on."


def _whole_keys_told(chosen: Sequence[_Chosen]) -> Iterator[str]:
    """How many keys they are of, where that was looked for."""
    keys = sum(each.keys for each in chosen)
    along = sum(each.along for each in chosen)
    if along:
        come = "comes" if along == 1 else "come"
        whose = "its key" if along == 1 else "their keys"
        yield f"{along:,} of them did not match, and {come} along with {whose}."
    if keys:
        yield f"They are all that is dead of {counted(keys, 'key')}."


def _move(chosen: _Chosen, number: int, over_ms: int) -> CursorMove:
    stream = chosen.stream.view.stream
    if over_ms:
        return CursorMove(stream, number, (), (), redriven=chosen.ranges, redrive_ms=over_ms)
    return CursorMove(stream, number, (), (), discarded=chosen.ranges)


def _row(group: GroupRow, move: CursorMove) -> PendingMoveRow:
    return PendingMoveRow(
        group.group_id,
        *move.stream,
        number=move.number,
        dropped=b"",
        added=b"",
        redriven=packed_ranges(move.redriven),
        discarded=packed_ranges(move.discarded),
        redrive_ms=move.redrive_ms,
    )
