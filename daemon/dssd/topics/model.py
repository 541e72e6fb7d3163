"""What a topic is, as the daemon holds it in memory.

Invariant: values only, equal to the rows they were read from. It must not know who uses them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dss_core.errors import IllegalArgument
from dss_core.filters import TopicFilter, check_name
from dss_core.ids import StreamId
from dss_core.limits import PARTITIONS_MAX, TOPIC_PATTERNS_MAX
from dss_core.routing import Router
from dssd.store.rows import StorageTopicRow, TopicRow

RETENTION_MS_MAX = 100 * 366 * 24 * 3_600 * 1_000
RETENTION_BYTES_MAX = 1 << 60
"""A century, an exbibyte: to keep more, set no limit."""


DURABILITIES = ("sync", "os")


@dataclass(frozen=True, slots=True)
class StorageTopic:
    """One generation of a topic."""

    storage_topic_id: int
    ordinal: int
    partitions: int
    factor: int
    ends: tuple[int, ...] | None
    """Sealed: the end offset of each partition."""
    begins_us: int = 0
    """When it took over from the one before; 0: it was the first, or has not taken over."""

    @property
    def base(self) -> int:
        """How many blocks of partitions there are under the block router (B)."""
        return self.partitions // self.factor

    @classmethod
    def from_row(cls, row: StorageTopicRow) -> "StorageTopic":
        """The storage topic that a row describes."""
        ends = None if row.ends is None else tuple(int(end) for end in row.ends.split(","))
        number = row.storage_topic_id
        return cls(number, row.ordinal, row.partitions, row.factor, ends, row.begins_us)

    def to_row(self, topic_id: int, starts: Sequence[int]) -> StorageTopicRow:
        """Its row, with the first kept offset of each partition.

        Retention raises these in the row alone, so code that rewrites a row takes them from the
        stored row, under its version. A storage topic that holds nothing yet has zeros.
        """
        assert len(starts) == self.partitions, starts
        return StorageTopicRow(
            topic_id=topic_id,
            ordinal=self.ordinal,
            storage_topic_id=self.storage_topic_id,
            partitions=self.partitions,
            factor=self.factor,
            ends=None if self.ends is None else ",".join(map(str, self.ends)),
            starts=",".join(map(str, starts)),
            begins_us=self.begins_us,
        )

    def streams(self) -> tuple[StreamId, ...]:
        """Its streams, by partition."""
        return tuple(StreamId(self.storage_topic_id, at) for at in range(self.partitions))


@dataclass(frozen=True, slots=True)
class Topic:
    """A named, growable log: its storage topics, and where new records go."""

    topic_id: int
    name: str
    patterns: tuple[TopicFilter, ...]
    """The subjects that it owns; an internal topic owns none."""
    router: Router
    durability: str
    """sync or os."""
    topic_epoch: int
    """The id of the storage topic that takes new records, so no topic ever has an epoch of
    another; 1 from an older version of the daemon."""
    produce_ordinal: int
    storage_topics: tuple[StorageTopic, ...]
    """By ordinal."""
    retention_ms: int | None
    retention_bytes: int | None
    created_at_ms: int
    revision: int = 0
    """Rises with each edit by an operator."""
    level: int = 0
    """Not 0: it is internal, and holds retry queues (1) or dead letters (2)."""
    group_id: int = 0
    """Whose queues an internal one holds."""
    main_topic_id: int = 0
    """Whose records an internal one holds."""

    @property
    def producing(self) -> StorageTopic:
        """The storage topic that takes new records."""
        return self.storage_topics[self.produce_ordinal - self.storage_topics[0].ordinal]

    @property
    def waiting(self) -> tuple[StorageTopic, ...]:
        """The storage topics that have not taken over yet, the next one first."""
        return self.storage_topics[self.produce_ordinal + 1 - self.storage_topics[0].ordinal :]

    def meets(self, wanted: TopicFilter) -> bool:
        """Whether a subject of it may match the filter."""
        return any(pattern.overlaps(wanted) for pattern in self.patterns)

    def covers(self, wanted: TopicFilter) -> bool:
        """Whether whatever matches the filter is a subject of it."""
        return any(pattern.covers(wanted) for pattern in self.patterns)

    def part(self, ordinal: int) -> StorageTopic | None:
        """The storage topic of an ordinal, if there is one: those behind it follow without gap."""
        at = ordinal - self.storage_topics[0].ordinal
        return self.storage_topics[at] if 0 <= at < len(self.storage_topics) else None

    def produced_at(self, topic_epoch: int) -> StorageTopic | None:
        """The storage topic that took new records at an epoch; None where that cannot be told.

        A switch takes the id of the storage topic that takes over as the new epoch.
        """
        first = self.storage_topics[0]
        if self.produce_ordinal == 0:
            return first
        known = {part.storage_topic_id: part for part in self.storage_topics}
        if known.get(self.topic_epoch) is not self.producing:
            return None
        # A topic of an older version of the daemon began at epoch 1, below every id.
        if first.ordinal == 0 and topic_epoch < first.storage_topic_id:
            return first
        return known.get(topic_epoch)

    def streams(self) -> tuple[StreamId, ...]:
        """All its streams, oldest storage topic first."""
        return tuple(stream for part in self.storage_topics for stream in part.streams())

    @classmethod
    def from_rows(cls, row: TopicRow, storage_topics: Sequence[StorageTopicRow]) -> "Topic":
        """The topic that a topic row and its storage topics' rows, by ordinal, describe."""
        return cls(
            topic_id=row.topic_id,
            name=row.name,
            patterns=_patterns(row.patterns),
            router=Router(row.router),
            durability=row.durability,
            topic_epoch=row.topic_epoch,
            produce_ordinal=row.produce_ordinal,
            storage_topics=tuple(StorageTopic.from_row(part) for part in storage_topics),
            retention_ms=row.retention_ms,
            retention_bytes=row.retention_bytes,
            created_at_ms=row.created_at_ms,
            revision=row.revision,
            level=row.level,
            group_id=row.group_id,
            main_topic_id=row.main_topic_id,
        )

    def to_row(self) -> TopicRow:
        """The topic's own row."""
        return TopicRow(
            topic_id=self.topic_id,
            name=self.name,
            patterns="\n".join(pattern.text for pattern in self.patterns),
            router=self.router.value,
            durability=self.durability,
            produce_ordinal=self.produce_ordinal,
            topic_epoch=self.topic_epoch,
            retention_ms=self.retention_ms,
            retention_bytes=self.retention_bytes,
            created_at_ms=self.created_at_ms,
            revision=self.revision,
            level=self.level,
            group_id=self.group_id,
            main_topic_id=self.main_topic_id,
        )

    def edited(self, row: TopicRow) -> "Topic":
        """The topic as an edit of its row leaves it."""
        return replace(
            self,
            durability=row.durability,
            produce_ordinal=row.produce_ordinal,
            topic_epoch=row.topic_epoch,
            retention_ms=row.retention_ms,
            retention_bytes=row.retention_bytes,
            revision=row.revision,
        )


