"""Groups are told before retention takes what they have not acknowledged."""

from collections.abc import Mapping

import pytest

from dss_core.errors import StreamNotFound
from dss_core.ids import StreamId
from dss_core.progress import Range
from dss_sim.played_groups import Plant
from dssd.clock import Clock
from dssd.events.kinds import RETENTION_NEAR
from dssd.events.model import Event
from dssd.leaders.retention_ahead import RetentionAhead
from dssd.limits import UNREAD_TOLD_EVERY_MS
from dssd.machines.start_point import Earliest
from dssd.topics.catalogue import NewTopic

DAY_MS = 24 * 3_600 * 1_000


class SetClock(Clock):
    """The wall clock is ahead of the machine's by as much as the test sets."""

    __slots__ = ("ahead_ms", "passed_ms")

    def __init__(self) -> None:
        self.ahead_ms = 0
        self.passed_ms = 1

    def now_ms(self) -> int:
        return self.passed_ms

    def wall_us(self) -> int:
        return super().wall_us() + self.ahead_ms * 1_000


class Scene:
    """A topic of two streams with ten records each that is kept for a day, and what is told."""

    def __init__(self, plant: Plant, streams: tuple[StreamId, ...]) -> None:
        self.plant = plant
        self.streams = streams
        self.clock = SetClock()
        self.told: list[Event] = []
        self.trusts_wall = True
        self.ahead = RetentionAhead(
            plant.catalogue,
            plant.groups,
            plant.registry,
            plant.log,
            self.clock,
            self.told.append,
            trusts_wall=lambda: self.trusts_wall,
        )

    async def look(self) -> list[Event]:
        self.told.clear()
        await self.ahead.look()
        return list(self.told)


async def opened(plant: Plant, *, age: int | None = DAY_MS, size: int | None = None) -> Scene:
    topic = await plant.catalogue.create(
        NewTopic("orders", 2, retention_ms=age, retention_bytes=size)
    )
    streams = tuple(topic.producing.streams())
    for stream in streams:
        await plant.publish(stream, 10)
    return Scene(plant, streams)


async def test_what_is_young_is_not_told_of(plant: Plant) -> None:
    scene = await opened(plant)
    await plant.group("$share/behind/orders/#", Earliest())
    scene.clock.ahead_ms = DAY_MS * 89 // 100
    assert await scene.look() == []


async def test_what_is_nearly_too_old_is_told_of_by_stream(plant: Plant) -> None:
    scene = await opened(plant)
    await plant.group("$share/behind/orders/#", Earliest())
    await plant.group("$share/done/orders/#")
    scene.clock.ahead_ms = DAY_MS * 91 // 100
    told = await scene.look()
    assert [event.subject for event in told] == ["orders/0/0", "orders/0/1"]
    assert {event.kind for event in told} == {RETENTION_NEAR}
    assert told[0].sentence == (
        "Retention will soon take 10 records of it below offset 10 that group behind@orders/# "
        "has not acknowledged."
    )
    assert told[0].fields == {
        "group": "behind@orders/#",
        "records": "10",
        "end": "10",
        "exact": "true",
    }
    assert [plant.log.bounds(stream).start for stream in scene.streams] == [0, 0]


async def test_a_stream_is_told_of_once_an_hour(plant: Plant) -> None:
    scene = await opened(plant)
    await plant.group("$share/behind/orders/#", Earliest())
    scene.clock.ahead_ms = DAY_MS
    assert len(await scene.look()) == 2
    scene.clock.passed_ms += UNREAD_TOLD_EVERY_MS - 1
    assert await scene.look() == []
    scene.clock.passed_ms += 1
    assert len(await scene.look()) == 2


async def test_a_clock_that_is_not_trusted_warns_of_nothing(plant: Plant) -> None:
    scene = await opened(plant)
    await plant.group("$share/behind/orders/#", Earliest())
    scene.clock.ahead_ms = DAY_MS
    scene.trusts_wall = False
    assert await scene.look() == []


async def test_what_is_nearly_too_much_is_told_of(plant: Plant) -> None:
    scene = await opened(plant, age=None, size=10_000)
    await plant.group("$share/behind/orders/#", Earliest())
    one = scene.streams[0]
    assert await plant.log.roll(one.storage_topic_id)
    assert await scene.look() == []
    while plant.log.bounds(one).bytes < 9_600:
        await plant.publish(one, 10)
    assert plant.log.bounds(one).bytes < 10_000
    told = await scene.look()
    assert {event.fields["end"] for event in told} == {"10"}


@pytest.mark.parametrize("own", [0, 1])
async def test_beyond_the_bound_one_event_counts_the_rest(
    plant: Plant, own: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.leaders.retention_ahead.RETENTION_AHEAD_STREAMS_MAX", own)
    scene = await opened(plant)
    await plant.group("$share/some/orders/eu/#", Earliest())
    scene.clock.ahead_ms = DAY_MS
    told = await scene.look()
    assert [event.subject for event in told] == [*["orders/0/0"][:own], "some@orders/eu/#"]
    assert told[-1].fields["streams"] == str(2 - own)
    assert told[-1].fields["exact"] == "false"
    assert "at most" in told[-1].sentence


async def test_a_topic_that_goes_meanwhile_stops_nothing(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = await opened(plant)
    await plant.group("$share/behind/orders/#", Earliest())

    async def gone(*_given: object) -> Mapping[StreamId, Range]:
        raise StreamNotFound(stream="orders/0/0")

    monkeypatch.setattr(plant.log, "expiring", gone)
    assert await scene.look() == []
