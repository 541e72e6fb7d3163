"""When the streams of a client are lent on whose connection was lost."""

import asyncio

import pytest

from dss_sim.played_groups import PATIENCE_S
from dss_sim.played_sessions import Attached, Hall
from dssd.limits import SILENT_HOLDER_MS
from dssd.machines.delivery.events import Deliver
from dssd.sessions.client_items import Granted, Opening, PingSent

GROUP = "$share/g/orders/#"
SURE_MS = 600
AT_ONCE_MS = SURE_MS / 2
"""Far above what it takes to lend on, and below what a client may be sure."""


@pytest.fixture
async def _topic(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dssd.sessions.lost_clients.SILENT_HOLDER_MS", SURE_MS)
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 2)


async def lent_on_ms(hall: Hall, lost: Attached, since_ms: int, client_id: str = "other") -> int:
    """After how long somebody else has what was lent to a client, which is lost now."""
    async with hall.attached(client_id) as other:
        await other.subscribe(GROUP)
        hall.sessions.detach(lost.session)
        await other.next(Granted)
        return hall.plant.clock.now_ms() - since_ms


@pytest.mark.parametrize("is_local", [False, True])
@pytest.mark.usefixtures("_topic")
async def test_a_client_that_may_live_keeps_its_streams_until_it_was_silent_for_its_time(
    hall: Hall, is_local: bool
) -> None:
    async with hall.attached("lost", is_local=is_local) as lost:
        await lost.subscribe(GROUP)
        await lost.next(Deliver)
        await lost.session.take(PingSent(1))
        said_ms = hall.plant.clock.now_ms()
        took_ms = await lent_on_ms(hall, lost, said_ms)
    if is_local:
        assert took_ms < AT_ONCE_MS
    else:
        assert SURE_MS <= took_ms < SURE_MS + AT_ONCE_MS


@pytest.mark.usefixtures("_topic")
async def test_a_client_that_said_that_it_goes_is_not_waited_for(hall: Hall) -> None:
    async with hall.attached("left", is_local=False) as left:
        await left.subscribe(GROUP)
        await left.next(Deliver)
        left.session.left = True
        assert await lent_on_ms(hall, left, hall.plant.clock.now_ms()) < AT_ONCE_MS


@pytest.mark.usefixtures("_topic")
async def test_a_client_that_was_silent_for_long_is_not_waited_for(hall: Hall) -> None:
    async with hall.attached("silent", is_local=False) as silent:
        await silent.subscribe(GROUP)
        await silent.next(Deliver)
        await asyncio.sleep(SURE_MS / 1_000)
        assert await lent_on_ms(hall, silent, hall.plant.clock.now_ms()) < AT_ONCE_MS


@pytest.mark.usefixtures("_topic")
async def test_a_client_that_comes_back_has_its_streams_at_once(hall: Hall) -> None:
    async with hall.attached("c", is_local=False, expiry_s=60) as lost:
        await lost.subscribe(GROUP)
        await lost.next(Deliver)
        hall.sessions.detach(lost.session)
        began_ms = hall.plant.clock.now_ms()
        async with hall.attached("c", session_id=lost.opened.session_id) as back:
            await back.subscribe(GROUP)
            await back.next(Deliver)
        assert hall.plant.clock.now_ms() - began_ms < AT_ONCE_MS


@pytest.mark.parametrize("is_lost_first", [True, False])
@pytest.mark.usefixtures("_topic")
async def test_whoever_takes_the_client_id_of_a_lost_client_waits_until_it_hands_out_no_more(
    hall: Hall, is_lost_first: bool
) -> None:
    async with hall.attached("c", is_local=False, expiry_s=60) as lost:
        lost.answers_revokes = False
        await lost.subscribe(GROUP)
        await lost.next(Deliver)
        await lost.session.take(PingSent(1))
        said_ms = hall.plant.clock.now_ms()
        if is_lost_first:
            hall.sessions.detach(lost.session)
        coming = asyncio.create_task(hall.sessions.attach(Opening("c")))
        await asyncio.sleep(0.02)
        hall.sessions.detach(lost.session)
        async with asyncio.timeout(PATIENCE_S):
            newer = await coming
        assert hall.plant.clock.now_ms() - said_ms >= SURE_MS
        hall.sessions.detach(newer)


@pytest.mark.usefixtures("_topic")
async def test_a_daemon_that_stops_waits_for_no_lost_client(hall: Hall) -> None:
    async with hall.attached("c", is_local=False) as lost:
        await lost.subscribe(GROUP)
        await lost.next(Deliver)
        hall.sessions.detach(lost.session)
        async with asyncio.timeout(AT_ONCE_MS / 1_000):
            await hall.sessions.stop()
        assert lost.session.released.is_set()


def test_streams_are_lent_on_within_a_second_of_the_end_of_what_a_client_is_sure_of() -> None:
    assert SILENT_HOLDER_MS <= 2_400 + 1_000
