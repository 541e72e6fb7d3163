"""The one grammar for points in time, and for spans of it, that people write.

::

    now, earliest             markers: what they mean is decided where they are used
    -15m, -1h30m, -2d         before now; units ms s m h d w
    +15m                      after now
    2026-11-20                midnight UTC
    2026-11-20T08:00:00Z      RFC 3339; a zone is required, fractions of a second are allowed
    @1795000000, @1795000000.25    seconds since 1970

A span is what stands behind the sign, ``1h30m``: a bare number is none, for whether 30 means
seconds or days is not for us to guess.

Invariant: a time is microseconds since 1970 in UTC. This module reads no clock: the caller says
what now is.
"""

import re
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

from dss_core.errors import IllegalSpan, IllegalTime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_UNIT_US = {
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60 * 1_000_000,
    "h": 3_600 * 1_000_000,
    "d": 86_400 * 1_000_000,
    "w": 7 * 86_400 * 1_000_000,
}
_TIME_US_MAX = (1 << 63) - 1
"""Times are signed 64-bit columns in frames and in the store."""

_PART = re.compile(r"([0-9]{1,12})(ms|[smhdw])")
_SPAN = re.compile(rf"(?:{_PART.pattern})+")
_DURATION = re.compile(rf"[-+]{_SPAN.pattern}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_RFC3339 = re.compile(
    rf"{_DATE.pattern}[Tt ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,9}})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_UNIX = re.compile(r"@([0-9]{1,13})(?:\.([0-9]{1,6}))?")


class Moment(Enum):
    """A time that only the place where it is used can resolve."""

    NOW = auto()
    EARLIEST = auto()


def parse_time(text: str, *, now_us: int) -> int | Moment:
    """Read a time: microseconds since 1970, or a marker.

    Raises:
        IllegalTime: the text is not in the grammar, or before 1970.
    """
    if text in ("now", "earliest"):
        return Moment.NOW if text == "now" else Moment.EARLIEST
    time_us = _parsed_us(text, now_us)
    if time_us is None or not 0 <= time_us <= _TIME_US_MAX:
        raise IllegalTime(text=repr(text))
    return time_us


def parse_span_ms(text: str) -> int:
    """Read a span like ``7d`` or ``1h30m``, in milliseconds.

    Raises:
        IllegalSpan: the text is not in the grammar.
    """
    if not _SPAN.fullmatch(text):
        raise IllegalSpan(text=repr(text))
    return _span_us(text) // 1_000


def text_of_us(at_us: int) -> str:
    """A time in microseconds since 1970, exactly, as `parse_time` reads it back."""
    try:
        moment = _EPOCH + timedelta(microseconds=at_us)
    except OverflowError:
        seconds, fraction_us = divmod(at_us, 1_000_000)
        return f"@{seconds}.{fraction_us:06}"
    return moment.isoformat().replace("+00:00", "Z")


def text_of_ms(at_ms: int) -> str:
    """A time in milliseconds since 1970, as people write it: RFC 3339 in UTC, whole seconds."""
    return f"{datetime.fromtimestamp(at_ms // 1_000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def text_of_span(ms: int) -> str:
    """A span in its two largest units: ``48s``, ``14m02s``, ``3h10m``, ``41d``.

    Below a second it is in milliseconds, because it is not nothing.
    """
    if 0 < ms < 1_000:
        return f"{ms}ms"
    seconds = ms // 1_000
    if seconds < 60:
        return f"{seconds}s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h{minutes:02}m"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours:02}h" if days < 10 else f"{days}d"


def _parsed_us(text: str, now_us: int) -> int | None:
    if _DURATION.fullmatch(text):
        return now_us - _span_us(text) if text[0] == "-" else now_us + _span_us(text)
    if found := _UNIX.fullmatch(text):
        return int(found[1]) * 1_000_000 + int((found[2] or "").ljust(6, "0"))
    if _DATE.fullmatch(text):
        return _calendar_us(text + "T00:00:00+00:00")
    if _RFC3339.fullmatch(text):
        return _calendar_us(text.upper())
    return None


def _span_us(text: str) -> int:
    return sum(int(count) * _UNIT_US[unit] for count, unit in _PART.findall(text))


def _calendar_us(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment - _EPOCH) // _US
