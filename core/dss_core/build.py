"""Builds frames from columns of records, and routes and cuts columns so that they fit.

A batch goes through `partition_columns`, then `split_columns` for each partition, then
`build_frame`. Invariant: the order of records of one key never changes; what is built passes
`dss_core.frame.verify`. Arrow is loaded only for 32 records and more. This module draws no ids and
reads no clock.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, repeat
from operator import add
from struct import error as StructError
from typing import TYPE_CHECKING, TypeVar

from dss_core import rows_layout
from dss_core.columns import Columns
from dss_core.errors import FrameTooLarge, IllegalArgument
from dss_core.frame import (
    HEADER_BYTES,
    LAYOUT_ARROW,
    LAYOUT_ROWS,
    assemble,
    body_start,
)
from dss_core.limits import (
    FRAME_BYTES_USUAL,
    FRAME_RECORDS_MAX,
    FRAME_SUBJECTS_MAX,
    PARTITIONS_MAX,
    RECORDS,
    ROWS_LAYOUT_RECORDS_BELOW,
    SUBJECT_TABLE_BYTES_MAX,
    RecordLimits,
)
from dss_core.routing import Router, key_hash, partition_of
from dss_core.rows_layout import Headers
from dss_core.subject_table import encoded_subject

if TYPE_CHECKING:
    import pyarrow as pa

ROW_BYTES_FIXED = 34
"""What a record takes beside its values in the larger of the layouts, roughly."""


WRONG_VALUE = (TypeError, ValueError, OverflowError, AttributeError, StructError)
"""What Python and Arrow raise for values that do not fit their column."""

Value = TypeVar("Value")


def build_frame(
    columns: Columns,
    *,
    partition: int,
    producer_id: bytes,
    sequence: int,
    limits: RecordLimits | None = RECORDS,
) -> bytes:
    """One frame with all the records, for one partition, not stamped.

    Entries of queues, which the daemon makes, have wider limits: `dss_core.lane.ENTRIES`. Without
    any, Arrow's sizes are not looked at: they were, by `arrow_layout.check_limits`.

    Raises:
        RecordTooLarge: a record is over the limit.
        FrameTooLarge: the records do not fit into one frame; `split_columns` cuts them.
        IllegalSubject: a subject breaks its rule.
        HeaderReserved: no producer may set one of the headers.
        IllegalArgument: another value is of the wrong type or over a limit.
    """
    records = columns.records
    assert records > 0
    assert 0 <= partition < PARTITIONS_MAX
    if records > FRAME_RECORDS_MAX:
        raise FrameTooLarge(size_bytes="?", records=records)
    layout = LAYOUT_ROWS if records < ROWS_LAYOUT_RECORDS_BELOW else LAYOUT_ARROW
    try:
        if layout == LAYOUT_ROWS:
            subjects, parts = _rows(columns, limits or RECORDS)
        else:
            subjects, parts = _arrow(columns, limits)
    except WRONG_VALUE as error:
        raise IllegalArgument(argument="a record", rule=str(error)) from error
    check_subject_table(subjects, parts[0])
    return assemble(
        layout,
        records=records,
        partition=partition,
        subjects=subjects,
        producer_id=producer_id,
        sequence=sequence,
        parts=parts,
    )


def check_subject_table(subjects: int, table: bytes) -> None:
    """Check how many subjects a frame has, and their bytes.

    Raises:
        IllegalArgument: they are too many, or too large.
    """
    if subjects > FRAME_SUBJECTS_MAX or len(table) > SUBJECT_TABLE_BYTES_MAX:
        rule = f"a frame has at most {FRAME_SUBJECTS_MAX:,}, and {SUBJECT_TABLE_BYTES_MAX:,} bytes"
        raise IllegalArgument(argument="subjects", rule=rule)


def _rows(columns: Columns, limits: RecordLimits) -> tuple[int, list[bytes]]:
    """The number of subjects, and the subject table and body."""
    records = columns.records
    subjects, indexes, table = _subject_index(columns.subjects, records)
    headers, times = columns.headers, columns.timestamps_us
    body = rows_layout.encode(
        _plain(columns.payloads),
        repeat(None, records) if columns.keys is None else _plain(columns.keys),
        indexes,
        repeat(None, records) if headers is None else _plain(headers),
        repeat(times, records) if isinstance(times, int) else _plain(times),
        limits,
    )
    return subjects, [table, body]


def _subject_index(
    subjects: "str | Sequence[str] | pa.DictionaryArray", records: int
) -> tuple[int, Sequence[int], bytes]:
    """The number of subjects, each row's index among them, and the subject table."""
    if isinstance(subjects, str):
        return 1, [0] * records, encoded_subject(subjects)
    index: dict[str, int] = {}
    indexes = [index.setdefault(subject, len(index)) for subject in _plain(subjects)]
    return len(index), indexes, b"".join(map(encoded_subject, index))


def _plain(column: "Sequence[Value] | pa.Array") -> Sequence[Value]:
    """The column as Python objects."""
    if isinstance(column, list | tuple):
        return column
    plain: Sequence[Value] = column.to_pylist() if hasattr(column, "to_pylist") else column
    return plain


def _arrow(columns: Columns, limits: RecordLimits | None) -> tuple[int, list[bytes]]:
    from dss_core import arrow_columns

    names, body = arrow_columns.encode(columns, limits)
    return len(names), [*head_of_body(names), body]


