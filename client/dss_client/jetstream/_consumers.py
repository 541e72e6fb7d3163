"""Streams and consumers of JetStream as topics and groups: what is looked up, made and removed.

A consumer is a shared group whose metadata says of which stream it is and how it was asked for; a
group that somebody else made is a consumer too, one with a deliver group of its own name.
Invariant: values of the facade in, values of the facade out; what DSS cannot do truly is refused
before anything is made.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from dss_client._spans import span_ms
from dss_client._start_point import Start
from dss_client.group_values import Group
from dss_client.groups import Groups
from dss_client.jetstream._subjects import dotted, slashed
from dss_client.jetstream.config import (
    EPHEMERAL_S,
    ConsumerConfig,
    ConsumerInfo,
    DeliverPolicy,
    ReplayPolicy,
    SequenceInfo,
    StreamConfig,
    StreamInfo,
    StreamState,
    from_metadata,
    to_metadata,
    with_defaults,
)
from dss_client.topics import Topic, Topics
from dss_core.errors import (
    ConsumerNotFound,
    GroupDestroyed,
    GroupExists,
    GroupInUse,
    GroupNotFound,
    NotOffered,
)
from dss_core.filters import TopicFilter

if TYPE_CHECKING:
    from dss_client._connection import Connection
    from dss_client.jetstream._pieces import Pieces

UNUSED_S_MIN = 1.0
"""The shortest inactive threshold; a shorter one is raised to it, as the daemon looks once a
second."""


_OF_TOPICS = {
    "storage": "file", "retention": "limits", "discard": "old", "num_replicas": 1,
    "max_consumers": -1, "max_msgs": -1, "max_bytes": -1,
}  # fmt: skip
"""The settings that every topic has, in the terms of JetStream."""


class Standing(NamedTuple):
    """The members of a group."""

    members: tuple[str, ...]
    """The clients, in the order in which they joined."""
    holders: frozenset[str]
    """The clients that hold a stream."""


class Consumers:
    """The consumers of one daemon, for one client."""

    def __init__(self, connection: "Connection", client_id: str) -> None:
        self._topics = Topics(connection)
        self._groups = Groups(connection)
        self._client_id = client_id
        self.used: set[Pieces] = set()
        """The subscriptions of this client to consumers."""

    def _used(self, group: Group) -> "list[Pieces]":
        return [each for each in self.used if each.hold.info.group_id == group.group_id]

    async def find_streams(self, subject: str) -> tuple[str, ...]:
        """The streams that the subject meets."""
        return tuple(each.name for each in await self._meeting(slashed(subject, wildcards=True)))

    async def _meeting(self, filter: str) -> list[Topic]:
        wanted = TopicFilter.parse(filter)
        topics = [each.topic for each in await self._topics.list()]
        return [
            topic
            for topic in topics
            if any(TopicFilter.parse(owned).overlaps(wanted) for owned in topic.patterns)
        ]

    async def look_up(self, stream: str, name: str, *, pull: bool) -> ConsumerInfo | None:
        """The consumer of the name, if there is one."""
        found = await self._named(stream, name)
        return _info(found[0], stream, pull=pull) if found else None

    async def _named(self, stream: str, name: str) -> list[Group]:
        """The groups that stand for the consumer, the oldest first; there is more than one only if
        two were made at the same moment.
        """
        groups = await self._groups.list(filter=f"name={name}")
        found = [each for each in groups if each.name == name and each.kind != "exclusive"]
        if not all(from_metadata(each.metadata) for each in found):
            topic = await self._topics.describe(stream)
            found = [each for each in found if _is_of(each, topic)]
        kept = [each for each in found if (from_metadata(each.metadata) or (stream,))[0] == stream]
        return sorted(kept, key=lambda each: each.group_id)

    async def create(self, stream: str, config: ConsumerConfig) -> ConsumerInfo | None:
        """Make the consumer; None where there is one of its name.

        Raises:
            NotOffered: DSS cannot do what is asked.
            TopicNotFound: there is no such stream.
            IllegalName, IllegalArgument: a value breaks a rule of groups.
        """
        refuse_unoffered(config)
        topic = await self._topics.describe(stream)
        filter = await self._filter(topic, config)
        name = config.name or ""
        if await self._named(stream, name):
            return None
        try:
            made = await self._groups.create(
                f"$share/{name}/{filter}",
                start=start_of(config, topic),
                ack_wait=with_defaults(config).ack_wait or None,
                max_deliver=config.max_deliver if (config.max_deliver or 0) > 0 else None,
                backoff=_rests_of(config),
                metadata=to_metadata(stream, config, self._client_id),
                unused=_unused_s(config),
            )
        except GroupExists:
            return None
        if (await self._named(stream, name))[0].group_id != made.group_id:
            # Two were made with different subjects at once: the first is the consumer.
            await self.discard(_info(made, stream, pull=config.is_pull))
            return None
        return _info(made, stream, pull=config.is_pull)

    async def _filter(self, topic: Topic, config: ConsumerConfig) -> str:
        """The filter of the consumer's group."""
        subject = config.filter_subject or (config.filter_subjects or [""])[0]
        if not subject and len(topic.patterns) > 1:
            raise NotOffered(
                what=f"a consumer of all of {topic.name}",
                why="a group has one filter, and the topic owns several; name a subject",
            )
        filter = slashed(subject, wildcards=True) if subject else topic.patterns[0]
        others = [each.name for each in await self._meeting(filter) if each.name != topic.name]
        if others:
            why = f"a group reads all that its filter meets, {', '.join(others)} too"
            raise NotOffered(what=f"{subject} of the stream {topic.name} alone", why=why)
        return filter

    async def discard(self, info: ConsumerInfo) -> bool:
        """Delete exactly this consumer unless others use it; returns whether it is gone.

        Raises:
            GroupInUse: others use it.
        """
        found = [
            each
            for each in await self._named(info.stream_name, info.name)
            if each.group_id == info.group_id
        ]
        if not found:
            return False
        try:
            return await self._groups.remove(_full_name(found[0]), if_unused=True)
        except (GroupNotFound, GroupDestroyed):
            return False

    async def delete(self, stream: str, name: str) -> bool:
        """Delete the consumer as an operator does, whoever uses it.

        Raises:
            ConsumerNotFound: there is none.
        """
        return await self._groups.remove(_full_name(await self._the_one(stream, name)))

    async def _the_one(self, stream: str, name: str) -> Group:
        found = await self._named(stream, name)
        if not found:
            raise ConsumerNotFound(consumer=name, stream=stream)
        return found[0]

    async def info(self, stream: str, name: str, *, pull: bool = False) -> ConsumerInfo:
        """The consumer with its present state, the acks of this client included.

        Raises:
            ConsumerNotFound: there is none.
        """
        group = await self._the_one(stream, name)
        for each in (used := self._used(group)):
            await each.acks_durable()
        told = await self._groups.describe(_full_name(group))
        sums = await self._groups.verify(_full_name(group))
        floors = [each.progress.floor for each in told.grants]
        floor = SequenceInfo(None, floors[0]) if len(floors) == 1 else None
        out = sum(each.out for each in sums)
        # Records that are ahead of a fetch count as delivered to nobody, as in JetStream.
        ahead = min(sum(each.fresh for each in used if each.hold.info.config.is_pull), out)
        return replace(
            _info(told.group, stream, pull=pull),
            ack_floor=floor,
            num_ack_pending=out - ahead,
            num_pending=sum(each.waiting for each in sums) + ahead,
            num_redelivered=told.group.retrying,
        )

    async def remove_if_unused(self, group: str) -> None:
        """Remove a group that was made by mistake, if nobody else uses it."""
        with suppress(GroupInUse, GroupNotFound, GroupDestroyed):
            await self._groups.remove(group, if_unused=True)

    async def standing(self, group: str) -> Standing:
        """The members of a group, and those of them with streams."""
        told = await self._groups.describe(group)
        members = tuple(each.client_id for each in told.borrowers)
        return Standing(members, frozenset(each.client_id for each in told.grants) - {""})

    async def stream_info(self, name: str) -> StreamInfo:
        """The stream with its state.

        Raises:
            TopicNotFound: there is none.
        """
        topic = await self._topics.describe(name)
        parts = [part for each in topic.storage_topics for part in each.streams]
        filters = [TopicFilter.parse(each) for each in topic.patterns]
        groups = await self._groups.list()
        readers = sum(
            any(TopicFilter.parse(each.filter).overlaps(own) for own in filters) for each in groups
        )
        one = parts[0] if len(parts) == 1 else None
        state = StreamState(
            sum(part.records for part in parts),
            sum(part.bytes for part in parts),
            None if one is None else one.start + 1,
            None if one is None else one.end,
            readers,
        )
        config = StreamConfig(topic.name, [dotted(each) for each in topic.patterns])
        return StreamInfo(config, state, _moment(topic.created_at_ms))

    async def add_stream(
        self, name: str, subjects: list[str], partitions: int, max_age_s: float | None
    ) -> StreamInfo:
        """Make a topic that owns the subjects."""
        patterns = [slashed(each, wildcards=True) for each in subjects]
        kept_ms = span_ms("max_age", max_age_s) if max_age_s else None
        await self._topics.create(
            name, partitions=partitions, patterns=patterns, retention_ms=kept_ms
        )
        return await self.stream_info(name)

    async def topic(self, name: str) -> Topic:
        """The topic that is the stream."""
        return await self._topics.describe(name)


