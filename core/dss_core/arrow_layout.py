"""The arrow layout: 32 records and more as one Arrow record batch without its schema.

Schema 1, which every part has built in::

    subject       uint16               index into the frame's subject table
    key           binary               null when absent
    key_hash      uint64               routing hash of the key, null with it
    payload       binary
    headers       map<utf8, binary>    repeats kept; none is an empty map
    timestamp_us  int64

Invariant: `verify` admits a batch only when all its offsets, lengths and indexes are in bounds,
so that later readers may trust them; and it decompresses nothing, so that a small frame cannot
become a large one in memory. This is the only module of the frame format that imports pyarrow; it
knows nothing of frame headers, checksums or stamps.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as StructError
from sys import byteorder
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dss_core.arrow_routing import hashes_of, partitions_of
from dss_core.errors import FrameCorrupt
from dss_core.lane import holds_reserved, refuse_reserved
from dss_core.limits import KEY_BYTES_MAX, RECORD_BYTES_MAX, RECORDS, RecordLimits
from dss_core.progress import Ranges
from dss_core.routing import Router, partition_of
from dss_core.rows_layout import check_headers, check_record_bytes
from dss_core.subject_table import Buffer

HEADERS_TYPE = pa.map_(pa.utf8(), pa.binary())
SCHEMA = pa.schema(
    [
        pa.field("subject", pa.uint16(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("key_hash", pa.uint64()),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("headers", HEADERS_TYPE, nullable=False),
        pa.field("timestamp_us", pa.int64(), nullable=False),
    ]
)
SUBJECT, KEY, KEY_HASH, _PAYLOAD, HEADERS, _TIMESTAMP = range(6)

_NEVER_NULL: list[tuple[int, str]] = [
    (index, field.name) for index, field in enumerate(SCHEMA) if not field.nullable
]
_SUBJECT_BYTES = 2
HASH_BYTES = 8
_COLUMN_OF = {"payloads": _PAYLOAD, "keys": KEY, "headers": HEADERS, "timestamps_us": _TIMESTAMP}
_COLUMNS_OF_BYTES = 4
"""Keys, payloads, header names, header values. In a forged batch they may be the same bytes."""
NO_SIZES_BELOW_BYTES = RECORD_BYTES_MAX // _COLUMNS_OF_BYTES
"""A frame that is no larger has no record over its limit."""
_NO_ENTRIES = pa.StructArray.from_arrays(
    # `pa.array` would load pandas, if installed, even for readers.
    [pa.nulls(0, pa.utf8()), pa.nulls(0, pa.binary())],
    fields=[HEADERS_TYPE.key_field, HEADERS_TYPE.item_field],
)

UNREADABLE = (pa.ArrowException, OSError, MemoryError, ValueError, EOFError)
"""What Arrow raises for a forged batch; EOFError where it claims to be the end of a stream."""

_PREFIX = Struct("<II")
_I32 = Struct("<i")
_U16 = Struct("<H")
_CONTINUATION = 0xFFFF_FFFF
_MESSAGE_HEADER_SLOT = 8
_BATCH_COMPRESSION_SLOT = 10
"""Where the vtables of Arrow's flatbuffers Message and RecordBatch keep these fields."""


def no_headers(records: int) -> pa.MapArray:
    """A headers column without any header."""
    offsets = pa.py_buffer(bytes(4 * (records + 1)))
    return pa.Array.from_buffers(HEADERS_TYPE, records, [None, offsets], children=[_NO_ENTRIES])


def same_subject(records: int) -> pa.UInt16Array:
    """A subject column whose rows all name the first subject."""
    return pa.Array.from_buffers(pa.uint16(), records, [None, pa.py_buffer(bytes(2 * records))])


