import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import dss_client
from dss_api.v1 import sessions_pb2
from dss_client import DeliveredRecord, GrantNotice, Subscription
from dss_client._handout import Handout
from dss_client._made_records import MadeRecords
from dss_client.limits import YIELD_EVERY_S
from dss_client.session import Session
from dss_client.testing import MemoryDaemon, until
from dss_client.testing.memory_session import Down
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import (
    GrantNotHeld,
    GroupDestroyed,
    OutcomeUnknown,
    SessionTakenOver,
    Unreachable,
)
from dss_core.progress import Progress

SHARE = "$share/g/t/#"

Notify = Callable[[GrantNotice], None]


def fill(daemon: MemoryDaemon, partition: int, *sizes: int) -> None:
    """Append a frame of each size."""
    stream = daemon.streams[partition]
    for size in sizes:
        payloads = [b"%d" % number for number in range(stream.end, stream.end + size)]
        sequence = len(stream.frames)
        frame = build_frame(
            Columns(payloads, [b"k"] * size, "t"),
            partition=partition,
            producer_id=b"p" * 16,
            sequence=sequence,
        )
        stream.append(frame)


@asynccontextmanager
async def subscribed(
    daemon: MemoryDaemon,
    on_grant: Notify | None = None,
    on_revoke: Notify | None = None,
) -> AsyncIterator[Subscription]:
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(SHARE, on_grant=on_grant, on_revoke=on_revoke) as subscription,
    ):
        yield subscription


async def test_records_come_in_order_and_acks_arrive_as_one_range(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 3, 40, 1)
    async with subscribed(daemon) as subscription:
        seen: list[DeliveredRecord] = []
        async for record in subscription:
            seen.append(record)
            await record.ack()
            if len(seen) == 44:
                break
        await until(lambda: daemon.streams[0].progress.floor == 44)
    assert [record.offset for record in seen] == list(range(44))
    assert seen[5].payload == b"5"
    assert (seen[5].key, seen[5].subject, seen[5].stream) == (b"k", "t", "t/0/0")
    assert not any(record.redelivered for record in seen)
    assert len(daemon.settles) < 10


async def test_a_sync_ack_returns_after_it_was_settled(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 1)
    async with subscribed(daemon) as subscription:
        async for record in subscription:
            await record.ack(sync=True)
            assert daemon.streams[0].progress.floor == 1
            break


async def test_the_frontier_is_reported_without_any_ack(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 10)
    async with subscribed(daemon) as subscription:
        records = aiter(subscription)
        for _ in range(4):
            await anext(records)
        await until(lambda: daemon.streams[0].frontier == 4)


async def test_after_some_records_a_batch_is_the_rest(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 100)
    async with subscribed(daemon) as subscription:
        async for record in subscription:
            await record.ack()
            if record.offset == 9:
                break
        async for batch in subscription.batches():
            assert list(batch.offsets) == list(range(10, 100))
            assert batch.payloads[0] == b"10"
            assert [record.offset for record in batch] == list(batch.offsets)
            assert batch.to_arrow().num_rows == 90
            await batch.ack(sync=True)
            break
    assert daemon.streams[0].progress.floor == 100


async def test_records_of_a_batch_that_is_a_rest_count_as_handed_out_once(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 0, 10)
    async with subscribed(daemon) as subscription:
        await subscription.fetch(4)
        batch = await anext(aiter(subscription.batches()))
        await until(lambda: daemon.streams[0].frontier == 10)
        assert not any(record.acked for record in batch)
        await subscription.drain()
    assert daemon.streams[0].hand_outs == dict.fromkeys(range(10), 1)


async def test_whole_batches_are_acknowledged_with_one_range_each(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 40, 60)
    async with subscribed(daemon) as subscription:
        async for batch in subscription.batches():
            await batch.ack(sync=True)
            if batch.offsets[-1] == 99:
                break
    assert daemon.streams[0].progress.floor == 100


async def test_breaking_off_and_iterating_again_goes_on_where_it_was(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 10)
    async with subscribed(daemon) as subscription:
        async for record in subscription:
            if record.offset == 3:
                break
        assert (await anext(aiter(subscription))).offset == 4


async def test_fetch_returns_what_is_asked_or_what_came_in_time(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 10)
    async with subscribed(daemon) as subscription:
        assert [r.offset for r in await subscription.fetch(4)] == [0, 1, 2, 3]
        assert [r.offset for r in await subscription.fetch(100, timeout=0.05)] == list(range(4, 10))
        assert await subscription.fetch(1, timeout=0.01) == []


