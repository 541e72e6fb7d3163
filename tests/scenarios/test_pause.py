"""A live group is paused and resumed: real daemon, real clients, both protocols."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

import dss_client
from dss_client import Client, DeliveredRecord, Operation, Subscription
from dss_client.changes import PauseGroup, ResumeGroup
from dss_core.errors import OutcomeUnknown, Unreachable
from dss_core.limits import LEASE_MS
from support.member_process import member
from support.proof_share import share
from support.revived_daemon import RevivedDaemon, revived

PROGRAM = Path(__file__).parent / "programs" / "member.py"
FILTER = "$share/g/t/#"
PATIENCE_S = 20.0
QUIET_S = 0.3
"""How long nothing must come; what comes at all comes within a few milliseconds."""

PROTOCOLS = pytest.mark.parametrize("protocol", share(["lease"], ["borrow", "lease"]))


@pytest.fixture
async def daemon() -> AsyncIterator[RevivedDaemon]:
    async with revived() as daemon:
        yield daemon


@pytest.fixture
async def operator(daemon: RevivedDaemon) -> AsyncIterator[Client]:
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        yield client


async def made(operator: Client, protocol: str, *, records: int, ack_wait: float = 30) -> None:
    """A topic of two streams with so many records, and a group that begins with the first."""
    await operator.topics.create("t", partitions=2)
    await operator.groups.create(FILTER, start="earliest", protocol=protocol, ack_wait=ack_wait)
    await publish(operator, records)


async def publish(operator: Client, records: int) -> None:
    async with operator.producer("t") as producer:
        for at in range(records):
            producer.send_nowait(b"%d" % at, key=b"%d" % at)


async def done(operator: Client, change: PauseGroup | ResumeGroup) -> Operation:
    """Apply the change and wait until it is done."""
    async with asyncio.timeout(PATIENCE_S):
        applied = await operator.operations.apply(change, reason="a test")
        ended = await operator.operations.ended(applied.number)
    assert ended.state == "done"
    return ended


async def until(holds: Callable[[], bool]) -> None:
    """Let others run until it holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - no event tells what another task was given
            await asyncio.sleep(0.005)


async def reached(operator: Client) -> None:
    """Wait until the transport has found the daemon again."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(Unreachable, OutcomeUnknown):
                await operator.daemon.status()
                return
            await asyncio.sleep(0.02)


async def both_lent(operator: Client) -> None:
    """Wait until members hold both streams."""
    async with asyncio.timeout(PATIENCE_S):
        # No event tells how a leader stands.
        while {each.state for each in await operator.grants.list("g")} != {"granted"}:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


class Consumer:
    """Iterates in the background, acks at once, and keeps what it was given."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.taken: list[DeliveredRecord] = []
        self.task = asyncio.create_task(self._consume())

    async def _consume(self) -> None:
        async for record in self.subscription:
            self.taken.append(record)
            await record.ack()

    async def has(self, records: int) -> None:
        await until(lambda: len(self.taken) >= records)

    async def gets_nothing(self) -> None:
        before = len(self.taken)
        await asyncio.sleep(QUIET_S)
        assert len(self.taken) == before


@PROTOCOLS
async def test_a_consumer_that_iterates_gets_nothing_from_the_pause_to_the_resume(
    daemon: RevivedDaemon, operator: Client, protocol: str
) -> None:
    await made(operator, protocol, records=100)
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(FILTER) as subscription,
    ):
        consumer = Consumer(subscription)
        await consumer.has(100)
        await done(operator, PauseGroup("g"))
        assert subscription.state == "paused"
        await publish(operator, 50)
        await consumer.gets_nothing()
        described = await operator.groups.describe("g")
        assert (described.group.state, described.group.lag) == ("paused", 50)
        assert {grant.state for grant in described.grants} == {"granted"}
        await done(operator, ResumeGroup("g"))
        await consumer.has(150)
        assert (await operator.groups.describe("g")).group.state == "active"
        consumer.task.cancel()
    assert not any(record.redelivered for record in consumer.taken)


async def test_what_waits_in_the_client_is_not_handed_out_and_what_is_out_may_be_acked(
    daemon: RevivedDaemon, operator: Client
) -> None:
    await made(operator, "borrow", records=100)
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(FILTER) as subscription,
    ):
        out = await subscription.fetch(10)
        await done(operator, PauseGroup("g"))
        assert await subscription.fetch(1, timeout=QUIET_S) == []
        for record in out:
            await record.ack(sync=True)
        await done(operator, ResumeGroup("g"))
        rest = await subscription.fetch(90, timeout=PATIENCE_S)
        assert len(rest) == 90
        assert not any(record.redelivered for record in rest)


