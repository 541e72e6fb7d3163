"""Columns of records as Arrow arrays: encoding, sizing and routing many at once.

Invariant: the counterpart of `dss_core.build` for 32 records and more, with the same results. It
raises plain TypeError and ValueError for wrong values, which `build` turns into conditions.
Importing this module imports pyarrow.
"""

from collections.abc import Callable, Sequence
from struct import Struct

import pyarrow as pa
import pyarrow.compute as pc

from dss_core import arrow_layout
from dss_core.arrow_routing import hashes_or_null, partitions_of
from dss_core.columns import Columns
from dss_core.filters import check_subject
from dss_core.limits import RecordLimits
from dss_core.routing import Router
from dss_core.rows_layout import Headers

SUBJECT_BYTES_SHARED_MAX = 16 << 10
"""Distinct subjects of a batch up to this many bytes are not charged to its records."""


Indexed = tuple[list[str], pa.UInt16Array]
"""Distinct subjects, and the index of each row's."""

Run = tuple[int, int, int]
"""A partition, its first row, and the one behind its last."""

_I64 = Struct("=q")


def encode(columns: Columns, limits: RecordLimits | None) -> tuple[list[str], bytes]:
    """The distinct subjects, in the order of their indexes, and the body of a frame.

    Without limits, they were checked: `arrow_layout.check_limits`.

    Raises:
        RecordTooLarge: a record is over the limit.
        ValueError, TypeError, OverflowError: a value is of the wrong type or over a limit.
    """
    records = columns.records
    names, subject = _indexed(columns.subjects, records)
    key = _keys(columns.keys, records)
    body = arrow_layout.serialised(
        subject=subject,
        key=key,
        key_hash=_hashes(columns, key),
        payload=_array(columns.payloads, pa.binary()),
        headers=_headers(columns.headers, records),
        timestamp_us=_times(columns.timestamps_us, records),
        limits=limits,
    )
    return names, body


def whole_batch(columns: Columns) -> pa.RecordBatch:
    """All records as one batch whose rows name the first subject, their limits checked.

    Raises:
        RecordTooLarge: a record is over the limit.
        ValueError, TypeError, OverflowError: a value is of the wrong type or over a limit.
    """
    records = columns.records
    key, payload = _keys(columns.keys, records), _array(columns.payloads, pa.binary())
    headers = _headers(columns.headers, records)
    batch = arrow_layout.batch_of(
        subject=arrow_layout.same_subject(records),
        key=key,
        key_hash=_hashes(columns, key),
        payload=payload,
        headers=headers,
        timestamp_us=_times(columns.timestamps_us, records),
    )
    arrow_layout.check_limits(key, payload, headers, key.nbytes + payload.nbytes + headers.nbytes)
    return batch


def _array(column: "Sequence[object] | pa.Array", wanted: pa.DataType) -> pa.Array:
    if isinstance(column, pa.Array):
        if column.type != wanted:
            raise TypeError(f"{column.type} stands where {wanted} is wanted")
        return column
    # Infer the type: asked for bytes, Arrow would accept text too.
    array = pa.array(column)
    if not isinstance(array, pa.Array):
        raise ValueError("its values have more than 2 GiB")  # noqa: TRY004 - a matter of size
    if array.type == wanted:
        return array
    if array.type != pa.null():
        raise TypeError(f"{array.type} stands where {wanted} is wanted")
    return array.cast(wanted)


def _keys(keys: "Sequence[bytes | None] | pa.Array | None", records: int) -> pa.Array:
    return pa.nulls(records, pa.binary()) if keys is None else _array(keys, pa.binary())


def _hashes(columns: Columns, key: pa.BinaryArray) -> pa.UInt64Array:
    """The hashes of the keys, which stand in an array of their own too."""
    if columns.key_hashes is not None:
        hashes = columns.key_hashes
        return hashes if isinstance(hashes, pa.Array) else pa.array(hashes, pa.uint64())
    if key.null_count == len(key):
        return pa.nulls(len(key), pa.uint64())
    keys = columns.keys if isinstance(columns.keys, list) else key.to_pylist()
    return hashes_or_null(keys)


