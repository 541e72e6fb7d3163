import asyncio
import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from dss_core.errors import DiskFailed, DiskFull, DssError, Overloaded, SequenceGap
from dss_core.ids import StreamId
from dssd.log.port import Append, Appended
from dssd.log.recovery import judge_segment
from dssd.log.segment.file import HEADER_BYTES, SegmentWriter
from dssd.log.settings import LogSettings
from dssd.store.port import Put
from dssd.store.rows import StorageTopicRow

Bench = Any
STREAM = StreamId(7, 0)


class FaultyDisk:
    """Makes a system call of the writer fail from now on, after doing its usual work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, call: str, error: int) -> None:
        self._usual = getattr(os, call)
        self._error = error
        self.calls = 0
        self.broken = True
        monkeypatch.setattr(os, call, self)

    def __call__(self, *arguments: object) -> object:
        self.calls += 1
        result = self._usual(*arguments)
        if self.broken:
            raise OSError(self._error, os.strerror(self._error))
        return result


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("call", ["pwritev", "fdatasync"])
async def test_a_full_disk_refuses_frames_and_takes_them_when_there_is_room(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    make_frame: Callable[..., bytes],
    call: str,
    error: int,
) -> None:
    await bench.put(b"before")
    (path,) = bench.segments()
    size = path.stat().st_size
    disk = FaultyDisk(monkeypatch, call, error)
    built = make_frame(b"refused", sequence=1)
    first, repeat = await bench.log.append([Append(STREAM, built, 1)] * 2)
    assert isinstance(first, DiskFull)
    assert isinstance(repeat, DiskFull), "a repeat must not be answered with what was taken back"
    assert path.stat().st_size == size
    assert await bench.payloads() == {0: b"before"}
    disk.broken = False
    stored = await bench.append(built)
    assert isinstance(stored, Appended)
    assert (stored.base_offset, stored.repeated) == (1, False)
    await bench.reopen(crash=True)
    assert await bench.payloads() == {0: b"before", 1: b"refused"}
    assert bench.failures == []


@pytest.mark.parametrize(
    ("call", "error", "condition"),
    [
        ("pwritev", errno.ENOSPC, DiskFull),
        ("pwritev", errno.EMFILE, Overloaded),
        ("fdatasync", errno.ENOSPC, DiskFull),
        ("fsync", errno.ENOSPC, DiskFull),
    ],
)
async def test_what_follows_the_refused_first_frame_of_a_producer_waits_for_it(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    make_frame: Callable[..., bytes],
    call: str,
    error: int,
    condition: type[DssError],
) -> None:
    """As its client sends it again over another call, it must not be too old by then."""
    frames = [make_frame(b"%d" % number, sequence=number) for number in range(4)]
    if call != "fsync":
        await bench.put(b"of another stream", partition=1)
    disk = FaultyDisk(monkeypatch, call, error)
    first, second = await bench.log.append([Append(STREAM, built, 1) for built in frames[:2]])
    assert isinstance(first, condition)
    assert isinstance(second, (condition, SequenceGap))
    assert isinstance(await bench.append(frames[0]), condition)
    disk.broken = False
    for built in frames[2:]:
        assert isinstance(await bench.append(built), SequenceGap)
    again = [await bench.append(built) for built in frames]
    assert all(isinstance(each, Appended) and not each.repeated for each in again)
    await bench.reopen(crash=True)
    assert await bench.payloads() == {number: b"%d" % number for number in range(4)}


async def test_frames_are_refused_until_there_is_room_for_a_first_file(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: Callable[..., bytes]
) -> None:
    disk = FaultyDisk(monkeypatch, "fsync", errno.ENOSPC)
    assert isinstance(await bench.append(make_frame(b"a")), DiskFull)
    assert bench.segments() == []
    assert await bench.rows() == []
    disk.broken = False
    assert isinstance(await bench.append(make_frame(b"a")), Appended)


@pytest.mark.parametrize("call", ["pwritev", "fdatasync"])
async def test_any_other_error_stops_the_log_and_nothing_is_answered(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: Callable[..., bytes], call: str
) -> None:
    await bench.put(b"before")
    disk = FaultyDisk(monkeypatch, call, errno.EIO)
    calls = [
        asyncio.create_task(bench.append(make_frame(b"%d" % n, sequence=n))) for n in range(1, 4)
    ]
    await bench.failed.wait()
    calls.append(asyncio.create_task(bench.append(make_frame(b"4", sequence=4))))
    done, pending = await asyncio.wait(calls, timeout=0.05)
    assert not done
    assert disk.calls == 1, "a descriptor that failed is not used again"
    assert len(bench.failures) == 1
    for task in pending:
        task.cancel()
    await asyncio.wait(calls)
    assert await bench.payloads() == {0: b"before"}
    disk.broken = False
    await bench.log.close()


async def test_a_disk_that_cannot_take_back_a_write_stops_the_log(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: Callable[..., bytes]
) -> None:
    await bench.put(b"before")
    FaultyDisk(monkeypatch, "pwritev", errno.ENOSPC)
    FaultyDisk(monkeypatch, "ftruncate", errno.EIO)
    call = asyncio.create_task(bench.append(make_frame(b"a", sequence=1)))
    await bench.failed.wait()
    assert not call.done()
    call.cancel()
    await asyncio.wait([call])
    await bench.log.close()


async def test_frames_acknowledged_without_a_sync_stay_in_their_file_when_a_roll_cannot_sync_them(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: Callable[..., bytes]
) -> None:
    await bench.append(make_frame(b"ceiling"), durability="os")
    await bench.settle()
    await bench.append(make_frame(b"os 0", sequence=1), durability="os")
    (path,) = bench.segments()
    synced = len(make_frame(b"ceiling"))
    content, usual = path.read_bytes(), os.pwritev
    written: list[tuple[int, int]] = []

    def noted(fd: int, buffers: list[bytes], position: int) -> int:
        written.append((os.fstat(fd).st_ino, position))
        return usual(fd, buffers, position)

    disk = FaultyDisk(monkeypatch, "fdatasync", errno.ENOSPC)
    assert not await bench.log.roll(7)
    with pytest.raises(DiskFull):
        async with bench.log.sealing(7):
            pass
    assert bench.segments() == [path]
    assert [row.segment_id for row in await bench.rows()] == [1]
    disk.broken = False
    monkeypatch.setattr(os, "pwritev", noted)
    assert await bench.log.roll(7)
    doubtful = (path.stat().st_ino, HEADER_BYTES + synced)
    assert doubtful in written, "the page cache alone proves nothing"
    assert path.read_bytes() == content
    assert isinstance(await bench.append(make_frame(b"os 1", sequence=2)), Appended)
    assert await bench.payloads() == {0: b"ceiling", 1: b"os 0", 2: b"os 1"}
    assert bench.failures == []


async def test_where_what_takes_over_gets_no_file_nothing_is_sealed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: Callable[..., bytes]
) -> None:
    await bench.put(b"before")
    bench.log.open_storage_topic(8, 1)

    def full(*_: object) -> SegmentWriter:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as disk:
        disk.setattr(SegmentWriter, "create", full)
        with pytest.raises(DiskFull):
            async with bench.log.sealing(7, 8):
                pass
    assert isinstance(await bench.append(make_frame(b"after", sequence=1)), Appended)
    async with bench.log.sealing(7, 8) as ends:
        assert ends.offsets[0] == 2
    assert bench.failures == []


async def test_a_stop_on_a_full_disk_leaves_the_log_for_the_next_start_to_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: Callable[..., bytes]
) -> None:
    await bench.put(b"durable")
    await bench.append(make_frame(b"os", sequence=1), durability="os")
    disks = [FaultyDisk(monkeypatch, call, errno.ENOSPC) for call in ("fdatasync", "fsync")]
    await bench.log.close()
    for disk in disks:
        disk.broken = False
    await bench.open()
    assert await bench.payloads() == {0: b"durable", 1: b"os"}
    assert bench.failures == []


async def test_a_stop_on_a_failing_disk_reports_the_failure(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.put(b"durable")
    disk = FaultyDisk(monkeypatch, "fsync", errno.EIO)
    with pytest.raises(DiskFailed, match="while closing the log"):
        await bench.log.close()
    disk.broken = False
    await bench.open()
    assert await bench.payloads() == {0: b"durable"}


async def test_a_removal_on_a_disk_that_fails_stops_the_log(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.put(b"to be removed")
    disk = FaultyDisk(monkeypatch, "fsync", errno.EIO)
    with pytest.raises(DiskFailed):
        await bench.log.remove_storage_topic(STREAM.storage_topic_id)
    assert [type(failure) for failure in bench.failures] == [DiskFailed]
    disk.broken = False
    await bench.log.close()


async def test_a_full_store_delays_a_watermark(
    make_bench: Callable[[LogSettings], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench(LogSettings(watermark_bytes=1))
    await bench.prepare()
    await bench.open()
    await bench.put(b"x")
    await bench.settle()
    usual = bench.store.commit

    async def full(*_: object) -> None:
        raise DiskFull

    monkeypatch.setattr(bench.store, "commit", full)
    await bench.put(b"y")
    await bench.settle()
    (row,) = await bench.rows()
    monkeypatch.setattr(bench.store, "commit", usual)
    await bench.put(b"z")
    await bench.settle()
    (later,) = await bench.rows()
    assert row.watermark_bytes < later.watermark_bytes == bench.segments()[0].stat().st_size
    assert bench.failures == []


async def test_a_file_that_could_not_be_sealed_is_sealed_later_and_then_can_go(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.put(b"old")
    usual = judge_segment.write_index

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(judge_segment, "write_index", full)
    assert await bench.log.roll(7), "it goes on in a new file all the same"
    await bench.put(b"new")
    assert [row.state for row in await bench.rows()] == ["active", "active"]
    assert await bench.log.enforce_retention(7, None, 0, 0) == 0
    monkeypatch.setattr(judge_segment, "write_index", usual)
    await bench.log.roll(7)
    assert [row.state for row in await bench.rows()] == ["sealed", "sealed", "active"]
    assert await bench.payloads() == {0: b"old", 1: b"new"}
    assert await bench.log.enforce_retention(7, None, 0, 0) == 2


class FullDisk:
    """Make every call fail that takes new space; overwriting still works."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
        self.broken = True
        self._open = os.open
        self._commit = bench.store.commit
        monkeypatch.setattr(os, "open", self.open)
        monkeypatch.setattr(bench.store, "commit", self.commit)

    def open(self, path: str, flags: int, *arguments: int) -> int:
        if self.broken and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, "no room")
        return self._open(path, flags, *arguments)

    async def commit(self, *arguments: object) -> list[int]:
        if self.broken:
            raise DiskFull
        versions: list[int] = await self._commit(*arguments)
        return versions


