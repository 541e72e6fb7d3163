from dss_core.errors import StreamNotFound
from dssd.clock import Clock
from dssd.store.memory import MemoryStore
from dssd.topics.catalogue import Catalogue, NewTopic
from dssd.topics.retention import RetentionSchedule

NOW_US = 1_700_000_000_000_000


class StillClock(Clock):
    """Stands at one time."""

    def wall_us(self) -> int:
        return NOW_US


class Asked:
    """A log that writes down what it was asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[int | None, int | None, int]] = []
        self.removed: set[int] = set()

    def open_storage_topic(self, storage_topic_id: int, partitions: int) -> None:
        """Nothing to open."""

    async def remove_storage_topic(self, storage_topic_id: int) -> None:
        """Nothing to remove."""

    async def enforce_retention(
        self,
        storage_topic_id: int,
        retention_ms: int | None,
        retention_bytes: int | None,
        now_us: int,
    ) -> int:
        if storage_topic_id in self.removed:
            raise StreamNotFound(stream=storage_topic_id)
        self.calls.append((retention_ms, retention_bytes, now_us))
        return 2


async def test_only_topics_with_a_retention_are_trimmed() -> None:
    log = Asked()
    catalogue = await Catalogue.open(MemoryStore(), log)
    await catalogue.create(NewTopic("kept", 1))
    await catalogue.create(NewTopic("aged", 1, retention_ms=60_000))
    await catalogue.create(NewTopic("sized", 1, retention_bytes=1_000))
    assert await RetentionSchedule(catalogue, log, StillClock()).enforce() == 4
    assert log.calls == [(60_000, None, NOW_US), (None, 1_000, NOW_US)]


async def test_a_topic_that_goes_meanwhile_stops_nothing() -> None:
    log = Asked()
    catalogue = await Catalogue.open(MemoryStore(), log)
    going = await catalogue.create(NewTopic("going", 1, retention_ms=1))
    await catalogue.create(NewTopic("staying", 1, retention_ms=1))
    log.removed.add(going.producing.storage_topic_id)
    assert await RetentionSchedule(catalogue, log, StillClock()).enforce() == 2
