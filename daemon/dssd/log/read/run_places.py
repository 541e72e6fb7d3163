"""Locates the records of a stream in segment files, for local readers of the files.

An answer stays valid: the bytes of a visible run never change and never move within their file.
Frames are only ever appended behind them; a start copies what it cannot trust to another file and
leaves the old bytes; a run that grows keeps the bytes that it had. A file may be removed by
retention or moved to quarantine; then it cannot be opened by its name any more. So a reader that
finds bytes with the run's checksum at the place has the run's records, whatever happened in
between.

Invariant: the runs of an answer follow each other without a missing offset, and cover the first
offset that was asked for. Damaged, lost or missing records end the answer.
"""

from dssd.log.port import FileRuns
from dssd.log.read.run_finder import RunFinder
from dssd.log.segment.file import SegmentPaths
from dssd.log.segment.index_file import BadIndex
from dssd.log.segment.run_index import Run
from dssd.log.topic_state import Segment, StorageTopicState


class RunPlaces:
    """Looks for runs; reads indexes, never frames."""

    def __init__(self, paths: SegmentPaths, finder: RunFinder) -> None:
        self._paths = paths
        self._finder = finder

    async def of(
        self, topic: StorageTopicState, partition: int, start: int, end: int, runs_max: int
    ) -> list[FileRuns]:
        """The port's run_places, for a storage topic that exists."""
        stream = topic.streams[partition]
        found: list[FileRuns] = []
        at = start
        while stream.start <= at < min(end, stream.end) and runs_max > 0:
            segment = stream.segment_at(partition, at)
            if segment is None:
                break
            runs = await self._from(topic, segment, partition, at)
            followed = _following(runs[:runs_max], at, end)
            if not followed:
                break
            found.append(FileRuns(self._paths.segment(segment.id), followed))
            runs_max -= len(followed)
            at = followed[-1].end
        return found

    async def _from(
        self, topic: StorageTopicState, segment: Segment, partition: int, at: int
    ) -> list[Run]:
        """Runs that end above the offset; none where the index or the segment is gone."""
        try:
            runs = await self._finder.from_offset(segment, partition, at)
        except BadIndex:
            return []
        return runs if segment.id.segment_id in topic.segments else []


def _following(runs: list[Run], at: int, end: int) -> tuple[Run, ...]:
    """The runs that continue from an offset without a gap, up to the one that holds the last."""
    taken: list[Run] = []
    for run in runs:
        if run.base > at or at >= end:
            break
        taken.append(run)
        at = run.end
    return tuple(taken)
