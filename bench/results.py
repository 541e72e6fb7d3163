"""Rounds of measurements: kept one by one, judged by medians of ratios of the same round."""

import json
import platform
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path

RESULTS = Path(__file__).parent / "results.json"


@dataclass(slots=True)
class Row:
    """One line of the table of targets."""

    name: str
    unit: str
    target: str
    """As people read it."""
    baseline: str = ""
    """The file that is the baseline, from the repository's root."""
    ratio_target: str = ""
    rounds: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    """Ours through the baseline of the same round."""

    def add(self, value: float, baseline: float | None = None) -> None:
        """Keep one round."""
        self.rounds.append(value)
        if baseline is not None:
            self.ratios.append(value / baseline)

    @property
    def median(self) -> float:
        """Of all rounds."""
        return statistics.median(self.rounds)

    @property
    def ratio(self) -> float | None:
        """Median of the rounds' ratios."""
        return statistics.median(self.ratios) if self.ratios else None


def write(rows: list[Row]) -> None:
    """Keep every round in results.json."""
    RESULTS.write_text(
        json.dumps(
            {
                "machine": f"{platform.machine()}, {platform.python_version()}",
                "rows": [{**asdict(row), "median": row.median, "ratio": row.ratio} for row in rows],
            },
            indent=1,
        )
        + "\n"
    )
