"""A row that goes along with what a call commits: neither is durable without the other.

Whoever begins a call does not know which commits it will make, and who commits does not know of the
call. Invariant: the row is written by every commit that the call's task makes, or a task that it
began, until the call is over; writing it again changes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dssd.store.port import Put, Write
from dssd.store.row import Row


class Along:
    """One row on its way."""

    __slots__ = ("_row", "is_durable")

    def __init__(self, row: Row | None) -> None:
        self._row = row
        self.is_durable = False
        """A commit wrote it."""

    @property
    def writes(self) -> tuple[Write, ...]:
        """What a commit writes besides its own."""
        return () if self._row is None else (Put(self._row),)

    def end(self) -> None:
        """Go along no more; tasks that the call began may live for long."""
        self._row = None


_going: ContextVar[Along] = ContextVar("going", default=Along(None))  # noqa: B039 - it stays empty


def going() -> Along:
    """What goes along with a commit that is made now."""
    return _going.get()


@contextmanager
def along(row: Row | None) -> Iterator[Along]:
    """Have the row, if any, go along with all that is committed within."""
    taken = Along(row)
    token = _going.set(taken)
    try:
        yield taken
    finally:
        _going.reset(token)
        taken.end()
