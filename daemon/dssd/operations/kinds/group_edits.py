"""Edits of groups: the ack wait, and the treatment of records that are damaged, or fail.

The commit of the operation holds the group's row; sessions hear of it at once, and deliver held
streams by the new settings. There are exceptions: an edit that gives queues or removes them, and
one that changes whether dead letters of an ordered group hold up their keys. Such an edit first
takes all streams back, and then has a commit of its own; queues are removed only if they are empty.
Before that commit nothing is changed, and after a restart the daemon begins anew; after it, leaders
go by the row.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from dss_core.changes import Change, EditGroup, Undo
from dss_core.counted import counted
from dss_core.errors import DssError, QueuesNotEmpty
from dss_core.times import text_of_span
from dssd.leaders.declarations import (
    STALL,
    AskedRetries,
    check_settings,
    edited_retries,
)
from dssd.leaders.groups import Groups
from dssd.leaders.lag import GroupSurvey
from dssd.leaders.lanes import has_queues
from dssd.leaders.ordering import topic_in_order
from dssd.leaders.queue_changes import QueueChanges
from dssd.leaders.registry import Registry
from dssd.machines.queues import BLOCK, DEAD_LETTERS
from dssd.operations.kinds.clients_named import they
from dssd.operations.kinds.edited_fields import (
    Fields,
    asked,
    changed_fields,
    fields_before,
    present_fields,
    taken_back,
    written,
)
from dssd.operations.kinds.final import Unstoppable
from dssd.operations.plans import Begun, Plan, Worked, subject_of
from dssd.store.port import Precondition, Store
from dssd.store.rows import GroupRow, OperationRow
from dssd.topics.catalogue import Catalogue

_RETRIES = (
    "max_deliver", "backoff_ms", "queue_records", "queue_bytes",
    "ordered", "on_dead_letter", "keyless",
)  # fmt: skip


class GroupEdits(Unstoppable):
    """Edits of groups."""

    def __init__(
        self, store: Store, groups: Groups, registry: Registry, catalogue: Catalogue
    ) -> None:
        self._store = store
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue
        self._queues = QueueChanges(store, groups, catalogue)

    async def plan(self, change: EditGroup) -> Plan:
        """What the edit would do.

        Raises:
            GroupNotFound, GroupAmbiguous, IllegalArgument, QueuesNotEmpty, OrderComesWithQueues,
                OrderNeedsOneTopic: it cannot be done.
        """
        group = self._groups.find(change.group)
        return await self._planned(change, group, _of_group(change))

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The group as the edit leaves it; sessions are told of it when it is committed."""
        assert isinstance(plan.change, EditGroup)
        return self._begun(plan, _of_group(plan.change))

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """What setting the fields back would do.

        Raises:
            NotUndoable: a later edit changed one of them.
        """
        fields = await fields_before(self._store, undone)
        group = self._groups.get(undone.group_id)
        return taken_back(await self._planned(Undo(undone.number), group, fields), undone)

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """As `begin`."""
        return self._begun(plan, await fields_before(self._store, undone))

    async def resumed(self, row: OperationRow) -> Begun:
        """The remaining work of an edit of queues; all other edits are done when committed."""
        group, changed = self._groups.get(row.group_id), json.loads(row.after)
        if not _takes_streams(group, replace(group, **changed)):
            return Begun()
        return Begun(work=partial(self._change_queues, group, changed, json.loads(row.before)))

    async def _planned(self, change: Change, group: GroupRow, wanted: Fields) -> Plan:
        changed = changed_fields(group, edited_retries(group, wanted))
        edited = replace(group, **changed)
        check_settings(edited.ack_wait_ms, edited.on_damage)
        survey = await self._registry.survey(group)
        self._check(group, edited, survey)
        members = sorted({stream.view.client_id for stream in survey.streams} - {""})
        return Plan(
            change=change,
            kind="groups.edit",
            subject=subject_of(group),
            revision=group.revision,
            summary=f"edit {subject_of(group)}: {written(group, changed)}",
            group=group,
            effects=tuple(_effects_on_members(group, edited, members)),
            members=tuple(members) if changed else (),
            nothing_to_do=not changed,
        )

    def _begun(self, plan: Plan, wanted: Fields) -> Begun:
        assert plan.group is not None
        group = plan.group
        changed = changed_fields(group, edited_retries(group, wanted))
        before, edited = present_fields(group, changed), replace(group, **changed)
        if not _takes_streams(group, edited):
            return Begun(group=edited, before=before, after=changed)
        work = partial(self._change_queues, group, changed, before)
        return Begun(group=group, work=work, before=before, after=changed)

    async def _change_queues(self, group: GroupRow, changed: Fields, before: Fields) -> Worked:
        """Commit the edit while nobody holds a stream."""
        edited = replace(group, **changed)

        async def change(still_held: Precondition) -> None:
            async with self._catalogue.unchanging():
                self._check(group, edited, await self._registry.survey(group))
                await self._queues.change(group.group_id, changed, still_held)

        try:
            if not has_queues(group):
                await self._queues.make(group)
            await self._registry.while_held(group.group_id, change)
        except DssError as failed:
            # It changed nothing, so there is nothing to undo.
            return Worked(before, failed.message)
        if not has_queues(edited):
            await self._queues.remove(group.group_id)
        return Worked(changed)

    def _check(self, group: GroupRow, edited: GroupRow, survey: GroupSurvey) -> None:
        """Refuse an edit that does not fit the group's queues or its topic."""
        if has_queues(group) and not has_queues(edited):
            _check_empty(group, survey)
        if edited.ordered and not group.ordered:
            topic_in_order(edited, self._catalogue)


