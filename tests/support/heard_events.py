"""Keeps events in a list, and can refuse them as a full disk does."""

from dss_core.errors import DiskFull
from dssd.events.columns import drafted
from dssd.events.model import Event
from dssd.store.rows import EventRow


class Heard:
    """Implements `dssd.events.teller.Teller`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.drafts: list[EventRow] = []
        """Drafts whose event has not been told yet."""
        self.full = False
        """Whether the disk has no room for events that must be durable."""

    def note(self, event: Event, draft: EventRow | None = None) -> None:
        """Keep the event in place of its draft."""
        self.events.append(event)
        if draft is not None:
            self.drafts.remove(draft)

    async def tell(self, event: Event) -> int:
        """Keep the event, unless the disk is full."""
        if self.full:
            raise DiskFull
        self.events.append(event)
        return len(self.events)

    def draft(self, event: Event, again: EventRow | None = None) -> EventRow:
        """A draft that is kept until its event is told."""
        if again is not None:
            self.drafts.remove(again)
        number = again.number if again else -1 - len(self.events) - len(self.drafts)
        self.drafts.append(drafted(event, number, 0))
        return self.drafts[-1]

    def told(self) -> list[tuple[str, str, str]]:
        """The events that were told: code, subject, sentence."""
        return [(event.kind.code, event.subject, event.sentence) for event in self.events]
