"""``spark.readStream``: a topic, batch after batch, with offsets in the checkpoint.

Spark keeps one reader of a query in a Python process of its own, and asks it before each batch;
tasks have copies. State that must outlive that process is in the offsets, which Spark stores before
it reads and gives back after a restart.

Invariant: a batch is determined by its two offsets alone, so a repeated batch reads the same
records. `dss_spark.source.progress` decides; this module only asks and passes on.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from dss_client import Client
from dss_client.topics import Topic
from dss_spark.error_notes import noted
from dss_spark.source.batch import SlicePartition, records_in
from dss_spark.source.options import SourceOptions
from dss_spark.source.patience import asked
from dss_spark.source.planning import begun
from dss_spark.source.progress import (
    KeptStream,
    Offsets,
    Place,
    Progress,
    beginning,
    kept_of,
    next_end,
    offsets_from_json,
    offsets_to_json,
    ranges_between,
    require_same_data,
)
from dss_spark.source.slices import Sized, sliced

if TYPE_CHECKING:
    import pyarrow as pa

OffsetsAsJson = dict[str, Any]


class DssStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads records that were appended since the last batch."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.targets: Progress | None = None
        """The ends of streams at the start of a query that reads only up to there."""

    def initialOffset(self) -> OffsetsAsJson:
        """Where the first batch begins."""
        with noted():
            return offsets_to_json(asyncio.run(asked(self.options, self._begun)))

    def getDefaultReadLimit(self) -> ReadLimit:
        """How much a batch takes."""
        records = self.options.records_per_batch
        return ReadAllAvailable() if records is None else ReadMaxRows(records)

    def latestOffset(self, start: OffsetsAsJson, limit: ReadLimit) -> OffsetsAsJson:
        """Where the next batch ends."""
        with noted():
            begins = offsets_from_json(start)
            topic = self._described(begins)
            end = next_end(
                begins.progress,
                self._kept(topic),
                records_max=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
                targets=self.targets,
                fail_on_loss=self.options.fail_on_loss,
            )
        if end == begins.progress:
            return start
        return offsets_to_json(Offsets(end, topic.incarnation))

    def partitions(self, start: OffsetsAsJson, end: OffsetsAsJson) -> Sequence[InputPartition]:
        """The ranges of the tasks of a batch."""
        with noted():
            begins, ends = offsets_from_json(start), offsets_from_json(end)
            kept = self._kept(self._described(begins, ends))
            fail_on_loss = self.options.fail_on_loss
            ranges = ranges_between(begins.progress, ends.progress, kept, fail_on_loss=fail_on_loss)
        sizes = {each.name: each.bytes / max(1, each.end - each.start) for each in kept}
        sized = [
            Sized(each, int(sizes.get(each.stream, 0) * (each.end - each.start))) for each in ranges
        ]
        return [SlicePartition(each) for each in sliced(sized, self.options.slice_bytes)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The records of a slice."""
        return records_in(partition, self.options, self.options.subject)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read what is there now, and no further."""
        with noted():
            self.targets = _ends(self._kept(self._described()))

    def reportLatestOffset(self) -> OffsetsAsJson:
        """The latest offsets, for the progress that Spark shows."""
        with noted():
            topic = self._described()
            return offsets_to_json(Offsets(_ends(self._kept(topic)), topic.incarnation))

    async def _begun(self, client: Client) -> Offsets:
        places = {
            each.stream: Place(each.storage_topic_id, each.start)
            for each in await begun(client, self.options)
        }
        topic = await client.topics.describe(self.options.topic)
        return Offsets(beginning(places, self._kept(topic)), topic.incarnation)

    def _described(self, *known: Offsets) -> Topic:
        """The present description of the topic; known offsets must be of its data."""

        async def described(client: Client) -> Topic:
            return await client.topics.describe(self.options.topic)

        topic = asyncio.run(asked(self.options, described))
        require_same_data(topic, *known)
        return topic

    def _kept(self, topic: Topic) -> list[KeptStream]:
        return kept_of(topic, self.options.streams)


def _ends(kept: Sequence[KeptStream]) -> Progress:
    return {each.name: Place(each.storage_topic_id, each.end) for each in kept}
