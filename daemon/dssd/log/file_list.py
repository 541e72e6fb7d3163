"""Lists the log's files with their sizes, and the ends of its streams, for a backup.

Invariant: the listed records were acknowledged, or could have been, and no file ever changes below
its listed size. Memory only; this module copies nothing.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from dssd.log.segment.file import SegmentId, SegmentPaths
from dssd.log.topic_state import StorageTopicState
from dssd.log.upkeep.removal_gate import RemovalGate


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The state of the log at one moment."""

    sizes: Mapping[SegmentId, int]
    """Where the last frame of each segment ends in its file."""
    ends: Mapping[int, tuple[int, ...]]
    """By storage topic: the end offset of each stream."""


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The files of one log. Used on the event loop."""

    paths: SegmentPaths
    _topics: Mapping[int, StorageTopicState]
    _gate: RemovalGate

    def held(self) -> AbstractAsyncContextManager[None]:
        """No file is removed inside this block."""
        return self._gate.held()

    def ends(self) -> LogEnds:
        """The present state."""
        return LogEnds(
            {
                one.id: one.size
                for topic in self._topics.values()
                for one in topic.segments.values()
            },
            {
                number: tuple(stream.end for stream in topic.streams)
                for number, topic in self._topics.items()
            },
        )
