"""Decoded records as an Arrow table.

Columns, as people want them: offset uint64, subject utf8, key binary, payload binary, headers
map<utf8, binary>, timestamp_us int64, append_time_us int64. Invariant: payloads, keys and headers
that came in the arrow layout are not copied. Importing this module imports pyarrow.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dss_core import arrow_layout
from dss_core.frame import Summary
from dss_core.progress import Range
from dss_core.rows_layout import RowColumns

_VALUES = ("subject", "key", "payload", "headers", "timestamp_us")
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.uint64()),
        pa.field("subject", pa.utf8()),
        pa.field("key", pa.binary()),
        pa.field("payload", pa.binary()),
        pa.field("headers", arrow_layout.HEADERS_TYPE),
        pa.field("timestamp_us", pa.int64()),
        pa.field("append_time_us", pa.int64()),
    ]
)
KEY_HASH = pa.field("key_hash", pa.uint64())
"""A further column for who routes records."""

_VALUES_SCHEMA = pa.schema([SCHEMA.field(name) for name in _VALUES])


def values_of_rows(columns: RowColumns) -> pa.RecordBatch:
    """The values of records in the rows layout."""
    arrays = [
        pa.array(columns.subjects, pa.utf8()),
        pa.array(columns.keys, pa.binary()),
        pa.array(columns.payloads, pa.binary()),
        pa.array(columns.headers, arrow_layout.HEADERS_TYPE),
        pa.array(columns.timestamps_us, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_VALUES_SCHEMA)


def values_of_batch(batch: pa.RecordBatch, names: tuple[str, ...]) -> pa.RecordBatch:
    """The values of a frame in the arrow layout, its subjects by name."""
    subject = pa.array(names, pa.utf8()).take(batch.column("subject"))
    arrays = [subject, *(batch.column(name) for name in _VALUES[1:])]
    return pa.RecordBatch.from_arrays(arrays, schema=_VALUES_SCHEMA)


def table_of(
    summaries: Sequence[Summary],
    values: Iterable[pa.RecordBatch],
    key_hashes: Sequence[pa.UInt64Array] | None,
    kept: list[Range] | None,
) -> pa.Table:
    """The table of consecutive frames; ``kept`` are the rows to keep, None for all."""
    table = pa.Table.from_batches(values, schema=_VALUES_SCHEMA)
    offsets = [_offsets(base, records) for *_, records, base, _ in summaries]
    times = [_append_times(time_us, records) for *_, records, _, time_us in summaries]
    table = table.add_column(0, SCHEMA.field("offset"), pa.chunked_array(offsets, pa.uint64()))
    table = table.append_column(SCHEMA.field("append_time_us"), pa.chunked_array(times, pa.int64()))
    if key_hashes is not None:
        table = table.append_column(KEY_HASH, pa.chunked_array(key_hashes, pa.uint64()))
    if kept is None:
        return table
    slices = [table.slice(start, end - start) for start, end in kept]
    return pa.concat_tables(slices) if slices else table.slice(0, 0)


def _offsets(base: int, records: int) -> pa.UInt64Array:
    ones = pa.repeat(pa.scalar(1, pa.uint64()), records - 1)
    return pc.cumulative_sum(pa.concat_arrays([pa.array([base], pa.uint64()), ones]))


def _append_times(time_us: int, records: int) -> pa.Int64Array:
    return pa.repeat(pa.scalar(time_us, pa.int64()), records)
