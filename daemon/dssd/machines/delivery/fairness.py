"""Fairness: which stream of a session reads next, and which sends next.

::

            offer               next_reader            hold
    idle ─────────► hungry ─────────────────► reading ──────► holding
      ▲                                          │               │
      └────────────── nothing there ─────────────┴──── sent ─────┘

Invariants: a stream is in one queue at most. At most `READ_AHEAD_CHUNKS` streams are reading
or holding, and those of one subscription take at most half of these places while others wait. This
module knows nothing of credit and records.
"""

from collections import deque
from dataclasses import dataclass, field

from dssd.limits import READ_AHEAD_CHUNKS
from dssd.machines.delivery.stream import DeliveredStream


@dataclass(slots=True)
class Share:
    """What one subscription takes of the session."""

    records: int = 0
    bytes: int = 0
    chunks: int = 0
    """Being read, or read and not sent."""
    waiting: int = 0
    """Its streams that are in a queue."""
    suspended: bool = False
    left: bool = False
    grants: set[int] = field(default_factory=set)


class RoundRobin:
    """The queues, and the share of each subscription."""

    __slots__ = ("_hungry", "_reading", "_shares", "_waiting_shares", "holding")

    def __init__(self) -> None:
        self.holding: deque[DeliveredStream] = deque()
        """Streams that were read and wait to be sent, the next one first."""
        self._hungry: deque[DeliveredStream] = deque()
        self._reading = 0
        self._shares: dict[int, Share] = {}
        self._waiting_shares = 0

    @property
    def contended(self) -> bool:
        """Whether more than one subscription waits."""
        return self._waiting_shares > 1

    def share(self, subscription: int) -> Share:
        """The share of a subscription."""
        share = self._shares.get(subscription)
        if share is None:
            share = self._shares[subscription] = Share()
        return share

    def enter(self, stream: DeliveredStream) -> None:
        """A new stream."""
        self.share(stream.subscription).grants.add(stream.grant)

    def forget(self, stream: DeliveredStream) -> None:
        """The stream is over."""
        self.withdraw(stream)
        share = self._shares[stream.subscription]
        share.grants.discard(stream.grant)
        if stream.reading:
            share.chunks -= 1
        self.forget_left(stream.subscription)

    def forget_left(self, subscription: int) -> None:
        """Drop the share of a subscription that was left, once its last stream is over."""
        share = self.share(subscription)
        if share.left and not share.grants:
            del self._shares[subscription]

    def offer(self, stream: DeliveredStream) -> None:
        """Let the stream take its turn, if it has something to read."""
        if stream.queued or self._shares[stream.subscription].suspended:
            return
        if stream.read_offset() is not None:
            self._join(self._hungry, stream)

    def next_reader(self) -> tuple[DeliveredStream, int] | None:
        """The stream that shall read now, and where; it is counted as reading."""
        hungry = self._hungry
        skipped = 0
        while skipped < len(hungry) and self._reading + len(self.holding) < READ_AHEAD_CHUNKS:
            stream = hungry[0]
            share = self._shares[stream.subscription]
            if self.contended and share.chunks >= READ_AHEAD_CHUNKS // 2:
                hungry.rotate(-1)
                skipped += 1
                continue
            self._part(hungry, stream)
            offset = stream.read_offset()
            if offset is not None:
                stream.reading = True
                share.chunks += 1
                self._reading += 1
                return stream, offset
        return None

    def read_answered(self, stream: DeliveredStream | None) -> None:
        """A read came back; its stream may be over."""
        self._reading -= 1
        if stream is not None:
            self._shares[stream.subscription].chunks -= 1

    def hold(self, stream: DeliveredStream) -> None:
        """The stream has a chunk to send."""
        self._shares[stream.subscription].chunks += 1
        self._join(self.holding, stream)

    def sent(self, stream: DeliveredStream) -> None:
        """The chunk of a stream that is holding was sent, or dropped."""
        self._part(self.holding, stream)
        self._shares[stream.subscription].chunks -= 1

    def withdraw(self, stream: DeliveredStream) -> None:
        """The stream gives up its place, and what it has read."""
        if stream.chunk is not None:
            self.sent(stream)
            stream.forget_chunk()
        elif stream.queued:
            self._part(self._hungry, stream)

    def _join(self, queue: deque[DeliveredStream], stream: DeliveredStream) -> None:
        assert not stream.queued
        stream.queued = True
        queue.append(stream)
        share = self._shares[stream.subscription]
        share.waiting += 1
        if share.waiting == 1:
            self._waiting_shares += 1

    def _part(self, queue: deque[DeliveredStream], stream: DeliveredStream) -> None:
        queue.remove(stream)
        stream.queued = False
        share = self._shares[stream.subscription]
        share.waiting -= 1
        if share.waiting == 0:
            self._waiting_shares -= 1
