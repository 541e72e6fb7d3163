"""Opening a log: rows and files are brought together, topic by topic, before anything is served.

Invariant: afterwards every segment row has its file, every segment file in the directory has its
row, and each storage topic has at most one active segment, the last. Files that no row names are
moved to quarantine. `dssd.log.recovery` decides about single segments; this module carries out.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dssd.log import recovery
from dssd.log.batch import WriterTopic
from dssd.log.index import StreamRuns
from dssd.log.index_file import BadIndex, Summary, decode_runs
from dssd.log.producers import BadSnapshot, Covered, Producers, forgotten_before
from dssd.log.rebuilding import rebuild_index
from dssd.log.recovery import Content, Outcome, TopicScan
from dssd.log.segment_file import (
    HEADER_BYTES,
    INDEX_SUFFIX,
    PRODUCERS_SUFFIX,
    QUARANTINE,
    TEMPORARY_SUFFIX,
    SegmentId,
    SegmentPaths,
    SegmentWriter,
    parse_name,
    sync_directory,
    write_durably,
)
from dssd.log.segment_rows import (
    all_segment_rows,
    parse_starts,
    remove_segments,
    row_id,
    unlink_segments,
)
from dssd.log.settings import LogSettings
from dssd.log.streams import Segment, StorageTopicState, Stream
from dssd.store.port import Delete, Put, Store
from dssd.store.rows import SegmentRow, StorageTopicRow

CLEAN_MARKER = "CLEAN"
_PLACES_NAMED_MAX = 8


@dataclass(slots=True)
class Recovered:
    """What a start found."""

    topics: list[tuple[StorageTopicState, WriterTopic]] = field(default_factory=list)
    quarantined: list[tuple[Path, str]] = field(default_factory=list)


async def recover(
    paths: SegmentPaths,
    store: Store,
    storage_topics: Sequence[StorageTopicRow],
    settings: LogSettings,
    wall_us: Callable[[], int],
) -> Recovered:
    """Make the log appendable again, whatever the last process left behind.

    Raises:
        OSError: the directory cannot be read or written.
    """
    recovered = Recovered()
    clean = await asyncio.to_thread(_take_marker, paths)
    rows = await all_segment_rows(store)
    known = {row.storage_topic_id for row in storage_topics}
    for storage_topic_id in rows.keys() - known:
        await remove_segments(paths, store, [row_id(row) for row in rows[storage_topic_id]])
    for topic in storage_topics:
        one = _TopicRecovery(paths, store, settings, wall_us, recovered, clean=clean)
        await one.recover(topic, rows[topic.storage_topic_id])
    named = {row_id(row) for topic in storage_topics for row in rows[topic.storage_topic_id]}
    in_use = {segment.id for state, _ in recovered.topics for segment in state.segments.values()}
    await asyncio.to_thread(_quarantine_strays, paths, named | in_use, recovered)
    return recovered


def _take_marker(paths: SegmentPaths) -> bool:
    """Whether the log was closed cleanly. It no longer counts as such from here on."""
    paths.directory.mkdir(parents=True, exist_ok=True)
    marker = paths.directory / CLEAN_MARKER
    clean = marker.exists()
    marker.unlink(missing_ok=True)
    sync_directory(paths.directory)
    return clean


def _quarantine_strays(paths: SegmentPaths, named: set[SegmentId], recovered: Recovered) -> None:
    """Move files that no row names aside; remove what only caches or never got its name."""
    for path in sorted(paths.directory.iterdir()):
        if path.name == QUARANTINE:
            continue
        if path.suffix == TEMPORARY_SUFFIX:
            path.unlink()
            continue
        segment = parse_name(path)
        if segment is not None and segment in named:
            continue
        if segment is not None and path.suffix in (INDEX_SUFFIX, PRODUCERS_SUFFIX):
            path.unlink()
            continue
        reason = "no row names it"
        recovered.quarantined.append((paths.quarantine(path), reason))


class _TopicRecovery:
    """One storage topic."""

    def __init__(
        self,
        paths: SegmentPaths,
        store: Store,
        settings: LogSettings,
        wall_us: Callable[[], int],
        recovered: Recovered,
        *,
        clean: bool,
    ) -> None:
        self._paths = paths
        self._store = store
        self._settings = settings
        self._wall_us = wall_us
        self._recovered = recovered
        self._clean = clean
        self._file: SegmentWriter | None = None
        self._state: StorageTopicState
        self._scan: TopicScan
        self._covered: Covered

    async def recover(self, topic: StorageTopicRow, rows: list[SegmentRow]) -> None:
        """Go through its segments in order; then it is ready for readers and the writer."""
        starts = parse_starts(topic)
        self._state = StorageTopicState(
            topic.storage_topic_id, [Stream(start, start) for start in starts]
        )
        loaded = await asyncio.to_thread(self._load_producers, topic.storage_topic_id, rows)
        producers, self._covered = loaded
        self._scan = TopicScan(topic.storage_topic_id, list(starts), producers)
        for row in await self._without_empty_successor(rows):
            if row.state == "active":
                await self._active(row, is_last=row is rows[-1])
            else:
                await self._sealed(row)
        producers.forget_before(forgotten_before(self._wall_us()))
        last = self._state.last
        if last is not None and not self._clean:
            await asyncio.to_thread(self._save_producers, last)
        self._finish(sealed=topic.ends is not None)

    def _finish(self, *, sealed: bool) -> None:
        state, scan = self._state, self._scan
        for segment in state.segments.values():
            for partition in segment.partitions():
                extent = segment.extent(partition)
                assert extent is not None
                stream = state.streams[partition]
                stream.grow(segment, max(stream.end, extent.end))
        for stream, end in zip(state.streams, scan.ends, strict=True):
            stream.end = max(stream.end, end)
        ends = [stream.end for stream in state.streams]
        writer = WriterTopic(
            state.storage_topic_id, ends, scan.producers, scan.last_us, sealed, self._file
        )
        state.writable = self._file is not None
        last = state.last
        state.claimed_bytes = last.size if last is not None and state.writable else 0
        self._recovered.topics.append((state, writer))

    async def _without_empty_successor(self, rows: list[SegmentRow]) -> list[SegmentRow]:
        """A crash while rolling leaves two active segments; an empty second one never existed."""
        active = [row for row in rows if row.state == "active"]
        if len(active) < 2:
            return rows
        last = row_id(active[-1])
        if _size_of(self._paths.segment(last)) > HEADER_BYTES:
            return rows
        await remove_segments(self._paths, self._store, [last])
        rows.remove(active[-1])
        return rows

    # Sealed segments

    async def _sealed(self, row: SegmentRow) -> None:
        segment_id = row_id(row)
        path = self._paths.segment(segment_id)
        try:
            summary = await asyncio.to_thread(recovery.load_summary, self._paths, segment_id)
        except BadIndex as error:
            if not path.exists():
                self._report(path, "the file is missing")
                return
            if error.args[0] != "missing":
                self._report(self._paths.index(segment_id), f"rebuilt: {error}")
            summary = await asyncio.to_thread(self._rebuild, segment_id, row.watermark_bytes)
        if self._below_starts(summary):
            await remove_segments(self._paths, self._store, [segment_id])
            return
        if _size_of(path) < summary.segment_bytes:
            self._report(path, f"shorter than the {summary.segment_bytes} bytes of its index")
        self._learn(segment_id, row, summary)
        await asyncio.to_thread(self._replay, segment_id, summary.segment_bytes)

    def _learn(self, segment_id: SegmentId, row: SegmentRow, summary: Summary) -> None:
        size = summary.segment_bytes
        self._state.segments[segment_id.segment_id] = Segment(
            segment_id, row.created_at_ms, None, summary, size, row.watermark_bytes, size
        )
        for partition, entry in summary.streams.items():
            self._scan.ends[partition] = max(self._scan.ends[partition], entry.extent.end)
            self._scan.last_us = max(self._scan.last_us, entry.extent.last_us)

    def _below_starts(self, summary: Summary) -> bool:
        """Whether retention had already given up all that a segment holds."""
        streams = self._state.streams
        return bool(summary.streams) and all(
            entry.extent.end <= streams[partition].start
            for partition, entry in summary.streams.items()
        )

    def _rebuild(self, segment_id: SegmentId, watermark: int) -> Summary:
        return rebuild_index(
            self._paths, segment_id, watermark, self._scan, self._settings.run_bytes_max
        )

    # Active segments

    async def _active(self, row: SegmentRow, *, is_last: bool) -> None:
        segment_id = row_id(row)
        path = self._paths.segment(segment_id)
        if self._clean and is_last and await self._taken_up_by_index(row):
            return
        watermark = row.watermark_bytes
        if not is_last:
            # The next file took frames only once this one was durable to its end.
            watermark = max(watermark, _size_of(path))
        content = await asyncio.to_thread(
            recovery.scan_segment,
            self._paths,
            segment_id,
            watermark,
            self._scan,
            self._settings.run_bytes_max,
        )
        outcome = recovery.judge(content, watermark)
        if content is None or outcome is Outcome.NEVER_BEGUN:
            await self._forget_row(row, existed=content is not None)
        elif outcome is Outcome.WHOLE and is_last:
            self._take_up(row, content.kept, content.size, content.frames_kept)
        elif outcome is Outcome.TAIL:
            await self._move_tail(row, content)
        else:
            await self._seal(row, content, watermark)

    async def _taken_up_by_index(self, row: SegmentRow) -> bool:
        """After a clean stop the index is complete: nothing needs to be read."""
        segment_id = row_id(row)
        try:
            summary = await asyncio.to_thread(recovery.load_summary, self._paths, segment_id)
            size = _size_of(self._paths.segment(segment_id))
            if not size == summary.segment_bytes == row.watermark_bytes:
                return False
            content = await asyncio.to_thread(self._paths.index(segment_id).read_bytes)
            runs = decode_runs(content, summary)
        except BadIndex:
            return False
        self._learn(segment_id, row, summary)
        await asyncio.to_thread(self._replay, segment_id, size)
        self._take_up(row, runs, size, summary.frames)
        return True

    def _take_up(
        self, row: SegmentRow, runs: dict[int, StreamRuns], size: int, frames: int
    ) -> None:
        """Go on appending to a file all of which is durable."""
        segment_id = row_id(row)
        segment = Segment(segment_id, row.created_at_ms, runs, None, size, size, size)
        segment.frames = frames
        self._state.segments[segment_id.segment_id] = segment
        self._file = SegmentWriter.reopen(self._paths, segment_id, size)

    async def _forget_row(self, row: SegmentRow, *, existed: bool) -> None:
        path = self._paths.segment(row_id(row))
        if existed:
            moved = await asyncio.to_thread(self._paths.quarantine, path)
            self._report(moved, "it has no whole header and no frame")
        elif row.watermark_bytes > HEADER_BYTES:
            self._report(path, "the file is missing")
        await self._store.commit([Delete(SegmentRow, tuple(row_id(row)))])

    async def _move_tail(self, row: SegmentRow, content: Content) -> None:
        """Copy what is good above the watermark; then the old file ends there."""
        old = row_id(row)
        now_us = self._wall_us()
        new = SegmentId(old.storage_topic_id, await self._store.next_id())
        runs = await asyncio.to_thread(recovery.move_tail, self._paths, old, new, content, now_us)
        size = HEADER_BYTES + content.good_end - content.kept_end
        new_row = SegmentRow(*new, "active", size, now_us // 1_000)
        old_row = SegmentRow(*old, "sealed", content.kept_end, row.created_at_ms)
        path = self._paths.segment(old)
        if content.kept:
            await asyncio.to_thread(
                recovery.write_index,
                self._paths,
                old,
                content.kept_end,
                content.kept,
                content.frames_kept,
            )
            await self._store.commit([Put(new_row), Put(old_row)])
            self._learn(old, old_row, recovery.load_summary(self._paths, old))
            if content.torn_bytes:
                self._report(path, _torn(content))
        else:
            await self._store.commit([Put(new_row), Delete(SegmentRow, tuple(old))])
            await asyncio.to_thread(self._retire, old, content)
        self._take_up(new_row, runs, size, content.frames_above)

    def _retire(self, old: SegmentId, content: Content) -> None:
        """Every good byte of the file is in its successor."""
        if content.torn_bytes:
            self._report(self._paths.quarantine(self._paths.segment(old)), _torn(content))
        unlink_segments(self._paths, [old])

    async def _seal(self, row: SegmentRow, content: Content, watermark: int) -> None:
        """Leave the file as it is and take no more frames in it."""
        segment_id = row_id(row)
        runs = recovery.joined(content)
        if recovery.judge(content, watermark) is Outcome.DAMAGED:
            recovery.claim_lost(content, watermark, self._scan, runs)
            self._report(self._paths.segment(segment_id), _damage(content, watermark))
        frames = content.frames_kept + content.frames_above
        await asyncio.to_thread(
            recovery.write_index, self._paths, segment_id, content.size, runs, frames
        )
        sealed = SegmentRow(*segment_id, "sealed", content.size, row.created_at_ms)
        await self._store.commit([Put(sealed)])
        self._learn(segment_id, sealed, recovery.load_summary(self._paths, segment_id))

    # Producers

    def _load_producers(
        self, storage_topic_id: int, rows: list[SegmentRow]
    ) -> tuple[Producers, Covered]:
        """The newest snapshot that is whole; else nothing, and every frame has to be read."""
        for row in reversed(rows):
            path = self._paths.producers(row_id(row))
            try:
                return Producers.decode(path.read_bytes())
            except FileNotFoundError:
                continue
            except BadSnapshot as error:
                self._report(path, f"rebuilt: {error}")
        return Producers(storage_topic_id), Covered(storage_topic_id, 0, 0)

    def _save_producers(self, last: Segment) -> None:
        covered = Covered(*last.id, last.size)
        write_durably(self._paths.producers(last.id), [self._scan.producers.encode(covered)])

    def _replay(self, segment_id: SegmentId, size: int) -> None:
        """Read the frames of a segment that the snapshot does not know."""
        covered = self._covered
        if segment_id.segment_id < covered.segment_id:
            return
        start = covered.position if segment_id.segment_id == covered.segment_id else HEADER_BYTES
        if start < size:
            recovery.replay_producers(self._paths, segment_id, start, size, self._scan.producers)

    def _report(self, path: Path, reason: str) -> None:
        self._recovered.quarantined.append((path, reason))


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _torn(content: Content) -> str:
    return f"torn tail: {content.torn_bytes} bytes after byte {content.good_end} are no whole frame"


def _damage(content: Content, watermark: int) -> str:
    if content.header_reason:
        return f"damaged header: {content.header_reason}"
    if content.size < watermark:
        return f"it ends at byte {content.size}, below its watermark {watermark}"
    places = ", ".join(f"{bad.start}..{bad.end}" for bad in content.bad[:_PLACES_NAMED_MAX])
    return f"damaged bytes: {places}"
