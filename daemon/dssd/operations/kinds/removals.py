"""Removals of groups and topics: the plan says what is lost with them, and there is no undo.

The removal follows the commit of the operation's row; a daemon that ends between the two leaves it
to the next one. Invariant: only the planned group or topic is removed: one that was made anew under
the same name stays.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce

from dss_core.changes import RemoveGroup, RemoveTopic
from dss_core.counted import counted
from dss_core.errors import GroupDestroyed, GroupNotFound, TopicInUse, TopicNotFound
from dss_core.filters import TopicFilter
from dss_core.progress import Progress, complement, total
from dssd.jobs.jobs import Jobs
from dssd.leaders.groups import Groups
from dssd.leaders.lag import NOTHING_QUEUED, Queued
from dssd.leaders.registry import Registry
from dssd.leaders.topic_readers import readers_of
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.operations.kinds.clients_named import they
from dssd.operations.kinds.final import Final
from dssd.operations.limits import GROUPS_NAMED_MAX
from dssd.operations.plans import Begun, Plan, subject_of
from dssd.store.rows import GroupRow, OperationRow
from dssd.topics.catalogue import Catalogue, Topic


class GroupRemovals(Final):
    """Removals of groups."""

    def __init__(self, groups: Groups, registry: Registry, jobs: Jobs) -> None:
        self._groups = groups
        self._registry = registry
        self._jobs = jobs

    async def plan(self, change: RemoveGroup) -> Plan:
        """What removing the group would do.

        Raises:
            GroupNotFound, GroupAmbiguous: it cannot be done.
        """
        group = self._groups.find(change.group)
        survey = await self._registry.survey(group)
        members = sorted({member.client_id for member in survey.members})
        name = subject_of(group)
        lag = f"{'' if survey.lag_exact else 'at most '}{counted(survey.lag, 'record')}"
        streams = counted(len(survey.streams), "stream")
        queued = _queued_text(survey.queued)
        effects = [f"Its progress in {streams} goes, with a lag of {lag}."]
        if queued:
            effects.append(f"The records in its queues go too: {queued}.")
        effects += [
            f"The job {job} reads its dead letters, and cannot go on."
            for job in self._jobs.reading_dead(name)
        ]
        if members:
            told = they(members, "is told", "are told")
            effects.append(f"{told} that it was removed; nothing more is handed out.")
        effects.append("Later subscriptions to it are refused until it is created again.")
        return Plan(
            change=RemoveGroup(name),
            kind="groups.rm",
            subject=name,
            revision=group.revision,
            summary=f"remove {name}: {counted(len(members), 'member')}, a lag of {lag}"
            + (f", {queued}" if queued else ""),
            effects=tuple(effects),
            members=tuple(members),
            not_undoable_because="its progress is deleted",
        )

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The removal, as work."""
        group = self._groups.find(plan.subject)
        return Begun(
            work=partial(self._remove, group.group_id),
            before={"group_id": group.group_id, "plan": list(plan.effects)},
        )

    async def resumed(self, row: OperationRow) -> Begun:
        """It may have been removed already."""
        return Begun(work=partial(self._remove, json.loads(row.before)["group_id"]))

    async def _remove(self, group_id: int) -> None:
        with suppress(GroupNotFound, GroupDestroyed):
            await self._groups.remove(group_id)


@dataclass(frozen=True, slots=True)
class _Reader:
    """A group that reads a topic."""

    name: str
    unread: int
    queued: Queued
    members: frozenset[str]
    """Clients that hold streams of it."""
    loses_all: bool
    """It reads nothing else."""

    @property
    def lost(self) -> int:
        """How many unacknowledged or queued records the group loses."""
        return self.unread + self.queued.retrying + self.queued.dead