def one_stream_in(topic: Topic) -> str | None:
    """The only stream of a topic; None where it has several."""
    one = len(topic.storage_topics) == 1 and topic.partitions == 1
    return f"{topic.name}/{topic.produce_ordinal}/0" if one else None


def one_stream_of(topic: Topic, what: str) -> str:
    """The only stream of a topic.

    Raises:
        NotOffered: it has several.
    """
    if (one := one_stream_in(topic)) is None:
        why = f"{topic.name} has several streams, which have no order between them"
        raise NotOffered(what=what, why=why)
    return one


def refuse_unoffered(config: ConsumerConfig) -> None:
    """Refuse what no group can do.

    Raises:
        NotOffered: something of it is asked for.
    """
    for what, why in _unoffered(config):
        raise NotOffered(what=what, why=why)


def refuse_unoffered_stream(fields: dict[str, Any]) -> None:
    """Refuse settings of a stream that no topic has.

    Raises:
        NotOffered: a field differs from the setting that every topic has.
    """
    for name, value in fields.items():
        if value is not None and value != _OF_TOPICS.get(name):
            why = "a topic keeps its messages in files of one daemon, until they are old enough"
            raise NotOffered(what=f"{name} {value} of a stream", why=why)


def _unoffered(config: ConsumerConfig) -> Iterator[tuple[str, str]]:
    if config.deliver_policy in (DeliverPolicy.LAST, DeliverPolicy.LAST_PER_SUBJECT):
        yield f"deliver policy {config.deliver_policy}", "the log is not indexed by subject"
    if config.replay_policy == ReplayPolicy.ORIGINAL:
        yield "replay policy original", "records come as fast as they are taken"
    if config.rate_limit_bps:
        yield "rate_limit_bps", "what a client takes is bounded by its credit, not by a rate"
    if config.headers_only:
        yield "headers_only", "records are sent as they lie on the disk"
    if config.sample_freq:
        yield "sample_freq", "nobody publishes advisories of acknowledgements"
    if (config.num_replicas or 1) > 1:
        yield f"num_replicas {config.num_replicas}", "a daemon keeps what it holds on one machine"
    if len(config.filter_subjects or ()) > 1:
        yield "several filter_subjects", "a group has one filter"
    if config.backoff and (config.max_deliver or 0) <= 0:
        yield "backoff without max_deliver", "only a group with a retry queue has one of its own"


