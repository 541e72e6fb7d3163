"""The one schema of the data source, and records as batches of it.

`dss_bulk.export` has the same columns in its files; ``key_hash`` comes with them here, which is
``xxhash64(key)`` of Spark SQL. Every field may be null, for Spark compares that too.

Invariant: each batch of a scan has exactly the schema of the scan; Spark looks at the first one
alone. Pure functions over tables; this module must not know Spark.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from dss_bulk.export import exported
from dss_bulk.tables import RECORDS
from dss_core.errors import IllegalArgument

_HEADERS = pa.list_(pa.struct([("name", pa.utf8()), ("value", pa.binary())]))
_TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("stream", pa.utf8()),
        ("offset", pa.int64()),
        ("subject", pa.utf8()),
        ("key", pa.binary()),
        ("payload", pa.binary()),
        ("headers", _HEADERS),
        ("time", _TIME),
        ("append_time", _TIME),
        ("key_hash", pa.int64()),
    ]
)
_TYPES = {
    pa.utf8(): "STRING",
    pa.int64(): "BIGINT",
    pa.binary(): "BINARY",
    _TIME: "TIMESTAMP",
    _HEADERS: "ARRAY<STRUCT<name: STRING, value: BINARY>>",
}


def spark_schema(names: Sequence[str]) -> str:
    """Columns as Spark SQL declares them."""
    return ", ".join(f"{name} {_TYPES[SCHEMA.field(name).type]}" for name in names)


def require_columns(names: Sequence[str]) -> None:
    """Make sure that there are such columns, each named once.

    Raises:
        IllegalArgument: there is none of a name, or none is named.
    """
    unknown = [name for name in names if name not in SCHEMA.names]
    if unknown or not names or len(set(names)) < len(names):
        rule = f"it names some of {', '.join(SCHEMA.names)}, each once"
        raise IllegalArgument(argument=f"columns {', '.join(names)!r}", rule=rule)


def batches_of(table: pa.Table, stream: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The records of a stream, with the columns of `RECORDS`, as Spark takes them."""
    assert table.schema.names == RECORDS.names
    rows = exported(table, stream)
    hashes = pa.chunked_array(
        [chunk.view(pa.int64()) for chunk in table["key_hash"].chunks], pa.int64()
    )
    rows = rows.append_column("key_hash", hashes).select(names)
    schema = pa.schema([SCHEMA.field(name) for name in names])
    yield from rows.cast(schema).combine_chunks().to_batches()
