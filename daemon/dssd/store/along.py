"""Attaches a row to every commit of a call: neither is durable without the other.

The guard that begins a call does not know its commits, and the code that commits does not know the
call. Invariant: every commit of the call's task, or of a task that it started, writes the row until
the call ends; writing it again changes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dssd.store.port import Put, Write
from dssd.store.row import Row


class Along:
    """One attached row."""

    __slots__ = ("_row", "is_durable")

    def __init__(self, row: Row | None) -> None:
        self._row = row
        self.is_durable = False
        """A commit wrote it."""

    @property
    def writes(self) -> tuple[Write, ...]:
        """The additional writes of a commit."""
        return () if self._row is None else (Put(self._row),)

    def end(self) -> None:
        """Detach the row; tasks that the call started may live on."""
        self._row = None


_going: ContextVar[Along] = ContextVar("going", default=Along(None))  # noqa: B039 - it stays empty


def going() -> Along:
    """The attached row of the present task, if any."""
    return _going.get()


@contextmanager
def along(row: Row | None) -> Iterator[Along]:
    """Attach the row, if any, to all commits inside this block."""
    taken = Along(row)
    token = _going.set(taken)
    try:
        yield taken
    finally:
        _going.reset(token)
        taken.end()