class FullStore:
    """Make every commit fail; files have room."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
        self.broken = True
        self.refused = 0
        self._commit = bench.store.commit
        monkeypatch.setattr(bench.store, "commit", self.commit)

    async def commit(self, *arguments: object) -> list[int]:
        if self.broken:
            self.refused += 1
            raise DiskFull
        versions: list[int] = await self._commit(*arguments)
        return versions


@pytest.mark.parametrize("damage", ["none", "torn", "between", "index"])
async def test_a_start_on_a_full_disk_serves_what_is_there_and_goes_on_once_there_is_room(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: Callable[..., bytes], damage: str
) -> None:
    frames = [make_frame(b"rec %d" % number, sequence=number) for number in range(4)]
    for number, built in enumerate(frames):
        if number == 1:
            await bench.roll()
        await bench.append(built)
    await bench.crash()
    sealed, path = bench.segments()
    content = bytearray(path.read_bytes())
    readable = {number: b"rec %d" % number for number in range(4)}
    if damage == "torn":
        path.write_bytes(content[:-1])
        del readable[3]
    elif damage == "between":
        content[content.index(b"rec 2")] ^= 1
        path.write_bytes(content)
        del readable[2]
    elif damage == "index":
        sealed.with_suffix(".idx").unlink()
    disk = FullDisk(monkeypatch, bench)
    rewritten = FaultyDisk(monkeypatch, "fdatasync", 0)
    rewritten.broken = False
    for _ in range(2):
        await bench.open()
        assert rewritten.calls, "what a repeat is answered with is durable"
        assert await bench.payloads() == readable
        again = await bench.append(frames[max(readable)])
        assert isinstance(again, Appended)
        assert again.repeated
        refused = await bench.append(make_frame(b"new", sequence=4))
        assert isinstance(refused, DssError)
        await bench.log.close()
    await bench.open()
    disk.broken = False
    stored = await bench.append(make_frame(b"new", producer=b"another producer"))
    assert isinstance(stored, Appended)
    readable[stored.base_offset] = b"new"
    assert await bench.payloads() == readable
    for crash in (True, False):
        await bench.reopen(crash=crash)
        assert await bench.payloads() == readable
    assert bench.failures == []


@pytest.mark.parametrize("promised", [0, 1, 2])
async def test_a_start_without_room_for_rows_leaves_each_frame_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: Callable[..., bytes], promised: int
) -> None:
    frames = [make_frame(b"rec %d" % number, sequence=number) for number in range(4)]
    sizes = [HEADER_BYTES]
    for built in frames:
        await bench.append(built)
        sizes.append(bench.segments()[0].stat().st_size)
    await bench.crash()
    await bench.promise(sizes[promised])
    (path,) = bench.segments()
    readable = {number: b"rec %d" % number for number in range(4)}
    if promised:
        # What was promised is damaged: the file is sealed, and what lies behind it is copied.
        content = bytearray(path.read_bytes())
        content[content.index(b"rec 0")] ^= 1
        path.write_bytes(content)
        del readable[0]
    disk = FullStore(monkeypatch, bench)
    for _ in range(2):
        await bench.open()
        assert disk.refused, "there was a row to write"
        assert bench.segments() == [path], "no copy without a row is left"
        assert not bench.quarantine(), "nor set aside"
        assert await bench.payloads() == readable
        await bench.log.close()
    disk.broken = False
    await bench.open()
    for crash in (True, False):
        await bench.reopen(crash=crash)
        assert await bench.payloads() == readable
        again = await bench.append(frames[3])
        assert isinstance(again, Appended)
        assert (again.base_offset, again.repeated) == (3, True)
    assert bench.failures == []


async def test_without_descriptors_frames_are_refused_and_reads_wait(
    make_bench: Callable[[LogSettings], Bench],
    monkeypatch: pytest.MonkeyPatch,
    make_frame: Callable[..., bytes],
) -> None:
    bench = make_bench(LogSettings(tail_cache_bytes_max=0))
    await bench.prepare()
    await bench.open()
    usual: Any = os.open
    short = True

    def none_left(*arguments: object, **named: object) -> int:
        if short:
            raise OSError(errno.EMFILE, "too many")
        fd: int = usual(*arguments, **named)
        return fd

    monkeypatch.setattr(os, "open", none_left)
    built = make_frame(b"a")
    assert isinstance(await bench.append(built), Overloaded)
    short = False
    assert isinstance(await bench.append(built), Appended)
    short = True
    reading = asyncio.create_task(bench.payloads())
    await asyncio.sleep(0)
    assert not reading.done()
    short = False
    assert await reading == {0: b"a"}
    assert bench.failures == []


async def test_more_topics_take_frames_than_files_are_open(
    make_bench: Callable[[LogSettings], Bench], make_frame: Callable[..., bytes]
) -> None:
    bench = make_bench(LogSettings(active_descriptors_max=2, tail_cache_bytes_max=0))
    await bench.prepare()
    topics = range(7, 13)
    for topic in topics[1:]:
        row = StorageTopicRow(topic, 0, topic, 1, 1, None, "0")
        await bench.store.commit([Put(row)])
    await bench.open()
    for sequence in range(3):
        for durability, some in (("sync", topics[:3]), ("os", topics[3:])):
            appends = [
                Append(StreamId(topic, 0), make_frame(b"x", sequence=sequence), 1, durability)
                for topic in some
            ]
            results = await bench.log.append(appends)
            assert [result.base_offset for result in results] == [sequence] * len(appends)
            assert len(bench.log._writer._open_files) <= 2
    await bench.reopen(crash=True)
    counts = [bench.log.count(StreamId(topic, 0), 0, 1 << 20) for topic in topics]
    assert counts == [(3, True)] * len(topics)


@pytest.mark.parametrize("part", ["writer", "housekeeper"])
async def test_a_programmers_error_in_the_log_is_reported_as_such(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    make_frame: Callable[..., bytes],
    part: str,
) -> None:
    await bench.put(b"before")

    def mistaken(*_: object) -> None:
        raise ZeroDivisionError

    if part == "writer":
        monkeypatch.setattr("dssd.log.write.group_commit._place", mistaken)
        call = asyncio.create_task(bench.append(make_frame(b"a", sequence=1)))
    else:
        monkeypatch.setattr(SegmentWriter, "create", mistaken)
        call = asyncio.create_task(bench.log.roll(7))
    await bench.failed.wait()
    assert [type(failure) for failure in bench.failures] == [ZeroDivisionError]
    assert not call.done()
    call.cancel()
    await asyncio.wait([call])
    await bench.log.close()
