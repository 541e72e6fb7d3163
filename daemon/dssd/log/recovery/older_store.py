"""Detects a store that is older than the log's files.

A file is named by a number of the store, which is durable before the file is created. So a file
with a number that the store has not assigned yet was created under a newer store: this one came
from a backup, or its disk lost synced data. Such a store would assign the numbers of those files
again, and their offsets to other records.

Invariant: a start changes nothing if there is a file that its store cannot know.
"""

from pathlib import Path

from dss_core.errors import StoreOlderThanLog
from dssd.log.segment.file import SEGMENT_SUFFIX, SegmentPaths, parse_name


def files_unknown_at(paths: SegmentPaths, last_id: int) -> list[Path]:
    """Segment files with a number above the last one that the store gave; oldest first."""
    named = [(parse_name(path), path) for path in paths.directory.glob(f"*{SEGMENT_SUFFIX}")]
    newer = [(found.segment_id, path) for found, path in named if found]
    return [path for number, path in sorted(newer) if number > last_id]


def refuse_older_store(paths: SegmentPaths, last_id: int) -> None:
    """Make sure that the store is as new as the files.

    Raises:
        StoreOlderThanLog: it is not; nothing is changed.
    """
    unknown = files_unknown_at(paths, last_id)
    if unknown:
        raise StoreOlderThanLog(files=len(unknown), first=unknown[0].name)
