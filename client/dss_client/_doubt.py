"""Whether a client may hand out what it holds without asking the daemon first.

It may for a while after it asked something that the daemon has answered since. The time counts from
the question: what is read may be as old as the way is slow, but an answer was given after its
question. It may not if this process stood still: over a unix socket the daemon may have noticed the
loss of the connection, and lent the streams to others, before anybody here read of it. Invariant: a
doubt ends with the answer to a question that was asked after it began.
"""

from time import monotonic

from dss_client._loop_watch import watch_of_loop

HELD_AGAIN_S = 2.0
"""How long after such an answer no other one is needed, unless the daemon is silent. Without it a
program that blocks its loop all the time would hand out nothing."""


SILENCE_OF_LEASE = 0.4
"""Share of the lease after the last answered question; then hand-outs wait for a new answer. It is
less than the half lease for which the daemon keeps the streams of a silent client, and than the
0.67 leases for which a restarted daemon does."""


class Doubt:
    """The doubt of one call, under a lease."""

    def __init__(self, lease_s: float, asked_at: float) -> None:
        """The daemon answered the opening, which was sent at that time."""
        self._sure_s = SILENCE_OF_LEASE * lease_s
        self._watch = watch_of_loop()
        self._heard_at = monotonic()
        self._asked_at = asked_at
        """When the newest question was asked that the daemon has answered."""
        self._ended_at = 0.0
        """When the last doubt ended."""

    def begin(self) -> None:
        """The call is served from now on."""
        self._watch.begin()

    def end(self) -> None:
        """The call is over."""
        self._watch.end()

    def heard(self) -> None:
        """Something of the daemon was read."""
        self._heard_at = monotonic()

    def unheard_s(self) -> float:
        """How long nothing of the daemon was read."""
        return monotonic() - self._heard_at

    def is_there(self) -> bool:
        """Whether there is a doubt, so that the daemon has to be asked."""
        stood_still = self._watch.held_until() > self._ended_at + HELD_AGAIN_S
        return stood_still or monotonic() - self._asked_at > self._sure_s

    def answered(self, asked_at: float) -> None:
        """The daemon has answered the question that was asked at that time."""
        self._asked_at = max(self._asked_at, asked_at)

    def ended(self) -> None:
        """A doubt ended: the daemon was asked, and has answered."""
        self._ended_at = monotonic()
