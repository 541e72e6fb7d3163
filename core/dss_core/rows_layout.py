"""The rows layout: up to 31 records as fixed row heads and bytes, read without Arrow.

`dss_core.frame` defines the bytes. Invariant: `verify` and the readers never read past the end that
they are given, and raise only FrameCorrupt and RecordTooLarge. This module knows nothing of frame
headers, checksums or stamps: it is told where the rows begin.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from xxhash import xxh64_intdigest

from dss_core.errors import FrameCorrupt, RecordTooLarge
from dss_core.lane import holds_reserved, refuse_reserved
from dss_core.limits import KEY_BYTES_MAX, RECORDS, RecordLimits
from dss_core.progress import Ranges, normalised
from dss_core.routing import HASH_SEED

Headers = tuple[tuple[str, bytes], ...]
"""Of one record, in order; a name may repeat."""

KEY_ABSENT = 0xFFFF
ROW_HEAD = Struct("<IqHHH")
_ROW_HEAD_BYTES = ROW_HEAD.size
_HEADER_HEAD = Struct("<HH")
_U16 = Struct("<H")


class RowColumns(NamedTuple):
    """Records as columns of equal length."""

    payloads: list[bytes]
    keys: list[bytes | None]
    subjects: list[str]
    headers: list[Headers]
    timestamps_us: list[int]


def encode(
    payloads: Iterable[bytes],
    keys: Iterable[bytes | None],
    subjects: Iterable[int],
    headers: Iterable[Headers | None],
    timestamps_us: Iterable[int],
    limits: RecordLimits = RECORDS,
) -> bytes:
    """The rows.

    Raises:
        RecordTooLarge: a record is over the limit.
        HeaderReserved: no producer may set one of the headers.
        ValueError: a key or headers are over theirs; the message is the rule.
        TypeError, OverflowError, struct.error: a value is of the wrong type or range.
    """
    parts: list[bytes] = []
    add, head = parts.append, ROW_HEAD.pack
    rows = zip(payloads, keys, subjects, headers, timestamps_us, strict=True)
    for payload, key, subject, named, time_us in rows:
        encoded = encode_headers(named, limits) if named else b""
        size_bytes = len(payload) + len(encoded)
        if key is None:
            add(head(len(payload), time_us, subject, KEY_ABSENT, len(encoded)))
        else:
            if len(key) > KEY_BYTES_MAX:
                raise ValueError(f"a key has at most {KEY_BYTES_MAX} bytes")
            size_bytes += len(key)
            add(head(len(payload), time_us, subject, len(key), len(encoded)))
            add(key)
        if size_bytes > limits.record_bytes:
            size_bytes -= len(named or ()) * _HEADER_HEAD.size
            check_record_bytes(size_bytes, limits)
        add(payload)
        if encoded:
            add(encoded)
    return b"".join(parts)


def check_record_bytes(size_bytes: int, limits: RecordLimits = RECORDS) -> None:
    """Check key, payload, header names and values of a record, together.

    Raises:
        RecordTooLarge: they are over the limit.
    """
    if size_bytes > limits.record_bytes:
        raise RecordTooLarge(size_bytes=size_bytes, limit_bytes=limits.record_bytes)


def encode_headers(headers: Headers, limits: RecordLimits = RECORDS) -> bytes:
    """The headers of a record as they stand behind its payload.

    Raises:
        HeaderReserved: no producer may set one of them.
        ValueError: they are too many or too large, or a name is not encodable.
    """
    if not limits.reserved_headers:
        refuse_reserved(name for name, _ in headers)
    named = [(name.encode(), value) for name, value in headers]
    check_headers(len(named), sum(len(name) + len(value) for name, value in named), limits)
    return b"".join(
        _HEADER_HEAD.pack(len(name), len(value)) + name + value for name, value in named
    )


def check_headers(count: int, size_bytes: int, limits: RecordLimits = RECORDS) -> None:
    """Check how many headers a record has, and the bytes of their names and values.

    Raises:
        ValueError: a limit is passed; the message is the rule.
    """
    if count > limits.headers:
        raise ValueError(f"a record has at most {limits.headers} headers")
    if size_bytes > limits.header_bytes:
        raise ValueError(f"the headers of a record have at most {limits.header_bytes} bytes")


def decode_headers(raw: bytes) -> Headers:
    """The headers that stand behind a payload.

    Raises:
        FrameCorrupt: the lengths do not fit, or a name is not UTF-8.
    """
    headers: list[tuple[str, bytes]] = []
    at = 0
    try:
        while at < len(raw):
            name_bytes, value_bytes = _HEADER_HEAD.unpack_from(raw, at)
            value_at = at + _HEADER_HEAD.size + name_bytes
            name = raw[at + _HEADER_HEAD.size : value_at].decode()
            at = value_at + value_bytes
            headers.append((name, raw[value_at:at]))
    except (StructError, UnicodeDecodeError):
        raise FrameCorrupt(reason="the headers of a record are broken") from None
    if at != len(raw):
        raise FrameCorrupt(reason="the headers of a record are broken")
    return tuple(headers)


def verify(frame: bytes, at: int, records: int, subjects: int) -> None:
    """Check the rows from a position to the end of the frame.

    Raises:
        RecordTooLarge: a record is over the limit.
        HeaderReserved: no producer may set one of its headers.
        FrameCorrupt: a length, a subject index or the headers are wrong.
    """
    end = len(frame)
    for row in range(records):
        if at + ROW_HEAD.size > end:
            raise FrameCorrupt(reason=f"it ends within row {row}")
        payload_bytes, _, subject, key_bytes, headers_bytes = ROW_HEAD.unpack_from(frame, at)
        if subject >= subjects:
            raise FrameCorrupt(reason=f"row {row} names subject {subject} of {subjects}")
        size_bytes = payload_bytes + (0 if key_bytes == KEY_ABSENT else key_bytes)
        headers_at = at + ROW_HEAD.size + size_bytes
        at = headers_at + headers_bytes
        if at > end:
            raise FrameCorrupt(reason=f"it ends within row {row}")
        if headers_bytes:
            size_bytes += _verified_headers_bytes(frame[headers_at:at])
        check_record_bytes(size_bytes)
    if at != end:
        raise FrameCorrupt(reason=f"{end - at} bytes follow its last row")


def _verified_headers_bytes(raw: bytes) -> int:
    headers = decode_headers(raw)
    if holds_reserved(raw):
        refuse_reserved(name for name, _ in headers)
    size_bytes = len(raw) - len(headers) * _HEADER_HEAD.size
    try:
        check_headers(len(headers), size_bytes)
    except ValueError as broken:
        raise FrameCorrupt(reason=str(broken)) from broken
    return size_bytes


def keys(frame: bytes, at: int, records: int) -> Iterator[bytes | None]:
    """The keys of verified rows."""
    for _ in range(records):
        payload_bytes, _, _, key_bytes, headers_bytes = ROW_HEAD.unpack_from(frame, at)
        at += ROW_HEAD.size
        if key_bytes == KEY_ABSENT:
            yield None
        else:
            yield frame[at : at + key_bytes]
            at += key_bytes
        at += payload_bytes + headers_bytes


def key_hashes(frames: bytes, summaries: Iterable[tuple[int, ...]]) -> list[int]:
    """The routing hashes of the keys in verified frames: 0 where there is none, and 1 where that is
    the hash.

    Raises:
        FrameCorrupt: the rows of a frame do not fit into it.
    """
    hashes: list[int] = []
    add, unpack, digest = hashes.append, ROW_HEAD.unpack_from, xxh64_intdigest
    table, table_bytes, subjects = b"", 0, 0
    try:
        for _, at, _, subject_count, records, _, _ in summaries:
            # Most often the subject table is that of the frame before.
            if subjects != subject_count or frames[at : at + table_bytes] != table:
                _, end = _names_at(frames, at, subject_count)
                table, table_bytes, subjects = frames[at:end], end - at, subject_count
            at += table_bytes
            for _ in range(records):
                payload_bytes, _, _, key_bytes, headers_bytes = unpack(frames, at)
                at += _ROW_HEAD_BYTES
                if key_bytes == KEY_ABSENT:
                    add(0)
                else:
                    add(digest(frames[at : at + key_bytes], HASH_SEED) or 1)
                    at += key_bytes
                at += payload_bytes + headers_bytes
    except (StructError, UnicodeDecodeError):
        raise FrameCorrupt(reason="its rows are broken") from None
    return hashes


def rows_with_subjects(frame: bytes, at: int, records: int, wanted: frozenset[int]) -> Ranges:
    """The rows, counted from 0, whose subject index is wanted.

    Raises:
        FrameCorrupt: the frame ends within its rows.
    """
    found: list[int] = []
    try:
        for row in range(records):
            payload_bytes, _, subject, key_bytes, headers_bytes = ROW_HEAD.unpack_from(frame, at)
            if subject in wanted:
                found.append(row)
            at += ROW_HEAD.size + payload_bytes + headers_bytes
            at += 0 if key_bytes == KEY_ABSENT else key_bytes
    except StructError:
        raise FrameCorrupt(reason="it ends within its rows") from None
    return normalised((row, row + 1) for row in found)


def read(frames: bytes, summaries: Iterable[tuple[int, ...]]) -> RowColumns:
    """The records of verified frames, joined; `dss_core.frame.Summary` says where they are.

    Raises:
        FrameCorrupt: the rows of a frame do not fit into it.
    """
    columns = RowColumns([], [], [], [], [])
    # Their `append` is not bound to names: the interpreter does it in one step where it stands.
    payloads, keys, subjects, headers, timestamps_us = columns
    unpack = ROW_HEAD.unpack_from
    table, table_bytes, names = b"", 0, list[str]()
    try:
        for _, at, _, subject_count, records, _, _ in summaries:
            # Most often the subject table is that of the frame before.
            same = table and len(names) == subject_count
            if not same or frames[at : at + table_bytes] != table:
                names, end = _names_at(frames, at, subject_count)
                table, table_bytes, subject = frames[at:end], end - at, names[0]
            at += table_bytes
            if records > 1 or subject_count > 1:
                _read_rows(frames, at, names, records, columns)
                continue
            # One record with its own subject table is what a lone `send` makes.
            payload_bytes, time_us, _, key_bytes, headers_bytes = unpack(frames, at)
            at += _ROW_HEAD_BYTES
            if key_bytes == KEY_ABSENT:
                keys.append(None)
            else:
                end = at + key_bytes
                keys.append(frames[at:end])
                at = end
            end = at + payload_bytes
            payloads.append(frames[at:end])
            subjects.append(subject)
            timestamps_us.append(time_us)
            if headers_bytes:
                headers.append(decode_headers(frames[end : end + headers_bytes]))
            else:
                headers.append(())
    except (StructError, UnicodeDecodeError, IndexError):
        raise FrameCorrupt(reason="its rows are broken") from None
    return columns


def _names_at(frames: bytes, at: int, count: int) -> tuple[list[str], int]:
    """The subjects of a table, and where it ends."""
    names: list[str] = []
    for _ in range(count):
        end = at + 2 + int(_U16.unpack_from(frames, at)[0])
        names.append(frames[at + 2 : end].decode())
        at = end
    return names, at


def _read_rows(frames: bytes, at: int, names: list[str], records: int, columns: RowColumns) -> None:
    payloads, keys, subjects, headers, timestamps_us = columns
    unpack = ROW_HEAD.unpack_from
    for _ in range(records):
        payload_bytes, time_us, subject, key_bytes, headers_bytes = unpack(frames, at)
        timestamps_us.append(time_us)
        subjects.append(names[subject])
        at += _ROW_HEAD_BYTES
        if key_bytes == KEY_ABSENT:
            keys.append(None)
        else:
            keys.append(frames[at : at + key_bytes])
            at += key_bytes
        end = at + payload_bytes
        payloads.append(frames[at:end])
        at = end + headers_bytes
        headers.append(decode_headers(frames[end:at]) if headers_bytes else ())
