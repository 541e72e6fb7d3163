"""The report of a row that makes no record; a value, which loads nothing."""

from typing import NamedTuple


class Reject(NamedTuple):
    """A row that makes no record."""

    file: str
    row: int
    """Counted from 0, in the file."""
    reason: str
