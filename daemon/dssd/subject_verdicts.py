"""Verdicts on subject tables, kept under what they depend on.

The tables of a producer repeat from frame to frame, so to judge one twice is a waste; a large one
is judged anew each time, for all that are kept together must stay small.

Invariant: at most so many verdicts are kept, each on a table of at most
`SUBJECT_TABLE_CACHED_BYTES_MAX`; the oldest leaves for a new one.
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
