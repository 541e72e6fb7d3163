"""Producer fencing: only the newest `Produce` call of a producer may bring its frames.

A client that loses its connection sends what was in flight again over a new call, while requests of
the old call may still wait in the daemon's buffers. A frame that is already stored is recognised by
its sequence. But after a refusal the client gives the refused sequence to another frame and numbers
the frames behind it anew. If the daemon took the old requests in after that, it would store a
record twice, or store one that its producer was told is not stored.

Invariant: once a call has brought a frame of a producer, frames of that producer from older calls
are refused. The newest call is remembered for at least `PRODUCE_CALLS_KEPT_S` after its last frame,
which is longer than the requests of a dead connection can wait. Reads no clock, knows no frames.
"""

import math

from dss_core.errors import OutcomeUnknown, Overloaded
from dssd.limits import PRODUCE_CALLS_KEPT_S, PRODUCERS_MAX
from dssd.log.sequences import NO_PRODUCER


class ProducerFencing:
    """The newest call of every producer of a daemon."""

    __slots__ = ("_before", "_begun", "_newest", "_turned_s")

    def __init__(self) -> None:
        self._begun = 0
        self._newest: dict[bytes, int] = {}
        self._before: dict[bytes, int] = {}
        """The older half: what `_newest` held when it was last replaced."""
        self._turned_s = -math.inf

    def begin(self) -> int:
        """The number of a call that begins."""
        self._begun += 1
        return self._begun

    def check(self, producer_id: bytes, call: int, now_s: float) -> None:
        """A call brings a frame of a producer; ``now_s`` is monotonic.

        Raises:
            OutcomeUnknown: a newer call did before; the client learns the outcome over that one.
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
