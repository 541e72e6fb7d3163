"""Whether a client may hand out what it holds without asking the daemon first.

It may not after a silence of the daemon, and not where this process stood still: the daemon may
have noticed the loss of the connection meanwhile, and lent the streams to others, while nobody here
has read it yet. Invariant: a doubt ends with an answer to what was asked after it began.
"""

from time import monotonic

from dss_client._loop_watch import watch_of_loop

HELD_AGAIN_S = 2.0
"""So long after such an answer no further one is waited for, unless the daemon is silent: a program
that holds its loop all the time would hand out nothing else."""


SILENCE_OF_LEASE = 0.4
"""After this share of the lease without a sign of the daemon, hand-out waits for a ping. It is less
than the 3 s after which the daemon may cut off a client that stands still and lend its streams, and
than the 0.67 leases for which a restarted one keeps them."""


class Doubt:
    """The doubt of one call, under a lease."""

    def __init__(self, lease_s: float) -> None:
        self._silence_s = SILENCE_OF_LEASE * lease_s
        self._watch = watch_of_loop()
        self._heard_at = monotonic()
        self._answered_at = 0.0
        self._is_there = False

    def begin(self) -> None:
        """The call is served from now on."""
        self._watch.begin()

    def end(self) -> None:
        """The call is over."""
        self._watch.end()

    def heard(self) -> None:
        """Something of the daemon was read."""
        # Items that arrived while this process stood still do not prove that the daemon lives.
        self._is_there = self._is_there or self.unheard_s() > self._silence_s
        self._heard_at = monotonic()

    def unheard_s(self) -> float:
        """For how long nothing of the daemon was read."""
        return monotonic() - self._heard_at

    def is_there(self) -> bool:
        """Whether the daemon has to be asked."""
        stood_still = self._watch.held_until() > self._answered_at + HELD_AGAIN_S
        self._is_there = self._is_there or stood_still or self.unheard_s() > self._silence_s
        return self._is_there

    def answered(self, asked_at: float) -> None:
        """The daemon has answered what it was asked at a time."""
        self._answered_at = monotonic()
        # An answer that lay here while this process stood still is as old as the silence.
        self._is_there = self._answered_at - asked_at > self._silence_s
