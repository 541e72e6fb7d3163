"""Decoded records as an Arrow table.

Columns, as people want them: offset uint64, subject utf8, key binary, payload binary, headers
map<utf8, binary>, timestamp_us int64, append_time_us int64. Invariant: payloads, keys and headers
that came in the arrow layout are not copied. Importing this module imports pyarrow.
"""

from collections.abc import Sequence
from itertools import accumulate

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
SUBJECT_ENCODED = pa.field("subject", pa.dictionary(pa.int32(), pa.utf8()))
"""The subjects as an index into those that there are: for who has few of them, and moves many
records about."""

_VALUES_SCHEMA = pa.schema([SCHEMA.field(name) for name in _VALUES])
_ENCODED_SCHEMA = _VALUES_SCHEMA.set(0, SUBJECT_ENCODED)


def values_of_rows(columns: RowColumns, *, encoded: bool = False) -> pa.Table:
    """The values of records in the rows layout, their subjects encoded if that is wanted."""
    subject = pa.array(columns.subjects, pa.utf8())
    arrays = [
        subject.dictionary_encode() if encoded else subject,
        pa.array(columns.keys, pa.binary()),
        pa.array(columns.payloads, pa.binary()),
        pa.array(columns.headers, arrow_layout.HEADERS_TYPE),
        pa.array(columns.timestamps_us, pa.int64()),
    ]
    return pa.Table.from_arrays(arrays, schema=_values_schema(encoded))


def values_of_batches(
    batches: Sequence[pa.RecordBatch], names: tuple[str, ...], *, encoded: bool = False
) -> pa.Table:
    """The values of frames in the arrow layout that have the same subjects, these by name."""
    whole = pa.Table.from_batches(batches, schema=arrow_layout.SCHEMA)
    subjects = pa.array(names, pa.utf8())
    subject = (
        _encoded(whole["subject"], subjects) if encoded else pc.take(subjects, whole["subject"])
    )
    arrays = [subject, *(whole[name] for name in _VALUES[1:])]
    return pa.Table.from_arrays(arrays, schema=_values_schema(encoded))


def _encoded(indexes: pa.ChunkedArray, subjects: pa.StringArray) -> pa.DictionaryArray:
    """The subjects of rows by their indexes, which are checked as `take` checks them."""
    wide = pa.concat_arrays(indexes.chunks).cast(pa.int32())
    return pa.DictionaryArray.from_arrays(wide, subjects)


def _values_schema(encoded: bool) -> pa.Schema:
    return _ENCODED_SCHEMA if encoded else _VALUES_SCHEMA


def table_of(
    summaries: Sequence[Summary],
    values: Sequence[pa.Table],
    key_hashes: Sequence[pa.UInt64Array] | None,
    kept: list[Range] | None,
    *,
    encoded: bool = False,
) -> pa.Table:
    """The table of consecutive frames; ``kept`` are the rows to keep, None for all."""
    table = pa.concat_tables(values) if values else _values_schema(encoded).empty_table()
    table = table.add_column(0, SCHEMA.field("offset"), _offsets(summaries))
    table = table.append_column(SCHEMA.field("append_time_us"), _append_times(summaries))
    if key_hashes is not None:
        table = table.append_column(KEY_HASH, pa.chunked_array(key_hashes, pa.uint64()))
    if kept is None:
        return table
    slices = [table.slice(start, end - start) for start, end in kept]
    return pa.concat_tables(slices) if slices else table.slice(0, 0)


def _offsets(summaries: Sequence[Summary]) -> pa.ChunkedArray:
    """Those of neighbours together: a frame has few records, and each call costs."""
    runs: list[Range] = []
    for *_, records, base, _ in summaries:
        start = runs.pop()[0] if runs and runs[-1][1] == base else base
        runs.append((start, base + records))
    return pa.chunked_array([_counted(start, end) for start, end in runs], pa.uint64())


def _counted(start: int, end: int) -> pa.UInt64Array:
    ones = pa.repeat(pa.scalar(1, pa.uint64()), end - start - 1)
    return pc.cumulative_sum(pa.concat_arrays([pa.array([start], pa.uint64()), ones]))


def _append_times(summaries: Sequence[Summary]) -> pa.ChunkedArray:
    ends = list(accumulate(records for *_, records, _, _ in summaries))
    times = pa.array([time_us for *_, time_us in summaries], pa.int64())
    runs = pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), times)
    return pa.chunked_array([pc.run_end_decode(runs)], pa.int64())
