"""Where a group stands in its streams, by names and numbers that mean the same in another daemon.

Invariant: frozen values alone; no wire message leaves this package.
"""

from dataclasses import dataclass

from dss_core.changes import StreamOffsets

__all__ = ["GroupOffsets", "StreamOffsets"]


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """The progress of a group in all its streams."""

    group: str
    """NAME@FILTER."""
    streams: tuple[StreamOffsets, ...]
