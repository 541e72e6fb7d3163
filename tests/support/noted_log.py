"""A log that only records the catalogue's calls."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dssd.log.port import Ends


class NotedLog:
    """Keeps the calls in order."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int]] = []

    def open_storage_topic(self, storage_topic_id: int, partitions: int) -> None:
        """Note the call."""
        self.told.append(("open", storage_topic_id, partitions))

    @asynccontextmanager
    async def sealing(self, storage_topic_id: int, heir: int | None = None) -> AsyncGenerator[Ends]:
        """Note the call; every stream ends at 5."""
        partitions = next(of for _, one, of in self.told if one == storage_topic_id)
        yield Ends((5,) * partitions, 7_000)
        self.told.append(("seal", storage_topic_id, 0))

    async def remove_storage_topic(self, storage_topic_id: int) -> None:
        """Note the call."""
        self.told.append(("remove", storage_topic_id, 0))
