"""What is counted of a group and of each of its streams: rates, and what became of records.

Invariant: frozen values; no wire message leaves this module. It is apart from the answers to what
operators ask, because every list of groups needs it and nothing of them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rates:
    """Records a second."""

    minute: float
    """Averaged over a minute."""
    five_minutes: float


@dataclass(frozen=True, slots=True)
class Fates:
    """How many records a group is done with, by what became of them."""

    acked: int
    filtered: int
    """The filter rejects them."""
    lost: int
    """To retention, or to a loss of power."""
    damaged: int
    """Confirmed unreadable, and passed over."""
    moved: int
    """Operators passed over so many more than they reopened; may be negative."""
