"""Growth of topics: another storage topic, a switch to it, or both in one.

    topics.add-storage   its row; undone as long as nothing was switched
    topics.switch        seal, then one commit: ends, produce pointer, epoch
    topics.grow          both; one that failed before its switch is undone as an addition is

The work follows the commit of the operation's row, which names the ordinal to reach; so a
repetition, such as that of the next daemon, changes nothing more. On a full disk the operation
waits for room; between attempts, held appends go on. After its switch a growth sets the numbers of
shards that belong to it (`shards_at_growth`). Invariant: a switch never leaves a topic that takes
no records.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

from dss_core.changes import AddStorageTopic, GroupShards, GrowTopic, SwitchTopic, Undo
from dss_core.counted import counted
from dss_core.errors import (
    DssError,
    GrowthOverdue,
    NotUndoable,
    TopicNotFound,
    TopicWrittenByJobs,
)
from dssd.clock import Clock
from dssd.jobs.jobs import Jobs
from dssd.leaders.groups import Groups
from dssd.leaders.lanes import has_queues
from dssd.leaders.registry import Registry
from dssd.leaders.topic_readers import readers_of
from dssd.operations.kinds.edited_fields import taken_back
from dssd.operations.kinds.final import Unstoppable
from dssd.operations.kinds.full_disk import with_room
from dssd.operations.kinds.shard_counts import SET_COUNT
from dssd.operations.kinds.shards_at_growth import (
    Parts,
    ShardsAtGrowth,
    told_of_shards,
)
from dssd.operations.limits import GROUPS_NAMED_MAX
from dssd.operations.plans import Begun, Plan, Worked, subject_of
from dssd.store.port import Put, Store, VersionIs
from dssd.store.rows import GroupRow, OperationRow, TopicRow
from dssd.topics.catalogue import Catalogue, StorageTopic, Topic
from dssd.topics.growth import moved_share, next_part, refuse_waiting, taking_over


@dataclass(frozen=True, slots=True)
class _Growth:
    """The target of an operation; kept with it."""

    topic_id: int
    ordinal: int
    """The ordinal of the last storage topic that it adds or switches to."""
    partitions: int = 0
    """The number of partitions of the storage topic that it adds; 0: it adds none."""
    switches: bool = False
    drops: bool = False
    """It undoes an addition."""
    shard_counts: tuple[GroupShards, ...] = ()
    """The numbers of shards that it sets after the switch."""


class TopicGrowth(Unstoppable):
    """Additions of storage topics, and switches to them."""

    def __init__(
        self,
        store: Store,
        groups: Groups,
        registry: Registry,
        catalogue: Catalogue,
        jobs: Jobs,
        clock: Clock,
        parts: Parts,
    ) -> None:
        self._store = store
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue
        self._jobs = jobs
        self._clock = clock
        self._shards = ShardsAtGrowth(groups, registry, parts)

    async def plan(self, change: AddStorageTopic | SwitchTopic | GrowTopic) -> Plan:
        """What growing the topic would do.

        Raises:
            TopicNotFound, IllegalArgument, GrowthOfNoUse, TopicFullyGrown, StorageTopicWaits,
                NothingToSwitchTo, TopicWrittenByJobs: it cannot be done.
            GroupNotFound, RevisionMoved, ShardsNeedOrder, ShardCountUnfit: a group cannot be cut
                as the change says.
        """
        topic = self._catalogue.get(change.topic)
        match change:
            case AddStorageTopic():
                added = next_part(topic, change.partitions)
                growth = _Growth(topic.topic_id, added.ordinal, added.partitions)
                summary = f"add {_named(topic, added)} to {topic.name}"
            case SwitchTopic():
                added = taking_over(topic)
                growth = _Growth(topic.topic_id, added.ordinal, switches=True)
                summary = f"switch {topic.name} to {_named(topic, added)}"
            case GrowTopic():
                refuse_waiting(topic)
                added = next_part(topic, change.partitions)
                growth = _Growth(topic.topic_id, added.ordinal, added.partitions, switches=True)
                summary = f"grow {topic.name} to {_named(topic, added)}"
        if growth.switches and (writing := self._jobs.writing(topic.topic_id)):
            raise TopicWrittenByJobs(topic=topic.name, jobs=", ".join(writing))
        readers = await readers_of(topic, self._groups.groups)
        offers = await self._shards.offers(topic, added, readers)
        asked = isinstance(change, GrowTopic) and change.with_shards
        if isinstance(change, GrowTopic):
            change = self._shards.resolved(change, offers)
            growth = replace(growth, shard_counts=change.shard_counts)
        of_shards = told_of_shards(offers, change, asked=asked)
        effects = await self._effects(topic, added, growth, readers, [*of_shards])
        why_not = "what was produced since lies where it was switched to"
        return Plan(
            change=change,
            kind=_KINDS[type(change)],
            subject=topic.name,
            revision=topic.revision,
            summary=summary,
            effects=effects,
            not_undoable_because=why_not if growth.switches else "",
            touches=tuple(each.group for each in growth.shard_counts),
            beside=(SET_COUNT,),
            found=growth,
        )

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The topic's next revision, and the growth behind it."""
        growth = plan.found
        assert isinstance(growth, _Growth)
        topic = self._catalogue.get(plan.subject)
        return await self._begun(topic, growth, number)

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """What taking back an addition would do.

        Raises:
            NotUndoable: it was switched to, another was added behind it, or it or its topic is
                not there.
        """
        topic, growth = self._still_there(undone)
        refusal = ""
        if growth.ordinal > topic.storage_topics[-1].ordinal:
            refusal = "the storage topic is not there"
        elif growth.ordinal <= topic.produce_ordinal:
            refusal = "the topic was switched to it"
        elif growth.ordinal != topic.storage_topics[-1].ordinal:
            refusal = "another storage topic was added behind it"
        if refusal:
            raise NotUndoable(number=undone.number, kind=undone.kind, why=refusal)
        name = _named(topic, topic.storage_topics[-1])
        plan = Plan(
            change=Undo(undone.number),
            kind=undone.kind,
            subject=topic.name,
            revision=topic.revision,
            summary=f"remove {name}, which nothing was written to",
            not_undoable_because="it can be added again",
        )
        return taken_back(plan, undone)

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """As `begin`."""
        topic, growth = self._still_there(undone)
        return await self._begun(topic, replace(growth, drops=True, shard_counts=()), number)

    async def resumed(self, row: OperationRow) -> Begun:
        """Carry out the remaining steps."""
        return Begun(work=partial(self._worked, _of(row), row.subject, row.number))

    async def _begun(self, topic: Topic, growth: _Growth, number: int) -> Begun:
        key = (topic.topic_id,)
        found = await self._store.read(TopicRow, key)
        if found is None:
            raise TopicNotFound(topic=topic.name)
        row = replace(found.row, revision=topic.revision + 1)
        return Begun(
            writes=[Put(row)],
            preconditions=[VersionIs(TopicRow, key, found.version)],
            committed=partial(self._catalogue.note_edited, row),
            work=partial(self._worked, growth, topic.name, number),
            before={"ordinal": topic.produce_ordinal},
            after=asdict(growth),
        )

    async def _worked(self, growth: _Growth, name: str, number: int) -> Worked | None:
        """Grow the topic; after a failure, an addition may be undone."""
        try:
            await self._carry_out(growth, name)
        except DssError as failed:
            is_added = growth.partitions > 0 and growth.switches and not growth.drops
            return Worked({}, failed.message, is_undoable=is_added and self._waits(growth, name))
        if not growth.shard_counts:
            return None
        operations, missed = await self._shards.cut(number, growth.shard_counts)
        failure = f"{name} has grown. {' '.join(missed)}" if missed else ""
        return Worked(asdict(growth) | {_OPERATIONS: operations}, failure)

    def _waits(self, growth: _Growth, name: str) -> bool:
        """Whether what it added is there, and was not switched to."""
        topic = self._catalogue.find(name)
        waiting = topic.waiting if topic and topic.topic_id == growth.topic_id else ()
        return any(part.ordinal == growth.ordinal for part in waiting)

    async def _carry_out(self, growth: _Growth, name: str) -> None:
        """Grow the topic, as far as it has not.

        Raises:
            GrowthOverdue: the disk stayed full.
            TopicNotFound: the topic was removed.
        """

        def overdue(waited_s: int) -> GrowthOverdue:
            return GrowthOverdue(topic=name, waited_s=waited_s)

        for step in self._steps(growth):
            await with_room(step, self._clock, overdue)

    def _steps(self, growth: _Growth) -> Iterator[Callable[[], Awaitable[None]]]:
        catalogue, topic_id, ordinal = self._catalogue, growth.topic_id, growth.ordinal
        if growth.drops:
            yield partial(catalogue.drop_storage_topics, topic_id, [ordinal])
            return
        if growth.partitions:
            yield partial(catalogue.add_storage_topic, topic_id, ordinal, growth.partitions)
        if growth.switches:
            yield partial(catalogue.switch, topic_id, ordinal)

    def _still_there(self, undone: OperationRow) -> tuple[Topic, _Growth]:
        growth = _of(undone)
        topic = self._catalogue.find(undone.subject)
        if topic is None or topic.topic_id != growth.topic_id:
            why = "its topic was removed"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
        return topic, growth

    async def _effects(
        self,
        topic: Topic,
        added: StorageTopic,
        growth: _Growth,
        readers: Sequence[GroupRow],
        of_shards: Sequence[str],
    ) -> tuple[str, ...]:
        old = topic.producing if growth.switches else topic.storage_topics[-1]
        share = round(100 * moved_share(topic, old, added))
        routing = f"{_routing(topic, added)} instead of {_routing(topic, old)}"
        effects = [
            f"Keys go to {routing}: about {share} in 100 have another partition number there."
        ]
        if growth.switches:
            effects.append(
                f"{topic.name}/{old.ordinal} takes no more records. Producers go on by themselves, "
                "after a pause of milliseconds; nothing is lost, doubled or reordered for them."
            )
        else:
            effects.append(
                "Nothing is written there before a switch; until then this can be undone."
            )
        return (*effects, *await self._told_of_readers(topic, added, growth, readers, of_shards))

    async def _told_of_readers(
        self,
        topic: Topic,
        added: StorageTopic,
        growth: _Growth,
        groups: Sequence[GroupRow],
        of_shards: Sequence[str],
    ) -> list[str]:
        if not groups:
            return ["No group reads it.", *of_shards]
        more = counted(added.partitions, "stream") if growth.partitions else "no stream"
        told = [f"Each group that reads it has {more} more: {_listed(groups)}.", *of_shards]
        if growth.switches:
            told += await self._told_of_order(
                topic, added, [each for each in groups if each.ordered]
            )
            told += _told_of_others(topic, added, [each for each in groups if not each.ordered])
        return told

    async def _told_of_order(
        self, topic: Topic, added: StorageTopic, groups: Sequence[GroupRow]
    ) -> list[str]:
        """Which groups wait until old streams are read, and how many of their entries move."""
        old, new = (f"{topic.name}/{part.ordinal}" for part in (topic.producing, added))
        told: list[str] = []
        for group in groups[:GROUPS_NAMED_MAX]:
            survey = await self._registry.survey(group)
            own = [each for each in survey.streams if each.name.ordinal == topic.produce_ordinal]
            behind = sum(bool(each.lag) for each in own)
            queued = sum(each.queued.retrying + each.queued.dead for each in own)
            told.append(
                f"{subject_of(group)} keeps the order of keys: a stream of {new} is closed until "
                f"the streams of {old} that its keys come from are read to the end; {behind} of "
                f"{len(own)} have records left. Then the entries in their queues, "
                f"{counted(queued, 'record')} now, move to queues of {new}."
            )
        return told


