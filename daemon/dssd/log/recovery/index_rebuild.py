"""Making the index of a sealed segment anew, from its frames, when it turns out to be damaged.

Invariant: offsets that an index had given out stay given out, readable or not. An index is made
anew once, however many readers met the damage; where the disk has no room for it, it stays in
memory.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from dss_core.errors import DiskFailed
from dssd.log.disk_errors import retry_reason
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

    ``quarantined`` takes in what was made anew, and why.
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
        """Replace an index that turned out to be damaged, unless that was done already.

        It stays in memory if the disk has no room for it, or on demand.

        Raises:
            BadIndex: the segment is missing too.
            DiskFailed: the disk refused.
        """
        async with segment.rebuilding:
            if segment.removed:
                raise BadIndex("the segment was removed")
            if segment.runs is not None or segment.summary is not known:
                return
            runs, frames = await asyncio.to_thread(
                rebuilt_runs, self._paths, segment.id, known, self._settings
            )
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
        """What was read of the old index must not be taken for the new one's."""
        segment.index_version += 1
        self._files.drop(self._paths.index(segment.id))
        self.index_changed(segment.id)


def rebuilt_runs(
    paths: SegmentPaths, segment_id: SegmentId, known: Summary, settings: LogSettings
) -> tuple[Runs, int]:
    """The runs of a sealed segment, and how many frames they hold, read from its frames. Blocking.

    What the summary said of each stream stays said, and is not lost where all its frames are.

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
