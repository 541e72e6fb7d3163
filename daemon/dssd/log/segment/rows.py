"""The rows of segments and ceilings, and the removal of segments.

Invariant: a segment file is deleted before its row, so that no segment file is ever without a row.
Its index is deleted after the row: if a row has no file, the index tells a start that no record in
it was to be kept.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence

from dss_core.errors import DiskFull
from dssd.log.disk_errors import is_full
from dssd.log.segment.file import SegmentId, SegmentPaths, sync_directory
from dssd.store.paging import scan_all
from dssd.store.port import Delete, Store
from dssd.store.rows import CeilingRow, SegmentRow, StorageTopicRow

_LOG = logging.getLogger(__name__)

INGESTED = "ingested"
"""State of a segment whose frames were published at once, by the commit of its row."""


def row_id(row: SegmentRow) -> SegmentId:
    """The segment that a row names."""
    return SegmentId(row.storage_topic_id, row.segment_id)


def parse_starts(row: StorageTopicRow) -> list[int]:
    """The first kept offset of each partition."""
    starts = [int(text) for text in row.starts.split(",") if text]
    return starts + [0] * (row.partitions - len(starts))


def parse_ends(row: StorageTopicRow) -> list[int] | None:
    """The end of each partition of a sealed storage topic, else None."""
    return None if row.ends is None else [int(text) for text in row.ends.split(",")]


async def all_segment_rows(store: Store) -> defaultdict[int, list[SegmentRow]]:
    """All segment rows by storage topic, in order."""
    rows: defaultdict[int, list[SegmentRow]] = defaultdict(list)
    for versioned in await scan_all(store, SegmentRow):
        rows[versioned.row.storage_topic_id].append(versioned.row)
    return rows


async def all_ceilings(store: Store) -> defaultdict[int, dict[int, int]]:
    """All ceilings by storage topic, then by partition."""
    ceilings: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row in [found.row for found in await scan_all(store, CeilingRow)]:
        ceilings[row.storage_topic_id][row.partition] = row.ceiling
    return ceilings


async def remove_ceilings(store: Store, storage_topic_id: int, partitions: Iterable[int]) -> None:
    """Delete the ceilings of a storage topic that was removed; safe to repeat after a crash."""
    keys = [(storage_topic_id, partition) for partition in partitions]
    if keys:
        await store.commit([Delete(CeilingRow, key) for key in keys])


async def remove_segments(paths: SegmentPaths, store: Store, segments: Sequence[SegmentId]) -> None:
    """Delete the files of segments, then their rows; safe to repeat after a crash."""
    await asyncio.to_thread(_unlink_frames, paths, segments)
    await store.commit([Delete(SegmentRow, tuple(segment)) for segment in segments])
    await asyncio.to_thread(_unlink_indexes, paths, segments)


async def remove_if_room(paths: SegmentPaths, store: Store, segments: Sequence[SegmentId]) -> None:
    """As `remove_segments`; on a full disk the next start removes what is left.

    Raises:
        OSError: the disk failed.
    """
    try:
        await remove_segments(paths, store, segments)
    except (DiskFull, OSError) as error:
        if not is_full(error):
            raise
        _LOG.warning(
            "the disk is too full to delete the rows of segments: %s",
            segments,
            extra={"event": "segment.rows-left"},
        )


def unlink_segments(paths: SegmentPaths, segments: Sequence[SegmentId]) -> None:
    """Delete the files of segments that no row names, or that never took a frame."""
    _unlink_indexes(paths, segments)
    _unlink_frames(paths, segments)


def _unlink_frames(paths: SegmentPaths, segments: Sequence[SegmentId]) -> None:
    for segment in segments:
        paths.segment(segment).unlink(missing_ok=True)
        paths.producers(segment).unlink(missing_ok=True)
        paths.marks(segment).unlink(missing_ok=True)
    sync_directory(paths.directory)


def _unlink_indexes(paths: SegmentPaths, segments: Sequence[SegmentId]) -> None:
    """Delete indexes, without a sync: a start deletes an index that no row names."""
    for segment in segments:
        paths.index(segment).unlink(missing_ok=True)