async def test_the_frontier_stays_below_what_is_masked_behind_the_last_record(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 0, 10)
    daemon.streams[0].progress = daemon.streams[0].progress.with_acked([(2, 5), (8, 10)])
    async with subscribed(daemon) as subscription:
        records = await subscription.fetch(5)
        assert [record.offset for record in records] == [0, 1, 5, 6, 7]
        assert await subscription.fetch(1, timeout=0.01) == []
        await records[-1].ack(sync=True)
    assert daemon.streams[0].frontier == 8
    assert max(settle.frontier for settle in daemon.settles) == 8


async def test_a_frame_that_comes_in_two_halves_raises_the_frontier_by_halves(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 0, 40)
    daemon.hold_back = True
    async with subscribed(daemon) as subscription:
        daemon.deliver_part(1, 0, 25)
        async for first in subscription.batches():
            assert list(first.offsets) == list(range(25))
            await first.ack(sync=True)
            break
        assert daemon.streams[0].progress == Progress(25)
        assert daemon.streams[0].frontier == 25
        daemon.deliver_part(1, 25, 40)
        async for second in subscription.batches():
            assert not second.redelivered
            assert list(second.offsets) == list(range(25, 40))
            await second.ack(sync=True)
            break
    assert daemon.streams[0].progress == Progress(40)
    assert daemon.streams[0].frontier == 40


async def test_a_record_that_comes_again_is_reported_when_it_is_handed_out(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 0, 10)
    async with subscribed(daemon) as subscription:
        records = aiter(subscription)
        for _ in range(10):
            await anext(records)
        daemon.deliver_part(1, 3, 6, redelivered=True)
        record = await anext(records)
        assert (record.offset, record.redelivered) == (3, True)
        await until(lambda: any(settle.handed_out for settle in daemon.settles))
    again = [each for settle in daemon.settles for each in settle.handed_out]
    assert [(each.start, each.end) for each in again] == [(3, 4)]
    assert not any(settle.in_progress for settle in daemon.settles)


async def test_a_nak_carries_its_delay(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 2)
    async with subscribed(daemon) as subscription:
        first, second = await subscription.fetch(2)
        await first.nak(delay=1.5)
        await second.nak()
        await second.in_progress()
        await until(lambda: any(settle.naks for settle in daemon.settles))
    naks = [nak for settle in daemon.settles for nak in settle.naks]
    assert [(nak.start, nak.end, nak.delay_ms) for nak in naks] == [(0, 1, 1_500), (1, 2, 0)]
    assert not naks[1].HasField("delay_ms")


async def test_a_revoke_drops_what_waits_and_awaits_acks(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 10)
    revoked: list[GrantNotice] = []
    async with subscribed(daemon, on_revoke=revoked.append) as subscription:
        records = aiter(subscription)
        held = [await anext(records), await anext(records)]
        daemon.say(revoke=sessions_pb2.Revoke(grant=1, deadline_ms=10_000))
        await until(lambda: revoked)
        assert revoked[0].stream == "t/0/0"
        await held[0].ack()
        await until(lambda: daemon.streams[0].progress.floor == 1)
        assert daemon.revoke_finished == []
        await held[1].ack()
        await until(lambda: daemon.revoke_finished == [1])
        assert daemon.streams[0].progress.floor == 2
        waiting = asyncio.ensure_future(anext(records))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(OutcomeUnknown):
            await held[1].ack(sync=True)


async def test_a_revoke_of_what_nobody_holds_is_answered_at_once(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 10)
    async with subscribed(daemon) as subscription:
        await subscription.fetch(1)
        daemon.say(revoke=sessions_pb2.Revoke(grant=2, deadline_ms=60_000))
        await until(lambda: daemon.revoke_finished == [2])


async def test_a_record_that_came_twice_is_settled_by_one_ack_before_a_revoke_ends(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, 0, 2)
    async with subscribed(daemon) as subscription:
        first, second = await subscription.fetch(2)
        daemon.deliver_part(1, 0, 1, redelivered=True)
        (again,) = await subscription.fetch(1)
        assert again.offset == first.offset
        daemon.say(revoke=sessions_pb2.Revoke(grant=1, deadline_ms=60_000))
        await again.ack()
        await second.ack()
        await until(lambda: daemon.revoke_finished == [1])
    assert daemon.streams[0].progress == Progress(2)


async def test_an_unanswered_revoke_ends_before_its_deadline(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 2)
    async with subscribed(daemon) as subscription:
        record = await anext(aiter(subscription))
        daemon.say(revoke=sessions_pb2.Revoke(grant=1, deadline_ms=20))
        await until(lambda: daemon.revoke_finished == [1])
        await record.ack()
        assert subscription.late_acks == 1
    assert daemon.streams[0].progress.floor == 0