def batch_of(
    *,
    subject: pa.Array,
    key: pa.Array,
    key_hash: pa.Array,
    payload: pa.Array,
    headers: pa.Array,
    timestamp_us: pa.Array,
) -> pa.RecordBatch:
    """The columns as one batch; nothing but their types and nulls is checked.

    Raises:
        TypeError: a value is missing, or a column has another type.
    """
    columns = [subject, key, key_hash, payload, headers, timestamp_us]
    null = forbidden_null(columns)
    if null is not None:
        raise TypeError(f"a {null} is missing")
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def serialised(
    *,
    subject: pa.Array,
    key: pa.Array,
    key_hash: pa.Array,
    payload: pa.Array,
    headers: pa.Array,
    timestamp_us: pa.Array,
    limits: RecordLimits | None = RECORDS,
) -> pa.Buffer:
    """The body of a frame.

    Without limits, the caller has looked at the sizes: `check_limits`.

    Raises:
        RecordTooLarge: a record is over the limit.
        ValueError: a key or headers are over theirs; the message is the rule.
    """
    body = batch_of(
        subject=subject,
        key=key,
        key_hash=key_hash,
        payload=payload,
        headers=headers,
        timestamp_us=timestamp_us,
    ).serialize()
    if limits is not None:
        check_limits(key, payload, headers, body.size, limits)
    return body


def read(frames: Buffer, at: int, end: int) -> pa.RecordBatch:
    """The record batch of a frame, not checked further, without copying.

    Raises:
        FrameCorrupt: no record batch of the schema's shape stands there.
    """
    body = pa.py_buffer(frames).slice(at, end - at)
    if body.address % 8:
        body = pa.py_buffer(body.to_pybytes())
    try:
        return pa.ipc.read_record_batch(body, SCHEMA)
    except UNREADABLE as error:
        raise FrameCorrupt(reason=f"its record batch cannot be read ({_name(error)})") from error


def _name(error: BaseException) -> str:
    return type(error).__name__


def uncompressed(frame: Buffer, at: int) -> pa.RecordBatch:
    """The batch from a position to the end of the frame, of which nothing else was looked at.

    Raises:
        FrameCorrupt: it is compressed, or cannot be read.
    """
    if len(frame) % 8:
        raise FrameCorrupt(reason="its length is not a multiple of 8")
    _refuse_compression(frame, at)
    return read(frame, at, len(frame))


def verify(batch: pa.RecordBatch, frame_bytes: int, records: int, subjects: int) -> None:
    """Check a batch that was read from a frame of so many bytes.

    Raises:
        RecordTooLarge: a record is over the limit.
        HeaderReserved: no producer may set one of its headers.
        FrameCorrupt: anything else is wrong with it.
    """
    try:
        _verify_batch(batch, frame_bytes, records, subjects)
    except UNREADABLE as error:
        raise FrameCorrupt(reason=f"its record batch is broken ({_name(error)})") from error


def _refuse_compression(frame: Buffer, at: int) -> None:
    """Read the message's flatbuffers as far as its compression field.

    Arrow would decompress while reading, before anything could be checked.
    """
    try:
        continuation, _ = _PREFIX.unpack_from(frame, at)
        if continuation != _CONTINUATION:
            raise FrameCorrupt(reason="no Arrow message stands at its body")
        root_at = at + _PREFIX.size
        message_at = root_at + _I32.unpack_from(frame, root_at)[0]
        slot = _slot(frame, message_at, _MESSAGE_HEADER_SLOT)
        batch_at = message_at + slot
        batch_at += _I32.unpack_from(frame, batch_at)[0]
        compressed = slot == 0 or _slot(frame, batch_at, _BATCH_COMPRESSION_SLOT) != 0
    except StructError:
        raise FrameCorrupt(reason="no Arrow message stands at its body") from None
    if compressed:
        raise FrameCorrupt(reason="its record batch is compressed")


def _slot(frame: Buffer, table_at: int, slot: int) -> int:
    """Where a flatbuffers table keeps a field, relative to the table; 0 where it has none."""
    vtable_at = table_at - _I32.unpack_from(frame, table_at)[0]
    if slot + _U16.size > _U16.unpack_from(frame, vtable_at)[0]:
        return 0
    return int(_U16.unpack_from(frame, vtable_at + slot)[0])


