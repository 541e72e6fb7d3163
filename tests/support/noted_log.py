"""A log that only notes what the catalogue tells it."""


class NotedLog:
    """Keeps it in order."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int]] = []

    def open_storage_topic(self, storage_topic_id: int, partitions: int) -> None:
        """Note it."""
        self.told.append(("open", storage_topic_id, partitions))

    async def remove_storage_topic(self, storage_topic_id: int) -> None:
        """Note it."""
        self.told.append(("remove", storage_topic_id, 0))
