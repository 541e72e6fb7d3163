"""Frames as the diagram draws them: header, checksums, stamp, order of the bytes."""

import base64
import struct
import zlib

import pytest
import xxhash

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import FrameCorrupt, FrameMisrouted, FrameTooLarge
from dss_core.frame import (
    HEADER_BYTES,
    LAYOUT_ARROW,
    LAYOUT_ROWS,
    Header,
    examine,
    headers_of,
    read_header,
    rows_with_subjects,
    spans_of,
    stamped,
    subject_table,
    subject_table_end,
    subjects_of,
    verify,
    verify_stamp,
    verify_stored,
    whole_frames,
)
from dss_core.frame_routing import hash_checks, verify_routing
from dss_core.limits import FRAME_BYTES_MAX
from dss_core.routing import Router, key_hash, partition_of

PRODUCER = bytes(range(16))

RECORDED_ROWS = (
    "eNpzCQ52m8jAwMAIhExAmhlEMjIxs7CysXNwcnHz8PLxszNAgGrAx3/q0SuWMBAAzAzF+gYgwhBk4gtmmDgjAw9D"
    "doEByKoMQzBpBBL+DwWMQBYDAwDyahVa"
)
RECORDED_ARROW = (
    "eNpzCQ5282BmYGBiYARiBgZmEMnIxMzCysbOwcnFzcPLx8/OAAEBqrMvN7vnMzEQAMwMxfoGIMKQgeE/EFgAdYhA5XgY"
    "xBjYGFgZOIAsHrBiFgYJILUCrpsLyOdhYAGq4ALychgZGAQYGBiQLRXFYzcLlOaA0oxQWgBuPwQooMlroPEN0PQ5oNnj"
    "gGZeAJSGuTMCTX0EmvoMNHlcfJj6CjTzG9DUN6Cpn4Cmfgaa+hlo/gMBTrRwRtbPSIDPQCM+zCZGNBEYPxvNPbNurzpo"
    "FfDsJLqZMHMLDLCLw8yA8TMysIsbGkHoF8wQ+j8UAADpJiRX"
)
"""Frames of version 0.1, compressed: what was written once must be read for ever."""


def built(records: int, **changes: object) -> bytes:
    """A frame of records with keys, two subjects by turns, and headers on the first."""
    columns = {
        "payloads": [b"p%d" % row for row in range(records)],
        "keys": [b"key" if row % 3 else None for row in range(records)],
        "subjects": [f"s/{row % 2}" for row in range(records)],
        "headers": [(("h", b"1"), ("h", b"2")) if row == 0 else None for row in range(records)],
        "timestamps_us": list(range(1_000, 1_000 + records)),
    }
    columns |= changes
    return build_frame(Columns(**columns), partition=3, producer_id=PRODUCER, sequence=7)


def stored(frame: bytes, base_offset: int = 100) -> bytes:
    stamp = stamped(
        frame, base_offset=base_offset, append_time_us=5, topic_epoch=6, storage_topic_id=9
    )
    return stamp + frame[HEADER_BYTES:]


both_layouts = pytest.mark.parametrize(
    ("records", "layout"),
    [(1, LAYOUT_ROWS), (31, LAYOUT_ROWS), (32, LAYOUT_ARROW), (40, LAYOUT_ARROW)],
)


@both_layouts
def test_a_header_says_what_the_frame_was_built_from(records: int, layout: int) -> None:
    frame = built(records)
    assert verify(frame) == Header(
        frame_bytes=len(frame),
        layout=layout,
        codec=0,
        schema_id=1,
        records=records,
        partition=3,
        subjects=min(records, 2),
        producer_id=PRODUCER,
        sequence=7,
        body_checksum=xxhash.xxh3_64_intdigest(frame[:44] + frame[84:]),
        base_offset=0,
        append_time_us=0,
        topic_epoch=0,
        storage_topic_id=0,
        stamp_checksum=0,
    )


def test_the_bytes_of_a_small_frame_are_those_of_the_diagram() -> None:
    frame = built(1)
    produced = struct.pack("<4sIBBHIHH16sQ", b"DSSF", len(frame), 1, 0, 1, 1, 3, 1, PRODUCER, 7)
    headers = struct.pack("<HH", 1, 1) + b"h1" + struct.pack("<HH", 1, 1) + b"h2"
    row = struct.pack("<IqHHH", 2, 1_000, 0, 0xFFFF, len(headers)) + b"p0" + headers
    body = struct.pack("<H", 3) + b"s/0" + row
    checksum = struct.pack("<Q", xxhash.xxh3_64_intdigest(produced + body))
    assert frame == produced + checksum + bytes(32) + body


