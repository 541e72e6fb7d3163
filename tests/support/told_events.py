"""A data directory with given events, on which no daemon runs."""

from collections.abc import Sequence
from pathlib import Path

from dssd.clock import Clock
from dssd.data_directory import DataDirectory
from dssd.events.events import Events
from dssd.events.model import Event
from dssd.store.sqlite import SqliteStore


class SetClock(Clock):
    """A clock that stands at a wall time."""

    __slots__ = ("at_ms",)

    def __init__(self, at_ms: int) -> None:
        self.at_ms = at_ms

    def wall_ms(self) -> int:
        """As it was set."""
        return self.at_ms


async def tell_in(path: Path, at_ms: int, events: Sequence[Event]) -> None:
    """Tell the events, as a daemon would have at that time; creates the directory if need be."""
    with DataDirectory(path) as directory:
        store = await SqliteStore.open(directory.store_path)
        async with await Events.open(store, SetClock(at_ms)) as opened:
            for event in events:
                await opened.tell(event)
        await store.close()
