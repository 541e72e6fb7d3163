"""Threads that take from an ordered subscription: one record of a key at a time, in order."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from threading import Lock, Thread

import pytest

import dss_client.sync
from dss_client.sync import DeliveredRecord, Subscription
from dss_client.sync.subscription import PICKED_RECORDS
from dss_client.testing import until
from support.ordered_lane import OrderedDaemon

KEYS = [b"a", b"b", b"c", None]


@pytest.fixture
async def daemon(socket: Path) -> AsyncIterator[OrderedDaemon]:
    async with OrderedDaemon(socket) as daemon:
        yield daemon


async def with_thread(
    daemon: OrderedDaemon, work: Callable[[Subscription], None], *, keys: list[bytes | None]
) -> None:
    """Do something in a thread while a stream of these is lent."""

    def program() -> None:
        with (
            dss_client.sync.connect(endpoint=daemon.endpoint) as client,
            client.subscribe("$share/g/t/#") as subscription,
        ):
            work(subscription)

    working = asyncio.ensure_future(asyncio.to_thread(program))
    await until(lambda: daemon._lent)
    daemon.fill(keys)
    await asyncio.wait_for(working, 20)


class Program:
    """Settles what it takes, in several threads; it notes what came while its key was out."""

    def __init__(self, daemon: OrderedDaemon) -> None:
        self.daemon = daemon
        self.chance = random.Random(5)
        self.lock = Lock()
        self.out: set[bytes] = set()
        self.came: dict[bytes, list[int]] = defaultdict(list)
        self.wrong: list[str] = []

    def begin(self, record: DeliveredRecord) -> None:
        with self.lock:
            key = record.key
            if key is None:
                return
            if key in self.out:
                self.wrong.append(f"{record.offset} came while {key!r} was out")
            self.out.add(key)
            self.came[key].append(record.offset)

    def end(self, record: DeliveredRecord) -> float:
        with self.lock:
            self.out.discard(record.key or b"none")
            return self.chance.random()

    def take(self, record: DeliveredRecord) -> None:
        self.begin(record)
        fails = self.end(record)
        if fails < 0.05:
            record.reject()
        elif fails < 0.2:
            record.nak()
        else:
            record.ack()

    def handle(self, record: DeliveredRecord) -> None:
        self.begin(record)
        if self.end(record) < 0.2:
            raise ValueError

    def check(self) -> None:
        assert self.wrong == []
        assert sorted(self.daemon.done + self.daemon.dead) == [*range(len(self.daemon.keys))]
        for offsets in self.came.values():
            assert all(first <= second for first, second in pairwise(offsets))


Way = Callable[["Program", Subscription], None]
WAYS: dict[str, Way] = {}


def way(work: Way) -> Way:
    WAYS[work.__name__] = work
    return work


@way
def one_by_one(program: Program, subscription: Subscription) -> None:
    for record in subscription:
        program.take(record)


@way
def in_threads(program: Program, subscription: Subscription) -> None:
    threads = [Thread(target=one_by_one, args=[program, subscription]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@way
def by_fetch(program: Program, subscription: Subscription) -> None:
    while not program.daemon.is_over:
        for record in subscription.fetch(5, timeout=0.02):
            program.take(record)


@way
def by_the_batch(program: Program, subscription: Subscription) -> None:
    for batch in subscription.batches():
        for record in [*batch][:1]:
            program.take(record)
        batch.ack()


@way
def in_a_run(program: Program, subscription: Subscription) -> None:
    subscription.run(program.handle, concurrency=4)


@pytest.mark.parametrize("name", WAYS)
async def test_a_key_is_taken_in_order_one_at_a_time_though_records_fail(
    daemon: OrderedDaemon, name: str
) -> None:
    program, chance = Program(daemon), random.Random(1)
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def drain_at_the_end(subscription: Subscription) -> None:
        asyncio.run_coroutine_threadsafe(over.wait(), loop).result(20)
        subscription.drain()

    def work(subscription: Subscription) -> None:
        Thread(target=drain_at_the_end, args=[subscription]).start()
        WAYS[name](program, subscription)

    keys = [chance.choice(KEYS) for _ in range(150)]
    working = asyncio.ensure_future(with_thread(daemon, work, keys=keys))
    await until(lambda: daemon.keys)
    with suppress(TimeoutError):
        async with asyncio.timeout(10):
            while not (daemon.is_over or working.done()):  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0.005)
    over.set()
    await working
    if name == "by_the_batch":
        assert daemon.is_over
    else:
        program.check()


async def test_one_key_alone_goes_through_record_by_record_and_many_at_once(
    daemon: OrderedDaemon,
) -> None:
    found: list[int] = []

    def work(subscription: Subscription) -> None:
        for record in subscription:
            found.append(record.offset)
            record.ack()
            if len(found) == 200 + 2 * PICKED_RECORDS:
                return

    keys: list[bytes | None] = [b"hot"] * 200
    await with_thread(daemon, work, keys=keys + [b"%d" % at for at in range(2 * PICKED_RECORDS)])
    assert sorted(found) == [*range(200 + 2 * PICKED_RECORDS)]
    assert [at for at in found if at < 200] == [*range(200)]


async def test_what_lies_open_for_threads_is_dropped_where_the_daemon_takes_it_back(
    daemon: OrderedDaemon,
) -> None:
    found: list[tuple[int, int]] = []

    def work(subscription: Subscription) -> None:
        records = iter(subscription)
        first = next(records)
        first.in_progress()
        asyncio.run_coroutine_threadsafe(ask(), loop).result(5)
        for record in records:
            found.append((record.offset, record.level))
            record.ack()
            if len(found) == 4:
                return

    async def ask() -> None:
        await until(lambda: daemon.settles)
        daemon.ask_back(0)
        await until(lambda: daemon.taken_back == [(1, True)])

    loop = asyncio.get_running_loop()
    await with_thread(daemon, work, keys=[b"a", b"b", b"a", b"c"])
    assert sorted(found) == [(0, 1), (1, 0), (2, 1), (3, 0)]
    assert found.index((0, 1)) < found.index((2, 1))


async def test_of_a_stream_that_is_revoked_no_more_is_taken_and_all_that_was_is_told(
    daemon: OrderedDaemon,
) -> None:
    taken: list[DeliveredRecord] = []

    def work(subscription: Subscription) -> None:
        records = iter(subscription)
        taken.extend((next(records), next(records)))  # the second lies open beside others
        asyncio.run_coroutine_threadsafe(revoke(subscription), loop).result(10)
        for record in taken:
            record.ack()
        asyncio.run_coroutine_threadsafe(end(subscription), loop)
        taken.extend(records)

    async def revoke(subscription: Subscription) -> None:
        [grant] = subscription._pieces._boxes
        daemon.revoke(1)
        await until(lambda: grant.stopped)

    async def end(subscription: Subscription) -> None:
        try:
            await until(lambda: daemon.revoke_finished == [1])
        finally:
            await asyncio.to_thread(subscription.drain)

    loop = asyncio.get_running_loop()
    await with_thread(daemon, work, keys=[b"a", b"b", b"c", b"d"])
    assert [record.offset for record in taken] == [0, 1]
    assert (daemon.revoke_finished, sorted(daemon.done)) == ([1], [0, 1])
