"""The outcome of each state of the files after a crash. Frames have one record of 7 bytes."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dss_core.errors import StoreOlderThanLog
from dss_core.ids import StreamId
from dssd.check.findings import Report, Weight
from dssd.check.segments import TopicCheck
from dssd.log.port import Appended
from dssd.log.segment.file import HEADER_BYTES, SegmentId, SegmentPaths
from dssd.store.port import Put
from dssd.store.rows import SegmentRow, StorageTopicRow
from support.segment_bytes import flip, frame_places

Bench = Any
STREAM = StreamId(7, 0)


async def fill(bench: Bench, count: int) -> None:
    for number in range(count):
        await bench.put(b"rec %03d" % number)


async def killed(bench: Bench, count: int) -> Path:
    """The only file of a log that was killed when it had so many frames."""
    await fill(bench, count)
    await bench.crash()
    (file,) = bench.segments()
    assert isinstance(file, Path)
    return file


async def sent_again(
    bench: Bench, make_frame: Callable[..., bytes], number: int
) -> tuple[int, bool]:
    """Send a frame again; returns its offset, and whether it counted as a repeat."""
    again = await bench.append(make_frame(b"rec %03d" % number, sequence=number))
    assert isinstance(again, Appended)
    return again.base_offset, again.repeated


async def damage_told(bench: Bench) -> list[str]:
    """What a check of every byte calls damage."""
    report = Report(bench.directory, deep=True)
    [topic] = [found.row for found in await bench.store.scan(StorageTopicRow)]
    check = TopicCheck(SegmentPaths(bench.directory), topic, "orders", report, lambda _: None, {})
    check.check(await bench.rows(), clean=False)
    return [each.what for each in report.findings if each.weight is Weight.DAMAGE]


async def test_a_start_after_a_clean_stop_reads_no_frames(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(bench, 3)
    await bench.log.close()

    def nothing_to_read(_fd: int, _topic: int, start: int, end: int) -> Iterator[object]:
        assert start == end, "frames were read"
        return iter(())

    monkeypatch.setattr("dssd.log.recovery.segment_content.scan_file", nothing_to_read)
    await bench.open()
    assert len(await bench.payloads()) == 3
    assert len(await bench.rows()) == 1


async def test_the_clean_marker_counts_once(bench: Bench) -> None:
    await fill(bench, 1)
    await bench.reopen()
    assert not (bench.directory / "CLEAN").exists()


async def test_a_tail_above_the_watermark_moves_to_a_new_file(bench: Bench) -> None:
    await fill(bench, 3)
    (before,) = bench.segments()
    await bench.reopen(crash=True)
    (after,) = bench.segments()
    assert after != before
    assert len(await bench.payloads()) == 3
    assert bench.log.quarantined() == []
    (row,) = await bench.rows()
    assert row.watermark_bytes == after.stat().st_size


async def test_frames_below_the_watermark_stay_in_their_file(bench: Bench) -> None:
    old = await killed(bench, 4)
    cut = frame_places(old)[2]
    await bench.promise(cut)
    await bench.open()
    kept, moved = bench.segments()
    assert kept == old
    assert len(frame_places(moved)) == 2
    assert [row.state for row in await bench.rows()] == ["sealed", "active"]
    assert await bench.payloads() == {n: b"rec %03d" % n for n in range(4)}


@pytest.mark.parametrize("torn", [1, 50, 84, 100])
async def test_a_torn_tail_leaves_the_good_part_in_a_new_file(bench: Bench, torn: int) -> None:
    old = await killed(bench, 4)
    content = old.read_bytes()
    last = frame_places(old)[-1]
    old.write_bytes(content[: last + torn])
    await bench.open()
    assert await bench.payloads() == {n: b"rec %03d" % n for n in range(3)}
    assert [path.name for path in bench.quarantine()] == [old.name]
    assert bench.quarantine()[0].read_bytes() == content[: last + torn]
    assert bench.reasons() == [f"torn tail: {torn} bytes after byte {last} are no whole frame"]


async def test_a_torn_tail_above_the_watermark_stays_in_the_old_file(bench: Bench) -> None:
    old = await killed(bench, 4)
    positions = frame_places(old)
    await bench.promise(positions[2])
    old.write_bytes(old.read_bytes()[: positions[3] + 10])
    await bench.open()
    assert await bench.payloads() == {n: b"rec %03d" % n for n in range(3)}
    assert bench.segments()[0] == old
    assert "torn tail" in bench.reasons()[0]


async def test_a_torn_record_can_be_sent_again_and_gets_the_same_offset(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    old = await killed(bench, 3)
    old.write_bytes(old.read_bytes()[:-1])
    await bench.open()
    assert await sent_again(bench, make_frame, 2) == (2, False)


@pytest.mark.parametrize("promised", [0, 2])
@pytest.mark.parametrize("bad", [1, 2, 4])
async def test_the_newest_frames_keep_their_offsets_where_their_headers_are_whole(
    bench: Bench, bad: int, promised: int
) -> None:
    """None of them was known to be durable: nobody can tell whether they were acknowledged."""
    old = await killed(bench, 4)
    places = frame_places(old)
    if promised <= 4 - bad:
        await bench.promise(places[promised])
    for place in places[-bad:]:
        flip(old, place + 100)
    await bench.open()
    for _ in range(2):
        assert await bench.payloads() == {n: b"rec %03d" % n for n in range(4 - bad)}
        assert await bench.damaged() == [(4 - bad, 4)]
        assert [bench.log.bounds(StreamId(7, other)).end for other in (0, 1)] == [4, 0]
        await bench.reopen(crash=True)
    assert (await bench.put(b"next")).base_offset == 4
    assert f"the records {4 - bad}..4 cannot be read" in await damage_told(bench)


async def test_the_newest_frame_keeps_its_offset_before_one_that_was_torn(bench: Bench) -> None:
    old = await killed(bench, 4)
    places = frame_places(old)
    flip(old, places[2] + 100)
    old.write_bytes(old.read_bytes()[:-1])
    await bench.open()
    assert await bench.damaged() == [(2, 3)]
    assert [bench.log.bounds(StreamId(7, other)).end for other in (0, 1)] == [3, 0]


async def test_the_newest_frame_is_stored_once_where_it_is_bad_and_sent_again(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    old = await killed(bench, 3)
    flip(old, frame_places(old)[2] + 100)
    await bench.open()
    assert await sent_again(bench, make_frame, 2) == (3, False)
    await bench.reopen(crash=True)
    assert await sent_again(bench, make_frame, 2) == (3, True)
    assert await bench.payloads() == {0: b"rec 000", 1: b"rec 001", 3: b"rec 002"}


async def test_the_index_with_the_offsets_of_a_bad_newest_frame_can_be_made_anew(
    bench: Bench,
) -> None:
    old = await killed(bench, 3)
    await bench.promise(frame_places(old)[2])
    flip(old, frame_places(old)[2] + 100)
    await bench.open()
    await bench.crash()
    old.with_suffix(".idx").unlink()
    await bench.open()
    assert await bench.damaged() == [(2, 3)]
    assert bench.log.bounds(STREAM).end == 3


async def test_a_whole_frame_after_a_bad_one_is_kept_and_the_bad_one_is_damaged(
    bench: Bench,
) -> None:
    old = await killed(bench, 4)
    content = old.read_bytes()
    flip(old, frame_places(old)[1] + 100)
    await bench.open()
    assert await bench.payloads() == {n: b"rec %03d" % n for n in (0, 2, 3)}
    assert await bench.damaged() == [(1, 2)]
    (kept,) = bench.quarantine()
    assert kept.name == old.name, "its whole frames are in a new file, durable"
    assert len(kept.read_bytes()) == len(content), "a damaged file is never cut"
    assert "damaged bytes" in bench.reasons()[0]
    assert (await bench.put(b"next")).base_offset == 4


async def test_damage_in_the_last_frame_below_the_watermark_is_no_torn_tail(
    bench: Bench,
) -> None:
    old = await killed(bench, 4)
    await bench.promise(old.stat().st_size)
    flip(old, frame_places(old)[3] + 100)
    await bench.open()
    assert await bench.payloads() == {n: b"rec %03d" % n for n in range(3)}
    assert await bench.damaged() == [(3, 4)]
    assert bench.log.bounds(STREAM).end == 4, "offset 3 was given and is never given again"
    await bench.reopen()
    assert bench.log.bounds(STREAM).end == 4


async def test_offsets_of_an_unreadable_frame_are_never_assigned_again(
    bench: Bench,
) -> None:
    old = await killed(bench, 4)
    size, last = old.stat().st_size, frame_places(old)[3]
    await bench.promise(size)
    flip(old, last)
    await bench.open()
    bad_bytes = size - last
    assert bench.log.bounds(STREAM).end == 3 + bad_bytes
    assert await bench.damaged() == [(3, 3 + bad_bytes)]
    assert bench.log.bounds(StreamId(7, 1)).end == bad_bytes, "all that it had may be lost"
    for crash in (False, True):
        await bench.reopen(crash=crash)
        assert bench.log.bounds(STREAM).end == 3 + bad_bytes


async def test_a_sealed_stream_keeps_its_end_even_if_its_last_frame_is_unreadable(
    bench: Bench,
) -> None:
    await fill(bench, 4)
    ends = await bench.seal()
    await bench.crash()
    (old,) = bench.segments()
    await bench.promise(old.stat().st_size)
    flip(old, frame_places(old)[3])
    await bench.open()
    assert await bench.damaged() == [(3, 4)]
    assert [bench.log.bounds(StreamId(7, number)).end for number in range(len(ends))] == ends


async def test_a_watermark_above_the_tail_is_damage_and_reported(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    old = await killed(bench, 3)
    size = old.stat().st_size
    last = frame_places(old)[2]
    await bench.promise(size)
    old.write_bytes(old.read_bytes()[:last])
    await bench.open()
    assert await bench.payloads() == {n: b"rec %03d" % n for n in range(2)}
    assert bench.reasons() == [f"it ends at byte {last}, below its watermark {size}"]
    assert [row.state for row in await bench.rows()] == ["sealed"]
    other = make_frame(b"next", producer=b"another producer")
    result = await bench.append(other)
    assert isinstance(result, Appended)
    assert result.base_offset >= 3


async def test_an_empty_active_file_never_existed(bench: Bench) -> None:
    old = await killed(bench, 1)
    old.write_bytes(b"")
    await bench.open()
    assert [path.name for path in bench.quarantine()] == [old.name]
    assert await bench.rows() == []
    assert bench.log.bounds(STREAM).end == 0
    assert isinstance(await bench.put(b"next"), Appended)


async def test_a_header_only_file_is_reopened_empty(bench: Bench) -> None:
    old = await killed(bench, 1)
    old.write_bytes(old.read_bytes()[:HEADER_BYTES])
    old.with_suffix(".prod").unlink()
    bench.sequences.clear()
    await bench.open()
    assert bench.segments() == [old]
    assert bench.log.quarantined() == []
    assert (await bench.put(b"next")).base_offset == 0
    assert bench.segments() == [old]


async def test_a_row_without_a_file_never_existed(bench: Bench) -> None:
    await bench.store.commit([Put(SegmentRow(7, 99, "active", HEADER_BYTES, 0))])
    await bench.reopen(crash=True)
    assert await bench.rows() == []
    assert bench.log.quarantined() == []


async def test_a_sealed_row_without_a_file_is_reported_and_kept(bench: Bench) -> None:
    await bench.store.commit([Put(SegmentRow(7, 99, "sealed", 1_000, 0))])
    await bench.reopen()
    assert bench.reasons() == ["the file is missing"]
    assert len(await bench.rows()) == 1


async def test_a_file_that_no_row_names_is_set_aside_unread(bench: Bench) -> None:
    await fill(bench, 1)
    await bench.log.close()
    stray = SegmentPaths(bench.directory).segment(SegmentId(7, await bench.store.next_id()))
    stray.write_bytes(b"whatever")
    (bench.directory / "notes.txt").write_text("mine")
    await bench.open()
    assert {path.name for path in bench.quarantine()} == {stray.name, "notes.txt"}
    assert bench.reasons() == ["no row names it"] * 2


async def test_an_unfinished_file_is_removed(bench: Bench) -> None:
    await bench.log.close()
    (bench.directory / "00000007-0000000000000009.seg.tmp").write_bytes(b"half")
    await bench.open()
    assert list(bench.directory.glob("*.tmp")) == []


async def test_a_damaged_file_header_is_reported_and_its_frames_stay_readable(
    bench: Bench,
) -> None:
    old = await killed(bench, 3)
    flip(old, 20)
    await bench.open()
    assert len(await bench.payloads()) == 3
    assert bench.reasons() == ["damaged header: its checksum does not match"]


async def test_a_crash_while_rolling_keeps_the_order_of_both_files(bench: Bench) -> None:
    await fill(bench, 3)
    await bench.roll()
    await fill_more(bench, 2)
    await bench.crash()
    first, second = await bench.rows()
    await bench.store.commit([Put(replace(first, state="active", watermark_bytes=HEADER_BYTES))])
    await bench.open()
    assert len(await bench.payloads()) == 5
    assert (await bench.rows())[0].state == "sealed"
    assert second.segment_id not in {row.segment_id for row in await bench.rows()}


async def fill_more(bench: Bench, count: int) -> None:
    for number in range(count):
        await bench.put(b"more %d" % number)


async def test_a_crash_before_the_new_file_took_a_frame_keeps_the_order(
    bench: Bench,
) -> None:
    await fill(bench, 3)
    await bench.roll()
    await bench.crash()
    first, _ = await bench.rows()
    await bench.store.commit([Put(replace(first, state="active", watermark_bytes=HEADER_BYTES))])
    await bench.open()
    assert len(await bench.payloads()) == 3
    assert (await bench.put(b"next")).base_offset == 3


async def test_segments_of_a_storage_topic_that_is_gone_are_removed(bench: Bench) -> None:
    await fill(bench, 1)
    await bench.log.close()
    gone = SegmentId(55, await bench.store.next_id())
    await bench.store.commit([Put(SegmentRow(*gone, "sealed", 64, 0))])
    path = SegmentPaths(bench.directory).segment(gone)
    path.write_bytes(b"old")
    await bench.open()
    assert not path.exists()
    assert {row.storage_topic_id for row in await bench.rows()} == {7}


@pytest.mark.parametrize("damage", ["missing", "flipped"])
async def test_producers_are_known_after_a_roll_without_their_snapshot(
    bench: Bench, make_frame: Callable[..., bytes], damage: str
) -> None:
    await fill(bench, 10)
    await bench.roll()
    await bench.roll()
    await bench.crash()
    for path in bench.directory.glob("*.prod"):
        path.unlink() if damage == "missing" else flip(path, 30)
    await bench.open()
    assert await sent_again(bench, make_frame, 9) == (9, True)


async def test_a_lost_index_is_rebuilt_from_its_segment(
    bench: Bench,
) -> None:
    await fill(bench, 6)
    await bench.roll()
    await fill(bench, 6)
    await bench.log.close()
    for path in bench.directory.glob("*.idx"):
        path.unlink()
    await bench.open()
    assert await bench.payloads() == {n: b"rec %03d" % (n % 6) for n in range(12)}


async def test_a_second_crash_right_after_recovery_changes_nothing(bench: Bench) -> None:
    await fill(bench, 5)
    for _ in range(3):
        await bench.reopen(crash=True)
        assert len(await bench.payloads()) == 5
    assert bench.quarantine() == []


async def test_no_start_changes_anything_beside_a_file_that_its_store_cannot_know(
    bench: Bench,
) -> None:
    """The store is a backup: it would give the number of the file to another one."""
    await fill(bench, 1)
    await bench.crash()
    newer = await bench.store.last_id() + 1
    SegmentPaths(bench.directory).segment(SegmentId(7, newer)).write_bytes(b"of a newer store")
    before = {path.name: path.read_bytes() for path in bench.directory.iterdir()}
    with pytest.raises(StoreOlderThanLog):
        await bench.open()
    assert {path.name: path.read_bytes() for path in bench.directory.iterdir()} == before
    SegmentPaths(bench.directory).segment(SegmentId(7, newer)).unlink()
    await bench.open()
