"""Amounts of bytes and distances in a stream, as options take them.

Times and spans are those of the shared grammar, `dss_core.times`. A bare number of bytes is
refused, as one of seconds is there.
"""

import re
from datetime import timedelta

import typer

from dss_core.errors import IllegalSpan
from dss_core.times import parse_span_ms, parse_time

_UNITS_BYTES = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_COUNT = re.compile(r"[0-9]{1,18}")
_SIZE = re.compile(r"([0-9]{1,12})([BKMGT])", re.IGNORECASE)


def size_bytes(text: str) -> int:
    """An amount like ``10G`` or ``512m``, in bytes; of either case, for nobody means millibytes."""
    found = _SIZE.fullmatch(text)
    if _COUNT.fullmatch(text):
        reason = f"'{text}' has no unit: bytes are meant, not records; write {text}B, or {text}K."
        raise typer.BadParameter(reason)
    if found is None:
        raise typer.BadParameter(f"'{text}' is not a size; write 512M, 10G or 4096B.")
    return int(found[1]) * _UNITS_BYTES[found[2].upper()]


def spans_ms(text: str) -> tuple[int, ...]:
    """Spans like ``1s,5s,30s``.

    Raises:
        IllegalSpan: one of them is none.
    """
    return tuple(parse_span_ms(each.strip()) for each in text.split(","))


def distance(text: str) -> int | timedelta:
    """So many records, ``100``, or a span of time, ``15m``; negative where it begins with -."""
    amount = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    sign = -1 if text.startswith("-") else 1
    if _COUNT.fullmatch(amount):
        return sign * int(amount)
    try:
        return sign * timedelta(milliseconds=parse_span_ms(amount))
    except (IllegalSpan, OverflowError) as neither:
        reason = f"'{text}' is no distance; write 100 for records, or 15m."
        raise typer.BadParameter(reason) from neither


def moment_ms(text: str, *, now_us: int) -> int:
    """As `moment_us`, in milliseconds."""
    return moment_us(text, now_us=now_us) // 1_000


def moment_us(text: str, *, now_us: int) -> int:
    """A moment of the shared grammar, in microseconds since 1970.

    Raises:
        IllegalTime: it is none.
        typer.BadParameter: it is a word for one, which is none here.
    """
    time_us = parse_time(text, now_us=now_us)
    if not isinstance(time_us, int):
        raise typer.BadParameter(f"'{text}' is no moment here; write +30m, a date or RFC 3339.")
    return time_us
