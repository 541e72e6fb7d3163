"""The clean marker: a file that says that the log was closed cleanly.

Invariant: it exists only while the log is as a clean stop left it; a start removes it before it
changes anything else. Blocking; this module must not know what was closed.
"""

from dssd.log.segment.file import SegmentPaths, sync_directory, write_durably

CLEAN_MARKER = "CLEAN"


def leave(paths: SegmentPaths) -> None:
    """Create the marker, durably.

    Raises:
        OSError: the disk refused.
    """
    write_durably(paths.directory / CLEAN_MARKER, [b""])


def take(paths: SegmentPaths) -> bool:
    """Remove the marker, durably; returns whether it was there.

    Raises:
        OSError: the directory cannot be read or written.
    """
    paths.directory.mkdir(parents=True, exist_ok=True)
    marker = paths.directory / CLEAN_MARKER
    clean = marker.exists()
    marker.unlink(missing_ok=True)
    sync_directory(paths.directory)
    return clean
