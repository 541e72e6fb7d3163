"""``spark.readStream``: a topic, batch after batch, with offsets in the checkpoint.

Spark keeps one reader of a query in a Python process of its own, and asks it before each batch;
tasks have copies. Whatever has to outlive that process is in the offsets, which Spark stores before
it reads and gives back after a restart.

Invariant: what a batch reads follows from its two offsets alone, so a batch that is done again
reads the same records. `dss_spark.source.progress` decides; this module asks and passes on.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from dss_client import Client
from dss_spark.error_notes import noted
from dss_spark.source.batch import SlicePartition, records_in
from dss_spark.source.options import SourceOptions
from dss_spark.source.patience import asked
from dss_spark.source.planning import begun
from dss_spark.source.progress import (
    KeptStream,
    Place,
    Progress,
    kept_of,
    next_end,
    progress_from_json,
    progress_to_json,
    ranges_between,
)
from dss_spark.source.slices import Sized, sliced

if TYPE_CHECKING:
    import pyarrow as pa

Offsets = dict[str, dict[str, int]]


class DssStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what was appended since the batch before."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.targets: Progress | None = None
        """Where everything ends that was there at the start of a query that takes only that."""

    def initialOffset(self) -> Offsets:
        """Where the first batch begins."""
        with noted():
            places = asyncio.run(asked(self.options.endpoint, self._begun))
        return progress_to_json(places)

    def getDefaultReadLimit(self) -> ReadLimit:
        """How much a batch takes."""
        records = self.options.records_per_batch
        return ReadAllAvailable() if records is None else ReadMaxRows(records)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Where the next batch ends."""
        with noted():
            progress = progress_from_json(start)
            end = next_end(
                progress,
                self._kept(),
                records_max=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
                targets=self.targets,
                fail_on_loss=self.options.fail_on_loss,
            )
        return start if end == progress else progress_to_json(end)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """What the tasks of a batch read."""
        with noted():
            kept = self._kept()
            ranges = ranges_between(
                progress_from_json(start),
                progress_from_json(end),
                kept,
                fail_on_loss=self.options.fail_on_loss,
            )
        sizes = {each.name: each.bytes / max(1, each.end - each.start) for each in kept}
        sized = [
            Sized(each, int(sizes.get(each.stream, 0) * (each.end - each.start))) for each in ranges
        ]
        return [SlicePartition(each) for each in sliced(sized, self.options.slice_bytes)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The records of a slice."""
        return records_in(partition, self.options, self.options.subject)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read up to what is there now, and no further."""
        with noted():
            self.targets = _ends(self._kept())

    def reportLatestOffset(self) -> Offsets:
        """What is there, for the progress that Spark shows."""
        with noted():
            return progress_to_json(_ends(self._kept()))

    async def _begun(self, client: Client) -> Progress:
        return {
            each.stream: Place(each.storage_topic_id, each.start)
            for each in await begun(client, self.options)
        }

    def _kept(self) -> list[KeptStream]:
        options = self.options

        async def described(client: Client) -> list[KeptStream]:
            return kept_of(await client.topics.describe(options.topic), options.streams)

        return asyncio.run(asked(options.endpoint, described))


def _ends(kept: Sequence[KeptStream]) -> Progress:
    return {each.name: Place(each.storage_topic_id, each.end) for each in kept}
