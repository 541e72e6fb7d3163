"""Where a group stands in its streams, by names and numbers that mean the same in another daemon.

Invariant: values in, frozen values out; no wire message leaves this package.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_core.progress import Progress, Ranges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dss_api.v1 import groups_pb2, types_pb2


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """Where a group stands in a stream."""

    topic: str
    ordinal: int
    """Of the storage topic."""
    partition: int
    partitions: int
    """Of the storage topic."""
    progress: Progress
    end: int
    """Of the stream, when it was exported."""


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """Where a group stands in all its streams."""

    group: str
    """NAME@FILTER."""
    streams: tuple[StreamOffsets, ...]


def offsets_from_wire(offsets: "groups_pb2.StreamOffsets") -> StreamOffsets:
    """Offsets as values of our own."""
    return StreamOffsets(
        topic=offsets.topic,
        ordinal=offsets.ordinal,
        partition=offsets.partition,
        partitions=offsets.partitions,
        progress=progress_from_wire(offsets.progress),
        end=offsets.end,
    )


def offsets_to_wire(offsets: StreamOffsets) -> "groups_pb2.StreamOffsets":
    """Offsets as the wire has them."""
    from dss_api.v1 import groups_pb2

    return groups_pb2.StreamOffsets(
        topic=offsets.topic,
        ordinal=offsets.ordinal,
        partition=offsets.partition,
        partitions=offsets.partitions,
        progress=_progress_to_wire(offsets.progress),
        end=offsets.end,
    )


def progress_from_wire(progress: "types_pb2.Progress") -> Progress:
    """Progress as a value of our own."""
    return Progress(progress.floor, ranges_from_wire(progress.ranges))


def ranges_from_wire(ranges: "Iterable[types_pb2.Range]") -> Ranges:
    """Ranges as values of our own."""
    return tuple((each.start, each.end) for each in ranges)


def _progress_to_wire(progress: Progress) -> "types_pb2.Progress":
    from dss_api.v1 import types_pb2

    ranges = (types_pb2.Range(start=start, end=end) for start, end in progress.ranges)
    return types_pb2.Progress(floor=progress.floor, ranges=ranges)
