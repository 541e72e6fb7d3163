"""Sessions over a real log, store and real leaders, without a network."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from dss_client.testing import until
from dss_core.errors import (
    AckOutOfRange,
    DiskFull,
    DssError,
    GrantNotHeld,
    GroupDestroyed,
    IllegalArgument,
    IllegalFilter,
    IllegalName,
    NotSubscribed,
    QueueNotDeclared,
    QueueWithoutGroup,
    SessionNotFound,
    SessionOfAnother,
    SessionTakenOver,
    Stopping,
    TooManySessions,
)
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.progress import Progress, total
from dss_sim.played_groups import PATIENCE_S, MovedClock, Plant
from dss_sim.played_sessions import Hall, offsets_of, opened_hall
from dssd.limits import REVOKE_REPORT_SHARE
from dssd.log.port import Chunk
from dssd.machines.delivery.events import Deliver, Settle
from dssd.machines.start_point import Earliest
from dssd.sessions.client_items import (
    FinishRevoke,
    Opening,
    PingSent,
    PongSent,
    Refused,
    Revoke,
    Revoked,
    Settled,
    Status,
    Subscribe,
    Unsubscribe,
    UnsubscribedItem,
)
from dssd.store.memory import MemoryStore
from dssd.store.port import Delete, Precondition, Put, Write
from dssd.store.rows import GroupRow, ProgressRow, Row, SessionRow, SubscriptionRow
from support.held_commits import HeldCommits

GROUP = "$share/g/orders/#"


class LateClock(MovedClock):
    """A clock whose durations a test stretches."""

    late_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.late_ms


class SlowStore(MemoryStore):
    """Makes commits of session rows at once, but answers them only when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.made = asyncio.Event()
        self.session_rows: list[int] = []
        """How many, in each commit that held any."""

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        versions = await super().commit(writes, preconditions)
        rows = [w for w in writes if isinstance(w, Put) and isinstance(w.row, SessionRow)]
        if rows:
            self.session_rows.append(len(rows))
            self.made.set()
            await self.may_answer.wait()
        return versions

    def hold(self) -> None:
        self.made.clear()
        self.may_answer.clear()


class ChurnedStore(MemoryStore):
    """While it commits the row of a session, another session closes."""

    def __init__(self) -> None:
        super().__init__()
        self.puts = 0
        self.closing: Callable[[], None] = lambda: None
        self.left_at_delete: list[int] = []

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        if any(isinstance(each, Put) and isinstance(each.row, SessionRow) for each in writes):
            self.puts += 1
            self.closing()
        if any(isinstance(each, Delete) and each.kind is SessionRow for each in writes):
            rows = [found.row for found in await self.scan(SessionRow)]
            self.left_at_delete.append(sum(row.disconnected_at_ms is None for row in rows))
        return await super().commit(writes, preconditions)


class FullStore(MemoryStore):
    """Has no room for what concerns some kinds of rows, while a test wants that."""

    def __init__(self) -> None:
        super().__init__()
        self.no_room_for: set[type[Row]] = set()
        self.refused = asyncio.Event()
        self.took_subscriptions = asyncio.Event()

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        kinds = {type(each.row) if isinstance(each, Put) else each.kind for each in writes}
        if kinds & self.no_room_for:
            self.refused.set()
            raise DiskFull
        if SubscriptionRow in kinds:
            self.took_subscriptions.set()
        return await super().commit(writes, preconditions)


@pytest.fixture
async def full(tmp_path: Path) -> AsyncIterator[Plant]:
    store = FullStore()
    plant = Plant(tmp_path / "log", store)
    plant.clock = LateClock()
    await plant.start()
    yield plant
    await plant.stop()
    await store.close()


@pytest.fixture
async def slow(tmp_path: Path) -> AsyncIterator[Plant]:
    store = SlowStore()
    plant = Plant(tmp_path / "log", store)
    await plant.start()
    yield plant
    await plant.stop()
    await store.close()