@dataclass(frozen=True, slots=True)
class NewTopic:
    """The request for a new topic."""

    name: str
    partitions: int
    factor: int = 1
    router: Router = Router.BLOCK
    patterns: tuple[str, ...] = ()
    """``NAME/#`` where empty."""
    durability: str = "sync"
    retention_ms: int | None = None
    retention_bytes: int | None = None
    if_not_exists: bool = False

    def check(self) -> None:
        """Refuse a request that no topic can satisfy.

        Raises:
            IllegalName: the name breaks its rule.
            IllegalFilter: a pattern is not a filter.
            IllegalArgument: another value is out of its bounds.
        """
        check_name(self.name)
        _require(1 <= self.partitions <= PARTITIONS_MAX, "partitions", f"1 to {PARTITIONS_MAX:,}")
        _require(
            self.factor >= 1 and self.partitions % self.factor == 0,
            "factor",
            f"it must divide the {self.partitions} partitions",
        )
        check_settings(self.durability, self.retention_ms, self.retention_bytes)
        self.parsed_patterns()

    def built(self, topic_id: int, storage_topic_id: int, created_at_ms: int) -> Topic:
        """The topic, with one storage topic."""
        part = StorageTopic(storage_topic_id, 0, self.partitions, self.factor, ends=None)
        return Topic(
            topic_id=topic_id,
            name=self.name,
            patterns=self.parsed_patterns(),
            router=self.router,
            durability=self.durability,
            # Not 1: a producer of a removed topic must notice that the next of its name is another.
            topic_epoch=storage_topic_id,
            produce_ordinal=0,
            # Not 0: no plan for a topic that was removed fits the next of its name.
            revision=topic_id,
            storage_topics=(part,),
            retention_ms=self.retention_ms,
            retention_bytes=self.retention_bytes,
            created_at_ms=created_at_ms,
        )

    def parsed_patterns(self) -> tuple[TopicFilter, ...]:
        """The subject patterns, each once, in the order given.

        Raises:
            IllegalFilter: one is not a filter.
            IllegalArgument: there are too many.
        """
        texts = dict.fromkeys(self.patterns or (f"{self.name}/#",))
        _require(
            len(texts) <= TOPIC_PATTERNS_MAX, "patterns", f"at most {TOPIC_PATTERNS_MAX} a topic"
        )
        return tuple(TopicFilter.parse(text) for text in texts)


def _patterns(written: str) -> tuple[TopicFilter, ...]:
    """The patterns of a row; it has none where the topic is internal."""
    return tuple(TopicFilter.parse(text) for text in written.split("\n")) if written else ()


def check_settings(durability: str, retention_ms: int | None, retention_bytes: int | None) -> None:
    """Refuse settings that no topic can have.

    Raises:
        IllegalArgument: a value is out of its bounds.
    """
    _require(durability in DURABILITIES, "durability", "sync or os")
    _require_within(retention_ms, RETENTION_MS_MAX, "retention_ms")
    _require_within(retention_bytes, RETENTION_BYTES_MAX, "retention_bytes")


def _require_within(value: int | None, maximum: int, argument: str) -> None:
    _require(value is None or 1 <= value <= maximum, argument, f"1 to {maximum:,}, or left out")


def _require(fits: bool, argument: str, rule: str) -> None:
    if not fits:
        raise IllegalArgument(argument=argument, rule=rule)
