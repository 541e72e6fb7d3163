"""Reads a slice, in a task: batches of the columns that Spark asked for.

Invariant: a slice gives the same records each time that it is read, or an error. This module must
not know Spark.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

import pyarrow as pa

from dss_bulk.source import tables_of
from dss_spark.error_notes import noted
from dss_spark.source.columns import batches_of
from dss_spark.source.options import SourceOptions
from dss_spark.source.patience import Tables, all_tables
from dss_spark.source.read_ahead import ReadAhead
from dss_spark.source.slices import Slice


def records_of(
    slice_: Slice, options: SourceOptions, subject: str | None
) -> Iterator[pa.RecordBatch]:
    """Its records, range after range.

    Raises:
        StreamDamaged: one cannot be read.
        OffsetOutOfRange, StreamNotFound: they are not kept any more.
        DssError: the daemon refuses, or is away for too long.
    """
    with noted(), ReadAhead(_batches(slice_, options, subject)) as batches:
        yield from batches


async def _batches(
    slice_: Slice, options: SourceOptions, subject: str | None
) -> AsyncGenerator[pa.RecordBatch, None]:
    async with options.client() as client:

        def read(left: Slice) -> Tables:
            return tables_of(client, left, subject=subject, in_place=options.in_place)

        async with aclosing(all_tables(slice_, read)) as tables:
            async for stream, table in tables:
                for batch in batches_of(table, stream, options.columns):
                    yield batch