def start_of(config: ConsumerConfig, topic: Topic) -> Start:
    """Where a consumer begins.

    Raises:
        NotOffered: it is named by a sequence, and the topic has several.
    """
    match config.deliver_policy:
        case DeliverPolicy.NEW:
            return "now"
        case DeliverPolicy.BY_START_TIME:
            return config.opt_start_time
        case DeliverPolicy.BY_START_SEQUENCE:
            one_stream_of(topic, "a start by sequence")
            return max((config.opt_start_seq or 1) - 1, 0)
        case _:
            return "earliest"


def _rests_of(config: ConsumerConfig) -> list[float]:
    """How long a message waits in the retry queue, after its ack wait.

    JetStream counts its steps from the hand-out, and the first of them is the ack wait.
    """
    steps = config.backoff or []
    return [max(step - steps[0], 0.0) for step in steps]


def _unused_s(config: ConsumerConfig) -> float | None:
    if config.inactive_threshold:
        return max(config.inactive_threshold, UNUSED_S_MIN)
    return None if config.durable_name else EPHEMERAL_S


def _is_of(group: Group, topic: Topic) -> bool:
    """Whether a group is, by its metadata or by what it reads, a consumer of the topic."""
    if (kept := from_metadata(group.metadata)) is not None:
        return kept[0] == topic.name
    reads = TopicFilter.parse(group.filter)
    return any(TopicFilter.parse(owned).overlaps(reads) for owned in topic.patterns)


def _info(group: Group, stream: str, *, pull: bool) -> ConsumerInfo:
    kept = from_metadata(group.metadata)
    config = _native(group, pull=pull) if kept is None else with_defaults(kept[1])
    return ConsumerInfo(
        group.name,
        stream,
        config,
        _moment(group.created_at_ms),
        push_bound=not config.is_pull and group.borrowers > 0,
        group_id=group.group_id,
        filter=group.filter,
    )


def _native(group: Group, *, pull: bool) -> ConsumerConfig:
    """A group that this facade did not make, as a consumer: several may share it, either way."""
    return with_defaults(
        ConsumerConfig(
            name=group.name,
            durable_name=group.name,
            ack_wait=group.ack_wait_ms / 1_000,
            max_deliver=group.max_deliver or None,
            backoff=[(group.ack_wait_ms + rest) / 1_000 for rest in group.backoff_ms] or None,
            filter_subject=dotted(group.filter),
            deliver_group=None if pull else group.name,
            deliver_subject=None if pull else f"dss.{group.name}",
        )
    )


def _full_name(group: Group) -> str:
    return f"{group.name}@{group.filter}"


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1_000, UTC)
