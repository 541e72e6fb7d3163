"""Damage costs only the records that it hit, and no repeat of them is answered as stored."""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dss_core.errors import DssError, LogUnreadable, SequenceGap, SequenceTooOld
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dssd.log.port import Appended
from dssd.log.segment.file import HEADER_BYTES
from dssd.store.port import Put
from dssd.store.rows import StorageTopicRow
from support.segment_bytes import flip, frame_places

Bench = Any
MakeFrame = Callable[..., bytes]
OTHER = b"another producer"
STREAM = StreamId(7, 0)
STREAMS = (STREAM, StreamId(7, 1))


async def two_streams(bench: Bench, make_frame: MakeFrame) -> bytes:
    """A frame of each of two streams, then a second of each; returns the second of stream 0."""
    torn = make_frame(b"torn", sequence=1)
    for built, partition in (
        (make_frame(b"x0"), 0),
        (make_frame(b"y0", producer=OTHER, partition=1), 1),
        (torn, 0),
        (make_frame(b"y1", producer=OTHER, sequence=1, partition=1), 1),
    ):
        assert isinstance(await bench.append(built, partition=partition), Appended)
    return torn


async def test_a_torn_frame_that_may_not_have_been_acknowledged_can_be_sent_again(
    bench: Bench, make_frame: MakeFrame
) -> None:
    torn = await two_streams(bench, make_frame)
    await bench.crash()
    (path,) = bench.segments()
    flip(path, path.read_bytes().index(b"torn"))
    await bench.open()
    again = await bench.append(torn)
    assert isinstance(again, Appended)
    assert not again.repeated
    assert (await bench.payloads())[again.base_offset] == b"torn"
    assert await bench.payloads(1) == {0: b"y0", 1: b"y1"}


async def test_a_repeat_of_a_damaged_frame_that_was_durable_is_not_answered_as_stored(
    bench: Bench, make_frame: MakeFrame
) -> None:
    damaged = await two_streams(bench, make_frame)
    await bench.crash()
    (path,) = bench.segments()
    await bench.promise(path.stat().st_size)
    flip(path, path.read_bytes().index(b"torn"))
    await bench.open()
    assert isinstance(await bench.append(damaged), SequenceTooOld)
    following = await bench.append(make_frame(b"next", sequence=2))
    assert isinstance(following, Appended), "the producer goes on behind it"


async def test_a_producer_continues_after_its_last_frame_became_unreadable(
    bench: Bench, make_frame: MakeFrame
) -> None:
    for sequence in range(2):
        await bench.append(make_frame(b"x%d" % sequence, sequence=sequence))
    await bench.crash()
    (path,) = bench.segments()
    await bench.promise(path.stat().st_size)
    flip(path, frame_places(path)[-1])
    await bench.open()
    await bench.reopen()  # The doubt outlives a clean stop.
    following = await bench.append(make_frame(b"x2", sequence=2))
    assert isinstance(following, Appended), "it was told that the frame before is stored"
    assert isinstance(await bench.append(make_frame(b"x9", sequence=9)), SequenceGap)
    stored = await bench.payloads()
    assert (stored[0], stored[following.base_offset]) == (b"x0", b"x2")


async def test_a_producer_continues_after_frames_that_were_lost_with_the_power(
    bench: Bench, make_frame: MakeFrame
) -> None:
    await bench.append(make_frame(b"x0"), durability="os")
    await bench.settle()
    (path,) = bench.segments()
    kept = path.stat().st_size
    lost = await bench.append(make_frame(b"x1", sequence=1), durability="os")
    await bench.crash()
    os.truncate(path, kept)
    await bench.open()
    following = await bench.append(make_frame(b"x2", sequence=2))
    assert following.base_offset > lost.base_offset
    assert not following.repeated
    assert isinstance(await bench.append(make_frame(b"x4", sequence=4)), SequenceGap)


async def test_a_clean_stop_leaves_no_producer_in_doubt(
    bench: Bench, make_frame: MakeFrame
) -> None:
    await bench.append(make_frame(b"x0"))
    await bench.reopen()
    assert isinstance(await bench.append(make_frame(b"x2", sequence=2)), SequenceGap)


async def known_by_a_snapshot(bench: Bench, make_frame: MakeFrame) -> list[bytes]:
    """Three stored frames, known by the snapshot of a start."""
    frames = [make_frame(b"x%d" % sequence, sequence=sequence) for sequence in range(3)]
    for each in frames:
        await bench.append(each)
    await bench.reopen(crash=True)
    return frames


async def test_a_repeat_that_only_a_snapshot_knows_is_not_answered_if_its_frame_is_damaged(
    bench: Bench, make_frame: MakeFrame
) -> None:
    repeats = await known_by_a_snapshot(bench, make_frame)
    await bench.crash()
    (path,) = bench.segments()
    flip(path, frame_places(path)[1])
    for crash in (True, False, False):
        await bench.open()
        assert isinstance(await bench.append(repeats[0]), SequenceTooOld)
        assert isinstance(await bench.append(repeats[1]), SequenceTooOld)
        answer = await bench.append(repeats[2])
        assert (answer.base_offset, answer.repeated) == (2, True)
        await (bench.crash() if crash else bench.log.close())
    await bench.open()
    assert await bench.payloads() == {0: b"x0", 2: b"x2"}


