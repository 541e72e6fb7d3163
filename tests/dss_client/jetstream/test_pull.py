"""Pulling over a real daemon (rows P of the checklist)."""

import asyncio
from typing import Any

import pytest

from dss_client.jetstream import ConsumerConfig, Msg, PullSubscription, PushSubscription
from dss_core.errors import (
    ConsumerNotActive,
    ConsumerNotFound,
    GroupDestroyed,
    JetStreamMisuse,
    SubscriptionOver,
)
from support.jetstream_worlds import STREAM, DssWorld, here


async def pulled(world: DssWorld, count: int = 0, **config: Any) -> PullSubscription:  # noqa: ANN401
    for number in range(count):
        await world.publish("orders.eu", b"%d" % number)
    return await world.js.pull_subscribe("orders.>", "p", **config)


def said(messages: list[Msg]) -> list[bytes]:
    return [each.data for each in messages]


@pytest.mark.parametrize(
    "given",
    [
        {"batch": 0}, {"timeout": 0}, {"timeout": -1}, {"max_bytes": 0},
        {"heartbeat": 1.0, "timeout": 2.0},
    ],
    ids=str,
)  # fmt: skip
async def test_v16_a_fetch_that_asks_for_nothing_is_refused(
    world: DssWorld, given: dict[str, float]
) -> None:
    pull = await pulled(world)
    with pytest.raises(JetStreamMisuse):
        await pull.fetch(**given)  # type: ignore[arg-type]


async def test_p01_p11_what_is_there_is_given_and_nothing_is_nothing(world: DssWorld) -> None:
    pull = await pulled(world, 5)
    first = await pull.fetch(3, timeout=5)
    rest = await pull.fetch(10, timeout=5)
    assert said(first) + said(rest) == [b"0", b"1", b"2", b"3", b"4"]
    assert await pull.fetch(10, no_wait=True) == []
    with pytest.raises(TimeoutError):
        await pull.fetch(1, timeout=0.05)


async def test_p02_p12_a_fetch_that_ended_takes_nothing_of_the_next(world: DssWorld) -> None:
    pull = await pulled(world)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await pull.fetch(1, timeout=0.05)
    cancelled = asyncio.create_task(pull.fetch(1, timeout=None))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await world.publish("orders.eu", b"one")
    assert said(await pull.fetch(1, timeout=5)) == [b"one"]


async def test_p04_p18_a_consumer_that_is_deleted_is_told_to_who_fetches(world: DssWorld) -> None:
    pull = await pulled(world)
    fetching = asyncio.create_task(pull.fetch(1, timeout=20))
    await asyncio.sleep(0)
    await world.js.delete_consumer(STREAM, "p")
    with pytest.raises(GroupDestroyed):
        await fetching


async def test_p05_bounds_of_the_consumer_are_kept(world: DssWorld) -> None:
    pull = await pulled(world, max_batch=2, max_expires=1.0, max_bytes=100, max_waiting=1)
    for given in ({"batch": 3}, {"timeout": 2.0}, {"max_bytes": 101}):
        with pytest.raises(JetStreamMisuse):
            await pull.fetch(**({"timeout": 0.5} | given))
    first = asyncio.create_task(pull.fetch(1, timeout=0.2))
    await asyncio.sleep(0)
    with pytest.raises(JetStreamMisuse):
        await pull.fetch(1, timeout=0.2)
    with pytest.raises(TimeoutError):
        await first


async def test_p06_p20_no_more_bytes_come_than_were_asked_for(world: DssWorld) -> None:
    pull = await pulled(world, 4)
    each_bytes = len("orders.eu") + 1
    assert said(await pull.fetch(4, timeout=5, max_bytes=2 * each_bytes)) == [b"0", b"1"]
    with pytest.raises(JetStreamMisuse):
        await pull.fetch(4, timeout=5, max_bytes=each_bytes - 1)
    # P13: what was taken and did not fit comes first.
    assert said(await pull.fetch(1, timeout=5)) == [b"2"]
    assert said(await pull.fetch(4, timeout=5)) == [b"3"]


