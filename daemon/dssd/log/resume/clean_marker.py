"""The file that says that the log was closed in order.

Invariant: it lies there only while all is as a stop in order left it; whoever opens the log takes
it before anything else is changed. Blocking; this module knows nothing of what was closed.
"""

from dssd.log.segment.file import SegmentPaths, sync_directory, write_durably

CLEAN_MARKER = "CLEAN"


def leave(paths: SegmentPaths) -> None:
    """Say, durably, that the log is closed.

    Raises:
        OSError: the disk refused.
    """
    write_durably(paths.directory / CLEAN_MARKER, [b""])


def take(paths: SegmentPaths) -> bool:
    """Whether the log was closed in order. It no longer counts as such from here on.

    Raises:
        OSError: the directory cannot be read or written.
    """
    paths.directory.mkdir(parents=True, exist_ok=True)
    marker = paths.directory / CLEAN_MARKER
    clean = marker.exists()
    marker.unlink(missing_ok=True)
    sync_directory(paths.directory)
    return clean
