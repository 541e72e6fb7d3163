"""How long one goes on with what a daemon that was lost has to answer.

Invariant: a daemon that stays away is given up, and so is one that is lost again and again by the
same request, whose fault that may be. One that was heard between two losses was away twice, however
long the work takes that both of them hit. No clock and no loop in here.
"""

from dss_client.limits import AWAY_S

LOSSES_MAX = 160
"""How often a daemon may be lost while one request, or the reading of one chunk, is tried again: it
may be that which ends it. A lease is renewed each 4 s, so what is refused by a daemon that is heard
between is given up after ten minutes too."""


class Patience:
    """The patience of one request, which is repeated whenever the daemon is lost."""

    def __init__(self) -> None:
        self._losses = 0
        self._lost_s = 0.0
        """When the newest loss began."""
        self._failed_s = float("-inf")

    def lasts(self, now_s: float, heard_s: float) -> bool:
        """Whether to ask again, as the request failed now, and something was heard then."""
        if heard_s >= self._failed_s:
            self._losses += 1
            self._lost_s = now_s
        self._failed_s = now_s
        return self._losses <= LOSSES_MAX and now_s - self._lost_s < AWAY_S
