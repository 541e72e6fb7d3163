"""What became of the records of a stream, beside being acknowledged: docs/protocol.md, "The fate of
records".

Reports, grants and rows share this one value under both protocols. Invariant: merging is monotone
and gives the same in any order, so reports of a grant may come late, doubled or out of order:
counts only rise, the later due time of a rest wins, and damaged ranges are forgotten only beyond
`DAMAGED_RANGES_MAX` of them. This module does not know how attempts or due times affect delivery.
"""

from dataclasses import dataclass
from typing import NamedTuple

from dss_core.limits import RESTORE_OFFSETS_RAISED
from dss_core.progress import Progress, Ranges, normalised
from dssd.limits import DAMAGED_RANGES_MAX
from dssd.machines.attempts import Attempts, Rests, merged_attempts


class Counts(NamedTuple):
    """How many offsets are done in a group, by kind. Their sum is the number of offsets that
    progress has covered since the group began."""

    acked: int = 0
    """By the user."""
    filtered: int = 0
    """The group's filter rejects them."""
    lost: int = 0
    """Lost to retention, or in a gap that a loss of power left."""
    damaged: int = 0
    """Confirmed unreadable, and passed over."""
    moved: int = 0
    """Passed over by operators, minus those that they reopened; constant within a grant."""
    retried: int = 0
    """They went to a queue after a failure, or back from the dead letters."""

    def plus(self, kind: str, offsets: int) -> "Counts":
        """The counts with so many more of a kind."""
        return self._replace(**{kind: getattr(self, kind) + offsets})

    def without_restores(self) -> "Counts":
        """The counts of one stream, without the gaps that restores from backups left."""
        return self._replace(lost=self.lost % RESTORE_OFFSETS_RAISED)

    def raised(self, other: "Counts") -> "Counts":
        """The higher count of each kind."""
        return Counts(*map(max, self, other))


NO_COUNTS = Counts()


@dataclass(frozen=True, slots=True)
class Fate:
    """What is known of a stream's records, beside progress and attempts."""

    failures: Attempts = ()
    """How often each unacked record surely failed: it was refused, its ack wait ran out, or its
    client vanished while it alone was out. It decides on dead letters; users see attempts."""
    doubts: Attempts = ()
    """How often a client vanished, or did not answer a revoke, while the unacked record was out
    with it: it may have died of the record."""
    rests: Rests = ()
    """Unacked records that are not sent again before a time: a user said so, or they go alone."""
    damaged: Ranges = ()
    """Offsets that the group passed over because they are confirmed damaged; the newest ones."""
    counts: Counts = NO_COUNTS

    def merged(self, other: "Fate", progress: Progress) -> "Fate":
        """Both merged, without records that the progress acknowledges."""
        if self == other and not (self.failures or self.doubts or self.rests):
            return self
        damaged = self.damaged
        if other.damaged != damaged:
            damaged = normalised((*damaged, *other.damaged))[-DAMAGED_RANGES_MAX:]
        return Fate(
            merged_attempts(self.failures, other.failures, progress),
            merged_attempts(self.doubts, other.doubts, progress),
            merged_attempts(self.rests, other.rests, progress),
            damaged,
            self.counts.raised(other.counts),
        )


NO_FATE = Fate()
