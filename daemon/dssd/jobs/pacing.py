"""How fast a job may publish. Pure.

A bucket that fills at a rate, and may be overdrawn by one chunk: what a chunk takes has to flow in
again before the next one goes.
"""


class Pace:
    """Of one job; a rate of 0 is none."""

    __slots__ = ("_free_ms", "_rate_bytes_s")

    def __init__(self, rate_bytes_s: int) -> None:
        self._rate_bytes_s = rate_bytes_s
        self._free_ms = 0

    def wait_ms(self, now_ms: int) -> int:
        """How long the next chunk has to wait."""
        return max(0, self._free_ms - now_ms)

    def spend(self, size_bytes: int, now_ms: int) -> None:
        """Note what was published."""
        if self._rate_bytes_s:
            begins_ms = max(self._free_ms, now_ms)
            self._free_ms = begins_ms + size_bytes * 1_000 // self._rate_bytes_s
