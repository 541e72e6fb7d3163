"""Frames: the unit of append, storage, fetch and transfer.

This docstring defines every byte. `subject_table`, `rows_layout` and `arrow_layout` write and read
their parts as defined here; no other module takes a frame apart. All numbers are little endian. A
frame is a header, a subject table, and the records in one of two layouts::

    0        4        8  9  10   12       16   18   20               36       44       52
    +--------+--------+--+--+----+--------+----+----+----------------+--------+--------+
    | magic  | frame  |la|co|sche| records|part|sub-| producer_id    |sequence| body   |
    | "DSSF" | bytes  |yo|de|ma  |        |ion |ject| 16 bytes       |        |checksum|
    +--------+--------+--+--+----+--------+----+----+----------------+--------+--------+
      u32      u32     u8 u8 u16   u32     u16  u16                    u64      u64

    52        60        68      72      76        84
    +---------+---------+-------+-------+---------+- - - - - - - - -+- - - - - - - - - - -+
    | base    | append  | topic |storage| stamp   | subject table   | body                |
    | offset  | time us | epoch |topicid| checksum| (u16 n, n bytes | rows, or one Arrow  |
    |         |         |       |       |         |  of UTF-8) each | record batch        |
    +---------+---------+-------+-------+---------+- - - - - - - - -+- - - - - - - - - - -+
      u64       u64      u32     u32     u64

- The producer writes bytes 0..52 and those from 84 on; *body checksum* is xxh3_64 of bytes 0..44
  and 84..end. The daemon writes the *stamp*, bytes 52..84, zero until then; *stamp checksum* is
  xxh3_64 of bytes 0..76. So no bit of a stored frame is without a checksum, and a stamp never
  touches what the producer wrote.
- layout: 1 rows, 2 arrow. codec: 0, reserved for compression. schema: 1.
- records: 1..65,535. subjects: the length of the subject table, 1..4,096; it
  has at most 256 KiB.

Rows layout, below 32 records; record after record, without padding::

    0          4                     12      14      16      18
    +----------+---------------------+-------+-------+-------+- - -+- - - - -+- - - - -+
    | payload  | timestamp us        |subject|key    |headers| key | payload | headers |
    | bytes u32| i64                 |u16    |u16    |u16    |     |         |         |
    +----------+---------------------+-------+-------+-------+- - -+- - - - -+- - - - -+

  subject is an index into the subject table; 0xFFFF bytes of key mean that there is none, which
  is not an empty one. A header is u16 name bytes, u16 value bytes, name, value; the u16 in the
  row head is the bytes of all of them.

Arrow layout, from 32 records up: zeros up to the next multiple of 8 from the frame's start, then
one Arrow IPC message of a record batch, without its schema and uncompressed; the frame's length
is a multiple of 8. `dss_core.arrow_layout` has the schema.

Invariant: bytes are untrusted. `verify` lets nothing but FrameCorrupt, RecordTooLarge,
FrameTooLarge and HeaderReserved out, whatever it is given. This module does not know how records
become columns, and loads Arrow only for a frame that needs it.
"""

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, NamedTuple

from xxhash import xxh3_64, xxh3_64_intdigest

from dss_core import rows_layout
from dss_core.errors import FrameCorrupt, FrameTooLarge
from dss_core.limits import (
    CHECKSUM_COPY_BYTES_MAX,
    FRAME_BYTES_MAX,
    FRAME_RECORDS_MAX,
    FRAME_SUBJECTS_MAX,
    ROWS_LAYOUT_RECORDS_BELOW,
    SUBJECT_TABLE_BYTES_MAX,
)
from dss_core.progress import Ranges
from dss_core.subject_table import Buffer, entries_end, verified_subjects
from dss_core.subject_table import subjects_of as subjects_of

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"DSSF"
_MAGIC_NUMBER = int.from_bytes(MAGIC, "little")
HEADER_BYTES = 84
LAYOUT_ROWS = 1
LAYOUT_ARROW = 2
CODEC_NONE = 0
SCHEMA_ID = 1
PRODUCER_ID_BYTES = 16

