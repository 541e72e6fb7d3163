"""How long a client repeats a request while the daemon is away.

Invariant: it gives up a daemon that stays away, or that goes away again and again during the same
request, which may be the cause. A daemon that was heard between two losses went away twice, however
long the work takes that both of them interrupt. This module has no clock and no loop.
"""

from dss_client.limits import AWAY_S

LOSSES_MAX = 160
"""How often the daemon may be lost while one request, or the read of one chunk, is repeated: the
request may be what ends it. A lease is renewed every 4 s, so a daemon that answers in between is
given up after ten minutes too."""


class Patience:
    """The patience of one request, which is repeated whenever the daemon is lost."""

    def __init__(self) -> None:
        self._losses = 0
        self._lost_s = 0.0
        """When the newest loss began."""
        self._failed_s = float("-inf")

    def lasts(self, now_s: float, heard_s: float) -> bool:
        """Whether to repeat the request, which failed now; the daemon was heard last at that
        time."""
        if heard_s >= self._failed_s:
            self._losses += 1
            self._lost_s = now_s
        self._failed_s = now_s
        return self._losses <= LOSSES_MAX and now_s - self._lost_s < AWAY_S
