"""Events that a part under test tells, kept in a list."""

from dss_core.errors import DiskFull
from dssd.events.model import Event


class Heard:
    """Implements `dssd.events.model.Teller`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.full = False
        """The disk has no room for events that must be durable."""

    def note(self, event: Event) -> None:
        """Keep it."""
        self.events.append(event)

    async def tell(self, event: Event) -> int:
        """Keep it, unless the disk is full."""
        if self.full:
            raise DiskFull
        self.events.append(event)
        return len(self.events)

    def told(self) -> list[tuple[str, str, str]]:
        """What was told: code, subject, sentence."""
        return [(event.kind.code, event.subject, event.sentence) for event in self.events]
