"""``spark.read.format("dss")``: a range of a topic as a DataFrame.

Spark plans in a Python process of its own, and reads in others; what they share is pickled. So a
reader has its options and what filters said, and opens a connection where it needs one.

Invariant: `DssReader` takes no filters, because Spark refuses a reader that could while its
configuration has that turned off; `register_in` takes the class that fits.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)

from dss_client import connect
from dss_spark.error_notes import noted
from dss_spark.source.columns import spark_schema
from dss_spark.source.conditions import Conditions, conditions_of
from dss_spark.source.options import SourceOptions
from dss_spark.source.planning import planned
from dss_spark.source.slices import Slice, sliced

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

PUSHES = "spark.sql.python.filterPushdown.enabled"


class SlicePartition(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: Slice) -> None:
        super().__init__(ranges)
        self.ranges = ranges


def records_in(
    partition: InputPartition, options: SourceOptions, subject: str | None
) -> "Iterator[pa.RecordBatch]":
    """What a task gives."""
    # Where there is no slice, Spark makes a partition of its own that is nothing.
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
        """A slice a task.

        Raises:
            DssError: there is no such range.
        """
        with noted():
            return [SlicePartition(each) for each in asyncio.run(self._slices())]

    async def _slices(self) -> list[Slice]:
        async with connect(endpoint=self.options.endpoint) as client:
            ranges = await planned(client, self.options, self.wanted)
        return sliced(ranges, self.options.slice_bytes)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The records of a slice."""
        return records_in(partition, self.options, self.options.subject or self.wanted.subject)


class PushingDssReader(DssReader):
    """Reads what options and filters say."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Note what saves reading. All filters stay Spark's to apply, too."""
        self.wanted = conditions_of(filters)
        return filters


class DssSource(DataSource):
    """The data source, without filters."""

    reads_with = DssReader

    @classmethod
    def name(cls) -> str:
        """What `format` is told."""
        return "dss"

    def schema(self) -> str:
        """The columns that are asked for.

        Raises:
            DssError: the options break a rule.
        """
        return spark_schema(self._said().columns)

    def reader(self, schema: "StructType") -> DataSourceReader:
        """Reads a range."""
        with noted():
            return self.reads_with(self._said().for_batch())

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        """Reads on and on."""
        from dss_spark.source.stream import DssStreamReader

        with noted():
            return DssStreamReader(self._said().for_stream())

    def _said(self) -> SourceOptions:
        with noted():
            return SourceOptions.of(self.options)


class PushingDssSource(DssSource):
    """The data source, which takes filters."""

    reads_with = PushingDssReader


def register_in(spark: "SparkSession") -> None:
    """Make it known to a session."""
    pushes = spark.conf.get(PUSHES, "false") == "true"
    spark.dataSource.register(PushingDssSource if pushes else DssSource)
