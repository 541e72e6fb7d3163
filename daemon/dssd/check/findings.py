"""What a check found, and how much it read. Pure."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Weight(StrEnum):
    """What a finding means."""

    DAMAGE = "damage"
    """Something that was stored cannot be read, or contradicts the rest."""
    NOTE = "note"
    """A start repairs it by itself, or an earlier start has."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the operator should know."""

    weight: Weight
    where: str
    """A file below the data directory, a stream, or a group."""
    what: str


@dataclass(slots=True)
class Report:
    """All that was found."""

    directory: Path
    deep: bool
    topics: int = 0
    segments: int = 0
    records: int = 0
    bytes_read: int = 0
    """Of frames whose checksums were compared."""
    findings: list[Finding] = field(default_factory=list)

    def damage(self, where: str | Path, what: str) -> None:
        """Something is lost or wrong."""
        self._add(Weight.DAMAGE, where, what)

    def note(self, where: str | Path, what: str) -> None:
        """Something is unusual."""
        self._add(Weight.NOTE, where, what)

    def count(self, weight: Weight) -> int:
        """How many findings have that weight."""
        return sum(finding.weight is weight for finding in self.findings)

    def _add(self, weight: Weight, where: str | Path, what: str) -> None:
        if isinstance(where, Path):
            where = str(where.relative_to(self.directory))
        self.findings.append(Finding(weight, where, what))
