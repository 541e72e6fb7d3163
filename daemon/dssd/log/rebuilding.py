"""Making the index of a sealed segment anew, from its frames. Blocking; runs on a thread.

Invariant: offsets that an index had given out stay given out, readable or not.
"""

from dssd.log.content import TopicScan, scan_segment
from dssd.log.index import Runs, StreamRuns
from dssd.log.index_file import BadIndex, Summary
from dssd.log.producers import Producers
from dssd.log.segment_file import SegmentId, SegmentPaths
from dssd.log.settings import LogSettings


def rebuilt_runs(
    paths: SegmentPaths, segment_id: SegmentId, known: Summary, settings: LogSettings
) -> tuple[Runs, int]:
    """The runs of a sealed segment, and how many frames they hold, read from its frames.

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
