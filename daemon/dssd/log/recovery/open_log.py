"""Opens a log: matches rows with files, topic by topic, before anything is served.

Invariant: afterwards every segment row has its file, every segment file in the directory has its
row, and each storage topic has at most one active segment, the last; on a full disk some segments
are sealed later. Files that no row names are moved to quarantine. This module knows the whole
directory; `recovery.topic` recovers one storage topic.
"""

import asyncio
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dss_core.errors import DiskFull
from dssd.log.disk_errors import is_full
from dssd.log.recovery.older_store import refuse_older_store
from dssd.log.recovery.reached_offsets import AskReached, ReachedOffsets, ShortStream
from dssd.log.recovery.topic import TopicRecovery
from dssd.log.resume import clean_marker
from dssd.log.segment.file import (
    ADOPTING_SUFFIX,
    CACHE_SUFFIXES,
    MARKS_SUFFIX,
    QUARANTINE,
    TEMPORARY_SUFFIX,
    SegmentId,
    SegmentPaths,
    parse_name,
)
from dssd.log.segment.rows import (
    all_ceilings,
    all_segment_rows,
    remove_ceilings,
    remove_if_room,
    row_id,
)
from dssd.log.settings import LogSettings
from dssd.log.topic_state import StorageTopicState
from dssd.log.writer_messages import WriterTopic
from dssd.store.port import Store
from dssd.store.rows import StorageTopicRow


@dataclass(slots=True)
class Recovered:
    """What a start found."""

    topics: list[tuple[StorageTopicState, WriterTopic]] = field(default_factory=list)
    quarantined: list[tuple[Path, str]] = field(default_factory=list)
    short: list[ShortStream] = field(default_factory=list)

    def report(self, path: Path, reason: str) -> None:
        """Note a file that was set aside, found damaged, or rebuilt."""
        self.quarantined.append((path, reason))


async def recover(
    paths: SegmentPaths,
    store: Store,
    storage_topics: Sequence[StorageTopicRow],
    settings: LogSettings,
    wall_us: Callable[[], int],
    ask_reached: AskReached,
) -> Recovered:
    """Make the log appendable again, whatever the last process left behind.

    Raises:
        StoreOlderThanLog: nothing is changed.
        OSError: the directory cannot be read or written.
    """
    recovered = Recovered()
    await asyncio.to_thread(refuse_older_store, paths, await store.last_id())
    clean = await asyncio.to_thread(clean_marker.take, paths)
    rows = await all_segment_rows(store)
    known = {row.storage_topic_id for row in storage_topics}
    ceilings = await all_ceilings(store)
    every = {row_id(row) for own in rows.values() for row in own}
    await asyncio.to_thread(_remove_unpublished, paths, every)
    for storage_topic_id in rows.keys() - known:
        await remove_if_room(paths, store, [row_id(row) for row in rows[storage_topic_id]])
    for storage_topic_id in ceilings.keys() - known:
        await _forget(store, storage_topic_id, ceilings[storage_topic_id])
    reached = ReachedOffsets(ask_reached)
    for topic in storage_topics:
        number = topic.storage_topic_id
        one = TopicRecovery(
            paths,
            store,
            settings,
            wall_us,
            ceilings[number],
            reached,
            recovered.report,
            clean=clean,
        )
        recovered.topics.append(await one.recover(topic, rows[number]))
        recovered.short += one.short
    named = {row_id(row) for own in rows.values() for row in own}
    segments = [one for state, _ in recovered.topics for one in state.segments.values()]
    named.update(segment.id for segment in segments)
    active = {segment.id for segment in segments if segment.runs is not None}
    await asyncio.to_thread(_quarantine_strays, paths, named, active, recovered)
    return recovered


async def _forget(store: Store, storage_topic_id: int, ceilings: Mapping[int, int]) -> None:
    """Delete ceilings; on a full disk the next start does it."""
    with suppress(DiskFull):
        await remove_ceilings(store, storage_topic_id, ceilings)


def _remove_unpublished(paths: SegmentPaths, named: Container[SegmentId]) -> None:
    """Of a crash: remove the copies that no row names, and all marks.

    Raises:
        OSError: the disk refused.
    """
    for mark in sorted(paths.directory.glob(f"*{ADOPTING_SUFFIX}")):
        segment = parse_name(mark)
        if segment is not None and segment not in named:
            paths.segment(segment).unlink(missing_ok=True)
            paths.index(segment).unlink(missing_ok=True)
        mark.unlink()


def _quarantine_strays(
    paths: SegmentPaths, named: set[SegmentId], active: set[SegmentId], recovered: Recovered
) -> None:
    """Quarantine files that no row names; remove caches and temporary files among them."""
    for path in sorted(paths.directory.iterdir()):
        if path.name == QUARANTINE:
            continue
        if path.suffix == TEMPORARY_SUFFIX:
            path.unlink()
            continue
        segment = parse_name(path)
        if segment is not None and segment in (active if path.suffix == MARKS_SUFFIX else named):
            continue
        if segment is not None and path.suffix in CACHE_SUFFIXES:
            path.unlink()
            continue
        reason = "no row names it"
        try:
            path = paths.quarantine(path)
        except OSError as error:
            if not is_full(error):
                raise
            reason += ", and the disk is too full to set it aside"
        recovered.report(path, reason)
