"""The records of a table that a selection takes.

Invariant: the same records as `dss_bulk.selection`, for every table. Subjects are matched once for
each distinct one, everything else column by column.
"""

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.selection import RecordSelection
from dss_core.filters import TopicFilter


def selected(table: pa.Table, selection: RecordSelection) -> pa.Table:
    """The records that are taken, in their order."""
    mask: pa.ChunkedArray | None = None
    for each in _conditions(table, selection):
        mask = each if mask is None else pc.and_(mask, each)
    if mask is None:
        return table
    return table.filter(pc.fill_null(mask, False))


def _conditions(table: pa.Table, selection: RecordSelection) -> list[pa.ChunkedArray]:
    found: list[pa.ChunkedArray] = []
    if selection.append_from_us is not None:
        found.append(pc.greater_equal(table["append_time_us"], selection.append_from_us))
    if selection.append_until_us is not None:
        found.append(pc.less(table["append_time_us"], selection.append_until_us))
    if selection.key is not None:
        found.append(pc.equal(table["key"], pa.scalar(selection.key, pa.binary())))
    if selection.subject is not None:
        found.append(_matched(table["subject"], selection.subject))
    found += [_with_header(table["headers"], name, value) for name, value in selection.headers]
    return found


def _matched(subjects: pa.ChunkedArray, wanted: TopicFilter) -> pa.ChunkedArray:
    """For each record, whether its subject matches."""
    if not pa.types.is_dictionary(subjects.type):
        names = filter(wanted.matches, pc.unique(subjects).to_pylist())
        return pc.is_in(subjects, pa.array(list(names), pa.utf8()))
    # Each piece may have a dictionary of its own.
    chunks = [_matched_in(chunk, wanted) for chunk in subjects.chunks]
    return pa.chunked_array(chunks, pa.bool_())


def _matched_in(subjects: pa.DictionaryArray, wanted: TopicFilter) -> pa.BooleanArray:
    verdicts = pa.array(map(wanted.matches, subjects.dictionary.to_pylist()), pa.bool_())
    return verdicts.take(subjects.indices)


def _with_header(headers: pa.ChunkedArray, name: str, value: bytes) -> pa.ChunkedArray:
    """For each record, whether it has the header."""
    chunks = [_with_header_in(chunk, name, value) for chunk in headers.chunks]
    return pa.chunked_array(chunks, pa.bool_())


def _with_header_in(headers: pa.MapArray, name: str, value: bytes) -> pa.BooleanArray:
    whole = pa.concat_arrays([headers])
    hits = pc.and_(pc.equal(whole.keys, name), pc.equal(whole.items, pa.scalar(value, pa.binary())))
    upto = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(hits.cast(pa.int64()))])
    at = pc.take(upto, whole.offsets)
    return pc.greater(pc.subtract(at[1:], at[:-1]), 0)