_RECORDS_MAX = {LAYOUT_ROWS: ROWS_LAYOUT_RECORDS_BELOW - 1, LAYOUT_ARROW: FRAME_RECORDS_MAX}

_HEADER = Struct("<4xIBBHIHH16sQQQQIIQ")
_PRODUCED = Struct("<4sIBBHIHH16sQ")
_CHECKSUM = Struct("<Q")
_STAMP = Struct("<QQII")
_SUMMARY = Struct("<IIB3xI2xH24xQQQ")
_SPAN = Struct("<4xI4xI36xQ")

_PRODUCED_END = 44
STAMP_AT = 52
_STAMP_CHECKSUM_AT = 76
_APPEND_TIME = Struct("<Q")
_APPEND_TIME_AT = 60
_UNSTAMPED = bytes(HEADER_BYTES - STAMP_AT)


class Header(NamedTuple):
    """The fixed head of a frame; the last five fields are zero until the daemon stamps it."""

    frame_bytes: int
    layout: int
    codec: int
    schema_id: int
    records: int
    partition: int
    subjects: int
    producer_id: bytes
    sequence: int
    body_checksum: int
    base_offset: int
    append_time_us: int
    topic_epoch: int
    storage_topic_id: int
    stamp_checksum: int


class Verified(NamedTuple):
    """A frame that `examine` has taken apart, so that no later check does it again."""

    frame: Buffer
    header: Header
    subject_table: bytes
    subjects: tuple[str, ...]
    body_at: int
    batch: "pa.RecordBatch | None"
    """Its records, in the arrow layout."""


Summary = tuple[int, int, int, int, int, int, int]
"""Of a frame among others: layout, where its subject table begins, where the frame ends, subjects,
records, base offset, append time in microseconds. A plain tuple, because one is made per frame, and
a frame may hold a single record: named tuples take five times as long to make."""

Stored = tuple[int, int, int, bytes, int, int, int, int]
"""Of a stored frame among others: where it begins and ends, partition, producer, sequence, records,
base offset, append time in microseconds. A plain tuple for the same reason."""


def read_header(buffer: Buffer, at: int = 0) -> Header:
    """The header at a position; the rest of the frame need not be there.

    Raises:
        FrameCorrupt: no header stands there, or a field is out of its bounds.
    """
    if len(buffer) - at < HEADER_BYTES:
        raise FrameCorrupt(reason="it ends within its header")
    if buffer[at : at + 4] != MAGIC:
        raise FrameCorrupt(reason="it does not start with the magic number")
    header = Header._make(_HEADER.unpack_from(buffer, at))
    reason = _broken_bound(header)
    if reason is not None:
        raise FrameCorrupt(reason=reason)
    return header


def _broken_bound(header: Header) -> str | None:
    """What is wrong with the header's fields, each by itself; None where all are right."""
    if not HEADER_BYTES < header.frame_bytes <= FRAME_BYTES_MAX:
        return f"its length says {header.frame_bytes} bytes"
    if (header.codec, header.schema_id) != (CODEC_NONE, SCHEMA_ID):
        return f"codec {header.codec} or schema {header.schema_id} is unknown"
    records_max = _RECORDS_MAX.get(header.layout)
    if records_max is None:
        return f"layout {header.layout} is unknown"
    if not 1 <= header.records <= records_max:
        return f"layout {header.layout} does not hold {header.records} records"
    if not 1 <= header.subjects <= FRAME_SUBJECTS_MAX:
        return f"it says that it has {header.subjects} subjects"
    return None


def assemble(
    layout: int,
    *,
    records: int,
    partition: int,
    subjects: int,
    producer_id: bytes,
    sequence: int,
    parts: list[bytes],
) -> bytes:
    """A frame, not stamped, from its subject table and body, which the parts hold end to end.

    Raises:
        FrameTooLarge: it would be over the limit.
    """
    return b"".join(
        assembled(
            layout,
            records=records,
            partition=partition,
            subjects=subjects,
            producer_id=producer_id,
            sequence=sequence,
            parts=parts,
        )
    )


