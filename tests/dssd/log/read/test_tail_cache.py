from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.ids import StreamId
from dssd.log.read.tail_cache import TAIL_CACHE_OVERHEAD_BYTES, TAIL_ENTRIES_AT_ONCE, TailCache
from dssd.log.segment.file import SegmentId
from dssd.log.segment.index_file import RUNS_PER_LEAF
from dssd.log.segment.run_index import Run
from dssd.log.settings import LogSettings
from dssd.log.writer_messages import Pieces, StoredFrames

Bench = Any


def stored(partition: int, base: int, frames: int, size: int) -> StoredFrames:
    bases = list(range(base, base + frames))
    pieces: Pieces = [b"h" * 84, b"x" * (size - 84)] * frames
    run = Run(base, base + frames, 0, size * frames, 5, 0)
    return StoredFrames(
        SegmentId(7, 1), partition, base, base + frames, 5, run, bases, pieces, size * frames
    )


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(100, 900)), max_size=200)
)
def test_the_newest_entries_of_all_streams_stay_within_the_bound(
    added: list[tuple[int, int, int]],
) -> None:
    tail = TailCache(8_000)
    ends = [0, 0, 0]
    kept: list[tuple[int, int, int]] = []
    for partition, frames, size in added:
        tail.add(stored(partition, ends[partition], frames, size))
        kept.append((partition, ends[partition], frames * (size + TAIL_CACHE_OVERHEAD_BYTES)))
        ends[partition] += frames
        while sum(cost for _, _, cost in kept) > 8_000:
            kept.pop(0)
        assert tail.bytes == sum(cost for _, _, cost in kept)
    first_kept: dict[int, int] = {}
    for partition, base, _ in kept:
        first_kept.setdefault(partition, base)
    for partition in range(3):
        for offset in range(ends[partition]):
            entry = tail.at(StreamId(7, partition), offset)
            if offset < first_kept.get(partition, ends[partition]):
                assert entry is None
            else:
                assert entry is not None
                assert entry.bases[entry.frame_at(offset)] == offset
                found = tail.from_offset(StreamId(7, partition), offset)
                assert found[0] is entry
                assert [each.end for each in found[:-1]] == [each.base for each in found[1:]]
                assert found[-1].end == ends[partition]
        assert tail.at(StreamId(7, partition), ends[partition]) is None


def test_the_entries_of_a_forgotten_stream_are_not_found_and_are_dropped_in_order() -> None:
    cost = 100 + TAIL_CACHE_OVERHEAD_BYTES
    tail = TailCache(3 * cost)
    tail.add(stored(0, 0, 1, 100))
    tail.add(stored(1, 0, 1, 100))
    tail.forget(StreamId(7, 0))
    assert tail.at(StreamId(7, 0), 0) is None
    tail.add(stored(0, 1, 1, 100))
    tail.add(stored(1, 1, 1, 100))
    assert tail.bytes == 3 * cost
    for partition, offset in [(1, 0), (0, 1), (1, 1)]:
        assert tail.at(StreamId(7, partition), offset) is not None
    tail.add(stored(1, 2, 2, 100))
    assert tail.at(StreamId(7, 1), 0) is None
    assert tail.at(StreamId(7, 0), 1) is None
    assert tail.at(StreamId(7, 1), 1) is not None


class CountedAccess(deque[Any]):
    """Counts how many of its elements were iterated over."""

    walked = 0

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            CountedAccess.walked += 1
            yield item


def test_forgetting_a_stream_does_not_scan_the_entries_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dssd.log.read.tail_cache.deque", CountedAccess)
    tail = TailCache(1 << 30)
    for partition in range(1_000):
        tail.add(stored(partition, 0, 1, 100))
    for partition in range(1_000):
        tail.forget(StreamId(7, partition))
    assert CountedAccess.walked == 0


async def test_readers_at_the_tail_touch_no_file(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        await bench.put(b"%d" % number)
    assert len(await bench.payloads(offset=5)) == 15
    assert bench.log.bytes_read == 0


async def test_a_read_goes_over_from_the_file_to_memory(
    make_bench: Callable[[LogSettings], Bench],
) -> None:
    bench = make_bench(LogSettings(tail_cache_bytes_max=4_000, run_bytes_max=200))
    await bench.prepare()
    await bench.open()
    for number in range(40):
        await bench.put(b"%d" % number)
    chunk = await bench.log.read(StreamId(7, 0), 0, bytes_max=1 << 20)
    assert (chunk.records, chunk.next) == (40, 40)
    assert 0 < bench.log.bytes_read < len(chunk.frames)


async def test_a_read_answers_in_time_with_what_it_has(
    make_bench: Callable[[LogSettings], Bench],
) -> None:
    bench = make_bench(LogSettings(read_loop_us=0, run_bytes_max=100))
    await bench.prepare()
    await bench.open()
    records = max(RUNS_PER_LEAF, TAIL_ENTRIES_AT_ONCE) + 10
    for number in range(records):
        await bench.put(b"%d" % number)
    for _ in range(2):
        chunk = await bench.log.read(StreamId(7, 0), 0, bytes_max=1 << 20)
        assert 0 < chunk.next < records
        assert len(await bench.payloads()) == records
        await bench.reopen()
