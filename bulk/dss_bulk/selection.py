"""Which records of a range a job takes: by subject, key, headers and time.

Invariant: a record is taken if it meets every given condition. This module defines the conditions;
`dss_bulk.selecting` applies them to columns, so a driver on Spark loads no Arrow for them.
"""

from dataclasses import dataclass

from dss_core.filters import TopicFilter


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """The conditions of one job; an absent one holds for every record."""

    subject: TopicFilter | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    """Names and values; a record must have each of them, and may have others of those names."""
    append_from_us: int | None = None
    append_until_us: int | None = None
    """Records before this time, not at it."""
