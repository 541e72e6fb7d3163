"""The newest `Produce` call of each producer: what an older one still brings comes too late.

A client whose connection is gone sends what is in flight again over a new call, while the daemon
may still have requests of the old one in its buffers. A frame that is already stored is known by
its sequence. But one that was refused meanwhile has given its sequence to another, and those behind
it were numbered anew: were the old requests taken in after that, a record would be stored twice,
or though its producer was told that it is not.

Invariant: once a call has brought a frame of a producer, nothing that an older call brings of it is
taken. That is known for `PRODUCE_CALLS_KEPT_S` at least after the last frame, which is longer than
the requests of a dead connection can wait. Reads no clock, knows no frames.
"""

import math

from dss_core.errors import OutcomeUnknown, Overloaded
from dssd.limits import PRODUCE_CALLS_KEPT_S, PRODUCERS_MAX
from dssd.log.sequences import NO_PRODUCER


class ProducerFencing:
    """Those of a daemon."""

    __slots__ = ("_before", "_begun", "_newest", "_turned_s")

    def __init__(self) -> None:
        self._begun = 0
        self._newest: dict[bytes, int] = {}
        self._before: dict[bytes, int] = {}
        """As it was when that turned over last."""
        self._turned_s = -math.inf

    def begin(self) -> int:
        """The number of a call that begins."""
        self._begun += 1
        return self._begun

    def check(self, producer_id: bytes, call: int, now_s: float) -> None:
        """A call brings a frame of a producer; ``now_s`` is monotonic.

        Raises:
            OutcomeUnknown: a newer call did before; the client knows better by that one.
            Overloaded: too many producers sent frames within a short time.
        """
        newest = self._newest.get(producer_id)
        if newest == call or producer_id == NO_PRODUCER:
            return
        if newest is None:
            newest = self._before.get(producer_id, 0)
        if newest > call:
            raise OutcomeUnknown
        if now_s > self._turned_s + PRODUCE_CALLS_KEPT_S:
            self._before, self._newest, self._turned_s = self._newest, {}, now_s
        if len(self._newest) >= PRODUCERS_MAX:
            raise Overloaded(what="The number of producers", limit=PRODUCERS_MAX)
        self._newest[producer_id] = call