def assembled(
    layout: int,
    *,
    records: int,
    partition: int,
    subjects: int,
    producer_id: bytes,
    sequence: int,
    parts: Sequence[Buffer],
) -> list[Buffer]:
    """What `assemble` joins: for who writes it, or hands it on, piece by piece.

    Raises:
        FrameTooLarge: it would be over the limit.
    """
    assert len(producer_id) == PRODUCER_ID_BYTES
    frame_bytes = HEADER_BYTES + sum(map(len, parts))
    if frame_bytes > FRAME_BYTES_MAX:
        raise FrameTooLarge(size_bytes=frame_bytes, records=records)
    produced = _PRODUCED.pack(
        MAGIC,
        frame_bytes,
        layout,
        CODEC_NONE,
        SCHEMA_ID,
        records,
        partition,
        subjects,
        producer_id,
        sequence,
    )
    checksum = xxh3_64(produced)
    for part in parts:
        checksum.update(part)
    head = produced + _CHECKSUM.pack(checksum.intdigest()) + _UNSTAMPED
    return [head, *parts]


def stamped(
    frame: Buffer,
    *,
    base_offset: int,
    append_time_us: int,
    topic_epoch: int,
    storage_topic_id: int,
) -> bytes:
    """The 84 header bytes of a verified frame with the daemon's stamp; the rest stays as it is."""
    head = bytes(frame[:STAMP_AT]) + _STAMP.pack(
        base_offset, append_time_us, topic_epoch, storage_topic_id
    )
    return head + _CHECKSUM.pack(xxh3_64_intdigest(head))


def append_time_us(frame: Buffer) -> int:
    """When a stamped frame was appended; nothing of it is checked."""
    (time_us,) = _APPEND_TIME.unpack_from(frame, _APPEND_TIME_AT)
    return int(time_us)


def verify(frame: bytes) -> Header:
    """`examine` a frame; returns its header.

    Raises:
        FrameTooLarge, RecordTooLarge, HeaderReserved, FrameCorrupt: as `examine`.
    """
    return examine(frame).header


def examine(frame: Buffer) -> Verified:
    """Check all that can be wrong with a frame from a producer, but its routing.

    Raises:
        FrameTooLarge: it has more bytes or records than a frame may have.
        RecordTooLarge: one of its records is over the limit.
        HeaderReserved: one of its records has a header that no producer may set.
        FrameCorrupt: anything else.
    """
    verified = opened(frame)
    verify_records(verified)
    return verified


def opened(frame: Buffer) -> Verified:
    """Check all that `examine` does but the records, whose batch is read and not looked at.

    Raises:
        FrameTooLarge, FrameCorrupt: as `examine`.
    """
    if len(frame) > FRAME_BYTES_MAX:
        raise FrameTooLarge(size_bytes=len(frame), records="?")
    if len(frame) >= HEADER_BYTES:
        records = _HEADER.unpack_from(frame)[4]
        if frame[:4] == MAGIC and records > FRAME_RECORDS_MAX:
            raise FrameTooLarge(size_bytes=len(frame), records=records)
    header = read_header(frame)
    if header.frame_bytes != len(frame):
        raise FrameCorrupt(
            reason=f"it has {len(frame)} bytes where its header says {header.frame_bytes}"
        )
    if frame[STAMP_AT:HEADER_BYTES] != _UNSTAMPED:
        raise FrameCorrupt(reason="it carries a stamp, which only the daemon gives")
    _verify_body(frame, 0, header)
    table = subject_table(frame, 0, header)
    if len(table) > SUBJECT_TABLE_BYTES_MAX:
        raise FrameCorrupt(reason=f"its subject table has {len(table)} bytes")
    subjects = verified_subjects(table, header.subjects)
    body_at = body_start(0, HEADER_BYTES + len(table), header.layout)
    batch = _batch_of(frame, body_at) if header.layout == LAYOUT_ARROW else None
    return Verified(frame, header, table, subjects, body_at, batch)


def _batch_of(frame: Buffer, body_at: int) -> "pa.RecordBatch":
    from dss_core import arrow_layout

    return arrow_layout.uncompressed(frame, body_at)


def verify_records(verified: Verified) -> None:
    """Check the records of an opened frame.

    Raises:
        RecordTooLarge, HeaderReserved, FrameCorrupt: as `examine`.
    """
    frame, header, _, _, body_at, batch = verified
    if batch is None:
        rows_layout.verify(bytes(frame), body_at, header.records, header.subjects)
        return
    from dss_core import arrow_layout

    arrow_layout.verify(batch, len(frame), header.records, header.subjects)