async def cancelled_attach(hall: Hall, opening: Opening) -> None:
    """Attach, and cancel it when its row is committed and the answer is on its way."""
    store = hall.plant.store
    assert isinstance(store, SlowStore)
    store.hold()
    attaching = asyncio.create_task(hall.sessions.attach(opening))
    await store.made.wait()
    attaching.cancel()
    await asyncio.sleep(0)
    store.may_answer.set()
    with pytest.raises(asyncio.CancelledError):
        await attaching


async def test_a_cancelled_reconnect_leaves_a_session_that_can_be_resumed(slow: Plant) -> None:
    async with opened_hall(slow) as hall:
        async with hall.attached(expiry_s=60):
            pass
        again = Opening("c", clean_start=False, expiry_s=60)
        await cancelled_attach(hall, again)
        assert hall.sessions.counts().connected == 0
        async with hall.attached(clean_start=False) as client:
            assert client.opened.session_present
            assert client.opened.session_epoch == 3


async def test_a_cancelled_takeover_harms_neither_the_session_nor_the_daemon(slow: Plant) -> None:
    async with opened_hall(slow) as hall:
        async with hall.attached(expiry_s=60) as old:
            await cancelled_attach(hall, Opening("c", clean_start=False, expiry_s=60))
            hall.sessions.detach(old.session)
        assert hall.sessions.counts().connected == 0
        async with hall.attached(clean_start=False) as client:
            assert client.opened.session_present


async def test_a_cancelled_resume_leaves_no_connection_that_nobody_runs(hall: Hall) -> None:
    async with hall.attached(expiry_s=60):
        pass
    scanning, store = asyncio.Event(), hall.plant.store
    scan = store.scan

    async def slow_scan(*args: object, **more: object) -> object:
        scanning.set()
        await asyncio.sleep(0)
        return await scan(*args, **more)  # type: ignore[arg-type]  # passed on as they came

    store.scan = slow_scan  # type: ignore[method-assign,assignment]  # only this test's store
    attaching = asyncio.create_task(hall.sessions.attach(Opening("c", clean_start=False)))
    await scanning.wait()
    attaching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attaching
    counts = hall.sessions.counts()
    assert (counts.connected, counts.detached) == (0, 1)


async def test_rows_of_sessions_that_closed_together_are_written_together(slow: Plant) -> None:
    store = slow.store
    assert isinstance(store, SlowStore)
    async with opened_hall(slow) as hall:
        sessions = [await hall.sessions.attach(Opening(f"c{n}", expiry_s=60)) for n in range(20)]
        store.session_rows.clear()
        for session in sessions:
            hall.sessions.detach(session)
        await hall.sessions.stop()
    assert store.session_rows == [20]
    rows = [found.row for found in await store.scan(SessionRow)]
    assert all(row.disconnected_at_ms is not None for row in rows)


