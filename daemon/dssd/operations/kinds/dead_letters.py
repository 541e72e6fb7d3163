"""Dead letters that come back, or are given up: `dlq redrive` and `dlq discard`.

A plan names the entries (`queue_choice`); entries that die later are not included. Applying it
commits them as rows, like moves of cursors; the leader tells each lane as soon as nobody holds it.
The next holder of a lane brings its entries back, and the operation is done when all are back. All
lanes spread their entries over the same time, so together they keep the rate that was asked for.
With a canary (`canary`), the other entries are committed once the canary is done. In an ordered
group whose dead letters block, a redrive takes whole keys: a named entry brings along the other
dead letters of its key (`whole_keys`). The undo of a redrive sends its entries that still wait back
to the dead letters. Invariant: a lane without a chosen entry is not touched.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from shlex import quote

from dss_core.changes import DiscardDeadLetters, RedriveDeadLetters, Undo
from dss_core.counted import counted
from dss_core.errors import (
    CanaryTooSmall,
    IllegalArgument,
    KeysBeyondLook,
    NotUndoable,
    OperationInProgress,
    PartOfKey,
)
from dss_core.lane import DEAD, RETRY, LaneEntry
from dss_core.limits import REDRIVE_RATE, REDRIVE_RATE_MAX
from dss_core.progress import Ranges, total
from dssd.events.model import Note
from dssd.leaders.groups import Groups
from dssd.leaders.lag import StreamSurvey
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.machines.leader.events import CancelMoves, CursorMove
from dssd.machines.leader.events import MoveCursors as MoveCursorsNow
from dssd.machines.queues import BLOCK, BURY
from dssd.operations.kinds.canary import Canaries, Canary, CanaryLane, kept_canary
from dssd.operations.kinds.closed_lanes import left_out, without_closed
from dssd.operations.kinds.dead_letter_sentences import (
    DISCARD,
    FINAL,
    REDRIVE,
    Change,
    effects_of,
    kind_of,
    over_ms_of,
    stream_plan,
    told_back,
    told_had_left,
)
from dssd.operations.kinds.queue_choice import (
    CHOICE_RANGES_MAX,
    ChoiceBudget,
    Chosen,
    check_has_queues,
    check_reads,
    check_says_which,
    choice_of,
    chosen_of,
    is_cut,
    names_some,
    none_of,
    still_there,
)
from dssd.operations.kinds.queue_moves import (
    begun_moves,
    errands_done,
    given_up,
    had_left,
    redriven,
)
from dssd.operations.kinds.whole_keys import WholeKeys, first_heads, whole_keys
from dssd.operations.plans import (
    Begun,
    Cancellation,
    Made,
    Plan,
    Worked,
    done_or_undone,
    subject_of,
)
from dssd.queues.looking import Choice, EntryLook, Lane
from dssd.store.port import Store
from dssd.store.rows import GroupRow, OperationRow


class DeadLetters:
    """Plans and begins them."""

    def __init__(
        self, store: Store, groups: Groups, registry: Registry, log: Log, note: Note
    ) -> None:
        self._groups = groups
        self._registry = registry
        self._log = log
        self._canaries = Canaries(store, groups, registry, log, note)

    async def plan(self, change: Change) -> Plan:
        """Which dead letters the change would take.

        Raises:
            GroupNotFound, GroupAmbiguous, IllegalArgument, IllegalName, StreamNotRead,
                NothingChosen, CanaryTooSmall: it cannot be done.
            OperationInProgress: some of them come back already.
            PartOfKey, KeysBeyondLook: they are a part of a key, or may be.
            LogUnreadable, FrameCorrupt: a queue cannot be read.
        """
        group = self._groups.find(change.group)
        check_has_queues(group)
        change = _checked(change)
        survey = await self._registry.survey(group)
        streams = {str(each.name): each for each in survey.streams if each.view.queues}
        check_reads(group, survey, change)
        look = EntryLook(self._log, ChoiceBudget())
        more = False
        if change.lanes:
            chosen = still_there(look, group, streams, change.lanes, DEAD)
        elif _takes_whole_keys(group, change):
            chosen, more = await _chosen_keys(look, group, streams, change)
        else:
            chosen = await chosen_of(look, group, streams, choice_of(change), DEAD)
        more, has_members = more or is_cut(look, chosen), bool(survey.members)
        closed: list[Chosen] = []
        if isinstance(change, RedriveDeadLetters):
            chosen, closed = without_closed(chosen)
        _check_none_comes_back(group, chosen)
        if not chosen:
            plan = _nothing_planned(change, group, survey.queued.dead, more=more)
        else:
            plan = _planned(change, group, chosen, has_members=has_members, more=more)
        told = left_out(closed, "dead letter", "The same command brings them back")
        return replace(plan, effects=(*plan.effects, *told))

    async def begin(self, plan: Plan, number: int) -> Begun:
        """What each lane is to do, and the instruction to tell it."""
        assert plan.group is not None
        change, chosen = plan.change, plan.found
        records = sum(each.count for each in chosen)
        if isinstance(change, RedriveDeadLetters) and change.canary and chosen:
            canary = await self._canary(change, plan.group, chosen, number)
            begun = begun_moves(plan.group, number, canary.moves(whole=False), records)
            work = partial(self._canaries.watch, canary)
            return replace(begun, work=work, before=canary.before())
        over_ms = over_ms_of(change, chosen)
        whole_keys = _brings_whole_keys(plan.group, change)
        moves = [
            replace(_move(each, number, over_ms), whole_keys=whole_keys and over_ms > 0)
            for each in chosen
        ]
        return begun_moves(plan.group, number, moves, records)

    async def _canary(
        self, change: RedriveDeadLetters, group: GroupRow, chosen: Sequence[Chosen], number: int
    ) -> Canary:
        look = EntryLook(self._log, ChoiceBudget())
        lanes: list[CanaryLane] = []
        left = change.canary or 0
        for at, each in enumerate(chosen):
            view = each.stream.view
            first = _first(each.ranges, -(-left // (len(chosen) - at)))
            if first and _brings_whole_keys(group, change):
                lane = Lane(each.stream.name.topic, DEAD, view.queues[DEAD - 1])
                heads = await first_heads(look, lane, each.ranges, total(first))
                if heads is None:
                    raise KeysBeyondLook(group=quote(subject_of(group)), stream=each.stream.name)
                first = heads
            left -= total(first)
            ends = tuple(self._log.span(queue.stream)[1] for queue in view.queues)
            name = str(each.stream.name)
            lanes.append(CanaryLane(name, view.stream, first, each.ranges, (ends[0], ends[1])))
        rate = change.rate or REDRIVE_RATE
        whole = _brings_whole_keys(group, change)
        return Canary(number, group.group_id, rate, change.canary_percent, whole, tuple(lanes))

    async def resumed(self, row: OperationRow) -> Begun:
        """At takeover the leader reads which moves are pending, and which records are not back."""
        canary = kept_canary(row)
        work = None if canary is None else partial(self._canaries.watch, canary)
        return Begun(instruction=MoveCursorsNow(row.number, ()), work=work)

    def cancellation(self, row: OperationRow) -> Cancellation:
        """Lanes that were not told are left alone; dead letters that are not back stay dead."""
        canary = kept_canary(row)
        if canary is not None:
            return partial(self._canaries.stop, canary)
        return CancelMoves(row.number)

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """The entries of a redrive that still wait go back.

        Raises:
            NotUndoable: nothing of it waits.
        """
        group = self._groups.get(undone.group_id)
        survey = await self._registry.survey(group)
        streams = {str(each.name): each for each in survey.streams if each.view.queues}
        look = EntryLook(self._log, ChoiceBudget())

        def is_of_it(entry: LaneEntry) -> bool:
            return entry.operation == undone.number

        chosen = await chosen_of(look, group, streams, Choice(), RETRY, is_of_it)
        if not chosen:
            why = "nothing that it brought back waits any more"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
        return Plan(
            change=Undo(undone.number),
            kind=undone.kind,
            subject=subject_of(group),
            revision=group.revision,
            summary=f"take back operation {undone.number}: {undone.summary}",
            group=group,
            streams=tuple(stream_plan("", each) for each in chosen),
            effects=tuple(told_back(group, chosen, survey, more=is_cut(look, chosen))),
            members=tuple(sorted({each.stream.view.client_id for each in chosen} - {""})),
            not_undoable_because=f"dssctl dlq redrive {quote(subject_of(group))} brings them back",
            found=chosen,
        )

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """As `begin`."""
        assert plan.group is not None
        moves = tuple(
            CursorMove(each.stream.view.stream, number, (), (), errand=BURY, entries=each.ranges)
            for each in plan.found
        )
        return begun_moves(plan.group, number, moves, sum(each.count for each in plan.found))

    async def made(self, row: OperationRow) -> Made:
        """As `records_made`."""
        return await self.records_made(row)

    async def records_made(self, row: OperationRow) -> Made:
        """How many of the dead letters came back, or were given up."""
        survey = await self._registry.survey(self._groups.get(row.group_id))
        if row.kind != done_or_undone(row.kind):
            return errands_done(row, survey, "records went back to the dead letters")
        return redriven(row, survey) if row.kind == REDRIVE else given_up(row, survey)

    async def fell_short(self, row: OperationRow) -> Worked | None:
        """The result of a discard when some of its records had left before their lanes were
        told."""
        if row.kind != DISCARD:
            return None
        group = self._groups.get(row.group_id)
        left = had_left(row, await self._registry.survey(group))
        return told_had_left(row, group, left) if left else None


def _checked(change: Change) -> Change:
    """The change as it is carried out.

    Raises:
        NothingChosen: what is to be given up was not said.
        IllegalArgument: a rate that cannot be kept.
        CanaryTooSmall: a canary of which nothing follows.
    """
    if isinstance(change, DiscardDeadLetters):
        check_says_which(
            change, "discard", "dead letters", "dlq discard", everything=change.everything
        )
        return change
    rate = REDRIVE_RATE if change.rate is None else change.rate
    if not 0 < rate <= REDRIVE_RATE_MAX:
        rule = f"1 to {REDRIVE_RATE_MAX:,} records a second, of all streams together"
        raise IllegalArgument(argument=f"rate {rate}", rule=rule)
    if change.canary == 0:
        raise CanaryTooSmall(what="A canary of 0", group=quote(change.group))
    if change.canary_percent >= 100:
        what = f"A canary of which {change.canary_percent} % may fail"
        raise CanaryTooSmall(what=what, group=quote(change.group))
    return replace(change, rate=rate)


def _check_none_comes_back(group: GroupRow, chosen: Sequence[Chosen]) -> None:
    for each in chosen:
        number = each.stream.view.queues[DEAD - 1].redriving
        if number:
            raise OperationInProgress(subject=subject_of(group), number=number, kind=REDRIVE)


def _first(ranges: Ranges, count: int) -> Ranges:
    """The first so many offsets."""
    first: list[tuple[int, int]] = []
    for start, end in ranges:
        if count <= 0:
            break
        first.append((start, min(end, start + count)))
        count -= end - start
    return tuple(first)


def _blocks(group: GroupRow) -> bool:
    return group.ordered and group.on_dead_letter == BLOCK


def _takes_whole_keys(group: GroupRow, change: Change) -> bool:
    """Whether what it names may be a part of a key that must not come alone."""
    # A stream may have only a part of a key, and streams before it the rest.
    return _brings_whole_keys(group, change) and (names_some(change) or bool(change.stream))


def _brings_whole_keys(group: GroupRow, change: object) -> bool:
    """Whether each key comes back with all its dead letters."""
    is_redrive = isinstance(change, RedriveDeadLetters) and not change.unordered
    return _blocks(group) and is_redrive


async def _chosen_keys(
    look: EntryLook, group: GroupRow, streams: dict[str, StreamSurvey], change: Change
) -> tuple[list[Chosen], bool]:
    """The choice extended to whole keys, and whether there is more."""
    choice = choice_of(change)
    chosen: list[Chosen] = []
    is_cut, room = False, CHOICE_RANGES_MAX
    for each in streams.values():
        if not choice.may_be_in(each.name, ordered=group.ordered):
            continue
        queue = each.view.queues[DEAD - 1]
        if choice == Choice(stream=each.name):
            # The whole queue was asked for, so its keys are whole without a search.
            ranges = look.waiting(queue)[:room]
            room -= len(ranges)
            chosen += [Chosen(each, ranges)] if ranges else []
            continue
        lane = Lane(each.name.topic, DEAD, queue)
        found = await whole_keys(look, lane, choice, room)
        if found.is_beyond and not chosen:
            raise KeysBeyondLook(group=quote(subject_of(group)), stream=each.name)
        if choice.offset is not None and found.along:
            raise _part_of_key(group, choice, found)
        if found.ranges:
            chosen.append(Chosen(each, found.ranges, found.keys, found.along))
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


def _planned(
    change: Change, group: GroupRow, chosen: list[Chosen], *, has_members: bool, more: bool
) -> Plan:
    kind = kind_of(change)
    count = sum(each.count for each in chosen)
    lanes = tuple(each.lane for each in chosen)
    members = sorted({each.stream.view.client_id for each in chosen} - {""})
    effects = effects_of(change, group, chosen, members, has_members=has_members, more=more)
    verb = kind.partition(".")[2]
    told = f"{counted(count, 'dead letter')} in {counted(len(chosen), 'stream')}"
    return Plan(
        change=replace(change, lanes=lanes),
        kind=kind,
        subject=subject_of(group),
        revision=group.revision,
        summary=f"{verb} {told} of {subject_of(group)}",
        group=group,
        streams=tuple(stream_plan(kind, each) for each in chosen),
        effects=tuple(effects),
        members=tuple(members),
        not_undoable_because=FINAL.get(kind, ""),
        found=chosen,
    )


def _nothing_planned(change: Change, group: GroupRow, dead: int, *, more: bool) -> Plan:
    """The plan of a choice that takes none of the dead letters."""
    kind = kind_of(change)
    name = subject_of(group)
    why = none_of(counted(dead, "dead letter"), change) if dead else "it has no dead letters"
    effects = [f"See what is there: dssctl dlq errors {quote(name)}"] if dead else []
    if more:
        told = "Not all were looked at. To look at those of one stream: --origin STREAM"
        effects.insert(0, told)
    return Plan(
        change=replace(change, lanes=()),
        kind=kind,
        subject=name,
        revision=group.revision,
        summary=f"{kind.partition('.')[2]} nothing of {name}: {why}",
        group=group,
        effects=tuple(effects),
        not_undoable_because=FINAL.get(kind, ""),
        nothing_to_do=True,
        found=[],
    )


def _move(chosen: Chosen, number: int, over_ms: int) -> CursorMove:
    stream = chosen.stream.view.stream
    if over_ms:
        return CursorMove(stream, number, (), (), redriven=chosen.ranges, redrive_ms=over_ms)
    return CursorMove(stream, number, (), (), discarded=chosen.ranges)
