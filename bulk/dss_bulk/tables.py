"""Tables of records: their columns, and how they are read from frames.

`RECORDS` are the columns of a source: those of `dss_core.arrow_tables` and the routing hash.
Staging needs subject (plain or dictionary), key, key_hash, payload, headers and timestamp_us.
Invariant: one schema for every part, so that parts can be joined without a cast.
"""

import pyarrow as pa

from dss_core.arrow_layout import HEADERS_TYPE
from dss_core.arrow_tables import KEY_HASH, SUBJECT_ENCODED
from dss_core.arrow_tables import SCHEMA as VALUES
from dss_core.columns import Columns

__all__ = [
    "DEAD",
    "HEADERS_TYPE",
    "RECORDS",
    "STREAM",
    "columns_of",
    "flat",
    "with_encoded_subjects",
    "with_stream",
]

RECORDS = VALUES.append(KEY_HASH)
"""offset, subject, key, payload, headers, timestamp_us, append_time_us, key_hash."""

_TIME = pa.timestamp("us", tz="UTC")
DEAD = pa.schema(
    [
        pa.field("attempt", pa.int64()),
        pa.field("redrives", pa.int64()),
        pa.field("cause", pa.utf8()),
        pa.field("error_type", pa.utf8()),
        pa.field("error", pa.utf8()),
        pa.field("fingerprint", pa.utf8()),
        pa.field("client_id", pa.utf8()),
        pa.field("first_failure_at", _TIME),
        pa.field("entered_at", _TIME),
    ]
)
"""The columns beside the record of a dead letter; the names are those of ``dssctl dlq ls``."""

STREAM = "stream"
"""A further column for callers that join tables of several streams: the stream of each record."""


def with_stream(table: pa.Table, stream: str) -> pa.Table:
    """The records of one stream, with its name beside each."""
    indices = pa.repeat(pa.scalar(0, pa.int32()), table.num_rows)
    names = pa.DictionaryArray.from_arrays(indices, pa.array([stream], pa.utf8()))
    return table.append_column(STREAM, names)


def with_encoded_subjects(table: pa.Table) -> pa.Table:
    """The records, their subjects as a dictionary."""
    at = table.schema.get_field_index(SUBJECT_ENCODED.name)
    return table.set_column(at, SUBJECT_ENCODED, table.column(at).dictionary_encode())


def flat(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece, without a copy if it is one already."""
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def columns_of(table: pa.Table) -> Columns:
    """The columns for building frames."""

    subjects = flat(table["subject"])
    if not isinstance(subjects, pa.DictionaryArray):
        subjects = subjects.dictionary_encode()
    return Columns(
        payloads=flat(table["payload"]),
        keys=flat(table["key"]),
        subjects=subjects,
        headers=flat(table["headers"]),
        timestamps_us=flat(table["timestamp_us"]),
        key_hashes=flat(table["key_hash"]),
    )
