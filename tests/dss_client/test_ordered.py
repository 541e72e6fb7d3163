"""An ordered subscription against a lane that is played: what the program gets, in which order."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import dss_client
from dss_client import DeliveredBatch, DeliveredRecord, Subscription, _coming
from dss_client.testing import MemoryDaemon, until
from dss_core.build import build_frame
from dss_core.columns import Columns
from support.ordered_lane import OrderedDaemon

WAYS = ("one by one", "fetch", "batches", "run")


@pytest.fixture
async def daemon(socket: Path) -> AsyncIterator[OrderedDaemon]:
    async with OrderedDaemon(socket) as daemon:
        yield daemon


@asynccontextmanager
async def lent(daemon: OrderedDaemon) -> AsyncIterator[Subscription]:
    async with (
        asyncio.timeout(30),
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe("$share/g/t/#") as subscription,
    ):
        await until(lambda: daemon._lent)
        yield subscription


async def here(subscription: Subscription, records: int) -> None:
    await until(lambda: subscription._count(records) >= records)


async def turns() -> None:
    """Let all that is ready run, and what that makes ready."""
    for _ in range(50):
        await asyncio.sleep(0)


async def offsets(subscription: Subscription, n: int = 9) -> list[int]:
    """What may be taken now."""
    return [record.offset for record in await subscription.fetch(n, timeout=0.02)]


async def test_iteration_skips_over_what_waits_for_its_key_and_goes_on_there_once_that_is_settled(
    daemon: OrderedDaemon,
) -> None:
    async with lent(daemon) as subscription:
        daemon.fill([b"a", b"a", b"b", None, b"a", None, b"c"])
        await here(subscription, 7)
        records = aiter(subscription)
        taken = [await anext(records) for _ in range(5)]
        assert [each.offset for each in taken] == [0, 2, 3, 5, 6]
        waiting = asyncio.ensure_future(anext(records))
        await turns()
        assert not waiting.done()
        await taken[0].ack()
        second = await waiting
        assert second.offset == 1
        for record in (*taken[1:], second):
            await record.ack()
        assert (await anext(records)).offset == 4
        await until(lambda: daemon.streams[0].hand_outs or daemon.settles)


async def test_a_record_is_handed_out_once_in_reports_however_late(daemon: OrderedDaemon) -> None:
    async with lent(daemon) as subscription:
        daemon.fill([b"a", b"a", b"b", b"b", b"a", b"c"])
        await here(subscription, 6)
        while len(daemon.done) < 6:
            for record in await subscription.fetch(6, timeout=0.02):
                await record.ack()
    frontiers = [each.frontier for each in daemon.settles]
    early = [at for each in daemon.settles for part in each.handed_out for at in [part.start]]
    assert frontiers == sorted(frontiers)
    assert frontiers[-1] == 6
    assert len(early) == len(set(early))
    assert [at for at in daemon.done if at in (0, 1, 4)] == [0, 1, 4]


@pytest.mark.parametrize("way", ["nak", "reject"])
async def test_after_a_refusal_nothing_of_the_key_is_handed_out_before_the_daemons_word(
    daemon: OrderedDaemon, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    words: list[tuple[list[int], int]] = []
    say = daemon._say_take_back
    monkeypatch.setattr(daemon, "_say_take_back", lambda *word: words.append(word))
    async with lent(daemon) as subscription:
        daemon.fill([b"a", b"b", b"a"])
        await here(subscription, 3)
        first, other = await subscription.fetch(3)
        await (first.nak() if way == "nak" else first.reject())
        await other.ack()
        await until(lambda: words)
        daemon.fill([b"b"])
        assert await offsets(subscription) == [3]
        assert words == [([0, 2], 0)]
        await until(lambda: subscription._count(9) == 2)
        say(*words[0])
        (again,) = await subscription.fetch(1)
        assert (again.offset, again.level) == ((0, 1) if way == "nak" else (2, 1))


async def test_of_a_batch_what_follows_a_refused_row_of_its_key_is_refused_with_it_uncharged(
    daemon: OrderedDaemon,
) -> None:
    async with lent(daemon) as subscription:
        daemon.fill([b"a", b"b", b"a", b"a", None])
        batch = await anext(aiter(subscription.batches()))
        rows = [*batch]
        assert [each.offset for each in rows] == [0, 1, 2, 3, 4]
        await rows[0].ack()
        await rows[2].nak()
        assert [each.refused for each in rows] == [False, False, True, True, False]
        assert [each.acked for each in rows] == [True, False, False, False, False]
        for row in rows:
            await row.ack()
        await until(lambda: daemon.take_backs and len(daemon.done) == 3)
        assert sorted(daemon.done) == [0, 1, 4]
        assert daemon.failed == {2: 1, 3: 0}
        for expected in (2, 3):
            (again,) = await subscription.fetch(1)
            assert (again.offset, again.level) == (expected, 1)
            await again.ack()
        await until(lambda: daemon.is_over)


async def test_a_refused_batch_charges_the_first_row_of_each_key(daemon: OrderedDaemon) -> None:
    async with lent(daemon) as subscription:
        daemon.fill([b"a", b"b", b"a", b"", b"b", b"c"])
        batch = await anext(aiter(subscription.batches()))
        await batch.nak()
        await batch.ack()
        await until(lambda: len(daemon.failed) == 6)
        assert daemon.failed == {0: 1, 1: 1, 2: 0, 3: 1, 4: 0, 5: 1}
        assert daemon.done == []


async def test_rows_whose_key_is_out_in_another_batch_are_left_for_later(
    daemon: OrderedDaemon,
) -> None:
    async with lent(daemon) as subscription:
        batches = aiter(subscription.batches())
        daemon.fill([b"a", b"b"])
        first = await anext(batches)
        daemon.fill([b"c", b"b", b"c", b"a", b"b"])
        second = await anext(batches)
        assert [*second.offsets] == [2, 4]
        waiting = asyncio.ensure_future(anext(batches))
        await turns()
        assert not waiting.done()
        await first.ack()
        third = await waiting
        assert [*third.offsets] == [3, 5, 6]
        assert [*third.payloads] == [b"3", b"5", b"6"]
        await second.ack()
        await third.ack()
        await until(lambda: daemon.is_over)


async def test_what_is_asked_back_while_it_is_out_drops_what_follows_and_comes_again(
    daemon: OrderedDaemon,
) -> None:
    async with lent(daemon) as subscription:
        daemon.fill([b"a", b"b", b"a", b"a"])
        await here(subscription, 4)
        first, other = await subscription.fetch(4)
        await until(lambda: daemon.settles)
        daemon.ask_back(0)
        await until(lambda: daemon.taken_back)
        assert daemon.taken_back == [(1, True)]
        # Its ack wait is over: the next attempt need not wait for this one.
        (again,) = await subscription.fetch(1)
        assert (again.offset, again.level) == (0, 1)
        await again.ack()
        await first.ack()
        await other.ack()
        for expected in (2, 3):
            (follower,) = await subscription.fetch(1)
            assert (follower.offset, follower.level) == (expected, 1)
            await follower.ack()
        await until(lambda: daemon.is_over)


@pytest.mark.parametrize("acked", [True, False])
async def test_what_was_settled_before_it_is_asked_back_is_reported_before_the_answer(
    daemon: OrderedDaemon, acked: bool
) -> None:
    async with lent(daemon) as subscription:
        daemon.fill([b"a", b"a"])
        await here(subscription, 2)
        (first,) = await subscription.fetch(1)
        await until(lambda: daemon.settles)
        await (first.ack() if acked else first.nak())
        daemon.ask_back(0)
        await until(lambda: daemon.taken_back)
        assert daemon.taken_back == [(1, False)]
        assert (daemon.done, daemon.failed.get(0)) == (([0], None) if acked else ([], 1))
        if not acked:
            (again,) = await subscription.fetch(1)
            assert (again.offset, again.level) == (0, 1)
            await again.ack()
        (second,) = await subscription.fetch(1)
        assert (second.offset, second.level) == (1, 0 if acked else 1)


async def test_in_a_run_the_next_attempt_waits_for_the_handler_of_the_one_before(
    daemon: OrderedDaemon,
) -> None:
    begun: list[tuple[int, int]] = []
    go = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        begun.append((record.offset, record.level))
        if begun == [(0, 0)]:
            await go.wait()

    async with lent(daemon) as subscription:
        running = asyncio.ensure_future(subscription.run(handle, concurrency=4))
        daemon.fill([b"a", b"a"])
        await until(lambda: begun and daemon.settles)
        daemon.ask_back(0)
        await until(lambda: daemon.taken_back == [(1, True)])
        daemon.fill([b"b"])
        await until(lambda: (2, 0) in begun)
        await turns()
        assert begun == [(0, 0), (2, 0)]
        go.set()
        await until(lambda: daemon.is_over)
        assert begun == [(0, 0), (2, 0), (0, 1), (1, 1)]
        running.cancel()


async def test_a_run_that_is_cancelled_leaves_what_waits_to_whoever_takes_next_in_order(
    daemon: OrderedDaemon,
) -> None:
    async def handle(record: DeliveredRecord) -> None:
        if record.key == b"a":
            await asyncio.Event().wait()

    async with lent(daemon) as subscription:
        running = asyncio.ensure_future(subscription.run(handle, concurrency=1))
        daemon.fill([b"a", b"b", b"a", b"b", None])
        await until(lambda: daemon.settles)
        running.cancel()
        seen: list[tuple[int, int]] = []
        while not daemon.is_over:
            for record in await subscription.fetch(5, timeout=0.02):
                seen.append((record.offset, record.level))
                await record.ack()
        assert [each for each in seen if each[0] in (0, 2)] == [(0, 1), (2, 1)]
        assert [each for each in seen if each[0] in (1, 3)] == [(1, 0), (3, 0)]
        assert (4, 0) in seen


async def test_what_is_held_back_of_a_stream_that_is_taken_back_is_not_handed_out(
    daemon: OrderedDaemon,
) -> None:
    async with lent(daemon) as subscription:
        daemon.fill([b"a", b"a"])
        await here(subscription, 2)
        (first,) = await subscription.fetch(2)
        daemon.revoke(1)
        await until(lambda: subscription._count(9) == 0)
        await first.ack()
        await until(lambda: daemon.revoke_finished == [1])
        assert await offsets(subscription) == []
        assert daemon.done == [0]


async def test_while_the_group_is_paused_nothing_that_was_held_back_is_handed_out(
    daemon: OrderedDaemon,
) -> None:
    async with lent(daemon) as subscription:
        daemon.fill([b"a", b"a", b"b"])
        await here(subscription, 3)
        records = aiter(subscription)
        first = await anext(records)
        daemon.set_paused(subscription.number, paused=True)
        await until(lambda: daemon.pauses_taken)
        await first.ack()
        assert await offsets(subscription) == []
        daemon.set_paused(subscription.number, paused=False)
        await until(lambda: len(daemon.pauses_taken) == 2)
        assert await offsets(subscription) == [1, 2]


async def test_of_one_key_fetch_returns_one_record_and_after_its_ack_the_next(
    daemon: OrderedDaemon,
) -> None:
    async with lent(daemon) as subscription:
        daemon.fill([b"a", b"b", b"c", None, b"a", None, b"d", b"b"])
        await here(subscription, 8)
        assert [each.offset for each in await subscription.fetch(4)] == [0, 1, 2, 3]
        taken = await subscription.fetch(4, timeout=0.02)
        assert [each.offset for each in taken] == [5, 6]
        await taken[0].ack()
        assert await offsets(subscription) == []


async def test_fetch_looks_at_no_key_again_while_all_is_acknowledged_in_order(
    daemon: OrderedDaemon,
) -> None:
    async with lent(daemon) as subscription:
        daemon.fill([b"a", b"b", b"c", b"a", b"b", b"c"])
        await here(subscription, 6)
        for first in (0, 3):
            taken = await subscription.fetch(3)
            assert [each.offset for each in taken] == [first, first + 1, first + 2]
            for record in taken:
                await record.ack()
        assert subscription._order is not None
        assert subscription._order.may_all_go()


async def test_fetch_does_not_wait_for_more_where_what_is_here_waits_for_what_it_returns(
    daemon: OrderedDaemon,
) -> None:
    async with lent(daemon) as subscription:
        daemon.fill([b"a"] * 5)
        assert [each.offset for each in await subscription.fetch(5)] == [0]


def three_records(daemon: MemoryDaemon) -> None:
    """Two of a key, and one of another."""
    frame = build_frame(
        Columns([b"x"] * 3, [b"a", b"a", b"b"], "t"), partition=0, producer_id=b"p" * 16, sequence=0
    )
    daemon.streams[0].append(frame)


@asynccontextmanager
async def lent_anew(
    daemon: MemoryDaemon,
) -> AsyncIterator[tuple[Subscription, list[DeliveredRecord]]]:
    """A subscription whose connection was lost while its program had a record; it comes again."""
    daemon.ordered = daemon.hold_back = True
    three_records(daemon)
    async with (
        asyncio.timeout(30),
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe("$share/g/t/#") as subscription,
    ):
        await until(lambda: daemon._lent)
        daemon.deliver_part(1, 0, 1)
        taken = await subscription.fetch(1)
        await daemon.cut()
        await daemon.start()
        await until(lambda: 3 in daemon._lent)
        daemon.deliver(3, redelivered=True)
        yield subscription, taken


async def test_what_comes_again_after_a_lost_connection_waits_for_the_late_ack_of_before(
    socket: Path,
) -> None:
    async with (
        MemoryDaemon(socket) as daemon,
        lent_anew(daemon) as (subscription, [first]),
    ):
        assert await offsets(subscription) == [2]
        assert first.grant_over
        await first.ack()
        again, *_ = await subscription.fetch(1)
        assert (again.offset, again.redelivered) == (0, True)
        assert await offsets(subscription) == []
        await again.ack()
        assert await offsets(subscription) == [1]
        assert subscription.late_acks == 1


async def test_a_late_refusal_of_what_is_lent_anew_lets_it_go_too(socket: Path) -> None:
    async with (
        MemoryDaemon(socket) as daemon,
        lent_anew(daemon) as (subscription, [first]),
    ):
        assert await offsets(subscription) == [2]
        await first.nak()
        assert await offsets(subscription) == [0]


async def test_a_program_that_forgot_what_it_had_gets_it_again_after_a_while(
    socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_coming, "EARLIER_ATTEMPT_S", 0.05)
    async with (
        MemoryDaemon(socket) as daemon,
        lent_anew(daemon) as (subscription, _),
    ):
        found: list[int] = []
        while len(found) < 2:
            found += await offsets(subscription)
        assert sorted(found) == [0, 2]


async def test_a_handler_that_is_at_work_over_a_lost_connection_is_alone_with_its_key(
    socket: Path,
) -> None:
    begun: list[tuple[int, int]] = []
    go = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        begun.append((record.offset, record.grant_number))
        if len(begun) == 1:
            await go.wait()

    async with MemoryDaemon(socket) as daemon, AsyncExitStack() as stack:
        daemon.hold_back = daemon.ordered = True
        client = await stack.enter_async_context(dss_client.connect(endpoint=daemon.endpoint))
        subscription = await stack.enter_async_context(client.subscribe("$share/g/t/#"))
        running = asyncio.ensure_future(subscription.run(handle, concurrency=4))
        three_records(daemon)
        await until(lambda: daemon._lent)
        daemon.deliver_part(1, 0, 1)
        await until(lambda: begun)
        await daemon.cut()
        await daemon.start()
        await until(lambda: 3 in daemon._lent)
        daemon.deliver(3, redelivered=True)
        await until(lambda: len(begun) == 2)
        await turns()
        assert begun == [(0, 1), (2, 3)]
        go.set()
        await until(lambda: len(begun) == 4)
        assert begun[2:] == [(0, 3), (1, 3)]
        running.cancel()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(2))
async def test_each_key_is_done_in_order_one_at_a_time_whatever_fails_or_is_late(
    daemon: OrderedDaemon, way: str, seed: int
) -> None:
    program = Program(daemon, random.Random(seed))
    async with lent(daemon) as subscription, asyncio.TaskGroup() as tasks:
        program.tasks = tasks
        taking = tasks.create_task(program.take(subscription, way))
        for _ in range(30):
            daemon.fill([program.chance.choice(KEYS) for _ in range(program.chance.randint(1, 12))])
            for _ in range(program.chance.randint(0, 20)):
                await asyncio.sleep(0)
            if program.chance.random() < 0.3:
                program.ask_back()
        async with asyncio.timeout(20):
            while not daemon.is_over:  # noqa: ASYNC110 - nothing tells what a client has not done
                await asyncio.sleep(0.005)
        taking.cancel()
    assert program.wrong == []
    assert sorted({*daemon.done, *daemon.dead}) == [*range(len(daemon.keys))]
    assert len(daemon.done) + len(daemon.dead) == len(daemon.keys)
    by_key: dict[bytes | None, list[int]] = defaultdict(list)
    for at in daemon.done:
        by_key[daemon.keys[at]].append(at)
    for key in KEYS[:-1]:
        assert by_key[key] == sorted(by_key[key])


KEYS = [b"a", b"b", b"c", b"", b"d", None]


class Program:
    """Takes records, and handles them well, badly or late; it notes what it should not have got."""

    def __init__(self, daemon: OrderedDaemon, chance: random.Random) -> None:
        self.daemon, self.chance = daemon, chance
        self.has: dict[bytes, list[int]] = defaultdict(list)
        self.asked: set[int] = set()
        self.last: dict[bytes, int] = {}
        self.wrong: list[str] = []
        self.tasks: asyncio.TaskGroup

    def ask_back(self) -> None:
        """The ack wait of something that is out for long is over."""
        daemon = self.daemon
        out = [at for key in self.has for at in self.has[key] if at in daemon.out]
        if out and daemon.keys[out[0]] not in daemon._held_keys:
            self.asked.add(out[0])
            daemon.ask_back(out[0])

    async def take(self, subscription: Subscription, way: str) -> None:
        if way == "run":
            await subscription.run(self.handle, concurrency=5)
        elif way == "batches":
            async for batch in subscription.batches():
                self.take_batch(batch)
        elif way == "fetch":
            while True:
                for record in await subscription.fetch(7, timeout=0.01):
                    await self.take_record(record)
        else:
            async for record in subscription:
                await self.take_record(record)
                if self.chance.random() < 0.3:
                    await asyncio.sleep(0)

    def begin(self, record: DeliveredRecord, *, alone: bool) -> None:
        key = record.key
        if key is None:
            return
        others = [at for at in self.has[key] if at not in self.asked]
        if others and alone:
            self.wrong.append(f"{record.offset} came while {others} was out")
        if record.offset < self.last.get(key, -1):
            self.wrong.append(f"{record.offset} came after {self.last[key]}")
        self.has[key].append(record.offset)

    def end(self, record: DeliveredRecord, *, done: bool) -> None:
        key = record.key
        if key is None:
            return
        self.has[key].remove(record.offset)
        if done and record.offset not in self.asked:
            self.last[key] = max(self.last.get(key, -1), record.offset)

    async def take_record(self, record: DeliveredRecord) -> None:
        self.begin(record, alone=True)
        if self.chance.random() < 0.4:
            self.tasks.create_task(self.settle_later(record))
        else:
            await self.settle(record)

    async def settle_later(self, record: DeliveredRecord) -> None:
        for _ in range(self.chance.randint(1, 30)):
            await asyncio.sleep(0)
        await self.settle(record)

    async def settle(self, record: DeliveredRecord) -> None:
        fails = self.chance.random()
        self.end(record, done=fails >= 0.25)
        if fails >= 0.25:
            await record.ack()
        elif fails >= 0.05:
            await record.nak()
        else:
            await record.reject()

    async def handle(self, record: DeliveredRecord) -> None:
        self.begin(record, alone=True)
        fails = self.chance.random()
        for _ in range(self.chance.randint(0, 10)):
            await asyncio.sleep(0)
        self.end(record, done=fails >= 0.25)
        if fails < 0.05:
            raise dss_client.Reject("never")
        if fails < 0.25:
            raise ValueError

    def take_batch(self, batch: DeliveredBatch) -> None:
        self.tasks.create_task(self.settle_batch(batch))

    async def settle_batch(self, batch: DeliveredBatch) -> None:
        for _ in range(self.chance.randint(0, 20)):
            await asyncio.sleep(0)
        if self.chance.random() < 0.3:
            rows = [*batch]
            await self.chance.choice(rows).nak()
            for row in rows:
                await row.ack()
        elif self.chance.random() < 0.2:
            await batch.nak()
        else:
            await batch.ack()
