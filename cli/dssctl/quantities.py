"""Spans of time and amounts of bytes, as options take them.

A bare number is refused: whether 30 means seconds or days is not for the tool to guess.
"""

import re

import typer

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_UNITS_BYTES = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_PART = re.compile(r"([0-9]{1,12})(ms|[smhdw])")
_SPAN = re.compile(rf"(?:{_PART.pattern})+")
_SIZE = re.compile(r"([0-9]{1,12})([BKMGT])")


def span_ms(text: str) -> int:
    """A span like ``7d`` or ``1h30m``, in milliseconds."""
    if not _SPAN.fullmatch(text):
        raise typer.BadParameter(f"'{text}' is not a span; write 7d, 1h30m or 500ms.")
    return sum(int(count) * _UNITS_MS[unit] for count, unit in _PART.findall(text))


def size_bytes(text: str) -> int:
    """An amount like ``10G`` or ``512M``, in bytes."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"'{text}' is not a size; write 512M, 10G or 4096B.")
    return int(found[1]) * _UNITS_BYTES[found[2]]
