"""Carries out what a start decided about one segment: copies its tail, or seals its file.

If the disk is full, a segment stays *unsealed*: its index is in memory, its frames are durable in
place, its row is unchanged. So the log can be read and every repeat answered. The housekeeper seals
it once there is room; a start before that finds what this one found.

Invariant: a row changes only after the bytes that it describes are durable. Every frame of a
returned segment is durable.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dss_core.errors import DiskFull
from dssd.log.disk_errors import is_full
from dssd.log.recovery import judge_segment
from dssd.log.recovery.claimed_offsets import Claim
from dssd.log.recovery.segment_content import SegmentContent
from dssd.log.resume import snapshots
from dssd.log.segment.file import HEADER_BYTES, SegmentId, SegmentPaths
from dssd.log.segment.frame_scan import BadBytes
from dssd.log.segment.rows import row_id, unlink_segments
from dssd.log.segment.run_index import Runs, StreamRuns
from dssd.log.topic_state import Segment
from dssd.store.port import Delete, Put, Store
from dssd.store.rows import SegmentRow

DAMAGED_PLACES_TOLD_MAX = 8
"""How many damaged places of a segment are named; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A damaged segment, kept until its claims are known."""

    row: SegmentRow
    content: SegmentContent
    watermark: int


class Outcomes:
    """Carries out the outcomes of one storage topic."""

    def __init__(
        self,
        paths: SegmentPaths,
        store: Store,
        wall_us: Callable[[], int],
        report: Callable[[Path, str], None],
        *,
        may_be_lost: bool,
    ) -> None:
        self._paths = paths
        self._store = store
        self._wall_us = wall_us
        self._report = report
        self._may_be_lost = may_be_lost

    async def forget(self, row: SegmentRow, *, existed: bool) -> None:
        """Remove a segment that never existed: quarantine its file, delete its row."""
        segment_id = row_id(row)
        try:
            if existed:
                path = self._paths.segment(segment_id)
                moved = await asyncio.to_thread(self._paths.quarantine, path)
                self._report(moved, "it has no whole header and no frame")
            await self._store.commit([Delete(SegmentRow, tuple(segment_id))])
        except (DiskFull, OSError) as error:
            if not is_full(error):
                raise

    async def move_tail(
        self, row: SegmentRow, content: SegmentContent
    ) -> tuple[list[Segment], bool]:
        """Copy the whole frames above the watermark to a new file; the old file ends there.

        Returns the segments in order, and whether the last one takes more frames.
        """
        path = self._paths.segment(row_id(row))
        try:
            segments = await self._moved(row, content)
        except (DiskFull, OSError) as error:
            if not is_full(error):
                raise
            if content.torn_bytes:
                self._report(path, _torn(content))
            return [await self._unsealed(row, content, content.good_end)], False
        return segments, True

    async def _moved(self, row: SegmentRow, content: SegmentContent) -> list[Segment]:
        old = row_id(row)
        new, runs = await self._copy_above(old, content, goes=not content.kept)
        new.runs = runs
        new_row = new.row("active", new.size)
        if content.kept:
            kept = await self._indexed(row, content.kept_end, content.kept, content.frames_kept)
            await self._commit_or_drop(new, [Put(new_row), Put(kept.row("sealed", kept.size))])
            if content.torn_bytes:
                self._report(self._paths.segment(old), _torn(content))
            return [kept, new]
        await self._commit_or_drop(new, [Put(new_row), Delete(SegmentRow, tuple(old))])
        await self._retire(old, _torn(content) if content.torn_bytes else "")
        return [new]

    async def _copy_above(
        self, old: SegmentId, content: SegmentContent, *, goes: bool
    ) -> tuple[Segment, Runs]:
        """A new segment, not in the store yet, with the frames above the watermark.

        If the old file ``goes``, its snapshot of producers is first copied beside the new one.
        """
        now_us = self._wall_us()
        new = SegmentId(old.storage_topic_id, await self._store.next_id())
        if goes:
            await asyncio.to_thread(snapshots.hand_down, self._paths, old, new)
        runs = await asyncio.to_thread(
            judge_segment.copy_tail, self._paths, old, new, content, now_us
        )
        size = HEADER_BYTES + content.above_bytes
        segment = Segment(new, now_us // 1_000, None, None, size, size, size)
        segment.frames = content.frames_above
        return segment, runs

    async def _commit_or_drop(self, new: Segment, writes: list[Put | Delete]) -> None:
        """Commit the rows of a move; remove the copy if the disk is too full for its row."""
        try:
            await self._store.commit(writes)
        except (DiskFull, OSError) as error:
            if is_full(error):
                await asyncio.to_thread(unlink_segments, self._paths, [new.id])
            raise

    async def _retire(self, old: SegmentId, bad: str) -> None:
        """Remove a file whose frames were all copied; quarantine it if it has bad bytes."""
        if bad:
            path = self._paths.segment(old)
            self._report(await asyncio.to_thread(self._paths.quarantine, path), bad)
        await asyncio.to_thread(unlink_segments, self._paths, [old])

    async def seal(
        self,
        row: SegmentRow,
        content: SegmentContent,
        claims: Sequence[Claim] = (),
        size: int | None = None,
    ) -> Segment:
        """Seal a file whose frames are all below its watermark."""
        runs, frames = content.kept, content.frames_kept
        _claim(runs, claims)
        size = content.size if size is None else size
        try:
            segment = await self._indexed(row, size, runs, frames)
            if row.state == "active":
                await self._store.commit([Put(segment.row("sealed", segment.size))])
        except (DiskFull, OSError) as error:
            if not is_full(error):
                raise
            return await self._unsealed(row, content, size)
        return segment

    async def seal_damaged(self, damaged: Damaged, claims: Sequence[Claim]) -> list[Segment]:
        """Seal a damaged file; whole frames above its watermark are copied.

        The copy is sealed too, because only the index of a sealed segment can hold claims.
        """
        row, content = damaged.row, damaged.content
        reason = damage(content, damaged.watermark, may_be_lost=self._may_be_lost)
        if not content.above:
            self._report(self._paths.segment(row_id(row)), reason)
            # With its bad frames, so that an index that is made anew finds their offsets too.
            ends = [bad.end for bad in content.damaged(damaged.watermark)]
            size = min(content.size, max(damaged.watermark, content.kept_end, *ends, 0))
            return [await self.seal(row, content, claims, size)]
        try:
            return await self._moved_from_damaged(damaged, claims, reason)
        except (DiskFull, OSError) as error:
            if not is_full(error):
                raise
        self._report(self._paths.segment(row_id(row)), reason)
        segment = await self._unsealed(row, content, content.good_end)
        assert segment.runs is not None
        _claim(segment.runs, claims)
        return [segment]

    async def _moved_from_damaged(
        self, damaged: Damaged, claims: Sequence[Claim], reason: str
    ) -> list[Segment]:
        row, content, watermark = damaged.row, damaged.content, damaged.watermark
        old = row_id(row)
        new, runs = await self._copy_above(old, content, goes=watermark <= HEADER_BYTES)
        _claim(runs, [claim for claim in claims if claim.place.position >= watermark])
        new_row = new.row("sealed", new.size)
        copy = await self._indexed(new_row, new.size, runs, content.frames_above)
        if watermark <= HEADER_BYTES:
            await self._commit_or_drop(new, [Put(new_row), Delete(SegmentRow, tuple(old))])
            await self._retire(old, reason)
            return [copy]
        kept_end = min(content.size, max(content.kept_end, watermark))
        _claim(content.kept, [claim for claim in claims if claim.place.position < watermark])
        kept = await self._indexed(row, kept_end, content.kept, content.frames_kept)
        await self._commit_or_drop(new, [Put(new_row), Put(kept.row("sealed", kept_end))])
        self._report(self._paths.segment(old), reason)
        return [kept, copy]

    async def _indexed(self, row: SegmentRow, size: int, runs: Runs, frames: int) -> Segment:
        """Write the index of a segment; returns it sealed."""
        segment_id = row_id(row)
        await asyncio.to_thread(
            judge_segment.write_index, self._paths, segment_id, size, runs, frames
        )
        summary = await asyncio.to_thread(judge_segment.load_summary, self._paths, segment_id)
        segment = Segment(segment_id, row.created_at_ms, None, summary, size, size, size)
        segment.frames = frames
        return segment

    async def _unsealed(self, row: SegmentRow, content: SegmentContent, size: int) -> Segment:
        """Keep a segment unsealed: its index in memory, its frames made durable in place."""
        segment_id = row_id(row)
        await asyncio.to_thread(judge_segment.make_tail_durable, self._paths, segment_id, content)
        runs = judge_segment.joined(content)
        segment = Segment(
            segment_id, row.created_at_ms, runs, None, size, row.watermark_bytes, size
        )
        segment.frames = content.frames_kept + content.frames_above
        return segment


def _claim(runs: Runs, claims: Sequence[Claim]) -> None:
    for claim in claims:
        runs.setdefault(claim.partition, StreamRuns()).claim(claim.start, claim.end)


def _torn(content: SegmentContent) -> str:
    return f"torn tail: {content.torn_bytes} bytes after byte {content.good_end} are no whole frame"


def damage(content: SegmentContent, watermark: int, *, may_be_lost: bool) -> str:
    """The reason to report for a damaged segment.

    ``may_be_lost``: the topic takes frames that are reported before they are synced."""
    if content.header_reason:
        return f"damaged header: {content.header_reason}"
    if content.size < watermark:
        return f"it ends at byte {content.size}, below its watermark {watermark}"
    bad_bytes = content.damaged(watermark)
    places = ", ".join(map(_place, bad_bytes[:DAMAGED_PLACES_TOLD_MAX]))
    if may_be_lost and all(bad.start >= watermark for bad in bad_bytes):
        return f"lost with the power: bytes {places} were not synced"
    return f"damaged bytes: {places}"


def _place(bad: BadBytes) -> str:
    """Where bad bytes are, and which records they held, where their header is whole."""
    place = f"{bad.start}..{bad.end}"
    if bad.header is None:
        return place
    first, last = bad.header.base_offset, bad.header.base_offset + bad.header.records - 1
    offsets = f"offset {first}" if first == last else f"offsets {first} to {last}"
    return f"{place} ({offsets} of partition {bad.header.partition})"
