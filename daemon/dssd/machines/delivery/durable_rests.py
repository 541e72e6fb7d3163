"""Rests that outlive the grant: records that a user refused with a delay, and suspects.

The daemon's own backoff ends with the grant. A delay that a user chose does not. Nor does the rest
of a suspect: it would begin anew with each client that vanishes. Invariants: the ranges are
disjoint, each is in reports until its time has come, and none rests for longer than was asked for,
even if the wall clock is set back. If it is set forward, records come early: the times alone do not
tell that from a daemon that was down. Times are the machine's; reports carry wall-clock times,
which are ``wall_ahead_ms`` ahead of them for the life of the grant.
"""

from collections.abc import Iterator

from dss_core.progress import Progress, Ranges, normalised
from dssd.machines.attempts import Due, Rests, unacked_attempts

DURABLE_REST_MS_MIN = 1_000
"""A user's delay is stored from this length on; a shorter one is over before a row helps."""


class DurableRests:
    """The durable rests of one grant."""

    __slots__ = ("_resting", "_wall_ahead_ms")

    def __init__(self, granted: Rests, wall_ahead_ms: int, now_ms: int) -> None:
        self._wall_ahead_ms = wall_ahead_ms
        self._resting = [
            (start, end, Due(min(due.at_ms - wall_ahead_ms, now_ms + due.delay_ms), due.delay_ms))
            for start, end, due in granted
            if due.at_ms - wall_ahead_ms > now_ms
        ]

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Each range and its due time."""
        return ((start, end, due.at_ms) for start, end, due in self._resting)

    def __len__(self) -> int:
        """How many ranges rest."""
        return len(self._resting)

    def ranges(self) -> Ranges:
        """The offsets that rest."""
        return normalised((start, end) for start, end, _ in self._resting)

    def rest(self, start: int, end: int, now_ms: int, delay_ms: int) -> None:
        """A user refused the range; a short delay is not worth a row."""
        if delay_ms >= DURABLE_REST_MS_MIN:
            self._resting.append((start, end, Due(now_ms + delay_ms, delay_ms)))

    def wake(self, now_ms: int) -> None:
        """Forget what has rested long enough."""
        if self._resting:
            self._resting = [each for each in self._resting if each[2].at_ms > now_ms]

    def told(self, progress: Progress) -> Rests:
        """The rests for a report, without records that were acknowledged meanwhile."""
        if not self._resting:
            return ()
        return unacked_attempts(
            sorted(
                (start, end, Due(due.at_ms + self._wall_ahead_ms, due.delay_ms))
                for start, end, due in self._resting
            ),
            progress,
        )
