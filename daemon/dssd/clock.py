"""The daemon's clocks: one for durations, one for dates.

Invariant: durations are measured only with `Clock.now_ms`, which never jumps; the wall clock is for
dates that are shown or stored. Nothing below the shells reads a clock: a shell passes one in.
"""

import time


class Clock:
    """Reads the machine's clocks. Tests hand out one of their own with the same methods."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Monotonic milliseconds since an arbitrary point, for leases, timers and ages."""
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC; may jump."""
        return time.time_ns() // 1_000_000

    def wall_us(self) -> int:
        """Microseconds since 1970, UTC; may jump."""
        return time.time_ns() // 1_000


def wall_us_now() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1_000


def monotonic_us_now() -> int:
    """Microseconds that no change of the wall clock moves."""
    return time.monotonic_ns() // 1_000
