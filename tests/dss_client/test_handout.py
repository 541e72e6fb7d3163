import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import dss_client
from dss_api.v1.sessions_pb2 import Deliver
from dss_client import DeliveredRecord, Subscription
from dss_client import _attachment as attachments
from dss_client import subscription as subscriptions
from dss_client.testing import MemoryDaemon, until
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.progress import Progress

WAYS = ("one by one", "batches", "fetch")


def fill(daemon: MemoryDaemon, count: int) -> None:
    """Append a frame of so many records."""
    frame = build_frame(
        Columns([b"x"] * count, [None] * count, "t"),
        partition=0,
        producer_id=b"p" * 16,
        sequence=len(daemon.streams[0].frames),
    )
    daemon.streams[0].append(frame)


@asynccontextmanager
async def in_hand(
    daemon: MemoryDaemon,
) -> AsyncIterator[tuple[Subscription, list[DeliveredRecord]]]:
    """A subscription with six records in hand."""
    daemon.hold_back = True
    fill(daemon, 6)
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe("$share/g/t/#") as subscription,
    ):
        daemon.deliver(1)
        yield subscription, await subscription.fetch(6)


@asynccontextmanager
async def with_copies(
    daemon: MemoryDaemon, *, refused: bool = False
) -> AsyncIterator[tuple[Subscription, list[DeliveredRecord]]]:
    """The same, where copies of them wait in its queue."""
    async with in_hand(daemon) as (subscription, records):
        if refused:
            for record in records:
                await record.nak(0)
        await until(lambda: daemon.streams[0].frontier == 6)
        daemon.deliver_part(1, 0, 6, redelivered=True)
        await until(lambda: subscription._inbox)
        yield subscription, records


