"""Marks save a start from reading frames, and never change what it finds.

Frames have one record; there is a mark every ten frames, so most frames lie below one.
"""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dss_core.errors import DiskFull, SequenceTooOld
from dss_core.ids import StreamId
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES as WINDOW
from dssd.log.port import Appended
from dssd.log.resume import marks
from dssd.log.segment.file import HEADER_BYTES, SegmentId, SegmentPaths, write_all
from dssd.log.segment.frame_scan import scan_file
from dssd.log.sequences import SnapshotPosition
from dssd.log.settings import LogSettings
from dssd.store.port import Delete, Put
from dssd.store.rows import SegmentRow
from support.proof_share import share
from support.segment_bytes import frame_places

Bench = Any
MakeFrame = Callable[..., bytes]
RECORDS = 47
EVERY_FRAMES = 10
OTHER = b"another producer"


@pytest.fixture
async def marked(make_bench: Callable[[LogSettings], Bench]) -> Bench:
    """An open log that marks its files every few frames."""
    settings = LogSettings(
        watermark_frames=EVERY_FRAMES, run_bytes_max=1_000, read_loop_us=60_000_000
    )
    bench = make_bench(settings)
    await bench.prepare()
    await bench.open()
    return bench


def payload(number: int) -> bytes:
    return b"record %03d" % number


async def fill(bench: Bench, count: int = RECORDS) -> None:
    """Records in turn to two streams; marks are stored as soon as they are due."""
    for number in range(count):
        await bench.put(payload(number), partition=number % 2)
        await bench.settle()


def expected(partition: int, count: int = RECORDS) -> dict[int, bytes]:
    numbers = range(partition, count, 2)
    return {offset: payload(number) for offset, number in enumerate(numbers)}


async def check_streams(bench: Bench, count: int = RECORDS) -> None:
    for partition in (0, 1):
        assert await bench.payloads(partition) == expected(partition, count)
        assert await bench.damaged(partition) == []


def marks_of(bench: Bench) -> Path:
    (path,) = bench.directory.glob("*.marks")
    assert isinstance(path, Path)
    return path


