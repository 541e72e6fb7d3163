"""Tables of records: their columns, and how they are read from frames.

`RECORDS` is what a source gives: the columns of `dss_core.arrow_tables` and the routing hash. What
is staged needs of it subject (plain or dictionary), key, key_hash, payload, headers, timestamp_us.
Invariant: one schema for every part, so that parts can be joined without a cast.
"""

import pyarrow as pa

from dss_core.arrow_layout import HEADERS_TYPE
from dss_core.arrow_tables import KEY_HASH
from dss_core.arrow_tables import SCHEMA as VALUES
from dss_core.columns import Columns

__all__ = ["HEADERS_TYPE", "RECORDS", "columns_of"]

RECORDS = VALUES.append(KEY_HASH)
"""offset, subject, key, payload, headers, timestamp_us, append_time_us, key_hash."""


def columns_of(table: pa.Table) -> Columns:
    """The records as they are built into frames."""

    def one(name: str) -> pa.Array:
        column = table[name].combine_chunks()
        return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)

    subjects = one("subject")
    if not isinstance(subjects, pa.DictionaryArray):
        subjects = subjects.dictionary_encode()
    return Columns(
        payloads=one("payload"),
        keys=one("key"),
        subjects=subjects,
        headers=one("headers"),
        timestamps_us=one("timestamp_us"),
        key_hashes=one("key_hash"),
    )
