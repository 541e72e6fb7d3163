"""How tasks read their arguments: one grammar for all of them.

Invariant: what cannot be read is refused with the text and the rule, when the schedule is made.
"""

import re
from collections.abc import Callable

from dss_core.errors import IllegalArgument
from dss_core.times import parse_span_ms

_SIZE = re.compile(r"([0-9]{1,12})([BKMGT])", re.IGNORECASE)
_UNITS_BYTES = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def text(written: str) -> str:
    """As it is."""
    return written


def size_bytes(written: str) -> int:
    """``16M``, in bytes.

    Raises:
        IllegalArgument: it is none, or zero.
    """
    found = _SIZE.fullmatch(written)
    if found is None or int(found[1]) == 0:
        raise IllegalArgument(argument=f"the size '{written}'", rule="write 16M or 4096B")
    return int(found[1]) * _UNITS_BYTES[found[2].upper()]


def span_ms(written: str) -> int | None:
    """``15m``, in milliseconds; None where it is empty.

    Raises:
        IllegalSpan: it is none.
    """
    return parse_span_ms(written) if written else None


def number(low: int, high: int) -> Callable[[str], int | None]:
    """A number within bounds; None where it is empty."""

    def parse(written: str) -> int | None:
        if not written:
            return None
        if not (written.isascii() and written.isdecimal() and low <= int(written) <= high):
            rule = f"it is {low:,} to {high:,}"
            raise IllegalArgument(argument=f"the number '{written}'", rule=rule)
        return int(written)

    return parse


def names(written: str) -> tuple[str, ...]:
    """``a,b``; nothing where it is empty."""
    return tuple(name.strip() for name in written.split(",") if name.strip())
