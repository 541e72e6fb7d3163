"""Rebalance, transfer, revoke and evict, planned, applied and taken back, over real leaders."""

import asyncio
import json
from dataclasses import replace

import pytest

from dss_core.changes import Change, Evict, Rebalance, RevokeGrant, TransferGrant, Undo
from dss_core.errors import (
    BorrowerEvicted,
    BorrowerNotFound,
    ClientBanned,
    IllegalArgument,
    NobodyToLendTo,
    NotCancellable,
    NotForPrivateGroups,
    NotUndoable,
    RevisionMoved,
    StreamNotRead,
)
from dss_core.filters import SubscriptionFilter
from dssd.leaders.bans import collect_ended_bans
from dssd.leaders.limits import BAN_MS_MAX
from dssd.machines.messages import Invalidate, Revoke
from dssd.machines.start_point import Earliest
from dssd.operations.kinds.eviction import EVICTION_GRACE_MS_MAX
from dssd.store.port import Delete, Put
from dssd.store.rows import BanRow, GrantRow, SubscriptionRow
from support.operated_groups import ANA, Works
from support.played_answers import Answering
from support.shared_groups import grants, of, shared

FIRST = "orders/0/0"


@pytest.mark.parametrize(
    "change",
    [
        Rebalance("billing"),
        TransferGrant("billing", FIRST, "ann"),
        RevokeGrant("billing", FIRST),
        Evict("billing", "ann"),
    ],
)
async def test_private_subscriptions_are_refused(works: Works, change: Change) -> None:
    await works.plant.topic("orders", 1)
    parsed = SubscriptionFilter.parse("orders/#")
    joined = await works.plant.groups.join(
        parsed, start=Earliest(), ack_wait_ms=None, session_id=b"session", subscription=1
    )
    with pytest.raises(NotForPrivateGroups):
        await works.operations.plan(replace(change, group=joined.group.name))  # type: ignore[arg-type] # no undo


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (TransferGrant("billing", FIRST, "zoe"), BorrowerNotFound),
        (TransferGrant("billing", "orders/9/0", "ann"), StreamNotRead),
        (RevokeGrant("billing", "orders/9/0"), StreamNotRead),
        (RevokeGrant("billing", FIRST), NobodyToLendTo),
        (Evict("billing", "zoe"), BorrowerNotFound),
        (Evict("billing", "ann", grace_ms=EVICTION_GRACE_MS_MAX + 1), IllegalArgument),
        (Evict("billing", "ann", ban_ms=0), IllegalArgument),
        (Evict("billing", "ann", ban_ms=BAN_MS_MAX + 1), IllegalArgument),
        (Rebalance("billing", moves_max=0), IllegalArgument),
    ],
)
async def test_what_cannot_be_done_is_refused_and_nothing_is_changed(
    works: Works, change: Change, error: type[Exception]
) -> None:
    await shared(works, "ann")
    before = await grants(works)
    with pytest.raises(error):
        await works.operations.apply(change, caller=ANA)
    assert await grants(works) == before
    assert works.plant.groups.find("billing").revision == 0


# Transfer and revoke


async def test_a_transfer_names_its_move_and_its_costs_and_does_it(works: Works) -> None:
    members = await shared(works, "ann", "bob")
    name = of(members["ann"])
    plan = await works.operations.plan(TransferGrant("billing", name, "bob"))
    [move] = plan.moves
    assert (move.stream, move.from_client_id, move.to_client_id) == (name, "ann", "bob")
    assert (plan.kind, plan.members) == ("grants.transfer", ("ann", "bob"))
    assert "bob has 2 streams now and 3 then." in plan.effects
    row = await works.apply(plan.change, if_revision=plan.revision)
    assert (row.state, row.revision) == ("done", 1)
    assert (await grants(works))[name] == ("bob", "bob")


async def test_a_member_may_be_named_by_its_borrower_id(works: Works) -> None:
    members = await shared(works, "ann", "bob")
    name = of(members["ann"])
    await works.apply(TransferGrant("billing", name, members["bob"].borrower_id.hex()))
    assert (await grants(works))[name][0] == "bob"


async def test_a_client_with_two_members_is_named_by_their_ids(works: Works) -> None:
    members = await shared(works, "ann", "bob")
    twin = Answering(works.plant, members["ann"].group, "ann 2", session="ann", client_id="ann")
    twin.begin()
    await works.until(lambda: bool(twin.held))
    with pytest.raises(IllegalArgument, match=twin.borrower_id.hex()):
        await works.operations.plan(Evict("billing", "ann"))


