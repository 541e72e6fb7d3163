"""Adopting sessions: who has them then, what stays, and what is refused."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from dss_core.changes import AdoptSessions, CloseSession, NamedSession, Undo
from dss_core.errors import (
    IllegalArgument,
    NotUndoable,
    PrincipalNotFound,
    SessionConnected,
    SessionNotFound,
    SessionOfAnother,
    SessionReplaced,
    TooManySessions,
)
from dss_sim.played_sessions import Hall
from dssd.machines.delivery.events import Deliver, Settle
from dssd.sessions.adoption import Adoption
from dssd.store.rows import SessionRow
from support.operated_groups import ANA, Works

SHIPPER = "token:shipper"


async def _away(hall: Hall, client_id: str, principal: str = "loopback") -> bytes:
    """A session whose client has gone."""
    async with hall.attached(client_id, expiry_s=60, principal=principal) as client:
        return client.opened.session_id


async def _owners(works: Works) -> dict[str, str]:
    return {
        each.row.client_id: each.row.principal for each in await works.plant.store.scan(SessionRow)
    }


async def test_an_adopted_session_is_gone_on_with_by_its_new_owner_alone(works: Works) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 4)
    hall = Hall(works.plant, works.sessions)
    async with hall.attached("ann", expiry_s=60, principal="loopback") as client:
        await client.subscribe("orders/#")
        deliver = await client.next(Deliver)
        await client.settle(Settle(deliver.grant, ((0, 2),), frontier=4))
        session_id = client.opened.session_id
    with pytest.raises(SessionOfAnother, match="belongs to another principal than token:shipper"):
        async with hall.attached("ann", clean_start=False, principal=SHIPPER):
            pass
    plan = await works.operations.plan(AdoptSessions(SHIPPER, ("ann",)))
    assert plan.change == AdoptSessions(SHIPPER, sessions=(NamedSession("ann", session_id),))
    assert plan.summary == f"adopt the session of ann for {SHIPPER}"
    adopted = await works.apply(plan.change)
    assert (adopted.kind, adopted.subject, adopted.state) == ("sessions.adopt", "ann", "done")
    with pytest.raises(SessionOfAnother):
        async with hall.attached("ann", clean_start=False, principal="loopback"):
            pass
    async with hall.attached("ann", clean_start=False, principal=SHIPPER) as client:
        assert (client.opened.session_present, client.opened.session_id) == (True, session_id)
        subscribed = await client.subscribe("orders/#")
        assert subscribed.subscription == 1
        assert [offset for _, offset, *_ in await client.records(2)] == [2, 3]
    assert await _owners(works) == {"ann": SHIPPER}


async def test_many_are_adopted_by_pattern_and_owner_and_who_is_connected_is_left_out(
    works: Works,
) -> None:
    hall = Hall(works.plant, works.sessions)
    for client_id in ("bill-1", "bill-2", "ship-1"):
        await _away(hall, client_id)
    await _away(hall, "bill-3", "local:bob")
    async with hall.attached("bill-4", principal="loopback"):
        plan = await works.operations.plan(AdoptSessions(SHIPPER, ("bill-*",), "loopback"))
        assert plan.members == ("bill-1", "bill-2")
        assert plan.effects[-1] == "bill-4 is connected, and not adopted."
        adopted = await works.apply(plan.change)
        assert adopted.state == "done"
        everybody = await works.operations.plan(AdoptSessions(SHIPPER, of="loopback"))
        assert everybody.members == ("ship-1",)
    owners = {"bill-1": SHIPPER, "bill-2": SHIPPER, "bill-3": "local:bob"}
    assert await _owners(works) == {**owners, "bill-4": "loopback", "ship-1": "loopback"}
    again = await works.operations.plan(AdoptSessions(SHIPPER, ("bill-1", "bill-2")))
    assert again.nothing_to_do


async def test_an_undo_gives_back_what_is_left_as_it_was_adopted(works: Works) -> None:
    hall = Hall(works.plant, works.sessions)
    for client_id, owner in (("ann", "loopback"), ("bob", "local:bob"), ("eve", "loopback")):
        await _away(hall, client_id, owner)
    adopted = await works.apply(AdoptSessions(SHIPPER, ("*",)))
    async with hall.attached("ann", clean_start=False, expiry_s=60, principal=SHIPPER):
        with pytest.raises(NotUndoable, match="ann is connected"):
            await works.apply(Undo(adopted.number))
    await works.apply(CloseSession("eve"))
    undone = await works.apply(Undo(adopted.number))
    assert (undone.kind, undone.state) == ("sessions.adopt.undo", "done")
    assert await _owners(works) == {"ann": "loopback", "bob": "local:bob"}
    await works.apply(Undo(undone.number))
    assert await _owners(works) == {"ann": SHIPPER, "bob": SHIPPER}


async def test_what_cannot_be_adopted_is_refused_and_nothing_is_changed(works: Works) -> None:
    hall = Hall(works.plant, works.sessions)
    before = await _away(hall, "ann")
    async with hall.attached("bob", principal="loopback"):
        for change, refusal in (
            (AdoptSessions("token:nobody", ("ann",)), PrincipalNotFound),
            (AdoptSessions(SHIPPER, ("ann", "bob")), SessionConnected),
            (AdoptSessions(SHIPPER, ("eve",)), SessionNotFound),
            (AdoptSessions(SHIPPER), IllegalArgument),
            (AdoptSessions(SHIPPER, ("ann",) * 101), IllegalArgument),
        ):
            with pytest.raises(refusal):
                await works.operations.apply(change, caller=ANA)
    plan = await works.operations.plan(AdoptSessions(SHIPPER, ("ann",)))
    async with hall.attached("ann", principal="loopback") as client:  # a clean start
        assert client.opened.session_id != before
    with pytest.raises(SessionReplaced):
        await works.operations.apply(plan.change, caller=ANA)
    assert await _owners(works) == {"ann": "loopback", "bob": "loopback"}


async def test_who_comes_back_before_the_adoption_keeps_the_session(works: Works) -> None:
    hall = Hall(works.plant, works.sessions)
    ids = {client_id: await _away(hall, client_id) for client_id in ("ann", "bob")}
    adoptions = [Adoption(name, ids[name], "loopback", SHIPPER) for name in ids]
    async with hall.attached("ann", clean_start=False, expiry_s=60, principal="loopback"):
        assert await works.sessions.adopt(adoptions) == ["ann"]
        assert await works.sessions.adopt(adoptions) == ["ann"], "the other one was given already"
    assert await _owners(works) == {"ann": "loopback", "bob": SHIPPER}


async def test_an_adoption_that_a_daemon_left_undone_is_done_by_the_next(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    hall = Hall(works.plant, works.sessions)
    await _away(hall, "ann")

    async def never(adoptions: Sequence[Adoption]) -> list[str]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(works.sessions, "adopt", never)
    adoption = await works.operations.apply(AdoptSessions(SHIPPER, ("ann",)), caller=ANA)
    await works.restart()
    assert (await works.ended(adoption.number)).state == "done"
    assert await _owners(works) == {"ann": SHIPPER}


async def test_nobody_gets_more_sessions_than_one_may_have(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    hall = Hall(works.plant, works.sessions)
    for client_id in ("ann", "bob"):
        await _away(hall, client_id)
    await _away(hall, "eve", SHIPPER)
    monkeypatch.setattr("dssd.sessions.room.SESSIONS_PRINCIPAL_MAX", 2)
    row = await works.apply(AdoptSessions(SHIPPER, of="loopback"))
    assert (row.state, row.subject) == ("failed", "sessions")
    assert row.failure == TooManySessions(whose=f"{SHIPPER}'s", limit=16_384).message
    assert set((await _owners(works)).values()) == {"loopback", SHIPPER}
    assert (await works.apply(AdoptSessions(SHIPPER, ("bob",)))).state == "done"
    assert json.loads(row.before)["of"] == {"ann": "loopback", "bob": "loopback"}
