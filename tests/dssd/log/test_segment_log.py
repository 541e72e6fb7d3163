import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import (
    Overloaded,
    SequenceGap,
    SequenceTooOld,
    Stopping,
    StorageTopicSealed,
    StreamNotFound,
)
from dss_core.ids import StreamId
from dss_core.lane import ENTRIES, ENTRY_BYTES_MAX, ERROR_HEADER, LANE_HEADER
from dss_core.limits import RECORD_BYTES_MAX
from dssd.log.port import Append, Appended
from dssd.log.segment.file import SegmentId, SegmentPaths, SegmentWriter
from dssd.log.settings import LogSettings
from dssd.store.port import Put
from dssd.store.rows import StorageTopicRow

Bench = Any
STREAM = StreamId(7, 0)


async def test_what_was_appended_is_read_back_with_its_offsets(bench: Bench) -> None:
    first = await bench.put(b"a", b"b")
    second = await bench.put(b"c")
    assert (first.base_offset, first.records, first.repeated) == (0, 2, False)
    assert second.base_offset == 2
    assert await bench.payloads() == {0: b"a", 1: b"b", 2: b"c"}


@pytest.mark.parametrize("others", [0, 39])
async def test_an_entry_of_the_largest_record_is_stored_and_read(bench: Bench, others: int) -> None:
    headers = ((LANE_HEADER, bytes(ENTRY_BYTES_MAX // 2)), (ERROR_HEADER, bytes(1_024)))
    payloads = [bytes(RECORD_BYTES_MAX), *([b"x"] * others)]
    columns = Columns(payloads, None, "orders", [headers] * len(payloads), 5)
    built = build_frame(columns, partition=0, producer_id=bytes(16), sequence=0, limits=ENTRIES)
    assert isinstance(await bench.append(built), Appended)
    for crash in (False, True):
        chunk = await bench.log.read(STREAM, 0, bytes_max=1)
        assert decode(chunk.frames).headers == [headers] * len(payloads)
        assert decode(chunk.frames).payloads == payloads
        await bench.reopen(crash=crash)


async def test_streams_of_a_topic_have_their_own_offsets(bench: Bench) -> None:
    await bench.put(b"a", partition=0)
    await bench.put(b"b", partition=3)
    assert await bench.payloads(0) == {0: b"a"}
    assert await bench.payloads(3) == {0: b"b"}
    assert bench.log.bounds(StreamId(7, 1)).end == 0


@pytest.mark.parametrize("crash", [False, True])
async def test_records_survive_a_restart(bench: Bench, crash: bool) -> None:
    for number in range(10):
        await bench.put(b"%d" % number, partition=number % 2)
    await bench.reopen(crash=crash)
    assert list((await bench.payloads(0)).values()) == [b"0", b"2", b"4", b"6", b"8"]
    assert (await bench.put(b"next", partition=1)).base_offset == 5
    assert list((await bench.payloads(1)).values())[-1] == b"next"
    assert bench.log.quarantined() == []


async def test_a_read_inside_a_frame_masks_what_lies_below(bench: Bench) -> None:
    await bench.put(b"a", b"b", b"c")
    chunk = await bench.log.read(STREAM, 2, bytes_max=1_000)
    assert (chunk.base, chunk.records, chunk.next, chunk.mask) == (0, 3, 3, ((0, 2),))


async def test_a_read_at_the_end_is_empty(bench: Bench) -> None:
    await bench.put(b"a")
    chunk = await bench.log.read(STREAM, 1, bytes_max=1_000)
    assert (chunk.frames, chunk.base, chunk.next) == (b"", 1, 1)


async def test_a_read_gives_the_first_frame_whatever_its_size(bench: Bench) -> None:
    await bench.put(b"x" * 5_000)
    await bench.put(b"y")
    for _ in range(2):
        chunk = await bench.log.read(STREAM, 0, bytes_max=10)
        assert (chunk.records, chunk.next) == (1, 1)
        await bench.reopen()


async def test_reads_stop_at_their_bound(bench: Bench) -> None:
    for _ in range(20):
        await bench.put(b"x" * 100)
    for _ in range(2):
        chunk = await bench.log.read(STREAM, 3, bytes_max=1_000)
        assert len(chunk.frames) <= 1_000
        assert chunk.base == 3
        assert 2 <= chunk.records < 20
        await bench.reopen()


async def test_a_repeated_frame_gets_its_first_answer(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    built = make_frame(b"a", sequence=0)
    first = await bench.append(built)
    again = await bench.append(built)
    assert isinstance(again, Appended)
    assert (again.base_offset, again.repeated) == (first.base_offset, True)
    assert bench.log.bounds(STREAM).end == 1


async def test_a_repeat_in_the_same_call_shares_the_answer(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    append = Append(STREAM, make_frame(b"a", sequence=0), 1)
    first, again = await bench.log.append([append, append])
    assert (first.base_offset, first.repeated) == (0, False)
    assert (again.base_offset, again.repeated) == (0, True)


async def test_gaps_and_old_sequences_are_told_apart(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    for sequence in range(7):
        assert isinstance(await bench.append(make_frame(b"a", sequence=sequence)), Appended)
    assert isinstance(await bench.append(make_frame(b"a", sequence=8)), SequenceGap)
    assert isinstance(await bench.append(make_frame(b"a", sequence=1)), SequenceTooOld)
    repeated = await bench.append(make_frame(b"a", sequence=2))
    assert isinstance(repeated, Appended)
    assert (repeated.base_offset, repeated.repeated) == (2, True)


async def test_a_seal_refuses_new_frames_and_repeats_old_answers(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    built = make_frame(b"a", sequence=0)
    await bench.append(built)
    async with bench.log.sealing(7) as ends:
        assert ends.offsets == (1, 0, 0, 0)
    assert isinstance(await bench.append(make_frame(b"b", sequence=1)), StorageTopicSealed)
    again = await bench.append(built)
    assert isinstance(again, Appended)
    assert again.repeated


async def test_what_takes_over_has_its_file_before_any_append_waits(
    bench: Bench, make_frame: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.put(b"before")
    bench.log.open_storage_topic(8, 1)
    old, held = bench.log._topics[7], list[bool]()
    create = SegmentWriter.create

    def noted(paths: SegmentPaths, segment: SegmentId, created_us: int) -> SegmentWriter:
        held.append(old.held)
        return create(paths, segment, created_us)

    monkeypatch.setattr(SegmentWriter, "create", noted)
    async with bench.log.sealing(7, 8):
        assert old.held
    assert held == [False]
    first = Append(StreamId(8, 0), make_frame(b"first"), 8)
    (result,) = await bench.log.append([first])
    assert isinstance(result, Appended)
    assert held == [False]


@pytest.mark.parametrize("crash", [False, True])
async def test_a_sealed_storage_topic_leaves_its_file_and_knows_its_producers_after_a_start(
    bench: Bench, make_frame: Callable[..., bytes], crash: bool
) -> None:
    built = make_frame(b"a", sequence=0)
    await bench.append(built)
    await bench.seal()
    await bench.settle()
    assert len(bench.log._writer._group_commit._open_files) == 0, "no descriptor is kept"
    assert isinstance(await bench.append(make_frame(b"b", sequence=1)), StorageTopicSealed)
    for _ in range(2):
        assert [row.state for row in await bench.rows()] == ["sealed"]
        await bench.reopen(crash=crash)
        assert bench.reasons() == []
        assert await bench.payloads() == {0: b"a"}
        again = await bench.append(built)
        assert isinstance(again, Appended)
        assert again.repeated


async def test_a_seal_that_was_committed_before_a_crash_ends_its_file_at_the_start(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    await bench.append(make_frame(b"a", sequence=0))
    [found] = await bench.store.scan(StorageTopicRow)
    await bench.store.commit([Put(replace(found.row, ends="1,0,0,0"))])
    await bench.reopen(crash=True)
    await bench.settle()
    assert [row.state for row in await bench.rows()] == ["sealed"]
    assert await bench.payloads() == {0: b"a"}


async def test_unknown_streams_are_refused_one_by_one(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    built = make_frame(b"a", sequence=0)
    appends = [Append(StreamId(99, 0), built, 1), Append(STREAM, built, 1)]
    refused, stored = await bench.log.append(appends)
    assert isinstance(refused, StreamNotFound)
    assert isinstance(stored, Appended)
    with pytest.raises(StreamNotFound):
        bench.log.bounds(StreamId(99, 0))


async def test_calls_that_wait_for_the_first_file_keep_their_order(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    calls = [bench.append(make_frame(b"%d" % n, sequence=n)) for n in range(50)]
    results = await asyncio.gather(*calls)
    assert [result.base_offset for result in results] == list(range(50))


async def test_order_holds_while_segments_roll(
    make_bench: Callable[[LogSettings], Bench], make_frame: Callable[..., bytes]
) -> None:
    bench = make_bench(LogSettings(segment_bytes_max=2_000))
    await bench.prepare()
    await bench.open()
    for start in range(0, 200, 20):
        calls = [bench.append(make_frame(b"%d" % n, sequence=n)) for n in range(start, start + 20)]
        results = await asyncio.gather(*calls)
        assert [result.base_offset for result in results] == list(range(start, start + 20))
    assert len(bench.segments()) > 3
    await bench.reopen(crash=True)
    assert await bench.payloads() == {n: b"%d" % n for n in range(200)}


async def test_watchers_are_called_after_growth_until_they_stop(bench: Bench) -> None:
    grown: list[int] = []
    stop = bench.log.watch(STREAM, lambda: grown.append(bench.log.bounds(STREAM).end))
    await bench.put(b"a")
    await bench.put(b"b", partition=1)
    stop()
    await bench.put(b"c")
    assert grown == [1]


async def test_appends_beyond_the_queue_are_refused(
    make_bench: Callable[[LogSettings], Bench], make_frame: Callable[..., bytes]
) -> None:
    bench = make_bench(LogSettings(writer_queue_bytes_max=1_000))
    await bench.prepare()
    await bench.open()
    calls = [bench.append(make_frame(b"x" * 400, sequence=n)) for n in range(5)]
    results = await asyncio.gather(*calls)
    assert isinstance(results[0], Appended)
    assert isinstance(results[-1], Overloaded)
    assert isinstance(await bench.append(make_frame(b"y", sequence=1)), Appended)


async def test_locate_finds_the_first_record_of_a_time(bench: Bench) -> None:
    for number in range(10):
        bench.now_us = 1_000_000 + number * 10
        await bench.put(b"%d" % number, b"more")
    for _ in range(2):
        assert await bench.log.locate(STREAM, 0) == 0
        assert await bench.log.locate(STREAM, 1_000_030) == 6
        assert await bench.log.locate(STREAM, 1_000_031) == 8
        assert await bench.log.locate(STREAM, 1_000_091) == 20
        assert await bench.log.time_at(STREAM, 7) == 1_000_030
        assert await bench.log.time_at(STREAM, 20) is None
        await bench.reopen()


async def test_append_times_never_fall(bench: Bench) -> None:
    first = await bench.put(b"a")
    bench.now_us = 10
    assert (await bench.put(b"b")).append_time_us == first.append_time_us
    await bench.reopen(crash=True)
    assert (await bench.put(b"c")).append_time_us == first.append_time_us


async def test_counts_are_cut_to_what_is_kept(bench: Bench) -> None:
    for _ in range(5):
        await bench.put(b"a")
    assert bench.log.count(STREAM, 1, 3) == (2, True)
    assert bench.log.count(STREAM, 3, 99) == (2, True)


async def test_a_closed_log_refuses_appends(bench: Bench, make_frame: Callable[..., bytes]) -> None:
    await bench.log.close()
    assert isinstance(await bench.append(make_frame(b"a", sequence=0)), Stopping)


async def test_a_removed_storage_topic_leaves_no_file_and_no_row(bench: Bench) -> None:
    await bench.put(b"a")
    await bench.log.remove_storage_topic(7)
    assert bench.segments() == []
    assert await bench.rows() == []
    with pytest.raises(StreamNotFound):
        await bench.log.read(STREAM, 0, bytes_max=100)


async def test_a_new_storage_topic_is_appendable_at_once(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    bench.log.open_storage_topic(8, 2)
    stream = StreamId(8, 1)
    (result,) = await bench.log.append([Append(stream, make_frame(b"a", partition=1), 1)])
    assert isinstance(result, Appended)
    assert bench.log.bounds(stream).end == 1


async def test_os_durability_is_answered_without_a_sync(
    bench: Bench, make_frame: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.append(make_frame(b"a"), durability="os")
    await bench.settle()
    synced: list[int] = []
    monkeypatch.setattr("os.fdatasync", synced.append)
    result = await bench.append(make_frame(b"b", sequence=1), durability="os")
    assert isinstance(result, Appended)
    assert synced == []
    assert len(await bench.payloads()) == 2


@pytest.mark.parametrize("reopened", [False, True])
async def test_many_small_frames_roll_a_segment_before_it_is_large(
    make_bench: Callable[[LogSettings], Bench], reopened: bool
) -> None:
    bench = make_bench(LogSettings(segment_frames_max=5))
    await bench.prepare()
    await bench.open()
    for _ in range(4):
        await bench.put(b"x")
    if reopened:
        await bench.reopen()
    await bench.put(b"x")
    assert len(bench.segments()) == 1
    await bench.put(b"rolls it")
    await bench.log.roll(7)
    assert len(bench.segments()) == 2