async def test_a_transfer_to_whom_has_the_stream_pins_it_and_a_second_does_nothing(
    works: Works,
) -> None:
    members = await shared(works, "ann", "bob")
    name = of(members["ann"])
    plan = await works.operations.plan(TransferGrant("billing", name, "ann"))
    assert (plan.moves, plan.nothing_to_do) == ((), False)
    await works.apply(plan.change)
    assert (await grants(works))[name] == ("ann", "ann")
    assert (await works.operations.plan(plan.change)).nothing_to_do


async def test_a_transfer_that_is_taken_back_leaves_the_stream_and_takes_the_pin(
    works: Works,
) -> None:
    members = await shared(works, "ann", "bob")
    name = of(members["ann"])
    row = await works.apply(TransferGrant("billing", name, "bob"))
    undone = await works.apply(Undo(row.number))
    assert (undone.kind, undone.state) == ("grants.transfer.undo", "done")
    assert (await grants(works))[name] == ("bob", "")
    [grant] = [
        found.row
        for found in await works.plant.store.scan(GrantRow)
        if found.row.partition == int(name[-1])
    ]
    assert grant.pinned_session_id is None


async def test_a_transfer_is_not_taken_back_once_its_member_has_left(works: Works) -> None:
    members = await shared(works, "ann", "bob")
    row = await works.apply(TransferGrant("billing", of(members["ann"]), "bob"))
    members["bob"].leave()
    await works.until(lambda: len(members["ann"].held) == 4)
    with pytest.raises(NotUndoable):
        await works.operations.plan(Undo(row.number))


async def test_a_transfer_is_not_taken_back_over_a_later_one_to_the_same_client(
    works: Works,
) -> None:
    members = await shared(works, "ann", "bob")
    name = of(members["ann"])
    first = await works.apply(TransferGrant("billing", name, "bob"))
    members["bob"].leave()
    await works.until(lambda: len(members["ann"].held) == 4)
    again = Answering(works.plant, members["ann"].group, "bob 2", session="bob", client_id="bob")
    again.begin()
    await works.until(lambda: len(again.held) == 2)
    second = await works.apply(TransferGrant("billing", name, "bob"))
    with pytest.raises(NotUndoable, match=f"operation {second.number}, grants.transfer"):
        await works.operations.plan(Undo(first.number))
    await works.apply(Undo(second.number))
    assert (await grants(works))[name] == ("bob", "")


async def test_a_plan_of_before_another_operation_is_refused(works: Works) -> None:
    members = await shared(works, "ann", "bob")
    plan = await works.operations.plan(TransferGrant("billing", of(members["ann"]), "bob"))
    await works.apply(TransferGrant("billing", of(members["bob"]), "bob"))
    with pytest.raises(RevisionMoved):
        await works.operations.apply(plan.change, caller=ANA, if_revision=plan.revision)


async def test_a_revoked_stream_goes_to_the_member_that_the_plan_names(works: Works) -> None:
    members = await shared(works, "ann", "bob", "cat", streams=7)
    [giver] = [name for name, member in members.items() if len(member.held) == 3]
    name = of(members[giver])
    plan = await works.operations.plan(RevokeGrant("billing", name))
    [move] = plan.moves
    assert move.from_client_id == giver
    assert plan.not_undoable_because
    row = await works.apply(plan.change)
    assert (await grants(works))[name] == (move.to_client_id, move.to_client_id)
    with pytest.raises(NotUndoable):
        await works.operations.plan(Undo(row.number))


async def test_a_revoke_of_what_nobody_has_does_nothing(works: Works) -> None:
    await works.plant.topic("orders", 1)
    await works.plant.group("$share/billing/orders/#", Earliest())
    assert (await works.operations.plan(RevokeGrant("billing", FIRST))).nothing_to_do


# Rebalance


async def test_a_rebalance_makes_so_many_of_the_planned_moves(works: Works) -> None:
    members = await shared(works, "ann", "bob", streams=6)
    for stream in sorted(members["ann"].held):
        name = f"orders/0/{stream.partition}"
        row = await works.apply(TransferGrant("billing", name, "bob"))
        await works.apply(Undo(row.number))
    assert [len(members[name].held) for name in ("ann", "bob")] == [0, 6]
    plan = await works.operations.plan(Rebalance("billing", moves_max=2))
    assert [(each.from_client_id, each.to_client_id) for each in plan.moves] == [("bob", "ann")] * 2
    row = await works.apply(plan.change, if_revision=plan.revision)
    assert row.state == "done"
    assert [len(members[name].held) for name in ("ann", "bob")] == [2, 4]
    assert json.loads(row.change)["moves"][0]["to_borrower_id"] == b"ann".hex()
    await works.apply(Rebalance("billing"))
    assert [len(members[name].held) for name in ("ann", "bob")] == [3, 3]
    with pytest.raises(NotUndoable):
        await works.operations.plan(Undo(row.number))


