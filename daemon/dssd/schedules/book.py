"""The book of schedules: the rows of all schedules in memory.

Invariant: memory equals the committed rows. Only operations write definitions; the runner learns of
each change at once. This module does not know what a schedule does.
"""

from collections.abc import Callable
from contextlib import suppress

from dss_core.errors import ScheduleExists, ScheduleNotFound, TooManySchedules
from dssd.store.paging import scan_all
from dssd.store.port import Store
from dssd.store.schedule_rows import ScheduleRow

SCHEDULES_MAX = 100
"""Schedules with their rows and the 50 latest runs of each: 25 MB of the store at most."""


Changed = Callable[[ScheduleRow, bool], None]
"""Told of a row, and whether it was removed."""


class Book:
    """Built by `open`; lives as long as the daemon."""

    def __init__(self, rows: list[ScheduleRow]) -> None:
        self._by_name = {row.name: row for row in rows}
        self._changed: Changed | None = None

    @classmethod
    async def open(cls, store: Store) -> "Book":
        """Read what is kept."""
        return cls([found.row for found in await scan_all(store, ScheduleRow)])

    def rows(self) -> list[ScheduleRow]:
        """All of them, by name."""
        return [self._by_name[name] for name in sorted(self._by_name)]

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._by_name)

    def find(self, name: str) -> ScheduleRow | None:
        """The schedule of that name, if there is one."""
        return self._by_name.get(name)

    def get(self, name: str) -> ScheduleRow:
        """The schedule of that name.

        Raises:
            ScheduleNotFound: there is none.
        """
        with suppress(KeyError):
            return self._by_name[name]
        raise ScheduleNotFound(schedule=name)

    def require_room(self, name: str) -> None:
        """Check that one of that name may be made.

        Raises:
            ScheduleExists, TooManySchedules: it may not.
        """
        if name in self._by_name:
            raise ScheduleExists(schedule=name)
        if len(self._by_name) >= SCHEDULES_MAX:
            raise TooManySchedules(limit=SCHEDULES_MAX)

    def watch(self, changed: Changed) -> None:
        """Tell of each change from now on; one may be told."""
        self._changed = changed

    def note(self, row: ScheduleRow) -> None:
        """The row was committed."""
        self._by_name[row.name] = row
        if self._changed is not None:
            self._changed(row, False)

    def note_removed(self, row: ScheduleRow) -> None:
        """The row was removed."""
        self._by_name.pop(row.name, None)
        if self._changed is not None:
            self._changed(row, True)
