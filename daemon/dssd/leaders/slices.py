"""The shards of a group, by its row and the topic that it reads.

If the row names no number of shards, it is the base of the storage topic that takes records: so a
topic that grows by a whole factor keeps its shards. Invariant: all answers change with the row and
the catalogue only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Protocol

from dss_core.errors import ShardCountUnfit
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.routing import Router
from dss_core.shards import Layout
from dssd.leaders.declarations import SHARD
from dssd.leaders.lag import GroupSurvey
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.leader.slicing import Slicing
from dssd.store.rows import GroupRow
from dssd.topics.model import StorageTopic, Topic

FINISHED = StreamState.FINISHED.value


class Selects(Protocol):
    """What this asks of the catalogue."""

    def meeting(self, wanted: TopicFilter) -> tuple[Topic, ...]:
        """The topics that a filter selects."""


def slicing_of(group: GroupRow, catalogue: Selects) -> Slicing | None:
    """How the group's streams are cut into shards; None: they are not."""
    if group.allocation != SHARD:
        return None
    topics = catalogue.meeting(TopicFilter.parse(group.filter))
    partitions = {
        part.storage_topic_id: part.partitions for topic in topics for part in topic.storage_topics
    }
    return Slicing(group.shards or _base(topics), partitions)


def _base(topics: tuple[Topic, ...]) -> int:
    """The base of the one topic that an ordered group reads; 1 if the topic is gone."""
    return topics[0].producing.base if topics else 1


@dataclass(frozen=True, slots=True)
class Span:
    """The storage topics that an ordered group reads, or will read."""

    topic: str
    router: Router
    parts: tuple[StorageTopic, ...]
    """The oldest first; never empty."""

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """How each of them routes."""
        return tuple(Layout(part.partitions, part.factor) for part in self.parts)


def span_of(topic: Topic, survey: GroupSurvey) -> Span:
    """The storage topics from the first one that is not done, or that takes records."""
    done = {each.view.stream for each in survey.streams if each.view.state == FINISHED}
    return _span(topic, lambda part: not done.issuperset(part.streams()))


def grown_span(topic: Topic, added: StorageTopic, survey: GroupSurvey) -> Span:
    """As `span_of`, up to a storage topic that is to be added, or was just added."""
    now = span_of(topic, survey)
    before = tuple(part for part in now.parts if part.ordinal < added.ordinal)
    return Span(now.topic, now.router, (*before, added))


def new_span(topic: Topic, starts: Mapping[StreamId, int]) -> Span:
    """The span of a new group with these starts."""

    def is_read(part: StorageTopic) -> bool:
        ends = zip(part.streams(), part.ends or (), strict=False)
        return any(starts.get(stream, 0) < end for stream, end in ends)

    return _span(topic, is_read)


def _span(topic: Topic, is_read: Callable[[StorageTopic], bool]) -> Span:
    parts = topic.storage_topics
    first = next(at for at, part in enumerate(parts) if part is topic.producing or is_read(part))
    return Span(topic.name, Router(topic.router), parts[first:])


def check_shard_count(group: GroupRow, shards: int, span: Span, *, is_new: bool = False) -> None:
    """Refuse an impossible number of shards; ``is_new``: the group does not exist yet.

    Raises:
        ShardCountUnfit: none, or more than there are partitions.
    """
    most = max(part.partitions for part in span.parts)
    if not 1 <= shards <= most:
        name, near = quote(group.full_name), 1 if shards < 1 else most
        raise ShardCountUnfit(
            group=name,
            shards=shards,
            topic=span.topic,
            most=most,
            near=f"--shards {near}" if is_new else f"dssctl shards set-count {name} {near}",
        )
