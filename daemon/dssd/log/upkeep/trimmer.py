"""Shortens a log: raises low watermarks, enforces retention, removes storage topics.

Invariant: one such change of a storage topic at a time. A low watermark is committed before a file
below it is removed; if the topic's row is gone, no file is removed. A roll never waits for this.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from dss_core.errors import DiskFailed, OffsetOutOfRange
from dss_core.ids import StreamId
from dss_core.progress import Range
from dssd.log.disk_errors import retry_reason
from dssd.log.holds import Holds
from dssd.log.port import AboutToGo, AskFloors, Expiring
from dssd.log.read.file_reader import FileReader
from dssd.log.segment.file import SegmentId, SegmentPaths
from dssd.log.segment.rows import parse_starts, remove_ceilings, remove_segments
from dssd.log.topic_state import Segment, StorageTopicState
from dssd.log.upkeep.expired_segments import SegmentAge, expired
from dssd.log.upkeep.housekeeper import Housekeeper
from dssd.log.upkeep.removal_gate import RemovalGate
from dssd.log.write.writer_thread import WriterThread
from dssd.loop_yield import LoopTurn
from dssd.store.paging import scan_all
from dssd.store.port import PreconditionFailed, Put, Store, Versioned, VersionIs
from dssd.store.rows import HoldRow, StorageTopicRow

QUEUE_ROLLED_BYTES_MIN = 1 << 20
"""The newest file of finished queues is removed too once it has this many bytes; below that a new
file would cost more than the removal frees."""


TRIM_ATTEMPTS_MAX = 16
"""How often a low watermark is tried again when its row changed in between."""


class Trimmer:
    """Runs on the event loop; blocking work goes to threads."""

    def __init__(
        self,
        *,
        paths: SegmentPaths,
        store: Store,
        writer: WriterThread,
        files: FileReader,
        housekeeper: Housekeeper,
        index_gone: Callable[[SegmentId], None],
        failed: Callable[[BaseException], None],
        holds: Holds,
        gate: RemovalGate,
    ) -> None:
        self._paths = paths
        self._store = store
        self._writer = writer
        self._files = files
        self._housekeeper = housekeeper
        self._index_gone = index_gone
        self._failed = failed
        self._holds = holds
        self._gate = gate
        self._row_keys: dict[int, tuple[int, int]] = {}

    async def trim(self, state: StorageTopicState, offsets: Mapping[int, int]) -> None:
        """Raise low watermarks, durably, then remove the files below them.

        Raises:
            DiskFull: nothing was trimmed.
        """
        async with state.trimming:
            await self._trim(state, offsets)

    async def _trim(self, state: StorageTopicState, offsets: Mapping[int, int]) -> int:
        """As `trim`; returns how many segments were removed."""
        raised = {
            partition: min(offset, state.streams[partition].end)
            for partition, asked in offsets.items()
            if (offset := self._holds.limited(state.storage_topic_id, partition, asked))
            > state.streams[partition].start
        }
        if raised and not await self._store_starts(state, raised):
            return 0
        for partition, offset in raised.items():
            state.streams[partition].start = offset
        gone: list[Segment] = []
        turn = LoopTurn()
        for segment in list(state.segments.values()):
            await turn.give_way()
            if _is_below(segment, state):
                gone.append(segment)
        if state.sealed and state.last in gone:
            gone.remove(state.last)  # the snapshot of producers is stored beside it
        if not gone or not await self._keep_producers(state, gone):
            return 0
        await self._remove(state, gone)
        return len(gone)

    async def _keep_producers(self, state: StorageTopicState, gone: Sequence[Segment]) -> bool:
        """Whether a segment that stays has a snapshot of producers; if not, roll once for one.

        It may be missing because a roll met a full disk. The next trim tries again.

        Raises:
            Overloaded: too many files wait to be created.
        """
        if not await self._has_producers(state, gone):
            await asyncio.shield(self._housekeeper.begin_roll(state))
            return await self._has_producers(state, gone)
        return True

    async def _has_producers(self, state: StorageTopicState, gone: Sequence[Segment]) -> bool:
        last = state.last
        if last is None or last in gone:
            return False
        return await asyncio.to_thread(self._paths.producers(last.id).exists)

    async def _store_starts(self, state: StorageTopicState, raised: Mapping[int, int]) -> bool:
        """Make low watermarks durable; False if the topic is being removed and has no row."""
        for _ in range(TRIM_ATTEMPTS_MAX):
            found = await self._topic_row(state.storage_topic_id)
            if found is None:
                return False
            row = found.row
            starts = parse_starts(row)
            for partition, offset in raised.items():
                starts[partition] = max(starts[partition], offset)
            key = (row.topic_id, row.ordinal)
            try:
                await self._store.commit(
                    [Put(replace(row, starts=",".join(map(str, starts))))],
                    [VersionIs(StorageTopicRow, key, found.version)],
                )
            except PreconditionFailed:
                continue
            return True
        raise AssertionError("the row of a storage topic never stands still")

    async def _topic_row(self, storage_topic_id: int) -> Versioned[StorageTopicRow] | None:
        """The row of a storage topic; None if its topic is being removed."""
        key = self._row_keys.get(storage_topic_id)
        if key is None:
            for found in await scan_all(self._store, StorageTopicRow):
                row = found.row
                self._row_keys[row.storage_topic_id] = (row.topic_id, row.ordinal)
            key = self._row_keys.get(storage_topic_id)
        return None if key is None else await self._store.read(StorageTopicRow, key)

    async def enforce_retention(
        self,
        state: StorageTopicState,
        retention_ms: int | None,
        retention_bytes: int | None,
        now_us: int,
        about_to_go: AboutToGo | None,
    ) -> int:
        """Remove whole segments, oldest first; an active one that is too old is rolled first.

        ``about_to_go`` is called with their records before.

        Raises:
            DiskFull, Overloaded: it has to be tried again later.
        """
        last = state.last
        if last is not None and last.runs and retention_ms is not None and not state.sealed:
            age = [SegmentAge(last.size, last.last_us())]
            if expired(age, retention_ms=retention_ms, retention_bytes=None, now_us=now_us):
                await asyncio.shield(self._housekeeper.begin_roll(state))
        await self._housekeeper.seal_waiting(state)
        async with state.trimming:
            segments = list(state.segments.values())
            ages = await _ages_of(segments)
            sealed = [(segment, age) for segment, age in ages if segment.runs is None]
            active_bytes = sum(one.size for one in segments if one.runs is not None)
            if retention_bytes is not None:
                retention_bytes = max(0, retention_bytes - active_bytes)
            count = expired(
                [age for _, age in sealed],
                retention_ms=retention_ms,
                retention_bytes=retention_bytes,
                now_us=now_us,
            )
            count = _up_to_held(sealed[:count], self._holds)
            offsets = await _ends_of([segment for segment, _ in sealed[:count]])
            going = _going(state, offsets)
            if going and about_to_go is not None:
                await about_to_go(going)
            return await self._trim(state, offsets) if count else 0

    def kept_bytes(self, state: StorageTopicState) -> int:
        """Bytes of the segments that hold something at or above the low watermarks."""
        starts = [stream.start for stream in state.streams]
        segments = state.segments.values()
        return sum(each.size for each in segments if not _lies_below(each, starts))

    async def trim_below(self, state: StorageTopicState, ask_floors: AskFloors) -> int:
        """Remove the segments that hold nothing at or above floors; returns how many went.

        An active one is rolled first if that is worth a new file. The floors are asked for only if
        a segment may be removed.

        Raises:
            DiskFull, Overloaded: it has to be tried again later.
        """
        await self._housekeeper.seal_waiting(state)
        last = state.last
        may_roll = last is not None and last.size >= QUEUE_ROLLED_BYTES_MIN
        if not may_roll and all(segment.runs is not None for segment in state.segments.values()):
            return 0
        floors = await ask_floors()
        if may_roll and last is not None and last.runs and _lies_below(last, floors):
            await asyncio.shield(self._housekeeper.begin_roll(state))
            await self._housekeeper.seal_waiting(state)
        async with state.trimming:
            sealed = [each for each in state.segments.values() if each.runs is None]
            done = [each for each in sealed if _lies_below(each, floors)]
            return await self._trim(state, await _ends_of(done)) if done else 0

    async def expiring(
        self,
        state: StorageTopicState,
        retention_ms: int | None,
        retention_bytes: int | None,
        now_us: int,
    ) -> Expiring:
        """What a retention would take, the newest segment included; nothing is changed."""
        ages = await _ages_of(list(state.segments.values()))
        count = expired(
            [age for _, age in ages],
            retention_ms=retention_ms,
            retention_bytes=retention_bytes,
            now_us=now_us,
        )
        free = _up_to_held(ages[:count], self._holds)
        going, held = ages[:free], ages[free:count]
        ranges = _going(state, await _ends_of([segment for segment, _ in going]))
        return Expiring(
            ranges, sum(age.bytes for _, age in going), sum(age.bytes for _, age in held)
        )

    async def hold(
        self, state: StorageTopicState, holder: int, ranges: Mapping[StreamId, Range]
    ) -> list[HoldRow]:
        """Hold these ranges from now on; returns the rows to commit.

        Raises:
            OffsetOutOfRange: a part of them is gone already, or was never there.
        """
        async with state.trimming:
            for stream, (start, end) in ranges.items():
                one = state.streams[stream.partition]
                if start < one.start or end > one.end:
                    raise OffsetOutOfRange(
                        stream=str(stream),
                        offset=start if start < one.start else end,
                        start=one.start,
                        end=one.end,
                    )
            return self._holds.add(holder, ranges)

    async def remove(self, state: StorageTopicState) -> None:
        """Delete all files and rows of a storage topic."""
        state.removed = True
        await self._housekeeper.settle()
        async with state.trimming:
            await self._writer.remove(state.storage_topic_id)
            self._row_keys.pop(state.storage_topic_id, None)
            await self._remove(state, list(state.segments.values()))
            await remove_ceilings(self._store, state.storage_topic_id, state.ceilings)

    async def _remove(self, state: StorageTopicState, segments: list[Segment]) -> None:
        async with self._gate.removing():
            await self._remove_files(state, segments)

    async def _remove_files(self, state: StorageTopicState, segments: list[Segment]) -> None:
        turn = LoopTurn()
        for segment in segments:
            await turn.give_way()
            segment.removed = True
            state.forget(segment)
            self._files.drop(self._paths.segment(segment.id))
            self._files.drop(self._paths.index(segment.id))
            self._index_gone(segment.id)
        try:
            await remove_segments(self._paths, self._store, [segment.id for segment in segments])
        except OSError as error:
            reason = retry_reason(error)
            if reason is None:
                reason = DiskFailed(reason=f"{error.strerror} while removing segments")
                self._failed(reason)
            raise reason from error


def _up_to_held(going: Sequence[tuple[Segment, SegmentAge]], holds: Holds) -> int:
    """How many of these segments may be removed: none after a held one."""
    held = (number for number, (segment, _) in enumerate(going) if holds.on(segment))
    return next(held, len(going))


async def _ages_of(segments: Sequence[Segment]) -> list[tuple[Segment, SegmentAge]]:
    """Size and age of each; one without append times is as old as its successor's file."""
    ages: list[tuple[Segment, SegmentAge]] = []
    successors = [*segments[1:], *segments[-1:]]
    turn = LoopTurn()
    for segment, successor in zip(segments, successors, strict=True):
        await turn.give_way()
        last_us = segment.last_us() or successor.created_at_ms * 1_000
        ages.append((segment, SegmentAge(segment.size, last_us)))
    return ages