async def test_late_acks_are_quiet_and_counted(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 5)
    async with subscribed(daemon) as subscription:
        record = await anext(aiter(subscription))
        daemon.say(revoked=sessions_pb2.Revoked(grant=1, reason="elsewhere"))
        await until(lambda: record.grant_over)
        await record.ack()
        await record.nak()
        with pytest.raises(GrantNotHeld):
            await record.ack(sync=True)
        assert await subscription.fetch(1, timeout=0.01) == []
        assert subscription.late_acks == 3


async def test_five_losses_stay_unseen_and_duplicates_are_marked(daemon: MemoryDaemon) -> None:
    seen: dict[int, int] = {}
    unmarked: list[int] = []
    daemon.marks_redelivered = False
    async with subscribed(daemon) as subscription:

        async def consume() -> None:
            async for record in subscription:
                if record.offset in seen and not record.redelivered:
                    unmarked.append(record.offset)
                seen[record.offset] = seen.get(record.offset, 0) + 1
                if record.offset % 3:
                    await record.ack()

        async def all_seen(count: int) -> None:
            await until(lambda: len(seen) == count)

        consuming = asyncio.ensure_future(consume())
        for round_number in range(5):
            fill(daemon, 0, 50)
            await daemon.cut()
            await daemon.start()
            await all_seen((round_number + 1) * 50)
        assert not consuming.done()
        consuming.cancel()
    assert sorted(seen) == list(range(250))
    assert unmarked == []
    assert max(seen.values()) > 1
    assert [bool(item.session_id) for item in daemon.opens] == [False] + [True] * 5
    assert [item.clean_start for item in daemon.opens] == [True] + [False] * 5
    assert len(daemon.subscribes) == 6
    assert len({item.subscription for item in daemon.subscribes}) == 1