async def test_a_balanced_group_has_nothing_to_rebalance(works: Works) -> None:
    await shared(works, "ann", "bob")
    plan = await works.operations.plan(Rebalance("billing"))
    assert (plan.nothing_to_do, plan.effects) == (True, ())


# Evict and ban


async def test_an_evicted_member_is_told_the_reason_and_the_others_have_its_streams(
    works: Works,
) -> None:
    members = await shared(works, "ann", "bob")
    plan = await works.operations.plan(Evict("billing", "ann"))
    assert plan.not_undoable_because
    row = await works.apply(plan.change, reason="stuck")
    assert row.state == "done"
    told = await members["ann"].next(Invalidate)
    assert (told.reason, told.detail) == (BorrowerEvicted.code, "stuck")
    await works.until(lambda: len(members["bob"].held) == 4)
    with pytest.raises(NotUndoable):
        await works.operations.plan(Undo(row.number))


async def test_a_grace_is_what_an_evicted_member_has_for_its_records(works: Works) -> None:
    members = await shared(works, "ann", "bob")
    await works.apply(Evict("billing", "ann", grace_ms=4_321))
    assert (await members["ann"].next(Revoke)).deadline_ms == 4_321


async def test_a_banned_client_stays_out_until_the_eviction_is_taken_back(works: Works) -> None:
    members = await shared(works, "ann", "bob")
    row = await works.apply(Evict("billing", "ann", ban_ms=60_000))
    [ban] = [found.row for found in await works.plant.store.scan(BanRow)]
    assert (ban.client_id, ban.number, ban.lasts_ms) == ("ann", row.number, 60_000)
    again = Answering(works.plant, members["ann"].group, "ann 2", session="ann", client_id="ann")
    again.begin()
    told = await again.next(Invalidate)
    assert (told.reason, told.detail) == (ClientBanned.code, str(ban.until_ms))
    undone = await works.apply(Undo(row.number))
    assert undone.state == "done"
    assert await works.plant.store.scan(BanRow) == []
    last = Answering(works.plant, members["ann"].group, "ann 3", session="ann", client_id="ann")
    last.begin()
    await works.until(lambda: len(last.held) == 2)
    with pytest.raises(NotUndoable):
        await works.operations.plan(Undo(row.number))


async def test_a_ban_outlives_a_restart_and_a_later_one_is_not_lifted_by_the_former(
    works: Works,
) -> None:
    members = await shared(works, "ann", "bob")
    first = await works.apply(Evict("billing", "ann", ban_ms=1))
    await asyncio.sleep(0.01)  # a millisecond of the machine's clock
    again = Answering(works.plant, members["ann"].group, "ann 2", session="ann", client_id="ann")
    again.begin()
    await works.until(lambda: bool(again.held))
    await works.apply(Evict("billing", "ann", ban_ms=60_000))
    with pytest.raises(NotUndoable):
        await works.operations.plan(Undo(first.number))
    await works.restart()
    last = Answering(works.plant, members["ann"].group, "ann 3", session="ann", client_id="ann")
    last.begin()
    assert (await last.next(Invalidate)).reason == ClientBanned.code


async def test_rows_of_bans_that_are_over_are_collected(works: Works) -> None:
    await shared(works, "ann", "bob")
    await works.apply(Evict("billing", "ann", ban_ms=60_000))
    wall_ms = works.plant.clock.wall_ms()
    await collect_ended_bans(works.plant.store, wall_ms)
    assert len(await works.plant.store.scan(BanRow)) == 1
    await collect_ended_bans(works.plant.store, wall_ms + 60_001)
    assert await works.plant.store.scan(BanRow) == []


# Restarts


@pytest.mark.parametrize("kind", ["transfer", "revoke", "evict", "ban", "rebalance"])
async def test_an_operation_that_a_restart_interrupts_ends(works: Works, kind: str) -> None:
    members = await shared(works, "ann", "bob")
    name = of(members["ann"])
    members["ann"].holding = True
    plan = await works.operations.plan(TransferGrant("billing", name, "bob"))
    changes = {
        "transfer": plan.change,
        "revoke": RevokeGrant("billing", name),
        "evict": Evict("billing", "ann"),
        "ban": Evict("billing", "ann", ban_ms=60_000),
        "rebalance": Rebalance("billing", moves=plan.moves),
    }
    row = await works.operations.apply(changes[kind], caller=ANA)
    assert row.state == "running"
    await works.restart()
    assert (await works.ended(row.number)).state == "done"


async def test_an_operation_without_a_live_group_ends_at_once(works: Works) -> None:
    await works.plant.topic("orders", 1)
    await works.plant.group("$share/billing/orders/#", Earliest())
    assert (await works.operations.plan(Rebalance("billing"))).nothing_to_do
    with pytest.raises(BorrowerNotFound):
        await works.operations.plan(TransferGrant("billing", FIRST, "ann"))


