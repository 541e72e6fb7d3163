"""How fast a job may publish. Pure.

A bucket that fills at a rate, and may be overdrawn by one chunk: what a chunk takes has to flow in
again before the next one goes. A chunk goes in small pieces with rests between them, so that
producers of its topic never wait for all of it.
"""

RESTED_MS_MAX = 1_000
"""All rests within one chunk that is published: who pauses or cancels its job waits for them."""


class Pace:
    """Of one job; a rate of 0 is none."""

    __slots__ = ("_free_ms", "_rate_bytes_s")

    def __init__(self, rate_bytes_s: int) -> None:
        self._rate_bytes_s = rate_bytes_s
        self._free_ms = 0

    @property
    def is_limited(self) -> bool:
        """Whether there is a rate."""
        return self._rate_bytes_s > 0

    def wait_ms(self, now_ms: int) -> int:
        """How long the next chunk has to wait."""
        return max(0, self._free_ms - now_ms)

    def rest_ms(self, piece_bytes: int, chunk_bytes: int) -> float:
        """How long a limited job rests behind a piece of a chunk: no more in all than the bound."""
        return min(
            piece_bytes * 1_000 / self._rate_bytes_s, piece_bytes * RESTED_MS_MAX / chunk_bytes
        )

    def spend(self, size_bytes: int, began_ms: int) -> None:
        """Note what was published, since the turn of its chunk came."""
        if self.is_limited:
            begins_ms = max(self._free_ms, began_ms)
            self._free_ms = begins_ms + size_bytes * 1_000 // self._rate_bytes_s
