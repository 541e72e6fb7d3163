"""Decoding consecutive frames: columns, offsets, masks, and the Arrow table."""

from array import array
from contextlib import suppress
from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.arrow_routing import add_hashes
from dss_core.arrow_tables import SUBJECT_ENCODED
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode, hashes_in
from dss_core.errors import FrameCorrupt
from dss_core.frame import HEADER_BYTES, stamped
from dss_core.routing import key_hash

PRODUCER = bytes(16)
BODY_AT = 96
"""Behind a header and two short subjects, where the body of an Arrow frame begins."""


def stored(records: int, base_offset: int) -> bytes:
    """A frame whose payloads are its offsets."""
    offsets = range(base_offset, base_offset + records)
    columns = Columns(
        payloads=[b"%d" % offset for offset in offsets],
        keys=[b"k%d" % (offset % 7) if offset % 3 else None for offset in offsets],
        subjects=[f"s/{offset % 2}" for offset in offsets],
        headers=[(("h", b"%d" % offset),) if offset % 4 == 0 else None for offset in offsets],
        timestamps_us=[offset * 10 for offset in offsets],
    )
    frame = build_frame(columns, partition=0, producer_id=PRODUCER, sequence=0)
    stamp = stamped(
        frame,
        base_offset=base_offset,
        append_time_us=base_offset * 100,
        topic_epoch=1,
        storage_topic_id=1,
    )
    return stamp + frame[HEADER_BYTES:]


