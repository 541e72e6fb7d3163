"""One connection over a real log, store and real leaders: what it borrows and lets go."""

import asyncio
from collections.abc import Sequence

import pytest

from dss_client.testing import until
from dss_core.errors import IllegalArgument, NotSubscribed
from dss_core.limits import SETTLE_RANGES_MAX
from dss_core.progress import Progress
from dss_sim.played_groups import PATIENCE_S
from dss_sim.played_sessions import Attached, Hall
from dssd.limits import SETTLE_STEP_RANGES
from dssd.machines.delivery.events import Deliver, Nak, Settle
from dssd.machines.start_point import Earliest
from dssd.sessions.client_items import (
    FinishRevoke,
    Granted,
    Opening,
    PingSent,
    PongSent,
    Revoke,
    Settled,
    Subscribe,
    Unsubscribe,
    UnsubscribedItem,
)
from dssd.sessions.refusal_pace import RefusalPace
from dssd.store.port import Delete, Precondition, Write
from dssd.store.rows import SubscriptionRow

GROUP = "$share/g/orders/#"


async def leaves(client: Attached, subscription: int = 1) -> None:
    await client.session.take(Unsubscribe(subscription))
    await client.next(UnsubscribedItem, subscription=subscription)


async def test_a_subscription_that_the_client_does_not_know_keeps_nothing(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 3)
    async with hall.attached("a") as forgetful, hall.attached("b") as other:
        await forgetful.subscribe(GROUP)
        granted = await forgetful.granted()
        await forgetful.session.take(FinishRevoke(granted.grant))
        await other.subscribe(GROUP)
        assert [record[1:] for record in await other.records(3)] == [
            (0, False, 1),
            (1, False, 1),
            (2, False, 1),
        ]
        [group] = hall.plant.groups.groups()
        live = hall.plant.registry.snapshot(group.group_id)
        assert live is not None
        assert [member.client_id for member in live.members] == ["b"]


async def test_a_subscription_that_rests_goes_on_when_it_is_subscribed_to_again(
    hall: Hall,
) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 3)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        granted = await client.granted()
        await client.session.take(FinishRevoke(granted.grant))
        await client.subscribe(GROUP)
        again = await client.granted()
        assert again.grant > granted.grant
        assert [record[:2] for record in await client.records(3)] == [
            (again.grant, offset) for offset in range(3)
        ]


async def test_a_resumed_session_borrows_only_for_what_it_subscribes_to(hall: Hall) -> None:
    [one] = await hall.plant.topic("one", 1)
    [two] = await hall.plant.topic("two", 1)
    async with hall.attached(expiry_s=60) as client:
        await client.subscribe("one/#", 1)
        await client.subscribe("two/#", 2)
    await hall.plant.publish(one, 2)
    await hall.plant.publish(two, 2)
    async with hall.attached(clean_start=False, expiry_s=60, credit_records=2) as client:
        await client.subscribe("two/#", 2)
        [(grant, *_), _] = await client.records(2)
        await client.ack(grant, 0, 2, token=1)
        await client.next(Settled, token=1)
        deliveries = [item for item in client.heard if isinstance(item, Deliver)]
        assert {item.grant for item in deliveries} == {grant}
        await client.subscribe("one/#", 1)
        assert [record[0] > grant for record in await client.records(2)] == [True, True]


async def test_a_subscription_that_rests_can_be_left(hall: Hall) -> None:
    await hall.plant.topic("orders", 1)
    async with hall.attached(expiry_s=60) as client:
        await client.subscribe("orders/#")
    async with hall.attached(clean_start=False) as client:
        await leaves(client)
        assert hall.plant.groups.groups() == ()
        assert await hall.plant.store.scan(SubscriptionRow) == []
        await client.session.take(Unsubscribe(1))
        assert isinstance((await client.refused()).error, NotSubscribed)


async def test_leaving_waits_for_what_the_client_was_handed(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 4)
    async with hall.attached("a") as leaver, hall.attached("b") as other:
        leaver.answers_revokes = False
        await leaver.subscribe(GROUP)
        [(grant, *_), *_] = await leaver.records(4)
        await other.subscribe(GROUP)
        await leaver.session.take(Unsubscribe(1))
        await leaver.next(Revoke, grant=grant)
        await leaver.ack(grant, 0, 3)
        assert not any(isinstance(item, UnsubscribedItem) for item in leaver.heard)
        await leaver.session.take(FinishRevoke(grant))
        await leaver.next(UnsubscribedItem)
        granted = await other.granted()
        assert granted.progress == Progress(3)
        assert [record[1:] for record in await other.records(1)] == [(3, True, 2)]