@pytest.fixture
def read_from(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The parts of files in which a start reads frames."""
    parts: list[tuple[int, int]] = []

    def noted(fd: int, topic: int, start: int, end: int) -> Iterator[object]:
        if start < end:
            parts.append((start, end))
        return scan_file(fd, topic, start, end)

    monkeypatch.setattr("dssd.log.recovery.segment_content.scan_file", noted)
    return parts


async def test_a_start_after_a_kill_reads_only_what_lies_behind_the_last_mark(
    marked: Bench, read_from: list[tuple[int, int]]
) -> None:
    await fill(marked)
    (path,) = marked.segments()
    places, size = frame_places(path), path.stat().st_size
    await marked.reopen(crash=True)
    assert read_from == [(places[RECORDS // EVERY_FRAMES * EVERY_FRAMES], size)]
    await check_streams(marked)
    assert marked.log.quarantined() == []


async def test_a_kill_soon_after_a_clean_stop_reads_only_what_came_since(
    marked: Bench, read_from: list[tuple[int, int]]
) -> None:
    await fill(marked, RECORDS - 1)
    await marked.reopen()
    (path,) = marked.segments()
    stopped_at = path.stat().st_size
    await marked.put(payload(RECORDS - 1), partition=(RECORDS - 1) % 2)
    await marked.reopen(crash=True)
    assert [start for start, _ in read_from] == [stopped_at]
    await check_streams(marked)


async def test_marks_go_on_where_those_of_the_process_before_ended(
    marked: Bench, read_from: list[tuple[int, int]]
) -> None:
    await fill(marked, 20)
    (path,) = marked.segments()
    await marked.reopen(crash=True)
    assert marked.segments() == [path], "all of it lies below its watermark"
    for number in range(20, RECORDS):
        await marked.put(payload(number), partition=number % 2)
        await marked.settle()
    size = path.stat().st_size
    await marked.reopen(crash=True)
    assert read_from == [(frame_places(path)[40], size)]
    await check_streams(marked)
    assert [segment.frames for segment in marked.log._topics[7].segments.values()] == [40, 7]


async def test_a_start_finds_the_same_whatever_happened_to_the_marks(
    marked: Bench, make_frame: MakeFrame
) -> None:
    await fill(marked)
    await marked.crash()
    files = {path: path.read_bytes() for path in marked.directory.iterdir()}
    rows, marks_path = await marked.rows(), marks_of(marked)
    whole = files[marks_path]
    cut = [whole[:size] for size in range(0, len(whole), share(389, 97))]
    harmed = [flipped(whole, position) for position in range(0, len(whole), share(211, 61))]
    for left in (None, whole, whole + whole[-200:], *cut, *harmed):
        for path in marked.directory.iterdir():
            path.unlink()
        for path, held in files.items():
            path.write_bytes(held)
        marks_path.unlink() if left is None else marks_path.write_bytes(left)
        made = [Delete(SegmentRow, (7, row.segment_id)) for row in await marked.rows()]
        await marked.store.commit([*made, *(Put(row) for row in rows)])
        await marked.open()
        assert marked.log.quarantined() == []
        await check_streams(marked)
        await check_repeats(marked, make_frame)
        await marked.crash()
    await marked.open()


async def test_marks_of_an_older_version_are_read_from_their_frames(
    marked: Bench,
    make_frame: MakeFrame,
    monkeypatch: pytest.MonkeyPatch,
    read_from: list[tuple[int, int]],
) -> None:
    with monkeypatch.context() as older:
        older.setattr(marks, "_VERSION", marks._VERSION - 1)
        await fill(marked)
        await marked.crash()
    (path,) = marked.segments()
    size = path.stat().st_size
    await marked.open()
    assert read_from == [(HEADER_BYTES, size)]
    await check_streams(marked)
    await check_repeats(marked, make_frame)


def flipped(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 16]) + content[position + 1 :]


async def check_repeats(bench: Bench, make_frame: MakeFrame, count: int = RECORDS) -> None:
    """The last frames of a producer are answered again, older ones are too old."""
    for partition in (0, 1):
        records = expected(partition, count)
        for sequence, text in records.items():
            again = await bench.append(
                make_frame(text, partition=partition, sequence=sequence), partition=partition
            )
            if sequence < len(records) - WINDOW:
                assert isinstance(again, SequenceTooOld)
            else:
                assert isinstance(again, Appended), again
                assert (again.base_offset, again.repeated) == (sequence, True)


@pytest.mark.parametrize("snapshot", ["there", "missing"])
async def test_producers_of_all_marks_are_known_after_a_kill(
    marked: Bench, make_frame: MakeFrame, snapshot: str
) -> None:
    names = [b"producer no. %03d" % number for number in range(35)]
    built = [make_frame(name, producer=name) for name in names]
    for number, one in enumerate(built):
        assert isinstance(await marked.append(one), Appended)
        if number == 12:
            await marked.roll()
        await marked.settle()
    await marked.crash()
    if snapshot == "missing":
        for path in marked.directory.glob("*.prod"):
            path.unlink()
    await marked.open()
    for offset, one in enumerate(built):
        again = await marked.append(one)
        assert isinstance(again, Appended), again
        assert (again.base_offset, again.repeated) == (offset, True)


async def test_with_many_storage_topics_each_is_marked_sooner(
    marked: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.log.upkeep.housekeeper.WATERMARK_FRAMES_ALL", 15)
    monkeypatch.setattr("dssd.log.upkeep.housekeeper.WATERMARK_FRAMES_MIN", 4)
    for number, due in ((8, 7), (9, 5), (10, 4), (11, 4)):
        marked.log.open_storage_topic(number, 1)
        segment = marked.log._topics[7].last
        before = 0 if segment is None else segment.marks.frames
        await fill(marked, due - 1)
        segment = marked.log._topics[7].last
        assert segment.marks.frames == before
        await fill(marked, 1)
        assert segment.marks.frames == before + due


async def test_a_mark_above_the_watermark_does_not_count(
    marked: Bench, monkeypatch: pytest.MonkeyPatch, read_from: list[tuple[int, int]]
) -> None:
    await fill(marked, 15)
    usual = marked.store.commit

    async def full(*_: object) -> None:
        raise DiskFull

    monkeypatch.setattr(marked.store, "commit", full)
    for number in range(15, RECORDS):
        await marked.put(payload(number), partition=number % 2)
        await marked.settle()
    monkeypatch.setattr(marked.store, "commit", usual)
    (path,) = marked.segments()
    place = frame_places(path)[10]
    await marked.reopen(crash=True)
    assert [start for start, _ in read_from] == [place]
    await check_streams(marked)


@pytest.mark.parametrize("written_bytes", [0, 100])
async def test_a_mark_that_meets_a_full_disk_is_covered_by_the_next(
    marked: Bench,
    make_frame: MakeFrame,
    monkeypatch: pytest.MonkeyPatch,
    read_from: list[tuple[int, int]],
    written_bytes: int,
) -> None:
    await fill(marked, 15)

    def full(fd: int, buffers: list[bytes | memoryview], position: int) -> None:
        write_all(fd, [buffers[0][:written_bytes]], position)
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr("dssd.log.resume.marks.write_all", full)
    for number in range(15, 35):
        await marked.put(payload(number), partition=number % 2)
        await marked.settle()
    monkeypatch.setattr("dssd.log.resume.marks.write_all", write_all)
    for number in range(35, RECORDS):
        await marked.put(payload(number), partition=number % 2)
        await marked.settle()
    (path,) = marked.segments()
    place = frame_places(path)[46]
    assert marked.failures == []
    await marked.reopen(crash=True)
    assert [start for start, _ in read_from] == [place]
    await check_streams(marked)
    await check_repeats(marked, make_frame)


async def test_a_disk_that_fails_under_a_mark_ends_the_log(
    marked: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr("dssd.log.resume.marks.write_all", failing)
    for number in range(EVERY_FRAMES):
        await marked.put(payload(number))
    await marked.failed.wait()
    assert len(marked.failures) == 1


async def test_marks_are_removed_when_their_segment_is_sealed(marked: Bench) -> None:
    await fill(marked)
    await marked.roll()
    await marked.settle()
    assert list(marked.directory.glob("*.marks")) == []


async def test_marks_that_a_seal_left_behind_are_removed_at_the_next_start(marked: Bench) -> None:
    await fill(marked)
    path = marks_of(marked)
    held = path.read_bytes()
    await marked.roll()
    await marked.settle()
    path.write_bytes(held)
    await marked.reopen(crash=True)
    assert not path.exists()
    await check_streams(marked)


async def test_marks_of_no_segment_are_removed_at_the_next_start(marked: Bench) -> None:
    path = SegmentPaths(marked.directory).marks(SegmentId(7, 0xFFFF))
    path.write_bytes(b"whatever")
    await marked.reopen(crash=True)
    assert not path.exists()
    assert marked.log.quarantined() == []


async def test_damage_below_the_marks_costs_only_the_record_that_it_hit(
    marked: Bench,
) -> None:
    await fill(marked)
    await marked.crash()
    (path,) = marked.segments()
    held = bytearray(path.read_bytes())
    held[frame_places(path)[4] + 90] ^= 1
    path.write_bytes(held)
    await marked.open()
    assert await marked.payloads(0) == {n: x for n, x in expected(0).items() if n != 2}
    assert await marked.damaged(0) == [(2, 3)]
    assert await marked.payloads(1) == expected(1)


async def test_marks_are_ignored_if_their_file_ends_below_its_watermark(
    marked: Bench,
) -> None:
    await fill(marked, 40)
    await marked.crash()
    (path,) = marked.segments()
    cut = frame_places(path)[35]
    os.truncate(path, cut)
    await marked.open()
    assert "below its watermark" in marked.reasons()[0]
    found = [text for partition in (0, 1) for text in (await marked.payloads(partition)).values()]
    assert sorted(found) == [payload(number) for number in range(35)]


async def test_marks_are_ignored_if_the_header_of_their_file_is_damaged(marked: Bench) -> None:
    await fill(marked)
    await marked.crash()
    (path,) = marked.segments()
    held = bytearray(path.read_bytes())
    held[3] ^= 1
    path.write_bytes(held)
    await marked.open()
    assert "damaged header" in marked.reasons()[0]
    await check_streams(marked)


async def test_bad_bytes_between_the_last_mark_and_the_watermark_are_damage(marked: Bench) -> None:
    await fill(marked)
    await marked.crash()
    (path,) = marked.segments()
    (row,) = await marked.rows()
    await marked.store.commit([Put(replace(row, watermark_bytes=path.stat().st_size))])
    held = bytearray(path.read_bytes())
    held[frame_places(path)[44] + 90] ^= 1
    path.write_bytes(held)
    await marked.open()
    assert "damaged bytes" in marked.reasons()[0]
    assert await marked.payloads(0) == {n: x for n, x in expected(0).items() if n != 22}
    assert await marked.payloads(1) == expected(1)


async def test_no_run_reaches_over_a_mark(marked: Bench) -> None:
    await fill(marked)
    (path,) = marked.segments()
    known = marks.load(
        SegmentPaths(marked.directory),
        SegmentId(7, int(path.stem[9:], 16)),
        path.stat().st_size,
        SnapshotPosition(7, 0, 0),
    )
    (segment,) = marked.log._topics[7].segments.values()
    assert known.marks == segment.marks
    for partition, runs in known.runs.items():
        held = segment.runs[partition]
        assert runs.slice(0, len(runs)) == held.slice(0, len(runs))
        assert runs[-1].position + runs[-1].length <= known.marks.end
        assert held[len(runs)].position >= known.marks.end


async def test_frames_of_durability_os_are_marked_only_once_they_are_durable(
    marked: Bench, make_frame: MakeFrame
) -> None:
    for sequence in range(3 * EVERY_FRAMES):
        await marked.append(make_frame(payload(sequence), sequence=sequence), durability="os")
    await marked.settle()
    assert list(marked.directory.glob("*.marks")) == []
    (row,) = await marked.rows()
    assert row.watermark_bytes == HEADER_BYTES
    assert isinstance(
        await marked.append(make_frame(b"sync", producer=OTHER), durability="sync"), Appended
    )
    await marked.settle()
    (row,) = await marked.rows()
    assert row.watermark_bytes == marked.segments()[0].stat().st_size
    assert marked.log.bounds(StreamId(7, 0)).end == 3 * EVERY_FRAMES + 1