def test_the_stamp_is_that_of_the_diagram_and_leaves_the_rest_alone() -> None:
    frame = built(40)
    head = stamped(frame, base_offset=1, append_time_us=2, topic_epoch=3, storage_topic_id=4)
    stamp = struct.pack("<QQII", 1, 2, 3, 4)
    checksum = struct.pack("<Q", xxhash.xxh3_64_intdigest(frame[:52] + stamp))
    assert head == frame[:52] + stamp + checksum


@both_layouts
def test_a_stored_frame_is_verified_anywhere_in_any_buffer(records: int, layout: int) -> None:
    frame = stored(built(records))
    for buffer in (b"12345" + frame, bytearray(b"12345" + frame), memoryview(b"12345" + frame)):
        header = verify_stored(buffer, 5)
        assert (header.base_offset, header.append_time_us) == (100, 5)
        assert (header.topic_epoch, header.storage_topic_id) == (6, 9)
        assert verify_stamp(buffer, 5) == read_header(buffer, 5) == header


def test_the_stamp_of_a_frame_is_verified_without_its_body() -> None:
    frame = stored(built(40))
    assert verify_stamp(frame[:HEADER_BYTES]) == verify_stored(frame)
    with pytest.raises(FrameCorrupt):
        verify_stored(frame[:-1])


def test_a_frame_that_carries_a_stamp_is_not_accepted_from_a_producer() -> None:
    with pytest.raises(FrameCorrupt):
        verify(stored(built(1)))


def test_a_frame_that_was_never_stamped_is_not_accepted_from_the_disk() -> None:
    with pytest.raises(FrameCorrupt):
        verify_stored(built(1))


def test_a_record_alone_takes_at_most_220_bytes() -> None:
    columns = Columns([bytes(100)], [bytes(8)], "12345")
    assert len(build_frame(columns, partition=0, producer_id=PRODUCER, sequence=0)) <= 220


def test_a_thousand_records_take_at_most_140_bytes_each() -> None:
    columns = Columns([bytes(100)] * 1_000, [bytes(8)] * 1_000, "12345")
    frame = build_frame(columns, partition=0, producer_id=PRODUCER, sequence=0)
    assert len(frame) <= 140_000


def test_consecutive_frames_are_told_apart() -> None:
    frames = [stored(built(1)), stored(built(40), 101), stored(built(3), 141)]
    found = headers_of(b"".join(frames))
    assert [at for at, _ in found] == [0, len(frames[0]), len(frames[0]) + len(frames[1])]
    assert [header.base_offset for _, header in found] == [100, 101, 141]
    with pytest.raises(FrameCorrupt):
        headers_of(b"".join(frames)[:-1])
    with pytest.raises(FrameCorrupt):
        headers_of(b"".join(frames) + b"x")


def test_frames_are_told_apart_by_where_they_and_their_records_end() -> None:
    frames = [stored(built(1)), stored(built(40), 101), stored(built(3), 141)]
    together = b"".join(frames)
    starts, bases = spans_of(together)
    assert starts == [0, len(frames[0]), len(frames[0]) + len(frames[1]), len(together)]
    assert bases == [100, 101, 141, 144]
    for broken in (together[:-1], together + b"x", together + bytes(HEADER_BYTES)):
        with pytest.raises(FrameCorrupt):
            spans_of(broken)


def test_consecutive_frames_are_whole_up_to_the_first_that_is_not() -> None:
    frames = [stored(built(1)), stored(built(40), 101), stored(built(3), 141)]
    together = b"head" + b"".join(frames)
    found = whole_frames(together, 4, 9)
    assert [together[at:end] for at, end, *_ in found] == frames
    assert [rest for _, _, *rest in found] == [
        [3, PRODUCER, 7, records, base, 5] for records, base in ((1, 100), (40, 101), (3, 141))
    ]
    assert whole_frames(together[:-1], 4, 9) == found[:2]
    assert whole_frames(together + b"tail", 4, 9) == found
    assert whole_frames(together, 4, 8) == [], "they belong to another storage topic"
    torn = bytearray(together)
    torn[found[1][0] + HEADER_BYTES] ^= 1
    assert whole_frames(bytes(torn), 4, 9) == found[:1]


@both_layouts
def test_the_subject_table_is_found_in_a_part_of_the_frame(records: int, layout: int) -> None:
    frame = built(records)
    header = verify(frame)
    table = subject_table(frame, 0, header)
    end = HEADER_BYTES + len(table)
    assert subjects_of(table, header.subjects) == ("s/0", "s/1")[:records]
    assert subject_table_end(b"?" + frame[:end], 1, header.subjects) == 1 + end
    assert subject_table_end(frame[: end - 1], 0, header.subjects) is None