async def test_leaving_a_private_subscription_is_one_step_though_it_is_cancelled(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hall.plant.topic("orders", 1)
    commit, forgotten = hall.plant.store.commit, asyncio.Event()

    async def cut_off_after_the_row(
        writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        versions = await commit(writes, preconditions)
        if any(isinstance(write, Delete) and write.kind is SubscriptionRow for write in writes):
            forgotten.set()
            await asyncio.sleep(0)
        return versions

    async with hall.attached(expiry_s=60) as client:
        await client.subscribe("orders/#")
        monkeypatch.setattr(hall.plant.store, "commit", cut_off_after_the_row)
        leaving = asyncio.create_task(client.session.take(Unsubscribe(1)))
        await forgotten.wait()
        leaving.cancel()
        await asyncio.wait([leaving])
        assert await hall.plant.store.scan(SubscriptionRow) == []
        assert hall.plant.groups.groups() == ()


async def test_a_number_cannot_be_used_while_it_is_being_left(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 1)
    async with hall.attached() as client:
        client.answers_revokes = False
        await client.subscribe(GROUP)
        await client.records(1)
        await client.session.take(Unsubscribe(1))
        revoke = await client.next(Revoke)
        await client.session.take(Subscribe(1, GROUP))
        assert isinstance((await client.refused()).error, IllegalArgument)
        await client.session.take(FinishRevoke(revoke.grant))
        await client.next(UnsubscribedItem)
        await client.subscribe(GROUP)


async def test_a_settle_of_too_many_ranges_is_refused_and_the_others_are_taken(
    hall: Hall,
) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 2)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        [(grant, *_), _] = await client.records(2)
        many = ((0, 1),) * (SETTLE_RANGES_MAX + 1)
        await client.settle(Settle(grant, many, frontier=2), Settle(grant, ((1, 2),), frontier=2))
        refused = await client.refused()
        assert isinstance(refused.error, IllegalArgument)
        assert (refused.grant, refused.final) == (grant, False)
        await client.ack(grant, 0, 1, token=3)
        await client.next(Settled, token=3)


async def test_other_tasks_get_their_turn_between_the_steps_of_many_settles(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 2)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        [(grant, *_), _] = await client.records(2)
        most = ((0, 1),) * SETTLE_RANGES_MAX
        settling = asyncio.create_task(client.settle(*[Settle(grant, most, frontier=2)] * 3))
        turns = 0
        while not settling.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 3 * SETTLE_RANGES_MAX // SETTLE_STEP_RANGES
        await client.session.take(PingSent(1))
        await client.next(PongSent)


async def test_a_session_reads_on_after_refusals_only_when_others_had_the_loop(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 2)
    went_on = asyncio.Event()
    waits: list[float] = []

    async def give_way(pace: RefusalPace, took_s: float) -> None:
        waits.append(took_s)
        await went_on.wait()

    monkeypatch.setattr(RefusalPace, "give_way", give_way)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        [(grant, *_), _] = await client.records(2)
        await client.settle(Settle(grant, in_progress=((0, 2),), frontier=2))
        assert waits == []
        refusing = asyncio.create_task(client.settle(Settle(grant, naks=(Nak(0, 1, 0),))))
        again = await client.next(Deliver)
        assert (again.base, again.redelivered) == (0, True)
        assert not refusing.done()
        went_on.set()
        await refusing
        assert len(waits) == 1


async def test_what_was_just_stored_is_read_before_the_next_item_is_sent(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    session = await hall.sessions.attach(Opening("c"))

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(session.run(), name="session")
        await session.take(Subscribe(1, GROUP, Earliest()))
        while not isinstance(await session.next_item(), Granted):
            pass
        window = session._scheduler._window
        await until(lambda: all(each.at_tail for each in window.streams()))
        list(iter(session.outgoing.take, None))
        await session.take(PingSent(1))
        await hall.plant.publish(stream, 1)
        assert await session.next_item() == PongSent(1)
        assert isinstance(session.outgoing.take(), Deliver)
        hall.sessions.detach(session)
