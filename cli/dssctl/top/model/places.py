"""Where one is in the dashboard: places, and the way that led there.

Invariant: a place says all that is needed to show it; the way to it is never empty.
"""

from dataclasses import dataclass, replace

from dssctl.top.model.wanted import EVERYTHING, Wanted


@dataclass(frozen=True, slots=True)
class Place:
    """What is looked at."""

    noun: str
    """A screen of the table of screens."""
    group: str = ""
    """NAME@FILTER, where it is about one."""
    stream: str = ""
    name: str = ""
    """Of a topic, a client, an operation, an event, a job; of a queue: an error, or a record."""
    offset: int | None = None
    """Of a record; of a stream: from where on its records are shown."""
    key: bytes | None = None
    """Of records in a queue."""
    lines: tuple[tuple[str, str], ...] = ()
    """Of a page of facts: the page itself, which stays as it was."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """By which column rows are sorted."""

    column: str
    descending: bool = True


@dataclass(frozen=True, slots=True)
class Visit:
    """A place, and how it is looked at."""

    place: Place
    tab: int = 0
    """Which of its lists is shown."""
    wanted: Wanted = EVERYTHING
    faults_only: bool = False
    ordering: Ordering | None = None
    """None: as the list has it by itself."""
    cursor: str = ""
    """The key of the chosen row; empty: the first, whichever that is."""
    at: int = 0
    """Where that row was last."""
    first: int = 0
    """The row at the upper edge."""
    left: tuple["Visit", ...] = ()
    """How the other lists of the place were left."""

    def on_tab(self, tab: int) -> "Visit":
        """The same place, with another of its lists."""
        if tab == self.tab:
            return self
        known = next((each for each in self.left if each.tab == tab), Visit(self.place, tab))
        others = tuple(each for each in self.left if each.tab not in (tab, self.tab))
        return replace(known, left=(*others, replace(self, left=())))


@dataclass(frozen=True, slots=True)
class Way:
    """The places from the first one to where one is."""

    visits: tuple[Visit, ...]

    @classmethod
    def starting(cls, place: Place) -> "Way":
        """A way of one place."""
        return cls((Visit(place),))

    @property
    def here(self) -> Visit:
        """Where one is."""
        return self.visits[-1]

    def seeing(self, visit: Visit) -> "Way":
        """The same place, looked at in another manner."""
        return Way((*self.visits[:-1], visit))

    def into(self, place: Place) -> "Way":
        """One place further; not where one is already."""
        return self if place == self.here.place else Way((*self.visits, Visit(place)))

    def back(self) -> "Way":
        """One place back, as it was left; the first one stays."""
        return Way(self.visits[:-1]) if len(self.visits) > 1 else self
