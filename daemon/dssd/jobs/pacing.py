"""How fast a job may publish. Pure.

A token bucket that one chunk may overdraw: the next chunk waits until the debt is paid. A chunk is
copied in small pieces with rests between them, so that producers of its topic never wait for the
whole chunk.
"""

RESTED_MS_MAX = 1_000
"""The sum of rests within one chunk: a pause or a cancellation of its job waits for them."""


class Pace:
    """The pace of one job; a rate of 0 is no limit."""

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
        """How long a limited job rests after a piece of a chunk; all rests together stay within the
        bound."""
        return min(
            piece_bytes * 1_000 / self._rate_bytes_s, piece_bytes * RESTED_MS_MAX / chunk_bytes
        )

    def spend(self, size_bytes: int, began_ms: int) -> None:
        """Note what was published, since the turn of its chunk came."""
        if self.is_limited:
            begins_ms = max(self._free_ms, began_ms)
            self._free_ms = begins_ms + size_bytes * 1_000 // self._rate_bytes_s
