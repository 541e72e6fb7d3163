"""Which frames still exist after a start has found damage.

A snapshot of producers may know frames that a start does not read. Such frames in damaged segments
are looked up in the index of the readable frames; other segments are trusted.

Invariant: a frame that retention removed does not count as gone, because it was stored. Blocking if
an index lies on disk. This module must not know producers.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from dssd.log.recovery import judge_segment
from dssd.log.segment.file import SegmentPaths
from dssd.log.segment.index_file import BadIndex
from dssd.log.segment.run_index import Runs
from dssd.log.topic_state import Segment, StorageTopicState


def frames_there(
    paths: SegmentPaths, state: StorageTopicState, damaged: Sequence[Segment]
) -> Callable[[int, int], bool]:
    """A function that tells whether the frame at a partition and an offset is still there."""
    runs = {segment.id: _runs_of(paths, segment) for segment in damaged}

    def is_there(partition: int, offset: int) -> bool:
        stream = state.streams[partition]
        if offset < stream.start:
            return True
        segment = stream.segment_at(partition, offset)
        extent = None if segment is None else segment.extent(partition)
        if segment is None or extent is None or offset < extent.start:
            return False
        readable = runs.get(segment.id)
        return readable is None or (partition in readable and readable[partition].holds(offset))

    return is_there


def _runs_of(paths: SegmentPaths, segment: Segment) -> Runs:
    """The readable runs of a segment; none if its index cannot be read."""
    if segment.runs is not None:
        return segment.runs
    assert segment.summary is not None
    with suppress(BadIndex):
        return judge_segment.load_runs(paths, segment.id, segment.summary)
    return {}