_OPERATIONS = "operations"
"""In the kept state of a growth: the operations that set numbers of shards."""

_KINDS = {
    AddStorageTopic: "topics.add-storage",
    SwitchTopic: "topics.switch",
    GrowTopic: "topics.grow",
}


def _told_of_others(topic: Topic, added: StorageTopic, groups: Sequence[GroupRow]) -> list[str]:
    if not groups:
        return []
    told = (
        f"{_listed(groups)}: old and new streams are read side by side, so the order of a key is "
        "kept within a storage topic, and not across the switch."
    )
    return [told, *_told_of_queues(topic, added, groups)]


def _told_of_queues(topic: Topic, added: StorageTopic, groups: Sequence[GroupRow]) -> Iterator[str]:
    """What becomes of failed records of the storage topic that is sealed."""
    queued = [group for group in groups if has_queues(group)]
    if not queued:
        return
    old, new = (f"{topic.name}/{part.ordinal}" for part in (topic.producing, added))
    yield (
        f"Records that failed in {old} stay with it: they come again from its retry queues, which "
        f"are lent until nothing waits there, and its dead letters stay there; {new} has queues of "
        f"its own. This applies to {_listed(queued)}."
    )
    yield f"{old} is kept while dead letters lie there: redrive or discard them as before."


def _listed(groups: Sequence[GroupRow]) -> str:
    named = ", ".join(subject_of(group) for group in groups[:GROUPS_NAMED_MAX])
    rest = len(groups) - GROUPS_NAMED_MAX
    return f"{named} and {rest} more" if rest > 0 else named


def _of(row: OperationRow) -> _Growth:
    after = json.loads(row.after)
    after.pop(_OPERATIONS, None)
    counts = tuple(GroupShards(**each) for each in after.pop("shard_counts", ()))
    return _Growth(**after, shard_counts=counts)


def _named(topic: Topic, part: StorageTopic) -> str:
    return f"{topic.name}/{part.ordinal} of {counted(part.partitions, 'partition')}"


def _routing(topic: Topic, part: StorageTopic) -> str:
    factor = "" if topic.router == "range" else f" (factor {part.factor})"
    return f"{counted(part.partitions, 'partition')}{factor}"
