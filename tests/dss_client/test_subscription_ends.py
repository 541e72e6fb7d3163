import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, cast

import pytest

import dss_client
import dss_client.subscription as subscription_module
from dss_api.v1 import sessions_pb2
from dss_client import Client, DeliveredRecord, GrantNotice, Subscription
from dss_client.limits import CLOSE_TIMEOUT_S, YIELD_EVERY_S
from dss_client.session import Session
from dss_client.testing import MemoryDaemon, until
from dss_client.testing.memory_session import wire_error
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import AckOutOfRange, GrantNotHeld, GroupDestroyed, OutcomeUnknown

SHARE = "$share/g/t/#"


def fill(daemon: MemoryDaemon, *sizes: int) -> None:
    """Append frames of these many records to the first stream."""
    stream = daemon.streams[0]
    for size in sizes:
        payloads = [b"%d" % number for number in range(stream.end, stream.end + size)]
        columns = Columns(payloads, [b"k"] * size, "t")
        sequence = len(stream.frames)
        stream.append(build_frame(columns, partition=0, producer_id=b"p" * 16, sequence=sequence))


def kept_client(daemon: MemoryDaemon) -> Client:
    return dss_client.connect("me", session_expiry=60, endpoint=daemon.endpoint)


@asynccontextmanager
async def subscribed(daemon: MemoryDaemon) -> AsyncIterator[Subscription]:
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(SHARE) as subscription,
    ):
        yield subscription


async def test_leaving_does_not_wait_for_a_session_that_has_ended(daemon: MemoryDaemon) -> None:
    async with asyncio.timeout(CLOSE_TIMEOUT_S), subscribed(daemon) as subscription:
        cast("Session", subscription._session)._task.cancel()


async def take(subscription: Subscription, count: int) -> None:
    """Take so many records, and acknowledge each."""
    for record in await subscription.fetch(count):
        await record.ack()


async def give_up(daemon: MemoryDaemon, client: Client, topic_filter: str) -> None:
    """Cancel a subscription that the daemon has heard of and does not answer."""
    entering = asyncio.ensure_future(client.subscribe(topic_filter).__aenter__())
    await until(lambda: daemon.subscribes)
    entering.cancel()
    await asyncio.wait([entering])


@asynccontextmanager
async def unanswered_ack(
    daemon: MemoryDaemon,
) -> AsyncIterator[tuple[Subscription, DeliveredRecord, "asyncio.Future[None]"]]:
    """A record whose sync ack the daemon has heard of and does not answer."""
    fill(daemon, 2)
    daemon.mute_settled = True
    async with subscribed(daemon) as subscription:
        (record,) = await subscription.fetch(1)
        acking = asyncio.ensure_future(record.ack(sync=True))
        await until(lambda: any(settle.token for settle in daemon.settles))
        yield subscription, record, acking


async def iterating(
    daemon: MemoryDaemon, subscription: Subscription
) -> "asyncio.Future[list[int]]":
    """An iteration that was given all three records there are, and waits for more."""
    iteration = asyncio.ensure_future(handing_over(subscription))
    await until(lambda: daemon.streams[0].frontier == 3)
    return iteration


async def handing_over(subscription: Subscription) -> list[int]:
    """The offsets that iteration gave until it ended."""
    return [record.offset async for record in subscription]


# A subscription that was given up


async def test_a_cancelled_subscription_is_taken_back(daemon: MemoryDaemon) -> None:
    fill(daemon, 3)
    daemon.mute_subscribed = True
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await give_up(daemon, client, SHARE)
        await until(lambda: daemon.unsubscribes == [daemon.subscribes[0].subscription])


async def test_a_cancelled_private_subscription_of_a_lasting_session_stays_in_it(
    daemon: MemoryDaemon,
) -> None:
    daemon.mute_subscribed = True
    async with kept_client(daemon) as client:
        await give_up(daemon, client, "t/#")
        daemon.mute_subscribed = False
        grant = daemon.grant(daemon.subscribes[0].subscription, 0)
        await until(lambda: daemon.revoke_finished == [grant])
        async with client.subscribe("t/#"):
            pass
    assert daemon.unsubscribes == []
    first, second = daemon.subscribes
    assert first.subscription == second.subscription


