"""Audits on Spark: tasks look at ranges, the driver folds what they found.

::

    ranges of a chunk ──► some a task ──examined──► a text a task ──► merged in the order of ranges

Invariant: a task's result follows from its ranges alone, and is no larger than that of a chunk, so
a repeated attempt changes nothing, and records stay where they were read.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from dss_bulk.audit_work import AuditWork, examined_here, rule_of
from dss_bulk.audits.coding import read, text_of
from dss_bulk.audits.partial import Partial, merged
from dss_bulk.work import ChunkDone
from dss_client import Client, connect
from dss_client.job_values import Granted, JobChunk, SourceRange
from dss_spark.error_notes import noted
from dss_spark.source.options import ranges_to_json
from dss_spark.work import OnSpark

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

AUDIT_TEXT_BYTES_MAX = 16 << 20
"""The bytes of a task's result: room for all origins that one range may remember, and more."""


FORMAT = "dss_audit"
SCHEMA_SQL = "number INT, found STRING"
_SCHEMA = pa.schema([("number", pa.int32()), ("found", pa.utf8())])


class AuditOnSpark:
    """Lets tasks examine the ranges of a chunk; everything else is as in one process."""

    def __init__(self, on: OnSpark, client: Client, granted: Granted) -> None:
        self._on = on
        self._endpoint = client.endpoint
        self._job = granted.job
        self._work = AuditWork(client, granted, self._examined)

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Examine its ranges; with the last chunk, report the result of all of them."""
        return await self._work.chunk(chunk, last=last)

    def stop(self) -> None:
        """End all work on the cluster."""
        self._on.stop()

    def discard(self) -> None:
        """Do nothing: nothing is left anywhere."""
        self._work.discard()

    async def _examined(self, ranges: Sequence[SourceRange]) -> Partial:
        return await self._on.run(lambda: self._on_cluster(ranges))

    def _on_cluster(self, ranges: Sequence[SourceRange]) -> Partial:
        job = self._job
        rows = (
            self._on.spark.read.format(FORMAT)
            .option("endpoint", self._endpoint)
            .option("job", job.name)
            .option("params", job.params)
            .option("filter", job.filter)
            .option("tasks", str(self._on.at_once))
            .option("ranges", ranges_to_json(tuple(ranges)))
            .load()
            .collect()
        )
        in_order = sorted(rows, key=lambda row: int(row.number))
        return reduce(merged, (read(row.found) for row in in_order), Partial())


@dataclass(frozen=True, slots=True)
class Share(InputPartition):
    """Ranges that one task looks at."""

    number: int
    ranges: tuple[SourceRange, ...]


def shared(ranges: Sequence[SourceRange], tasks: int) -> list[Share]:
    """Neighbouring ranges for each task, of about as many records each."""
    each = -(-sum(one.end - one.start for one in ranges) // tasks)
    shares: list[list[SourceRange]] = []
    records = each
    for one in ranges:
        if records >= each:
            shares.append([])
            records = 0
        shares[-1].append(one)
        records += one.end - one.start
    return [Share(number, tuple(own)) for number, own in enumerate(shares)]


class AuditSource(DataSource):
    """The source of audit results, as Spark sees it."""

    @classmethod
    def name(cls) -> str:
        """Its name in `read.format`."""
        return FORMAT

    def schema(self) -> str:
        """One partial result for each task."""
        return SCHEMA_SQL

    def reader(self, schema: "StructType") -> DataSourceReader:
        """The reader of one chunk."""
        return _AuditReader(dict(self.options))


class _AuditReader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """A share for each task."""
        ranges = json.loads(self._options["ranges"])
        return shared([SourceRange(**each) for each in ranges], int(self._options["tasks"]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The partial result of a share.

        Raises:
            DssError: the daemon refuses, or the connection was lost.
        """
        assert isinstance(partition, Share)
        with noted():
            found = asyncio.run(self._examined(partition.ranges))
        text = text_of(found, AUDIT_TEXT_BYTES_MAX)
        yield pa.RecordBatch.from_arrays(
            [pa.array([partition.number], pa.int32()), pa.array([text])], schema=_SCHEMA
        )

    async def _examined(self, ranges: Sequence[SourceRange]) -> Partial:
        said = self._options
        rule = rule_of(said["job"], said["params"], said["filter"])
        async with connect(endpoint=said["endpoint"], patient=False) as client:
            return await examined_here(client, rule, ranges)
