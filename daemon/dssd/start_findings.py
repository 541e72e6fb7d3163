"""Reports the faults that a start found: damaged or unknown files, streams that lack records.

Invariant: each finding is an event, so operators learn of a loss without reading the daemon's
stderr. This module must not repair anything.
"""

from collections.abc import Callable
from pathlib import Path

from dss_core.ids import StreamId
from dssd.events.kinds import FILE_QUARANTINED, STREAM_SHORT
from dssd.events.model import Event
from dssd.log.segment_log import SegmentLog
from dssd.topics.catalogue import Catalogue


def tell_start_findings(
    note: Callable[[Event], None], root: Path, log: SegmentLog, catalogue: Catalogue
) -> None:
    """Note an event for each; names of files are given below ``root``."""
    for path, reason in log.quarantined():
        sentence = f"At the start: {reason.rstrip('.')}."
        note(Event(FILE_QUARANTINED, str(path.relative_to(root)), sentence))
    for short in log.short_streams():
        stream = StreamId(short.storage_topic_id, short.partition)
        sentence = (
            f"The log ends at {short.end}, and groups had read up to {short.reached}: what was "
            f"between is lost, and new records begin at {short.reached}."
        )
        note(Event(STREAM_SHORT, str(catalogue.name_of(stream)), sentence))
