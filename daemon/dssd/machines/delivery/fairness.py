"""Fairness: which stream of a session reads next, and which sends next.

::

            offer               next_reader            hold
    idle ─────────► hungry ─────────────────► reading ──────► holding
      ▲               ▲                          │              │ │
      │               └────────── its place is wanted ──────────┼─┘
      └────────────── nothing there ─────────────┴──── sent ────┘

Subscriptions take turns to read. Within one, redeliveries and new records take turns, and so do its
streams. Only a subscription that may send reads. Where all places are taken, a chunk that may not
be sent now is dropped and read again later. So a slow subscription holds no place that another one
could use.

Invariants: a stream is in one queue at most. At most `READ_AHEAD_CHUNKS` streams are reading
or holding, and those of one subscription take at most half of these places while others wait. This
module knows nothing of records, and of the credit only whether a subscription may send.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dssd.machines.delivery.credit import Account
from dssd.machines.delivery.held_back import SuspectTurn
from dssd.machines.delivery.stream import DeliveredStream

READ_AHEAD_CHUNKS = 4
"""Chunks per session that are being read or wait for credit. With frames of the largest size, these
and the bytes out stay below the 32 MiB that a client which stops reading may cost."""


MaySend = Callable[[Account, bool], bool]
"""Whether a subscription may send new records or, given true, redeliveries."""


@dataclass(slots=True, eq=False)
class Share:
    """The places, turns and credit of one subscription of the session."""

    account: Account = field(default_factory=Account)
    chunks: int = 0
    """Chunks that are being read, or were read and not sent."""
    waiting: int = 0
    """Its streams that are in a queue."""
    hungry: deque[DeliveredStream] = field(default_factory=deque)
    """Streams that have new records to read."""
    again: deque[DeliveredStream] = field(default_factory=deque)
    """Streams that have redeliveries to read."""
    new_next: bool = False
    """Whether new records are read next, where both wait."""
    suspended: bool = False
    """Its leader is silent."""
    paused: bool = False
    """Its group is paused. ``suspended`` and this end independently."""
    left: bool = False
    suspects: SuspectTurn = field(default_factory=SuspectTurn)
    """The turn that the suspects of its lanes share."""
    grants: set[int] = field(default_factory=set)

    def suspects_go_on(self) -> Iterable[int]:
        """The grants that may send their next suspect, if one was settled since the last call."""
        freed, self.suspects.freed = self.suspects.freed, False
        return self.grants if freed else ()

    @property
    def silent(self) -> bool:
        """Whether nothing may be sent for it."""
        return self.suspended or self.paused


class RoundRobin:
    """The queues, and the share of each subscription."""

    __slots__ = ("_reading", "_shares", "_turns", "_waiting_shares", "holding")

    def __init__(self) -> None:
        self.holding: deque[DeliveredStream] = deque()
        """Streams that were read and wait to be sent, the next one first."""
        self._reading = 0
        self._shares: dict[int, Share] = {}
        self._turns: deque[Share] = deque()
        """Shares with streams that want to read, the next one first."""
        self._waiting_shares = 0

    def share(self, subscription: int) -> Share:
        """The share of a subscription."""
        share = self._shares.get(subscription)
        if share is None:
            share = self._shares[subscription] = Share()
        return share

    def out(self) -> dict[int, int]:
        """How many records each subscription with a stream has out."""
        held = ((number, share) for number, share in self._shares.items() if share.grants)
        return {number: share.account.records.out for number, share in held}

    def enter(self, stream: DeliveredStream) -> bool:
        """A new stream; returns whether it is the only one of its subscription."""
        grants = self.share(stream.subscription).grants
        grants.add(stream.grant)
        return len(grants) == 1

    def forget(self, stream: DeliveredStream) -> bool:
        """The stream is over; returns whether it was the last one of its subscription."""
        self.withdraw(stream)
        share = self._shares[stream.subscription]
        share.grants.discard(stream.grant)
        if stream.reading:
            share.chunks -= 1
        self.forget_left(stream.subscription)
        return not share.grants

    def forget_left(self, subscription: int) -> None:
        """Drop the share of a subscription that was left, once its last stream is over."""
        share = self.share(subscription)
        if share.left and not share.grants:
            del self._shares[subscription]

    def offer(self, stream: DeliveredStream) -> None:
        """Let the stream take its turn, if it has something to read."""
        share = self._shares[stream.subscription]
        if share.silent or stream.chunk is not None or stream.read_offset() is None:
            return
        wanted = share.again if stream.resending else share.hungry
        if stream.queue is wanted:
            return
        if stream.queue is not None:
            self._part(stream)
        self._join(wanted, stream)

    def next_reader(self, may_send: MaySend) -> tuple[DeliveredStream, int] | None:
        """The stream that shall read now, and its offset; it counts as reading from here on.

        Before the call, all held chunks that may be sent have been sent.
        """
        turns = self._turns
        for _ in range(len(turns)):
            share = turns[0]
            if not (share.again or share.hungry):
                turns.popleft()
                continue
            turns.rotate(-1)
            turn = self._reader_of(share, may_send)
            if turn is not None:
                return turn
        return None

    def _reader_of(self, share: Share, may_send: MaySend) -> tuple[DeliveredStream, int] | None:
        for queue in (share.hungry, share.again) if share.new_next else (share.again, share.hungry):
            while queue and may_send(share.account, queue is share.again):
                if not self._make_room(share):
                    return None
                stream = queue[0]
                self._part(stream)
                offset = stream.read_offset()
                if offset is not None:
                    stream.reading = True
                    share.new_next = queue is share.again
                    share.chunks += 1
                    self._reading += 1
                    return stream, offset
        return None

    def _make_room(self, share: Share) -> bool:
        """Make a place for one more chunk of the share if need be; return whether there is one."""
        crowded = share.chunks >= READ_AHEAD_CHUNKS // 2 and self._waiting_shares > 1
        if not crowded and self._reading + len(self.holding) < READ_AHEAD_CHUNKS:
            return True
        for held in reversed(self.holding):
            if not crowded or self._shares[held.subscription] is share:
                self.withdraw(held)
                self.offer(held)
                return True
        return False

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
        self._part(stream)
        self._shares[stream.subscription].chunks -= 1

    def withdraw(self, stream: DeliveredStream) -> None:
        """The stream gives up its place, and what it has read."""
        if stream.chunk is not None:
            self.sent(stream)
            stream.forget_chunk()
        elif stream.queue is not None:
            self._part(stream)

    def _join(self, queue: deque[DeliveredStream], stream: DeliveredStream) -> None:
        assert stream.queue is None
        stream.queue = queue
        share = self._shares[stream.subscription]
        begins = queue is not self.holding and not (share.hungry or share.again)
        if begins and share not in self._turns:
            self._turns.append(share)
        queue.append(stream)
        share.waiting += 1
        if share.waiting == 1:
            self._waiting_shares += 1

    def _part(self, stream: DeliveredStream) -> None:
        assert stream.queue is not None
        stream.queue.remove(stream)
        stream.queue = None
        share = self._shares[stream.subscription]
        share.waiting -= 1
        if share.waiting == 0:
            self._waiting_shares -= 1