async def test_the_grants_of_others_go_on_while_one_is_transferred(works: Works) -> None:
    members = await shared(works, "ann", "bob")
    name = of(members["ann"])
    before = {**members["ann"].held, **members["bob"].held}
    await works.apply(TransferGrant("billing", name, "bob"))
    after = {**members["ann"].held, **members["bob"].held}
    assert {f"orders/0/{at.partition}" for at in before if before[at] != after[at]} == {name}


# Cancellations


async def test_a_cancelled_rebalance_says_how_many_of_its_streams_have_changed_hands(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = await shared(works, "ann", "bob", streams=4)
    names = [f"orders/0/{stream.partition}" for stream in sorted(members["ann"].held)]
    plans = [await works.operations.plan(TransferGrant("billing", name, "bob")) for name in names]
    monkeypatch.setattr("dssd.machines.leader.hand_overs.MOVES_A_STEP_MAX", 1)
    monkeypatch.setattr("dssd.machines.leader.hand_overs.MOVE_AGAIN_MS", 60_000)
    members["ann"].holding = True
    moves = tuple(move for plan in plans for move in plan.moves)
    row = await works.operations.apply(Rebalance("billing", moves=moves), caller=ANA)
    await members["ann"].next(Revoke)
    await works.operations.cancel(row.number, caller=ANA, reason="not now")
    members["ann"].holding = False
    ended = await works.ended(row.number)
    assert ended.state == "cancelled"
    assert ended.failure == ("local:ana cancelled it: not now; 1 of 2 streams have changed hands")


@pytest.mark.parametrize("kind", ["transfer", "revoke", "evict", "rebalance"])
async def test_what_is_cancelled_before_a_leader_heard_of_it_is_not_done_over_a_restart(
    works: Works, kind: str
) -> None:
    members = await shared(works, "ann", "bob")
    before = await grants(works)
    name = of(members["ann"])
    plan = await works.operations.plan(TransferGrant("billing", name, "bob"))
    changes = {
        "transfer": plan.change,
        "revoke": RevokeGrant("billing", name),
        "evict": Evict("billing", "ann"),
        "rebalance": Rebalance("billing", moves=plan.moves),
    }
    # The daemon ends between the commits and what they say to the leader.
    works.plant.registry.instruct = lambda group_id, instruction: None  # type: ignore[method-assign] # as above
    row = await works.operations.apply(changes[kind], caller=ANA)
    await works.operations.cancel(row.number, caller=ANA)
    await works.restart()
    again = [
        Answering(works.plant, each.group, f"{who} 2", session=who, client_id=who)
        for who, each in members.items()
    ]
    for member in again:
        member.begin()
    assert (await works.ended(row.number)).state == "cancelled"
    await works.until(lambda: [len(each.held) for each in again] == [2, 2])
    assert await grants(works) == before


async def test_a_transfer_that_is_under_way_when_it_is_cancelled_is_done(works: Works) -> None:
    members = await shared(works, "ann", "bob")
    name = of(members["ann"])
    members["ann"].holding = True
    row = await works.operations.apply(TransferGrant("billing", name, "bob"), caller=ANA)
    await members["ann"].next(Revoke)
    await works.operations.cancel(row.number, caller=ANA)
    members["ann"].leave()
    ended = await works.ended(row.number)
    assert (ended.state, ended.failure) == ("done", "")
    assert (await grants(works))[name] == ("bob", "bob")


async def test_an_eviction_with_a_ban_is_taken_back_and_not_cancelled(works: Works) -> None:
    members = await shared(works, "ann", "bob")
    members["ann"].holding = True
    row = await works.operations.apply(Evict("billing", "ann", ban_ms=60_000), caller=ANA)
    with pytest.raises(NotCancellable):
        await works.operations.cancel(row.number, caller=ANA)


async def test_an_eviction_over_a_restart_spares_a_subscription_that_began_after_it(
    works: Works,
) -> None:
    members = await shared(works, "ann", "bob")
    store, group = works.plant.store, members["ann"].group
    subscribed = Put(SubscriptionRow(b"ann", 0, group.filter, group.group_id))
    await store.commit([subscribed])
    members["ann"].holding = True
    row = await works.operations.apply(Evict("billing", "ann"), caller=ANA)
    await members["ann"].next(Revoke)
    # It was told, and its session forgot the subscription; then the daemon ends. A new process of
    # the client uses the number again.
    await store.commit([Delete(SubscriptionRow, (b"ann", 0))])
    await store.commit([subscribed])
    await works.restart()
    again = Answering(works.plant, group, "ann 2", session="ann", client_id="ann")
    again.begin()
    assert (await works.ended(row.number)).state == "done"
    await works.until(lambda: len(again.held) == 4)
