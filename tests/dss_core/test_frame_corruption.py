"""Damage and forgery: whatever the bytes, a frame is right or FrameCorrupt, and never worse."""

import struct
from collections.abc import Callable

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from dss_core import arrow_layout
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import FrameCorrupt, FrameTooLarge, RecordTooLarge
from dss_core.frame import (
    HEADER_BYTES,
    LAYOUT_ARROW,
    assemble,
    headers_of,
    stamped,
    verify,
    verify_stored,
    whole_frames,
)
from dss_core.frames_together import examine_together
from dss_core.limits import HEADER_BYTES_MAX, HEADERS_MAX, KEY_BYTES_MAX, RECORD_BYTES_MAX
from dss_core.subject_table import encoded_subject
from support.proof_share import share

PRODUCER = bytes(range(16))
REFUSALS = (FrameCorrupt, RecordTooLarge, FrameTooLarge)


def built(records: int) -> bytes:
    columns = Columns(
        payloads=[b"p%d" % row for row in range(records)],
        keys=[b"key" if row % 3 else None for row in range(records)],
        subjects=[f"s/{row % 2}" for row in range(records)],
        headers=[(("h", b"1"),) if row % 5 == 0 else None for row in range(records)],
        timestamps_us=5,
    )
    return build_frame(columns, partition=3, producer_id=PRODUCER, sequence=7)


def stored(frame: bytes) -> bytes:
    stamp = stamped(frame, base_offset=1, append_time_us=2, topic_epoch=3, storage_topic_id=4)
    return stamp + frame[HEADER_BYTES:]


def sealed(frame: bytes) -> bytes:
    """The frame with a body checksum that fits, as a forger would make it."""
    digest = xxhash.xxh3_64_intdigest(frame[:44] + frame[84:])
    return frame[:44] + struct.pack("<Q", digest) + frame[52:]


def verify_first(frames: bytes) -> None:
    """What a scan of many frames makes of the first one."""
    if not whole_frames(frames, 0, 4):
        raise FrameCorrupt(reason="it is not whole")


def restamped(frame: bytes) -> bytes:
    """A stored frame with checksums that fit, as a forger would make it."""
    frame = sealed(frame)
    return frame[:76] + struct.pack("<Q", xxhash.xxh3_64_intdigest(frame[:76])) + frame[84:]


FRAMES = {"rows": built(3), "arrow": built(32)}
layouts = pytest.mark.parametrize("layout", FRAMES)
views = pytest.mark.parametrize(
    ("view", "check"),
    [(bytes, verify), (stored, verify_stored), (stored, verify_first)],
    ids=["produced", "stored", "among others"],
)


@layouts
@views
def test_every_truncation_is_detected(
    layout: str, view: Callable[[bytes], bytes], check: Callable[[bytes], object]
) -> None:
    frame = view(FRAMES[layout])
    check(frame)
    for length in range(len(frame)):
        with pytest.raises(FrameCorrupt):
            check(frame[:length])


def test_a_batch_that_claims_to_be_the_end_of_a_stream_is_corrupt() -> None:
    frame = FRAMES["arrow"]
    message_at = frame.index(b"\xff\xff\xff\xff", HEADER_BYTES)
    with pytest.raises(FrameCorrupt):
        verify(sealed(frame[: message_at + 4] + bytes(4) + frame[message_at + 8 :]))


