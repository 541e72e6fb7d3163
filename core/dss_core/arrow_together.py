"""Verdicts about the records of many frames at once, each frame one batch in the arrow layout.

A call into Arrow costs more than the few hundred records of a frame, so this module makes few calls
for all frames. Invariant: yes means that `dss_core.arrow_layout` passes each batch by itself. No is
no verdict: then each batch has to be checked by itself, which also gives the error. Importing this
module imports pyarrow.
"""

from collections.abc import Sequence
from sys import byteorder

import pyarrow as pa
import pyarrow.compute as pc

from dss_core.arrow_layout import (
    HASH_BYTES,
    HEADERS,
    KEY,
    KEY_HASH,
    NO_SIZES_BELOW_BYTES,
    SCHEMA,
    SUBJECT,
    UNREADABLE,
    fixed_bytes,
    forbidden_null,
    header_counts,
    header_entries,
    may_be_reserved,
    null_together,
    subjects_below,
)
from dss_core.arrow_routing import partitions_of
from dss_core.limits import HEADER_BYTES_MAX, HEADERS_MAX, KEY_BYTES_MAX
from dss_core.routing import Router


def all_hold(
    batches: Sequence[pa.RecordBatch],
    records: Sequence[int],
    subjects: Sequence[int],
    frame_bytes_max: int,
) -> bool:
    """Whether each batch passes `arrow_layout.verify`, with so many records and subjects.

    No frame has more than ``frame_bytes_max``.
    """
    try:
        table = pa.Table.from_batches(batches, SCHEMA)
        table.validate(full=True)
        return (
            frame_bytes_max <= NO_SIZES_BELOW_BYTES
            and all(map(_holds, batches, records, subjects))
            and _largest(pc.binary_length(table.column(KEY))) <= KEY_BYTES_MAX
            and _headers_are_fine([batch.column(HEADERS) for batch in batches])
        )
    except UNREADABLE:
        return False


def _holds(batch: pa.RecordBatch, records: int, subjects: int) -> bool:
    """What costs little of each batch."""
    return (
        batch.num_rows == records
        and forbidden_null(batch.columns) is None
        and subjects_below(batch.column(SUBJECT), subjects)
        and null_together(batch.column(KEY), batch.column(KEY_HASH))
    )


def _headers_are_fine(columns: Sequence[pa.MapArray]) -> bool:
    """Whether none can be reserved, and no record over a limit.

    By the most headers of a record, the longest name and the longest value.
    """
    with_any = [each for each in columns if header_entries(each)]
    if not with_any:
        return True
    if any(map(may_be_reserved, with_any)):
        return False
    most = _largest(pa.chunked_array([header_counts(each) for each in with_any]))
    names = pa.chunked_array([each.keys for each in with_any])
    values = pa.chunked_array([each.items for each in with_any])
    each_bytes = _largest(pc.binary_length(names)) + _largest(pc.binary_length(values))
    return most <= HEADERS_MAX and most * each_bytes <= HEADER_BYTES_MAX


def _largest(values: pa.ChunkedArray) -> int:
    return pc.max(values).as_py() or 0


def all_routed(
    batches: Sequence[pa.RecordBatch],
    partitions_named: Sequence[int],
    router: Router,
    partitions: int,
    factor: int,
) -> bool:
    """Whether every record of each verified batch has a key, of the partition named for it."""
    hashes = pa.concat_arrays([batch.column(KEY_HASH) for batch in batches])
    if hashes.null_count:
        return False
    expected = b"".join(
        partition.to_bytes(HASH_BYTES, byteorder) * batch.num_rows
        for partition, batch in zip(partitions_named, batches, strict=True)
    )
    return fixed_bytes(partitions_of(router, hashes, partitions, factor), HASH_BYTES) == expected
