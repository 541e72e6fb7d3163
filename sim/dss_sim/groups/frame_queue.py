"""The frames of one producer for one stream: waiting, in flight, settled.

A frame gets its sequence when it is sent for the first time, and keeps it until it is settled, so
that sending it again is harmless. After a refusal nothing new is sent until everything in flight
has come back; the frames behind the refused one followed a gap, and are numbered anew. If the
connection is lost before that, all of them are sent again: a restarted daemon accepts the next
frame, whatever its sequence. Once the topic has moved the queue is held: nothing new is sent, and
frames that are certainly not stored are kept to be routed anew.

Invariant: at most `PRODUCER_WINDOW_SEQUENCES` are in flight, so the log still knows the answer of
each. The client's own queue keeps the same rules and can replace this one; tests do that.
"""

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from dss_core.errors import DssError, SequenceGap, StorageTopicSealed
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES
from dss_sim.groups.history import Key


@dataclass(eq=False)
class PendingFrame:
    """Records that travel together. The client's own queue has more fields."""

    records: int
    content: int = 0
    """A number above those of all older frames of its producer."""
    sequence: int = 0
    keys: tuple[Key, ...] = ()
    """The keys of its records."""


class AnyFrameQueue(Protocol):
    """What a producer needs from its queues."""

    waiting: deque[PendingFrame]
    """Frames to be sent, in order."""
    in_flight: dict[int, PendingFrame]
    """Frames in flight, by sequence, in order."""

    def take(self) -> PendingFrame | None:
        """The next frame to send, if one may be sent; a new one has its sequence now."""

    def acked(self, sequence: int) -> PendingFrame | None:
        """The frame of an ack; None for an answer that came twice."""

    def refused(self, sequence: int, error: DssError) -> PendingFrame | None:
        """The frame that this refusal fails; None if it will be sent again instead."""

    def lost(self) -> None:
        """The connection is gone: everything in flight is to be sent again first."""

    def unsettled(self) -> list[PendingFrame]:
        """Every frame that has no outcome yet, in order."""

    def hold(self) -> None:
        """The topic has moved: from now on every frame in flight is answered for itself."""

    def come_back(self) -> None:
        """Let all frames wait, in order; none is sent any more from here."""

    def clear(self) -> None:
        """Forget every frame."""


class FrameQueue:
    """The world's own queue."""

    def __init__(self) -> None:
        self.waiting: deque[PendingFrame] = deque()
        self.in_flight: dict[int, PendingFrame] = {}
        """Frames in flight, by sequence, in order."""
        self._again: deque[PendingFrame] = deque()
        self._behind: list[PendingFrame] = []
        """Frames that came back because of a gap that a refusal left."""
        self._unstored: list[PendingFrame] = []
        """Frames that came back since the topic has moved."""
        self._refused_at: int | None = None
        self._is_held = False
        self._acked_to = 0
        self._next = 0

    def take(self) -> PendingFrame | None:
        """As `AnyFrameQueue` says."""
        if self._again:
            return self._again.popleft()
        full = self._is_held or len(self.in_flight) >= PRODUCER_WINDOW_SEQUENCES
        if full or not self.waiting or self._refused_at is not None:
            return None
        frame = self.waiting.popleft()
        frame.sequence = self._next
        self._next += 1
        self.in_flight[frame.sequence] = frame
        return frame

    def acked(self, sequence: int) -> PendingFrame | None:
        """As `AnyFrameQueue` says."""
        frame = self.in_flight.pop(sequence, None)
        if frame is not None:
            self._acked_to = sequence + 1
            self._number_anew()
        return frame

    def refused(self, sequence: int, error: DssError) -> PendingFrame | None:
        """As `AnyFrameQueue` says."""
        frame = self.in_flight.pop(sequence, None)
        if frame is None:
            return None
        if self._is_held:
            if isinstance(error, SequenceGap):
                self._behind.append(frame)
            elif isinstance(error, StorageTopicSealed):
                self._unstored.append(frame)
            else:
                return frame
            return None
        if self._refused_at is not None and isinstance(error, SequenceGap):
            self._behind.append(frame)
            frame = None
        elif self._refused_at is None and error.definite:
            self._refused_at = sequence
        self._number_anew()
        return frame

    def lost(self) -> None:
        """As `AnyFrameQueue` says."""
        if self.in_flight:
            again = sorted([*self._behind, *self.in_flight.values()], key=_sequence)
            self.in_flight = {frame.sequence: frame for frame in again}
            self._behind.clear()
        self._again = deque(self.in_flight.values())

    def unsettled(self) -> list[PendingFrame]:
        """As `AnyFrameQueue` says."""
        return [*self._sent(), *self.waiting]

    def _sent(self) -> list[PendingFrame]:
        sent = (*self._unstored, *self._behind, *self.in_flight.values())
        return sorted(sent, key=_sequence)

    def hold(self) -> None:
        """As `AnyFrameQueue` says."""
        self._is_held = True
        self._refused_at = None

    def come_back(self) -> None:
        """As `AnyFrameQueue` says."""
        self.waiting.extendleft(reversed(self._sent()))
        for frames in (self.in_flight, self._again, self._behind, self._unstored):
            frames.clear()

    def clear(self) -> None:
        """As `AnyFrameQueue` says."""
        for frames in (self.waiting, self.in_flight, self._again, self._behind, self._unstored):
            frames.clear()
        self._refused_at = None

    def _number_anew(self) -> None:
        """Once nothing is in flight behind a refused frame, number the frames anew."""
        if self._refused_at is None or self.in_flight:
            return
        self.waiting.extendleft(reversed(self._behind))
        self._behind.clear()
        self._next = max(self._refused_at, self._acked_to)
        self._refused_at = None


def _sequence(frame: PendingFrame) -> int:
    return frame.sequence
