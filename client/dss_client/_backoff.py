"""Pauses between attempts: doubling, bounded, each drawn from zero to its value.

The full jitter spreads clients that lost the same daemon at the same moment.
"""

import random

BACKOFF_FIRST_S = 0.05
BACKOFF_MAX_S = 0.5
"""Reconnect pauses double between these, each drawn from zero to its value. The longest is an
eighth of the time for which a restarted daemon keeps a stream for its session."""


class Backoff:
    """The pauses of one series of attempts."""

    def __init__(self, first_s: float = BACKOFF_FIRST_S, max_s: float = BACKOFF_MAX_S) -> None:
        self._first_s = first_s
        self._max_s = max_s
        self._next_s = first_s

    def pause_s(self) -> float:
        """How long to wait before the next attempt."""
        pause_s = random.uniform(0, self._next_s)
        self._next_s = min(self._next_s * 2, self._max_s)
        return pause_s

    def reset(self) -> None:
        """An attempt succeeded."""
        self._next_s = self._first_s
