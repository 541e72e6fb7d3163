"""The result of a check, and its formats for Nagios and for Prometheus."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dssctl.checks.bounds import Bounds, Status
from dssctl.output.model import Item


@dataclass(frozen=True, slots=True)
class Measured:
    """One value against its bounds."""

    label: str
    """What was measured: a group, a disk; empty if there is only one."""
    value: float
    bounds: Bounds
    note: str = ""
    """The reason, if it is known."""

    @property
    def status(self) -> Status:
        """The status of the value."""
        return self.bounds.status(self.value)

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        shown = self.bounds.unit.shown(self.value)
        of = f"{self.label} " if self.label else ""
        why = f" ({self.note})" if self.note else ""
        return f"{of}{shown}{self.bounds.broken_by(self.value)}{why}"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a check."""

    check: str
    """The check's name, such as ``lag``."""
    measured: tuple[Measured, ...]
    failure: str = ""
    """Why nothing is known; empty if something is."""

    @property
    def status(self) -> Status:
        """The worst status of all."""
        if self.failure:
            return Status.UNKNOWN
        return max((each.status for each in self.measured), default=Status.OK)

    @property
    def text(self) -> str:
        """The sentence of the worst value, and how many are as bad."""
        if self.failure:
            return self.failure
        if not self.measured:
            return f"{self.check}: there is nothing to check"
        bad = [each for each in self.measured if each.status is self.status]
        worst = max(bad, key=_badness)
        more = f", and {len(bad) - 1} more" if self.status and len(bad) > 1 else ""
        return f"{self.check}: {worst.sentence}{more}"

    @property
    def item(self) -> Item:
        """The item for programs."""
        return {
            "check": self.check,
            "status": self.status.name.lower(),
            "exit_code": self.status.value,
            "text": self.text,
            "measured": [
                {
                    "label": each.label or None,
                    "value": each.value,
                    "unit": each.bounds.unit.name,
                    "warn": each.bounds.warn,
                    "crit": each.bounds.crit,
                    "status": each.status.name.lower(),
                    "note": each.note or None,
                }
                for each in self.measured
            ],
        }


def nagios(result: Result) -> str:
    """A line with performance data."""
    data = " ".join(_performance(result.check, each) for each in result.measured)
    text = result.text.replace("|", "/")
    return f"{result.status.name}: {text}" + (f" | {data}" if data else "")


def prometheus(result: Result) -> Iterator[str]:
    """Lines for a textfile collector."""
    status = "dss_check_status"
    yield f"# HELP {status} 0 ok, 1 warning, 2 critical, 3 unknown."
    yield f"# TYPE {status} gauge"
    yield f'{status}{{check="{result.check}"}} {result.status.value}'
    names = dict.fromkeys(_metric(result, each) for each in result.measured)
    for name in names:
        yield f"# TYPE {name} gauge"
        for each in _of(name, result):
            label = f'{{of="{_escaped(each.label)}"}}' if each.label else ""
            yield f"{name}{label} {_digits(each.value * each.bounds.unit.metric_factor)}"


def _of(name: str, result: Result) -> Sequence[Measured]:
    return [each for each in result.measured if _metric(result, each) == name]


def _metric(result: Result, measured: Measured) -> str:
    return f"dss_check_{result.check}_{measured.bounds.unit.name}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _performance(check: str, measured: Measured) -> str:
    """A value with its bounds: ``3:`` means that lower values are bad."""
    label = (measured.label or check).replace("'", "''").replace("=", "_")
    unit = measured.bounds.unit
    behind = ":" if unit.low_is_bad else ""
    bounds = (measured.bounds.warn, measured.bounds.crit)
    limits = ";".join(
        "" if bound is None else f"{_digits(bound * unit.performance_factor)}{behind}"
        for bound in bounds
    )
    value = _digits(measured.value * unit.performance_factor)
    return f"'{label}'={value}{unit.performance_unit};{limits}"


def _digits(value: float) -> str:
    """A number without an exponent, and with no more digits than it needs."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _badness(measured: Measured) -> float:
    return -measured.value if measured.bounds.unit.low_is_bad else measured.value