def _verify_batch(batch: pa.RecordBatch, frame_bytes: int, records: int, subjects: int) -> None:
    if batch.num_rows != records:
        raise FrameCorrupt(reason=f"it holds {batch.num_rows} records, its header says {records}")
    batch.validate(full=True)
    columns = batch.columns
    null = forbidden_null(columns)
    if null is not None:
        raise FrameCorrupt(reason=f"a {null} is null")
    if not subjects_below(columns[SUBJECT], subjects):
        raise FrameCorrupt(reason=f"a row names a subject beyond its {subjects}")
    if not null_together(columns[KEY], columns[KEY_HASH]):
        raise FrameCorrupt(reason="a key without its hash, or a hash without its key")
    try:
        check_limits(columns[KEY], columns[_PAYLOAD], columns[HEADERS], frame_bytes)
    except ValueError as broken:
        raise FrameCorrupt(reason=str(broken)) from broken


def forbidden_null(columns: Sequence[pa.Array]) -> str | None:
    """The name of a column with a null where none may be."""
    for index, name in _NEVER_NULL:
        if columns[index].null_count:
            return name
    headers = columns[HEADERS]
    return "value of headers" if header_entries(headers) and headers.items.null_count else None


def subjects_below(subject: pa.UInt16Array, subjects: int) -> bool:
    """Whether each row names one of so many subjects."""
    zeros = bytes(_SUBJECT_BYTES * len(subject))
    if subjects == 1 and fixed_bytes(subject, _SUBJECT_BYTES) == zeros:
        return True
    return bool(pc.max(subject).as_py() < subjects)


def fixed_bytes(column: pa.Array, width_bytes: int) -> bytes:
    """The values of a column of fixed width, without looking at its nulls; none in a forged one.

    Comparing a few thousand bytes takes a tenth of the time of a call into Arrow.
    """
    buffer = column.buffers()[1]
    if buffer is None:
        return b""
    start, size_bytes = column.offset * width_bytes, len(column) * width_bytes
    values: bytes = buffer.slice(start, size_bytes).to_pybytes()
    return values


def null_together(one: pa.Array, other: pa.Array) -> bool:
    """Whether the same rows of both are null."""
    if one.null_count != other.null_count:
        return False
    return one.null_count == 0 or bool(one.is_null().equals(other.is_null()))


def check_limits(
    key: pa.Array,
    payload: pa.Array,
    headers: pa.Array,
    bytes_max: int,
    limits: RecordLimits = RECORDS,
) -> None:
    """Check the sizes of records, keys and headers.

    No column has more than ``bytes_max`` bytes, so most batches need no look at their rows.

    Raises:
        RecordTooLarge: a record is over the limit.
        HeaderReserved: no producer may set one of the headers.
        ValueError: a key or headers are over theirs; the message is the rule.
    """
    if _data_bytes(key) > KEY_BYTES_MAX and _max(pc.binary_length(key)) > KEY_BYTES_MAX:
        raise ValueError(f"a key has at most {KEY_BYTES_MAX} bytes")
    with_headers = header_entries(headers) > 0
    if with_headers:
        if not limits.reserved_headers and may_be_reserved(headers):
            refuse_reserved(pc.unique(headers.keys).to_pylist())
        named_bytes = header_bytes(headers)
        check_headers(_max(header_counts(headers)), _max(named_bytes), limits)
    if bytes_max > NO_SIZES_BELOW_BYTES:
        sizes = pc.add(
            pc.binary_length(payload),
            pc.coalesce(pc.binary_length(key), pa.scalar(0, pa.int32())),
        )
        check_record_bytes(_max(pc.add(sizes, named_bytes) if with_headers else sizes), limits)


def _max(values: pa.Array) -> int:
    return pc.max(values).as_py() or 0


def _data_bytes(column: pa.BinaryArray) -> int:
    """The bytes of all values; no single one has more."""
    _, offsets, data = column.buffers()
    if offsets is None or data is None:
        return 0
    end = ends(column)
    return end[-1] - end[0]


def ends(column: pa.BinaryArray) -> "memoryview[int]":
    """Where in its data the column begins, then where each of its values ends.

    Bytes of one column that stand behind each other: differences are sizes, and need no Arrow.
    """
    start, size_bytes = column.offset * _I32.size, (len(column) + 1) * _I32.size
    return memoryview(column.buffers()[1].slice(start, size_bytes)).cast("i")