async def test_a_repeat_of_a_frame_that_retention_removed_is_answered_despite_damage(
    bench: Bench, make_frame: MakeFrame
) -> None:
    repeats = await known_by_a_snapshot(bench, make_frame)
    await bench.log.trim(STREAMS[0], 2)
    await bench.crash()
    (path,) = bench.segments()
    flip(path, frame_places(path)[0])
    await bench.open()
    answers = [await bench.append(repeat) for repeat in repeats]
    assert [(answer.base_offset, answer.repeated) for answer in answers] == [
        (0, True),
        (1, True),
        (2, True),
    ]


@pytest.mark.parametrize("interrupted", ["roll", "index"])
async def test_damage_in_one_file_leaves_the_records_of_the_next_readable(
    bench: Bench, interrupted: str
) -> None:
    for number in range(3):
        await bench.put(b"a%d" % number)
    await bench.put(b"lost", partition=1)
    await bench.roll()
    for number in range(3):
        await bench.put(b"b%d" % number)
        await bench.put(b"c%d" % number, partition=1)
    await bench.crash()
    first, _ = bench.segments()
    flip(first, frame_places(first)[-1] + 20)
    first.with_suffix(".idx").unlink()
    if interrupted == "roll":
        row, _ = await bench.rows()
        await bench.store.commit([Put(replace(row, state="active", watermark_bytes=HEADER_BYTES))])
    for _ in range(2):
        await bench.open()
        expected = [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]
        assert await bench.payloads() == dict(enumerate(expected))
        assert await bench.payloads(1) == {1: b"c0", 2: b"c1", 3: b"c2"}
        assert [bench.log.bounds(stream).end for stream in STREAMS] == [6, 4]
        await bench.crash()
    await bench.open()


async def test_offsets_claimed_behind_damage_stay_claimed_over_a_second_crash(
    bench: Bench, make_frame: MakeFrame
) -> None:
    await two_streams(bench, make_frame)
    await bench.put(b"lost", partition=2)
    for number in range(2, 4):
        await bench.append(make_frame(b"x%d" % number, sequence=number))
    await bench.crash()
    (path,) = bench.segments()
    flip(path, frame_places(path)[3] + 20)
    await bench.open()
    ends = [bench.log.bounds(StreamId(7, number)).end for number in range(4)]
    assert ends[0] == 4, "its later frames prove where it stands"
    assert ends[1] > 1, "the bad bytes may have held frames of it"
    assert ends[2] == 1
    assert ends[3] > 0, "they may have held all that it had"
    for crash in (True, False, True):
        await bench.reopen(crash=crash)
        assert [bench.log.bounds(StreamId(7, number)).end for number in range(4)] == ends
    assert sorted((await bench.payloads()).values()) == [b"torn", b"x0", b"x2", b"x3"]


