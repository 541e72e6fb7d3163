"""A session's scheduler: who does not answer a leave, and who waits while it works."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dss_sim.played_groups import MovedClock, Plant
from dss_sim.played_sessions import Attached, Hall, opened_hall
from dssd.events.kinds import STREAM_STALLED
from dssd.events.model import Event
from dssd.limits import REVOKE_REPORT_SHARE, UNSUBSCRIBE_MS
from dssd.machines.delivery.events import DeliveryInput, Grown
from dssd.sessions.client_items import Revoke, Status, Unsubscribe, UnsubscribedItem
from dssd.store.memory import MemoryStore

GROUP = "$share/g/orders/#"
REPORT_MS = int(UNSUBSCRIBE_MS * REVOKE_REPORT_SHARE)


class LeapingClock(MovedClock):
    """Leaps ahead where the test lets it; between leaps it runs as the machine's."""

    __slots__ = ("leapt_ms",)

    def __init__(self) -> None:
        super().__init__()
        self.leapt_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.leapt_ms


@pytest.fixture
def clock() -> LeapingClock:
    return LeapingClock()


@pytest.fixture
def told() -> list[Event]:
    """The events that sessions note."""
    return []


@pytest.fixture
async def hall(clock: LeapingClock, tmp_path: Path, told: list[Event]) -> AsyncIterator[Hall]:
    store = MemoryStore()
    plant = Plant(tmp_path / "log", store)
    plant.clock = clock
    await plant.start()
    async with opened_hall(plant, told.append) as opened:
        yield opened
    await plant.stop()
    await store.close()


async def look_at_the_clock(client: Attached) -> None:
    """Let the pump of the client's session run once, as its alarm would."""
    client.session._scheduler._wake.set()
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_member_that_does_not_answer_a_leave_is_gone_after_its_timeout(
    hall: Hall, clock: LeapingClock
) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 4)
    async with hall.attached("silent") as client, hall.attached("other") as other:
        client.answers_revokes = False
        await client.subscribe(GROUP)
        taken = await client.records(4)
        await client.ack(taken[0][0], 0, 2)
        await client.session.take(Unsubscribe(1))
        await client.next(Revoke)
        clock.leapt_ms += REPORT_MS - 1_000
        await look_at_the_clock(client)
        assert client.session.subscriptions == 1, "it still may say what it has handed out"
        clock.leapt_ms += 1_000 + UNSUBSCRIBE_MS - REPORT_MS
        await look_at_the_clock(client)
        await client.next(UnsubscribedItem)
        assert client.session.subscriptions == 0
        await other.subscribe(GROUP)
        again = await other.records(2)
    assert [(offset, redelivered) for _, offset, redelivered, _ in again] == [(2, True), (3, True)]


async def test_the_pump_gives_way_after_so_many_inputs(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.sessions.scheduler.SESSION_STEP_INPUTS_MAX", 2)
    streams = await hall.plant.topic("orders", 8)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        for _ in streams:
            await client.granted()
        scheduler = client.session._scheduler
        turns: list[int] = []
        turn = 0
        usual = scheduler.feed

        def seen(given: DeliveryInput) -> None:
            if isinstance(given, Grown):
                turns.append(turn)
            usual(given)

        monkeypatch.setattr(scheduler, "feed", seen)
        for grant in list(scheduler._grants):
            scheduler._note_grown(grant)
        while len(turns) < len(streams):
            await asyncio.sleep(0)
            turn += 1
    assert [turns.count(each) for each in sorted(set(turns))] == [2, 2, 2, 2]


async def test_a_stream_that_is_stalled_is_told_of_with_its_group_and_client(
    hall: Hall, told: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("window", "stream"):
        monkeypatch.setattr(f"dssd.machines.delivery.{module}.ACKED_RANGES_MAX", 8)
    monkeypatch.setattr("dssd.machines.delivery.stream.RANGES_ADDED_MAX", 4)
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 40)
    async with hall.attached("holder") as client:
        await client.subscribe(GROUP)
        (grant, *_), *_ = await client.records(40)
        for offset in range(1, 40, 2):
            await client.ack(grant, offset, offset + 1)
        shown = await client.next(Status, state="stalled")
        assert "offset 0" in shown.reason
        [event] = told
        assert (event.kind, event.subject) == (STREAM_STALLED, "orders/0/0")
        assert event.fields == {"group": "g@orders/#", "client_id": "holder", "offset": "0"}
        assert "offset 0" in event.sentence
        await client.ack(grant, 0, 40)
        await client.next(Status, state="active")
    assert len(told) == 1, "that it goes on is no event"
