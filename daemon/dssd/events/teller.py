"""Whoever keeps events, as the parts that tell them see it.

A *draft* is the row of an event that must not be missing once something else is durable: it is
committed with that, under a number below 0. Telling the event with its draft gives it its own
number and removes the draft, in one commit; of drafts that a daemon leaves, the next one tells.
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
    """Have the event durable on return, if the store takes it; else it waits."""
    try:
        await teller.tell(event)
    except DssError:
        teller.note(event)


class Unheard:
    """Keeps nothing: in a simulator, and in tests of other things."""

    def note(self, event: Event, draft: EventRow | None = None) -> None:
        """Drop it."""

    async def tell(self, event: Event) -> int:
        """Drop it."""
        return 0

    def draft(self, event: Event, again: EventRow | None = None) -> EventRow | None:
        """None."""
        return None
