"""A paused subscription hands out nothing new, whichever way its records are taken."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

import dss_client
from dss_api.v1 import sessions_pb2
from dss_client import DeliveredRecord, Subscription
from dss_client.testing import MemoryDaemon, until
from dss_client.testing.memory_session import wire_error
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import GroupDestroyed

SHARE = "$share/g/t/#"


def fill(daemon: MemoryDaemon, records: int, keys: Sequence[bytes] | None = None) -> None:
    """Append a frame of so many records."""
    stream = daemon.streams[0]
    payloads = [b"%d" % number for number in range(stream.end, stream.end + records)]
    frame = build_frame(
        Columns(payloads, list(keys) if keys else [b"k"] * records, "t"),
        partition=0,
        producer_id=b"p" * 16,
        sequence=len(stream.frames),
    )
    stream.append(frame)


@asynccontextmanager
async def subscribed(daemon: MemoryDaemon) -> AsyncIterator[Subscription]:
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(SHARE) as subscription,
    ):
        yield subscription


async def paused(daemon: MemoryDaemon, subscription: Subscription, *, paused: bool = True) -> None:
    """The client was told, and has confirmed."""
    turn = daemon.set_paused(subscription.number, paused=paused)
    await until(lambda: turn in daemon.pauses_taken)
    assert (subscription.state == "paused") == paused


async def nothing_comes(taking: asyncio.Future[Any]) -> None:
    """Let everything run for a while; the record is not handed out."""
    for _ in range(200):
        await asyncio.sleep(0)
    assert not taking.done()


def offsets(records: Sequence[DeliveredRecord]) -> list[int]:
    return [record.offset for record in records]


async def test_iteration_stops_within_a_piece_and_goes_on_behind_the_last_record(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 10)
    async with subscribed(daemon) as subscription:
        records = aiter(subscription)
        first = [await anext(records) for _ in range(4)]
        await paused(daemon, subscription)
        assert daemon.streams[0].frontier == 4, "reported before it was confirmed"
        coming = asyncio.ensure_future(anext(records))
        await nothing_comes(coming)
        for record in first:
            await record.ack()
        await until(lambda: daemon.streams[0].progress.floor == 4)
        await paused(daemon, subscription, paused=False)
        rest = [await coming, *[await anext(records) for _ in range(5)]]
    assert offsets([*first, *rest]) == list(range(10))
    assert not any(record.redelivered for record in rest)
    assert set(daemon.streams[0].hand_outs.values()) == {1}


async def test_records_that_come_in_a_pause_wait_in_the_client(daemon: MemoryDaemon) -> None:
    fill(daemon, 1)
    async with subscribed(daemon) as subscription:
        records = aiter(subscription)
        await anext(records)
        await paused(daemon, subscription)
        coming = asyncio.ensure_future(anext(records))
        fill(daemon, 1)
        daemon.deliver_new(0, 1)
        await nothing_comes(coming)
        await paused(daemon, subscription, paused=False)
        assert (await coming).offset == 1


async def test_fetch_gives_nothing_in_a_pause_and_returns_at_its_timeout(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 10)
    async with subscribed(daemon) as subscription:
        assert offsets(await subscription.fetch(3)) == [0, 1, 2]
        await paused(daemon, subscription)
        assert await subscription.fetch(3, timeout=0.01) == []
        coming = asyncio.ensure_future(subscription.fetch(3))
        await nothing_comes(coming)
        await paused(daemon, subscription, paused=False)
        assert offsets(await coming) == [3, 4, 5]


async def test_batches_wait_in_a_pause_and_a_piece_that_was_begun_comes_as_its_rest(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 10)
    async with subscribed(daemon) as subscription:
        await subscription.fetch(4)
        await paused(daemon, subscription)
        batches = aiter(subscription.batches())
        coming = asyncio.ensure_future(anext(batches))
        await nothing_comes(coming)
        await paused(daemon, subscription, paused=False)
        assert list((await coming).offsets) == list(range(4, 10))
        await until(lambda: daemon.streams[0].frontier == 10)
    assert set(daemon.streams[0].hand_outs.values()) == {1}


@pytest.mark.parametrize("keys", [[b"a"] * 6, [b"%d" % at for at in range(6)]])
async def test_a_run_calls_no_handler_in_a_pause_and_what_is_handled_is_acknowledged(
    daemon: MemoryDaemon, keys: list[bytes]
) -> None:
    fill(daemon, 6, keys)
    handled: list[int] = []
    may_end = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        await may_end.wait()

    async with subscribed(daemon) as subscription:
        run = asyncio.ensure_future(subscription.run(handle, concurrency=2))
        await until(lambda: handled)
        await asyncio.sleep(0)
        await paused(daemon, subscription)
        begun = list(handled)
        may_end.set()
        await until(lambda: daemon.acknowledged() == len(begun))
        await nothing_comes(run)
        assert handled == begun
        await paused(daemon, subscription, paused=False)
        await until(lambda: daemon.streams[0].progress.floor == 6)
        await subscription.drain()
        await run
    assert sorted(handled) == list(range(6))


async def test_a_run_that_is_drained_in_a_pause_returns_and_handles_nothing_more(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 6)
    handled: list[int] = []
    may_end = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        await may_end.wait()

    async with subscribed(daemon) as subscription:
        run = asyncio.ensure_future(subscription.run(handle, concurrency=1))
        await until(lambda: handled)
        await paused(daemon, subscription)
        may_end.set()
        await until(lambda: daemon.streams[0].progress.floor == 1)
        await subscription.drain()
        await asyncio.wait_for(run, 60)
    assert handled == [0]
    assert daemon.streams[0].hand_outs == {0: 1}


async def test_what_a_cancelled_run_left_waits_for_the_end_of_a_pause_too(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 4)
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        if handled == [0, 1]:
            await asyncio.Event().wait()

    async with subscribed(daemon) as subscription:
        run = asyncio.ensure_future(subscription.run(handle, concurrency=1))
        await until(lambda: 1 in handled)
        await paused(daemon, subscription)
        run.cancel()
        await asyncio.wait([run])
        again = asyncio.ensure_future(subscription.run(handle, concurrency=1))
        await nothing_comes(again)
        assert handled == [0, 1]
        await paused(daemon, subscription, paused=False)
        await until(lambda: len(handled) == 5)
        await subscription.drain()
        await again
    assert handled[:2] == [0, 1]
    assert sorted(handled[2:]) == [1, 2, 3]


async def test_a_stream_that_is_taken_back_in_a_pause_is_not_handed_out_after_it(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 4)
    async with subscribed(daemon) as subscription:
        await subscription.fetch(1)
        await paused(daemon, subscription)
        daemon.revoke(1, deadline_ms=10)
        await until(lambda: daemon.revoke_finished == [1])
        await paused(daemon, subscription, paused=False)
        assert await subscription.fetch(1, timeout=0.01) == []


async def test_a_pause_of_a_subscription_that_nobody_has_is_confirmed(
    daemon: MemoryDaemon,
) -> None:
    async with subscribed(daemon) as subscription:
        turn = daemon.set_paused(subscription.number + 1, paused=True)
        await until(lambda: turn in daemon.pauses_taken)
        assert subscription.state != "paused"


async def test_a_new_connection_begins_without_the_pause_that_the_last_one_was_told(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 2)
    async with subscribed(daemon) as subscription:
        await subscription.fetch(1)
        await paused(daemon, subscription)
        await daemon.cut()
        await daemon.start()
        await until(lambda: len(daemon.opens) == 2)
        assert offsets(await subscription.fetch(2, timeout=5)) == [0, 1]


async def test_a_run_ends_in_a_pause_when_its_subscription_is_over(daemon: MemoryDaemon) -> None:
    fill(daemon, 12, [b"%d" % at for at in range(12)])
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        await record.ack()

    async with subscribed(daemon) as subscription:
        daemon.set_paused(subscription.number, paused=True)
        await until(lambda: subscription.state == "paused")
        run = asyncio.ensure_future(subscription.run(handle, concurrency=1))
        await nothing_comes(run)
        daemon.say(revoked=sessions_pb2.Revoked(grant=1, reason="gone"))
        daemon.say(revoked=sessions_pb2.Revoked(grant=2, reason="gone"))
        gone = wire_error(GroupDestroyed(group="g"))
        over = sessions_pb2.SessionError(error=gone, subscription=subscription.number, final=True)
        daemon.say(error=over)
        with pytest.raises(GroupDestroyed):
            await asyncio.wait_for(run, 60)
    assert handled == []