async def test_p14_fetches_at_once_share_what_comes(world: DssWorld) -> None:
    pull = await pulled(world)
    fetching = [asyncio.create_task(pull.fetch(1, timeout=10)) for _ in range(4)]
    await asyncio.sleep(0)
    for number in range(4):
        await world.publish("orders.eu", b"%d" % number)
    found = [said(each)[0] for each in await asyncio.gather(*fetching)]
    assert sorted(found) == [b"0", b"1", b"2", b"3"]


async def test_p15_what_is_of_the_other_kind_is_not_there(world: DssWorld) -> None:
    pull = await pulled(world)
    assert not {"next_msg", "messages"} & {*dir(pull)}
    push = await world.js.subscribe("orders.>")
    assert isinstance(push, PushSubscription)
    assert "fetch" not in dir(push)


async def test_p16_after_a_drain_the_rest_is_fetched_and_then_it_is_over(world: DssWorld) -> None:
    pull = await pulled(world, 3)
    assert said(await pull.fetch(1, timeout=5)) == [b"0"]
    await here(pull, 2)
    await pull.drain()
    await world.publish("orders.eu", b"late")
    assert said(await pull.fetch(10, timeout=5)) == [b"1", b"2"]
    for _ in range(2):
        with pytest.raises(SubscriptionOver):
            await pull.fetch(10, timeout=5)
    assert "p" not in await world.consumers()


async def test_p17_a_fetch_with_heartbeats_ends_where_the_daemon_is_silent(world: DssWorld) -> None:
    pull = await pulled(world)
    with pytest.raises(TimeoutError):
        await pull.fetch(1, timeout=0.5, heartbeat=0.1)  # it answers
    pull._pieces.silent_s = lambda: 0.3  # type: ignore[method-assign]
    with pytest.raises(ConsumerNotActive):
        await pull.fetch(1, timeout=5, heartbeat=0.1)


async def test_several_pull_from_one_consumer_and_each_message_comes_once(world: DssWorld) -> None:
    await world.js.add_stream("WIDE", ["wide.>"], partitions=4)
    for number in range(40):
        await world.js.publish(f"wide.{number}", b"%d" % number)
    await world.js.add_consumer("WIDE", ConsumerConfig(durable_name="w", filter_subject="wide.>"))
    one, other = [await world.js.pull_subscribe("wide.>", "w") for _ in range(2)]
    seen: list[bytes] = []
    while len(seen) < 40:
        for pull in (one, other):
            for message in await pull.fetch(10, no_wait=True):
                seen.append(message.data)
                await message.ack()
    assert sorted(seen, key=int) == [b"%d" % number for number in range(40)]


async def test_what_is_fetched_ahead_is_told_as_waiting_and_what_was_refused_comes_first(
    world: DssWorld,
) -> None:
    pull = await pulled(world, 6)
    (first,) = await pull.fetch(1, timeout=5)
    await here(pull, 5)
    info = await world.js.consumer_info(STREAM, "p")
    assert (info.num_pending, info.num_ack_pending, pull.pending_msgs) == (5, 1, 5)
    await first.nak()
    await here(pull, 6)
    info = await pull.consumer_info()
    assert (info.num_pending, info.num_ack_pending) == (5, 1)
    again, second = await pull.fetch(2, timeout=5)
    assert (again.data, again.metadata.num_delivered, second.data) == (b"0", 2, b"1")
    await again.ack()
    await second.ack()
    # What was acknowledged is in it, though nobody waited for that.
    info = await pull.consumer_info()
    assert (info.num_pending, info.num_ack_pending) == (4, 0)


async def test_a_consumer_that_is_there_is_bound_by_its_own_calls(world: DssWorld) -> None:
    await world.publish("orders.eu", b"one")
    await world.js.add_consumer(STREAM, durable_name="p", filter_subject="orders.>")
    pull = await world.js.pull_subscribe_bind("p", STREAM)
    assert said(await pull.fetch(1, timeout=5)) == [b"one"]
    made = await world.js.add_consumer(
        STREAM, durable_name="q", deliver_subject="x", deliver_group="q"
    )
    for _ in range(2):
        push = await world.js.subscribe_bind(STREAM, made.config, "q", pending_msgs_limit=10)
        assert isinstance(push, PushSubscription)
    with pytest.raises(ConsumerNotFound):
        await world.js.pull_subscribe_bind("nobody", STREAM)
    with pytest.raises(JetStreamMisuse):
        await world.js.pull_subscribe_bind("p")