def _changes_queues(group: GroupRow, edited: GroupRow) -> bool:
    return has_queues(group) != has_queues(edited)


def _takes_streams(group: GroupRow, edited: GroupRow) -> bool:
    """Whether holders would have to open their lanes anew."""
    return _changes_queues(group, edited) or edited.on_dead_letter != group.on_dead_letter


def _check_empty(group: GroupRow, survey: GroupSurvey) -> None:
    queued = survey.queued
    if queued.retrying or queued.dead:
        raise QueuesNotEmpty(
            group=subject_of(group), retrying=f"{queued.retrying:,}", dead=f"{queued.dead:,}"
        )


def _of_group(change: EditGroup) -> Fields:
    retries = AskedRetries(
        change.max_deliver,
        change.backoff_ms,
        change.queue_records,
        change.queue_bytes,
        change.ordered,
        change.on_dead_letter,
        change.keyless,
    )
    fields = {"ack_wait_ms": change.ack_wait_ms, "on_damage": change.on_damage}
    return asked({**fields, **dict.fromkeys(_RETRIES), **retries.columns()})


def _effects_on_members(group: GroupRow, edited: GroupRow, members: Sequence[str]) -> Sequence[str]:
    told: list[str] = []
    if edited.ack_wait_ms != group.ack_wait_ms:
        told.append(
            f"The ack wait of {text_of_span(edited.ack_wait_ms)} also counts for records in flight."
        )
        if edited.ack_wait_ms < group.ack_wait_ms and members:
            told.append("Records that members have had for longer come again at once, marked.")
    if edited.on_damage != group.on_damage:
        stalls = edited.on_damage == STALL
        told.append(
            "A stream with damaged records stalls before them."
            if stalls
            else "Streams that stall at damage pass over it, after an event records.passed."
        )
    if _changes_queues(group, edited):
        return [*told, *_stands_still(members), *_effects_of_queues(edited)]
    if _takes_streams(group, edited):
        told += _stands_still(members)
    return [*told, *_effects_on_retries(group, edited), *_effects_on_order(group, edited)]


def _stands_still(members: Sequence[str]) -> Iterator[str]:
    if members:
        gives = "gives its streams back and gets them", "give their streams back and get them"
        yield (
            f"{they(members, *gives)} again, without being disconnected. Nothing is handed out "
            "until the last of them has done so."
        )


def _effects_of_queues(edited: GroupRow) -> Iterator[str]:
    if has_queues(edited):
        yield (
            "Records that wait out a backoff come again at once, and count from attempt 1: after "
            f"{counted(edited.max_deliver, 'failure')} a record is a dead letter."
        )
        yield _ORDERED if edited.ordered else _NOT_ORDERED
    else:
        yield "A failed record waits out its backoff in its stream, and comes again without limit."
        yield "Its queues are removed. If a record fails before that, the edit changes nothing."


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


_NOT_ORDERED = (
    "From then on a failed record comes again after later records of its key. Clients that do not "
    "know queues are refused."
)
_ORDERED = (
    "From then on a failed record holds up its key until it is done; records that were handed out "
    "before keep the old order. Clients that do not know ordered groups are refused."
)


def _effects_on_order(group: GroupRow, edited: GroupRow) -> Iterator[str]:
    if edited.on_dead_letter != group.on_dead_letter:
        if edited.on_dead_letter == BLOCK:
            yield "A dead letter holds up its key; so do those that are dead already."
        else:
            yield (
                "A key goes on behind its dead letters. Records that are dead behind one of them "
                "stay so until they are redriven, and then come out of order."
            )
    if edited.keyless != group.keyless:
        become = "are dead letters at once" if edited.keyless == DEAD_LETTERS else "are delivered"
        yield f"Records without a key {become}, from the next read on."


def _effects_on_retries(group: GroupRow, edited: GroupRow) -> Iterator[str]:
    if edited.max_deliver < group.max_deliver:
        failed = f"failed {_times(edited.max_deliver)} or more"
        yield f"A record that {failed} is dead once it fails again."
    if edited.backoff_ms != group.backoff_ms:
        yield "Records that wait come when they were due; the new backoff is for later failures."
    if edited.queue_records < group.queue_records or edited.queue_bytes < group.queue_bytes:
        yield "Queues that hold more than that take nothing until they hold less."
