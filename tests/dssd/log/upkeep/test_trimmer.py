"""Retention and trims: what is removed, what must stay, and what is durable before."""

import errno
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.ids import StreamId
from dss_core.progress import Range
from dssd.log.port import Appended
from dssd.store.port import Delete, Key, Precondition, Put, Write
from dssd.store.rows import Row, StorageTopicRow

Bench = Any
STREAM = StreamId(7, 0)


async def three_segments(bench: Bench) -> None:
    for number in range(3):
        bench.now_us = 1_000_000 * (number + 1)
        await bench.put(b"a%d" % number)
        await bench.put(b"b%d" % number, partition=1)
        if number < 2:
            await bench.roll()


async def test_old_segments_are_removed_and_their_offsets_are_never_assigned_again(
    bench: Bench,
) -> None:
    await three_segments(bench)
    gone = await bench.log.enforce_retention(7, 1_500, None, 4_000_000)
    assert gone == 2
    assert len(bench.segments()) == 1
    assert bench.log.bounds(STREAM).start == 2
    assert bench.log.bounds(STREAM).end == 3
    for crash in (False, True):
        assert await bench.payloads() == {2: b"a2"}
        assert await bench.damaged() == [], "what retention took is not damaged"
        await bench.reopen(crash=crash)
        assert bench.log.bounds(STREAM).start == 2


async def test_about_to_go_is_called_before_records_are_removed(bench: Bench) -> None:
    await three_segments(bench)
    await bench.log.trim(STREAM, 1)
    told: list[tuple[Mapping[StreamId, Range], int]] = []

    async def about_to_go(going: Mapping[StreamId, Range]) -> None:
        told.append((going, bench.log.bounds(STREAM).start))

    await bench.log.enforce_retention(7, 60_000, None, 4_000_000, about_to_go)
    assert told == []
    await bench.log.enforce_retention(7, 1_500, None, 4_000_000, about_to_go)
    assert told == [({STREAM: (1, 2), StreamId(7, 1): (0, 2)}, 1)]


async def test_a_read_below_the_start_goes_on_at_the_start(bench: Bench) -> None:
    await three_segments(bench)
    await bench.log.enforce_retention(7, 1_500, None, 4_000_000)
    chunk = await bench.log.read(STREAM, 0, bytes_max=1_000)
    assert (chunk.base, chunk.next, chunk.damaged, chunk.mask) == (2, 3, (), ())


async def test_even_the_active_segment_is_removed_when_all_its_records_are_old(
    bench: Bench,
) -> None:
    await three_segments(bench)
    assert await bench.log.enforce_retention(7, 1_000, None, 60_000_000) == 3
    bounds = bench.log.bounds(STREAM)
    assert (bounds.start, bounds.end, bounds.bytes) == (3, 3, 0)
    await bench.reopen(crash=True)
    assert (await bench.put(b"next")).base_offset == 3


@pytest.mark.parametrize("crash", [False, True])
async def test_append_times_do_not_fall_below_those_of_removed_records(
    bench: Bench, crash: bool
) -> None:
    """The clock is set back while no file has a record with a time."""
    await three_segments(bench)
    assert await bench.log.enforce_retention(7, 1_000, None, 60_000_000) == 3
    for _ in range(2):
        bench.now_us = 1_000
        await bench.reopen(crash=crash)
    assert (await bench.put(b"next")).append_time_us == 3_000_000


async def test_append_times_do_not_fall_below_those_of_files_that_a_start_deletes(
    bench: Bench,
) -> None:
    await three_segments(bench)
    await bench.roll()
    await bench.settle()
    await bench.crash()
    found = await bench.store.read(StorageTopicRow, (1, 0))
    await bench.store.commit([Put(replace(found.row, starts="3,3,0,0"))])
    for path in bench.directory.glob("*.prod"):
        path.unlink()
    bench.now_us = 1_000
    await bench.open()
    assert (await bench.put(b"next")).append_time_us == 3_000_000


async def test_retention_by_bytes_counts_the_active_segment(bench: Bench) -> None:
    await three_segments(bench)
    sizes = [path.stat().st_size for path in bench.segments()]
    assert await bench.log.enforce_retention(7, None, sum(sizes[1:]), 0) == 1
    assert await bench.log.enforce_retention(7, None, sum(sizes[1:]), 0) == 0
    assert await bench.log.enforce_retention(7, None, 0, 0) == 1


