"""Frames of durability os: what a loss of power may lose, and what it may not."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dss_core.errors import DiskFull
from dss_core.ids import StreamId
from dssd.limits import CEILING_AHEAD_MIN
from dssd.log.port import Appended
from dssd.log.settings import LogSettings
from dssd.log.topic_state import Segment
from dssd.store.port import Precondition, Put, Write
from dssd.store.rows import CeilingRow, Row, SegmentRow

Bench = Any
MakeFrame = Callable[..., bytes]
MakeBench = Callable[[LogSettings], Bench]
STREAM = StreamId(7, 0)
NEVER_S = 3_600.0
SOON_S = 0.01
PATIENCE_S = 60.0
REFUSED = 3
"""Syncs: more than one attempt makes."""


async def opened(make_bench: MakeBench, os_sync_s: float) -> Bench:
    """A log that syncs frames after the given delay."""
    bench = make_bench(LogSettings(os_sync_s=os_sync_s, read_loop_us=60_000_000))
    await bench.prepare()
    await bench.open()
    return bench


@pytest.fixture
async def unsynced(make_bench: MakeBench) -> Bench:
    """An open log that syncs nothing by itself."""
    return await opened(make_bench, NEVER_S)


@pytest.fixture
async def filled(unsynced: Bench) -> Bench:
    """As ``unsynced``, with three records, of which all but the first may be lost."""
    for number in range(3):
        await put(unsynced, number)
    return unsynced


async def put(bench: Bench, number: int, partition: int = 0) -> int:
    """Append one record of durability os, and raise its ceiling; returns its offset."""
    appended = await bench.put(b"record %d" % number, partition=partition, durability="os")
    await bench.settle()
    assert isinstance(appended, Appended)
    return appended.base_offset


async def ceiling_of(bench: Bench, partition: int = 0) -> int | None:
    found = await bench.store.read(CeilingRow, (7, partition))
    return None if found is None else found.row.ceiling


async def at_once(_: Sequence[Write]) -> None:
    """Nothing comes before a commit."""


class Commits:
    """Reports committed rows; ``before`` may delay a commit or refuse it."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        bench: Bench,
        before: Callable[[Sequence[Write]], Awaitable[None]] = at_once,
    ) -> None:
        self._before = before
        self._kinds: asyncio.Queue[type[Row]] = asyncio.Queue()
        self._usual = bench.store.commit
        monkeypatch.setattr(bench.store, "commit", self._commit)

    async def _commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        await self._before(writes)
        versions: list[int] = await self._usual(writes, preconditions)
        for write in writes:
            self._kinds.put_nowait(type(write.row) if isinstance(write, Put) else write.kind)
        return versions

    async def next(self, kind: type[Row]) -> None:
        """Wait for the next committed row of a kind."""
        async with asyncio.timeout(PATIENCE_S):
            while await self._kinds.get() is not kind:
                pass