@both_layouts
def test_rows_are_found_by_subject(records: int, layout: int) -> None:
    frame = b"?" + built(records)
    header = read_header(frame, 1)
    evens = tuple((row, row + 1) for row in range(0, records, 2))
    assert rows_with_subjects(frame, 1, header, frozenset({0})) == evens
    assert rows_with_subjects(frame, 1, header, frozenset({0, 1})) == ((0, records),)
    assert rows_with_subjects(frame, 1, header, frozenset()) == ()


@both_layouts
def test_a_key_of_another_partition_is_found_with_its_row(records: int, layout: int) -> None:
    home = partition_of(Router.BLOCK, key_hash(b"key"), 8, 2)
    keys = [b"key"] * records
    frame = build_frame(
        Columns([b""] * records, keys, "s"), partition=home, producer_id=PRODUCER, sequence=0
    )
    verify_routing(examine(frame), Router.BLOCK, 8, 2, hash_keys=True)
    stranger = next(
        b"%d" % n
        for n in range(99)
        if partition_of(Router.BLOCK, key_hash(b"%d" % n), 8, 2) != home
    )
    keys[-1] = stranger
    frame = build_frame(
        Columns([b""] * records, keys, "s"), partition=home, producer_id=PRODUCER, sequence=0
    )
    with pytest.raises(FrameMisrouted) as raised:
        verify_routing(examine(frame), Router.BLOCK, 8, 2, hash_keys=False)
    expected = partition_of(Router.BLOCK, key_hash(stranger), 8, 2)
    assert raised.value.fields == {
        "row": str(records - 1),
        "partition": str(home),
        "expected": str(expected),
    }


@both_layouts
def test_records_without_a_key_belong_anywhere(records: int, layout: int) -> None:
    frame = built(records, keys=None)
    verify_routing(examine(frame), Router.RANGE, 8, 1, hash_keys=True)


def test_a_hash_that_is_not_of_its_key_is_found_when_keys_are_hashed() -> None:
    frame = built(32, keys=[b"key"] * 32, key_hashes=[key_hash(b"key")] * 31 + [3])
    with pytest.raises(FrameCorrupt):
        verify_routing(examine(frame), Router.RANGE, 1, 1, hash_keys=True)


@pytest.mark.parametrize("row", [0, 31, 63, 99])
def test_hashes_are_checked_step_by_step_with_the_same_outcome(row: int) -> None:
    keys = [None if at % 7 == 2 else b"%d" % at for at in range(100)]
    hashes = [None if key is None else key_hash(key) for key in keys]
    good = examine(built(100, keys=keys, key_hashes=hashes))
    assert len(list(hash_checks(good, 32))) == 4
    assert list(hash_checks(examine(built(3)), 32)) == []
    forged = [3 if at == row else hashed for at, hashed in enumerate(hashes)]
    checks = hash_checks(examine(built(100, keys=keys, key_hashes=forged)), 32)
    for _ in range(row // 32):
        next(checks)
    with pytest.raises(FrameCorrupt):
        next(checks)


def test_a_frame_over_a_limit_is_told_from_a_corrupt_one() -> None:
    with pytest.raises(FrameTooLarge):
        verify(bytes(FRAME_BYTES_MAX + 1))
    many = bytearray(built(1))
    many[12:16] = struct.pack("<I", 65_536)
    with pytest.raises(FrameTooLarge):
        verify(bytes(many))


@pytest.mark.parametrize("recorded", [RECORDED_ROWS, RECORDED_ARROW])
def test_frames_of_earlier_versions_are_read(recorded: str) -> None:
    frame = zlib.decompress(base64.b64decode(recorded))
    assert verify(frame).sequence == 7
    batch = decode(frame)
    assert batch.payloads == [b"p0", b""]
    assert batch.keys == [b"k", None]
    assert batch.subjects == ["s/0", "s/1"]
    assert batch.headers == [(("h", b"1"), ("h", b"2")), ()]
    assert batch.timestamps_us == [1_000, -1]


def test_small_frames_are_written_as_they_always_were() -> None:
    columns = Columns(
        [b"p0", b""], [b"k", None], ["s/0", "s/1"], [(("h", b"1"), ("h", b"2")), None], [1_000, -1]
    )
    frame = build_frame(columns, partition=3, producer_id=PRODUCER, sequence=7)
    assert frame == zlib.decompress(base64.b64decode(RECORDED_ROWS))
