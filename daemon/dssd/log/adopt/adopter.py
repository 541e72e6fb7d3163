"""Takes frames that were built elsewhere into the log, all at once, as a segment of their own.

::

    copy the frames            beside the segments; nobody waits
    name the copy              as a segment that no row names yet
    make the next file         of the storage topic
    ── appends wait ──
    switch the writer          to that file, so all frames before are durable, and none is in it
    stamp the copy             with the ends of the streams, and a time; sync
    commit                     the segment's row, and what the caller publishes with it
    show it                    to readers; the writer goes on behind it
    ── appends go on ──
    sum and index it           a start that finds no index makes it from the frames
    seal the file that was left

So segments rise in the order of their frames, as ever: the file that was left, the adopted one, the
new one. A crash before the commit leaves a file that is marked, which a start removes.

Invariant: readers see all of the frames or none. What the commit said is told to the writer and to
readers before an append is taken, whoever is cancelled. This module must not know jobs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

from dss_core.errors import DiskFailed, DiskFull, DssError, Overloaded, Stopping
from dssd.log.adopt.copied_frames import (
    Copy,
    Copying,
    Stamp,
    drop_copy,
    name_copy,
    settle,
    stamp_copy,
    summed_runs,
)
from dssd.log.appender import Appender
from dssd.log.disk_errors import retry_reason
from dssd.log.limits import ADOPT_WRITE_BYTES
from dssd.log.port import Adopted, Frames, Publish, Rest
from dssd.log.segment.file import SegmentId, SegmentPaths
from dssd.log.segment.rows import INGESTED
from dssd.log.settings import LogSettings
from dssd.log.topic_state import Segment, StorageTopicState
from dssd.log.upkeep.housekeeper import Housekeeper
from dssd.log.write.writer_thread import WriterThread
from dssd.store.port import PreconditionFailed, Put, Store
from dssd.store.uninterrupted import finished

ADOPT_RESTED_BYTES = 256 << 10
"""How many bytes are copied between two rests: the sync of a producer waits for one such piece."""


NOTHING_WRITTEN = (PreconditionFailed, DiskFull, Overloaded)
"""Errors of a commit that say that no row has changed."""


class Adopter:
    """Runs on the event loop; blocking work goes to threads."""

    def __init__(
        self,
        *,
        paths: SegmentPaths,
        store: Store,
        writer: WriterThread,
        housekeeper: Housekeeper,
        appender: Appender,
        settings: LogSettings,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._paths = paths
        self._store = store
        self._writer = writer
        self._housekeeper = housekeeper
        self._appender = appender
        self._settings = settings
        self._failed = failed
        self._numbers = count()

    async def adopt(
        self,
        state: StorageTopicState,
        frames: Frames,
        topic_epoch: int,
        publish: Publish,
        rest: Rest | None,
    ) -> Adopted:
        """The port's adopt, for a storage topic that exists."""
        # A cancelled caller must not leave frames that are committed but not shown.
        return await finished(
            self._adopt(state, partial(self._copied, frames, rest), topic_epoch, publish),
            name=f"adopt frames of {state.storage_topic_id}",
        )

    async def _adopt(
        self,
        state: StorageTopicState,
        copy: Callable[[], Awaitable[Copy]],
        topic_epoch: int,
        publish: Publish,
    ) -> Adopted:
        adoption = _Adoption(state, topic_epoch, publish, await copy())
        try:
            if adoption.copy.frames:
                adopted = await self._housekeeper.in_turn(partial(self._run, adoption))
            else:
                adopted = await self._publish_nothing(publish)
        except Stopping:
            # As after a cancellation, a thread may still work on the copy, so its descriptor must
            # stay open. The process ends, and the next start removes the copy.
            raise
        except Exception:
            await self._let_go(adoption)
            raise
        await self._let_go(adoption)
        return adopted

    async def _let_go(self, adoption: "_Adoption") -> None:
        """Close the copy, and remove it unless it may be published."""
        adoption.copy.close()
        if adoption.may_be_published:
            return
        drop = partial(drop_copy, self._paths, adoption.copy, adoption.segment)
        await asyncio.to_thread(drop)

    async def _copied(self, frames: Frames, rest: Rest | None) -> Copy:
        path = self._paths.copy(next(self._numbers))
        try:
            return await _copied_to(path, frames, rest)
        except OSError as error:
            reason = retry_reason(error)
            if reason is None:
                reason = DiskFailed(reason=f"{error.strerror} while copying frames")
                self._failed(reason)
            raise reason from error

    async def _publish_nothing(self, publish: Publish) -> Adopted:
        adopted = Adopted({}, 0, 0, 0, 0)
        writes, preconditions = publish(adopted)
        await self._store.commit(writes, preconditions)
        return adopted

    # A job of the housekeeper

    async def _run(self, adoption: "_Adoption") -> Adopted:
        state = adoption.state
        adoption.segment = SegmentId(state.storage_topic_id, await self._store.next_id())
        await asyncio.to_thread(name_copy, self._paths, adoption.copy, adoption.segment)
        made = await self._housekeeper.make_file(state)
        async with state.adopting:
            self._appender.hold(state)
            try:
                left = await self._housekeeper.switch(state, made)
                adopted, failure = await self._stored_or_refused(adoption, adoption.segment)
            finally:
                self._appender.release(state)
        if adopted is not None:
            await self._indexed(adoption, adopted.append_time_us)
        await self._housekeeper.settle_left(state, left)
        if failure is not None:
            raise failure
        assert adopted is not None
        return adopted

    async def _indexed(self, adoption: "_Adoption", time_us: int) -> None:
        """Do the work that no caller waits for, after the frames are shown."""
        own, bytes_max = adoption.own, self._settings.run_bytes_max
        assert own is not None
        own.runs = await asyncio.to_thread(
            summed_runs, adoption.copy, adoption.bases, time_us, bytes_max
        )
        await self._housekeeper.index_adopted(own)
        await asyncio.to_thread(settle, self._paths, own.id)

    async def _stored_or_refused(
        self, adoption: "_Adoption", segment: SegmentId
    ) -> tuple[Adopted | None, Exception | None]:
        """What `_stored` gives, or what it raised: the file that was left is sealed either way."""
        try:
            return await self._stored(adoption, segment), None
        except (DssError, OSError) as refused:
            return None, refused

    async def _stored(self, adoption: "_Adoption", segment: SegmentId) -> Adopted:
        """Give the frames their offsets; store and show them."""
        ends, time_us = await self._writer.stand(segment.storage_topic_id)
        stamp = Stamp(segment, ends, time_us, adoption.topic_epoch)
        copy = adoption.copy
        stamped = await asyncio.to_thread(stamp_copy, copy, stamp)
        own = Segment(
            segment, time_us // 1_000, stamped.runs, None, copy.size, copy.size, copy.size
        )
        own.frames = len(copy.frames)
        adoption.own, adoption.bases = own, stamped.bases
        adopted = Adopted(stamped.ranges, time_us, len(copy.frames), copy.records, copy.size)
        await self._commit(adoption, own, adopted)
        moved = {partition: end for partition, (_, end) in stamped.ranges.items()}
        await self._writer.advance(segment.storage_topic_id, moved)
        self._appender.show_adopted(adoption.state, own)
        return adopted

    async def _commit(self, adoption: "_Adoption", own: Segment, adopted: Adopted) -> None:
        writes, preconditions = adoption.publish(adopted)
        adoption.may_be_published = True
        try:
            await self._store.commit([Put(own.row(INGESTED, own.size)), *writes], preconditions)
        except NOTHING_WRITTEN:
            adoption.may_be_published = False
            raise


async def _copied_to(path: Path, frames: Frames, rest: Rest | None) -> Copy:
    """Copy frames, with a rest behind each piece where there is one.

    Raises:
        OSError: the disk refused; no file remains.
        Exception: what ``frames`` raised.
    """
    piece_bytes = ADOPT_WRITE_BYTES if rest is None else ADOPT_RESTED_BYTES
    copying = await asyncio.to_thread(Copying, path, frames, piece_bytes)
    try:
        while written := await asyncio.to_thread(copying.write_piece):
            if rest is not None:
                await rest(written)
    except Exception:
        # Not after a cancellation: a thread may still work on the copy. The next start removes it.
        await asyncio.to_thread(copying.abandon)
        raise
    return copying.copy


@dataclass(slots=True, eq=False)
class _Adoption:
    """One adoption under way."""

    state: StorageTopicState
    topic_epoch: int
    publish: Publish
    copy: Copy
    segment: SegmentId | None = None
    own: Segment | None = None
    """The segment, as readers know it."""
    bases: Sequence[int] = ()
    """The offsets of its frames."""
    may_be_published: bool = False
    """Whether the store may have its row."""