def verify_stored(buffer: Buffer, at: int = 0) -> Header:
    """Check both checksums of a stamped frame.

    Raises:
        FrameCorrupt: a bound or a checksum is wrong, or the buffer ends within the frame.
    """
    header = verify_stamp(buffer, at)
    if len(buffer) - at < header.frame_bytes:
        raise FrameCorrupt(reason="it ends within its body")
    _verify_body(buffer, at, header)
    return header


def verify_stamp(buffer: Buffer, at: int = 0) -> Header:
    """Check the header of a stamped frame, whose other bytes need not be there.

    Raises:
        FrameCorrupt: a bound or the stamp's checksum is wrong.
    """
    header = read_header(buffer, at)
    if xxh3_64_intdigest(bytes(buffer[at : at + _STAMP_CHECKSUM_AT])) != header.stamp_checksum:
        raise FrameCorrupt(reason="the checksum of its stamp does not match")
    return header


def _verify_body(buffer: Buffer, at: int, header: Header) -> None:
    if _body_checksum(buffer, at, at + header.frame_bytes) != header.body_checksum:
        raise FrameCorrupt(reason="the checksum of its body does not match")


def _body_checksum(buffer: Buffer, at: int, end: int) -> int:
    if end - at <= CHECKSUM_COPY_BYTES_MAX:
        produced = bytes(buffer[at : at + _PRODUCED_END])
        return xxh3_64_intdigest(produced + bytes(buffer[at + HEADER_BYTES : end]))
    with memoryview(buffer) as view:
        checksum = xxh3_64(view[at : at + _PRODUCED_END])
        checksum.update(view[at + HEADER_BYTES : end])
    return checksum.intdigest()


def headers_of(frames: Buffer) -> list[tuple[int, Header]]:
    """Position and header of each of consecutive frames.

    Raises:
        FrameCorrupt: a header is wrong, or the last frame is not whole.
    """
    found: list[tuple[int, Header]] = []
    at = 0
    while at < len(frames):
        header = read_header(frames, at)
        found.append((at, header))
        at += header.frame_bytes
    if at != len(frames):
        raise FrameCorrupt(reason="it ends within its body")
    return found


def summaries_of(frames: bytes, *, checksums: bool) -> list[Summary]:
    """What reading the records of consecutive frames takes; body checksums verified on request.

    Raises:
        FrameCorrupt: a header or a body checksum is wrong, or the last frame is not whole.
    """
    found: list[Summary] = []
    at, length = 0, len(frames)
    unpack, digest, add = _SUMMARY.unpack_from, xxh3_64_intdigest, found.append
    while at < length:
        try:
            magic, frame_bytes, layout, records, subjects, checksum, base, time_us = unpack(
                frames, at
            )
        except StructError:
            raise FrameCorrupt(reason="it ends within its header") from None
        end = at + frame_bytes
        table_at = at + HEADER_BYTES
        if magic != _MAGIC_NUMBER or not table_at < end <= length:
            raise FrameCorrupt(reason=f"no whole frame stands at byte {at}")
        if checksums:
            if frame_bytes <= CHECKSUM_COPY_BYTES_MAX:
                actual = digest(frames[at : at + _PRODUCED_END] + frames[table_at:end])
            else:
                actual = _body_checksum(frames, at, end)
            if actual != checksum:
                raise FrameCorrupt(reason="the checksum of its body does not match")
        add((layout, table_at, end, subjects, records, base, time_us))
        at = end
    return found


