"""Tables of records as the source of a bulk job returns them."""

from collections.abc import Sequence

import pyarrow as pa

from dss_bulk.tables import RECORDS
from dss_core.arrow_routing import hashes_or_null
from dss_core.rows_layout import Headers


def table_of(
    *,
    subjects: Sequence[str],
    keys: Sequence[bytes | None] | None = None,
    payloads: Sequence[bytes] | None = None,
    headers: Sequence[Headers] | None = None,
    append_times_us: Sequence[int] | None = None,
    base: int = 0,
) -> pa.Table:
    """Records at consecutive offsets; columns that are not given have one value for all."""
    records = len(subjects)
    columns = {
        "offset": range(base, base + records),
        "subject": subjects,
        "key": keys or [b"k"] * records,
        "payload": payloads or [b"%d" % number for number in range(records)],
        "headers": headers or [()] * records,
        "timestamp_us": [1] * records,
        "append_time_us": append_times_us or range(100, 100 + records),
    }
    arrays = [pa.array(list(columns[field.name]), field.type) for field in list(RECORDS)[:-1]]
    return pa.Table.from_arrays(
        [*arrays, hashes_or_null(list(keys or [b"k"] * records))], schema=RECORDS
    )
