"""What happens beside an operation in the same moment: members that leave, a group that is removed,
an end beside a cancellation."""

import asyncio
from collections.abc import Callable

import pytest

from dss_core.changes import EditGroup, RevokeGrant, SkipRecords, TransferGrant
from dss_core.errors import BorrowerNotFound, GroupDestroyed, OperationEnded
from dssd.leaders.takeover import CANCELLING
from dssd.machines.start_point import Earliest
from dssd.operations.history import DONE
from dssd.store.port import Put, Write
from dssd.store.rows import GroupRow, OperationRow, PendingMoveRow, Row
from support.held_commits import HeldCommits
from support.operated_groups import ANA, Works
from support.shared_groups import grants, of, shared

# Members


@pytest.mark.parametrize("kind", ["transfer", "revoke"])
async def test_a_giver_that_leaves_in_the_middle_lets_the_taker_have_the_stream(
    works: Works, kind: str
) -> None:
    members = await shared(works, "ann", "bob", "cat", streams=6)
    name = of(members["ann"])
    members["ann"].holding = True
    change = TransferGrant("billing", name, "bob")
    asked = change if kind == "transfer" else RevokeGrant("billing", name)
    [move] = (await works.operations.plan(asked)).moves
    row = await works.operations.apply(asked, caller=ANA)
    assert row.state == "running"
    members["ann"].leave()
    assert (await works.ended(row.number)).state == "done"
    assert (await grants(works))[name] == (move.to_client_id, move.to_client_id)


@pytest.mark.parametrize("kind", ["transfer", "revoke"])
async def test_a_taker_that_leaves_in_the_middle_ends_the_operation_and_the_pin(
    works: Works, kind: str
) -> None:
    members = await shared(works, "ann", "bob", "cat", streams=6)
    name = of(members["ann"])
    members["ann"].holding = True
    change = TransferGrant("billing", name, "bob")
    asked = change if kind == "transfer" else RevokeGrant("billing", name)
    [move] = (await works.operations.plan(asked)).moves
    row = await works.operations.apply(asked, caller=ANA)
    members[move.to_client_id].leave()
    assert (await works.ended(row.number)).state == "done"
    members["ann"].leave()
    [last] = {"bob", "cat"} - {move.to_client_id}
    await works.until(lambda: len(members[last].held) == 6)
    assert set((await grants(works)).values()) == {(last, "")}


@pytest.mark.parametrize("gone", ["giver", "taker"])
async def test_a_member_that_leaves_between_the_plan_and_its_commit_refuses_it(
    works: Works, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = await shared(works, "ann", "bob", "cat", streams=6)
    name = of(members["ann"])
    leaver = members["ann" if gone == "giver" else "bob"]
    usual = works.plant.store.next_id

    async def next_id() -> int:
        leaver.leave()
        stays = [each for each in members.values() if each is not leaver]
        await works.until(lambda: sum(len(each.held) for each in stays) == 6)
        return await usual()

    monkeypatch.setattr(works.plant.store, "next_id", next_id)
    transfer = TransferGrant("billing", name, "bob")
    change = RevokeGrant("billing", name) if gone == "giver" else transfer
    with pytest.raises(BorrowerNotFound):
        await works.operations.apply(change, caller=ANA)
    assert list(works.operations.newest()) == []
    assert works.plant.groups.find("billing").revision == 0


# A removal


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("kind", ["edit", "skip"])
async def test_a_group_that_is_removed_beside_an_apply_refuses_it_or_ends_it(
    works: Works, kind: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 10)
    group = await works.plant.group("$share/billing/orders/#", Earliest())
    change = EditGroup("billing", ack_wait_ms=7) if kind == "edit" else skip_one()
    held = HeldCommits(monkeypatch, works.plant.store, puts(OperationRow), after=order == "after")
    applying = asyncio.create_task(works.operations.apply(change, caller=ANA))
    await held.reached.wait()
    await works.plant.groups.remove(group.group_id)
    held.goes_on.set()
    if order == "before":
        with pytest.raises(GroupDestroyed):
            await applying
        assert await works.plant.store.scan(OperationRow) == []
    else:
        ended = await works.ended((await applying).number)
        expected = ("done", "") if kind == "edit" else ("failed", "the group was removed")
        assert (ended.state, ended.failure) == expected
    assert await works.plant.store.scan(GroupRow) == []
    assert await works.plant.store.scan(PendingMoveRow) == []


async def test_a_group_whose_removal_is_under_way_refuses_an_apply_by_its_name(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = await works.plant.group("$share/billing/orders/#", Earliest())
    held = HeldCommits(
        monkeypatch, works.plant.store, lambda each: not puts(OperationRow)(each), after=True
    )
    removing = asyncio.create_task(works.plant.groups.remove(group.group_id))
    await held.reached.wait()
    applying = asyncio.create_task(
        works.operations.apply(EditGroup("billing", ack_wait_ms=7), caller=ANA)
    )
    await asyncio.sleep(0)
    held.goes_on.set()
    with pytest.raises(GroupDestroyed):
        await applying
    await removing
    assert await works.plant.store.scan(OperationRow) == []


def skip_one() -> SkipRecords:
    return SkipRecords("billing", "orders/0/0", 7)


# An end beside a cancellation


async def test_an_end_that_is_being_stored_is_not_overwritten_by_a_cancellation(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, held = await ending(works, monkeypatch)
    cancelling = asyncio.create_task(works.operations.cancel(row.number, caller=ANA))
    await asyncio.sleep(0)
    held.goes_on.set()
    with pytest.raises(OperationEnded, match="done already"):
        await cancelling
    assert (await works.ended(row.number)).state == DONE
    await works.restart()
    assert works.operations.get(row.number).state == DONE


async def test_a_cancellation_that_is_being_stored_stands_beside_an_end(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.topic("orders", 1)
    await works.plant.publish(works.plant.catalogue.topics()[0].streams()[0], 10)
    await works.plant.group("$share/billing/orders/#", Earliest())
    member = await works.consumed("billing", 5)
    row = await works.operations.apply(skip_one(), caller=ANA)
    held = HeldCommits(monkeypatch, works.plant.store, puts(OperationRow))
    cancelling = asyncio.create_task(works.operations.cancel(row.number, caller=ANA))
    await held.reached.wait()
    await works.given_back(member, 5)
    held.goes_on.set()
    assert (await cancelling).state == CANCELLING
    # What was asked for was done all the same, so that is what it is called.
    ended = await works.ended(row.number)
    assert (ended.state, ended.failure) == (DONE, "")


async def ending(works: Works, monkeypatch: pytest.MonkeyPatch) -> tuple[OperationRow, HeldCommits]:
    """An operation whose end is being stored."""
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 10)
    await works.plant.group("$share/billing/orders/#", Earliest())
    held = HeldCommits(monkeypatch, works.plant.store, is_end)
    row = await works.operations.apply(skip_one(), caller=ANA)
    await held.reached.wait()
    return row, held


def puts(kind: type[Row]) -> Callable[[Write], bool]:
    def does(write: Write) -> bool:
        return isinstance(write, Put) and isinstance(write.row, kind)

    return does


def is_end(write: Write) -> bool:
    row = write.row if isinstance(write, Put) else None
    return isinstance(row, OperationRow) and row.ended_at_ms is not None