def _is_below(segment: Segment, state: StorageTopicState) -> bool:
    """Whether a sealed segment holds nothing at or above the low watermarks."""
    if segment.runs is not None:
        return False
    return _lies_below(segment, [stream.start for stream in state.streams])


def _lies_below(segment: Segment, offsets: Sequence[int]) -> bool:
    """Whether a segment holds nothing at or above these offsets, by partition."""
    return all(end <= offsets[partition] for partition, end in _ends_in(segment))


def _going(state: StorageTopicState, offsets: Mapping[int, int]) -> dict[StreamId, Range]:
    """What the streams lose when their low watermarks rise to the offsets."""
    starts = {partition: state.streams[partition].start for partition in offsets}
    return {
        StreamId(state.storage_topic_id, partition): (starts[partition], end)
        for partition, end in offsets.items()
        if starts[partition] < end
    }


async def _ends_of(segments: Sequence[Segment]) -> dict[int, int]:
    """The end of each stream in the segments."""
    ends: dict[int, int] = {}
    turn = LoopTurn()
    for segment in segments:
        await turn.give_way()
        for partition, end in _ends_in(segment):
            ends[partition] = max(ends.get(partition, 0), end)
    return ends


def _ends_in(segment: Segment) -> Iterator[tuple[int, int]]:
    for partition in segment.partitions():
        extent = segment.extent(partition)
        assert extent is not None
        yield partition, extent.end
