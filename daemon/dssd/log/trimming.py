"""What makes a log shorter: low watermarks, retention, and the removal of storage topics.

Invariant: one such change of a storage topic at a time. A low watermark is committed before a file
below it goes; without a row to hold it, nothing goes. A roll never waits for any of this.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dssd.log.files import FileReader
from dssd.log.housekeeping import Housekeeper
from dssd.log.retention import SegmentAge, expired
from dssd.log.segment_file import SegmentId, SegmentPaths
from dssd.log.segment_rows import parse_starts, remove_segments
from dssd.log.streams import Segment, StorageTopicState
from dssd.log.writer import LogWriter
from dssd.store.paging import scan_all
from dssd.store.port import PreconditionFailed, Put, Store, Versioned, VersionIs
from dssd.store.rows import StorageTopicRow

_TRIM_ATTEMPTS_MAX = 16
"""How often a low watermark is tried again when its row changed in between."""


class Trimmer:
    """Runs on the event loop; blocking work goes to threads."""

    def __init__(
        self,
        *,
        paths: SegmentPaths,
        store: Store,
        writer: LogWriter,
        files: FileReader,
        housekeeper: Housekeeper,
        index_gone: Callable[[SegmentId], None],
    ) -> None:
        self._paths = paths
        self._store = store
        self._writer = writer
        self._files = files
        self._housekeeper = housekeeper
        self._index_gone = index_gone
        self._row_keys: dict[int, tuple[int, int]] = {}

    async def trim(self, state: StorageTopicState, offsets: Mapping[int, int]) -> None:
        """Raise low watermarks, durably, then remove the files below them.

        Raises:
            DiskFull: nothing was trimmed.
        """
        async with state.trimming:
            await self._trim(state, offsets)

    async def _trim(self, state: StorageTopicState, offsets: Mapping[int, int]) -> int:
        """The same; returns how many segments went."""
        raised = {
            partition: min(offset, state.streams[partition].end)
            for partition, offset in offsets.items()
            if offset > state.streams[partition].start
        }
        if raised and not await self._store_starts(state, raised):
            return 0
        for partition, offset in raised.items():
            state.streams[partition].start = offset
        gone = [segment for segment in state.segments.values() if _is_below(segment, state)]
        if gone:
            await self._remove(state, gone)
        return len(gone)

    async def _store_starts(self, state: StorageTopicState, raised: Mapping[int, int]) -> bool:
        """Make low watermarks durable; False where the topic has no row: it is being removed."""
        for _ in range(_TRIM_ATTEMPTS_MAX):
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
        """The row of a storage topic; None where its topic is being removed."""
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
    ) -> int:
        """Drop whole segments, oldest first; an active one that is too old is rolled first.

        Raises:
            DiskFull, Overloaded: it has to be tried again later.
        """
        last = state.last
        if last is not None and last.runs and retention_ms is not None:
            age = [SegmentAge(last.size, last.last_us())]
            if expired(age, retention_ms=retention_ms, retention_bytes=None, now_us=now_us):
                await asyncio.shield(self._housekeeper.begin_roll(state))
        await self._housekeeper.seal_waiting(state)
        async with state.trimming:
            segments = list(state.segments.values())
            sealed = [segment for segment in segments if segment.runs is None]
            active_bytes = sum(one.size for one in segments if one.runs is not None)
            if retention_bytes is not None:
                retention_bytes = max(0, retention_bytes - active_bytes)
            count = expired(
                [age for segment, age in _ages_of(segments) if segment.runs is None],
                retention_ms=retention_ms,
                retention_bytes=retention_bytes,
                now_us=now_us,
            )
            return await self._trim(state, _ends_of(sealed[:count])) if count else 0

    async def remove(self, state: StorageTopicState) -> None:
        """Delete all files and rows of a storage topic."""
        state.removed = True
        await self._housekeeper.settle()
        async with state.trimming:
            await self._writer.remove(state.storage_topic_id)
            self._row_keys.pop(state.storage_topic_id, None)
            await self._remove(state, list(state.segments.values()))

    async def _remove(self, state: StorageTopicState, segments: list[Segment]) -> None:
        for segment in segments:
            segment.removed = True
            state.forget(segment)
            self._files.drop(self._paths.segment(segment.id))
            self._files.drop(self._paths.index(segment.id))
            self._index_gone(segment.id)
        await remove_segments(self._paths, self._store, [segment.id for segment in segments])


def _ages_of(segments: Sequence[Segment]) -> list[tuple[Segment, SegmentAge]]:
    """Size and age of each; one none of whose frames has a time is as old as what follows it."""
    ages: list[tuple[Segment, SegmentAge]] = []
    successors = [*segments[1:], *segments[-1:]]
    for segment, successor in zip(segments, successors, strict=True):
        last_us = segment.last_us() or successor.created_at_ms * 1_000
        ages.append((segment, SegmentAge(segment.size, last_us)))
    return ages


def _is_below(segment: Segment, state: StorageTopicState) -> bool:
    """Whether a sealed segment holds nothing at or above the low watermarks."""
    if segment.runs is not None:
        return False
    ends = _ends_of([segment])
    return all(end <= state.streams[partition].start for partition, end in ends.items())


def _ends_of(segments: list[Segment]) -> dict[int, int]:
    """The end of each stream in the segments."""
    ends: dict[int, int] = {}
    for segment in segments:
        for partition in segment.partitions():
            extent = segment.extent(partition)
            assert extent is not None
            ends[partition] = max(ends.get(partition, 0), extent.end)
    return ends