class Syncs:
    """Counts what is synced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._usual = os.fdatasync
        monkeypatch.setattr(os, "fdatasync", self._sync)

    def _sync(self, fd: int) -> None:
        self.count += 1
        self._usual(fd)


async def test_offsets_that_were_given_to_lost_records_are_not_given_again(unsynced: Bench) -> None:
    offsets = [await put(unsynced, number) for number in range(5)]
    assert offsets == list(range(5))
    await unsynced.lose_power()
    ceiling = await ceiling_of(unsynced)
    assert ceiling is not None
    assert unsynced.log.bounds(STREAM).end == ceiling >= 5
    assert await put(unsynced, 5) == ceiling
    assert await unsynced.payloads() == {0: b"record 0", ceiling: b"record 5"}


async def test_offsets_in_a_gap_are_skipped_and_not_reported_as_damaged(filled: Bench) -> None:
    await filled.lose_power()
    gap = await filled.log.read(STREAM, 1, bytes_max=1 << 20)
    assert (gap.frames, gap.next, gap.damaged) == (b"", await ceiling_of(filled), ())
    await put(filled, 3)
    for crash in (False, True, True):
        assert await filled.damaged() == []
        assert (await filled.payloads())[gap.next] == b"record 3"
        assert filled.log.count(STREAM, 0, gap.next + 1) == (2, True)
        assert filled.log.count(STREAM, 1, gap.next) == (0, True)
        assert filled.reasons() == []
        await filled.reopen(crash=crash)


async def test_a_kill_leaves_all_records_and_one_gap_however_often(filled: Bench) -> None:
    ends = set()
    for _ in range(3):
        await filled.reopen(crash=True)
        ends.add(filled.log.bounds(STREAM).end)
        assert await filled.payloads() == {at: b"record %d" % at for at in range(3)}
    assert ends == {await ceiling_of(filled)}


async def test_a_stop_leaves_no_gap(filled: Bench) -> None:
    for crash in (False, True):  # The second is a kill before anything was appended.
        await filled.reopen(crash=crash)
        assert filled.log.bounds(STREAM).end == 3
    assert await put(filled, 3) == 3


async def test_a_stop_after_a_gap_keeps_it(filled: Bench) -> None:
    await filled.lose_power()
    end = filled.log.bounds(STREAM).end
    for crash in (False, False, True):
        await filled.reopen(crash=crash)
        assert filled.log.bounds(STREAM).end == end


async def test_only_streams_with_frames_of_durability_os_have_a_gap(unsynced: Bench) -> None:
    await unsynced.put(b"durable", partition=1)
    await put(unsynced, 0)
    await unsynced.lose_power()
    assert unsynced.log.bounds(StreamId(7, 1)).end == 1
    assert await ceiling_of(unsynced, 1) is None
    assert (await unsynced.put(b"also", partition=1)).base_offset == 1
    assert await unsynced.damaged(1) == []


async def test_a_frame_above_its_ceiling_is_synced_before_it_is_answered(
    unsynced: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = Syncs(monkeypatch)
    await put(unsynced, 0)
    assert syncs.count == 1, "it had no ceiling"
    await put(unsynced, 1)
    assert syncs.count == 1
    await unsynced.put(*[b"x"] * CEILING_AHEAD_MIN, durability="os")
    assert syncs.count == 2
    await unsynced.lose_power()
    assert len(await unsynced.payloads()) == CEILING_AHEAD_MIN + 2


async def test_frames_are_synced_while_their_ceiling_is_not_stored(
    unsynced: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def hold_up(writes: Sequence[Write]) -> None:
        if any(isinstance(each, Put) and isinstance(each.row, CeilingRow) for each in writes):
            asked.set()
            await go_on.wait()

    Commits(monkeypatch, unsynced, hold_up)
    syncs = Syncs(monkeypatch)
    for number in range(3):
        await unsynced.put(b"x", durability="os")
        await asked.wait()
        assert syncs.count == number + 1
    go_on.set()
    await unsynced.settle()
    await put(unsynced, 3)
    assert syncs.count == 3


async def test_a_store_without_room_for_ceilings_costs_syncs_and_nothing_else(
    unsynced: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.log.write.delayed_sync.CEILING_RETRY_S", 0)
    await unsynced.roll()
    full = True

    async def refuse(_: Sequence[Write]) -> None:
        if full:
            raise DiskFull

    Commits(monkeypatch, unsynced, refuse)
    syncs = Syncs(monkeypatch)
    for number in range(2):
        await put(unsynced, number)
    assert syncs.count == 2
    full = False
    number = 2
    while syncs.count == number:
        await asyncio.sleep(0)  # The retry is a timer.
        await put(unsynced, number)
        number += 1
    assert await ceiling_of(unsynced) is not None
    assert unsynced.failures == []


async def test_a_file_is_synced_and_marked_soon_after_it_grew(
    make_bench: MakeBench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = await opened(make_bench, SOON_S)
    await put(bench, 0)
    commits = Commits(monkeypatch, bench)
    for number in range(1, 5):
        await put(bench, number)
        await commits.next(SegmentRow)
    (row,) = await bench.rows()
    assert row.watermark_bytes == bench.segments()[0].stat().st_size
    assert segment_of(bench).marks.end == row.watermark_bytes
    await bench.lose_power()
    assert await bench.payloads() == {at: b"record %d" % at for at in range(5)}
    assert segment_of(bench).marks.end == row.watermark_bytes, "no frame had to be read"


async def test_a_sync_that_met_a_full_disk_is_tried_again(
    make_bench: MakeBench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = await opened(make_bench, SOON_S)
    await put(bench, 0)
    usual, tried = os.fdatasync, 0

    def sync(fd: int) -> None:
        nonlocal tried
        tried += 1
        if tried <= REFUSED:
            raise OSError(errno.ENOSPC, "No space left on device")
        usual(fd)

    monkeypatch.setattr(os, "fdatasync", sync)
    commits = Commits(monkeypatch, bench)
    await put(bench, 1)
    await commits.next(SegmentRow)
    assert tried > REFUSED
    assert bench.failures == []


def segment_of(bench: Bench) -> Segment:
    segment = bench.log._topics[7].last
    assert isinstance(segment, Segment)
    return segment


async def test_a_topic_that_is_removed_leaves_no_ceiling(unsynced: Bench) -> None:
    for partition in range(3):
        await put(unsynced, 0, partition)
    await unsynced.log.remove_storage_topic(7)
    assert await unsynced.store.scan(CeilingRow) == []


async def test_a_start_forgets_the_ceilings_of_a_topic_that_is_gone(bench: Bench) -> None:
    await bench.store.commit([Put(CeilingRow(55, 3, 1_000))])
    await bench.reopen(crash=True)
    assert await bench.store.scan(CeilingRow) == []


async def test_a_sealed_stream_ends_where_it_was_sealed(filled: Bench) -> None:
    await filled.seal()
    await filled.reopen(crash=True)
    assert filled.log.bounds(STREAM).end == 3


async def test_a_stream_that_was_sealed_after_a_gap_ends_after_it(filled: Bench) -> None:
    await filled.lose_power()
    end = filled.log.bounds(STREAM).end
    await filled.seal()
    await filled.reopen(crash=True)
    assert filled.log.bounds(STREAM).end == end > 3


KINDS = ("put", "put", "put", "many", "roll", "settle", "power", "kill", "stop")


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.sampled_from(KINDS), max_size=24), st.randoms(use_true_random=False))
def test_whatever_happens_no_offset_is_given_twice(
    run_log: Callable[..., object],
    make_frame: MakeFrame,
    happenings: list[str],
    chance: Random,
) -> None:
    async def story(bench: Bench) -> None:
        life = _Life(bench, make_frame, chance)
        for happening in happenings:
            await getattr(life, happening)()
            await life.check()

    run_log(story, LogSettings(os_sync_s=NEVER_S, read_loop_us=60_000_000))


class _Life:
    """What readers saw of a stream, compared with what is there, while its log changes."""

    def __init__(self, bench: Bench, make_frame: MakeFrame, chance: Random) -> None:
        self.bench = bench
        self.make_frame = make_frame
        self.chance = chance
        self.seen: dict[int, bytes] = {}
        self.there: dict[int, bytes] = {}
        self.durable: set[int] = set()
        self.sequence = 0

    async def put(self, records: int = 1) -> None:
        texts = [b"%d of frame %d" % (at, self.sequence) for at in range(records)]
        frame = self.make_frame(*texts, sequence=self.sequence)
        self.sequence += 1
        result = await self.bench.append(frame, durability="os")
        assert isinstance(result, Appended)
        given = dict(enumerate(texts, result.base_offset))
        assert not given.keys() & self.seen.keys(), "given twice"
        self.seen |= given
        self.there |= given

    async def many(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            await self.put(self.chance.randint(1, CEILING_AHEAD_MIN))

    async def settle(self) -> None:
        await self.bench.settle()

    async def roll(self) -> None:
        await self.bench.roll()
        self.durable = set(self.there)

    async def kill(self) -> None:
        await self.bench.reopen(crash=True)
        self.durable = set(self.there)

    async def stop(self) -> None:
        await self.bench.reopen()
        self.durable = set(self.there)

    async def power(self) -> None:
        await self.bench.lose_power(self.chance)
        self.there = await self.bench.payloads()
        assert self.durable <= self.there.keys()
        self.durable = set(self.there)

    async def check(self) -> None:
        assert await self.bench.payloads() == self.there
        assert self.there.items() <= self.seen.items()
        assert await self.bench.damaged() == []
        assert self.bench.log.bounds(STREAM).end >= max(self.seen, default=-1) + 1
        assert self.bench.log.count(STREAM, 0, 1 << 40) == (len(self.there), True)


async def test_what_came_before_a_sync_survives_a_loss_of_power(filled: Bench) -> None:
    await filled.log.sync(7)
    await put(filled, 3)
    await filled.lose_power()
    assert await filled.payloads() == {at: b"record %d" % at for at in range(3)}


async def test_a_sync_covers_the_frames_that_waited_for_a_file(filled: Bench) -> None:
    await filled.roll()
    state = filled.log._topics[7]
    state.writable = False
    appending = asyncio.create_task(put(filled, 3))
    while not state.waiting:  # noqa: ASYNC110 - it is told to nobody
        await asyncio.sleep(0)
    await filled.log.sync(7)
    await appending
    await filled.lose_power()
    assert await filled.payloads() == {at: b"record %d" % at for at in range(4)}


async def test_a_topic_that_becomes_os_loses_nothing_before_its_ceiling_is_stored(
    unsynced: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await unsynced.put(b"record 0")
    monkeypatch.setattr(unsynced.log._housekeeper.unsynced, "_submit", lambda job: False)
    await unsynced.put(b"record 1", durability="os")
    assert await ceiling_of(unsynced) is None
    await unsynced.lose_power()
    assert await unsynced.payloads() == {0: b"record 0", 1: b"record 1"}
