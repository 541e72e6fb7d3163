"""Where a group begins: now, at the earliest record, at a time, or at an offset.

A start is resolved to one offset a stream when its group is declared, and never again. Its text
form is what `dssd.store.rows.GroupRow.start` keeps::

    now    earliest    @MICROSECONDS    =OFFSET

Operators are shown the time in the grammar that they write it in.

Invariant: `parse_start(start_text(start)) == start`. This module knows no log and no clock.
"""

from dataclasses import dataclass

from dss_core.errors import IllegalArgument
from dss_core.times import text_of_us

OFFSET_MAX = (1 << 63) - 1
"""Offsets and microseconds are kept as signed 64-bit integers."""


@dataclass(frozen=True, slots=True)
class Now:
    """At the end of each stream at the time of the declaration."""


@dataclass(frozen=True, slots=True)
class Earliest:
    """At the first kept record of each stream."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """At the first record appended at or after the time, microseconds since 1970."""

    time_us: int


@dataclass(frozen=True, slots=True)
class AtOffset:
    """At an offset; only for a group whose filter meets a single stream."""

    offset: int


StartPoint = Now | Earliest | AtTime | AtOffset


def start_text(start: StartPoint) -> str:
    """The text that `parse_start` reads back."""
    match start:
        case Now():
            return "now"
        case Earliest():
            return "earliest"
        case AtTime(time_us):
            return f"@{time_us}"
        case AtOffset(offset):
            return f"={offset}"


def shown_start(text: str) -> str:
    """The text of a start in the grammar in which operators write it."""
    match parse_start(text):
        case AtTime(time_us):
            return text_of_us(time_us)
        case _:
            return text


def parse_start(text: str) -> StartPoint:
    """Read the text of a start.

    Raises:
        IllegalArgument: the text has another form, or its number is out of bounds.
    """
    if text == "now":
        return Now()
    if text == "earliest":
        return Earliest()
    number = text[1:]
    if text[:1] in ("@", "=") and number.isascii() and number.isdigit() and len(number) <= 19:
        value = int(number)
        if value <= OFFSET_MAX:
            return AtTime(value) if text[0] == "@" else AtOffset(value)
    raise IllegalArgument(
        argument="start", rule="it is now, earliest, @MICROSECONDS or =OFFSET, not " + repr(text)
    )
