"""Finds the entries in frames of a queue that a choice names: the part that runs in a thread.

Invariant: no entry becomes a value of its own, so a million of them are searched in seconds, and
the loop has only to join the results of the pieces.
"""

from collections.abc import Callable

from dss_core.decode import decode
from dss_core.lane import LaneEntry
from dss_core.progress import Ranges, runs_of
from dssd.queues.entries import lane_of
from dssd.queues.looking import Choice, Lane

Takes = Callable[[LaneEntry], bool]
"""Whether the choice names an entry, by the entry's own fields."""

Keyed = list[tuple[int, bytes | None]]
"""Offsets and keys."""


def meant_in(choice: Choice, takes: Takes, lane: Lane, frames: bytes, mask: Ranges) -> Ranges:
    """The offsets of the entries that the choice names."""
    return runs_of([offset for offset, _ in _meant(choice, takes, lane, frames, mask)])


def keyed_in(choice: Choice, lane: Lane, frames: bytes, mask: Ranges) -> Keyed:
    """The same with their keys."""
    return _meant(choice, lambda _: True, lane, frames, mask)


def keys_of_all_in(lane: Lane, frames: bytes, mask: Ranges) -> Keyed:
    """The keys of all entries that are not done."""
    batch = decode(frames, mask, checksums=False)
    is_done = lane.queue.progress.is_acked
    rows = zip(batch.offsets, batch.keys, strict=True)
    return [(offset, key) for offset, key in rows if not is_done(offset)]


def _meant(choice: Choice, takes: Takes, lane: Lane, frames: bytes, mask: Ranges) -> Keyed:
    batch = decode(frames, mask, checksums=False)
    is_done, topic = lane.queue.progress.is_acked, lane.topic
    found: Keyed = []
    columns = batch.offsets, batch.keys, batch.headers, batch.append_times_us
    for offset, key, headers, entered_at_us in zip(*columns, strict=True):
        if not is_done(offset):
            entry = lane_of(headers)
            if choice.means(topic, key, entry, entered_at_us) and takes(entry):
                found.append((offset, key))
    return found
