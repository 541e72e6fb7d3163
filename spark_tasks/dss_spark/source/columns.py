"""Records as batches of the schema of the data source.

`dss_bulk.export` writes the same columns to its files; here ``key_hash`` is added, which is
``xxhash64(key)`` of Spark SQL. Every field may be null, because Spark compares that too.

Invariant: each batch of a scan has exactly the schema of the scan; Spark checks only the first one.
Pure functions over tables; this module must not know Spark.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from dss_bulk.export import exported
from dss_bulk.tables import RECORDS
from dss_spark.names import HEADERS_SQL
from dss_spark.source.schema import columns_of

_HEADERS = pa.list_(pa.struct([("name", pa.utf8()), ("value", pa.binary())]))
_TIME = pa.timestamp("us", tz="UTC")
_ARROW = {
    "STRING": pa.utf8(),
    "BIGINT": pa.int64(),
    "BINARY": pa.binary(),
    "TIMESTAMP": _TIME,
    HEADERS_SQL: _HEADERS,
}
SCHEMA = pa.schema([(name, _ARROW[kind]) for name, kind in columns_of(dead_letters=True).items()])


def batches_of(table: pa.Table, stream: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The records of a stream, with the columns of `RECORDS`, as Spark takes them."""
    assert table.schema.names[: len(RECORDS)] == RECORDS.names
    rows = exported(table, stream)
    hashes = pa.chunked_array(
        [chunk.view(pa.int64()) for chunk in table["key_hash"].chunks], pa.int64()
    )
    rows = rows.append_column("key_hash", hashes).select(names)
    schema = pa.schema([SCHEMA.field(name) for name in names])
    yield from rows.cast(schema).combine_chunks().to_batches()
