"""What does not move: a stuck group of each kind, over real leaders and sessions."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dss_core.changes import PauseGroup
from dss_core.errors import GroupNotFound, LogUnreadable
from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dss_core.limits import ACKED_RANGES_MAX
from dss_sim.played_groups import LOOK_AGAIN_S, PATIENCE_S
from dss_sim.played_sessions import Attached, Hall
from dssd.log.port import Chunk
from dssd.machines.delivery.events import Nak, Settle
from dssd.machines.start_point import Earliest
from dssd.operations.operations import Caller, Operations
from dssd.questions.limits import STUCK_FAILURES
from dssd.questions.questions import Questions
from dssd.questions.stuck import Stuck
from dssd.sessions.client_items import PauseSet, Status

GROUP = "$share/g/orders/#"
NAME = "g@orders/#"
ANA = Caller("local:ana", "unix:")
AGES_MS = 3_600_000
"""Longer than any test waits."""


async def orders(hall: Hall, records: int, partitions: int = 1, frame: int = 100) -> StreamId:
    """A topic with so many records in its first stream, and a group that begins with them."""
    streams = await hall.plant.topic("orders", partitions)
    for at in range(0, records, frame):
        await hall.plant.publish(streams[0], min(frame, records - at))
    await hall.plant.group(GROUP, Earliest())
    return streams[0]


async def stuck_once(
    questions: Questions, holds: Callable[[list[Stuck]], bool], after_ms: int = AGES_MS
) -> list[Stuck]:
    """What is stuck, once that holds: leaders hear of things a little later."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds(found := await questions.stuck.ask("", after_ms)):  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)
    return found


async def one_stuck(questions: Questions, after_ms: int = AGES_MS) -> Stuck:
    (found,) = await stuck_once(questions, bool, after_ms)
    return found


async def reading(client: Attached, records: int) -> int:
    await client.subscribe(GROUP)
    return (await client.records(records))[0][0]


async def test_a_group_that_has_all_or_goes_on_is_not_stuck(
    hall: Hall, questions: Questions
) -> None:
    await orders(hall, 0)
    assert await questions.stuck.ask("", 0) == []
    await hall.plant.publish(hall.plant.catalogue.get("orders").streams()[0], 2)
    async with hall.attached() as client:
        await reading(client, 2)
        await questions.sampler.look()
        assert await questions.stuck.ask("g", AGES_MS) == []
    with pytest.raises(GroupNotFound):
        await questions.stuck.ask("none")


async def test_records_without_a_member_are_stuck(hall: Hall, questions: Questions) -> None:
    await orders(hall, 3)
    found = await one_stuck(questions)
    assert (found.group, found.stream, found.lag) == (NAME, "", 3)
    assert (found.reason.code, found.reason.sentence) == (
        "no-members",
        "Nobody is a member of the group.",
    )
    assert found.reason.command == "dssctl consume 'orders/#' --group g"


async def test_a_private_subscription_whose_client_is_away_is_told_only_where_it_is_named(
    hall: Hall, questions: Questions
) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    async with hall.attached(expiry_s=3_600) as client:
        await client.subscribe("orders/#")
    await hall.plant.publish(stream, 2)
    [group] = hall.plant.groups.groups()
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await questions.stuck.ask(group.name, AGES_MS)):  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)
    [private] = found
    assert (private.reason.code, private.lag) == ("no-members", 2)
    assert private.reason.sentence.startswith("The client of this private subscription is away")
    assert await questions.stuck.ask("", AGES_MS) == []


async def test_a_pause_and_the_operation_that_waits_for_a_member_to_obey_are_told(
    hall: Hall, questions: Questions, operations: Operations
) -> None:
    await orders(hall, 3)
    async with hall.attached() as client:
        await reading(client, 3)
        row = await operations.apply(PauseGroup("g", None), caller=ANA)
        await client.next(PauseSet)
        waits, paused = await questions.stuck.ask("g", 0)
        assert waits.reason.code == "operation-waits"
        assert f"Operation {row.number} waits since" in waits.reason.sentence
        assert waits.reason.command == f"dssctl ops show {row.number}"
        assert (paused.reason.code, paused.reason.sentence) == ("paused", "The group is paused.")
        assert paused.reason.command == "dssctl groups resume 'g@orders/#'"
        await operations.cancel(row.number, caller=ANA)


