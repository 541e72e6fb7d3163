"""The frames of one producer for one stream: gathering, waiting, in flight, settled.

A machine without I/O. Sequences are given when a frame is sent for the first time, and a frame
keeps its own until it is settled, so that sending it again is harmless::

    waiting ──► in flight (at most WINDOW) ──► settled: acked or failed
       ▲            │ lost: sent again, in order, with the same sequences
       └────────────┘ an earlier frame was refused: renumbered behind it

A frame that came back because of a gap is certainly not stored. But after a restart the daemon
accepts the next frame of a producer, whatever its sequence. So if the connection is lost before all
frames behind a refused one have come back, they are sent again together.

A queue is *held* once its topic has moved, or its producer was forgotten: no frame is sent for the
first time any more, the frames in flight get their answers, and those that are certainly not stored
are kept to be routed anew.

Invariant: frames are stored in the order of their records; every frame is settled exactly once;
`size_bytes` of everything unsettled is what the producer counts.
"""

from collections import deque

from dss_client._pending_frame import PendingFrame
from dss_core.errors import (
    DssError,
    ProducerForgotten,
    SequenceGap,
    StaleTopicEpoch,
    StorageTopicSealed,
)
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES

TOPIC_MOVED = (StaleTopicEpoch, StorageTopicSealed)
"""A frame was refused because records of its topic go elsewhere now; it is certainly not stored."""

BEGIN_ANEW = (*TOPIC_MOVED, ProducerForgotten)
"""A frame was refused for a reason that holds for all frames of its producer: a new one goes on."""


