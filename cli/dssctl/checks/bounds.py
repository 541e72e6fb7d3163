"""Bounds with a unit, and the status of a value under them.

Invariant: a bound is written with the unit of its value, or refused: nothing is guessed.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import typer

from dss_core.counted import bytes_text
from dss_core.times import parse_span_ms, text_of_span
from dssctl.quantities import size_bytes

_COUNT = re.compile(r"([0-9]{1,15})([kM]?)")
_PERCENT = re.compile(r"([0-9]{1,2}(?:\.[0-9]{1,3})?)%")
_THOUSANDS = {"": 1, "k": 1_000, "M": 1_000_000}


class Status(IntEnum):
    """Nagios statuses; each is its exit code."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class Unit:
    """What is measured, how its bounds are written and printed, and which direction is bad."""

    name: str
    """``records``, ``seconds``: the end of a metric's name, in the unit that Prometheus wants."""
    read: Callable[[str], float]
    shown: Callable[[float], str]
    low_is_bad: bool = False
    tells_bound: bool = True
    """Whether the bound tells a person anything beyond the value."""
    metric_factor: float = 1.0
    """The factor from a value to that of the metric."""
    performance_factor: float = 1.0
    """The same for Nagios."""
    performance_unit: str = ""
    """The unit in Nagios' notation."""


def count_of(text: str) -> float:
    """A number like ``500``, ``50k`` or ``2M``.

    Raises:
        typer.BadParameter: it is not a number.
    """
    found = _COUNT.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"'{text}' is no number; write 500, 50k or 2M.")
    return float(int(found[1]) * _THOUSANDS[found[2]])


def span_ms_of(text: str) -> float:
    """A span like ``5m``, in milliseconds.

    Raises:
        IllegalSpan: it is not a span.
    """
    return float(parse_span_ms(text))


def share_of(text: str) -> float:
    """A share like ``10%``, as a fraction.

    Raises:
        typer.BadParameter: it is not a share.
    """
    found = _PERCENT.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"'{text}' is no share; write 10%, or an amount like 20G.")
    return float(found[1]) / 100


def _count_shown(value: float) -> str:
    return f"{value:,.0f}"


RECORDS = Unit("records", count_of, _count_shown)
MEMBERS = Unit("members", count_of, _count_shown, low_is_bad=True)
STREAMS = Unit("streams", count_of, _count_shown)
AGE = Unit(
    "seconds",
    span_ms_of,
    lambda value: text_of_span(int(value)),
    metric_factor=0.001,
    performance_unit="ms",
)
LEFT = Unit(
    "seconds",
    span_ms_of,
    lambda value: text_of_span(int(value)),
    metric_factor=0.001,
    performance_unit="ms",
    low_is_bad=True,
)
FREE_BYTES = Unit(
    "free_bytes",
    lambda text: float(size_bytes(text)),
    lambda value: bytes_text(int(value)),
    low_is_bad=True,
    performance_unit="B",
)
FREE_SHARE = Unit(
    "free_ratio",
    share_of,
    lambda value: f"{value * 100:.1f}%",
    low_is_bad=True,
    performance_factor=100,
    performance_unit="%",
)


def presence(shown: str) -> Unit:
    """1 if something is there, 0 if it is not."""
    return Unit("serving", float, lambda _: shown, low_is_bad=True, tells_bound=False)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The values from which on it is bad."""

    unit: Unit
    warn: float | None = None
    crit: float | None = None

    def status(self, value: float) -> Status:
        """The status of a value."""
        if self._is_beyond(value, self.crit):
            return Status.CRITICAL
        return Status.WARNING if self._is_beyond(value, self.warn) else Status.OK

    def broken_by(self, value: float) -> str:
        """Which bound a value breaks, as a person reads it; empty if none."""
        broken = {Status.CRITICAL: self.crit, Status.WARNING: self.warn}.get(self.status(value))
        if broken is None or not self.unit.tells_bound:
            return ""
        return f" {'<' if self.unit.low_is_bad else '>='} {self.unit.shown(broken)}"

    def _is_beyond(self, value: float, bound: float | None) -> bool:
        if bound is None:
            return False
        return value < bound if self.unit.low_is_bad else value >= bound


def bounds_of(unit: Unit, warn: str | None, crit: str | None) -> Bounds:
    """The bounds that were written.

    Raises:
        typer.BadParameter: one is not such a quantity, or the warning is worse than the other.
        IllegalSpan: one is not a span.
    """
    low = None if warn is None else unit.read(warn)
    high = None if crit is None else unit.read(crit)
    if low is not None and high is not None and (low < high if unit.low_is_bad else low > high):
        raise typer.BadParameter(f"--warn {warn} lies beyond --crit {crit}.")
    return Bounds(unit, low, high)
