"""The clocks of a daemon's life: its own monotonic clock, and a wall clock that operators move.

Invariant: both are read from the timeline only; moving the wall clock moves nothing else.
"""

from collections.abc import Iterator

from dss_sim.sessions.timeline import Timeline
from dssd.clock import Clock

WALL_START_MS = 1_700_000_000_000


class Wall:
    """The machine's wall clock, and how it was moved."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._moved: list[tuple[int, int]] = [(0, WALL_START_MS)]
        """Since when, in true µs, it is how many ms ahead of true time."""

    def move(self, by_ms: int) -> None:
        """Set it forward or back."""
        self._moved.append((self._timeline.now_us, self._moved[-1][1] + by_ms))

    def ms(self) -> int:
        """Its present reading."""
        return self._moved[-1][1] + self._timeline.now_us // 1_000

    def showed(self, wall_ms: int, start_us: int, end_us: int) -> bool:
        """Whether it showed this at some moment of a span of true time."""
        return any(
            max(start_us, since_us) // 1_000 + ahead_ms - 1
            <= wall_ms
            <= min(end_us, until_us) // 1_000 + ahead_ms + 1
            for since_us, until_us, ahead_ms in self._spans()
            if since_us <= end_us and until_us >= start_us
        )

    def _spans(self) -> Iterator[tuple[int, int, int]]:
        for at, (since_us, ahead_ms) in enumerate(self._moved):
            later = self._moved[at + 1 :]
            yield since_us, later[0][0] if later else 1 << 62, ahead_ms


class LifeClock(Clock):
    """The clocks that one life of the daemon reads."""

    __slots__ = ("_start_ms", "_timeline", "_wall")

    def __init__(self, timeline: Timeline, wall: Wall, start_ms: int) -> None:
        self._timeline = timeline
        self._wall = wall
        self._start_ms = start_ms

    def now_ms(self) -> int:
        """Milliseconds since a point that only this life knows."""
        return self._start_ms + self._timeline.now_us // 1_000

    def wall_ms(self) -> int:
        """The reading of the machine's wall clock."""
        return self._wall.ms()

    def wall_us(self) -> int:
        """The same, in microseconds."""
        return self._wall.ms() * 1_000
