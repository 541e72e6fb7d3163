"""Groups that lose to retention what they have not acknowledged: told before, and counted once."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress, Range
from dss_sim.played_groups import Plant
from dssd.clock import Clock
from dssd.events.events import Events
from dssd.events.kinds import RETENTION_LOST
from dssd.events.model import Event
from dssd.events.teller import Teller
from dssd.leaders.progress_columns import packed_ranges
from dssd.leaders.retention_losses import RetentionLosses, unacked
from dssd.limits import UNREAD_TOLD_EVERY_MS
from dssd.machines.start_point import Earliest
from dssd.store.port import Put
from dssd.store.rows import EventRow, GroupRow, ProgressRow
from dssd.topics.retention import RetentionSchedule
from support.heard_events import Heard


class SetClock(Clock):
    """Both clocks stand where the test sets them."""

    __slots__ = ("passed_ms",)

    def __init__(self) -> None:
        self.passed_ms = 1

    def now_ms(self) -> int:
        return self.passed_ms

    def wall_ms(self) -> int:
        return 1_000 + self.passed_ms


class Scene:
    """A topic of two streams with ten records each, and who is told of what goes."""

    def __init__(self, plant: Plant, streams: tuple[StreamId, ...]) -> None:
        self.plant = plant
        self.streams = streams
        self.clock = SetClock()
        heard = Heard()
        self.told = heard.events
        self.losses = self.counting(heard)

    def counting(self, teller: Teller) -> RetentionLosses:
        plant = self.plant
        return RetentionLosses(plant.catalogue, plant.groups, plant.registry, self.clock, teller)

    async def goes(self, going: Mapping[StreamId, Range]) -> None:
        await self.losses.about_to_go(self.plant.catalogue.get("orders"), going)

    async def acked(self, group: GroupRow, stream: StreamId, progress: Progress) -> None:
        key = (group.group_id, *stream)
        found = await self.plant.store.read(ProgressRow, key)
        assert found is not None
        packed = packed_ranges(progress.ranges)
        row = replace(found.row, floor=progress.floor, ranges=packed)
        await self.plant.store.commit([Put(row)])

    def counts(self) -> dict[str, int]:
        return {loss.group: loss.records for loss in self.losses.losses()}


@pytest.fixture
async def scene(plant: Plant) -> Scene:
    streams = await plant.topic("orders", 2)
    for stream in streams:
        await plant.publish(stream, 10)
    return Scene(plant, streams)


@pytest.mark.parametrize(
    ("acked", "count"),
    [
        (Progress(0), 6),
        (Progress(2), 6),
        (Progress(5), 3),
        (Progress(8), 0),
        (Progress(9), 0),
        (Progress(0, ((1, 3), (4, 20))), 1),
        (Progress(0, ((4, 5), (7, 9))), 4),
    ],
)
def test_what_is_not_acknowledged_is_counted(acked: Progress, count: int) -> None:
    assert unacked(acked, 2, 8) == count


async def test_a_group_without_a_leader_is_told_of_by_its_rows(scene: Scene) -> None:
    one, other = scene.streams
    behind = await scene.plant.group("$share/behind/orders/#", Earliest())
    await scene.acked(behind, one, Progress(2, ((4, 6),)))
    await scene.plant.group("$share/done/orders/#")
    await scene.goes({one: (0, 7), other: (0, 3)})
    assert scene.counts() == {"behind": 3 + 3}
    assert scene.losses.records == 6
    [event] = scene.told
    assert (event.kind, event.subject) == (RETENTION_LOST, "behind@orders/#")
    assert event.sentence == (
        "Retention takes 6 records of topic orders that it has not acknowledged; "
        "6 since the daemon's start."
    )
    assert event.fields == {
        "group": "behind@orders/#",
        "topic": "orders",
        "records": "6",
        "records_since_start": "6",
        "exact": "true",
    }


async def test_a_led_group_is_told_of_by_what_its_leader_knows(scene: Scene) -> None:
    group = await scene.plant.group("$share/led/orders/#", Earliest())
    member = scene.plant.member(group, "m")
    member.want()
    for granted in await member.granted(2):
        member.report(granted, 4)
    view = scene.plant.registry.snapshot(group.group_id)
    while view is None or any(each.progress.floor < 4 for each in view.streams):
        await member.next(object)
        view = scene.plant.registry.snapshot(group.group_id)
    await scene.goes(dict.fromkeys(scene.streams, (0, 4)))
    assert scene.counts() == {}
    await scene.goes(dict.fromkeys(scene.streams, (0, 5)))
    assert scene.counts() == {"led": 2}


async def test_while_it_goes_on_it_is_told_now_and_then(scene: Scene) -> None:
    [one, _] = scene.streams
    await scene.plant.group("$share/behind/orders/#", Earliest())
    for at in range(4):
        await scene.goes({one: (at, at + 1)})
        scene.clock.passed_ms += UNREAD_TOLD_EVERY_MS // 2
    figures = [(told.fields["records"], told.fields["records_since_start"]) for told in scene.told]
    assert figures == [("1", "1"), ("1", "3")]
    assert scene.counts() == {"behind": 4}


async def test_a_group_that_caught_up_and_falls_behind_again_is_told_of_at_once(
    scene: Scene,
) -> None:
    [one, _] = scene.streams
    group = await scene.plant.group("$share/behind/orders/#", Earliest())
    await scene.goes({one: (0, 1)})
    await scene.acked(group, one, Progress(3))
    await scene.goes({one: (1, 3)})
    await scene.goes({one: (3, 4)})
    assert len(scene.told) == 2
    assert scene.counts() == {"behind": 2}


async def test_what_has_to_be_tried_again_is_counted_once(scene: Scene) -> None:
    [one, _] = scene.streams
    await scene.plant.group("$share/behind/orders/#", Earliest())
    for end in (2, 2, 2, 3):
        await scene.goes({one: (0, end)})
    assert scene.counts() == {"behind": 3}
    assert len(scene.told) == 1


async def test_where_a_filter_selects_a_part_the_count_says_so(scene: Scene) -> None:
    await scene.plant.group("$share/some/orders/eu/#", Earliest())
    await scene.goes({scene.streams[0]: (0, 2)})
    [loss] = scene.losses.losses()
    assert (loss.records, loss.exact) == (2, False)
    assert (loss.topic, loss.filter, loss.last_at_ms) == ("orders", "orders/eu/#", 1_001)


async def test_with_the_group_or_the_topic_its_losses_are_forgotten(scene: Scene) -> None:
    first = await scene.plant.group("$share/first/orders/#", Earliest())
    await scene.plant.group("$share/second/orders/#", Earliest())
    await scene.goes({scene.streams[0]: (0, 2)})
    await scene.plant.groups.remove(first.group_id)
    assert scene.counts() == {"second": 2}
    await scene.plant.catalogue.remove("orders")
    assert scene.counts() == {}
    assert scene.losses.records == 4


async def test_a_group_that_is_removed_meanwhile_loses_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = await scene.plant.group("$share/gone/orders/#")
    usual = scene.plant.registry.progress

    async def late(*given: object) -> object:
        await scene.plant.groups.remove(group.group_id)
        return await usual(*given)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(scene.plant.registry, "progress", late)
    await scene.goes({scene.streams[0]: (0, 2)})
    assert scene.counts() == {}


async def test_retention_tells_before_the_records_go(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, [one, other] = scene.plant, scene.streams
    topic = replace(plant.catalogue.get("orders"), retention_bytes=1)
    monkeypatch.setattr(plant.catalogue, "topics", lambda: (topic,))
    await plant.group("$share/behind/orders/#", Earliest())
    held: list[list[int]] = []
    usual = scene.losses.about_to_go

    async def seen(*given: object) -> None:
        await usual(*given)  # type: ignore[arg-type]  # passed on as they came
        held.append([plant.log.bounds(stream).start for stream in scene.streams])

    monkeypatch.setattr(scene.losses, "about_to_go", seen)
    schedule = RetentionSchedule(plant.catalogue, plant.log, plant.clock, scene.losses)
    assert await schedule.enforce() == 0, "what takes frames stays"
    assert await plant.log.roll(one.storage_topic_id)
    assert await schedule.enforce() == 1
    assert held == [[0, 0]]
    assert plant.log.bounds(other).start == 10
    assert scene.counts() == {"behind": 20}


async def test_what_is_lost_is_told_durably_before_it_goes(scene: Scene) -> None:
    store = scene.plant.store
    await scene.plant.group("$share/behind/orders/#", Earliest())
    async with await Events.open(store, scene.clock) as events:
        await events.tell(Event(RETENTION_LOST, "another", "The writer rests after this."))
        orders = scene.plant.catalogue.get("orders")
        await scene.counting(events).about_to_go(orders, {scene.streams[0]: (0, 7)})
        subjects = [found.row.subject for found in await store.scan(EventRow)]
    assert subjects == ["another", "behind@orders/#"]
