"""Opens one storage topic: recovers its segments in order, then the bounds of its streams.

`judge_segment` decides about single segments and `outcomes` carries the decisions out. This module
knows all segments of a topic: what damaged bytes may have held, where each stream ends, what
producers had sent.

Invariant: afterwards at most one segment takes frames, the last; no stream ends below an offset
that was assigned. A segment without records is removed only after its producers are stored
elsewhere. This module must not know other topics, nor files that no row names: `open_log` does.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dss_core.limits import RESTORE_OFFSETS_RAISED
from dssd.log.ceilings import Ceilings
from dssd.log.disk_errors import is_full
from dssd.log.recovery import judge_segment
from dssd.log.recovery.claimed_offsets import LogPosition, claims_of
from dssd.log.recovery.judge_segment import Outcome
from dssd.log.recovery.missing_frames import frames_there
from dssd.log.recovery.outcomes import Damaged, Outcomes
from dssd.log.recovery.reached_offsets import ReachedOffsets, ShortStream, short_streams
from dssd.log.recovery.segment_content import (
    SegmentContent,
    TopicScan,
    replay_producers,
    scan_segment,
)
from dssd.log.resume import marks, snapshots
from dssd.log.resume.marks import LoadedMarks
from dssd.log.segment.file import (
    HEADER_BYTES,
    SegmentId,
    SegmentPaths,
    SegmentWriter,
)
from dssd.log.segment.index_file import BadIndex
from dssd.log.segment.rows import parse_ends, parse_starts, remove_if_room, row_id
from dssd.log.sequences import Producers, SnapshotPosition
from dssd.log.settings import LogSettings
from dssd.log.topic_state import Segment, StorageTopicState, Stream
from dssd.log.writer_messages import WriterTopic
from dssd.store.port import Store
from dssd.store.rows import SegmentRow, StorageTopicRow

_LOG = logging.getLogger(__name__)


class TopicRecovery:
    """Recovers one storage topic. ``report`` is told of quarantined, damaged and rebuilt files."""

    def __init__(
        self,
        paths: SegmentPaths,
        store: Store,
        settings: LogSettings,
        wall_us: Callable[[], int],
        ceilings: Mapping[int, int],
        reached: ReachedOffsets,
        report: Callable[[Path, str], None],
        *,
        clean: bool,
    ) -> None:
        self._paths = paths
        self._store = store
        self._settings = settings
        self._wall_us = wall_us
        self._ceilings = ceilings
        self._reached = reached
        self._tell = report
        self._clean = clean
        self._outcomes = Outcomes(paths, store, wall_us, self._report, may_be_lost=bool(ceilings))
        self.short: list[ShortStream] = []
        """Streams that lack records which groups have read."""
        self._as_it_was_left = clean
        self._file: SegmentWriter | None = None
        self._damaged: list[Damaged] = []
        self._gone: list[SegmentId] = []
        """Segments without records, whose producers may not be stored elsewhere yet."""
        self._state: StorageTopicState
        self._scan: TopicScan
        self._covered: SnapshotPosition

    async def recover(
        self, topic: StorageTopicRow, rows: Sequence[SegmentRow]
    ) -> tuple[StorageTopicState, WriterTopic]:
        """Recover its segments in order; returns its state for readers and for the writer.

        Raises:
            OSError: the disk failed.
        """
        starts = parse_starts(topic)
        self._state = StorageTopicState(
            topic.storage_topic_id, [Stream(start, start) for start in starts]
        )
        producers, self._covered = await asyncio.to_thread(self._load_producers, rows)
        self._scan = TopicScan(
            topic.storage_topic_id, [0] * len(starts), producers, producers.newest_us
        )
        never = judge_segment.never_begun(self._paths, rows)
        self._gone += [row_id(row) for row in never]
        there = [row for row in rows if row not in never]
        for row in there:
            if row.state == "active":
                await self._active(row, is_last=row is there[-1])
            else:
                await self._sealed(row)
        damaged = await self._settle_damaged(parse_ends(topic))
        self._grow_streams()
        short = self._reach_sealed_ends(parse_ends(topic))
        self._go_on_at_ceilings(parse_ends(topic))
        if not self._as_it_was_left:
            await self._go_on_behind_reached()
        if damaged or short or self.short:
            is_there = await asyncio.to_thread(frames_there, self._paths, self._state, damaged)
            producers.forget_gone(is_there)
        last = self._state.last
        if not self._clean or (last is not None and self._covered != (*last.id, last.size)):
            producers.doubt()
        producers.forget_at_start(self._wall_us())
        await self._let_go(producers)
        writer = self._finished(sealed=topic.ends is not None)
        writer.begin_at(topic.begins_us)
        return self._state, writer

    async def _let_go(self, producers: Producers) -> None:
        """Remove the segments without records, once their producers are stored elsewhere."""
        last = self._state.last
        covered = None if last is None else SnapshotPosition(*last.id, last.size)
        sizes = {one: judge_segment.size_of(self._paths.segment(one)) for one in self._gone}
        there = [one for one in self._gone if sizes[one]]
        if covered is None and there and len(producers):
            # The newest of them stays until there is another segment.
            covered = SnapshotPosition(*max(there), sizes[max(there)])
            self._gone.remove(max(there))
        saved = True
        if covered is not None and (self._gone or not self._clean):
            saved = await asyncio.to_thread(self._save_producers, covered)
        if self._gone and saved:
            await remove_if_room(self._paths, self._store, self._gone)

    def _grow_streams(self) -> None:
        state = self._state
        for segment in state.segments.values():
            for partition in segment.partitions():
                extent = segment.extent(partition)
                assert extent is not None
                stream = state.streams[partition]
                stream.grow(segment, max(stream.end, extent.end))

    def _reach_sealed_ends(self, ends: Sequence[int] | None) -> bool:
        """End each stream where it was sealed, even if records are missing there: they read as
        damage.

        Otherwise no group could finish it. Streams with a ceiling are handled after this. Returns
        whether something is missing.
        """
        short: list[str] = []
        for partition, stream in enumerate(self._state.streams):
            if ends is None or partition in self._ceilings or ends[partition] <= stream.end:
                continue
            short.append(f"{partition} from {stream.end} to {ends[partition]}")
            stream.end = ends[partition]
        if short:
            _LOG.warning(
                "storage topic %d is sealed and its last records are gone; these partitions lack "
                "offsets: %s",
                self._state.storage_topic_id,
                ", ".join(short),
                extra={"event": "topic.sealed-short"},
            )
        return bool(short)

    def _go_on_at_ceilings(self, ends: Sequence[int] | None) -> None:
        """Continue each stream with a ceiling above all offsets that were assigned.

        A sealed stream ends where it was sealed.
        """
        state = self._state
        state.ceilings = Ceilings(self._ceilings)
        gaps: list[str] = []
        restored = False
        for partition, ceiling in self._ceilings.items():
            stream = state.streams[partition]
            goes_on = ceiling if ends is None else ends[partition]
            if goes_on > stream.end:
                restored = restored or goes_on - stream.end >= RESTORE_OFFSETS_RAISED
                gaps.append(f"{partition} at {goes_on} instead of {stream.end}")
                self._leave_gap(partition, goes_on)
        if gaps:
            why = "was restored: records that came behind the backup are lost"
            if not restored:
                why = "was not closed: records that were not synced may be lost"
            _LOG.warning(
                "storage topic %d %s; these partitions go on behind a gap: %s",
                state.storage_topic_id,
                why,
                ", ".join(gaps),
                extra={"event": "topic.restored" if restored else "topic.not-closed"},
            )

    async def _go_on_behind_reached(self) -> None:
        """Continue each stream behind all that groups have read of it."""
        number = self._state.storage_topic_id
        ends = [stream.end for stream in self._state.streams]
        self.short = list(short_streams(number, ends, await self._reached.of(number)))
        for one in self.short:
            self._leave_gap(one.partition, one.reached)

    def _leave_gap(self, partition: int, goes_on: int) -> None:
        """A gap lies between two segments, because inside one it would count as damage: so a file
        that holds frames of the stream takes no more."""
        self._state.streams[partition].end = goes_on
        last = self._state.last
        if last is not None and last.extent(partition) is not None:
            self._file = None

    def _report(self, path: Path, reason: str) -> None:
        self._as_it_was_left = False
        self._tell(path, reason)

    def _finished(self, *, sealed: bool) -> WriterTopic:
        state, scan = self._state, self._scan
        ends = [stream.end for stream in state.streams]
        writer = WriterTopic(
            state.storage_topic_id, ends, scan.producers, scan.last_us, sealed, self._file
        )
        writer.ceilings = dict(self._ceilings)
        state.writable = self._file is not None
        state.sealed = sealed
        last = state.last
        if last is not None and state.writable:
            writer.frames = last.frames
        state.claimed_bytes = last.size if last is not None and state.writable else 0
        return writer

    # Sealed segments

    async def _sealed(self, row: SegmentRow) -> None:
        segment_id = row_id(row)
        path = self._paths.segment(segment_id)
        try:
            summary = await asyncio.to_thread(judge_segment.load_summary, self._paths, segment_id)
        except BadIndex as error:
            await self._sealed_without_index(row, str(error))
            return
        size = summary.segment_bytes
        segment = Segment(
            segment_id, row.created_at_ms, None, summary, size, row.watermark_bytes, size
        )
        if self._is_below_starts(segment):
            await asyncio.to_thread(self._replay, segment_id, size)
            self._scan.last_us = max(self._scan.last_us, segment.last_us())
            self._gone.append(segment_id)
            return
        found = judge_segment.size_of(path)
        if found == 0 and size == HEADER_BYTES:
            # It never took a frame, and its removal was not finished.
            self._gone.append(segment_id)
            return
        if found < size:
            self._report(path, f"shorter than the {size} bytes of its index")
        self._add(segment)
        self._learn(segment)
        await asyncio.to_thread(self._replay, segment_id, size)

    async def _sealed_without_index(self, row: SegmentRow, reason: str) -> None:
        """Rebuild the index from the frames below the watermark."""
        segment_id, watermark = row_id(row), row.watermark_bytes
        content = await self._scanned(segment_id, watermark, stop_at=watermark)
        if content is None:
            self._report(self._paths.segment(segment_id), "the file is missing")
            return
        if reason != "missing":
            self._report(self._paths.index(segment_id), f"rebuilt: {reason}")
        if content.bad or content.size < watermark:
            self._note_damaged(row, content, watermark)
            return
        segment = await self._outcomes.seal(row, content)
        if segment.runs is None and self._is_below_starts(segment):
            self._gone.append(segment_id)
        else:
            self._add(segment)

    def _add(self, *segments: Segment) -> None:
        for segment in segments:
            self._state.segments[segment.id.segment_id] = segment

    def _learn(self, segment: Segment) -> None:
        """Take from an index what a scan of its frames would have found."""
        scan = self._scan
        for partition in segment.partitions():
            extent = segment.extent(partition)
            assert extent is not None
            scan.ends[partition] = max(scan.ends[partition], extent.end)
            scan.last_us = max(scan.last_us, extent.last_us)
            scan.last_frames[partition] = LogPosition(segment.id.segment_id, segment.size)

    def _is_below_starts(self, segment: Segment) -> bool:
        """Whether all that a segment holds lies below the low watermarks."""
        extents = [(number, segment.extent(number)) for number in segment.partitions()]
        return bool(extents) and all(
            extent is not None and extent.end <= self._state.streams[number].start
            for number, extent in extents
        )

    # Active segments

    async def _active(self, row: SegmentRow, *, is_last: bool) -> None:
        segment_id = row_id(row)
        watermark = row.watermark_bytes
        if not is_last:
            # The next file took frames only after this one was durable to its end.
            watermark = max(watermark, judge_segment.size_of(self._paths.segment(segment_id)))
        known = await asyncio.to_thread(
            marks.load, self._paths, segment_id, watermark, self._covered
        )
        content = await self._scanned(segment_id, watermark, known=known)
        if content is None and watermark > HEADER_BYTES:
            content = SegmentContent(0)
        outcome = judge_segment.judge(content, watermark)
        if content is None or outcome is Outcome.NEVER_BEGUN:
            await self._outcomes.forget(row, existed=content is not None)
        elif outcome is Outcome.DAMAGED:
            self._note_damaged(row, content, watermark)
        elif outcome is Outcome.TAIL:
            segments, writable = await self._outcomes.move_tail(row, content)
            self._add(*segments)
            if writable:
                self._take_up(segments[-1])
        elif is_last:
            size = content.size
            segment = Segment(segment_id, row.created_at_ms, content.kept, None, size, size, size)
            segment.frames = content.frames_kept
            segment.marks = content.marks
            self._add(segment)
            self._take_up(segment)
        else:
            self._add(await self._outcomes.seal(row, content))

    async def _scanned(
        self,
        segment_id: SegmentId,
        watermark: int,
        *,
        stop_at: int | None = None,
        known: LoadedMarks | None = None,
    ) -> SegmentContent | None:
        return await asyncio.to_thread(
            scan_segment,
            self._paths,
            segment_id,
            watermark,
            self._scan,
            self._settings.run_bytes_max,
            stop_at=stop_at,
            known=known,
        )

    def _take_up(self, segment: Segment) -> None:
        """Reopen a file for appends; all of it is durable."""
        self._file = SegmentWriter.reopen(self._paths, segment.id, segment.size)

    # Damaged segments

    def _note_damaged(self, row: SegmentRow, content: SegmentContent, watermark: int) -> None:
        self._damaged.append(Damaged(row, content, watermark))
        self._scan.losses += judge_segment.losses_in(row_id(row), content, watermark)

    async def _settle_damaged(self, sealed_ends: Sequence[int] | None) -> list[Segment]:
        """Seal the damaged segments, now that all frames are known and claims can be made.

        Returns the segments that replace them.
        """
        settled: list[Segment] = []
        if not self._damaged:
            return settled
        scan, streams = self._scan, self._state.streams
        ends = [max(pair) for pair in zip(scan.ends, (one.start for one in streams), strict=True)]
        claims = claims_of(scan.losses, ends, scan.last_frames, sealed_ends)
        for damaged in self._damaged:
            number = damaged.row.segment_id
            own = [claim for claim in claims if claim.place.segment_id == number]
            settled += await self._outcomes.seal_damaged(damaged, own)
        self._add(*settled)
        self._state.segments = dict(sorted(self._state.segments.items()))
        return settled

    # Producers

    def _load_producers(self, rows: Sequence[SegmentRow]) -> tuple[Producers, SnapshotPosition]:
        """The newest snapshot that is whole; if there is none, every frame has to be read."""
        number = self._state.storage_topic_id
        found = snapshots.newest(self._paths, map(row_id, rows), self._report)
        return found or (Producers(number), SnapshotPosition(number, 0, 0))

    def _save_producers(self, covered: SnapshotPosition) -> bool:
        """Store a snapshot for the next start; False if the disk is too full.

        A start works without it, unless frames were removed that only an older snapshot knows.
        """
        segment_id = SegmentId(covered.storage_topic_id, covered.segment_id)
        self._scan.producers.newest_us = self._scan.last_us
        try:
            snapshots.store(self._paths, segment_id, self._scan.producers.encode(covered))
        except OSError as error:
            if not is_full(error):
                raise
            return False
        return True

    def _replay(self, segment_id: SegmentId, size: int) -> None:
        """Read the frames of a segment that the snapshot does not cover."""
        covered = self._covered
        if segment_id.segment_id < covered.segment_id:
            return
        start = covered.position if segment_id.segment_id == covered.segment_id else HEADER_BYTES
        if start < size:
            replay_producers(self._paths, segment_id, start, size, self._scan.producers)
