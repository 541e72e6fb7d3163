"""A session of an ordered group: of each key records come in order, whatever fails."""

from dataclasses import replace

import pytest

from dss_core.decode import decode
from dss_core.lane import DEAD, ORDERED, QUEUES, RETRY, grant_and_level
from dss_sim.played_sessions import Attached, Hall
from dssd.machines.delivery.events import AskBack, Deliver, Nak, Settle, TakeBack, TakenBack
from dssd.machines.start_point import Earliest
from dssd.queues.entries import lane_of
from dssd.sessions.client_items import Subscribe
from dssd.store.port import Put
from dssd.store.rows import GroupRow

GROUP = "$share/g/orders/#"
KNOWS = frozenset({QUEUES, ORDERED})
KEYS = [b"k", b"l", b"k", None, b"k"]


async def ordered_group(hall: Hall, **fields: object) -> GroupRow:
    """An ordered group over a topic of one stream, and records of two keys."""
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, len(KEYS), keys=KEYS)
    group = await hall.plant.group(GROUP, Earliest())
    usual = {
        "max_deliver": 2, "backoff_ms": "1", "queue_records": 100, "queue_bytes": 1 << 20,
        "ordered": True, "on_dead_letter": "block",
    }  # fmt: skip
    edited = replace(group, **(usual | fields))  # type: ignore[arg-type]
    await hall.plant.store.commit([Put(edited)])
    hall.plant.groups.note_changed(edited)
    return edited


async def refuse(client: Attached, number: int, at: int, *, reject: bool = False) -> None:
    nak = Nak(at, at + 1, None, "boom", "KeyError", reject)
    end = 0 if grant_and_level(number)[1] else len(KEYS)
    await client.settle(Settle(number, naks=(nak,), frontier=end, handed_out=((at, at + 1),)))


def origins_in(item: Deliver) -> list[int]:
    return [lane_of(each).origin_offset for each in decode(item.frames, item.mask).headers]


@pytest.mark.parametrize(("knows", "code"), [(QUEUES, "DSS6090"), (ORDERED, "DSS6090")])
async def test_a_client_that_knows_no_order_is_refused(hall: Hall, knows: str, code: str) -> None:
    await ordered_group(hall)
    async with hall.attached(features=frozenset({knows})) as client:
        await client.session.take(Subscribe(1, GROUP))
        assert (await client.refused()).error.code == code


async def test_what_follows_a_refused_record_comes_behind_it_one_by_one(hall: Hall) -> None:
    await ordered_group(hall)
    async with hall.attached(features=KNOWS) as client:
        await client.subscribe(GROUP)
        granted = await client.granted()
        assert granted.ordered
        grant = granted.grant
        await client.records(len(KEYS))
        await refuse(client, grant, 0)
        assert await client.next(TakeBack) == TakeBack(grant, ((0, 1), (2, 3), (4, 5)))
        for origin in (0, 2, 4):
            again = await client.next(Deliver)
            assert grant_and_level(again.grant) == (grant, RETRY)
            assert origins_in(again) == [origin]
            await client.settle(
                Settle(
                    again.grant, ((again.base, again.end),), handed_out=((again.base, again.end),)
                )
            )


async def test_a_dead_letter_holds_up_its_key_for_the_next_holder_too(hall: Hall) -> None:
    group = await ordered_group(hall)
    [stream] = hall.plant.catalogue.get("orders").streams()
    queues = hall.plant.catalogue.queues_of
    async with hall.attached("ann", features=KNOWS) as client:
        await client.subscribe(GROUP)
        grant = (await client.records(len(KEYS)))[0][0]
        await refuse(client, grant, 0, reject=True)
        await client.next(TakeBack)
    await hall.plant.publish(stream, 2, keys=[b"k", b"m"])
    async with hall.attached("bob", features=KNOWS) as client:
        await client.subscribe(GROUP)
        seen: set[int] = set()
        while 6 not in seen:
            item = await client.next(Deliver)
            assert not grant_and_level(item.grant)[1]
            seen |= set(decode(item.frames, item.mask).offsets)
        assert seen & {0, 2, 4, 5} == set()
    lane = queues(group.group_id, stream)
    assert lane is not None
    dead = await hall.plant.log.read(lane[DEAD - RETRY], 0, bytes_max=1 << 20)
    origins = [lane_of(each).origin_offset for each in decode(dead.frames).headers]
    assert origins[:1] == [0]
    assert set(origins) <= {0, 2, 4, 5}


async def test_whose_ack_wait_ran_out_is_asked_for(hall: Hall) -> None:
    await ordered_group(hall, ack_wait_ms=100)
    async with hall.attached(features=KNOWS) as client:
        await client.subscribe(GROUP)
        grant = (await client.records(len(KEYS)))[0][0]
        await client.settle(Settle(grant, ((1, 2), (3, 4)), frontier=1))
        asked = await client.next(AskBack)
        assert (asked.grant, asked.ranges) == (grant, ((0, 1), (2, 3), (4, 5)))
        await client.session.take(TakenBack(grant, asked.number, out=True))
        assert origins_in(await client.next(Deliver)) == [0]