class TopicRemovals(Final):
    """Removals of topics."""

    def __init__(
        self, groups: Groups, registry: Registry, catalogue: Catalogue, log: Log, jobs: Jobs
    ) -> None:
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue
        self._log = log
        self._jobs = jobs

    async def plan(self, change: RemoveTopic) -> Plan:
        """What removing the topic would do.

        Raises:
            TopicNotFound: there is none.
            TopicInUse: groups read it, and the change does not allow that.
        """
        topic = self._catalogue.get(change.topic)
        groups = await readers_of(topic, self._groups.groups)
        if groups and not change.force:
            raise TopicInUse(topic=topic.name, groups=", ".join(group.name for group in groups))
        readers = [await self._reader(topic, group) for group in groups]
        readers.sort(key=lambda reader: -reader.lost)
        records, size_bytes = await self._size(topic)
        what = f"{counted(records, 'record')}, {counted(size_bytes, 'byte')}"
        effects = [f"{what} in {counted(len(topic.streams()), 'stream')} are deleted."]
        effects += _told_of(readers)
        effects += [
            f"The job {name} reads or writes it, and cannot go on."
            for name in self._jobs.using(topic.topic_id)
        ]
        return Plan(
            change=change,
            kind="topics.rm",
            subject=topic.name,
            revision=topic.revision,
            summary=f"remove {topic.name}: {what}, read by {counted(len(readers), 'group')}",
            effects=tuple(effects),
            members=tuple(sorted(set().union(*(reader.members for reader in readers)))),
            not_undoable_because="its records are deleted",
            # A running edit may wait for room on a full disk: the removal makes that room.
            beside=frozenset({"topics.edit"}),
        )

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The removal, as work."""
        topic = self._catalogue.get(plan.subject)
        return Begun(
            work=partial(self._remove, topic.name, topic.topic_id),
            before={"topic_id": topic.topic_id, "plan": list(plan.effects)},
        )

    async def resumed(self, row: OperationRow) -> Begun:
        """It may have been removed already."""
        return Begun(work=partial(self._remove, row.subject, json.loads(row.before)["topic_id"]))

    async def _remove(self, name: str, topic_id: int) -> None:
        with suppress(TopicNotFound):
            await self._catalogue.remove(name, topic_id=topic_id)

    async def _size(self, topic: Topic) -> tuple[int, int]:
        records = size_bytes = 0
        turn = LoopTurn()
        for stream in topic.streams():
            await turn.give_way()
            bounds = self._log.bounds(stream)
            records += self._log.count(stream, bounds.start, bounds.end)[0]
            size_bytes += bounds.bytes
        return records, size_bytes

    async def _reader(self, topic: Topic, group: GroupRow) -> _Reader:
        ids = {part.storage_topic_id for part in topic.storage_topics}
        progress = await self._registry.progress(group, ids)
        unread = 0
        turn = LoopTurn()
        for stream in topic.streams():
            await turn.give_way()
            bounds, done = self._log.bounds(stream), progress.get(stream, Progress(0))
            start = max(done.floor, bounds.start)
            unread += total(complement(done.ranges, start, bounds.end)) if start < bounds.end else 0
        survey = await self._registry.survey(group)
        live = self._registry.snapshot(group.group_id)
        streams = set(topic.streams())
        parts = (each.queued for each in survey.streams if each.view.stream in streams)
        queued = reduce(Queued.plus, parts, NOTHING_QUEUED)
        held = [each for each in (live.streams if live else ()) if each.stream in streams]
        clients = frozenset(each.client_id for each in held) - {""}
        read = self._catalogue.meeting(TopicFilter.parse(group.filter))
        loses_all = all(each.topic_id == topic.topic_id for each in read)
        return _Reader(subject_of(group), unread, queued, clients, loses_all)


def _told_of(readers: list[_Reader]) -> list[str]:
    told = [_told_of_one(reader) for reader in readers[:GROUPS_NAMED_MAX]]
    rest = readers[GROUPS_NAMED_MAX:]
    if rest:
        lost = sum(reader.lost for reader in rest)
        reads, loses = ("group reads", "loses") if len(rest) == 1 else ("groups read", "lose")
        told.append(
            f"{len(rest)} more {reads} it"
            + (f", and {loses} {counted(lost, 'record')} more." if lost else ".")
        )
    return told


def _told_of_one(reader: _Reader) -> str:
    lost = []
    if reader.unread:
        lost.append(f"{counted(reader.unread, 'record')} that it has not acknowledged")
    lost += filter(None, [_queued_text(reader.queued)])
    what = f"loses {', '.join(lost)}" if lost else "has acknowledged all of it"
    return f"{reader.name} {what}" + (
        "; it stays, with no stream to read." if reader.loses_all else "."
    )


def _queued_text(queued: Queued) -> str:
    """The unsettled entries in the queues of a group, in words; empty if there are none."""
    told = []
    if queued.retrying:
        waits = "waits" if queued.retrying == 1 else "wait"
        told.append(f"{counted(queued.retrying, 'record')} that {waits} to be tried again")
    if queued.dead:
        told.append(counted(queued.dead, "dead letter"))
    return ", ".join(told)
