"""Selects kept events, and reads them from the store.

Invariant: events come by number, each once, and one read holds up commits for a page at most.
"""

from dataclasses import dataclass

from dssd.events.columns import kept_in
from dssd.events.limits import EVENTS_PAGE_ROWS
from dssd.events.model import PRINCIPAL_FIELD, KeptEvent, Severity
from dssd.store.port import Store
from dssd.store.rows import EventRow


@dataclass(frozen=True, slots=True)
class EventSelection:
    """What is wanted."""

    since_ms: int | None = None
    """Told last at this wall time or later."""
    severity_min: Severity = Severity.INFO
    subject_prefix: str = ""
    codes: frozenset[str] = frozenset()
    """All where empty."""
    principal: str = ""
    """The principal who caused the event; empty: anybody."""

    def wants(self, event: KeptEvent) -> bool:
        """Whether it is wanted."""
        return (
            event.severity >= self.severity_min
            and (self.since_ms is None or event.last_at_ms >= self.since_ms)
            and event.subject.startswith(self.subject_prefix)
            and (not self.codes or event.code in self.codes)
            and (not self.principal or event.fields.get(PRINCIPAL_FIELD) == self.principal)
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Some events by number."""

    events: tuple[KeptEvent, ...]
    last: int
    """All events up to this number were examined: the next page begins after it."""
    is_whole: bool
    """Whether nothing more was there."""


async def first_after(store: Store, selection: EventSelection, after: int, limit: int) -> Page:
    """The first wanted events after a number, at most so many.

    Raises:
        DssError: the store cannot be read.
    """
    found: list[KeptEvent] = []
    while True:
        rows = await _rows_after(store, after, EVENTS_PAGE_ROWS)
        for event in rows:
            after = event.number
            if selection.wants(event):
                found.append(event)
            if len(found) == limit:
                return Page(tuple(found), after, is_whole=False)
        if len(rows) < EVENTS_PAGE_ROWS:
            return Page(tuple(found), after, is_whole=True)


async def last_of(
    store: Store, selection: EventSelection, last_number: int, limit: int
) -> tuple[KeptEvent, ...]:
    """The last wanted events up to a number, at most so many, the oldest of them first.

    Raises:
        DssError: the store cannot be read.
    """
    found: list[KeptEvent] = []
    upper = last_number
    while upper > 0 and len(found) < limit:
        start = max(0, upper - EVENTS_PAGE_ROWS)
        rows = await _rows_after(store, start, EVENTS_PAGE_ROWS)
        if not rows or rows[0].number > upper:
            break  # all before it were removed
        found[:0] = [each for each in rows if each.number <= upper and selection.wants(each)]
        upper = start
    return tuple(found[-limit:])


async def _rows_after(store: Store, after: int, limit: int) -> list[KeptEvent]:
    found = await store.scan(EventRow, after=(after,), limit=limit)
    return [kept_in(each.row) for each in found]