def _headers(headers: "Sequence[Headers | None] | pa.Array | None", records: int) -> pa.Array:
    if headers is None:
        return arrow_layout.no_headers(records)
    if isinstance(headers, pa.Array):
        return headers
    return pa.array([named or () for named in headers], arrow_layout.HEADERS_TYPE)


def _times(times_us: "int | Sequence[int] | pa.Array", records: int) -> pa.Array:
    if isinstance(times_us, int):
        same = pa.py_buffer(_I64.pack(times_us) * records)
        return pa.Array.from_buffers(pa.int64(), records, [None, same])
    return times_us if isinstance(times_us, pa.Array) else pa.array(times_us, pa.int64())


def dictionary_of(subjects: "Sequence[str] | pa.Array") -> pa.DictionaryArray:
    """Each subject once, and the index of each row's.

    Raises:
        IllegalSubject: one cannot be encoded.
        TypeError, ValueError: one is of the wrong type.
    """
    if isinstance(subjects, pa.DictionaryArray):
        return subjects
    try:
        return _array(subjects, pa.utf8()).dictionary_encode()
    except UnicodeEncodeError:
        for subject in subjects:
            check_subject(subject)
        raise


def _indexed(subjects: "str | Sequence[str] | pa.DictionaryArray", records: int) -> Indexed:
    """The subjects that do occur, and each row's index among them."""
    if isinstance(subjects, str):
        return [subjects], arrow_layout.same_subject(records)
    encoded = dictionary_of(subjects)
    require_subjects(encoded)
    names, indexes = encoded.dictionary, encoded.indices
    if len(names) == 1:
        return names.to_pylist(), arrow_layout.same_subject(records)
    if encoded is subjects:
        # It may be a slice of a larger batch: only subjects that occur go into the frame.
        return occurring(encoded)
    return names.to_pylist(), indexes.cast(pa.uint16())


def require_subjects(subjects: pa.DictionaryArray) -> None:
    """Check that each row has a subject.

    Raises:
        TypeError: one has none.
    """
    if subjects.null_count:
        raise TypeError("a subject is missing")


def occurring(subjects: pa.DictionaryArray) -> Indexed:
    """The subjects that do occur, and each row's index among them."""
    used = subjects.indices.dictionary_encode()
    return subjects.dictionary.take(used.dictionary).to_pylist(), used.indices.cast(pa.uint16())


def bytes_upto(columns: Columns, fixed_bytes: int) -> Callable[[int], int]:
    """Roughly the bytes of the records up to a row, itself included; rather too many.

    A search needs few of them, so they are read off Arrow's offsets; only where a column has none,
    all are summed.
    """
    values = [each for each in (columns.payloads, columns.keys) if each is not None]
    summed = _summed_sizes(columns)
    if summed:
        lengths = (pc.fill_null(pc.binary_length(each), 0) for each in values)
        return _upto([*lengths, *summed], fixed_bytes)
    ends = [arrow_layout.ends(each) for each in values]
    before = sum(end[0] for end in ends)

    def upto(row: int) -> int:
        return sum([end[row + 1] for end in ends]) - before + (row + 1) * fixed_bytes

    return upto


def _upto(sizes: Sequence[pa.Array], fixed_bytes: int) -> Callable[[int], int]:
    """The sum of all sizes, and of what each record has besides, up to a row."""
    total = pc.add(sizes[0].cast(pa.int64()), fixed_bytes)
    for each in sizes[1:]:
        total = pc.add(total, each)
    return memoryview(pc.cumulative_sum(total).buffers()[1]).cast("q").__getitem__