@layouts
@views
def test_every_flipped_bit_is_detected(
    layout: str, view: Callable[[bytes], bytes], check: Callable[[bytes], object]
) -> None:
    frame = bytearray(view(FRAMES[layout]))
    for bit in range(8 * len(frame)):
        frame[bit // 8] ^= 1 << bit % 8
        with pytest.raises(REFUSALS):
            check(bytes(frame))
        frame[bit // 8] ^= 1 << bit % 8


@layouts
def test_every_flipped_bit_of_the_produced_part_is_detected_while_decoding(layout: str) -> None:
    frame = bytearray(stored(FRAMES[layout]))
    for bit in [*range(8 * 52), *range(8 * HEADER_BYTES, 8 * len(frame), 5)]:
        frame[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FrameCorrupt):
            decode(bytes(frame))
        frame[bit // 8] ^= 1 << bit % 8


@layouts
def test_many_frames_are_held_to_the_same_bounds_as_one(layout: str) -> None:
    frame = stored(FRAMES[layout])
    for bit in range(8 * 44):
        forged = bytearray(frame)
        forged[bit // 8] ^= 1 << bit % 8
        whole = restamped(bytes(forged))
        accepted = len(whole_frames(whole, 0, 4)) == 1
        try:
            verify_stored(whole)
        except FrameCorrupt:
            assert not accepted
        else:
            assert accepted


@given(st.binary(max_size=300))
def test_garbage_is_never_a_frame(garbage: bytes) -> None:
    for text in (garbage, b"DSSF" + garbage):
        for check in (verify, verify_stored, verify_first, decode):
            if not text and check is decode:
                continue
            with pytest.raises(REFUSALS):
                check(text)
        if text:
            with pytest.raises(FrameCorrupt):
                headers_of(text)


def passes_among_others(frame: bytes) -> bool:
    """Whether it is accepted beside one with which nothing is wrong."""
    try:
        examine_together([frame, FRAMES["arrow"]])
    except REFUSALS:
        return False
    return True


def check_forgery(frame: bytes) -> bool:
    """Whether the frame is accepted; if so, all that it holds must be readable."""
    try:
        header = verify(frame)
    except REFUSALS:
        assert not passes_among_others(frame)
        return False
    assert passes_among_others(frame)
    batch = decode(frame)
    columns = (batch.payloads, batch.keys, batch.subjects, batch.headers, batch.timestamps_us)
    assert {len(column) for column in columns} == {header.records}
    assert all(value.encode() for value in batch.subjects)
    assert batch.to_arrow().num_rows == header.records
    return True


def without_checksum(frame: bytes | bytearray) -> list[int]:
    """Positions that a forger may change at will."""
    return [*range(44), *range(HEADER_BYTES, len(frame))]


@layouts
def test_every_flipped_bit_under_a_fitting_checksum_is_refused_or_readable(layout: str) -> None:
    frame = bytearray(FRAMES[layout])
    accepted = 0
    for at in without_checksum(frame):
        for bit in share((at % 8,), range(0, 8, 1 if layout == "rows" else 3)):
            frame[at] ^= 1 << bit
            accepted += check_forgery(sealed(bytes(frame)))
            frame[at] ^= 1 << bit
    assert accepted > 0


@layouts
@given(st.data())
def test_forged_bytes_are_refused_or_readable(layout: str, data: st.DataObject) -> None:
    frame = bytearray(FRAMES[layout])
    positions = st.sampled_from(without_checksum(frame))
    values = st.sampled_from([0, 1, 0x7F, 0x80, 0xFE, 0xFF]) | st.integers(0, 255)
    for at, value in data.draw(st.lists(st.tuples(positions, values), min_size=1, max_size=6)):
        frame[at] = value
    check_forgery(sealed(bytes(frame)))


@layouts
@given(st.data())
def test_a_forged_length_is_refused_or_readable(layout: str, data: st.DataObject) -> None:
    frame = FRAMES[layout]
    end = data.draw(st.integers(HEADER_BYTES + 1, len(frame)))
    cut = frame[:end] + data.draw(st.binary(max_size=64))
    check_forgery(sealed(cut[:4] + struct.pack("<I", len(cut)) + cut[8:]))


def rows_frame(rows: bytes, records: int = 1) -> bytes:
    return assemble(
        1,
        records=records,
        partition=0,
        subjects=1,
        producer_id=PRODUCER,
        sequence=0,
        parts=[encoded_subject("s"), rows],
    )


def row(
    *, payload: bytes = b"", key: bytes | None = None, headers: bytes = b"", subject: int = 0
) -> bytes:
    key_bytes = 0xFFFF if key is None else len(key)
    head = struct.pack("<IqHHH", len(payload), 0, subject, key_bytes, len(headers))
    return head + (key or b"") + payload + headers


def test_rows_may_use_their_limits_to_the_full() -> None:
    verify(rows_frame(row(payload=bytes(RECORD_BYTES_MAX - 3), key=b"abc")))
    verify(rows_frame(row(key=bytes(KEY_BYTES_MAX))))
    verify(
        rows_frame(
            row(headers=struct.pack("<HH", 1, HEADER_BYTES_MAX - 1) + b"h" * HEADER_BYTES_MAX)
        )
    )


@pytest.mark.parametrize(
    "rows",
    [
        row(subject=1),
        row() + b"x",
        row()[:-1],
        row(payload=b"abc")[:-1],
        row(headers=b"abc"),
        row(headers=struct.pack("<HH", 1, 0) + b"\xff"),
        row(headers=struct.pack("<HH", 2, 0) + b"h"),
        row(headers=struct.pack("<HH", 0, 0) * (HEADERS_MAX + 1)),
        row(headers=struct.pack("<HH", 1, HEADER_BYTES_MAX) + b"h" * (HEADER_BYTES_MAX + 1)),
        b"",
    ],
)
def test_broken_rows_are_corrupt(rows: bytes) -> None:
    with pytest.raises(FrameCorrupt):
        verify(rows_frame(rows))


def test_a_row_over_the_limit_of_a_record_is_told_by_its_size() -> None:
    with pytest.raises(RecordTooLarge) as raised:
        verify(rows_frame(row(payload=bytes(RECORD_BYTES_MAX), key=b"k")))
    assert raised.value.fields["size_bytes"] == str(RECORD_BYTES_MAX + 1)


def test_the_rows_layout_ends_below_32_records() -> None:
    verify(rows_frame(row() * 31, 31))
    with pytest.raises(FrameCorrupt):
        verify(rows_frame(row() * 32, 32))


def batch_of(records: int = 32, **changes: pa.Array) -> pa.RecordBatch:
    columns = {
        "subject": pa.array([0] * records, pa.uint16()),
        "key": pa.array([b"k"] * records, pa.binary()),
        "key_hash": pa.array([1] * records, pa.uint64()),
        "payload": pa.array([b"p"] * records, pa.binary()),
        "headers": pa.array([()] * records, arrow_layout.HEADERS_TYPE),
        "timestamp_us": pa.array([5] * records, pa.int64()),
    } | changes
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def arrow_frame(body: bytes, records: int = 32) -> bytes:
    table = encoded_subject("subjects.of.18byte")  # with its length and the header, 13 times 8
    assert (HEADER_BYTES + len(table)) % 8 == 0
    return assemble(
        LAYOUT_ARROW,
        records=records,
        partition=0,
        subjects=1,
        producer_id=PRODUCER,
        sequence=0,
        parts=[table, body],
    )


def test_a_batch_of_the_schema_is_accepted() -> None:
    verify(arrow_frame(batch_of().serialize().to_pybytes()))


@pytest.mark.parametrize(
    "changes",
    [
        {"subject": pa.array([0] * 31 + [1], pa.uint16())},
        {"subject": pa.array([0] * 31 + [None], pa.uint16())},
        {"payload": pa.array([b"p"] * 31 + [None], pa.binary())},
        {"timestamp_us": pa.array([5] * 31 + [None], pa.int64())},
        {"headers": pa.array([()] * 31 + [None], arrow_layout.HEADERS_TYPE)},
        {"headers": pa.array([()] * 31 + [[("h", None)]], arrow_layout.HEADERS_TYPE)},
        {"key": pa.array([b"k"] * 31 + [None], pa.binary())},
        {"key_hash": pa.array([1] * 31 + [None], pa.uint64())},
        {
            "key": pa.array([None] + [b"k"] * 31, pa.binary()),
            "key_hash": pa.array([1] * 31 + [None], pa.uint64()),
        },
        {"key": pa.array([b"k" * (KEY_BYTES_MAX + 1)] * 32, pa.binary())},
        {"headers": pa.array([[("h", b"")] * (HEADERS_MAX + 1)] * 32, arrow_layout.HEADERS_TYPE)},
        {"headers": pa.array([[("h", bytes(8_192))]] * 32, arrow_layout.HEADERS_TYPE)},
    ],
)
def test_a_batch_that_breaks_a_rule_is_corrupt(changes: dict[str, pa.Array]) -> None:
    broken = arrow_frame(batch_of(**changes).serialize().to_pybytes())
    with pytest.raises(FrameCorrupt):
        verify(broken)
    assert not passes_among_others(broken)


def test_headers_may_use_their_limits_to_the_full() -> None:
    most = [("h", b"")] * HEADERS_MAX
    longest = [("h", bytes(HEADER_BYTES_MAX - 1))]
    headers = pa.array([most, longest] * 16, arrow_layout.HEADERS_TYPE)
    full = arrow_frame(batch_of(headers=headers).serialize().to_pybytes())
    verify(full)
    assert passes_among_others(full)


def test_a_batch_with_a_record_over_the_limit_is_told_by_its_size() -> None:
    payload = pa.array([b""] * 31 + [bytes(RECORD_BYTES_MAX)], pa.binary())
    large = arrow_frame(batch_of(payload=payload).serialize().to_pybytes())
    assert not passes_among_others(large)
    with pytest.raises(RecordTooLarge) as raised:
        verify(large)
    assert raised.value.fields["size_bytes"] == str(RECORD_BYTES_MAX + 1)


def test_a_batch_of_another_length_than_its_header_says_is_corrupt() -> None:
    with pytest.raises(FrameCorrupt):
        verify(arrow_frame(batch_of(33).serialize().to_pybytes(), 32))


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_compressed_batch_is_refused_before_it_is_decompressed(codec: str) -> None:
    batch = batch_of(payload=pa.array([bytes(1_000_000)] * 32, pa.binary()))
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    reader.read_next_message()
    body = reader.read_next_message().serialize().to_pybytes()
    del batch
    assert len(body) < 1_000_000
    allocated = pa.total_allocated_bytes()
    with pytest.raises(FrameCorrupt, match="compressed"):
        verify(arrow_frame(body))
    assert pa.total_allocated_bytes() <= allocated


@pytest.mark.parametrize("message", [arrow_layout.SCHEMA.serialize(), pa.schema([]).serialize()])
def test_another_message_of_arrow_is_corrupt(message: pa.Buffer) -> None:
    with pytest.raises(FrameCorrupt):
        verify(arrow_frame(message.to_pybytes()))
