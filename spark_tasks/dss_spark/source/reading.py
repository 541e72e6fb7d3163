"""Reads a slice, in a task: batches of the columns that Spark asked for.

Dead letters are decoded after the reading, because repeated requests count in offsets of queues.

Invariant: a slice gives the same records each time that it is read, or an error. This module must
not know Spark.
"""

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing

import pyarrow as pa

from dss_bulk.source import tables_of
from dss_core.ids import StreamName
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
            return tables_of(
                client,
                left,
                subject=subject,
                in_place=options.in_place,
                dead_letters=options.dead_letters,
            )

        async with aclosing(all_tables(slice_, read)) as tables:
            async for lane, found in tables:
                for stream, table in _records(lane, found, options):
                    for batch in batches_of(table, stream, options.columns):
                        yield batch


def _records(lane: str, found: pa.Table, options: SourceOptions) -> Iterable[tuple[str, pa.Table]]:
    """The records as they are, or those in entries of queues."""
    if not options.dead_letters:
        return ((lane, found),)
    from dss_bulk.dead_letters import opened

    told = options.dead_letters if options.tells else ""
    return opened(found, StreamName.parse(lane).topic, told=told)