# A private subscription that its session keeps


async def test_leaving_a_kept_subscription_gives_its_streams_back(daemon: MemoryDaemon) -> None:
    fill(daemon, 10)
    async with kept_client(daemon) as client:
        async with client.subscribe("t/#") as subscription:
            await take(subscription, 4)
        await until(lambda: sorted(daemon.revoke_finished) == [1, 2])
    assert daemon.unsubscribes == []
    assert daemon.streams[0].progress.floor == 4
    assert daemon.streams[0].frontier == 4


async def test_a_kept_subscription_is_taken_up_under_its_number(daemon: MemoryDaemon) -> None:
    fill(daemon, 10)
    async with kept_client(daemon) as client:
        async with client.subscribe("t/#") as subscription:
            await take(subscription, 4)
        async with client.subscribe("t/#") as subscription, client.subscribe("t/#") as other:
            assert [record.offset for record in await subscription.fetch(6)] == [4, 5, 6, 7, 8, 9]
            assert other.number != subscription.number
    first, second, third = daemon.subscribes
    assert first.subscription == second.subscription != third.subscription


async def test_a_client_that_closes_first_says_how_far_it_handed_out(daemon: MemoryDaemon) -> None:
    fill(daemon, 10)
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        subscription = await client.subscribe(SHARE).__aenter__()
        await take(subscription, 4)
    assert 1 in daemon.revoke_finished
    assert daemon.streams[0].frontier == 4


async def test_streams_of_a_subscription_that_nobody_uses_are_given_back(
    daemon: MemoryDaemon,
) -> None:
    async with subscribed(daemon):
        unused = daemon.grant(77, 0)
        await until(lambda: daemon.revoke_finished == [unused])


# Acks that nobody answers


async def test_a_sync_ack_whose_grant_ends_is_in_doubt(daemon: MemoryDaemon) -> None:
    async with unanswered_ack(daemon) as (_, _, acking):
        daemon.say(revoked=sessions_pb2.Revoked(grant=1, reason="removed"))
        with pytest.raises(OutcomeUnknown) as raised:
            await acking
        assert not raised.value.definite


async def test_a_sync_ack_that_the_daemon_took_is_in_doubt_when_its_grant_is_refused(
    daemon: MemoryDaemon,
) -> None:
    async with unanswered_ack(daemon) as (subscription, record, acking):
        say_refused(daemon, GrantNotHeld(grant=1, token=0))
        with pytest.raises(OutcomeUnknown):
            await acking
        assert record.grant_over
        assert subscription.late_acks == 1


async def test_a_sync_ack_that_the_daemon_refused_by_its_token_does_not_count(
    daemon: MemoryDaemon,
) -> None:
    async with unanswered_ack(daemon) as (subscription, record, acking):
        say_refused(daemon, GrantNotHeld(grant=1, token=token_of(daemon)))
        with pytest.raises(GrantNotHeld, match="t/0/0"):
            await acking
        assert record.grant_over
        assert subscription.late_acks == 1


