"""Closing sessions: who is told, what goes, and what a client may do afterwards."""

import asyncio

import pytest

from dss_core.changes import CloseSession
from dss_core.errors import SessionClosed, SessionNotFound, SessionReplaced
from dss_sim.played_sessions import Hall
from dssd.machines.delivery.events import Deliver, Settle
from dssd.sessions.client_items import Refused
from dssd.store.rows import GroupRow, ProgressRow, SessionRow, SubscriptionRow
from support.operated_groups import ANA, Works

SHARED = "$share/billing/orders/#"


async def test_a_client_whose_session_is_closed_is_told_and_loses_what_it_owns_alone(
    works: Works,
) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 4)
    hall = Hall(works.plant, works.sessions)
    async with (
        hall.attached("ann", expiry_s=60, peer="unix:") as client,
        hall.attached("bob") as bob,
    ):
        await client.subscribe(SHARED)
        await client.subscribe("orders/#", 2)
        await client.records(8)
        plan = await works.operations.plan(CloseSession("ann"))
        assert plan.summary == "close the session of ann, connected, 2 subscriptions"
        assert [effect.split(" ", 2)[:2] for effect in plan.effects] == [
            ["The", "client"],
            ["Streams", "that"],
            ["1", "private"],
            ["It", "may"],
        ]
        await bob.subscribe(SHARED)
        closed = await works.apply(plan.change, reason="stuck")
        assert (closed.kind, closed.subject, closed.state) == ("sessions.close", "ann", "done")
        last = (await client.end())[-1]
        assert isinstance(last, Refused)
        assert (type(last.error), last.subscription, last.final) == (SessionClosed, 0, True)
        assert len(await bob.records(4)) == 4, "at once, not after the lease"
    rows = await works.plant.store.scan(SessionRow)
    assert [each.row.client_id for each in rows] == ["bob"]
    assert [each.row.kind for each in await works.plant.store.scan(GroupRow)] == ["shared"]
    assert len(await works.plant.store.scan(ProgressRow)) == 1
    owners = {each.row.session_id for each in await works.plant.store.scan(SubscriptionRow)}
    assert owners <= {each.row.session_id for each in rows}
    async with hall.attached("ann", clean_start=False) as client:
        assert not client.opened.session_present


@pytest.mark.parametrize("answers", [True, False])
async def test_of_a_session_that_is_closed_only_what_was_handed_out_was_tried(
    works: Works, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    monkeypatch.setattr("dssd.sessions.sessions.CLOSE_DRAIN_S", 5.0 if answers else 0.1)
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 4)
    hall = Hall(works.plant, works.sessions)
    async with hall.attached("ann") as client, hall.attached("bob") as bob:
        client.answers_revokes = answers
        await client.subscribe(SHARED)
        deliver = await client.next(Deliver)
        await client.settle(Settle(deliver.grant, ((0, 1),), frontier=2))
        await works.apply(CloseSession("ann"))
        await bob.subscribe(SHARED)
        # In silence it may have handed out the others too, and is charged for none of them.
        assert [record[1:] for record in await bob.records(3)] == [
            (1, True, 2),
            (2, not answers, 1),
            (3, not answers, 1),
        ]


async def test_a_session_without_a_connection_is_closed_too(works: Works) -> None:
    hall = Hall(works.plant, works.sessions)
    async with hall.attached("ann", expiry_s=60) as client:
        await client.subscribe("orders/#")
    closed = await works.apply(CloseSession("ann"))
    assert closed.state == "done"
    assert await works.sessions.listed("", 10) == []
    assert await works.plant.store.scan(GroupRow) == []
    with pytest.raises(SessionNotFound):
        await works.operations.apply(CloseSession("ann"), caller=ANA)


async def test_a_closure_that_a_daemon_left_undone_is_done_by_the_next(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    hall = Hall(works.plant, works.sessions)
    async with hall.attached("ann", expiry_s=60):
        pass

    async def never(client_id: str, session_id: bytes) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(works.sessions, "close", never)
    closure = await works.operations.apply(CloseSession("ann"), caller=ANA)
    await works.restart()
    assert (await works.ended(closure.number)).state == "done"
    assert await works.plant.store.scan(SessionRow) == []


async def test_a_session_that_was_opened_meanwhile_stays(works: Works) -> None:
    hall = Hall(works.plant, works.sessions)
    async with hall.attached("ann"):
        before = await works.sessions.find("ann")
    async with hall.attached("ann") as client:
        await works.sessions.close("ann", before.session_id)
        assert (await works.sessions.find("ann")).session_id == client.opened.session_id


async def test_a_plan_to_close_a_session_closes_no_later_one_of_its_client(works: Works) -> None:
    hall = Hall(works.plant, works.sessions)
    async with hall.attached("ann"):
        plan = await works.operations.plan(CloseSession("ann"))
    async with hall.attached("ann") as client:
        with pytest.raises(SessionReplaced, match="ann has another session"):
            await works.operations.apply(plan.change, caller=ANA, if_revision=plan.revision)
        assert (await works.sessions.find("ann")).session_id == client.opened.session_id


async def test_sessions_are_listed_by_client_id_a_page_at_a_time(works: Works) -> None:
    hall = Hall(works.plant, works.sessions)
    async with hall.attached("bob", expiry_s=5, principal="local:bob") as gone:
        await gone.subscribe(SHARED)
        await gone.subscribe("orders/#", 2)
    async with hall.attached("ann", peer="ipv4:127.0.0.1:7"), hall.attached("eve"):
        ann, bob, eve = await works.sessions.listed("", 10)
        assert [each.client_id for each in (ann, bob, eve)] == ["ann", "bob", "eve"]
        assert (ann.state, ann.peer, ann.subscriptions) == ("connected", "ipv4:127.0.0.1:7", 0)
        assert (bob.state, bob.peer, bob.principal) == ("detached", "", "local:bob")
        assert (bob.subscriptions, bob.private, bob.expiry_ms) == (2, 1, 5_000)
        assert 0 < bob.since_ms <= ann.since_ms <= works.plant.clock.wall_ms()
        [page] = await works.sessions.listed("ann", 1)
        assert page == bob
