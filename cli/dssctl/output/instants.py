"""Moments: RFC 3339 UTC for programs, an age for people.

Knows no clock: the present is an argument.
"""

from dataclasses import dataclass
from typing import assert_never

from dss_core.times import text_of_span, text_of_us
from dssctl.settings import TimeStyle

_CLOCKS_DIFFER_US = 60_000_000
"""So far ahead a moment may seem that is over: the clock of another host told it."""


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

    def shown(self, now_us: int, style: TimeStyle) -> str:
        """As a table has it."""
        match style:
            case TimeStyle.RELATIVE:
                return self.age(now_us)
            case TimeStyle.ISO:
                return self.rfc3339()
            case TimeStyle.UNIX:
                return f"{self.us / 1_000_000:.3f}"
            case _:
                assert_never(style)

    def age(self, now_us: int) -> str:
        """How long ago it was, in two units, seconds at least; or in what time it comes.

        A moment to come within a minute counts as now: the clocks of two hosts differ.
        """
        ahead_us = self.us - now_us
        if ahead_us > _CLOCKS_DIFFER_US:
            return f"in {text_of_span(ahead_us // 1_000_000 * 1_000)}"
        return text_of_span(max(0, -ahead_us) // 1_000_000 * 1_000)