async def test_the_low_watermark_is_committed_before_a_file_is_removed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await three_segments(bench)
    starts: list[str] = []
    usual = bench.store.commit

    async def seen(
        writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        versions: list[int] = await usual(writes, preconditions)
        row = (await bench.store.read(StorageTopicRow, (1, 0))).row
        starts.append(f"{row.starts} {len(bench.segments())}")
        return versions

    monkeypatch.setattr(bench.store, "commit", seen)
    await bench.log.trim(STREAM, 1)
    await bench.log.trim(StreamId(7, 1), 1)
    assert starts == ["1,0,0,0 3", "1,1,0,0 3", "1,1,0,0 2"]


async def test_a_start_finishes_what_retention_began(bench: Bench) -> None:
    await three_segments(bench)
    await bench.log.close()
    found = await bench.store.read(StorageTopicRow, (1, 0))
    row = found.row
    await bench.store.commit([Put(replace(row, starts="1,1,0,0"))])
    assert len(bench.segments()) == 3
    await bench.open()
    assert len(bench.segments()) == 2
    assert len(await bench.rows()) == 2
    assert await bench.payloads() == {1: b"a1", 2: b"a2"}


async def test_a_trim_inside_a_segment_hides_records_and_keeps_the_file(bench: Bench) -> None:
    await three_segments(bench)
    await bench.log.trim(STREAM, 2)
    assert await bench.payloads() == {2: b"a2"}
    assert len(bench.segments()) == 3
    assert await bench.log.locate(STREAM, 0) == 2
    assert await bench.log.time_at(STREAM, 1) is None
    assert bench.log.count(STREAM, 0, 99) == (1, True)


async def test_records_below_the_start_are_masked_in_a_frame_that_has_others(
    bench: Bench,
) -> None:
    await bench.put(*(b"r%d" % number for number in range(10)))
    await bench.log.trim(STREAM, 5)
    for _ in range(2):
        assert list(await bench.payloads()) == [5, 6, 7, 8, 9]
        chunk = await bench.log.read(STREAM, 2, bytes_max=1_000)
        assert chunk.mask == ((0, 5),)
        await bench.reopen()


async def test_a_segment_without_an_age_does_not_keep_those_after_it(bench: Bench) -> None:
    await three_segments(bench)
    first = next(iter(bench.log._topics[7].segments.values()))
    for entry in first.summary.streams.values():
        entry.extent.last_us = 0
    assert await bench.log.enforce_retention(7, 1_500, None, 4_000_000) == 2
    assert len(bench.segments()) == 1


async def test_the_low_watermark_is_durable_however_many_topics_there_are(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = bench.store.scan

    async def small_pages(
        kind: type[Row], prefix: Key = (), *, after: Key | None = None, limit: int = 2
    ) -> object:
        return await usual(kind, prefix, after=after, limit=min(2, limit))

    monkeypatch.setattr("dssd.store.paging.PAGE_ROWS", 2)
    monkeypatch.setattr(bench.store, "scan", small_pages)
    row = (await bench.store.read(StorageTopicRow, (1, 0))).row
    await bench.store.commit(
        [Delete(StorageTopicRow, (1, 0)), Put(replace(row, topic_id=99))]
        + [Put(StorageTopicRow(n, 0, 100 + n, 1, 1, None, "0")) for n in range(5)]
    )
    await three_segments(bench)
    assert await bench.log.enforce_retention(7, 1_500, None, 4_000_000) == 2
    assert (await bench.store.read(StorageTopicRow, (99, 0))).row.starts == "2,2,0,0"


async def test_no_file_is_removed_without_a_row_for_the_low_watermark(bench: Bench) -> None:
    await three_segments(bench)
    await bench.store.commit([Delete(StorageTopicRow, (1, 0))])
    await bench.log.enforce_retention(7, 1_500, None, 4_000_000)
    assert len(bench.segments()) == 3
    assert bench.log.bounds(STREAM).start == 0
    await bench.log.remove_storage_topic(7)
    assert bench.segments() == []


async def test_a_trim_keeps_the_only_snapshot_of_the_producers(
    bench: Bench, make_frame: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A roll on a full disk leaves the snapshot beside the file before."""

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    early = make_frame(b"early", producer=b"who is trimmed  ")
    first = await bench.append(early)
    with monkeypatch.context() as patched:
        patched.setattr("dssd.log.resume.snapshots.store", full)
        await bench.roll()
    await bench.append(make_frame(b"late", producer=b"who comes later "))
    await bench.log.trim(STREAM, 1)
    await bench.reopen(crash=True)
    assert bench.log.bounds(STREAM).start == 1
    repeated = await bench.append(early)
    assert isinstance(repeated, Appended), repeated
    assert (repeated.base_offset, repeated.repeated) == (first.base_offset, True)


async def test_files_stay_as_long_as_there_is_no_room_for_a_snapshot(
    bench: Bench, make_frame: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    await bench.append(make_frame(b"early"))
    [oldest] = bench.segments()
    with monkeypatch.context() as patched:
        patched.setattr("dssd.log.resume.snapshots.store", full)
        await bench.roll()
        await bench.log.trim(STREAM, 1)
        assert oldest in bench.segments()
    await bench.log.trim(STREAM, 1)
    assert oldest not in bench.segments()


def floors(*offsets: int) -> Callable[[], Awaitable[Sequence[int]]]:
    async def asked() -> Sequence[int]:
        return [*offsets, 0, 0]

    return asked


async def test_only_segments_below_all_floors_go(bench: Bench) -> None:
    await three_segments(bench)
    assert await bench.log.trim_below(7, floors(2, 0)) == 0
    assert await bench.log.trim_below(7, floors(0, 2)) == 0
    assert len(bench.segments()) == 3
    assert await bench.log.trim_below(7, floors(2, 1)) == 1
    assert [bench.log.bounds(StreamId(7, at)).start for at in (0, 1)] == [1, 1]
    await bench.reopen(crash=True)
    assert await bench.payloads() == {1: b"a1", 2: b"a2"}


async def test_a_segment_goes_though_one_before_it_has_to_stay(bench: Bench) -> None:
    await bench.put(b"waits")
    await bench.roll()
    await bench.put(b"done", partition=1)
    await bench.roll()
    assert await bench.log.trim_below(7, floors(0, 1)) == 1
    assert await bench.payloads() == {0: b"waits"}
    assert await bench.payloads(partition=1) == {}


async def test_the_newest_segment_goes_once_it_is_worth_a_file(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await three_segments(bench)
    assert await bench.log.trim_below(7, floors(3, 3)) == 2
    assert await bench.log.trim_below(7, floors(3, 3)) == 0
    monkeypatch.setattr("dssd.log.upkeep.trimmer.QUEUE_ROLLED_BYTES_MIN", 100)
    assert await bench.log.trim_below(7, floors(3, 2)) == 0
    assert await bench.log.trim_below(7, floors(3, 3)) == 1
    assert bench.log.bounds(STREAM).bytes == 0
    assert await bench.log.trim_below(7, floors(3, 3)) == 0
    await bench.reopen(crash=True)
    assert (await bench.put(b"next")).base_offset == 3


async def test_floors_are_asked_for_only_where_a_segment_may_go(bench: Bench) -> None:
    async def never() -> Sequence[int]:
        raise AssertionError

    await bench.put(b"small")
    assert await bench.log.trim_below(7, never) == 0


@pytest.mark.parametrize("bounds", [(1_500, None), (None, 0)])
async def test_retention_takes_all_records_of_a_sealed_storage_topic_and_makes_no_file(
    bench: Bench, bounds: tuple[int | None, int | None]
) -> None:
    await three_segments(bench)
    await bench.seal()
    before = bench.log.kept_bytes(7)
    for _ in range(2):
        await bench.log.enforce_retention(7, *bounds, 60_000_000)
        assert (bench.log.bounds(STREAM).start, bench.log.bounds(STREAM).end) == (3, 3)
        assert len(bench.segments()) == 1, "what producers had sent stands beside it"
        assert bench.log.kept_bytes(7) == 0 < before
    repeat = bench.sequences[0, b"producer of test"]
    await bench.reopen(crash=True)
    built = frame_again(bench, repeat)
    again = await bench.append(built)
    assert isinstance(again, Appended)
    assert again.repeated


def frame_again(bench: Bench, sequence: int) -> bytes:
    columns = Columns(payloads=[b"a2"], subjects="orders")
    return build_frame(columns, partition=0, producer_id=b"producer of test", sequence=sequence)