async def test_a_clean_start_on_a_full_disk_discards_what_was_once_there_is_room(
    full: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.sessions.sessions.FULL_DISK_RETRY_S", 0.001)
    store = full.store
    assert isinstance(store, FullStore)
    await full.topic("orders", 1)
    async with opened_hall(full) as hall:
        async with hall.attached(expiry_s=60) as client:
            await client.subscribe("orders/#")
        store.no_room_for = {SubscriptionRow}
        async with hall.attached(expiry_s=60) as client:
            assert not client.opened.session_present
            store.took_subscriptions.clear()
            store.no_room_for = set()
            async with asyncio.timeout(PATIENCE_S):
                await store.took_subscriptions.wait()
            assert await store.scan(SubscriptionRow) == []
        assert full.groups.groups() == ()


async def test_a_session_that_expires_on_a_full_disk_is_never_resumed_in_part(full: Plant) -> None:
    store, clock = full.store, full.clock
    assert isinstance(store, FullStore)
    assert isinstance(clock, LateClock)
    await full.topic("orders", 1)
    async with opened_hall(full) as hall:
        async with hall.attached() as client:
            await client.subscribe("orders/#")
        clock.late_ms = 10_001
        store.no_room_for = {SubscriptionRow}
        await hall.sessions.discard_expired()
        assert store.refused.is_set()
        async with hall.attached(clean_start=False) as client:
            assert not client.opened.session_present
        store.no_room_for = set()


async def test_a_session_of_which_nothing_could_be_removed_lives_on(full: Plant) -> None:
    store, clock = full.store, full.clock
    assert isinstance(store, FullStore)
    assert isinstance(clock, LateClock)
    await full.topic("orders", 1)
    async with opened_hall(full) as hall:
        async with hall.attached() as client:
            await client.subscribe("orders/#")
        clock.late_ms = 10_001
        store.no_room_for = {SessionRow}
        with pytest.raises(DiskFull):
            await hall.sessions.discard_expired()
        store.no_room_for = set()
        async with hall.attached(clean_start=False) as client:
            assert client.opened.session_present
            assert client.session.subscriptions == 1


async def test_a_private_subscription_that_a_full_disk_refuses_leaves_nothing(full: Plant) -> None:
    store = full.store
    assert isinstance(store, FullStore)
    await full.topic("orders", 1)
    async with opened_hall(full) as hall, hall.attached(expiry_s=60) as client:
        store.no_room_for = {SubscriptionRow}
        await client.session.take(Subscribe(1, "orders/#"))
        assert isinstance((await client.refused()).error, DiskFull)
        assert full.groups.groups() == ()
        store.no_room_for = set()
        await client.subscribe("orders/#")


async def test_a_private_subscription_that_a_full_disk_lets_nobody_leave_is_whole(
    full: Plant,
) -> None:
    store = full.store
    assert isinstance(store, FullStore)
    await full.topic("orders", 1)
    async with opened_hall(full) as hall:
        async with hall.attached(expiry_s=60) as client:
            await client.subscribe("orders/#")
            store.no_room_for = {GroupRow}
            await client.session.take(Unsubscribe(1))
            assert isinstance((await client.refused()).error, DiskFull)
        async with hall.attached(clean_start=False) as client:
            assert client.session.subscriptions == 1
            store.no_room_for = set()
            await client.session.take(Unsubscribe(1))
            await client.next(UnsubscribedItem)
        assert full.groups.groups() == ()


async def test_who_leaves_and_has_given_back_its_streams_is_told_so_once_that_is_durable(
    full: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removes_it(write: Write) -> bool:
        return isinstance(write, Delete) and write.kind is SubscriptionRow

    (stream,) = await full.topic("orders", 1)
    async with opened_hall(full) as hall, hall.attached(expiry_s=60) as client:
        await full.publish(stream, 1)
        await client.subscribe("orders/#")
        grant = (await client.granted()).grant
        held = HeldCommits(monkeypatch, full.store, removes_it)
        leaving = asyncio.ensure_future(client.session.take(Unsubscribe(1)))
        await held.reached.wait()
        await client.session.take(FinishRevoke(grant))
        handler = client.session._scheduler.handler
        await until(lambda: handler.agent(1) is None)
        for _ in range(10):
            await asyncio.sleep(0)
        await client.session.take(PingSent(1))
        await client.next(PongSent)
        assert not any(isinstance(item, UnsubscribedItem) for item in client.heard)
        held.goes_on.set()
        await client.next(UnsubscribedItem)
        await leaving


async def test_a_connection_stays_where_the_disk_has_no_room_for_the_next(full: Plant) -> None:
    store = full.store
    assert isinstance(store, FullStore)
    async with opened_hall(full) as hall, hall.attached(expiry_s=60) as client:
        store.no_room_for = {SessionRow}
        with pytest.raises(DiskFull):
            await hall.sessions.attach(Opening("c", clean_start=False))
        store.no_room_for = set()
        await client.session.take(PingSent(1))
        await client.next(PongSent, token=1)


async def test_a_connection_stays_where_the_next_vanished_and_had_no_room(full: Plant) -> None:
    store = full.store
    assert isinstance(store, FullStore)
    async with opened_hall(full) as hall, hall.attached(expiry_s=60) as client:
        store.no_room_for = {SessionRow}
        attaching = asyncio.create_task(hall.sessions.attach(Opening("c", clean_start=False)))
        await asyncio.sleep(0)  # it is under way
        attaching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attaching
        store.no_room_for = set()
        await client.session.take(PingSent(1))
        await client.next(PongSent, token=1)


async def test_a_group_that_is_removed_on_a_full_disk_ends_its_subscription_only(
    full: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.sessions.session.FULL_DISK_RETRY_S", 0.001)
    store = full.store
    assert isinstance(store, FullStore)
    await full.topic("orders", 1)
    async with opened_hall(full) as hall, hall.attached(expiry_s=60) as client:
        subscribed = await client.subscribe(GROUP)
        await client.granted()
        store.no_room_for = {SubscriptionRow}
        await full.groups.remove(full.groups.find(subscribed.group).group_id)
        assert isinstance((await client.refused()).error, GroupDestroyed)
        await store.refused.wait()
        await client.session.take(PingSent(1))
        await client.next(PongSent, token=1)
        store.took_subscriptions.clear()
        store.no_room_for = set()
        async with asyncio.timeout(PATIENCE_S):
            await store.took_subscriptions.wait()
        assert await store.scan(SubscriptionRow) == []


async def test_clients_that_come_together_do_not_exceed_the_bound(
    slow: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.sessions.room.SESSIONS_MAX", 2)
    store = slow.store
    assert isinstance(store, SlowStore)
    async with opened_hall(slow) as hall:
        store.hold()
        coming = [asyncio.create_task(hall.sessions.attach(Opening(f"c{n}"))) for n in range(4)]
        await store.made.wait()
        store.may_answer.set()
        came = await asyncio.gather(*coming, return_exceptions=True)
        assert [type(each).__name__ for each in came].count("TooManySessions") == 2
        with pytest.raises(TooManySessions):
            await hall.sessions.attach(Opening("more"))
        await hall.sessions.attach(Opening("c0"))


async def test_a_connection_that_was_taken_over_declares_nothing(slow: Plant) -> None:
    await slow.topic("orders", 1)
    async with opened_hall(slow) as hall, hall.attached(expiry_s=60) as old:
        number = slow.store.next_id

        async def slow_number() -> int:
            """The next connection comes while this one declares its group."""
            slow.store.next_id = number  # type: ignore[method-assign]  # only this test's store
            await hall.sessions.attach(Opening("c", expiry_s=60))
            return await number()

        slow.store.next_id = slow_number  # type: ignore[method-assign]  # only this test's store
        await old.session.take(Subscribe(1, "orders/#", Earliest()))
        await old.session.take(Subscribe(2, GROUP, Earliest()))
        assert slow.groups.groups() == ()


async def test_a_session_is_its_principals_alone(hall: Hall) -> None:
    async with hall.attached(expiry_s=60, principal="alice") as client:
        session_id = client.opened.session_id
        for opening in (
            Opening("c", clean_start=False, principal="bob"),
            Opening("c", clean_start=True, principal="bob"),
            Opening("c", session_id=session_id, principal="bob"),
        ):
            with pytest.raises(SessionOfAnother):
                await hall.sessions.attach(opening)
        assert not client.session.ended.is_set()
    async with hall.attached(clean_start=False, principal="alice") as client:
        assert client.opened.session_present


async def test_a_group_gets_every_record_and_acks_are_durable(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 5)
    async with hall.attached() as client:
        subscribed = await client.subscribe(GROUP)
        assert (subscribed.group, subscribed.declared) == ("g", True)
        granted = await client.granted()
        assert (granted.stream, granted.progress) == ("orders/0/0", Progress(0))
        records = await client.records(5)
        assert records == [(granted.grant, offset, False, 1) for offset in range(5)]
        await client.ack(granted.grant, 0, 5, token=9)
        await client.next(Settled, token=9)
        await hall.plant.publish(stream, 2)
        assert [offset for _, offset, _, _ in await client.records(2)] == [5, 6]
    [progress] = await hall.plant.store.scan(ProgressRow)
    assert progress.row.floor == 5


async def test_unacked_records_go_to_another_member_at_once_and_marked(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 3)
    async with hall.attached("a") as first:
        await first.subscribe(GROUP)
        records = await first.records(3)
        async with hall.attached("b") as second:
            await second.subscribe(GROUP)
            await second.next(Status, state="standby")
            await first.ack(records[0][0], 0, 1)
            hall.sessions.detach(first.session)
            granted = await second.granted()
            assert granted.progress == Progress(1)
            assert [record[1:] for record in await second.records(2)] == [
                (1, True, 2),
                (2, True, 2),
            ]


async def test_what_was_out_as_a_client_vanished_counts_as_an_attempt_in_doubt(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 3)
    async with hall.attached("a") as first:
        await first.subscribe(GROUP)
        deliver = await first.next(Deliver)
        await first.settle(Settle(deliver.grant, frontier=1))
    async with hall.attached("b") as second:
        await second.subscribe(GROUP)
        assert [record[1:] for record in await second.records(3)] == [
            (0, True, 2),
            (1, True, 2),
            (2, True, 2),
        ]


async def test_a_stream_that_moves_to_a_newcomer_takes_nothing_twice(hall: Hall) -> None:
    streams = await hall.plant.topic("orders", 2)
    for stream in streams:
        await hall.plant.publish(stream, 2)
    async with hall.attached("a") as first:
        await first.subscribe(GROUP)
        for grant, offset, _, _ in await first.records(4):
            await first.ack(grant, offset, offset + 1)
        async with hall.attached("b") as second:
            await second.subscribe(GROUP)
            await first.next(Revoked)
            granted = await second.granted()
            assert granted.progress == Progress(2)
            moved = streams[int(granted.stream[-1])]
            await hall.plant.publish(moved, 1)
            assert [record[1:] for record in await second.records(1)] == [(2, False, 1)]


async def test_a_private_subscription_resumes_with_exactly_the_unacked(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 6)
    async with hall.attached(expiry_s=60) as client:
        await client.subscribe("orders/#")
        records = await client.records(6)
        await client.ack(records[0][0], 0, 2)
        await client.ack(records[0][0], 3, 5)
        first = client.opened
    async with hall.attached(session_id=first.session_id, expiry_s=60) as client:
        assert client.opened.session_present
        assert client.opened.session_id == first.session_id
        assert client.opened.session_epoch == first.session_epoch + 1
        again = await client.subscribe("orders/#")
        assert not again.declared
        assert [record[1:] for record in await client.records(2)] == [(2, True, 2), (5, True, 2)]


async def test_a_private_subscription_outlives_a_restart(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 3)
    async with opened_hall(plant) as hall, hall.attached(expiry_s=60) as client:
        await client.subscribe("orders/#")
        records = await client.records(3)
        await client.ack(records[0][0], 0, 1)
    await plant.stop()
    await plant.start()
    async with opened_hall(plant) as hall:
        assert hall.sessions.counts().detached == 1
        async with hall.attached(clean_start=False, expiry_s=60) as client:
            assert client.opened.session_present
            await client.subscribe("orders/#")
            assert [record[1:] for record in await client.records(2)] == [
                (1, True, 2),
                (2, True, 2),
            ]


async def test_a_clean_start_discards_what_was(hall: Hall) -> None:
    await hall.plant.topic("orders", 1)
    async with hall.attached(expiry_s=60) as client:
        await client.subscribe("orders/#")
        before = client.opened
    async with hall.attached(expiry_s=60) as client:
        assert not client.opened.session_present
        assert client.opened.session_id != before.session_id
        assert hall.plant.groups.groups() == ()
        assert await hall.plant.store.scan(SubscriptionRow) == []


@pytest.mark.parametrize("connected", [False, True])
async def test_who_resumes_a_session_that_another_client_discarded_was_taken_over(
    plant: Plant, connected: bool
) -> None:
    async with opened_hall(plant) as hall, hall.attached() as old:
        before = old.opened
    await plant.stop()
    await plant.start()
    async with opened_hall(plant) as hall:
        async with hall.attached() as new:
            if not connected:
                hall.sessions.detach(new.session)
            with pytest.raises(SessionTakenOver):
                await hall.sessions.attach(Opening("c", session_id=before.session_id))
            assert new.session.ended.is_set() is not connected
        async with hall.attached(session_id=new.opened.session_id) as again:
            assert again.opened.session_present


async def test_who_resumes_a_session_that_expired_is_told_that_it_is_not_there(
    plant: Plant,
) -> None:
    clock = plant.clock = LateClock()
    async with opened_hall(plant) as hall:
        async with hall.attached() as client:
            before = client.opened
        clock.late_ms = 10_001
        await hall.sessions.discard_expired()
        with pytest.raises(SessionNotFound):
            await hall.sessions.attach(Opening("c", session_id=before.session_id))
        assert await plant.store.scan(SessionRow) == []


async def test_the_newest_connection_wins_and_the_old_is_told(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 1)
    async with hall.attached() as old:
        await old.subscribe(GROUP)
        [(grant, _, _, _)] = await old.records(1)
        async with hall.attached(clean_start=False) as new:
            [last] = [item for item in await old.end() if isinstance(item, Refused)]
            assert isinstance(last.error, SessionTakenOver)
            assert last.final
            await old.ack(grant, 0, 1)
            await new.subscribe(GROUP)
            assert [record[1:] for record in await new.records(1)] == [(0, True, 2)]


async def test_what_a_client_that_is_taken_over_did_not_hand_out_is_new_to_the_next(
    hall: Hall,
) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 4)
    async with hall.attached() as old:
        await old.subscribe(GROUP)
        deliver = await old.next(Deliver)
        await old.settle(Settle(deliver.grant, ((0, 1),), frontier=2))
        async with hall.attached() as new:
            await new.subscribe(GROUP)
            assert [record[1:] for record in await new.records(3)] == [
                (1, True, 2),
                (2, False, 1),
                (3, False, 1),
            ]


async def test_a_client_that_is_taken_over_in_silence_is_waited_for_and_then_in_doubt(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.sessions.lost_clients.TAKEOVER_DRAIN_S", 1.0)
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 2)
    async with hall.attached() as old:
        old.answers_revokes = False
        await old.subscribe(GROUP)
        deliver = await old.next(Deliver)
        began_ms = hall.plant.clock.now_ms()
        coming = asyncio.create_task(hall.sessions.attach(Opening("c")))
        await old.next(Revoke, grant=deliver.grant)
        # What it says in time counts.
        await old.settle(Settle(deliver.grant, ((0, 1),), frontier=1))
        hall.sessions.detach(await coming)
        assert hall.plant.clock.now_ms() - began_ms >= 1_000 * REVOKE_REPORT_SHARE
        assert isinstance((await old.refused()).error, SessionTakenOver)
        async with hall.attached() as new:
            await new.subscribe(GROUP)
            assert [record[1:] for record in await new.records(1)] == [(1, True, 2)]


async def test_a_client_that_resumes_by_its_session_does_not_wait_for_its_old_connection(
    hall: Hall,
) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 1)
    async with hall.attached() as old:
        old.answers_revokes = False
        await old.subscribe(GROUP)
        await old.next(Deliver)
        async with hall.attached(session_id=old.opened.session_id) as new:
            assert new.opened.session_present
        assert not [item for item in await old.end() if isinstance(item, Revoke)]


async def test_a_stop_in_the_midst_of_a_takeover_lets_nobody_in(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 1)
    async with hall.attached() as old:
        old.answers_revokes = False
        await old.subscribe(GROUP)
        deliver = await old.next(Deliver)
        coming = asyncio.create_task(hall.sessions.attach(Opening("c")))
        await old.next(Revoke, grant=deliver.grant)
        stopping = asyncio.create_task(hall.sessions.stop())
        await old.session.take(FinishRevoke(deliver.grant))
        with pytest.raises(Stopping):
            await coming
        await stopping
        assert hall.sessions.counts().connected == 0
    [found] = await hall.plant.store.scan(SessionRow)
    assert found.row.session_epoch == 2
    assert found.row.session_id != old.opened.session_id
    assert found.row.disconnected_at_ms is not None


async def test_a_session_expires_after_its_grace(plant: Plant) -> None:
    clock = plant.clock = LateClock()
    await plant.topic("orders", 1)
    async with opened_hall(plant) as hall:
        async with hall.attached() as client:
            await client.subscribe("orders/#")
        clock.late_ms = 9_000
        await hall.sessions.discard_expired()
        assert hall.sessions.counts().detached == 1
        clock.late_ms = 10_001
        await hall.sessions.discard_expired()
        assert hall.sessions.counts().detached == 0
    assert plant.groups.groups() == ()
    assert await plant.store.scan(SubscriptionRow) == []
    assert await plant.store.scan(SessionRow) == []


async def test_sessions_expire_though_others_close_without_end(tmp_path: Path) -> None:
    plant = Plant(tmp_path / "log", store := ChurnedStore())
    clock = plant.clock = LateClock()
    await plant.start()
    async with opened_hall(plant) as hall:
        sessions = [await hall.sessions.attach(Opening(f"c{n}")) for n in range(20)]
        hall.sessions.detach(sessions.pop())
        await until(lambda: store.puts == 21)
        clock.late_ms = 10_001
        store.closing = lambda: hall.sessions.detach(sessions.pop()) if sessions else None
        store.closing()
        await until(lambda: bool(store.left_at_delete))
        assert store.left_at_delete[0] > 10
    await plant.stop()
    await store.close()


async def test_an_expiry_meets_a_removal_by_an_operator(plant: Plant) -> None:
    clock = plant.clock = LateClock()
    await plant.topic("orders", 1)
    async with opened_hall(plant) as hall:
        async with hall.attached() as client:
            await client.subscribe("orders/#")
        [group] = plant.groups.groups()
        clock.late_ms = 10_001
        removing = asyncio.create_task(plant.groups.remove(group.group_id))
        await asyncio.sleep(0)  # it is under way
        await hall.sessions.discard_expired()
        await asyncio.wait([removing])
        assert hall.sessions.counts().detached == 0
    assert plant.groups.groups() == ()


async def test_a_jump_of_the_wall_clock_expires_nothing(hall: Hall) -> None:
    async with hall.attached(expiry_s=60):
        pass
    hall.plant.clock.ahead_ms = 1_000_000_000
    await hall.sessions.discard_expired()
    assert hall.sessions.counts().detached == 1


async def test_leaving_a_private_subscription_removes_its_group(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 2)
    async with hall.attached() as client:
        await client.subscribe("orders/#")
        await client.records(2)
        await client.session.take(Unsubscribe(1))
        await client.next(UnsubscribedItem)
        assert hall.plant.groups.groups() == ()
        assert await hall.plant.store.scan(SubscriptionRow) == []


async def test_unacked_records_of_a_subscription_that_was_left_go_back(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 2)
    async with hall.attached("a") as first, hall.attached("b") as second:
        await first.subscribe(GROUP)
        [(grant, *_), _] = await first.records(2)
        await second.subscribe(GROUP)
        await first.ack(grant, 0, 1)
        await first.session.take(Unsubscribe(1))
        await first.next(UnsubscribedItem)
        assert [record[1:] for record in await second.records(1)] == [(1, True, 2)]


async def test_a_nak_comes_again_to_the_same_member(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 2)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        [(grant, *_), _] = await client.records(2)
        await client.nak(grant, 0, 1, delay_ms=1)
        assert await client.records(1) == [(grant, 0, True, 2)]


async def test_a_removed_group_ends_its_members_for_good(hall: Hall) -> None:
    await hall.plant.topic("orders", 1)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        await client.granted()
        [group] = hall.plant.groups.groups()
        await hall.plant.groups.remove(group.group_id)
        refused = await client.refused()
        assert isinstance(refused.error, GroupDestroyed)
        assert (refused.subscription, refused.final) == (1, True)


async def test_a_subscription_whose_group_went_while_it_rested_is_forgotten(hall: Hall) -> None:
    await hall.plant.topic("orders", 1)
    async with hall.attached(expiry_s=60) as client:
        await client.subscribe(GROUP)
    async with hall.attached(clean_start=False, expiry_s=60) as client:
        assert client.opened.session_present
        [group] = hall.plant.groups.groups()
        await hall.plant.groups.remove(group.group_id)
        await client.session.take(Subscribe(1, GROUP, Earliest()))
        assert isinstance((await client.refused()).error, GroupDestroyed)
        assert await hall.plant.store.scan(SubscriptionRow) == []
        assert client.session.subscriptions == 0


@pytest.mark.parametrize(
    ("filter_", "error"),
    [
        ("$queue/orders", QueueWithoutGroup),
        ("$queue/g/orders/#", QueueNotDeclared),
        ("orders/#/x", IllegalFilter),
        ("$share/g", IllegalFilter),
        ("$share/g h/orders", IllegalName),
    ],
)
async def test_a_wrong_filter_is_refused_and_the_session_lives_on(
    hall: Hall, filter_: str, error: type[DssError]
) -> None:
    await hall.plant.topic("orders", 1)
    async with hall.attached() as client:
        await client.session.take(Subscribe(1, filter_))
        refused = await client.refused()
        assert isinstance(refused.error, error)
        assert (refused.subscription, refused.final) == (1, False)
        await client.subscribe(GROUP)


async def test_wrong_settles_are_refused_and_the_session_lives_on(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 2)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        [(grant, *_), _] = await client.records(2)
        await client.ack(grant, 1, 3)
        assert isinstance((await client.refused()).error, AckOutOfRange)
        await client.ack(grant + 1, 0, 1)
        assert isinstance((await client.refused()).error, GrantNotHeld)
        await client.session.take(FinishRevoke(grant + 1))
        assert isinstance((await client.refused()).error, GrantNotHeld)
        await client.session.take(Unsubscribe(7))
        assert isinstance((await client.refused()).error, NotSubscribed)
        await client.session.take(PingSent(3))
        await client.next(PongSent, token=3)


async def test_a_number_stands_for_one_filter(hall: Hall) -> None:
    await hall.plant.topic("orders", 1)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        await client.session.take(Subscribe(1, "$share/h/orders/#", Earliest()))
        assert isinstance((await client.refused()).error, IllegalArgument)


async def test_a_session_has_a_bounded_number_of_subscriptions(hall: Hall) -> None:
    async with hall.attached() as client:
        for number in range(1, 257):
            await client.subscribe(f"none/{number}", number)
        await client.session.take(Subscribe(257, "none"))
        assert (await client.refused()).error.code == "DSS3002"


async def test_stopping_tells_the_clients_and_reports_exactly(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 4)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        deliver = await client.next(Deliver)
        await client.settle(Settle(deliver.grant, ((0, 1),), frontier=2))
        await hall.sessions.stop()
        items = await client.end()
        assert any(isinstance(item, Revoke) for item in items)
        last = items[-1]
        assert isinstance(last, Refused)
        assert isinstance(last.error, Stopping)
        with pytest.raises(Stopping):
            await hall.sessions.attach(Opening("other"))
    await hall.plant.stop()
    await hall.plant.start()
    async with opened_hall(hall.plant) as again, again.attached(clean_start=False) as client:
        await client.subscribe(GROUP)
        assert [record[1:] for record in await client.records(3)] == [
            (1, True, 2),
            (2, False, 1),
            (3, False, 1),
        ]


async def test_a_client_that_does_not_read_is_sent_its_credit(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    for _ in range(30):
        await hall.plant.publish(stream, 10)
    async with hall.attached(credit_records=50) as client:
        await client.subscribe(GROUP)
        assert len(await client.records(50)) == 50
        await client.session.take(PingSent(1))
        await client.next(PongSent, token=1)
        sent = [item for item in client.heard if isinstance(item, Deliver)]
        assert sum(total(offsets_of(item)) for item in sent) == 50


async def test_frames_are_judged_only_where_the_filter_may_reject_some(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stream,) = await hall.plant.topic("t", 1)
    await hall.plant.publish(stream, 2, "t/a")
    read = hall.plant.log.read
    judged: set[TopicFilter | None] = set()

    async def noted(
        stream: StreamId, offset: int, *, bytes_max: int, matching: TopicFilter | None = None
    ) -> Chunk:
        judged.add(matching)
        return await read(stream, offset, bytes_max=bytes_max, matching=matching)

    monkeypatch.setattr(hall.plant.log, "read", noted)
    async with hall.attached() as client:
        await client.subscribe("$share/g/t/#")
        await client.records(2)
        assert judged == {None}
        await client.subscribe("$share/g/t/a", 2)
        await client.records(2)
        assert judged == {None, TopicFilter.parse("t/a")}
