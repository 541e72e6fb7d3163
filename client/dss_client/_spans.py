"""Spans of time that users give in seconds, as the milliseconds that go over the wire.

Invariant: every value fits its field on the wire, so a report that the user was allowed to make can
always be sent. This module must not know what a span is for.
"""

from collections.abc import Iterable
from math import isfinite
from numbers import Real

from dss_core.errors import IllegalArgument
from dss_core.limits import NAK_DELAY_MS_MAX, SPAN_MS_MAX
from dss_core.times import text_of_span


def span_ms(name: str, seconds: object, most_ms: int = SPAN_MS_MAX) -> int:
    """Seconds as milliseconds.

    Raises:
        IllegalArgument: it is no number of seconds, is negative, or is longer than allowed.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not isfinite(seconds):
        raise IllegalArgument(argument=f"{name} {seconds!r}", rule="it is a number of seconds")
    if seconds < 0:
        raise IllegalArgument(argument=f"{name} {seconds!r}", rule="a span is not negative")
    if float(seconds) * 1_000 > most_ms:
        rule = f"it is at most {text_of_span(most_ms)}"
        raise IllegalArgument(argument=f"{name} {seconds!r}", rule=rule)
    return round(float(seconds) * 1_000)


def spans_ms(name: str, seconds: object) -> list[int]:
    """Several spans.

    Raises:
        IllegalArgument: it is no sequence of them, or one of them is not allowed.
    """
    if isinstance(seconds, str | bytes) or not isinstance(seconds, Iterable):
        rule = "it is a sequence of numbers of seconds, such as [1, 5, 30]"
        raise IllegalArgument(argument=f"{name} {seconds!r}", rule=rule)
    return [span_ms(name, each) for each in seconds]


def nak_delay_ms(delay_s: float | None) -> int | None:
    """The delay of a refused record, if the user chose one.

    Raises:
        IllegalArgument: it is no number of seconds from 0 to a day.
    """
    return None if delay_s is None else span_ms("delay", delay_s, NAK_DELAY_MS_MAX)
