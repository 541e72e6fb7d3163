"""Rates and latencies, from what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from dssctl.output.model import Item


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a run."""

    name: str
    """``publish``, ``deliver``, ``ack`` or ``end-to-end``."""
    records: int
    seconds: float
    bytes: int
    latencies_s: tuple[float, ...] = ()

    @property
    def item(self) -> Item:
        """The item for the renderer."""
        seconds = max(self.seconds, 1e-9)
        ordered = sorted(self.latencies_s)
        return {
            "part": self.name,
            "records": self.records,
            "seconds": round(self.seconds, 3),
            "records_per_s": round(self.records / seconds),
            "bytes_per_s": round(self.bytes / seconds),
            "p50_ms": _percentile_ms(ordered, 0.5),
            "p90_ms": _percentile_ms(ordered, 0.9),
            "p99_ms": _percentile_ms(ordered, 0.99),
            "max_ms": _percentile_ms(ordered, 1.0),
        }


def _percentile_ms(ordered: Sequence[float], share: float) -> float | None:
    """The value that this percentage of them does not exceed; None if there are none."""
    if not ordered:
        return None
    last = len(ordered) - 1
    return round(ordered[min(int(share * len(ordered)), last)] * 1_000, 3)
