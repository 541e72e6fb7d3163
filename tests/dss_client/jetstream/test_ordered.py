"""Ordered consumers (rows O of the checklist), and durable ones, over deaths of the daemon."""

import asyncio
from pathlib import Path

import pytest

import dss_client
from dss_client.jetstream import AckPolicy, OrderedSubscription
from dss_client.jetstream.config import SequenceInfo
from dss_core.errors import SubscriptionOver, TopicNotFound
from support.daemon_process import DaemonProcess
from support.jetstream_worlds import STREAM, DssWorld, until
from support.proof_share import share

KILLS, MESSAGES = share((1, 100), (2, 400))


async def test_o06_o13_it_is_told_as_the_adr_has_it_and_needs_no_ack(world: DssWorld) -> None:
    await world.publish("orders.eu", b"one")
    sub = await world.js.subscribe("orders.>", ordered_consumer=True)
    assert isinstance(sub, OrderedSubscription)
    config = (await sub.consumer_info()).config
    assert (config.flow_control, config.ack_policy, config.max_deliver) == (True, "none", 1)
    assert (config.num_replicas, config.mem_storage, config.ack_wait) == (1, True, 22 * 3_600)
    assert (config.idle_heartbeat, config.durable_name) == (5.0, None)
    message = await sub.next_msg(5)
    assert (message.data, message.metadata.sequence.stream) == (b"one", 1)
    await message.ack()
    await message.nak()
    with pytest.raises(TimeoutError):
        await sub.next_msg(0.1)
    assert await world.consumers() == set()  # the daemon keeps nothing of it


async def test_it_begins_where_it_is_told_to(world: DssWorld) -> None:
    for number in range(5):
        await world.publish("orders.eu" if number % 2 else "orders.us", b"%d" % number)
    third = await world.js.subscribe(
        "orders.>", ordered_consumer=True, deliver_policy="by_start_sequence", opt_start_seq=3
    )
    assert [(await third.next_msg(5)).data for _ in range(3)] == [b"2", b"3", b"4"]
    eu = await world.js.subscribe("orders.eu", ordered_consumer=True)
    assert [(await eu.next_msg(5)).data for _ in range(2)] == [b"1", b"3"]
    new = await world.js.subscribe("orders.>", ordered_consumer=True, deliver_policy="new")
    with pytest.raises(TimeoutError):
        await new.next_msg(0.2)
    await world.publish("orders.eu", b"late")
    assert (await new.next_msg(5)).data == b"late"


async def test_it_tells_how_far_it_is_and_a_drain_gives_what_came(world: DssWorld) -> None:
    for number in range(6):
        await world.publish("orders.eu" if number % 2 else "orders.us", b"%d" % number)
    sub = await world.js.subscribe("orders.>", ordered_consumer=True)
    part = await world.js.subscribe("orders.eu", ordered_consumer=True)
    assert isinstance(sub, OrderedSubscription)
    await sub.next_msg(5)
    await part.next_msg(5)
    info, of_part = await sub.consumer_info(), await part.consumer_info()
    assert (info.num_pending, info.num_ack_pending) == (5, 0)
    assert info.delivered == info.ack_floor == SequenceInfo(1, 1)
    # How many of a part are behind it nobody counts.
    assert (of_part.num_pending, of_part.delivered) == (None, SequenceInfo(1, 2))

    async def all_here() -> bool:
        return sub.pending_msgs == 5

    await until(all_here)
    await sub.drain()
    await world.publish("orders.eu", b"late")
    assert [(await sub.next_msg(5)).data for _ in range(5)] == [b"1", b"2", b"3", b"4", b"5"]
    with pytest.raises(SubscriptionOver):
        await sub.next_msg(5)
    assert [(await part.next_msg(5)).data for _ in range(3)] == [b"3", b"5", b"late"]
    assert (await part.consumer_info()).num_pending == 0


async def test_iteration_ends_when_it_is_left(world: DssWorld) -> None:
    await world.publish("orders.eu", b"one")
    sub = await world.js.subscribe("orders.>", ordered_consumer=True)
    async for message in sub.messages:
        assert message.data == b"one"
        await sub.unsubscribe()
    with pytest.raises(SubscriptionOver):
        await sub.next_msg(5)


async def test_o09_a_stream_that_is_not_there_is_told(world: DssWorld) -> None:
    with pytest.raises(TopicNotFound):
        await world.js.subscribe(stream="NOWHERE", ordered_consumer=True)


@pytest.mark.slow("a daemon is killed and begins anew in the middle")
async def test_o07_o08_o12_over_kills_every_message_comes_once_and_in_order(home: Path) -> None:
    endpoint = f"unix:{home / 'd.sock'}"
    listens = ("--data-dir", str(home / "data"), "--listen", endpoint)
    daemon = await DaemonProcess.start(*listens)
    try:
        async with dss_client.connect("one", endpoint=endpoint) as client:
            js = client.jetstream()
            await js.add_stream(STREAM, ["orders.>"])
            ordered = await js.subscribe("orders.>", ordered_consumer=True)
            durable = await js.subscribe("orders.>", durable="d", ack_wait=5.0)
            seen: list[int] = []
            acked: set[int] = set()
            for number in range(MESSAGES):
                if number and number % (MESSAGES // (KILLS + 1)) == 0:
                    await daemon.kill()
                    daemon = await DaemonProcess.start(*listens)
                ack = await js.publish("orders.eu", b"%d" % number)
                assert ack.seq is not None
                async with asyncio.timeout(60):
                    seen.append(int((await ordered.next_msg(None)).data))
                    while number not in acked:
                        message = await durable.next_msg(None)
                        await message.ack()
                        acked.add(int(message.data))
            assert seen == list(range(MESSAGES))
            assert acked == set(range(MESSAGES))
            assert (await ordered.consumer_info()).config.ack_policy == AckPolicy.NONE
    finally:
        await daemon.kill()