async def test_a_sync_ack_that_met_the_end_of_its_grant_on_the_way_does_not_count(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(daemon, 1)
    take = daemon.on_settle

    def end_before(settle: sessions_pb2.Settle) -> None:
        if settle.token:
            daemon._end(settle.grant, reported=False)
            daemon.say(revoked=sessions_pb2.Revoked(grant=settle.grant, reason="removed"))
        take(settle)

    monkeypatch.setattr(daemon, "on_settle", end_before)
    async with subscribed(daemon) as subscription:
        (record,) = await subscription.fetch(1)
        with pytest.raises(GrantNotHeld, match="t/0/0"):
            await record.ack(sync=True)
    assert daemon.streams[0].progress.floor == 0


async def test_a_sync_ack_of_what_was_acknowledged_before_is_in_doubt_after_the_grant(
    daemon: MemoryDaemon,
) -> None:
    async with unanswered_ack(daemon) as (_, record, acking):
        acking.cancel()
        daemon.say(revoked=sessions_pb2.Revoked(grant=1, reason="removed"))
        await until(lambda: record.grant_over)
        with pytest.raises(OutcomeUnknown):
            await record.ack(sync=True)


async def test_a_sync_ack_ends_when_its_subscription_does(daemon: MemoryDaemon) -> None:
    async with unanswered_ack(daemon) as (subscription, _, acking):
        await subscription.unsubscribe()
        with pytest.raises(OutcomeUnknown):
            await acking


async def test_a_sync_ack_ends_when_its_group_is_removed(daemon: MemoryDaemon) -> None:
    async with unanswered_ack(daemon) as (subscription, _, acking):
        error = sessions_pb2.SessionError(subscription=subscription.number, final=True)
        error.error.CopyFrom(wire_error(GroupDestroyed(group="g")))
        daemon.say(error=error)
        with pytest.raises(OutcomeUnknown):
            await acking
        with pytest.raises(GroupDestroyed):
            await subscription.fetch(1)


async def test_a_sync_ack_reported_with_the_end_of_a_revoke_still_gets_its_answer(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 1)
    daemon.mute_settled = daemon.mute_revoked = True
    async with subscribed(daemon) as subscription:
        (record,) = await subscription.fetch(1)
        daemon.say(revoke=sessions_pb2.Revoke(grant=1, deadline_ms=60_000))
        await until(lambda: record._source.grant.stopped)
        acking = asyncio.ensure_future(record.ack(sync=True))
        await until(lambda: daemon.revoke_finished == [1])
        daemon.say(settled=sessions_pb2.Settled(token=token_of(daemon)))
        daemon.say(revoked=sessions_pb2.Revoked(grant=1, reason="revoked"))
        await acking


async def test_acks_that_the_daemon_refuses_are_counted(daemon: MemoryDaemon) -> None:
    fill(daemon, 2)
    async with subscribed(daemon) as subscription:
        (record,) = await subscription.fetch(1)
        say_refused(daemon, AckOutOfRange(start=5, end=9, grant=1))
        await until(lambda: subscription.late_acks == 4)
        assert not record.grant_over


def token_of(daemon: MemoryDaemon) -> int:
    (token,) = [settle.token for settle in daemon.settles if settle.token]
    return token


def say_refused(daemon: MemoryDaemon, error: AckOutOfRange | GrantNotHeld) -> None:
    item = sessions_pb2.SessionError(grant=1)
    item.error.CopyFrom(wire_error(error))
    daemon.say(error=item)


# Iteration that others end


async def test_iteration_ends_when_another_task_unsubscribes(daemon: MemoryDaemon) -> None:
    fill(daemon, 3)
    async with subscribed(daemon) as subscription:
        iteration = await iterating(daemon, subscription)
        await subscription.unsubscribe()
        async with asyncio.timeout(60):
            assert await iteration == [0, 1, 2]


async def test_iteration_ends_when_it_unsubscribes_itself(daemon: MemoryDaemon) -> None:
    fill(daemon, 3)
    async with subscribed(daemon) as subscription, asyncio.timeout(60):
        async for record in subscription:
            await record.ack()
            await subscription.unsubscribe()
        assert record.offset == 0
    assert daemon.streams[0].progress.floor == 1


async def test_iteration_ends_when_the_block_is_left(daemon: MemoryDaemon) -> None:
    fill(daemon, 3)
    async with subscribed(daemon) as subscription:
        iteration = await iterating(daemon, subscription)
    async with asyncio.timeout(60):
        assert await iteration == [0, 1, 2]


# What is cancelled takes nothing with it


async def test_a_record_is_not_lost_where_iteration_is_cancelled(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(daemon, 50)
    async with subscribed(daemon) as subscription:
        seen: list[int] = []
        stuck = asyncio.Event()
        pauses = count(1)

        async def sure() -> None:
            if next(pauses) % 7 == 0:
                stuck.set()
                await asyncio.get_running_loop().create_future()

        # Before every record it pauses, and every seventh pause lasts until it is cancelled.
        looks = count()
        monkeypatch.setattr(
            subscription_module, "monotonic", lambda: next(looks) * YIELD_EVERY_S * 0.8
        )
        monkeypatch.setattr(subscription._session, "wait_sure", sure)

        async def consume() -> None:
            async for record in subscription:
                seen.append(record.offset)  # noqa: PERF401 - what came before the cancellation counts

        for _ in range(8):
            stuck.clear()
            consuming = asyncio.ensure_future(consume())
            await until(lambda: stuck.is_set() or len(seen) == 50)
            consuming.cancel()
            await asyncio.wait([consuming])
    assert seen[:40] == list(range(40))


async def test_what_a_cancelled_fetch_gathered_comes_with_the_next(daemon: MemoryDaemon) -> None:
    fill(daemon, 3, 4)
    async with subscribed(daemon) as subscription:
        fetching = asyncio.ensure_future(subscription.fetch(100))
        await until(lambda: len(subscription._inbox) == 2)
        fetching.cancel()
        await asyncio.wait([fetching])
        assert fetching.cancelled()
        assert daemon.streams[0].frontier == 0
        assert [record.offset for record in await subscription.fetch(7)] == list(range(7))


async def test_a_final_error_comes_after_what_was_fetched(daemon: MemoryDaemon) -> None:
    fill(daemon, 3)
    async with subscribed(daemon) as subscription:
        await until(lambda: subscription._inbox)
        subscription.fail(GroupDestroyed(group="g"))
        assert len(await subscription.fetch(10)) == 3
        with pytest.raises(GroupDestroyed):
            await subscription.fetch(10)


# Revokes and what the user asked to be called


async def test_a_revoke_waits_for_most_of_its_deadline(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(daemon, 2)
    async with subscribed(daemon) as subscription:
        (record,) = await subscription.fetch(1)
        loop = asyncio.get_running_loop()
        waits: list[float] = []
        plain = loop.call_later

        def call_later(delay: float, *rest: object) -> asyncio.TimerHandle:
            waits.append(delay)
            return plain(delay, *rest)  # type: ignore[arg-type]  # handed on as it came

        monkeypatch.setattr(loop, "call_later", call_later)
        daemon.say(revoke=sessions_pb2.Revoke(grant=1, deadline_ms=10_000))
        await until(lambda: record._source.grant.stopped)
        assert 8.0 in waits
        await record.ack()
        await until(lambda: daemon.revoke_finished == [1])


@pytest.mark.parametrize("which", ["on_grant", "on_revoke"])
async def test_what_a_callback_raises_reaches_who_takes_records(
    daemon: MemoryDaemon, which: str
) -> None:
    def fail(notice: GrantNotice) -> None:
        if notice.stream == "t/0/1":
            raise ValueError(notice.stream)

    callback: dict[str, Any] = {which: fail}
    fill(daemon, 5)
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(SHARE, **callback) as subscription,
    ):
        await until(lambda: daemon.subscribes)
        daemon.say(revoked=sessions_pb2.Revoked(grant=2, reason="elsewhere"))
        with pytest.raises(ValueError, match="t/0"):
            await asyncio.wait_for(subscription.fetch(10), 60)
        records = await subscription.fetch(5)
        await records[-1].ack(sync=True)
    assert len(daemon.opens) == 1


async def test_what_a_callback_raises_reaches_a_block_that_takes_nothing(
    daemon: MemoryDaemon,
) -> None:
    def fail(notice: GrantNotice) -> None:
        raise ValueError(notice.stream)

    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        subscription = await client.subscribe(SHARE, on_revoke=fail).__aenter__()
        daemon.say(revoked=sessions_pb2.Revoked(grant=1, reason="elsewhere"))
        await until(lambda: subscription._callback_error)
        with pytest.raises(ValueError, match="t/0/0"):
            await subscription.__aexit__(None, None, None)


async def test_what_a_callback_raises_ends_run_as_it_is(daemon: MemoryDaemon) -> None:
    def fail(notice: GrantNotice) -> None:
        raise ValueError(notice.stream)

    async def handle(record: DeliveredRecord) -> None:
        daemon.say(revoked=sessions_pb2.Revoked(grant=1, reason="elsewhere"))

    fill(daemon, 1)
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(SHARE, on_revoke=fail) as subscription,
    ):
        with pytest.raises(ValueError, match="t/0/0"):
            await subscription.run(handle)
