"""A session of a group with queues: its records fail, and come again from the retry queue."""

import asyncio
from dataclasses import replace

from dss_core.decode import decode
from dss_core.ids import StreamId
from dss_core.lane import DEAD, QUEUES, RETRY, grant_and_level
from dss_core.rows_layout import Headers
from dss_sim.played_groups import PATIENCE_S, Plant
from dss_sim.played_sessions import Attached, Hall, opened_hall
from dssd.machines.delivery.events import Deliver, Nak, Settle
from dssd.machines.delivery.standing import Place
from dssd.machines.start_point import Earliest
from dssd.queues.entries import error_of, lane_of
from dssd.sessions.client_items import Settled, Subscribe
from dssd.store.port import Put
from dssd.store.rows import GroupRow, ProgressRow

GROUP = "$share/g/orders/#"
KNOWS = frozenset({QUEUES, "what nobody knows"})


async def lane_group(hall: Hall, **fields: object) -> GroupRow:
    """A group with queues over a topic of one stream with four records."""
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 4)
    group = await hall.plant.group(GROUP, Earliest())
    usual = {"max_deliver": 2, "backoff_ms": "1", "queue_records": 100, "queue_bytes": 1 << 20}
    edited = replace(group, **(usual | fields))  # type: ignore[arg-type]
    await hall.plant.store.commit([Put(edited)])
    hall.plant.groups.note_changed(edited)
    return edited


async def refuse(client: Attached, number: int, start: int, end: int, error: str) -> None:
    nak = Nak(start, end, None, error, "KeyError")
    await client.settle(Settle(number, naks=(nak,), frontier=end, handed_out=((start, end),)))


def queues_of(hall: Hall) -> tuple[StreamId, StreamId]:
    """Of the only lane."""
    [main] = hall.plant.catalogue.get("orders").streams()
    queues = hall.plant.catalogue.queues_of(hall.plant.groups.find("g").group_id, main)
    assert queues is not None
    return queues


async def headers_in(hall: Hall, level: int) -> list[Headers]:
    """Of the entries of a queue, once it has any."""
    stream = queues_of(hall)[level - RETRY]
    grown = asyncio.Event()
    unwatch = hall.plant.log.watch(stream, grown.set)
    async with asyncio.timeout(PATIENCE_S):
        if not hall.plant.log.span(stream)[1]:
            await grown.wait()
    unwatch()
    return decode((await hall.plant.log.read(stream, 0, bytes_max=1 << 20)).frames).headers


async def test_a_lane_is_granted_to_a_client_that_knows_queues(hall: Hall) -> None:
    await lane_group(hall)
    async with hall.attached(features=KNOWS) as client:
        assert client.opened.features == (QUEUES,)
        assert client.opened.incarnation == hall.plant.catalogue.incarnation != b""
        await client.subscribe(GROUP)
        granted = await client.granted()
        assert granted.queues
        assert grant_and_level(granted.grant) == (granted.grant, 0)
        assert [offset for _, offset, *_ in await client.records(4)] == [0, 1, 2, 3]


async def test_a_record_that_fails_comes_again_from_the_retry_queue_and_then_is_dead(
    hall: Hall,
) -> None:
    await lane_group(hall)
    async with hall.attached(features=KNOWS) as client:
        await client.subscribe(GROUP)
        grant = (await client.records(4))[0][0]
        await client.ack(grant, 1, 4)
        await refuse(client, grant, 0, 1, "first")
        again = await client.next(Deliver)
        assert grant_and_level(again.grant) == (grant, RETRY)
        assert again.redelivered
        held = client.session.held(hall.plant.groups.find("g").group_id, queues_of(hall)[0], 0)
        assert held is not None
        assert held.standing.place is Place.SENT
        [headers] = decode(again.frames, again.mask).headers
        assert (error_of(headers), lane_of(headers).client_id) == ("first", "c")
        await refuse(client, again.grant, again.base, again.base + 1, "second")
        [headers] = await headers_in(hall, DEAD)
        assert (error_of(headers), lane_of(headers).attempt) == ("second", 2)


async def test_what_is_acked_of_the_retry_queue_is_done_for_the_next_holder(hall: Hall) -> None:
    await lane_group(hall)
    async with hall.attached(features=KNOWS) as client:
        await client.subscribe(GROUP)
        grant = (await client.records(4))[0][0]
        await refuse(client, grant, 0, 4, "each")
        [number] = {(await client.next(Deliver)).grant}
        await client.settle(Settle(number, ((0, 4),), token=7))
        await client.next(Settled, token=7)
    rows = [found.row for found in await hall.plant.store.scan(ProgressRow)]
    done = {row.storage_topic_id: (row.floor, row.applied_end) for row in rows}
    assert done[queues_of(hall)[0].storage_topic_id] == (4, 4)


async def test_what_waits_in_the_retry_queue_comes_to_the_next_holder(hall: Hall) -> None:
    await lane_group(hall, backoff_ms="300")
    async with hall.attached("ann", features=KNOWS) as client:
        await client.subscribe(GROUP)
        grant = (await client.records(4))[0][0]
        await refuse(client, grant, 0, 4, "each")
        assert len(await headers_in(hall, RETRY)) == 4
    async with hall.attached("bob", features=KNOWS) as client:
        await client.subscribe(GROUP)
        again = await client.next(Deliver)
        assert grant_and_level(again.grant)[1] == RETRY
        assert {lane_of(each).source_offset for each in decode(again.frames).headers} <= {
            0,
            1,
            2,
            3,
        }


async def test_a_client_that_knows_no_queues_is_refused(hall: Hall) -> None:
    await lane_group(hall)
    async with hall.attached() as client:
        assert client.opened.features == ()
        await client.session.take(Subscribe(1, GROUP))
        refused = await client.refused()
        assert (refused.error.code, refused.subscription) == ("DSS6090", 1)
        assert client.session.subscriptions == 0


async def test_a_group_that_gets_queues_ends_with_clients_that_know_none(hall: Hall) -> None:
    plain = await lane_group(hall, max_deliver=0)
    async with hall.attached("old") as old, hall.attached("new", features=KNOWS) as new:
        for client in (old, new):
            await client.subscribe(GROUP)
        hall.plant.groups.note_changed(replace(plain, max_deliver=3))
        refused = await old.refused()
        assert (refused.error.code, refused.subscription, refused.final) == ("DSS6090", 1, True)
        await new.records(4)


async def test_who_appends_to_queues_hears_that_they_were_removed(plant: Plant) -> None:
    async with opened_hall(plant) as hall:
        group = await lane_group(hall)
        topic = plant.catalogue.get("orders")
        await plant.catalogue.make_queues(group.group_id, topic)
        named = plant.catalogue.queues_of(group.group_id, topic.streams()[0])
        assert named is not None
        writers = plant.registry.writers
        assert [await writers.take_over(named[0], epoch) for epoch in (5, 1)] == [True, False]
        await plant.catalogue.remove("orders")
        assert await writers.take_over(named[0], 1)