def _summed_sizes(columns: Columns) -> list[pa.Array]:
    """The bytes of headers and of many different subjects, a row; nothing without any."""
    sizes: list[pa.Array] = []
    if columns.headers is not None:
        sizes.append(arrow_layout.header_bytes(columns.headers))
        sizes.append(pc.multiply(arrow_layout.header_counts(columns.headers), 8))
    if not isinstance(columns.subjects, str):
        subjects = dictionary_of(columns.subjects)
        if subjects.dictionary.nbytes > SUBJECT_BYTES_SHARED_MAX:
            sizes.append(pc.binary_length(subjects.dictionary).take(subjects.indices))
    return sizes


def partitioned(
    columns: Columns, router: Router, partitions: int, factor: int, keyless_start: int
) -> tuple[dict[int, Columns], pa.UInt64Array]:
    """The records by partition, each partition's in their order; and the rows in the order of all.

    Raises:
        ValueError, TypeError, OverflowError: a value is of the wrong type.
    """
    whole = _as_arrow(columns)
    order, runs = routed(whole, router, partitions, factor, keyless_start)
    ordered = _taken(whole, order)
    return {partition: ordered.cut(start, end) for partition, start, end in runs}, order


def places(order: pa.UInt64Array) -> Sequence[int]:
    """Where each row stands in an order of all of them."""
    return memoryview(pc.array_sort_indices(order).buffers()[1]).cast("Q")


def routed(
    columns: Columns, router: Router, partitions: int, factor: int, keyless_start: int
) -> tuple[pa.UInt64Array, list[Run]]:
    """The rows in an order that brings those of a partition together, each partition's in theirs.

    Of columns that are arrays; only keys and their hashes are looked at.
    """
    target = _targets(columns, router, partitions, factor, keyless_start)
    order = pc.array_sort_indices(target)
    found = pc.run_end_encode(target.take(order))
    ends = found.run_ends.to_pylist()
    return order, list(zip(found.values.to_pylist(), [0, *ends], ends, strict=False))


def _as_arrow(columns: Columns) -> Columns:
    """The same records, each column an array unless it is one value for all."""
    records, times_us = columns.records, columns.timestamps_us
    keys = None if columns.keys is None else _array(columns.keys, pa.binary())
    return Columns(
        payloads=_array(columns.payloads, pa.binary()),
        keys=keys,
        subjects=columns.subjects
        if isinstance(columns.subjects, str)
        else dictionary_of(columns.subjects),
        headers=None if columns.headers is None else _headers(columns.headers, records),
        timestamps_us=times_us if isinstance(times_us, int) else _times(times_us, records),
        key_hashes=None if keys is None else _hashes(columns, keys),
    )


def _targets(
    whole: Columns, router: Router, partitions: int, factor: int, keyless_start: int
) -> pa.UInt16Array:
    if whole.keys is None:
        return _round_robin(pa.repeat(pa.scalar(True), whole.records), partitions, keyless_start)
    keyed = partitions_of(router, whole.key_hashes, partitions, factor).cast(pa.uint16())
    if keyed.null_count == 0:
        return keyed
    return pc.coalesce(keyed, _round_robin(keyed.is_null(), partitions, keyless_start))


def _round_robin(keyless: pa.BooleanArray, partitions: int, start: int) -> pa.UInt16Array:
    turns = pc.cumulative_sum(keyless.cast(pa.int64()), start=start % partitions - 1)
    laps = pc.multiply(pc.divide(turns, partitions), partitions)
    # A row before the first keyless one may hold -1; only keyless rows are used.
    return pc.max_element_wise(pc.subtract(turns, laps), 0).cast(pa.uint16())


def _taken(whole: Columns, order: pa.Array) -> Columns:
    def take(column: pa.Array) -> pa.Array:
        return column if column is None or isinstance(column, str | int) else column.take(order)

    return Columns(
        payloads=take(whole.payloads),
        keys=take(whole.keys),
        subjects=take(whole.subjects),
        headers=take(whole.headers),
        timestamps_us=take(whole.timestamps_us),
        key_hashes=take(whole.key_hashes),
    )
