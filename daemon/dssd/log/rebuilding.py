"""Making the index of a sealed segment anew, from its frames. Blocking; runs on a thread.

Invariant: offsets that an index had given out stay given out, readable or not.
"""

from dssd.log import recovery
from dssd.log.index import StreamRuns
from dssd.log.index_file import BadIndex, Summary
from dssd.log.producers import Producers
from dssd.log.recovery import TopicScan
from dssd.log.segment_file import SegmentId, SegmentPaths
from dssd.log.settings import LogSettings


def rebuild_index(
    paths: SegmentPaths, segment_id: SegmentId, watermark: int, topic: TopicScan, run_bytes_max: int
) -> Summary:
    """Make the index of a sealed segment anew from its frames below the watermark.

    Raises:
        BadIndex: there is no segment file either.
    """
    runs, frames = _runs_below(paths, segment_id, watermark, topic, run_bytes_max)
    recovery.write_index(paths, segment_id, watermark, runs, frames)
    return recovery.load_summary(paths, segment_id)


def rebuild_known_index(
    paths: SegmentPaths, segment_id: SegmentId, known: Summary, settings: LogSettings
) -> Summary:
    """The same while the log is open: what the summary said of each stream stays said.

    Raises:
        BadIndex: there is no segment file either.
    """
    ends = [0] * (max(known.streams, default=-1) + 1)
    for partition, entry in known.streams.items():
        ends[partition] = entry.extent.start
    topic_id = segment_id.storage_topic_id
    topic = TopicScan(topic_id, ends, Producers(topic_id))
    size = known.segment_bytes
    runs, frames = _runs_below(paths, segment_id, size, topic, settings.run_bytes_max)
    for partition, entry in known.streams.items():
        extent = entry.extent
        runs.setdefault(partition, StreamRuns()).claim(extent.start, extent.end)
    recovery.write_index(paths, segment_id, size, runs, frames)
    return recovery.load_summary(paths, segment_id)


def _runs_below(
    paths: SegmentPaths, segment_id: SegmentId, watermark: int, topic: TopicScan, run_bytes_max: int
) -> tuple[dict[int, StreamRuns], int]:
    content = recovery.scan_segment(
        paths, segment_id, watermark, topic, run_bytes_max, stop_at=watermark
    )
    if content is None:
        raise BadIndex("the segment is missing too")
    recovery.claim_lost(content, watermark, topic, content.kept)
    return content.kept, content.frames_kept