async def test_a_record_that_nobody_acknowledges_is_named_with_who_has_it(
    hall: Hall, questions: Questions
) -> None:
    await orders(hall, 3)
    async with hall.attached("ann") as ann:
        grant = await reading(ann, 3)
        await ann.ack(grant, 0, 1)
        await questions.sampler.look()
        (found,) = await stuck_once(questions, lambda found: [each.lag for each in found] == [2], 0)
        assert found.stream == "orders/0/0"
        assert (found.reason.code, found.reason.client_id) == ("handed-out", "ann")
        assert found.reason.command == "dssctl records skip 'g@orders/#' orders/0/0 1"
        assert found.still_ms is not None
        (before,) = every = await questions.overviews.all()
        await questions.stuck.look(every, questions.overviews.lag_in, 0)
        (seen,) = await questions.overviews.all()
        assert (before.stuck, seen.stuck, seen.drain_ms) == (False, True, None)


async def test_of_what_is_out_the_log_is_not_asked(
    hall: Hall, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    await orders(hall, 3)
    async with hall.attached() as client:
        await reading(client, 3)
        await questions.sampler.look()
        monkeypatch.setattr(hall.plant.log, "read", None)
        (found,) = await questions.stuck.ask("g", 0)
        assert found.reason.code == "handed-out"


async def test_a_record_that_fails_again_and_again_is_named_at_once(
    hall: Hall, questions: Questions
) -> None:
    await orders(hall, 2)
    async with hall.attached() as client:
        grant = await reading(client, 2)
        for _ in range(STUCK_FAILURES):
            nak = Settle(grant, frontier=2, handed_out=((0, 1),), naks=(Nak(0, 1, 0),))
            await client.settle(nak)
            await client.records(1)
        found = await one_stuck(questions)
        assert found.reason.code == "failing"
        (seen,) = await questions.overviews.all()
        assert seen.failing, "and its drain is not forecast"
        assert f"The record at 0 failed {STUCK_FAILURES} times" in found.reason.sentence
        assert found.reason.command == "dssctl records skip 'g@orders/#' orders/0/0 0"


async def test_too_many_acknowledged_ranges_name_the_record_below_them(
    hall: Hall, questions: Questions
) -> None:
    records = 2 * ACKED_RANGES_MAX + 4
    await orders(hall, records, frame=1_000)
    async with hall.attached() as client:
        grant = await reading(client, records)
        odd = [(at, at + 1) for at in range(1, records, 2)]
        for at in range(0, len(odd), 100):
            await client.settle(Settle(grant, tuple(odd[at : at + 100]), frontier=records))
        found = await one_stuck(questions)
        assert (found.reason.code, found.reason.blocked_by) == ("capped", 0)
        assert found.reason.command == (
            "dssctl groups why 'g@orders/#' --stream orders/0/0 --offset 0"
        )


async def test_a_stream_that_cannot_be_read_is_stuck(
    hall: Hall, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    await orders(hall, 3)

    async def fail(*_: object, **__: object) -> Chunk:
        raise LogUnreadable(path="a segment", reason="EIO")

    monkeypatch.setattr(hall.plant.log, "read", fail)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        await client.next(Status, state="stalled")
        found = await one_stuck(questions)
        assert found.reason.code == "unreadable"
        assert found.reason.command == "dssctl events --subject orders/0/0"


async def test_damage_at_which_the_group_stalls_is_told_with_the_way_past_it(
    hall: Hall, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stream,) = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 3)
    plant = hall.plant
    await plant.groups.declare(SubscriptionFilter.parse(GROUP), start=Earliest(), on_damage="stall")

    async def damaged(*_: object, **__: object) -> Chunk:
        return Chunk(b"", (), 0, 2, 2, ((0, 2),))

    monkeypatch.setattr(plant.log, "read", damaged)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        await client.next(Status, state="stalled")
        found = await one_stuck(questions)
        assert found.reason.code == "damage-ahead"
        assert found.reason.command == "dssctl groups edit 'g@orders/#' --on-damage pass"


async def test_a_holder_that_does_not_give_its_stream_back_is_named(
    hall: Hall, questions: Questions
) -> None:
    await orders(hall, 3, partitions=2)
    async with hall.attached("ann") as ann:
        ann.answers_revokes = False
        await reading(ann, 3)
        await hall.plant.publish(hall.plant.catalogue.get("orders").streams()[1], 3)
        await ann.records(3)
        async with hall.attached("bob") as bob:
            await bob.subscribe(GROUP)

            def revoking(found: list[Stuck]) -> bool:
                return any(each.reason.code == "revoking" for each in found)

            found: Any = await stuck_once(questions, revoking, 0)
            (changing,) = [each for each in found if each.reason.code == "revoking"]
            assert changing.reason.client_id == "ann"
            assert "ann is asked to give the stream back" in changing.reason.sentence
