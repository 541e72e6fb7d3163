"""Rebuilds the damaged index of a sealed segment from its frames.

Invariant: the offset ranges of the old index are kept, readable or not. An index is rebuilt once,
however many readers met the damage; if the disk is too full for it, it stays in memory.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from dss_core.errors import DiskFailed
from dssd.log.disk_errors import retry_reason, unreadable
from dssd.log.read.file_reader import FileReader
from dssd.log.recovery import judge_segment
from dssd.log.recovery.segment_content import TopicScan, scan_segment
from dssd.log.segment.file import SegmentId, SegmentPaths
from dssd.log.segment.index_file import BadIndex, Summary
from dssd.log.segment.run_index import Runs, StreamRuns
from dssd.log.sequences import Producers
from dssd.log.settings import LogSettings
from dssd.log.topic_state import Segment


class IndexRebuilder:
    """Runs on the event loop; blocking work goes to threads.

    ``quarantined`` receives each rebuilt file and the reason.
    """

    def __init__(
        self,
        *,
        paths: SegmentPaths,
        files: FileReader,
        settings: LogSettings,
        quarantined: list[tuple[Path, str]],
    ) -> None:
        self._paths = paths
        self._files = files
        self._settings = settings
        self._quarantined = quarantined
        self.index_changed: Callable[[SegmentId], None] = lambda _: None

    async def rebuild(self, segment: Segment, known: Summary, *, on_disk: bool) -> None:
        """Replace a damaged index, whose summary is ``known``, unless that was done already.

        It stays in memory if ``on_disk`` is false or the disk is full.

        Raises:
            BadIndex: the segment is missing too.
            DiskFailed: the disk refused.
            LogUnreadable: the segment cannot be read now.
        """
        async with segment.rebuilding:
            if segment.removed:
                raise BadIndex("the segment was removed")
            if segment.runs is not None or segment.summary is not known:
                return
            try:
                runs, frames = await asyncio.to_thread(
                    rebuilt_runs, self._paths, segment.id, known, self._settings
                )
            except OSError as error:
                raise unreadable(self._paths.segment(segment.id), error) from error
            segment.frames = frames
            summary = await self._written_index(segment, runs) if on_disk else None
            if summary is None:
                segment.runs = runs
            else:
                segment.summary = summary
            self.is_new(segment)
            self._quarantined.append((self._paths.index(segment.id), "rebuilt: it was damaged"))

    async def _written_index(self, segment: Segment, runs: Runs) -> Summary | None:
        assert segment.summary is not None
        size = segment.summary.segment_bytes
        try:
            await asyncio.to_thread(
                judge_segment.write_index, self._paths, segment.id, size, runs, segment.frames
            )
            return await asyncio.to_thread(judge_segment.load_summary, self._paths, segment.id)
        except BadIndex:
            return None
        except OSError as error:
            if retry_reason(error) is None:
                raise DiskFailed(reason=f"{error.strerror} while writing an index") from error
            return None

    def is_new(self, segment: Segment) -> None:
        """Make readers drop what they hold of the old index of a segment."""
        segment.index_version += 1
        self._files.drop(self._paths.index(segment.id))
        self.index_changed(segment.id)


def rebuilt_runs(
    paths: SegmentPaths, segment_id: SegmentId, known: Summary, settings: LogSettings
) -> tuple[Runs, int]:
    """The runs of a sealed segment, and how many frames they hold, read from its frames. Blocking.

    The extents in the summary are kept, even for streams whose frames are all lost.

    Raises:
        BadIndex: there is no segment file either.
    """
    ends = [0] * (max(known.streams, default=-1) + 1)
    for partition, entry in known.streams.items():
        ends[partition] = entry.extent.start
    topic_id, size = segment_id.storage_topic_id, known.segment_bytes
    topic = TopicScan(topic_id, ends, Producers(topic_id))
    content = scan_segment(paths, segment_id, size, topic, settings.run_bytes_max, stop_at=size)
    if content is None:
        raise BadIndex("the segment is missing too")
    for partition, entry in known.streams.items():
        content.kept.setdefault(partition, StreamRuns()).extent = entry.extent
    return content.kept, content.frames_kept
