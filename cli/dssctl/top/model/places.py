"""The places of the dashboard, and the way that led to the present one.

Invariant: a place has all that is needed to show it; the way to it is never empty.
"""

from dataclasses import dataclass, replace

from dssctl.top.model.wanted import EVERYTHING, Wanted


@dataclass(frozen=True, slots=True)
class Place:
    """A screen, and what it is about."""

    noun: str
    """The noun of a screen."""
    group: str = ""
    """NAME@FILTER, if it is about a group."""
    stream: str = ""
    name: str = ""
    """The name of a topic, a client, an operation, an event or a job; in a queue, of an error or a
    record."""
    offset: int | None = None
    """The offset of a record; for a stream, of the first record shown."""
    key: bytes | None = None
    """The key of records in a queue."""
    lines: tuple[tuple[str, str], ...] = ()
    """For a page of facts: the page itself, which does not change."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """The column that rows are sorted by."""

    column: str
    descending: bool = True


@dataclass(frozen=True, slots=True)
class Visit:
    """A place, and how it is shown."""

    place: Place
    tab: int = 0
    """Which of its lists is shown."""
    wanted: Wanted = EVERYTHING
    faults_only: bool = False
    ordering: Ordering | None = None
    """None: the list's own order."""
    cursor: str = ""
    """The key of the chosen row; empty: the first row, whichever it is."""
    at: int = 0
    """The last position of that row."""
    first: int = 0
    """The row at the upper edge."""
    left: tuple["Visit", ...] = ()
    """The state in which its other lists were left."""

    def on_tab(self, tab: int) -> "Visit":
        """The same place with another of its lists."""
        if tab == self.tab:
            return self
        known = next((each for each in self.left if each.tab == tab), Visit(self.place, tab))
        others = tuple(each for each in self.left if each.tab not in (tab, self.tab))
        return replace(known, left=(*others, replace(self, left=())))


@dataclass(frozen=True, slots=True)
class Way:
    """The places from the first one to the present one."""

    visits: tuple[Visit, ...]

    @classmethod
    def starting(cls, place: Place) -> "Way":
        """A way of one place."""
        return cls((Visit(place),))

    @property
    def here(self) -> Visit:
        """The present visit."""
        return self.visits[-1]

    def seeing(self, visit: Visit) -> "Way":
        """The same place, shown differently."""
        return Way((*self.visits[:-1], visit))

    def into(self, place: Place) -> "Way":
        """One place further, unless that is the present one."""
        return self if place == self.here.place else Way((*self.visits, Visit(place)))

    def back(self) -> "Way":
        """One place back, as it was left; the first one stays."""
        return Way(self.visits[:-1]) if len(self.visits) > 1 else self
