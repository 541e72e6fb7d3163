"""What a session makes of a pause: what its client is told, and when its leader hears back."""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

import pytest

from dss_client._doubt import SILENCE_OF_LEASE
from dss_core.limits import LEASE_MS
from dss_sim.played_groups import PATIENCE_S
from dss_sim.played_sessions import Attached, Hall
from dssd.limits import SILENT_HOLDER_MS
from dssd.machines.leader.events import PauseGroup
from dssd.sessions.client_items import (
    Granted,
    PauseSet,
    PauseTaken,
    Revoke,
    Subscribed,
    Unsubscribe,
    UnsubscribedItem,
)

GROUP = "$share/g/orders/#"
AT_ONCE_S = SILENT_HOLDER_MS / 2_000
"""Far above what a pause takes that waits for nobody, and below what a lost client holds it."""


class Paused:
    """A group of one member, and the operations that its leader has concluded."""

    def __init__(self, hall: Hall, client: Attached) -> None:
        self.client = client
        self.concluded: list[int] = []
        self._more = asyncio.Event()
        [self._group] = hall.plant.groups.groups()
        self._registry = hall.plant.registry
        self._registry.watch_concluded(self._conclude)
        self._numbers = 0

    async def change(self, *, paused: bool) -> PauseSet:
        """Instruct the leader; what the client is told."""
        self._numbers += 1
        self._registry.instruct(self._group.group_id, PauseGroup(self._numbers, paused))
        return await self.client.next(PauseSet)

    async def take(self, item: PauseSet) -> None:
        """The client has done it."""
        await self.client.session.take(PauseTaken(item.subscription, item.turn))

    async def has_concluded(self, number: int, within_s: float = PATIENCE_S) -> None:
        async with asyncio.timeout(within_s):
            while number not in self.concluded:
                self._more.clear()
                await self._more.wait()

    def _conclude(self, number: int) -> None:
        self.concluded.append(number)
        self._more.set()


@pytest.fixture
async def paused(hall: Hall) -> AsyncIterator[Paused]:
    await hall.plant.topic("orders", 1)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        await client.granted()
        yield Paused(hall, client)


async def test_a_leader_hears_that_a_pause_is_obeyed_when_the_client_says_so(
    paused: Paused,
) -> None:
    told = await paused.change(paused=True)
    assert (told.subscription, told.paused, paused.concluded) == (1, True, [])
    await paused.take(told)
    await paused.has_concluded(1)


async def test_an_answer_to_what_was_asked_before_the_last_says_nothing(paused: Paused) -> None:
    first = await paused.change(paused=True)
    await paused.change(paused=False)
    last = await paused.change(paused=True)
    await paused.take(first)
    for _ in range(50):
        await asyncio.sleep(0)
    assert 3 not in paused.concluded
    await paused.take(last)
    await paused.has_concluded(3)


async def test_who_names_a_subscription_again_is_told_again_that_it_is_paused(
    paused: Paused,
) -> None:
    told = await paused.change(paused=True)
    await paused.take(told)
    client = paused.client
    await client.subscribe(GROUP)
    assert await client.next(PauseSet) == told


async def test_a_subscription_that_begins_anew_hears_of_the_pause_before_its_streams(
    paused: Paused,
) -> None:
    client = paused.client
    await paused.take(await paused.change(paused=True))
    await client.session.take(Unsubscribe(1))
    await client.next(UnsubscribedItem)
    await client.subscribe(GROUP)
    await client.next(Granted)
    kinds = [type(item) for item in client.heard]
    assert PauseSet in kinds[len(kinds) - 1 - kinds[::-1].index(Subscribed) :]


async def test_what_stopped_a_subscription_that_ended_does_not_stop_the_next_of_its_number(
    paused: Paused,
) -> None:
    client = paused.client
    await paused.take(await paused.change(paused=True))
    await client.session.take(Unsubscribe(1))
    await client.next(UnsubscribedItem)
    told = [(item.subscription, item.paused) for item in client.heard if isinstance(item, PauseSet)]
    assert told == [(1, True), (1, False)]


async def test_an_answer_about_a_subscription_that_is_not_there_is_ignored(paused: Paused) -> None:
    await paused.client.session.take(PauseTaken(77, 1))
    await paused.take(await paused.change(paused=True))
    await paused.has_concluded(1)


async def test_a_daemon_that_stops_concludes_no_pause_that_a_client_has_not_obeyed(
    paused: Paused, hall: Hall
) -> None:
    await paused.change(paused=True)
    await hall.sessions.stop()
    await hall.plant.stop()
    assert paused.concluded == []


async def test_a_client_whose_connection_is_lost_may_go_on_and_holds_a_pause(
    paused: Paused, hall: Hall
) -> None:
    await paused.change(paused=True)
    hall.sessions.detach(paused.client.session)
    with pytest.raises(TimeoutError):
        await paused.has_concluded(1, AT_ONCE_S)
    await paused.has_concluded(1)


async def test_a_client_that_left_holds_no_pause(paused: Paused, hall: Hall) -> None:
    await paused.change(paused=True)
    paused.client.session.left = True
    hall.sessions.detach(paused.client.session)
    await paused.has_concluded(1, AT_ONCE_S)


async def test_a_client_that_gives_all_back_as_its_session_is_closed_holds_no_pause(
    paused: Paused, hall: Hall
) -> None:
    await paused.change(paused=True)
    await hall.sessions.close("c", paused.client.opened.session_id)
    await paused.has_concluded(1, AT_ONCE_S)


async def test_a_client_that_says_nothing_as_its_session_is_closed_holds_a_pause_for_its_time(
    paused: Paused, hall: Hall
) -> None:
    paused.client.answers_revokes = False
    await paused.change(paused=True)
    began_s = monotonic()
    closing = asyncio.create_task(hall.sessions.close("c", paused.client.opened.session_id))
    await paused.has_concluded(1)
    assert monotonic() - began_s > SILENCE_OF_LEASE * LEASE_MS / 1_000
    await closing


async def test_a_client_that_is_lost_as_its_session_is_closed_may_go_on_and_holds_a_pause(
    paused: Paused, hall: Hall
) -> None:
    paused.client.answers_revokes = False
    await paused.change(paused=True)
    closing = asyncio.create_task(hall.sessions.close("c", paused.client.opened.session_id))
    await paused.client.next(Revoke)
    hall.sessions.detach(paused.client.session)
    await closing
    with pytest.raises(TimeoutError):
        await paused.has_concluded(1, AT_ONCE_S)
    await paused.has_concluded(1)


async def test_a_client_that_is_back_under_its_session_holds_a_pause_only_until_it_confirms(
    paused: Paused, hall: Hall
) -> None:
    await paused.change(paused=True)
    async with hall.attached(session_id=paused.client.opened.session_id) as back:
        await back.subscribe(GROUP)
        told = await back.next(PauseSet)
        await back.session.take(PauseTaken(told.subscription, told.turn))
        await paused.has_concluded(1, AT_ONCE_S)


async def test_a_newer_client_of_the_same_id_does_not_end_the_pause_of_a_silent_one_too_soon(
    paused: Paused, hall: Hall
) -> None:
    paused.client.answers_revokes = False
    await paused.change(paused=True)
    began_s = monotonic()
    async with hall.attached():
        await paused.has_concluded(1)
    assert monotonic() - began_s > SILENCE_OF_LEASE * LEASE_MS / 1_000