class FrameQueue:
    """One stream's frames."""

    __slots__ = (
        "_acked_to",
        "_behind_gap",
        "_refused_at",
        "_resend",
        "_returning",
        "_unstored",
        "_window",
        "in_flight",
        "next_sequence",
        "partition",
        "producer_id",
        "waiting",
    )

    def __init__(self, partition: int, producer_id: bytes = b"") -> None:
        self.partition = partition
        self.producer_id = producer_id
        """The producer under which its frames are numbered."""
        self.next_sequence = 0
        self.waiting: deque[PendingFrame] = deque()
        """Frames that are full, or due to be sent; bounded by the producer's buffer."""
        self.in_flight: dict[int, PendingFrame] = {}
        """Frames without an answer, by sequence, in order."""
        self._resend: deque[PendingFrame] = deque()
        self._returning = 0
        """After a refusal: how many frames behind it have not come back yet."""
        self._refused_at = 0
        self._acked_to = 0
        self._window = PRODUCER_WINDOW_SEQUENCES
        """How many frames may be in flight before a new one; 0 once the queue is held."""
        self._behind_gap: list[PendingFrame] = []
        """Frames refused because of a gap before them: to be numbered, or routed, anew."""
        self._unstored: list[PendingFrame] = []
        """Frames refused, and never stored here: to be routed anew."""

    @property
    def is_held(self) -> bool:
        """Whether nothing is sent for the first time any more."""
        return not self._window

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is in flight."""
        return not (self.waiting or self._resend or self._returning or self.in_flight)

    def has_work(self) -> bool:
        """Whether `take` would give a frame now."""
        return bool(self._resend) or (
            bool(self.waiting) and not self._returning and len(self.in_flight) < self._window
        )

    def take(self) -> PendingFrame | None:
        """The next frame to send, if one may be sent; a new one has its sequence now."""
        if self._resend:
            return self._resend.popleft()
        if not self.waiting or self._returning or len(self.in_flight) >= self._window:
            return None
        frame = self.waiting.popleft()
        frame.sequence = self.next_sequence
        self.next_sequence += 1
        self.in_flight[frame.sequence] = frame
        return frame

    def acked(self, sequence: int) -> PendingFrame | None:
        """The frame of an ack; None for an answer that came twice."""
        frame = self.in_flight.pop(sequence, None)
        if frame is not None:
            self._acked_to = max(self._acked_to, sequence + 1)
            self._came_back()
        return frame

    def refused(self, sequence: int, error: DssError) -> PendingFrame | None:
        """The frame that this refusal fails; None if it will be sent again instead.

        The daemon stored neither the refused frame nor those behind it, whose sequences now follow
        a gap. They are refused too, and are sent again under new sequences.
        """
        frame = self.in_flight.get(sequence)
        if frame is None:
            return None
        del self.in_flight[sequence]
        if self.is_held:
            return self._refused_when_held(frame, error)
        if self._returning:
            is_behind = isinstance(error, SequenceGap)
            if is_behind:
                self._behind_gap.append(frame)
            self._came_back()
            return None if is_behind else frame
        if error.definite:
            self._refused_at = sequence
            self._returning = sum(1 for other in self.in_flight if other > sequence)
            if not self._returning:
                self.next_sequence = max(sequence, self._acked_to)
        return frame

    def hold(self) -> None:
        """Another producer goes on: from now on every frame in flight gets an answer of its own."""
        self._window = self._returning = 0

    def _refused_when_held(self, frame: PendingFrame, error: DssError) -> PendingFrame | None:
        # A forgotten producer's refusal says that the frame was not stored now. If it was sent over
        # this call alone, it was not stored before either.
        never_stored = isinstance(error, ProducerForgotten) and not frame.in_doubt
        if isinstance(error, SequenceGap):
            self._behind_gap.append(frame)
        elif never_stored or isinstance(error, TOPIC_MOVED):
            self._unstored.append(frame)
        else:
            return frame
        return None

    def dropped(self, frame: PendingFrame) -> None:
        """A frame could not be built, so its sequence was never used."""
        del self.in_flight[frame.sequence]
        self._refused_at = frame.sequence
        self._renumber()

    def lost(self) -> None:
        """The connection is gone: everything in flight is sent again first.

        This is so behind a refused frame too, and then the frames that came back are sent first:
        from a producer that is new or unknown to it, the daemon accepts the first frame that it
        gets.
        """
        for frame in self.in_flight.values():
            frame.in_doubt = True
        if self.in_flight and self._behind_gap:
            if self._returning:
                self._returning += len(self._behind_gap)
            again = sorted([*self._behind_gap, *self.in_flight.values()], key=_sequence)
            self.in_flight = {frame.sequence: frame for frame in again}
            self._behind_gap.clear()
        self._resend = deque(self.in_flight.values())

    @property
    def is_unused(self) -> bool:
        """Whether no frame was numbered under its producer yet."""
        return self.next_sequence == 0 and not self.in_flight

    def unsettled(self) -> list[PendingFrame]:
        """Every frame that has no outcome yet, in order."""
        sent = [*self._unstored, *self._behind_gap, *self.in_flight.values()]
        return [*sorted(sent, key=_sequence), *self.waiting]

    def come_back(self) -> None:
        """Let all frames wait to be routed again; none is sent from here any more."""
        self.hold()
        self.waiting = deque(self.unsettled())
        self._unstored.clear()
        self._behind_gap.clear()
        self.in_flight.clear()
        self._resend.clear()

    def clear(self) -> None:
        """Forget every frame."""
        self._unstored.clear()
        self._behind_gap.clear()
        self.waiting.clear()
        self.in_flight.clear()
        self._resend.clear()
        self._returning = 0

    def _came_back(self) -> None:
        if self._returning:
            self._returning -= 1
            if not self._returning:
                self._renumber()

    def _renumber(self) -> None:
        """Put the frames behind a refused one in front of the queue, to be numbered anew."""
        behind = [f for sequence, f in self.in_flight.items() if sequence > self._refused_at]
        for frame in behind:
            del self.in_flight[frame.sequence]
        for frame in sorted([*self._behind_gap, *behind], key=_sequence, reverse=True):
            frame.encoded = b""
            frame.in_doubt = False
            self.waiting.appendleft(frame)
        self._behind_gap.clear()
        self.next_sequence = max(self._refused_at, self._acked_to)
        self._returning = 0


def _sequence(frame: PendingFrame) -> int:
    return frame.sequence