async def test_a_run_ends_its_handlers_in_a_pause_and_begins_none(
    daemon: RevivedDaemon, operator: Client
) -> None:
    await made(operator, "borrow", records=40)
    begun: list[bytes] = []
    ended: list[bytes] = []
    may_end = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        begun.append(record.payload)
        await may_end.wait()
        ended.append(record.payload)

    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(FILTER) as subscription,
    ):
        run = asyncio.create_task(subscription.run(handle, concurrency=4))
        await until(lambda: len(begun) == 4)
        await done(operator, PauseGroup("g"))
        may_end.set()
        await asyncio.sleep(QUIET_S)
        assert (len(begun), len(ended)) == (4, 4)
        assert sum(grant.lag for grant in await operator.grants.list("g")) == 36
        await done(operator, ResumeGroup("g"))
        await until(lambda: len(ended) == 40)
        run.cancel()
    assert len(set(begun)) == len(begun) == 40


@PROTOCOLS
async def test_a_pause_outlives_the_daemon_and_its_clients_are_paused_from_their_return_on(
    daemon: RevivedDaemon, operator: Client, protocol: str
) -> None:
    await made(operator, protocol, records=100)
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(FILTER) as subscription,
    ):
        consumer = Consumer(subscription)
        await consumer.has(100)
        await done(operator, PauseGroup("g"))
        await daemon.revive()
        await reached(operator)
        await publish(operator, 50)
        await both_lent(operator)
        await consumer.gets_nothing()
        assert (await operator.groups.describe("g")).group.state == "paused"
        await done(operator, ResumeGroup("g"))
        await until(lambda: len({(each.stream, each.offset) for each in consumer.taken}) == 150)
        consumer.task.cancel()


@PROTOCOLS
async def test_who_joins_a_paused_group_is_lent_streams_and_gets_nothing(
    daemon: RevivedDaemon, operator: Client, protocol: str
) -> None:
    await made(operator, protocol, records=100)
    await done(operator, PauseGroup("g"))
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(FILTER) as subscription,
    ):
        consumer = Consumer(subscription)
        await both_lent(operator)
        await consumer.gets_nothing()
        assert (consumer.taken, subscription.state) == ([], "paused")
        await done(operator, ResumeGroup("g"))
        await consumer.has(100)
        consumer.task.cancel()


async def test_what_expires_in_a_pause_comes_after_it_and_failed_at_nothing(
    daemon: RevivedDaemon, operator: Client
) -> None:
    await made(operator, "borrow", records=10, ack_wait=0.3)
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(FILTER) as subscription,
    ):
        out = await subscription.fetch(10)
        await done(operator, PauseGroup("g"))
        assert await subscription.fetch(1, timeout=1.0) == []
        await done(operator, ResumeGroup("g"))
        again = await subscription.fetch(10, timeout=PATIENCE_S)
        assert {each.payload for each in again} == {each.payload for each in out}
        assert all(record.redelivered and record.attempt == 2 for record in again)


async def test_a_pause_until_a_time_ends_by_itself(daemon: RevivedDaemon, operator: Client) -> None:
    await made(operator, "borrow", records=10)
    planned = await operator.operations.plan(PauseGroup("g"))
    await done(operator, PauseGroup("g", planned.planned_at_ms + 600))
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(FILTER) as subscription,
    ):
        assert len(await subscription.fetch(10, timeout=PATIENCE_S)) == 10
        resumed = (await operator.operations.list())[0]
        assert (resumed.kind, resumed.principal) == ("groups.resume", "dssd")


@pytest.mark.slow("a frozen member is given up at the end of its lease")
async def test_a_frozen_member_holds_a_pause_until_it_is_given_up_at_the_most(
    daemon: RevivedDaemon, operator: Client
) -> None:
    await made(operator, "borrow", records=100)
    async with member(PROGRAM, daemon.endpoint, "frozen", FILTER) as frozen:
        await frozen.until(lambda: len(frozen.records) == 100)
        frozen.freeze()
        began = monotonic()
        await done(operator, PauseGroup("g"))
        assert monotonic() - began < LEASE_MS / 1_000 + 1
        taken = len(frozen.records)
        await publish(operator, 50)
        frozen.thaw()
        await frozen.until(lambda: len(frozen.granted) > 2)
        await asyncio.sleep(QUIET_S)
        assert len(frozen.records) == taken
        await done(operator, ResumeGroup("g"))
        await frozen.until(lambda: len({each.place for each in frozen.records}) == 150)
