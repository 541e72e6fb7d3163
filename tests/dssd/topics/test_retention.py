from collections.abc import Mapping

import pytest

from dss_core.errors import DiskFull, DssError, Overloaded, StreamNotFound
from dss_core.ids import StreamId
from dss_core.progress import Range
from dssd.clock import Clock
from dssd.log.port import AboutToGo
from dssd.store.memory import MemoryStore
from dssd.topics.catalogue import Catalogue, NewTopic, Topic
from dssd.topics.retention import RetentionSchedule
from support.noted_log import NotedLog

NOW_US = 1_700_000_000_000_000


class StillClock(Clock):
    """Stands at one time."""

    def wall_us(self) -> int:
        return NOW_US


class Told:
    """Readers who have nothing to lose."""

    async def about_to_go(self, topic: Topic, going: Mapping[StreamId, Range]) -> None:
        """Let it go."""


class Asked(NotedLog):
    """A log that writes down what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[int | None, int | None, int]] = []
        self.removed: set[int] = set()
        self.bytes: dict[int, int] = {}
        self.refused: dict[int, DssError] = {}

    def kept_bytes(self, storage_topic_id: int) -> int:
        return self.bytes.get(storage_topic_id, 0)

    async def enforce_retention(
        self,
        storage_topic_id: int,
        retention_ms: int | None,
        retention_bytes: int | None,
        now_us: int,
        about_to_go: AboutToGo | None = None,
    ) -> int:
        if storage_topic_id in self.removed:
            raise StreamNotFound(stream=storage_topic_id)
        if storage_topic_id in self.refused:
            raise self.refused[storage_topic_id]
        self.calls.append((retention_ms, retention_bytes, now_us))
        return 2


async def test_only_topics_with_a_retention_are_trimmed() -> None:
    log = Asked()
    catalogue = await Catalogue.open(MemoryStore(), log)
    await catalogue.create(NewTopic("kept", 1))
    await catalogue.create(NewTopic("aged", 1, retention_ms=60_000))
    await catalogue.create(NewTopic("sized", 1, retention_bytes=1_000))
    assert await RetentionSchedule(catalogue, log, StillClock(), Told()).enforce() == 4
    assert log.calls == [(60_000, None, NOW_US), (None, 1_000, NOW_US)]


async def test_a_bound_on_bytes_is_that_of_the_topic_and_the_oldest_go_first() -> None:
    log = Asked()
    catalogue = await Catalogue.open(MemoryStore(), log)
    topic = await catalogue.create(NewTopic("sized", 1, retention_bytes=1_000))
    for ordinal in (1, 2):
        await catalogue.add_storage_topic(topic.topic_id, ordinal, ordinal + 1)
        await catalogue.switch(topic.topic_id, ordinal)
    parts = catalogue.get("sized").storage_topics
    for part, size in zip(parts, (500, 700, 400), strict=True):
        log.bytes[part.storage_topic_id] = size
    await RetentionSchedule(catalogue, log, StillClock(), Told()).enforce()
    assert [share for _, share, _ in log.calls] == [0, 600, 1_000]


async def test_a_topic_that_goes_meanwhile_stops_nothing() -> None:
    log = Asked()
    catalogue = await Catalogue.open(MemoryStore(), log)
    going = await catalogue.create(NewTopic("going", 1, retention_ms=1))
    await catalogue.create(NewTopic("staying", 1, retention_ms=1))
    log.removed.add(going.producing.storage_topic_id)
    assert await RetentionSchedule(catalogue, log, StillClock(), Told()).enforce() == 2


class SetClock(Clock):
    """Its wall clock is ahead of the time that passes by as much as it is told."""

    def __init__(self) -> None:
        self.ahead_us = 0
        self.passed_ms = 0

    def now_ms(self) -> int:
        return self.passed_ms

    def wall_us(self) -> int:
        return NOW_US + self.passed_ms * 1_000 + self.ahead_us


async def test_a_clock_that_jumps_ahead_deletes_nothing_for_its_age(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log, clock = Asked(), SetClock()
    catalogue = await Catalogue.open(MemoryStore(), log)
    await catalogue.create(NewTopic("aged", 1, retention_ms=60_000))
    await catalogue.create(NewTopic("both", 1, retention_ms=60_000, retention_bytes=5))
    schedule = RetentionSchedule(catalogue, log, clock, Told())
    clock.passed_ms = 48 * 3_600_000
    assert await schedule.enforce() == 4, "time that passed counts, however long it was"
    clock.ahead_us = 3_601 * 1_000_000
    log.calls.clear()
    for _ in range(2):
        assert await schedule.enforce() == 2
    assert [call[:2] for call in log.calls] == [(None, 5)] * 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    clock.ahead_us = 0
    assert await schedule.enforce() == 4, "it was set back"
    clock.ahead_us = 3_601 * 1_000_000
    assert await RetentionSchedule(catalogue, log, clock, Told()).enforce() == 4, (
        "a start takes its word"
    )


@pytest.mark.parametrize("refusal", [DiskFull(), Overloaded(what="anything", limit=1)])
async def test_a_refusal_puts_one_topic_off_and_no_other(refusal: DssError) -> None:
    log = Asked()
    catalogue = await Catalogue.open(MemoryStore(), log)
    full = await catalogue.create(NewTopic("full", 1, retention_ms=1))
    await catalogue.create(NewTopic("fine", 1, retention_ms=1))
    log.refused[full.producing.storage_topic_id] = refusal
    schedule = RetentionSchedule(catalogue, log, StillClock(), Told())
    assert await schedule.enforce() == 2
    log.refused.clear()
    assert await schedule.enforce() == 4