def whole_frames(buffer: bytes, at: int, storage_topic_id: int) -> list[Stored]:
    """Consecutive stamped frames of a storage topic from a position on, as far as they are whole.

    Each has passed what `verify_stored` checks; it takes a third of the time.
    """
    found: list[Stored] = []
    kinds: set[tuple[int, ...]] = set()
    length = len(buffer)
    unpack, digest, add = _HEADER.unpack_from, xxh3_64_intdigest, found.append
    while at + HEADER_BYTES < length and buffer.startswith(MAGIC, at):
        fields = unpack(buffer, at)
        end = at + fields[0]
        table_at = at + HEADER_BYTES
        if not table_at < end <= length or fields[0] > FRAME_BYTES_MAX:
            break
        if fields[13] != storage_topic_id:
            break
        if digest(buffer[at : at + _STAMP_CHECKSUM_AT]) != fields[14]:
            break
        if end - at <= CHECKSUM_COPY_BYTES_MAX:
            checksum = digest(buffer[at : at + _PRODUCED_END] + buffer[table_at:end])
        else:
            checksum = _body_checksum(buffer, at, end)
        if checksum != fields[9]:
            break
        kind = fields[1:7]
        if kind not in kinds:
            # What else has bounds repeats from frame to frame.
            if _broken_bound(Header._make(fields)) is not None:
                break
            kinds.add(kind)
        add((at, end, fields[5], fields[7], fields[8], fields[4], fields[10], fields[11]))
        at = end
    return found


def spans_of(frames: bytes) -> tuple[list[int], list[int]]:
    """Where each of consecutive frames begins, and its base offset; then where the last one ends.

    Raises:
        FrameCorrupt: the last frame is not whole, or a header is wrong.
    """
    starts, bases = [0], []
    at = end_offset = 0
    unpack = _SPAN.unpack_from
    try:
        while at < len(frames):
            frame_bytes, records, base = unpack(frames, at)
            if frame_bytes <= HEADER_BYTES:
                raise FrameCorrupt(reason=f"no whole frame stands at byte {at}")
            at += frame_bytes
            end_offset = base + records
            starts.append(at)
            bases.append(base)
    except StructError:
        raise FrameCorrupt(reason="it ends within its header") from None
    if at != len(frames):
        raise FrameCorrupt(reason="it ends within its body")
    bases.append(end_offset)
    return starts, bases


def subject_table_end(buffer: Buffer, at: int, subjects: int) -> int | None:
    """Where the subject table of the frame at a position ends; None if the buffer ends before."""
    return entries_end(buffer, at + HEADER_BYTES, subjects)


def subject_table(frame: Buffer, at: int, header: Header) -> bytes:
    """The bytes of the subject table: equal bytes mean the same subjects in the same order.

    Raises:
        FrameCorrupt: the table is longer than the frame.
    """
    end = subject_table_end(frame, at, header.subjects)
    if end is None or end > at + header.frame_bytes:
        raise FrameCorrupt(reason="its subject table is longer than itself")
    return bytes(frame[at + HEADER_BYTES : end])


def subjects_and_body_at(frames: Buffer, summary: Summary) -> tuple[tuple[str, ...], int]:
    """The subjects of a frame among others, and where its body begins.

    Raises:
        FrameCorrupt: the subject table is broken.
    """
    layout, table_at, frame_end, subjects, *_ = summary
    at = table_at - HEADER_BYTES
    end = subject_table_end(frames, at, subjects)
    if end is None or end > frame_end:
        raise FrameCorrupt(reason="its subject table is longer than itself")
    names = subjects_of(bytes(frames[table_at:end]), subjects)
    return names, body_start(at, end, layout)


def body_start(at: int, table_end: int, layout: int) -> int:
    """Where the body of the frame at a position begins, given where its subject table ends."""
    return table_end if layout == LAYOUT_ROWS else table_end + (at - table_end) % 8


def rows_with_subjects(frame: bytes, at: int, header: Header, wanted: frozenset[int]) -> Ranges:
    """The rows, counted from 0, whose subject index is wanted.

    Raises:
        FrameCorrupt: the frame's body cannot be read.
    """
    table_end = subject_table_end(frame, at, header.subjects)
    if table_end is None:
        raise FrameCorrupt(reason="its subject table is longer than itself")
    body_at = body_start(at, table_end, header.layout)
    if header.layout == LAYOUT_ROWS:
        return rows_layout.rows_with_subjects(frame, body_at, header.records, wanted)
    from dss_core import arrow_layout

    batch = arrow_layout.read(frame, body_at, at + header.frame_bytes)
    return arrow_layout.rows_with_subjects(batch, wanted)
