"""The wall clock, read in this one place."""

import time


def wall_ms() -> int:
    """The present, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
