"""Moments: RFC 3339 UTC for programs, an age for people.

Knows no clock: the present is an argument.
"""

from dataclasses import dataclass

from dss_core.times import text_of_span, text_of_us


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A moment on the wall clock, in microseconds since 1970."""

    us: int

    @classmethod
    def of_ms(cls, ms: int) -> "Instant":
        """The moment that is given in milliseconds."""
        return cls(ms * 1_000)

    def rfc3339(self) -> str:
        """Written for programs, always in UTC; the fraction is left out where it is zero."""
        return text_of_us(self.us)

    def age(self, now_us: int) -> str:
        """How long ago it was, in two units, seconds at least; a moment to come counts as now."""
        return text_of_span(max(0, now_us - self.us) // 1_000_000 * 1_000)
