"""The state of the barrier between storage topics, in a group that keeps the order of keys.

Part of the state of a leader: `barrier` and `going_back` change it. Shapes only: no rule is here.
"""

from enum import Enum

from dss_core.ids import StreamId


class BackPhase(Enum):
    """The phases of a stream that is to be read again: `going_back`."""

    CLOSING = "closing"
    """Its descendants come back from their holders."""
    FENCING = "fencing"
    """Nobody holds a descendant, and that is being made durable."""
    MOVING = "moving"
    """Entries that have to go back are being appended to its queues."""
    SAVING = "saving"
    """Their removal from the queues of the descendants is being made durable."""


class WayBack:
    """The way back of one stream."""

    __slots__ = ("grant_epoch", "lanes", "phase", "stream", "waits_for")

    def __init__(self, stream: StreamId, lanes: tuple[StreamId, ...]) -> None:
        self.stream = stream
        self.lanes = lanes
        """Its descendants."""
        self.phase = BackPhase.CLOSING
        self.waits_for = [*lanes]
        """The descendants that are not closed yet."""
        self.grant_epoch = 0
        """The grant epoch of the appends to its queues."""


class Barrier:
    """The barrier of one leader."""

    __slots__ = ("back", "children", "going_back", "rehoming", "turned")

    def __init__(self) -> None:
        self.children: dict[StreamId, list[StreamId]] = {}
        """By parent: the streams that wait for it."""
        self.turned: list[StreamId] = []
        """Streams that are durably finished by now, or no longer, or are to be read again: their
        children are to be judged."""
        self.rehoming: set[StreamId] = set()
        self.going_back: set[StreamId] = set()
        """Streams that were read to their ends, and are to be read again."""
        self.back: WayBack | None = None
        """The way back of the stream whose turn it is."""
