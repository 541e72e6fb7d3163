"""The port through which parts of the daemon tell events.

A *draft* is the row of an event that must not be lost once a change is durable: the same commit
writes both, the draft under a number below 0. Telling the event with its draft gives it a number
and removes the draft, in one commit. If a daemon ends before that, the next one tells its drafts.
"""

from typing import Protocol

from dss_core.errors import DssError
from dssd.events.model import Event
from dssd.store.rows import EventRow


class Teller(Protocol):
    """Whoever keeps events."""

    def note(self, event: Event, draft: EventRow | None = None) -> None:
        """Keep the event soon."""

    async def tell(self, event: Event) -> int:
        """Keep the event; returns its number once it is durable.

        Raises:
            DiskFull, DiskFailed, Stopping: it is not kept.
        """

    def draft(self, event: Event, again: EventRow | None = None) -> EventRow | None:
        """A row to commit with what the event tells of; ``again``: the draft that it replaces.

        None where nobody keeps any.
        """


async def tell_if_room(teller: Teller, event: Event) -> None:
    """Return once the event is durable; if the store refuses it, keep it waiting instead."""
    try:
        await teller.tell(event)
    except DssError:
        teller.note(event)


class Unheard:
    """Keeps nothing: for a simulator, and for tests of other parts."""

    def note(self, event: Event, draft: EventRow | None = None) -> None:
        """Drop it."""

    async def tell(self, event: Event) -> int:
        """Drop it."""
        return 0

    def draft(self, event: Event, again: EventRow | None = None) -> EventRow | None:
        """None."""
        return None
