"""Edits of topics: how long records are kept, and when a publish is acknowledged.

The durability may be changed either way while records are produced. A topic that becomes ``os`` has
no ceilings yet, and the writer syncs each frame above its stream's ceiling. When a topic becomes
``sync``, all records acknowledged before are synced before the operation is done; its ceilings
stay, because gaps below them must not be taken for damage.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from dss_core.changes import Change, EditTopic, Undo
from dss_core.counted import counted
from dss_core.errors import NotUndoable, SyncOverdue, TopicNotFound
from dss_core.ids import StreamId
from dss_core.progress import Progress, Range
from dssd.clock import Clock
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.leaders.retention_losses import unacked
from dssd.leaders.topic_readers import readers_of
from dssd.log.port import Expiring, Log
from dssd.loop_yield import LoopTurn
from dssd.operations.kinds.edited_fields import (
    TOPIC_ID,
    Fields,
    asked,
    changed_fields,
    fields_before,
    present_fields,
    taken_back,
    written,
)
from dssd.operations.kinds.final import Unstoppable
from dssd.operations.kinds.full_disk import FULL_DISK_WAIT_MS_MAX, with_room
from dssd.operations.limits import GROUPS_NAMED_MAX
from dssd.operations.plans import Begun, Plan, subject_of
from dssd.store.port import Put, Store, VersionIs
from dssd.store.rows import OperationRow, TopicRow
from dssd.topics import model
from dssd.topics.catalogue import Catalogue, Topic
from dssd.topics.retention import Expires, shares


class EditedLog(Log, Expires, Protocol):
    """What edits ask of the log."""

    async def sync(self, storage_topic_id: int) -> None:
        """Return once all that was appended before is durable."""


class TopicEdits(Unstoppable):
    """Edits of topics."""

    def __init__(
        self,
        store: Store,
        groups: Groups,
        registry: Registry,
        catalogue: Catalogue,
        log: EditedLog,
        clock: Clock,
    ) -> None:
        self._store = store
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue
        self._log = log
        self._clock = clock

    async def plan(self, change: EditTopic) -> Plan:
        """What the edit would do.

        Raises:
            TopicNotFound, IllegalArgument: it cannot be done.
        """
        return await self._planned(change, self._catalogue.get(change.topic), _of_topic(change))

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The row as the edit leaves it, and the syncs that it needs."""
        assert isinstance(plan.change, EditTopic)
        return await self._begun(self._catalogue.get(plan.subject), _of_topic(plan.change))

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """What setting the fields back would do. What retention took does not come back.

        Raises:
            NotUndoable: a later edit changed one of them, or the topic is gone.
        """
        fields = await fields_before(self._store, undone)
        try:
            topic = self._edited(undone)
        except TopicNotFound:
            why = "its topic was removed"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why) from None
        return taken_back(await self._planned(Undo(undone.number), topic, fields), undone)

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """As `begin`."""
        fields = await fields_before(self._store, undone)
        return await self._begun(self._edited(undone), fields)

    async def resumed(self, row: OperationRow) -> Begun:
        """The syncs may not have been made."""
        return Begun(work=partial(self._sync_edited, row))

    def _edited(self, row: OperationRow) -> Topic:
        """The topic that an operation edited.

        Raises:
            TopicNotFound: it was removed.
        """
        topic = self._catalogue.get(row.subject)
        # The row of an edit that had nothing to do names no topic.
        if topic.topic_id != json.loads(row.before).get(TOPIC_ID, topic.topic_id):
            raise TopicNotFound(topic=row.subject)
        return topic

    async def _planned(self, change: Change, topic: Topic, wanted: Fields) -> Plan:
        changed = changed_fields(topic, wanted)
        edited = replace(topic, **changed)
        model.check_settings(edited.durability, edited.retention_ms, edited.retention_bytes)
        effects: list[str] = []
        if changed.keys() & {"retention_ms", "retention_bytes"}:
            effects += await self._effects_of_retention(edited)
        if "durability" in changed:
            effects.append(_EFFECTS_OF_DURABILITY[edited.durability])
        return Plan(
            change=change,
            kind="topics.edit",
            subject=topic.name,
            revision=topic.revision,
            summary=f"edit {topic.name}: {written(topic, changed)}",
            effects=tuple(effects),
            nothing_to_do=not changed,
        )

    async def _begun(self, topic: Topic, wanted: Fields) -> Begun:
        key = (topic.topic_id,)
        found = await self._store.read(TopicRow, key)
        if found is None:
            raise TopicNotFound(topic=topic.name)
        changed = changed_fields(topic, wanted)
        row = replace(found.row, **changed, revision=topic.revision + 1)
        becomes_durable = changed.get("durability") == "sync"
        return Begun(
            writes=[Put(row)],
            preconditions=[VersionIs(TopicRow, key, found.version)],
            committed=partial(self._catalogue.note_edited, row),
            work=partial(self._sync, topic) if becomes_durable else None,
            before={TOPIC_ID: topic.topic_id, **present_fields(topic, changed)},
            after={TOPIC_ID: topic.topic_id, **changed},
        )

    async def _sync_edited(self, row: OperationRow) -> None:
        await self._sync(self._edited(row))

    async def _sync(self, topic: Topic) -> None:
        """Make all records durable that are acknowledged already; waits for room on a full disk.

        Raises:
            SyncOverdue: it stayed full.
            StreamNotFound: the topic was removed.
        """

        async def sync_all() -> None:
            for part in topic.storage_topics:
                await self._log.sync(part.storage_topic_id)

        def overdue(waited_s: int) -> SyncOverdue:
            return SyncOverdue(topic=topic.name, waited_s=waited_s)

        await with_room(sync_all, self._clock, overdue)

    async def _effects_of_retention(self, edited: Topic) -> list[str]:
        shared = shares(edited, edited.retention_bytes, self._log.kept_bytes)
        parts = [await self._expiring(edited, *share) for share in shared if _is_limited(edited)]
        going = {stream: range_ for part in parts for stream, range_ in part.ranges.items()}
        records = 0
        turn = LoopTurn()
        for stream, (start, end) in going.items():
            await turn.give_way()
            records += self._log.count(stream, start, end)[0]
        held = _held_sentences(sum(part.held_bytes for part in parts))
        if not records:
            return ["Retention takes nothing of what is there now.", *held]
        size_bytes = sum(part.bytes for part in parts)
        what = f"{counted(records, 'record')}, {counted(size_bytes, 'byte')}"
        gone = f"Retention takes {what}, within a minute"
        told = f"{gone}; once it has, an undo does not bring them back."
        return [told, *held, *_unread_sentences(await self._unread(edited, going))]

    async def _unread(
        self, edited: Topic, going: Mapping[StreamId, Range]
    ) -> list[tuple[int, str]]:
        """How many of these records each group has not acknowledged."""
        ids = {stream.storage_topic_id for stream in going}
        unread: list[tuple[int, str]] = []
        turn = LoopTurn()
        for group in await readers_of(edited, self._groups.groups):
            progress = await self._registry.progress(group, ids)
            lost = 0
            for stream, (start, end) in going.items():
                await turn.give_way()
                lost += unacked(progress.get(stream, Progress(0)), start, end)
            if lost:
                unread.append((lost, subject_of(group)))
        return unread

    async def _expiring(
        self, edited: Topic, part: model.StorageTopic, share_bytes: int | None
    ) -> Expiring:
        return await self._log.expiring(
            part.storage_topic_id, edited.retention_ms, share_bytes, self._clock.wall_us()
        )