def head_of_body(names: Sequence[str]) -> tuple[bytes, bytes]:
    """The subject table of a frame in the arrow layout, and the zeros behind it.

    Raises:
        IllegalSubject: a subject breaks its rule.
    """
    table = b"".join(map(encoded_subject, names))
    table_end = HEADER_BYTES + len(table)
    return table, bytes(body_start(0, table_end, LAYOUT_ARROW) - table_end)


def split_columns(columns: Columns) -> Iterator[Columns]:
    """Cut records into runs that make frames of the usual size; a large record goes alone."""
    records = columns.records
    if records == 1:
        yield columns
        return
    for start, end in cuts(_bytes_upto(columns), 0, records):
        yield columns.cut(start, end)


def cuts(upto: Callable[[int], int], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Where the records from a row up to another are cut, given the bytes up to each row."""
    rows = range(stop)
    before, total = upto(start - 1) if start else 0, upto(stop - 1)
    while start < stop:
        end_max = min(stop, start + FRAME_RECORDS_MAX)
        # Runs of about one size: a short last one would cost as much as a full one.
        runs = -(-(total - before) // FRAME_BYTES_USUAL)
        end_bytes = before - (before - total) // runs
        end = bisect_right(rows, end_bytes, start, end_max, key=upto)
        end = max(end, start + 1)
        yield start, end
        start, before = end, upto(end - 1)


def _bytes_upto(columns: Columns) -> Callable[[int], int]:
    """Roughly the bytes of the records up to a row, itself included; rather too many."""
    if hasattr(columns.payloads, "to_pylist"):
        from dss_core import arrow_columns

        return arrow_columns.bytes_upto(columns, ROW_BYTES_FIXED)
    sizes: Iterator[int] = map(len, columns.payloads)
    if columns.keys is not None:
        sizes = map(add, sizes, [len(key) if key is not None else 0 for key in columns.keys])
    if columns.headers is not None:
        sizes = map(add, sizes, map(_header_bytes, columns.headers))
    if not isinstance(columns.subjects, str):
        sizes = map(add, sizes, map(len, columns.subjects))
    return list(accumulate(map(add, sizes, repeat(ROW_BYTES_FIXED)))).__getitem__


def _header_bytes(headers: Headers | None) -> int:
    return sum(len(name.encode()) + len(value) + 8 for name, value in headers or ())


def partition_columns(
    columns: Columns, router: Router, partitions: int, factor: int, *, keyless_start: int
) -> dict[int, Columns]:
    """The records by partition, each partition's in their order.

    Records without a key go round-robin: the first of them to ``keyless_start mod partitions``.

    Raises:
        IllegalSubject: a subject breaks its rule; found here only if it cannot be encoded.
        IllegalArgument: a value is of the wrong type.
    """
    try:
        if columns.records < ROWS_LAYOUT_RECORDS_BELOW:
            rows = _rows_by_partition(columns, router, partitions, factor, keyless_start)
            return _picked_all(columns, rows)
        from dss_core import arrow_columns

        parts, _ = arrow_columns.partitioned(columns, router, partitions, factor, keyless_start)
    except WRONG_VALUE as error:
        raise IllegalArgument(argument="a record", rule=str(error)) from error
    return parts


def placed_columns(
    columns: Columns, router: Router, partitions: int, factor: int, *, keyless_start: int
) -> tuple[dict[int, Columns], Sequence[int]]:
    """As `partition_columns`, and the place of each record in all parts, one behind the other.

    Raises:
        IllegalSubject, IllegalArgument: as there.
    """
    try:
        if columns.records < ROWS_LAYOUT_RECORDS_BELOW:
            rows = _rows_by_partition(columns, router, partitions, factor, keyless_start)
            order = [row for own in rows.values() for row in own]
            return _picked_all(columns, rows), sorted(range(len(order)), key=order.__getitem__)
        from dss_core import arrow_columns

        parts, moved = arrow_columns.partitioned(columns, router, partitions, factor, keyless_start)
        return parts, arrow_columns.places(moved)
    except WRONG_VALUE as error:
        raise IllegalArgument(argument="a record", rule=str(error)) from error


def _picked_all(columns: Columns, rows: dict[int, list[int]]) -> dict[int, Columns]:
    if len(rows) == 1:
        return dict.fromkeys(rows, columns)
    return {partition: _picked(columns, wanted) for partition, wanted in rows.items()}


def _rows_by_partition(
    columns: Columns, router: Router, partitions: int, factor: int, keyless_start: int
) -> dict[int, list[int]]:
    """Which rows go to which partition, in their order."""
    rows: dict[int, list[int]] = {}
    keys = repeat(None, columns.records) if columns.keys is None else _plain(columns.keys)
    keyless = keyless_start
    for row, key in enumerate(keys):
        if key is None:
            partition = keyless % partitions
            keyless += 1
        else:
            partition = partition_of(router, key_hash(key), partitions, factor)
        rows.setdefault(partition, []).append(row)
    return rows


def _picked(columns: Columns, rows: list[int]) -> Columns:
    """The records of the rows, in the order of the rows."""

    def pick(column: "Sequence[Value] | pa.Array") -> list[Value]:
        plain = _plain(column)
        return [plain[row] for row in rows]

    subjects, times_us = columns.subjects, columns.timestamps_us
    return Columns(
        payloads=pick(columns.payloads),
        keys=None if columns.keys is None else pick(columns.keys),
        subjects=subjects if isinstance(subjects, str) else pick(subjects),
        headers=None if columns.headers is None else pick(columns.headers),
        timestamps_us=times_us if isinstance(times_us, int) else pick(times_us),
        key_hashes=None if columns.key_hashes is None else pick(columns.key_hashes),
    )
