"""Edits of groups: the ack wait, and what becomes of records that are damaged, or fail.

The commit of the operation holds the group's row; sessions hear of it at once and deliver what
their members hold by the new settings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dss_core.changes import Change, EditGroup, Undo
from dss_core.times import text_of_span
from dssd.leaders.declarations import STALL, AskedRetries, check_retries, check_settings
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
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
from dssd.operations.plans import Begun, Plan, subject_of
from dssd.store.port import Store
from dssd.store.rows import GroupRow, OperationRow

_RETRIES = ("max_deliver", "backoff_ms", "queue_records", "queue_bytes")


class GroupEdits(Unstoppable):
    """Edits of groups."""

    def __init__(self, store: Store, groups: Groups, registry: Registry) -> None:
        self._store = store
        self._groups = groups
        self._registry = registry

    async def plan(self, change: EditGroup) -> Plan:
        """What the edit would do.

        Raises:
            GroupNotFound, GroupAmbiguous, IllegalArgument, QueuesAreDeclared: it cannot be done.
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
        """An edit is done when it is committed."""
        return Begun()

    async def _planned(self, change: Change, group: GroupRow, wanted: Fields) -> Plan:
        changed = changed_fields(group, wanted)
        edited = replace(group, **changed)
        check_settings(edited.ack_wait_ms, edited.on_damage)
        check_retries(group, edited)
        survey = await self._registry.survey(group)
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
        changed = changed_fields(plan.group, wanted)
        return Begun(
            group=replace(plan.group, **changed),
            before=present_fields(plan.group, changed),
            after=changed,
        )


def _of_group(change: EditGroup) -> Fields:
    retries = AskedRetries(
        change.max_deliver, change.backoff_ms, change.queue_records, change.queue_bytes
    )
    fields = {"ack_wait_ms": change.ack_wait_ms, "on_damage": change.on_damage}
    return asked({**fields, **dict.fromkeys(_RETRIES), **retries.columns()})


def _effects_on_members(group: GroupRow, edited: GroupRow, members: Sequence[str]) -> Sequence[str]:
    told: list[str] = []
    if edited.ack_wait_ms != group.ack_wait_ms:
        told.append(
            f"The ack wait of {text_of_span(edited.ack_wait_ms)} counts for what is handed out too."
        )
        if edited.ack_wait_ms < group.ack_wait_ms and members:
            told.append("What members have had for longer than that comes again at once, marked.")
    if edited.on_damage != group.on_damage:
        stalls = edited.on_damage == STALL
        told.append(
            "A stream with damaged records stalls before them."
            if stalls
            else "Streams that stall at damage go on behind it, told before by records.passed."
        )
    return [*told, *_effects_on_retries(group, edited)]


def _effects_on_retries(group: GroupRow, edited: GroupRow) -> Iterator[str]:
    if edited.max_deliver < group.max_deliver:
        yield f"What failed {edited.max_deliver:,} times or more is dead once it fails again."
    if edited.backoff_ms != group.backoff_ms:
        yield "What waits comes when it was due; the back-off counts for what fails from now on."
    if edited.queue_records < group.queue_records or edited.queue_bytes < group.queue_bytes:
        yield "Queues that hold more than that take nothing until they hold less."
