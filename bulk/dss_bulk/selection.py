"""Which records of a range a job takes: by subject, key, headers and time.

Invariant: a record is taken if every condition that was given holds for it. This module says which
records; how columns are looked through is in `dss_bulk.selecting`, so a driver on Spark loads no
Arrow for it.
"""

from dataclasses import dataclass

from dss_core.filters import TopicFilter


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """The conditions of one job; all that is absent holds for every record."""

    subject: TopicFilter | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    """Name and value; a record has each of them, perhaps among others of that name."""
    append_from_us: int | None = None
    append_until_us: int | None = None
    """Before this time, not at it."""
