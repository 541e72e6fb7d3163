"""Producer fencing: only the newest `Produce` call of a producer may bring its frames.

A client that loses its connection sends what was in flight again over a new call, while requests of
the old call may still wait in the daemon's buffers. A frame that is already stored is recognised by
its sequence. But after a refusal the client gives the refused sequence to another frame and numbers
the frames behind it anew. If the daemon took the old requests in after that, it would store a
record twice, or store one that its producer was told is not stored.

The producers of one caller to one topic are a *share*. When a share reaches its bound, the daemon
forgets the producers of the share and counts all older calls of the share as replaced: a producer
that goes on over such a call gets `OutcomeUnknown` and sends again over a new call. So a caller
that makes thousands of producers a second takes neither memory nor calls from the others.

Invariant: once a call has brought a frame of a producer, frames of that producer from older calls
are refused. The newest call is remembered for at least `PRODUCE_CALLS_KEPT_S` after its last frame,
which is longer than the requests of a dead connection can wait. Reads no clock, knows no frames.
"""

import math

from dss_core.errors import OutcomeUnknown
from dss_core.producer_ids import NO_PRODUCER
from dssd.log.limits import PRODUCERS_MAX, PRODUCERS_OWNER_MAX

PRODUCE_CALLS_KEPT_S = 60.0
"""The newest Produce call of a producer is remembered for at least this long: longer than requests
of a dead connection can wait, because it is cut some five seconds after it died."""


Share = tuple[int, int]
"""A topic, and the owner of what is sent to it."""


class _Newest:
    """The newest calls of a share."""

    __slots__ = ("_before", "_newest", "_oldest_call", "_turned_s", "used_s")

    def __init__(self) -> None:
        self._newest: dict[bytes, int] = {}
        self._before: dict[bytes, int] = {}
        """The older half: what `_newest` held when it was last replaced."""
        self._oldest_call = 0
        """For producers that are not remembered, calls below this number count as replaced."""
        self._turned_s = -math.inf
        self.used_s = -math.inf
        """When a frame of any of its producers came last."""

    def __len__(self) -> int:
        """How many producers are remembered."""
        return len(self._newest) + len(self._before)

    def is_newest(self, producer_id: bytes, call: int) -> bool:
        """Whether that is known."""
        return self._newest.get(producer_id) == call

    def check(self, producer_id: bytes, call: int, now_s: float) -> None:
        """As `ProducerFencing.check`."""
        newest = self._newest.get(producer_id)
        if newest is None:
            newest = self._before.get(producer_id, self._oldest_call)
        if newest > call:
            raise OutcomeUnknown
        if now_s > self._turned_s + PRODUCE_CALLS_KEPT_S:
            self._before, self._newest, self._turned_s = self._newest, {}, now_s
        if len(self._newest) >= PRODUCERS_OWNER_MAX:
            self.forget_before(call)
        self._newest[producer_id] = call

    def forget_before(self, call: int) -> None:
        """Forget the producers; frames of older calls are refused."""
        calls = *self._newest.values(), *self._before.values()
        self._oldest_call = max(self._oldest_call, call, *calls)
        self._before, self._newest = {}, {}


class ProducerFencing:
    """The newest call of every producer of a daemon."""

    __slots__ = ("_begun", "_count", "_shares")

    def __init__(self) -> None:
        self._begun = 0
        self._shares: dict[Share, _Newest] = {}
        self._count = 0
        """Producers added since the last count."""

    def __len__(self) -> int:
        """How many producers are remembered."""
        return sum(map(len, self._shares.values()))

    def begin(self) -> int:
        """The number of a call that begins."""
        self._begun += 1
        return self._begun

    def check(self, producer_id: bytes, share: Share, call: int, now_s: float) -> None:
        """Check a frame of a producer that came over a call; ``now_s`` is monotonic.

        Raises:
            OutcomeUnknown: a newer call brought one before; the client learns the outcome there.
        """
        own = self._shares.get(share)
        if own is None:
            own = self._shares[share] = _Newest()
        own.used_s = now_s
        if producer_id == NO_PRODUCER or own.is_newest(producer_id, call):
            return
        own.check(producer_id, call, now_s)
        self._count += 1
        if self._count > PRODUCERS_MAX:
            self._bound(call, now_s)

    def _bound(self, call: int, now_s: float) -> None:
        """Bound the remembered producers: the largest shares forget theirs."""
        kept_s = now_s - PRODUCE_CALLS_KEPT_S
        over = [share for share, own in self._shares.items() if own.used_s < kept_s]
        for share in over:
            del self._shares[share]
        self._count = len(self)
        while self._count > PRODUCERS_MAX // 2:
            largest = max(self._shares.values(), key=len)
            self._count -= len(largest)
            largest.forget_before(call)
