"""Building: what goes in comes out; cutting and routing lose and reorder nothing."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.build import build_frame, partition_columns, placed_columns, split_columns
from dss_core.columns import Columns
from dss_core.decode import DecodedBatch, decode
from dss_core.errors import FrameTooLarge, IllegalArgument, IllegalSubject, RecordTooLarge
from dss_core.frame import LAYOUT_ARROW, LAYOUT_ROWS, examine, verify
from dss_core.frame_routing import verify_routing
from dss_core.limits import (
    FRAME_BYTES_USUAL,
    FRAME_RECORDS_MAX,
    FRAME_SUBJECTS_MAX,
    HEADER_BYTES_MAX,
    HEADERS_MAX,
    KEY_BYTES_MAX,
    RECORD_BYTES_MAX,
    ROWS_LAYOUT_RECORDS_BELOW,
    SUBJECT_TABLE_BYTES_MAX,
)
from dss_core.routing import Router, key_hash, partition_of

PRODUCER = bytes(range(16))
Record = tuple[bytes, bytes | None, str, tuple[tuple[str, bytes], ...], int]

subjects = st.sampled_from(["a", "a/b", "flüge/ewr", "x" * 300])
headers = st.lists(st.tuples(st.text(max_size=4), st.binary(max_size=4)), max_size=3).map(tuple)
records = st.tuples(
    st.binary(max_size=30),
    st.none() | st.binary(max_size=6),
    subjects,
    st.just(()) | headers,
    st.integers(-(2**63), 2**63 - 1),
)
few = st.lists(records, min_size=1, max_size=ROWS_LAYOUT_RECORDS_BELOW - 1)
many = st.lists(records, min_size=ROWS_LAYOUT_RECORDS_BELOW, max_size=80)


def columns_of(rows: Sequence[Record]) -> Columns:
    payloads, keys, names, named, times_us = map(list, zip(*rows, strict=True))
    return Columns(payloads, keys, names, named, times_us)


def frame_of(columns: Columns) -> bytes:
    return build_frame(columns, partition=0, producer_id=PRODUCER, sequence=0)


def rows_of(batch: DecodedBatch) -> list[Record]:
    return list(
        zip(
            batch.payloads,
            batch.keys,
            batch.subjects,
            batch.headers,
            batch.timestamps_us,
            strict=True,
        )
    )


@given(few | many)
def test_a_frame_gives_back_its_records(rows: list[Record]) -> None:
    frame = frame_of(columns_of(rows))
    header = verify(frame)
    assert header.layout == (LAYOUT_ROWS if len(rows) < 32 else LAYOUT_ARROW)
    assert header.subjects == len({row[2] for row in rows})
    assert rows_of(decode(frame)) == rows


@pytest.mark.parametrize("count", [1, 31, 32, 1_000])
def test_one_value_for_all_is_the_same_as_one_a_record(count: int) -> None:
    payloads = [b"%d" % row for row in range(count)]
    single = frame_of(Columns(payloads, None, "s/x", None, 7))
    each = frame_of(Columns(payloads, [None] * count, ["s/x"] * count, [None] * count, [7] * count))
    assert rows_of(decode(single)) == rows_of(decode(each))
    assert len(single) == len(each)


@given(many)
def test_arrow_columns_build_the_same_frame_as_lists(rows: list[Record]) -> None:
    columns = columns_of(rows)
    hashes = [None if key is None else key_hash(key) for key in columns.keys or ()]
    arrays = Columns(
        pa.array(columns.payloads, pa.binary()),
        pa.array(columns.keys, pa.binary()),
        pa.array(columns.subjects, pa.utf8()).dictionary_encode(),
        pa.array(columns.headers, pa.map_(pa.utf8(), pa.binary())),
        pa.array(columns.timestamps_us, pa.int64()),
        pa.array(hashes, pa.uint64()),
    )
    assert rows_of(decode(frame_of(arrays))) == rows
    assert rows_of(decode(frame_of(arrays.cut(3, 10)))) == rows[3:10]
    assert rows_of(decode(frame_of(arrays.cut(0, 32)))) == rows[:32]


def test_a_frame_of_a_cut_names_only_the_subjects_that_occur_in_it() -> None:
    names = pa.array(["a"] * 40 + ["b"] * 40).dictionary_encode()
    columns = Columns(pa.array([b""] * 80), None, names)
    assert verify(frame_of(columns.cut(40, 80))).subjects == 1


def refused(count: int, **changes: object) -> Columns:
    """Records of which the last one has the given values."""
    plain: dict[str, Any] = {
        "payloads": b"p",
        "keys": b"k",
        "subjects": "s",
        "headers": (),
        "timestamps_us": 5,
    }
    return Columns(
        **{
            name: [value] * (count - 1) + [changes.get(name, value)]
            for name, value in plain.items()
        }
    )


counts = pytest.mark.parametrize("count", [1, 31, 32])


@counts
def test_a_record_over_the_limit_is_refused_with_its_size(count: int) -> None:
    named = (("h", b"v"),)
    payload = bytes(RECORD_BYTES_MAX - 3)
    verify(frame_of(refused(count, payloads=payload, headers=named)))
    with pytest.raises(RecordTooLarge) as raised:
        frame_of(refused(count, payloads=payload + b"x", headers=named))
    assert raised.value.fields["size_bytes"] == str(RECORD_BYTES_MAX + 1)


@counts
@pytest.mark.parametrize(
    "changes",
    [
        {"keys": bytes(KEY_BYTES_MAX + 1)},
        {"headers": (("h", b""),) * (HEADERS_MAX + 1)},
        {"headers": (("h", bytes(HEADER_BYTES_MAX)),)},
        {"headers": (("h", None),)},
        {"headers": ((7, b""),)},
        {"headers": (("\ud800", b""),)},
        {"payloads": None},
        {"payloads": 7},
        {"keys": "text"},
        {"timestamps_us": 2**63},
        {"timestamps_us": None},
        {"timestamps_us": "now"},
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_by_its_condition(count: int, changes: dict[str, Any]) -> None:
    with pytest.raises(IllegalArgument):
        frame_of(refused(count, **changes))


@counts
def test_text_is_not_taken_for_bytes(count: int) -> None:
    for columns in (
        Columns(["text"] * count, None, "s"),
        Columns([b""] * count, ["text"] * count, "s"),
    ):
        with pytest.raises(IllegalArgument):
            frame_of(columns)


@counts
@pytest.mark.parametrize("subject", [None, b"bytes", 7])
def test_a_subject_that_is_not_text_is_refused(count: int, subject: object) -> None:
    with pytest.raises((IllegalArgument, IllegalSubject)):
        frame_of(refused(count, subjects=subject))


@counts
@pytest.mark.parametrize("subject", ["", "a/+", "a\n", "\ud800", "x" * 1_025])
def test_an_illegal_subject_is_refused(count: int, subject: str) -> None:
    with pytest.raises(IllegalSubject):
        frame_of(refused(count, subjects=subject))


@counts
def test_columns_of_different_lengths_are_refused(count: int) -> None:
    with pytest.raises(IllegalArgument):
        frame_of(Columns([b""] * count, [b"k"] * (count + 1), "s"))


def test_more_than_a_frame_holds_is_refused() -> None:
    with pytest.raises(FrameTooLarge):
        frame_of(Columns([b""] * (FRAME_RECORDS_MAX + 1), None, "s"))
    with pytest.raises(FrameTooLarge):
        frame_of(Columns([bytes(RECORD_BYTES_MAX)] * 5, None, "s"))


@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=60), st.booleans())
def test_splitting_keeps_all_records_in_order_in_frames_of_the_usual_size(
    sizes: list[int], as_arrow: bool
) -> None:
    payloads = [bytes(size) for size in sizes]
    column = pa.array(payloads, pa.binary()) if as_arrow else payloads
    cuts = list(split_columns(Columns(column, None, "s")))
    frames = [frame_of(cut) for cut in cuts]
    assert [payload for frame in frames for payload in decode(frame).payloads] == payloads
    for cut, frame in zip(cuts, frames, strict=True):
        assert cut.records == 1 or len(frame) <= FRAME_BYTES_USUAL + 1_024


def test_splitting_counts_keys_headers_and_subjects() -> None:
    keys = [bytes(5_000)] * 100
    named = [(("h", bytes(5_000)),)] * 100
    names = [f"{row:03d}" + "x" * 1_000 for row in range(100)]
    columns = Columns([bytes(10)] * 100, keys, names, named)
    arrays = next(iter(partition_columns(columns, Router.RANGE, 1, 1, keyless_start=0).values()))
    for whole in (columns, arrays):
        frames = [frame_of(cut) for cut in split_columns(whole)]
        assert max(map(len, frames)) <= FRAME_BYTES_USUAL + 4_096
        assert [name for frame in frames for name in decode(frame).subjects] == names


def test_many_small_records_are_split_at_the_most_that_a_frame_holds() -> None:
    cuts = list(split_columns(Columns([b""] * 100_000, None, "s")))
    assert sum(cut.records for cut in cuts) == 100_000
    assert max(cut.records for cut in cuts) <= FRAME_RECORDS_MAX


@given(few | many, st.sampled_from(Router), st.integers(0, 20))
def test_partitioning_routes_every_record_and_keeps_their_order(
    rows: list[Record], router: Router, keyless_start: int
) -> None:
    marked = [(b"%d" % number, *row[1:]) for number, row in enumerate(rows)]
    found = partition_columns(columns_of(marked), router, 6, 2, keyless_start=keyless_start)
    turn = keyless_start
    wanted: dict[int, list[Record]] = {}
    for row in marked:
        if row[1] is None:
            partition, turn = turn % 6, turn + 1
        else:
            partition = partition_of(router, key_hash(row[1]), 6, 2)
        wanted.setdefault(partition, []).append(row)
    frames = {
        partition: build_frame(columns, partition=partition, producer_id=PRODUCER, sequence=0)
        for partition, columns in found.items()
    }
    assert {partition: rows_of(decode(frame)) for partition, frame in frames.items()} == wanted
    for frame in frames.values():
        verify_routing(examine(frame), router, 6, 2, hash_keys=True)


@given(few | many, st.sampled_from(Router), st.integers(0, 20))
def test_each_record_is_told_its_place_in_the_parts(
    rows: list[Record], router: Router, keyless_start: int
) -> None:
    marked = [(b"%d" % number, *row[1:]) for number, row in enumerate(rows)]
    parts, places = placed_columns(columns_of(marked), router, 6, 2, keyless_start=keyless_start)
    wanted = partition_columns(columns_of(marked), router, 6, 2, keyless_start=keyless_start)
    assert list(map(_payloads, parts.values())) == list(map(_payloads, wanted.values()))
    assert list(parts) == list(wanted)
    placed = [payload for part in parts.values() for payload in _payloads(part)]
    assert [placed[place] for place in places] == [payload for payload, *_ in marked]


def _payloads(columns: Columns) -> list[bytes]:
    return [bytes(each) for each in pa.array(columns.payloads).to_pylist()]


@pytest.mark.parametrize("count", [5, 50])
def test_records_without_keys_go_round(count: int) -> None:
    columns = Columns([b"%d" % row for row in range(count)], None, "s")
    found = partition_columns(columns, Router.BLOCK, 4, 1, keyless_start=2**40 + 3)
    sizes = [found[partition].records for partition in range(4)]
    assert sum(sizes) == count
    assert max(sizes) - min(sizes) <= 1
    assert next(iter(found[3].payloads)) in (b"0", pa.scalar(b"0"))


def test_partitioned_columns_can_be_partitioned_anew() -> None:
    keys = [b"%d" % row for row in range(500)]
    columns = Columns(keys, keys, [f"s/{row % 3}" for row in range(500)])
    old = partition_columns(columns, Router.RANGE, 4, 1, keyless_start=0)
    again = partition_columns(old[1], Router.RANGE, 8, 1, keyless_start=0)
    assert sorted(again) == [2, 3]
    assert sum(part.records for part in again.values()) == old[1].records


@pytest.mark.parametrize("count", [5, 50])
def test_partitioning_refuses_wrong_values_by_a_condition(count: int) -> None:
    with pytest.raises(IllegalArgument):
        partition_columns(
            Columns([b""] * count, ["text"] * count, "s"), Router.RANGE, 4, 1, keyless_start=0
        )


def test_a_frame_has_a_bounded_number_and_size_of_subjects() -> None:
    many = [f"s/{number}" for number in range(FRAME_SUBJECTS_MAX + 1)]
    long = [f"{number:04}" + "x" * 1_000 for number in range(SUBJECT_TABLE_BYTES_MAX // 1_000)]
    for subjects in (many, long):
        columns = Columns([b""] * len(subjects), None, subjects)
        with pytest.raises(IllegalArgument):
            build_frame(columns, partition=0, producer_id=bytes(16), sequence=0)
    at_most = Columns([b""] * FRAME_SUBJECTS_MAX, None, many[:-1])
    verify(build_frame(at_most, partition=0, producer_id=bytes(16), sequence=0))


def test_records_with_many_long_subjects_are_cut_into_frames_that_hold_them() -> None:
    subjects = [f"{number:06}" + "x" * 1_000 for number in range(5_000)]
    parts = partition_columns(
        Columns([b""] * 5_000, None, subjects), Router.BLOCK, 1, 1, keyless_start=0
    )
    pieces = list(split_columns(parts[0]))
    for piece in pieces:
        verify(build_frame(piece, partition=0, producer_id=bytes(16), sequence=0))
    assert sum(piece.records for piece in pieces) == 5_000


@pytest.mark.parametrize("records", [31, 2_000])
def test_a_batch_is_cut_into_frames_of_about_one_size(records: int) -> None:
    columns = Columns([bytes(FRAME_BYTES_USUAL * 9 // 4 // records)] * records, None, "s")
    parts = partition_columns(columns, Router.BLOCK, 1, 1, keyless_start=0)
    sizes = [piece.records for piece in split_columns(parts[0])]
    assert len(sizes) == 3
    assert max(sizes) - min(sizes) <= 1


def test_an_arrow_column_of_another_type_is_refused() -> None:
    columns = Columns(pa.array([b"x"] * 40, pa.large_binary()), None, "s")
    with pytest.raises(IllegalArgument):
        partition_columns(columns, Router.BLOCK, 1, 1, keyless_start=0)
