"""Which records of a range a job takes: by subject, key, headers and time.

Invariant: a record is taken if every condition that was given holds for it. Subjects are matched
once a distinct one, all else column by column.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dss_core.filters import TopicFilter


@dataclass(frozen=True, slots=True)
class Selection:
    """The conditions of one job; all that is absent holds for every record."""

    subject: TopicFilter | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    """Name and value; a record has each of them, perhaps among others of that name."""
    append_from_us: int | None = None
    append_until_us: int | None = None
    """Before this time, not at it."""

    def of(self, table: pa.Table) -> pa.Table:
        """The records that are taken, in their order."""
        mask: pa.ChunkedArray | None = None
        for each in self._conditions(table):
            mask = each if mask is None else pc.and_(mask, each)
        if mask is None:
            return table
        return table.filter(pc.fill_null(mask, False))

    def _conditions(self, table: pa.Table) -> list[pa.ChunkedArray]:
        found: list[pa.ChunkedArray] = []
        if self.append_from_us is not None:
            found.append(pc.greater_equal(table["append_time_us"], self.append_from_us))
        if self.append_until_us is not None:
            found.append(pc.less(table["append_time_us"], self.append_until_us))
        if self.key is not None:
            found.append(pc.equal(table["key"], pa.scalar(self.key, pa.binary())))
        if self.subject is not None:
            names = filter(self.subject.matches, pc.unique(table["subject"]).to_pylist())
            found.append(pc.is_in(table["subject"], pa.array(list(names), pa.utf8())))
        found += [_with_header(table["headers"], name, value) for name, value in self.headers]
        return found


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