async def test_frames_above_the_watermark_of_a_damaged_file_are_durable_before_repeats_are_answered(
    bench: Bench, make_frame: MakeFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await bench.append(make_frame(b"rec%d" % number, sequence=number))
    await bench.crash()
    (path,) = bench.segments()
    await bench.promise(frame_places(path)[1])
    flip(path, path.read_bytes().index(b"rec0"))
    synced: set[int] = set()
    usual = os.fsync

    def noted(fd: int) -> None:
        usual(fd)
        synced.add(os.fstat(fd).st_ino)

    monkeypatch.setattr(os, "fsync", noted)
    await bench.open()
    old, copy = bench.segments()
    assert old == path
    assert copy.stat().st_ino in synced
    again = await bench.append(make_frame(b"rec2", sequence=2))
    assert isinstance(again, Appended)
    assert again.repeated
    assert b"rec2" in copy.read_bytes()
    assert await bench.payloads() == {1: b"rec1", 2: b"rec2"}


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("suffixes", [(".seg",), (".seg", ".idx"), (".seg", ".idx", ".prod")])
async def test_a_sealed_storage_topic_reaches_its_end_without_its_last_file(
    bench: Bench, make_frame: MakeFrame, suffixes: tuple[str, ...], *, rolled: bool, crash: bool
) -> None:
    await bench.put(b"kept")
    await bench.roll()
    await bench.put(b"gone", b"gone too")
    await bench.put(b"gone", partition=1)
    last = bench.segments()[-1]
    if rolled:
        await bench.roll()
        await bench.settle()
    assert await bench.seal() == [3, 1, 0, 0]
    await (bench.crash() if crash else bench.log.close())
    for suffix in suffixes:
        last.with_suffix(suffix).unlink(missing_ok=True)
    for _ in range(2):
        await bench.open()
        assert [bench.log.bounds(StreamId(7, at)).end for at in range(4)] == [3, 1, 0, 0]
        assert await bench.payloads() == {0: b"kept"}
        assert await bench.damaged() == [(1, 3)]
        assert await bench.damaged(1) == [(0, 1)]
        if ".idx" in suffixes:  # an index is trusted to know what its file holds
            repeated = await bench.append(make_frame(b"gone", partition=1), partition=1)
            assert isinstance(repeated, DssError), "a frame that is gone is not answered as stored"
        await bench.log.close()
    await bench.open()


async def test_a_trim_inside_the_active_file_is_no_damage_after_a_kill(
    bench: Bench, make_frame: MakeFrame
) -> None:
    await bench.put(b"only", partition=1)
    for number in range(6):
        await bench.append(make_frame(b"m%d" % number, sequence=number))
    await bench.log.trim(STREAMS[0], 6)
    before = [bench.log.bounds(stream) for stream in STREAMS]
    await bench.reopen(crash=True)
    assert [bench.log.bounds(stream) for stream in STREAMS] == before
    assert bench.log.quarantined() == []
    again = await bench.append(make_frame(b"m5", sequence=5))
    assert isinstance(again, Appended)
    assert (again.base_offset, again.repeated) == (5, True)


@pytest.mark.parametrize("left", ["nothing", "header"])
async def test_a_file_that_lost_all_durable_frames_is_damaged_not_new(
    bench: Bench, make_frame: MakeFrame, left: str
) -> None:
    await bench.put(b"first")
    await bench.roll()
    await bench.put(b"second")
    await bench.crash()
    first, last = bench.segments()
    row, _ = await bench.rows()
    await bench.store.commit([Put(replace(row, state="active"))])
    await bench.promise(last.stat().st_size)
    if left == "nothing":
        last.unlink()
    else:
        last.write_bytes(last.read_bytes()[:HEADER_BYTES])
    await bench.open()
    assert first.exists()
    assert any("below its watermark" in reason for reason in bench.reasons())
    assert len(await bench.rows()) == 2
    stored = await bench.append(make_frame(b"new", producer=OTHER))
    assert isinstance(stored, Appended)
    assert stored.base_offset >= 2, "an offset that was given is never given again"
    await bench.reopen(crash=True)
    assert (await bench.payloads())[stored.base_offset] == b"new"


async def test_an_unreadable_page_costs_the_frames_in_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(200):
        await bench.put(b"record %03d" % number)
    await bench.crash()
    (path,) = bench.segments()
    whole = {
        number
        for number, (start, end) in enumerate(
            zip(frame_places(path), [*frame_places(path)[1:], path.stat().st_size], strict=True)
        )
        if end <= 8_192 or start >= 12_288
    }
    usual, inode = os.pread, path.stat().st_ino

    def failing(fd: int, size: int, position: int) -> bytes:
        if os.fstat(fd).st_ino == inode and position < 12_288 and position + size > 8_192:
            raise OSError(errno.EIO, "no")
        return usual(fd, size, position)

    monkeypatch.setattr(os, "pread", failing)
    await bench.open()
    assert await bench.payloads() == {number: b"record %03d" % number for number in whole}


async def test_a_topic_row_with_starts_survives_a_lost_index(bench: Bench) -> None:
    for number in range(4):
        await bench.put(b"m%d" % number)
    await bench.roll()
    await bench.log.trim(STREAMS[0], 2)
    await bench.crash()
    bench.segments()[0].with_suffix(".idx").unlink()
    await bench.open()
    row = (await bench.store.read(StorageTopicRow, (1, 0))).row
    assert row.starts.startswith("2,")
    assert await bench.payloads() == {2: b"m2", 3: b"m3"}
    assert bench.log.quarantined() == []


@pytest.mark.parametrize("filter_text", [None, "orders"])
async def test_what_lies_before_a_bad_sector_can_be_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, filter_text: str | None
) -> None:
    for number in range(200):
        await bench.put(b"record %03d" % number, subjects="orders")
    await bench.reopen()
    (path,) = bench.segments()
    bad = range(8_192, 12_288)
    ends = [*frame_places(path)[1:], path.stat().st_size]
    usual, inode = os.preadv, path.stat().st_ino

    def failing(fd: int, buffers: list[memoryview], position: int, flags: int = 0) -> int:
        wanted = range(position, position + len(buffers[0]))
        if os.fstat(fd).st_ino == inode and wanted.start < bad.stop and bad.start < wanted.stop:
            raise OSError(errno.EIO, "no")
        return usual(fd, buffers, position, flags)

    monkeypatch.setattr(os, "preadv", failing)
    matching = None if filter_text is None else TopicFilter.parse(filter_text)
    offset, whole = 0, sum(end <= bad.start for end in ends)
    while offset < whole:
        chunk = await bench.log.read(STREAM, offset, bytes_max=1 << 16, matching=matching)
        assert (chunk.damaged, chunk.lost) == ((), ())
        offset = chunk.next
    assert offset == whole
    with pytest.raises(LogUnreadable):
        await bench.log.read(STREAM, offset, bytes_max=1 << 16, matching=matching)
