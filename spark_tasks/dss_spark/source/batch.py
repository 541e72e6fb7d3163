"""``spark.read``: a range of a topic as a DataFrame.

Spark plans in a Python process of its own, and reads in others; what they share is pickled. So a
reader keeps its options and the conditions of its filters, and opens a connection where it needs
one.

Invariant: a task reads exactly its planned slice. `DssReader` takes no filters, because Spark
refuses a reader that takes them while filter pushdown is turned off.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceReader,
    Filter,
    InputPartition,
)

from dss_spark.error_notes import noted
from dss_spark.source.conditions import Conditions, conditions_of
from dss_spark.source.options import SourceOptions
from dss_spark.source.planning import planned
from dss_spark.source.slices import Slice, sliced

if TYPE_CHECKING:
    import pyarrow as pa


class SlicePartition(InputPartition):
    """The range of one task."""

    def __init__(self, ranges: Slice) -> None:
        super().__init__(ranges)
        self.ranges = ranges


def records_in(
    partition: InputPartition, options: SourceOptions, subject: str | None
) -> "Iterator[pa.RecordBatch]":
    """The rows of a task."""
    # If there is no slice, Spark makes a partition of its own, which is None.
    if not isinstance(partition, SlicePartition):
        return iter(())
    from dss_spark.source.reading import records_of

    return records_of(partition.ranges, options, subject)


class DssReader(DataSourceReader):
    """Reads what the options say."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.wanted = Conditions()

    def partitions(self) -> Sequence[InputPartition]:
        """A slice for each task.

        Raises:
            DssError: there is no such range.
        """
        with noted():
            return [SlicePartition(each) for each in asyncio.run(self._slices())]

    async def _slices(self) -> list[Slice]:
        async with self.options.client() as client:
            ranges = await planned(client, self.options, self.wanted)
        return sliced(ranges, self.options.slice_bytes)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The records of a slice."""
        return records_in(partition, self.options, self.options.subject or self.wanted.subject)


class PushingDssReader(DssReader):
    """Reads what options and filters say."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Note the filters that save reading. Spark still applies all filters itself."""
        self.wanted = conditions_of(filters)
        return filters
