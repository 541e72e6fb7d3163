import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import NoReturn

import pytest

import dss_client
from dss_api.v1 import sessions_pb2
from dss_client import DeliveredRecord, GrantNotice, Subscription
from dss_client.testing import MemoryDaemon, memory_session, until
from dss_core import decode as dss_core_decode
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import DecodedBatch
from dss_core.progress import Ranges

SHARE = "$share/g/t/#"

Notify = Callable[[GrantNotice], None]
Handler = Callable[[DeliveredRecord], Awaitable[None]]


def fill(daemon: MemoryDaemon, keys: Sequence[bytes | None]) -> None:
    """Append a frame with a record of each key."""
    stream = daemon.streams[0]
    frame = build_frame(
        Columns([b"x"] * len(keys), list(keys), "t"),
        partition=0,
        producer_id=b"p" * 16,
        sequence=len(stream.frames),
    )
    stream.append(frame)


@asynccontextmanager
async def subscribed(
    daemon: MemoryDaemon, on_revoke: Notify | None = None
) -> AsyncIterator[Subscription]:
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(SHARE, on_revoke=on_revoke) as subscription,
    ):
        yield subscription


@asynccontextmanager
async def running(
    daemon: MemoryDaemon,
    handler: Handler,
    *,
    concurrency: int = 3,
    on_revoke: Notify | None = None,
) -> AsyncIterator[Subscription]:
    """A run that ends by `drain` at the end of the block."""
    async with subscribed(daemon, on_revoke) as subscription:
        run = asyncio.ensure_future(subscription.run(handler, concurrency=concurrency))
        yield subscription
        await subscription.drain()
        await run


def reported(daemon: MemoryDaemon) -> dict[int, int]:
    """How often each offset was handed out, as the client reported."""
    return daemon.streams[0].hand_outs


def acknowledged(daemon: MemoryDaemon, records: int) -> bool:
    return daemon.acknowledged() >= records