async def taken(subscription: Subscription, way: str) -> list[int]:
    """What comes next, in a way: one record, or all that is there."""
    if way == "one by one":
        return [(await anext(aiter(subscription))).offset]
    if way == "batches":
        return [*(await anext(aiter(subscription.batches()))).offsets]
    return [record.offset for record in await subscription.fetch(6, timeout=0.01)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("refused", [False, True])
async def test_a_copy_whose_ack_became_durable_while_it_waited_is_not_handed_out(
    daemon: MemoryDaemon, way: str, refused: bool
) -> None:
    async with with_copies(daemon, refused=refused) as (subscription, records):
        for at in (0, 1, 3, 5):
            await records[at].ack(sync=True)
        seen: list[int] = []
        while len(seen) < 2:
            seen += await taken(subscription, way)
        assert seen == [2, 4]
        assert await subscription.fetch(1, timeout=0.01) == []
        await until(lambda: daemon.streams[0].hand_outs == {0: 1, 1: 1, 2: 2, 3: 1, 4: 2, 5: 1})


@pytest.mark.parametrize("way", WAYS)
async def test_a_copy_is_not_handed_out_once_its_ack_is_durable_while_others_of_its_piece_were(
    daemon: MemoryDaemon, way: str
) -> None:
    async with with_copies(daemon) as (subscription, records):
        assert (await subscription.fetch(1))[0].offset == 0
        for at in (1, 2, 5):
            await records[at].ack(sync=True)
        seen: list[int] = []
        while len(seen) < 2:
            seen += await taken(subscription, way)
        assert seen == [3, 4]


@pytest.mark.parametrize("way", ["batches", "fetch"])
async def test_a_copy_whose_ack_becomes_durable_while_certainty_is_asked_for_is_not_handed_out(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    async with with_copies(daemon) as (subscription, records):
        asked = 0

        async def ask() -> None:
            nonlocal asked
            asked += 1
            await records[2].ack(sync=True)

        monkeypatch.setattr(subscription._session, "wait_sure", ask)
        subscription._resume_at = 0.0
        assert await taken(subscription, way) == [0, 1, 3, 4, 5]
        assert asked >= 1


async def test_fetch_does_not_count_what_it_will_not_hand_out(daemon: MemoryDaemon) -> None:
    async with with_copies(daemon) as (subscription, records):
        for record in records[:5]:
            await record.ack(sync=True)
        assert [each.offset for each in await subscription.fetch(2, timeout=0.01)] == [5]


async def test_what_is_left_of_a_piece_in_a_pause_is_still_without_what_was_acknowledged(
    daemon: MemoryDaemon,
) -> None:
    async with with_copies(daemon) as (subscription, records):
        assert (await subscription.fetch(1))[0].offset == 0
        await records[2].ack(sync=True)
        assert (await subscription.fetch(1))[0].offset == 1
        subscription.set_paused(True)
        await records[4].ack(sync=True)
        subscription.set_paused(False)
        assert [each.offset for each in await subscription.fetch(6, timeout=0.01)] == [3, 5]


async def test_a_copy_that_nobody_acknowledged_is_handed_out_and_settled(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One look for each record, also where the loop runs in between.
    monkeypatch.setattr(subscriptions, "FLUSH_RECORDS", 1)
    async with with_copies(daemon) as (subscription, records):
        async for record in subscription:
            assert record.redelivered
            await record.ack(sync=True)
            if record.offset == 5:
                break
        assert daemon.streams[0].progress.floor == 6
        assert [record.acked for record in records] == [True] * 6


def send_copies(daemon: MemoryDaemon) -> None:
    """Let all six records come once more, as a daemon sends them that has not heard of any ack."""
    [(_, frame), *_] = daemon.streams[0].frames
    daemon.say(deliver=Deliver(grant=1, frames=frame, redelivered=True, attempt=2))


async def reported(daemon: MemoryDaemon, *records: DeliveredRecord) -> None:
    """Acknowledge records without waiting for it, until the daemon has heard of that."""
    for record in records:
        await record.ack()
    stream = daemon.streams[0]
    await until(lambda: all(record.offset in covered(stream.progress) for record in records))


def covered(progress: Progress) -> set[int]:
    """The offsets that are acknowledged."""
    return {
        at for start, end in ((0, progress.floor), *progress.ranges) for at in range(start, end)
    }


@pytest.mark.parametrize("way", WAYS)
async def test_a_copy_that_crossed_the_report_of_an_ack_is_not_handed_out(
    daemon: MemoryDaemon, way: str
) -> None:
    async with in_hand(daemon) as (subscription, records):
        await reported(daemon, records[0], records[2], records[3])
        send_copies(daemon)
        await records[1].ack(sync=True)
        seen: list[int] = []
        while len(seen) < 2:
            seen += await taken(subscription, way)
        assert seen == [4, 5]
        assert await subscription.fetch(1, timeout=0.01) == []


@pytest.mark.parametrize("way", WAYS)
async def test_of_copies_that_are_all_acknowledged_none_is_handed_out(
    daemon: MemoryDaemon, way: str
) -> None:
    async with in_hand(daemon) as (subscription, records):
        await reported(daemon, *records)
        send_copies(daemon)
        fill(daemon, 1)
        daemon.deliver(1)
        assert await taken(subscription, way) == [6]


async def test_a_run_does_not_handle_a_copy_that_crossed_the_report_of_an_ack(
    daemon: MemoryDaemon,
) -> None:
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)

    async with in_hand(daemon) as (subscription, records):
        await reported(daemon, *records[:3])
        send_copies(daemon)
        run = asyncio.create_task(subscription.run(handle))
        await until(lambda: daemon.streams[0].progress.floor == 6)
        run.cancel()
    assert handled == [3, 4, 5]


async def test_as_many_acks_are_kept_as_records_may_be_out(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "ACKED_RANGES_KEPT", 2)
    async with in_hand(daemon) as (subscription, records):
        for at in (0, 2, 4):
            await reported(daemon, records[at])
        send_copies(daemon)
        # Of three, the oldest is forgotten: that copy comes, as one after a loss would.
        assert [each.offset for each in await subscription.fetch(6, timeout=0.01)] == [0, 1, 3, 5]
