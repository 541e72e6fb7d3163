"""Changes entries of retry queues: makes them due at once, passes over them, or makes them dead.

`rq retry-now`, `rq skip` and `rq dead`. A plan names entries of retry queues by their offsets;
applying it commits them as rows, and the next holder of each lane carries them out as it opens the
lane (`machines/delivery/errands`). In an ordered group a follower did not fail, so it is left out
unless the change names the record itself. Invariant: order is kept: followers of a record are sent
once the record is settled, or become dead letters behind it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from shlex import quote

from dss_core.changes import BuryRetries, RetryNow, SkipRetries, Undo
from dss_core.counted import counted
from dss_core.errors import NotUndoable
from dss_core.lane import DEAD, FOLLOWER, RETRY, LaneEntry
from dss_core.limits import REDRIVE_RATE
from dss_core.progress import normalised, total, without
from dssd.leaders.groups import Groups
from dssd.leaders.lag import StreamSurvey
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.machines.leader.events import CancelMoves, CursorMove, Instruction
from dssd.machines.leader.events import MoveCursors as MoveCursorsNow
from dssd.machines.queues import BLOCK, BURY, RETRY_LATER, RETRY_NOW, SKIP
from dssd.operations.kinds.closed_lanes import left_out, without_closed
from dssd.operations.kinds.dead_letter_sentences import stream_plan, told_of_holders
from dssd.operations.kinds.queue_choice import (
    ChoiceBudget,
    Chosen,
    check_has_queues,
    check_reads,
    check_says_which,
    choice_of,
    chosen_of,
    is_cut,
    none_of,
    still_there,
)
from dssd.operations.kinds.queue_moves import begun_moves, errands_done
from dssd.operations.plans import Begun, Made, Plan, subject_of
from dssd.queues.choosing import Takes
from dssd.queues.looking import Choice, EntryLook
from dssd.store.rows import GroupRow, OperationRow

Change = RetryNow | SkipRetries | BuryRetries


@dataclass(frozen=True, slots=True)
class _Deed:
    """One of the three changes."""

    kind: str
    errand: str
    verb: str
    done: str
    """The words for the count of entries that are done."""
    final: str = ""
    """Why it cannot be taken back."""


_NOW = _Deed("rq.retry-now", RETRY_NOW, "bring forward", "records were brought forward")
_SKIP = _Deed(
    "rq.skip",
    SKIP,
    "pass over",
    "records were passed over",
    "records that were passed over may leave the disk; dssctl records redeliver sends one again",
)
_BURY = _Deed("rq.dead", BURY, "give up", "records went to the dead letters")
_DEEDS = {RetryNow: _NOW, SkipRetries: _SKIP, BuryRetries: _BURY}
_BY_KIND = {deed.kind: deed for deed in _DEEDS.values()}


class Retries:
    """Plans and begins them."""

    def __init__(self, groups: Groups, registry: Registry, log: Log) -> None:
        self._groups = groups
        self._registry = registry
        self._log = log

    async def plan(self, change: Change) -> Plan:
        """The entries that it would change.

        Raises:
            GroupNotFound, GroupAmbiguous, IllegalArgument, IllegalName, StreamNotRead,
                NothingChosen: it cannot be done.
            LogUnreadable, FrameCorrupt: a queue cannot be read.
        """
        deed = _DEEDS[type(change)]
        group = self._groups.find(change.group)
        check_has_queues(group)
        if not isinstance(change, RetryNow):
            command = deed.kind.replace(".", " ")
            everything = change.everything
            check_says_which(change, deed.verb, "records that wait", command, everything=everything)
        survey = await self._registry.survey(group)
        streams = {str(each.name): each for each in survey.streams if each.view.queues}
        check_reads(group, survey, change)
        look = EntryLook(self._log, ChoiceBudget())
        if change.lanes:
            chosen = still_there(look, group, streams, change.lanes, RETRY)
        else:
            chosen = await self._chosen(look, group, streams, change)
        closed: list[Chosen] = []
        if deed is not _NOW:
            chosen, closed = without_closed(chosen)
        plan = _planned(deed, change, group, chosen)
        told = [*_effects(deed, group, chosen, plan.members, has_members=bool(survey.members))]
        if is_cut(look, chosen):
            told.append("Not all could be chosen at once: the same command does the rest.")
        if not chosen:
            plan = _nothing(plan, deed, change, survey.queued.retrying)
            told = [*plan.effects]
        told += left_out(closed, "record", "The same command deals with them")
        return replace(plan, effects=tuple(told))

    async def _chosen(
        self,
        look: EntryLook,
        group: GroupRow,
        streams: dict[str, StreamSurvey],
        change: Change,
    ) -> list[Chosen]:
        # A follower has no due time of its own, so it may be brought forward with the others.
        passes_followers = group.ordered and change.offset is None
        failed = _failed if passes_followers and not isinstance(change, RetryNow) else None
        return await chosen_of(look, group, streams, choice_of(change), RETRY, failed)

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The moves of the lanes, and the instruction to the leader."""
        assert plan.group is not None
        errand = _BY_KIND[plan.kind].errand
        return _begun(plan.group, number, errand, plan.found)

    async def resumed(self, row: OperationRow) -> Begun:
        """Nothing to do: the leader reads the pending moves when it takes over."""
        return Begun(instruction=MoveCursorsNow(row.number, ()))

    def cancellation(self, row: OperationRow) -> Instruction:
        """Lanes that were not told yet are not told; entries that are not dealt with wait on."""
        return CancelMoves(row.number)

    async def made(self, row: OperationRow) -> Made:
        """How many are dealt with."""
        survey = await self._registry.survey(self._groups.get(row.group_id))
        deed = _BY_KIND.get(row.kind, _NOW)
        return errands_done(row, survey, deed.done)

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """Entries that were brought forward, but not sent yet, wait again; dead letters come back.

        Raises:
            NotUndoable: there are no such entries.
        """
        group = self._groups.get(undone.group_id)
        survey = await self._registry.survey(group)
        streams = {str(each.name): each for each in survey.streams if each.view.queues}
        if undone.kind == _NOW.kind:
            chosen = _hurried(streams, undone.number)
            told = "wait again until their time"
        elif undone.kind == _BURY.kind:
            look = EntryLook(self._log, ChoiceBudget())
            chosen = await chosen_of(look, group, streams, Choice(), DEAD, _of(undone.number))
            told = "come again at the first attempt, due at once"
        else:
            why = f"dssctl rq ls {quote(subject_of(group))} shows what waits now"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
        if not chosen:
            why = "nothing of it is where it was left"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
        count = counted(sum(each.count for each in chosen), "record")
        plan = _plan(Undo(undone.number), undone.kind, group, chosen)
        effects = (f"{count}: they {told}.", *told_of_holders(plan.members))
        summary = f"take back operation {undone.number}: {undone.summary}"
        final = f"dssctl {undone.kind.replace('.', ' ')} does it once more"
        return replace(plan, summary=summary, effects=effects, not_undoable_because=final)

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """As `begin`."""
        assert plan.group is not None
        if undone.kind == _NOW.kind:
            return _begun(plan.group, number, RETRY_LATER, plan.found)
        count = sum(each.count for each in plan.found)
        over_ms = -(-count * 1_000 // REDRIVE_RATE)
        moves = [
            CursorMove(
                each.stream.view.stream, number, (), (), redriven=each.ranges, redrive_ms=over_ms
            )
            for each in plan.found
        ]
        return begun_moves(plan.group, number, moves, count)


def _begun(group: GroupRow, number: int, errand: str, chosen: Sequence[Chosen]) -> Begun:
    moves = [
        CursorMove(each.stream.view.stream, number, (), (), errand=errand, entries=each.ranges)
        for each in chosen
    ]
    return begun_moves(group, number, moves, sum(each.count for each in chosen))


def _failed(entry: LaneEntry) -> bool:
    return entry.kind != FOLLOWER


def _of(number: int) -> Takes:
    return lambda entry: entry.operation == number


def _hurried(streams: dict[str, StreamSurvey], number: int) -> list[Chosen]:
    """The entries that the operation brought forward, and that still wait."""
    chosen: list[Chosen] = []
    for each in streams.values():
        retry = each.view.queues[RETRY - 1]
        if retry.hurried.operation != number:
            continue
        done = normalised(((0, retry.progress.floor), *retry.progress.ranges))
        ranges = without(retry.hurried.ranges, done)
        chosen += [Chosen(each, ranges)] if total(ranges) else []
    return chosen


def _plan(change: Change | Undo, kind: str, group: GroupRow, chosen: Sequence[Chosen]) -> Plan:
    return Plan(
        change=change,
        kind=kind,
        subject=subject_of(group),
        revision=group.revision,
        summary="",
        group=group,
        streams=tuple(stream_plan(kind, each) for each in chosen),
        members=tuple(sorted({each.stream.view.client_id for each in chosen} - {""})),
        found=chosen,
    )


def _planned(deed: _Deed, change: Change, group: GroupRow, chosen: Sequence[Chosen]) -> Plan:
    count = counted(sum(each.count for each in chosen), "record")
    streams = counted(len(chosen), "stream")
    return replace(
        _plan(replace(change, lanes=tuple(each.lane for each in chosen)), deed.kind, group, chosen),
        summary=f"{deed.verb} {count} in {streams} of {subject_of(group)}",
        not_undoable_because=deed.final,
    )


def _nothing(plan: Plan, deed: _Deed, change: Change, waiting: int) -> Plan:
    assert plan.group is not None
    name = subject_of(plan.group)
    why = "nothing waits in its retry queues"
    if waiting:
        why = none_of(f"{counted(waiting, 'record')} that wait", change)
    effects = (f"See what is there: dssctl rq ls {quote(name)}",) if waiting else ()
    summary = f"{deed.verb} nothing of {name}: {why}"
    return replace(plan, summary=summary, effects=effects, nothing_to_do=True)


def _effects(
    deed: _Deed,
    group: GroupRow,
    chosen: Sequence[Chosen],
    members: Sequence[str],
    *,
    has_members: bool,
) -> Iterator[str]:
    count = sum(each.count for each in chosen)
    one = count == 1
    records = counted(count, "record")
    if deed is _NOW:
        yield f"{records} {'is' if one else 'are'} due at once, with the attempts that are left."
    elif deed is _SKIP:
        yield f"{records} {'is' if one else 'are'} passed over, and handed to nobody."
    else:
        become = "is a dead letter" if one else "are dead letters"
        yield f"{records} {become}, without a next attempt."
    yield "A record in flight is changed only if it fails there; acknowledged records stay so."
    if group.ordered:
        yield _order_told(deed, group)
    if not has_members and deed is not _NOW:
        yield "Nobody is a member: it is done once somebody is."
    yield from told_of_holders(members)


def _order_told(deed: _Deed, group: GroupRow) -> str:
    if deed is _NOW:
        return "Each key stays in order: its later records wait until this one is settled."
    if deed is _BURY and group.on_dead_letter == BLOCK:
        return "Later records of their keys go to the dead letters too, in order."
    return "Later records of their keys come next, in order."