def header_entries(headers: pa.MapArray) -> int:
    """How many headers all rows have."""
    return len(headers.keys)


def may_be_reserved(headers: pa.MapArray) -> bool:
    """Whether a header may be one that no producer may set: by one look at all names' bytes."""
    names = headers.keys.buffers()[2]
    return names is not None and holds_reserved(memoryview(names))


def header_counts(headers: pa.MapArray) -> pa.Int32Array:
    """How many headers each row has."""
    return pc.subtract(headers.offsets[1:], headers.offsets[:-1])


def header_bytes(headers: pa.MapArray) -> pa.Int32Array:
    """The bytes of names and values, a row."""
    # Off the offsets alone: rows are fewer than their headers, and no header is looked at.
    rows = headers.offsets
    upto = pc.add(*(_ends(each).take(rows) for each in (headers.keys, headers.items)))
    return pc.subtract(upto[1:], upto[:-1])


def _ends(column: pa.BinaryArray) -> pa.Int32Array:
    """Where in its data the column begins, then where each of its values ends."""
    offsets = column.buffers()[1]
    if offsets is None or offsets.size == 0:  # a column without a value need not have any
        offsets = pa.py_buffer(bytes(_I32.size))
    return pa.Array.from_buffers(pa.int32(), len(column) + 1, [None, offsets], offset=column.offset)


def verify_hashes(batch: pa.RecordBatch) -> None:
    """Check that each hash of a verified batch is that of its key.

    Raises:
        FrameCorrupt: one is not.
    """
    keys = batch.column(KEY).drop_null().to_pylist()
    if not hashes_of(keys).equals(batch.column(KEY_HASH).drop_null()):
        raise FrameCorrupt(reason="a key_hash is not the hash of its key")


def first_misrouted(
    batch: pa.RecordBatch, partition: int, router: Router, partitions: int, factor: int
) -> tuple[int, int] | None:
    """The first row of a verified batch with a key of another partition, and which that is."""
    hashes = batch.column(KEY_HASH)
    found = partitions_of(router, hashes, partitions, factor)
    if not found.null_count:
        expected = partition.to_bytes(HASH_BYTES, byteorder) * len(found)
        if fixed_bytes(found, HASH_BYTES) == expected:
            return None
    extremes = pc.min_max(found).as_py()
    if extremes["min"] in (None, partition) and extremes["max"] in (None, partition):
        return None
    row = pc.index(pc.not_equal(found, pa.scalar(partition, pa.uint64())), True).as_py()
    return row, partition_of(router, hashes[row].as_py(), partitions, factor)


def rows_with_subjects(batch: pa.RecordBatch, wanted: Iterable[int]) -> Ranges:
    """The rows, counted from 0, whose subject index is wanted."""
    hits = pc.is_in(batch.column(SUBJECT), pa.array(sorted(wanted), pa.uint16()))
    runs = pc.run_end_encode(hits)
    ends = runs.run_ends.to_pylist()
    return tuple(
        (start, end)
        for start, end, hit in zip([0, *ends], ends, runs.values.to_pylist(), strict=False)
        if hit
    )


def subjects(batch: pa.RecordBatch, names: tuple[str, ...]) -> list[str]:
    """The subject of each row, by name.

    Raises:
        FrameCorrupt: a row names one beyond the table.
    """
    if len(names) == 1:
        return [names[0]] * batch.num_rows
    try:
        return list(map(names.__getitem__, batch.column(SUBJECT).to_pylist()))
    except IndexError:
        raise FrameCorrupt(reason=f"a row names a subject beyond its {len(names)}") from None


def listed(batch: pa.RecordBatch, name: str) -> list[Any]:
    """A column as Python objects, named as in `dss_core.rows_layout.RowColumns`."""
    column = batch.column(_COLUMN_OF[name])
    if name == "headers":
        if not header_entries(column):
            return [()] * batch.num_rows
        return list(map(tuple, column.to_pylist()))
    values: list[Any] = column.to_pylist()
    return values