class Clock:
    """The client's clock, which a test can move on: the process stood still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead_s = 0.0
        patched = (
            "_attachment",
            "_doubt",
            "_keyed_runner",
            "_loop_watch",
            "_pings",
            "subscription",
        )
        for module in patched:
            monkeypatch.setattr(f"dss_client.{module}.monotonic", self.now)
        self._real = asyncio.get_running_loop().time

    def stand_still(self, seconds: float = 10) -> None:
        """For longer than the daemon waits for a client, unless it is said for how long."""
        self._ahead_s += seconds

    def now(self) -> float:
        return self._real() + self._ahead_s


def lend_to_another(daemon: MemoryDaemon) -> None:
    """The daemon has given the stream up for lost; the client has not read of it yet."""
    daemon.say(revoked=sessions_pb2.Revoked(grant=1, reason="lost"))


async def test_what_waited_in_run_is_not_handled_after_its_process_stood_still(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    fill(daemon, [b"a"] * 5 + [None] * 5)
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        for _ in range(100):
            await asyncio.sleep(0)  # until the others wait behind it
        lend_to_another(daemon)
        clock.stand_still()

    async with running(daemon, handle, concurrency=1) as subscription:
        await until(lambda: handled and subscription._ended)
    assert handled == [0]
    assert daemon.pings


def stand_still_once(
    daemon: MemoryDaemon,
    monkeypatch: pytest.MonkeyPatch,
    subscription: Subscription,
    moment: str,
    stood_s: float,
) -> list[bool]:
    """Have the process stand still at the moment; meanwhile its stream goes to another.

    What is returned is empty until then.
    """
    clock = Clock(monkeypatch)
    stood_still: list[bool] = []

    def stand_still() -> None:
        if not stood_still:
            stood_still.append(True)
            lend_to_another(daemon)
            clock.stand_still(stood_s)

    decode, wait_sure = dss_core_decode.decode, subscription._session.wait_sure

    def slow_decode(frames: bytes, mask: Ranges = ()) -> DecodedBatch:
        stand_still()
        return decode(frames, mask)

    async def slow_answer() -> None:
        await wait_sure()
        stand_still()

    if moment == "while it was decoded":
        monkeypatch.setattr(dss_core_decode, "decode", slow_decode)
        subscription._resume_at = clock.now() + 1
    else:
        monkeypatch.setattr(subscription._session, "wait_sure", slow_answer)
    return stood_still


@pytest.mark.parametrize(
    ("moment", "stood_s"),
    [
        ("while it was decoded", 10),
        # Shorter than the silence after which it would ask anyway.
        ("while it was decoded", 1.5),
        ("behind the daemon's answer", 10),
    ],
)
@pytest.mark.parametrize("way", ["one by one", "batches", "fetch", "run"])
async def test_nothing_is_handed_out_after_a_stand_still(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch, way: str, moment: str, stood_s: float
) -> None:
    fill(daemon, [None] * 5)
    async with subscribed(daemon) as subscription:
        await until(lambda: subscription._inbox)
        stood_still = stand_still_once(daemon, monkeypatch, subscription, moment, stood_s)
        handed: list[object] = []

        async def handle(record: DeliveredRecord) -> None:
            handed.append(record)

        async def take() -> None:
            if way == "one by one":
                handed.append(await anext(aiter(subscription)))
            elif way == "batches":
                handed.append(await anext(aiter(subscription.batches())))
            elif way == "fetch":
                handed.extend(await subscription.fetch(5))
            else:
                await subscription.run(handle)

        async def time_is_over(n: int) -> NoReturn:
            raise TimeoutError

        monkeypatch.setattr(subscription, "_wait_for", time_is_over)
        taking = asyncio.ensure_future(take())
        await until(lambda: stood_still and (handed or subscription._ended))
        taking.cancel()
        await asyncio.wait([taking])
    assert handed == []
    assert daemon.pings


async def test_what_waits_in_run_is_not_reported_as_handed_out(daemon: MemoryDaemon) -> None:
    fill(daemon, [b"a", b"a", b"b", b"a", b"c"])
    go_on = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        await go_on.wait()

    async with running(daemon, handle, concurrency=2):
        await until(lambda: len(reported(daemon)) == 2)
        assert reported(daemon) == {0: 1, 2: 1}
        assert daemon.streams[0].frontier == 1
        go_on.set()
        await until(lambda: daemon.acknowledged() == 5)
    assert reported(daemon) == dict.fromkeys(range(5), 1)
    assert not any(settle.in_progress for settle in daemon.settles)


async def test_a_revoke_does_not_wait_for_what_waits_in_run(daemon: MemoryDaemon) -> None:
    fill(daemon, [b"a"] * 3 + [b"b"] * 3)
    go_on = asyncio.Event()
    seen: list[tuple[int, int, bool]] = []

    async def handle(record: DeliveredRecord) -> None:
        seen.append((record.offset, record.attempt, record.redelivered))
        await go_on.wait()

    revoked: list[GrantNotice] = []
    async with running(daemon, handle, concurrency=2, on_revoke=revoked.append):
        await until(lambda: len(seen) == 2)
        daemon.revoke(1)
        await until(lambda: revoked)
        go_on.set()
        await until(lambda: daemon.revoke_finished == [1])
        assert reported(daemon) == {0: 1, 3: 1}
        assert daemon.acknowledged() == 2
        daemon.deliver(daemon.grant(daemon.subscribes[0].subscription, 0))
        await until(lambda: daemon.acknowledged() == 6)
    assert seen[:2] == [(0, 1, False), (3, 1, False)]
    # The client itself marks all that lies before something that it handed out.
    assert sorted(seen[2:]) == [(1, 1, True), (2, 1, True), (4, 1, False), (5, 1, False)]


async def test_a_revoke_ends_the_chains_of_its_stream(daemon: MemoryDaemon) -> None:
    daemon.hold_back = True
    fill(daemon, [b"a"] * 3)
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        raise ValueError

    async with running(daemon, handle) as subscription:
        daemon.deliver(1)
        await until(lambda: any(settle.naks for settle in daemon.settles))
        (runner,) = subscription._runs._runners
        assert runner._chains
        daemon.revoke(1)
        await until(lambda: daemon.revoke_finished == [1])
        assert runner._chains == {}
    assert handled == [0]


async def test_under_failures_each_key_stays_in_order_and_only_the_failed_come_again(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_session, "NAK_DELAY_MS", 5)
    chance = random.Random(5)
    records = 1_200
    for _ in range(records // 100):
        fill(daemon, [b"%d" % chance.randrange(40) for _ in range(100)])
    failing = set(chance.sample(range(records), records // 100))
    failed: set[int] = set()
    handled: dict[bytes | None, list[int]] = defaultdict(list)
    attempts: dict[int, int] = {}

    async def handle(record: DeliveredRecord) -> None:
        await asyncio.sleep(0)
        if record.offset in failing - failed:
            failed.add(record.offset)
            raise ValueError
        handled[record.key].append(record.offset)
        attempts[record.offset] = record.attempt

    async with running(daemon, handle, concurrency=8):
        for part in range(1, 5):
            await until(partial(acknowledged, daemon, part * records // 4))
    assert failed == failing
    assert sorted(offset for each in handled.values() for offset in each) == list(range(records))
    assert all(each == sorted(each) for each in handled.values())
    assert {offset for offset, attempt in attempts.items() if attempt > 1} == failing
    assert max(attempts.values()) == 2
    naks = [at for settle in daemon.settles for nak in settle.naks for at in (nak.start, nak.end)]
    assert sum(naks[1::2]) - sum(naks[::2]) == len(failing)


async def test_followers_go_on_when_the_user_acks_a_refused_record_after_all(
    daemon: MemoryDaemon,
) -> None:
    daemon.hold_back = True
    fill(daemon, [b"a"] * 3)
    handled: list[DeliveredRecord] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record)
        if len(handled) == 1:
            raise ValueError

    async with running(daemon, handle):
        daemon.deliver(1)
        await until(lambda: any(settle.naks for settle in daemon.settles))
        assert [record.offset for record in handled] == [0]
        await handled[0].ack()
        await until(lambda: daemon.acknowledged() == 3)
    assert [record.offset for record in handled] == [0, 1, 2]


async def test_drain_gives_back_what_waits_behind_a_refused_record(daemon: MemoryDaemon) -> None:
    daemon.hold_back = True
    fill(daemon, [b"a"] * 3)
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        raise ValueError

    async with running(daemon, handle):
        daemon.deliver(1)
        await until(lambda: any(settle.naks for settle in daemon.settles))
    assert handled == [0]
    assert reported(daemon) == {0: 1}


async def test_drain_begins_no_handler_for_what_waits_in_the_client(daemon: MemoryDaemon) -> None:
    fill(daemon, [None] * 20)
    begun: list[int] = []
    ends = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        begun.append(record.offset)
        await ends.wait()

    async with subscribed(daemon) as subscription:
        run = asyncio.ensure_future(subscription.run(handle, concurrency=2))
        await until(lambda: len(begun) == 2)
        draining = asyncio.ensure_future(subscription.drain())
        ends.set()
        await asyncio.gather(run, draining)
    assert begun == [0, 1]
    assert daemon.acknowledged() == 2


async def cancelled_in_handlers(subscription: Subscription, handlers: int) -> list[int]:
    """What the handlers of a run had when it was cancelled."""
    stuck: list[int] = []

    async def stick(record: DeliveredRecord) -> None:
        stuck.append(record.offset)
        await asyncio.get_running_loop().create_future()

    run = asyncio.ensure_future(subscription.run(stick, concurrency=handlers))
    await until(lambda: len(stuck) == handlers)
    run.cancel()
    await asyncio.wait([run])
    return stuck


async def test_a_cancelled_run_leaves_the_rest_to_the_next(daemon: MemoryDaemon) -> None:
    fill(daemon, [b"a", b"a", *[None] * 200])
    handled: dict[int, tuple[int, bool]] = {}

    async def handle(record: DeliveredRecord) -> None:
        handled[record.offset] = record.attempt, record.redelivered

    async with subscribed(daemon) as subscription:
        assert await cancelled_in_handlers(subscription, 2) == [0, 2]
        second = asyncio.ensure_future(subscription.run(handle))
        await until(lambda: daemon.acknowledged() == 202)
        await subscription.drain()
        await second
    again = {0, 2}
    assert handled == {at: (2, True) if at in again else (1, False) for at in range(202)}


async def test_the_key_of_a_handler_that_was_cancelled_with_its_run_goes_on_in_order(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, [b"a", b"b", b"a", b"a"])
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)

    async with subscribed(daemon) as subscription:
        assert await cancelled_in_handlers(subscription, 1) == [0]
        second = asyncio.ensure_future(subscription.run(handle))
        await until(lambda: daemon.acknowledged() == 4)
        await subscription.drain()
        await second
    assert [at for at in handled if at != 1] == [0, 2, 3]


async def test_what_was_acknowledged_by_or_after_a_cancelled_handler_does_not_come_again(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, [b"a", b"b", b"c", b"d"])
    held: list[DeliveredRecord] = []
    handled: list[int] = []

    async def stick(record: DeliveredRecord) -> None:
        if record.offset == 1:
            await record.ack()
        held.append(record)
        await asyncio.get_running_loop().create_future()

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)

    async with subscribed(daemon) as subscription:
        first = asyncio.ensure_future(subscription.run(stick, concurrency=3))
        await until(lambda: len(held) == 3)
        first.cancel()
        await asyncio.wait([first])
        await held[0].ack()
        second = asyncio.ensure_future(subscription.run(handle))
        await until(lambda: daemon.acknowledged() == 4)
        await subscription.drain()
        await second
    assert sorted(handled) == [2, 3]


async def test_a_subscription_that_is_left_after_a_cancelled_run_refuses_nothing(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, [b"a"] * 2)
    async with subscribed(daemon) as subscription:
        assert await cancelled_in_handlers(subscription, 1) == [0]
    assert not any(settle.naks for settle in daemon.settles)


@pytest.mark.parametrize("way", ["one by one", "batches", "fetch"])
async def test_what_a_cancelled_run_left_comes_again_to_who_takes_it_in_another_way(
    daemon: MemoryDaemon, way: str
) -> None:
    fill(daemon, [None] * 20)
    async with subscribed(daemon) as subscription:
        assert await cancelled_in_handlers(subscription, 1) == [0]
        seen: set[int] = set()
        async with asyncio.timeout(60):
            while len(seen) < 20:
                if way == "one by one":
                    record = await anext(aiter(subscription))
                    seen.add(record.offset)
                elif way == "batches":
                    seen.update((await anext(aiter(subscription.batches()))).offsets)
                else:
                    seen.update(record.offset for record in await subscription.fetch(1))
    assert seen == set(range(20))


async def test_what_waited_in_run_is_not_marked_after_a_lost_connection(
    daemon: MemoryDaemon,
) -> None:
    daemon.marks_redelivered = False
    fill(daemon, [b"a"] * 3)
    seen: list[tuple[int, bool]] = []
    go_on = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        seen.append((record.offset, record.redelivered))
        await go_on.wait()

    async with running(daemon, handle):
        await until(lambda: seen)
        await daemon.cut()
        await daemon.start()
        await until(lambda: len(daemon.opens) == 2)
        go_on.set()
        await until(lambda: daemon.acknowledged() == 3)
    assert seen == [(0, False), (0, True), (1, False), (2, False)]