@st.composite
def runs(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Base offset and records of consecutive frames; offsets increase, with gaps."""
    sizes = st.sampled_from([1, 1, 1, 2, 31, 32, 40])
    found, at = [], draw(st.integers(0, 1_000))
    for records in draw(st.lists(sizes, min_size=1, max_size=6)):
        at += draw(st.sampled_from([0, 0, 0, 5]))
        found.append((at, records))
        at += records
    return found


masks = st.lists(st.tuples(st.integers(0, 1_200), st.integers(0, 60))).map(
    lambda pairs: tuple((start, start + length) for start, length in pairs)
)


@given(runs(), masks)
def test_columns_hold_the_records_that_the_mask_leaves(
    frames: list[tuple[int, int]], mask: tuple[tuple[int, int], ...]
) -> None:
    batch = decode(b"".join(stored(records, base) for base, records in frames), mask)
    everything = [
        (base, offset) for base, records in frames for offset in range(base, base + records)
    ]
    kept = [
        (base, offset)
        for base, offset in everything
        if not any(start <= offset < end for start, end in mask)
    ]
    offsets = [offset for _, offset in kept]
    assert batch.records == len(batch) == len(kept)
    assert list(batch.offsets) == offsets
    assert batch.payloads == [b"%d" % offset for offset in offsets]
    assert batch.keys == [b"k%d" % (o % 7) if o % 3 else None for o in offsets]
    assert batch.subjects == [f"s/{offset % 2}" for offset in offsets]
    assert batch.headers == [(("h", b"%d" % o),) if o % 4 == 0 else () for o in offsets]
    assert batch.timestamps_us == [offset * 10 for offset in offsets]
    assert batch.append_times_us == [base * 100 for base, _ in kept]
    assert batch.base_offset == everything[0][1]
    assert batch.next_offset == everything[-1][1] + 1


@given(runs(), masks, st.booleans())
def test_rows_are_what_the_columns_hold(
    frames: list[tuple[int, int]], mask: tuple[tuple[int, int], ...], columns_first: bool
) -> None:
    batch = decode(b"".join(stored(records, base) for base, records in frames), mask)
    if columns_first:
        assert len(batch.payloads) == len(batch)
    rows = list(chain.from_iterable(batch.rows()))
    assert rows == list(
        zip(
            batch.offsets,
            batch.subjects,
            batch.keys,
            batch.payloads,
            batch.headers,
            batch.timestamps_us,
            strict=True,
        )
    )


def test_rows_of_a_frame_that_cannot_be_read_are_refused_before_the_first_is_there() -> None:
    broken = bytearray(stored(40, 40))
    broken[BODY_AT : BODY_AT + 4] = bytes(4)
    batch = decode(stored(40, 0) + bytes(broken), checksums=False)
    for _ in range(2):
        with pytest.raises(FrameCorrupt):
            batch.rows()


def test_rows_come_frame_by_frame_but_for_neighbours_in_the_rows_layout() -> None:
    batch = decode(stored(40, 0) + stored(40, 40) + stored(3, 80) + stored(1, 83))
    assert [len(list(piece)) for piece in batch.rows()] == [40, 40, 4]
    assert list(decode(b"").rows()) == []


@given(runs(), masks)
def test_the_table_holds_the_same_as_the_columns(
    frames: list[tuple[int, int]], mask: tuple[tuple[int, int], ...]
) -> None:
    batch = decode(b"".join(stored(records, base) for base, records in frames), mask)
    table = batch.to_arrow()
    table.validate(full=True)
    assert table.column("offset").to_pylist() == list(batch.offsets)
    assert table.column("subject").to_pylist() == batch.subjects
    assert table.column("key").to_pylist() == batch.keys
    assert table.column("payload").to_pylist() == batch.payloads
    assert [tuple(named) for named in table.column("headers").to_pylist()] == batch.headers
    assert table.column("timestamp_us").to_pylist() == batch.timestamps_us
    assert table.column("append_time_us").to_pylist() == batch.append_times_us


@given(runs(), masks)
def test_encoded_subjects_are_the_same_subjects(
    frames: list[tuple[int, int]], mask: tuple[tuple[int, int], ...]
) -> None:
    batch = decode(b"".join(stored(records, base) for base, records in frames), mask)
    plain, encoded = batch.to_arrow(), batch.to_arrow(encoded=True)
    assert encoded.schema.field("subject") == SUBJECT_ENCODED
    assert encoded["subject"].to_pylist() == plain["subject"].to_pylist()
    assert encoded.drop_columns("subject").equals(plain.drop_columns("subject"))


def test_offsets_without_gaps_are_a_range() -> None:
    assert decode(stored(40, 5) + stored(1, 45)).offsets == range(5, 46)


def test_a_column_is_decoded_once() -> None:
    batch = decode(stored(3, 0) + stored(40, 3))
    assert batch.payloads is batch.payloads


def test_no_frames_make_an_empty_batch() -> None:
    batch = decode(b"")
    assert (batch.records, list(batch.offsets), batch.payloads, batch.keys) == (0, [], [], [])
    assert (batch.base_offset, batch.next_offset) == (0, 0)
    assert batch.to_arrow().num_rows == batch.to_arrow(encoded=True).num_rows == 0


def test_a_mask_over_everything_leaves_nothing() -> None:
    batch = decode(stored(40, 5) + stored(2, 45), ((0, 100),))
    assert (len(batch), batch.subjects, batch.to_arrow().num_rows) == (0, [], 0)


@pytest.mark.parametrize("records", [1, 40])
def test_a_damaged_or_cut_frame_is_refused(records: int) -> None:
    frames = bytearray(stored(2, 0) + stored(records, 2))
    with pytest.raises(FrameCorrupt):
        decode(bytes(frames[:-1]))
    with pytest.raises(FrameCorrupt):
        decode(bytes(frames) + b"DSSF")
    frames[-1] ^= 1
    with pytest.raises(FrameCorrupt):
        decode(bytes(frames))


@pytest.mark.parametrize("records", [1, 3, 40])
@given(st.data())
def test_damage_that_nobody_checked_for_is_corrupt_or_unnoticed_but_no_other_error(
    records: int, data: st.DataObject
) -> None:
    frame = bytearray(stored(records, 0))
    at = data.draw(
        st.integers(HEADER_BYTES, HEADER_BYTES + 10 if records == 40 else len(frame) - 1)
    )
    frame[at] ^= data.draw(st.integers(1, 255))
    batch = decode(bytes(frame), checksums=False)
    with suppress(FrameCorrupt):
        assert len(batch.payloads) == len(batch.subjects) == records


@pytest.mark.parametrize("records", [1, 5])
def test_frames_without_a_subject_are_corrupt_wherever_they_stand(records: int) -> None:
    subjects_at = 18
    frame = bytearray(stored(records, 0))
    frame[subjects_at : subjects_at + 2] = bytes(2)
    for frames in (bytes(frame), stored(1, 0) + bytes(frame)):
        with pytest.raises(FrameCorrupt):
            decode(frames, checksums=False).subjects  # noqa: B018 - decoding is what fails


def test_each_frame_has_its_own_subjects() -> None:
    """Also where tables of one length follow each other, and where one comes back."""
    frames = [(7, 1), (8, 1), (9, 1), (11, 1), (12, 2), (14, 3), (17, 2), (20, 1), (21, 31)]
    batch = decode(b"".join(stored(records, base) for base, records in frames))
    assert batch.subjects == [f"s/{offset % 2}" for offset in batch.offsets]


@pytest.mark.parametrize("sizes", [(1,), (31,), (32,), (3, 40, 1, 1, 64)])
def test_the_hashes_of_keys_are_those_of_the_records_in_either_layout(
    sizes: tuple[int, ...],
) -> None:
    base, frames = 5, b""
    for size in sizes:
        frames += stored(size, base)
        base += size
    keys = decode(frames).keys
    assert list(hashes_in(frames)) == [0 if key is None else key_hash(key) for key in keys]


def test_a_hash_of_0_is_told_from_a_record_without_a_key() -> None:
    found = array("Q", [9])
    add_hashes(found, pa.array([0, None, 7], pa.uint64()))
    add_hashes(found, pa.array([3, 2, 0, 1], pa.uint64()).slice(1, 2))
    add_hashes(found, pa.array([5, 6, 7], pa.uint64()).slice(1))
    assert list(found) == [9, 1, 0, 7, 2, 1, 6, 7]
