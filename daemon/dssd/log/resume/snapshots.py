"""Snapshots of what producers had sent, each beside the segment that continues from there.

A start loads the newest snapshot that is whole, and learns the rest from frames and marks. Only a
snapshot knows who sent the frames that retention removed.

Invariant: a snapshot is whole and durable, or not there. Blocking; this module must not know when
one is due, nor how a repeat is answered (`sequences`).
"""

import errno
from collections.abc import Callable, Iterable
from pathlib import Path

from dssd.log.segment.file import SegmentId, SegmentPaths, write_durably
from dssd.log.sequences import BadSnapshot, Producers, SnapshotPosition


def store(paths: SegmentPaths, segment: SegmentId, snapshot: bytes) -> None:
    """Store an encoded snapshot beside a segment, durably.

    Raises:
        OSError: the disk refused; the one before is as it was.
    """
    write_durably(paths.producers(segment), [snapshot])


def hand_down(paths: SegmentPaths, old: SegmentId, new: SegmentId) -> None:
    """Copy the snapshot of a segment that will be removed beside its successor.

    Raises:
        OSError: the disk refused.
    """
    try:
        snapshot = paths.producers(old).read_bytes()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EIO):
            raise
        return
    store(paths, new, snapshot)


def newest(
    paths: SegmentPaths, segments: Iterable[SegmentId], report: Callable[[Path, str], None]
) -> tuple[Producers, SnapshotPosition] | None:
    """The newest whole snapshot of the segments, which are given in order; None if there is none.

    Raises:
        OSError: the disk failed in a way that does not mean that the snapshot is lost.
    """
    for segment in reversed(list(segments)):
        path = paths.producers(segment)
        try:
            return Producers.decode(path.read_bytes())
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            report(path, "rebuilt: unreadable")
        except BadSnapshot as error:
            report(path, f"rebuilt: {error}")
    return None