_EFFECTS_OF_DURABILITY = {
    "os": "Publishes are acknowledged before they are durable: a loss of power may take those of "
    "the last second. A file of the topic that is missing counts as lost from now on, and not as "
    "damaged.",
    "sync": "Publishes are acknowledged once they are durable. The operation is done when those "
    "that were acknowledged before are durable too; on a full disk it fails after "
    f"{FULL_DISK_WAIT_MS_MAX // 1_000} s.",
}


def _is_limited(topic: Topic) -> bool:
    return topic.retention_ms is not None or topic.retention_bytes is not None


def _of_topic(change: EditTopic) -> Fields:
    return asked(
        {
            "retention_ms": change.retention_ms,
            "retention_bytes": change.retention_bytes,
            "durability": change.durability,
        },
        [name for name in ("retention_ms", "retention_bytes") if getattr(change, f"no_{name}")],
    )


def _held_sentences(held_bytes: int) -> Sequence[str]:
    if not held_bytes:
        return ()
    size = counted(held_bytes, "byte")
    return (f"{size} more stay until the jobs have ended that still read them.",)


def _unread_sentences(unread: list[tuple[int, str]]) -> Sequence[str]:
    unread.sort(reverse=True)
    told = [
        f"{name} has not acknowledged {records:,} of them."
        for records, name in unread[:GROUPS_NAMED_MAX]
    ]
    if len(unread) > GROUPS_NAMED_MAX:
        told.append(f"{len(unread) - GROUPS_NAMED_MAX} more groups have not acknowledged all.")
    return told