async def test_a_sync_ack_lost_with_the_connection_says_so(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(daemon, 0, 1)
    async with subscribed(daemon) as subscription:
        record = await anext(aiter(subscription))
        arrived = asyncio.Event()
        monkeypatch.setattr(daemon, "on_settle", lambda settle: arrived.set())
        acking = asyncio.ensure_future(record.ack(sync=True))
        await arrived.wait()
        await daemon.cut()
        with pytest.raises(OutcomeUnknown):
            await acking
        await daemon.start()


async def test_a_takeover_ends_the_loop_with_the_reason(daemon: MemoryDaemon) -> None:
    async with subscribed(daemon) as subscription:
        error = sessions_pb2.SessionError(final=True)
        error.error.code = SessionTakenOver.code
        error.error.fields["client_id"] = "me"
        daemon.say(error=error)
        with pytest.raises(SessionTakenOver):
            await anext(aiter(subscription))


async def test_a_refused_subscription_leaves_the_session_alone(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = daemon.take_up

    def refuse(up: sessions_pb2.SessionUp, down: Down) -> None:
        if up.WhichOneof("item") != "subscribe" or "bad" not in up.subscribe.filter:
            plain(up, down)
            return
        error = sessions_pb2.SessionError(final=True, subscription=up.subscribe.subscription)
        error.error.code = GroupDestroyed.code
        daemon.say(error=error)

    monkeypatch.setattr(daemon, "take_up", refuse)
    fill(daemon, 0, 1)
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        with pytest.raises(GroupDestroyed):
            async with client.subscribe("$share/bad/t/#"):
                pass
        async with client.subscribe(SHARE) as subscription:
            assert len(await subscription.fetch(1)) == 1


async def test_an_absent_daemon_is_told_at_the_first_subscription(socket: Path) -> None:
    async with dss_client.connect(endpoint=f"unix:{socket}") as client:
        with pytest.raises(Unreachable):
            async with client.subscribe(SHARE):
                pass


async def test_after_a_silence_hand_out_waits_for_a_ping(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 10)
    async with subscribed(daemon) as subscription:
        records = aiter(subscription)
        await anext(records)
        session = subscription._session
        assert isinstance(session, Session)
        attachment = session._attachment
        assert attachment is not None
        before = daemon.pings
        attachment._doubt._asked_at -= 10
        subscription._resume_at = 0
        await anext(aiter(subscription))
        assert daemon.pings == before + 1


async def test_what_arrives_is_handed_out_without_a_pause(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow this machine is.
    monkeypatch.setattr("dss_client._loop_watch.monotonic", lambda: 0.0)
    async with subscribed(daemon) as subscription:
        await until(lambda: subscription.number)
        monkeypatch.setattr(subscription, "_breathe", asyncio.Event().wait)
        waiting = asyncio.ensure_future(anext(aiter(subscription)))
        await asyncio.sleep(0)
        fill(daemon, 0, 1)
        daemon.deliver_new(0, 0)
        assert (await asyncio.wait_for(waiting, 60)).offset == 0


async def test_what_arrives_after_a_silence_waits_for_a_ping(daemon: MemoryDaemon) -> None:
    async with subscribed(daemon) as subscription:
        await until(lambda: subscription.number)
        session = subscription._session
        assert isinstance(session, Session)
        attachment = session._attachment
        assert attachment is not None
        before = daemon.pings
        waiting = asyncio.ensure_future(anext(aiter(subscription)))
        await asyncio.sleep(0)
        attachment._doubt._asked_at -= 10
        fill(daemon, 0, 1)
        daemon.deliver_new(0, 0)
        assert (await asyncio.wait_for(waiting, 60)).offset == 0
        assert daemon.pings == before + 1


@pytest.mark.parametrize("lent_to_another", [False, True])
async def test_fetch_hands_out_nothing_that_was_made_before_its_process_stood_still(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch, lent_to_another: bool
) -> None:
    for _ in range(2):
        fill(daemon, 0, 5)
    async with subscribed(daemon) as subscription:
        assert [record.offset for record in await subscription.fetch(1)] == [0]
        await until(lambda: subscription._count(9) == 9)
        session = subscription._session
        assert isinstance(session, Session)
        attachment = session._attachment
        assert attachment is not None
        before, plain = daemon.pings, MadeRecords.make

        def stand_still_once(made: MadeRecords, handout: Handout, n: int) -> int:
            count = plain(made, handout, n)
            if daemon.pings == before:
                attachment._doubt._asked_at -= 10
                if lent_to_another:
                    daemon.say(revoked=sessions_pb2.Revoked(grant=1, reason="lost"))
            return count

        monkeypatch.setattr(MadeRecords, "make", stand_still_once)
        records = await subscription.fetch(7, timeout=60)
        assert daemon.pings == before + 1
        assert [each.offset for each in records] == ([] if lent_to_another else [*range(1, 8)])
        if not lent_to_another:
            assert [each.offset for each in await subscription.fetch(2)] == [8, 9]


async def test_an_answer_that_lay_there_while_the_process_stood_still_proves_nothing(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead_s = 0.0
    real = asyncio.get_running_loop().time
    plain = daemon.take_up

    def stand_still_once(up: sessions_pb2.SessionUp, down: Down) -> None:
        nonlocal ahead_s
        plain(up, down)
        if up.WhichOneof("item") == "ping" and daemon.pings == 1:
            ahead_s = 20.0

    monkeypatch.setattr(daemon, "take_up", stand_still_once)
    for module in ("_attachment", "_doubt", "_pings"):
        monkeypatch.setattr(f"dss_client.{module}.monotonic", lambda: real() + ahead_s)
    async with subscribed(daemon) as subscription:
        await until(lambda: subscription.number)
        ahead_s = 10.0
        await subscription._session.wait_sure()
    assert daemon.pings == 2


async def test_a_loop_over_buffered_records_lets_others_run(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 1_000)
    loop = asyncio.get_running_loop()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    async with subscribed(daemon) as subscription:
        records = aiter(subscription)
        await anext(records)
        ticking = asyncio.ensure_future(tick())
        async for record in records:
            busy_until = loop.time() + YIELD_EVERY_S / 50
            while loop.time() < busy_until:
                pass
            if record.offset == 500:
                break
        ticking.cancel()
    assert ticks >= 5


async def test_run_acks_on_return_naks_on_exception_and_ends_by_drain(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 10)
    handled: list[int] = []
    async with subscribed(daemon) as subscription:

        async def handle(record: DeliveredRecord) -> None:
            handled.append(record.offset)
            if record.offset == 4:
                raise ValueError

        running = asyncio.ensure_future(subscription.run(handle, concurrency=3))
        await until(lambda: any(settle.naks for settle in daemon.settles))
        await subscription.drain()
        await running
    assert handled == [0, 1, 2, 3, 4]
    assert daemon.streams[0].progress.floor == 4
    naks = [(nak.start, nak.end) for settle in daemon.settles for nak in settle.naks]
    assert naks == [(4, 5)]


async def test_grants_are_announced(daemon: MemoryDaemon) -> None:
    granted: list[GrantNotice] = []
    async with subscribed(daemon, on_grant=granted.append):
        await until(lambda: len(granted) == 2)
    assert [notice.stream for notice in granted] == ["t/0/0", "t/0/1"]


async def test_drain_ends_the_loop_between_two_records(daemon: MemoryDaemon) -> None:
    fill(daemon, 0, 10)
    async with subscribed(daemon) as subscription:
        seen = []
        async for record in subscription:
            seen.append(record.offset)
            await record.ack()
            if record.offset == 3:
                await subscription.drain()
        assert seen == [0, 1, 2, 3]
        assert daemon.streams[0].progress.floor == 4
        assert daemon.streams[0].frontier == 4
