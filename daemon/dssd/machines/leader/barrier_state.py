"""What a group that keeps the order of keys has between storage topics.

Part of the state of a leader: `barrier` and `going_back` change it. Shapes only: no rule is here.
"""

from enum import Enum

from dss_core.ids import StreamId


class BackPhase(Enum):
    """How far a stream has come that is to be read again: `going_back`."""

    CLOSING = "closing"
    """Its descendants come back from their holders."""
    FENCING = "fencing"
    """Nobody holds one, and that is being made durable."""
    MOVING = "moving"
    """What has to go back is appended to its queues."""
    SAVING = "saving"
    """That it is gone from theirs is being made durable."""


class WayBack:
    """The way back of one stream."""

    __slots__ = ("grant_epoch", "lanes", "phase", "stream", "waits_for")

    def __init__(self, stream: StreamId, lanes: tuple[StreamId, ...]) -> None:
        self.stream = stream
        self.lanes = lanes
        """Its descendants."""
        self.phase = BackPhase.CLOSING
        self.waits_for = [*lanes]
        """Of those, what is not closed yet."""
        self.grant_epoch = 0
        """Under which its queues are appended to."""


class Barrier:
    """Of one leader."""

    __slots__ = ("back", "children", "going_back", "rehoming", "turned")

    def __init__(self) -> None:
        self.children: dict[StreamId, list[StreamId]] = {}
        """The streams that wait for a stream."""
        self.turned: list[StreamId] = []
        """Those that are finished by now, durably, or are it no more, or are to be read again:
        their children are to be judged."""
        self.rehoming: set[StreamId] = set()
        self.going_back: set[StreamId] = set()
        """Those that were read to their ends, and are to be read again."""
        self.back: WayBack | None = None
        """Of the one of them whose turn it is."""
