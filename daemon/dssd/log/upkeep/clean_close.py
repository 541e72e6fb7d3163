"""Closes a log cleanly, so that the next start does not read its frames.

Invariant: the rows describe durable bytes only, and the clean marker is written last. On a full
disk some of this is left out, and the next start reads more.
"""

import asyncio
import logging
from collections.abc import Iterable

from dss_core.errors import DiskFailed, DiskFull, Overloaded
from dssd.log.disk_errors import retry_reason
from dssd.log.resume import clean_marker, marks, snapshots
from dssd.log.segment.file import SegmentPaths
from dssd.log.topic_state import Segment, StorageTopicState
from dssd.log.write.delayed_sync import rows_of
from dssd.log.write.writer_thread import WriterThread
from dssd.log.writer_messages import Closed
from dssd.store.port import Put, Store

_LOG = logging.getLogger(__name__)


async def close_log(
    paths: SegmentPaths, store: Store, writer: WriterThread, states: Iterable[StorageTopicState]
) -> None:
    """Stop the writer, and store marks, snapshot and watermark of each topic's last file.

    Raises:
        DiskFailed: the disk refused; all that was acknowledged is durable.
    """
    left = await writer.stop()
    rows: list[Put] = []
    try:
        for state in states:
            closed = left.get(state.storage_topic_id)
            segment = state.last
            if closed is None or segment is None:
                continue
            await asyncio.to_thread(_save_state, paths, segment, closed)
            rows.append(Put(segment.row("active", closed.marked.size)))
            rows += rows_of(state.storage_topic_id, state.ceilings.lowered(closed.marked.ends))
        if rows:
            await store.commit(rows)
        await asyncio.to_thread(clean_marker.leave, paths)
    except (DiskFull, Overloaded, OSError) as error:
        reason = retry_reason(error)
        if reason is None:
            raise DiskFailed(reason=f"{error} while closing the log") from error
        _LOG.warning(
            "the next start reads more of the log's newest files: %s",
            reason,
            extra={"event": "log.not-marked"},
        )


def _save_state(paths: SegmentPaths, segment: Segment, closed: Closed) -> None:
    assert segment.runs is not None
    marks.add(paths, segment.id, segment.marks, segment.runs, closed.marked, durably=True)
    snapshots.store(paths, segment.id, closed.snapshot)
