"""Which segments retention removes, by age and by bytes; `trimmer` does it. Pure.

Invariant: only whole segments are removed, none before an older one. The age of a segment is that
of its last frame. Removal by bytes never leaves fewer bytes than the limit.
"""

from collections.abc import Sequence
from typing import NamedTuple


class SegmentAge(NamedTuple):
    """What retention needs to know of a segment."""

    bytes: int
    last_us: int
    """Append time of its last frame; 0 where it has none."""


def expired(
    segments: Sequence[SegmentAge],
    *,
    retention_ms: int | None,
    retention_bytes: int | None,
    now_us: int,
) -> int:
    """How many segments, oldest first, are to be removed. A limit of None removes nothing."""
    by_age = 0
    if retention_ms is not None:
        oldest_kept_us = now_us - retention_ms * 1_000
        while by_age < len(segments) and 0 < segments[by_age].last_us < oldest_kept_us:
            by_age += 1
    by_bytes = 0
    if retention_bytes is not None:
        kept = sum(segment.bytes for segment in segments)
        while by_bytes < len(segments) and kept - segments[by_bytes].bytes >= retention_bytes:
            kept -= segments[by_bytes].bytes
            by_bytes += 1
    return max(by_age, by_bytes)
