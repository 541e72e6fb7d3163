"""The run index in memory and on disk, against a plain list of frames."""

import struct
from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from dssd.log.segment import index_file
from dssd.log.segment.file import SegmentId
from dssd.log.segment.index_file import (
    BadIndex,
    decode_leaf,
    decode_root,
    decode_runs,
    decode_summary,
)
from dssd.log.segment.run_index import OpenRun, Run, StreamRuns

SEGMENT = SegmentId(7, 9)
RUN_BYTES_MAX = 300

Frames = list[tuple[int, int, int, int]]
"""Records, bytes, microseconds since the frame before, bytes of other streams in between."""

frames = st.lists(
    st.tuples(
        st.integers(1, 5), st.integers(1, 200), st.integers(0, 3), st.sampled_from([0, 0, 50])
    ),
    min_size=1,
    max_size=60,
)


def indexed(written: Frames) -> tuple[StreamRuns, list[Run]]:
    """The index of the frames, and each frame as a run of its own."""
    runs = StreamRuns()
    open_run = OpenRun()
    single: list[Run] = []
    offset, position, time_us = 100, 64, 1_000
    for records, size, pause, between in written:
        position += between
        time_us += pause
        body = bytes([records]) * size
        checksum = xxhash.xxh3_64_intdigest(body)
        single.append(Run(offset, offset + records, position, size, time_us, checksum))
        runs.put(open_run.add(single[-1]._replace(checksum=0), (body,), RUN_BYTES_MAX), time_us)
        offset += records
        position += size
    return runs, single


@given(frames)
def test_runs_hold_exactly_the_frames(written: Frames) -> None:
    runs, single = indexed(written)
    all_runs = runs.slice(0, len(runs))
    assert all_runs[0].base == single[0].base
    assert all_runs[-1].end == single[-1].end
    assert sum(run.length for run in all_runs) == sum(frame.length for frame in single)
    assert all(a.end == b.base for a, b in pairwise(all_runs))
    extent = runs.extent
    assert extent is not None
    assert (extent.start, extent.end, extent.bytes) == (
        single[0].base,
        single[-1].end,
        sum(frame.length for frame in single),
    )
    assert (extent.first_us, extent.last_us) == (single[0].time_us, single[-1].time_us)


@given(frames)
def test_the_checksum_of_a_run_is_that_of_its_bytes(written: Frames) -> None:
    runs, _ = indexed(written)
    sizes = [size for _, size, _, _ in written]
    bodies = b"".join(bytes([records]) * size for records, size, _, _ in written)
    ends = list(accumulate(sizes))
    at = 0
    for run in runs.slice(0, len(runs)):
        assert at == 0 or at in ends
        body = bodies[at : at + run.length]
        assert xxhash.xxh3_64_intdigest(body) == run.checksum
        at += run.length


@given(frames, st.integers(95, 500))
def test_an_offset_is_found_in_its_run(written: Frames, offset: int) -> None:
    runs, single = indexed(written)
    run = runs[runs.at_offset(offset)]
    if single[0].base <= offset < single[-1].end:
        assert run.base <= offset < run.end
    elif offset < single[0].base:
        assert run.base == single[0].base


@given(frames, st.integers(990, 1_200))
def test_no_record_of_a_time_lies_before_the_run_that_is_found(written: Frames, time: int) -> None:
    runs, single = indexed(written)
    run = runs[runs.before_time(time)]
    expected = next((frame for frame in single if frame.time_us >= time), None)
    if expected is not None:
        assert run.base <= expected.base
        number = bisect_right([one.base for one in runs.slice(0, len(runs))], expected.base) - 1
        assert number - runs.before_time(time) <= 1, "it is that run or the next"


@given(st.lists(frames, min_size=1, max_size=4))
def test_an_index_file_gives_back_what_it_was_given(streams: list[Frames]) -> None:
    given_runs = {number: indexed(written)[0] for number, written in enumerate(streams)}
    content = index_file.encode(SEGMENT, 12_345, given_runs, 60)
    summary = decode_summary(content[: index_file.summary_bytes(content)], SEGMENT)
    assert (summary.segment_bytes, summary.frames) == (12_345, 60)
    restored = decode_runs(content, summary)
    for number, runs in given_runs.items():
        assert summary.streams[number].extent == runs.extent
        assert restored[number].slice(0, 999) == runs.slice(0, 999)


@given(frames, st.lists(st.integers(0, 3_000), max_size=4))
def test_runs_packed_part_by_part_are_the_same_runs(written: Frames, cuts: list[int]) -> None:
    runs, _ = indexed(written)
    again = StreamRuns()
    edges = [0, *sorted(cuts), 1 << 40]
    for start, end in pairwise(edges):
        first, behind = runs.between(start, end)
        part = runs.slice(first, behind - first)
        assert [start <= run.position < end for run in part] == [True] * len(part)
        if part:
            again.extend_packed(runs.packed(first, behind), part[-1].time_us)
    assert again.slice(0, 999) == runs.slice(0, 999)
    assert runs.extent is not None
    last_us = runs[-1].time_us
    assert again.extent == replace(runs.extent, last_us=last_us)


def test_packed_runs_are_their_fields_little_endian() -> None:
    runs = StreamRuns()
    run = Run(1, 2, 64, 300, 1_700_000_000_000_000, 0xFEDC_BA98_7654_3210)
    runs.put(run, run.time_us)
    assert runs.packed(0, 1) == struct.pack("<6Q", *run)


def test_a_root_leads_to_the_leaf_of_an_offset_and_of_a_time() -> None:
    runs = StreamRuns()
    for number in range(1_000):
        runs.put(Run(number * 10, number * 10 + 10, number * 100, 50, number * 7, 0), number * 7)
    content = index_file.encode(SEGMENT, 100_000, {3: runs}, 1_000)
    entry = decode_summary(content[: index_file.summary_bytes(content)], SEGMENT).streams[3]
    root = decode_root(content[entry.root : entry.root + entry.root_bytes])
    assert entry.leaf_count == len(root) > 5
    for number in range(0, 1_000, 37):
        position, size = entry.leaf_span(root.at_offset(number * 10 + 3))
        leaf = decode_leaf(content[position : position + size])
        assert any(run.base <= number * 10 + 3 < run.end for run in leaf)
        position, size = entry.leaf_span(root.before_time(number * 7))
        leaf = decode_leaf(content[position : position + size])
        assert leaf[0].time_us <= max(0, number * 7 - 7) <= leaf[-1].time_us


def test_every_flipped_bit_of_an_index_file_is_noticed() -> None:
    runs, _ = indexed([(2, 100, 1, 50)] * 6)
    content = index_file.encode(SEGMENT, 12_345, {0: runs}, 6)
    for position in range(len(content) * 8):
        flipped = bytearray(content)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(BadIndex):
            read_all(bytes(flipped))


def read_all(content: bytes) -> None:
    size = index_file.summary_bytes(content)
    summary = decode_summary(content[:size], SEGMENT)
    decode_runs(content, summary)
    for entry in summary.streams.values():
        decode_root(content[entry.root : entry.root + entry.root_bytes])
