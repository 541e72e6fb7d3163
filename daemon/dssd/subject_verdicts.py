"""A cache of verdicts on subject tables.

A producer's subject tables repeat from frame to frame, so a verdict is cached. A large table is
checked each time, so that the cache stays small.

Invariant: at most `entries_max` verdicts are kept, each on a table of at most
`SUBJECT_TABLE_CACHED_BYTES_MAX`; a new one replaces the oldest.
"""

from collections.abc import Hashable
from typing import TypeVar

from dssd.limits import SUBJECT_TABLE_CACHED_BYTES_MAX

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SubjectVerdicts(dict[K, V]):
    """Read it as a dict; write it by `keep` only."""

    __slots__ = ("_entries_max",)

    def __init__(self, entries_max: int) -> None:
        super().__init__()
        self._entries_max = entries_max

    def keep(self, key: K, table: bytes, verdict: V) -> None:
        """Keep a verdict on a table, unless that is too large."""
        if len(table) > SUBJECT_TABLE_CACHED_BYTES_MAX:
            return
        if len(self) >= self._entries_max:
            del self[next(iter(self))]
        self[key] = verdict
