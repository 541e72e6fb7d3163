"""Records between Spark and Arrow: the frame that is staged, and the tables of its tasks.

A frame of records has the columns ``subject`` (string), ``key`` (binary or null), ``payload``
(binary), ``headers`` (array of structs of name and value, because a map in Spark cannot have a name
twice) and ``timestamp_us`` (bigint), among others.

Invariant: only the hashes are copied, so a task's memory is what Spark handed to it.
"""

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.tables import HEADERS_TYPE
from dss_spark.names import HASH


def as_records(table: pa.Table) -> pa.Table:
    """The table with headers and hashes as `dss_bulk` has them."""
    at = table.schema.get_field_index("headers")
    table = table.set_column(at, "headers", _as_maps(table["headers"]))
    hashes = table[HASH].cast(pa.uint64(), safe=False)
    missing = pa.scalar(None, pa.uint64())
    return table.append_column("key_hash", pc.if_else(table["key"].is_null(), missing, hashes))


def _as_maps(headers: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = [_as_map(chunk) for chunk in headers.chunks]
    return pa.chunked_array(chunks, HEADERS_TYPE)


def _as_map(lists: pa.ListArray) -> pa.MapArray:
    entries = lists.flatten()
    starts = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(_lengths(lists))])
    names, values = entries.field(0), entries.field(1)
    return pa.MapArray.from_arrays(starts, names, values, HEADERS_TYPE)


def _lengths(lists: pa.ListArray) -> pa.Int32Array:
    return pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int32())
