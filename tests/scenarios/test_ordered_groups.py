"""An ordered group on a real daemon: what fails holds up its own key, and no order is broken."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress

import pytest

import dss_client
import dss_client.sync
from dss_client import Client, DeliveredRecord, Reject, Subscription
from dss_client.changes import GrowTopic, RedriveDeadLetters
from support.revived_daemon import RevivedDaemon, revived

FILTER = "$share/g/orders/#"
KEYS = [b"k%d" % each for each in range(12)]
RECORDS = 240
PATIENCE_S = 60.0


@asynccontextmanager
async def ordered(
    payloads: Iterable[tuple[bytes, bytes]], **how: object
) -> AsyncIterator[tuple[RevivedDaemon, Client]]:
    """A daemon, a client, and an ordered group with records: their keys and payloads."""
    async with (
        asyncio.timeout(PATIENCE_S),
        revived() as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await client.topics.create("orders", partitions=2)
        settings = {"ordered": True, "max_deliver": 3, "backoff": [0.01, 0.05], **how}
        await client.groups.create(FILTER, start="earliest", **settings)  # type: ignore[arg-type] # of create
        pairs = [*payloads]
        async with client.producer("orders") as producer:
            await producer.send_columns(
                payloads=[payload for _, payload in pairs], keys=[key for key, _ in pairs]
            )
        yield daemon, client


async def settled(client: Client, dead: int = 0) -> None:
    """Wait until all is done, but for so many dead letters."""
    while True:
        group = (await client.groups.describe("g")).group
        if (group.lag, group.retrying, group.dead) == (0, 0, dead):
            return
        await asyncio.sleep(0.02)


def numbered() -> list[tuple[bytes, bytes]]:
    return [(KEYS[at * 7 % len(KEYS)], b"%d" % at) for at in range(RECORDS)]


class Program:
    """Fails once for each seventh; it notes what it is done with, and what came at a wrong time."""

    def __init__(self) -> None:
        self.out: dict[bytes | None, bytes] = {}
        self.done: dict[bytes | None, list[int]] = defaultdict(list)
        self.wrong: list[str] = []

    def begin(self, record: DeliveredRecord | dss_client.sync.DeliveredRecord) -> bool:
        """Whether it fails."""
        if record.key in self.out:
            self.wrong.append(f"{record.payload!r} came while {self.out[record.key]!r} was out")
        self.out[record.key] = record.payload
        return int(record.payload) % 7 == 0 and record.attempt == 1

    def end(
        self, record: DeliveredRecord | dss_client.sync.DeliveredRecord, *, failed: bool
    ) -> None:
        self.out.pop(record.key, None)
        if not failed:
            self.done[record.key].append(int(record.payload))

    def check(self) -> None:
        """Each record was done once, those of a key in their order, one at a time."""
        assert self.wrong == []
        for key in KEYS:
            expected = [at for at in range(RECORDS) if KEYS[at * 7 % len(KEYS)] == key]
            assert self.done[key] == expected


async def settle(program: Program, record: DeliveredRecord, *, later: bool) -> None:
    failed = program.begin(record)
    if later:
        await asyncio.sleep(0.001)
    program.end(record, failed=failed)
    await (record.nak(error="not now") if failed else record.ack())


async def by_iteration(program: Program, subscription: Subscription) -> None:
    async with asyncio.TaskGroup() as tasks:
        async for record in subscription:
            if int(record.payload) % 2:
                tasks.create_task(settle(program, record, later=True))
            else:
                await settle(program, record, later=False)


async def by_fetch(program: Program, subscription: Subscription) -> None:
    while True:
        for record in await subscription.fetch(5, timeout=0.05):
            await settle(program, record, later=False)


async def by_run(program: Program, subscription: Subscription) -> None:
    async def handle(record: DeliveredRecord) -> None:
        failed = program.begin(record)
        await asyncio.sleep(0.001)
        program.end(record, failed=failed)
        if failed:
            raise ValueError("not now")

    await subscription.run(handle, concurrency=8)


async def by_batches(program: Program, subscription: Subscription) -> None:
    async for batch in subscription.batches():
        refused: set[bytes | None] = set()
        for record in batch:
            failed = record.key in refused or program.begin(record)
            program.end(record, failed=failed)
            if failed and record.key not in refused:
                refused.add(record.key)
                await record.nak(error="not now")
            else:
                await record.ack()  # it does not count behind a refused one of its key


@pytest.mark.parametrize("way", [by_iteration, by_fetch, by_run, by_batches])
async def test_each_key_is_done_in_order_though_records_of_it_fail(
    way: Callable[[Program, Subscription], Awaitable[None]],
) -> None:
    program = Program()
    async with ordered(numbered()) as (_, client), client.subscribe(FILTER) as subscription:
        taking = asyncio.ensure_future(way(program, subscription))
        await settled(client)
        taking.cancel()
        with suppress(asyncio.CancelledError):
            await taking
    program.check()


async def test_without_asyncio_each_key_is_done_in_order_too() -> None:
    program = Program()

    def work(endpoint: str) -> None:
        with (
            dss_client.sync.connect(endpoint=endpoint) as client,
            client.subscribe(FILTER) as subscription,
        ):
            for record in subscription:
                failed = program.begin(record)
                program.end(record, failed=failed)
                if failed:
                    record.nak(error="not now")
                else:
                    record.ack()
                if sum(map(len, program.done.values())) == RECORDS:
                    return

    async with ordered(numbered()) as (daemon, client):
        await asyncio.to_thread(work, daemon.endpoint)
        await settled(client)
    program.check()


@pytest.mark.parametrize("rejects", [False, True], ids=["fails", "rejected"])
async def test_a_poison_record_takes_the_rest_of_its_key_along_and_all_return_in_order(
    rejects: bool,
) -> None:
    rows = [(b"bad" if at % 4 == 0 else b"good%d" % (at % 4), b"%d" % at) for at in range(80)]
    done: list[tuple[bytes | None, int]] = []
    mended = False

    async def handle(record: DeliveredRecord) -> None:
        if record.payload == b"8" and not mended:
            raise (Reject if rejects else ValueError)("it is poison")
        done.append((record.key, int(record.payload)))

    async with (
        ordered(rows, on_dead_letter="block") as (_, client),
        client.subscribe(FILTER) as subscription,
    ):
        running = asyncio.ensure_future(subscription.run(handle, concurrency=16))
        await settled(client, dead=18)
        assert [at for key, at in done if key == b"bad"] == [0, 4]
        letters = {
            int(each.payload): each async for each in client.queues.dead_letters("g", whole=True)
        }
        assert sorted(letters) == [*range(8, 80, 4)]
        assert letters[8].error.endswith("it is poison")
        assert {letters[at].attempt for at in letters if at != 8} <= {0, 1}
        mended = True
        await client.operations.apply(RedriveDeadLetters("g"), reason="mended")
        await settled(client)
        running.cancel()
        sums = await client.groups.verify("g", scan=True)
        assert not any(each.problem for each in sums)
    assert [at for key, at in done if key == b"bad"] == [*range(0, 80, 4)]
    for rest in (1, 2, 3):
        assert [at for key, at in done if key == b"good%d" % rest] == [*range(rest, 80, 4)]


async def test_a_redrive_of_a_part_of_a_key_brings_its_first_records_and_no_others() -> None:
    rows = [(b"bad", b"%d" % at) for at in range(5)]
    done: list[int] = []
    is_mended = False

    async def handle(record: DeliveredRecord) -> None:
        if not is_mended:
            raise Reject("it is poison")
        done.append(int(record.payload))

    async def redriven(offset: int, dead: int) -> None:
        """This record alone was redriven, and so many are dead then."""
        change = RedriveDeadLetters("g", stream=stream, offset=offset, unordered=True)
        operation = await client.operations.apply(change, reason="to try it")
        await client.operations.ended(operation.number)
        await settled(client, dead=dead)

    async with (
        ordered(rows, on_dead_letter="block") as (_, client),
        client.subscribe(FILTER) as subscription,
    ):
        running = asyncio.ensure_future(subscription.run(handle, concurrency=16))
        await settled(client, dead=5)
        letters = [each async for each in client.queues.dead_letters("g", whole=True)]
        stream, offsets = letters[0].stream, sorted(each.offset for each in letters)
        is_mended = True
        await redriven(offsets[2], dead=5)
        assert done == []
        await redriven(offsets[0], dead=4)
        assert done == [0]
        async with client.producer("orders") as producer:
            await producer.send(b"5", key=b"bad")
        await settled(client, dead=5)
        await client.operations.apply(RedriveDeadLetters("g", key=b"bad"), reason="mended")
        await settled(client)
        running.cancel()
        sums = await client.groups.verify("g", scan=True)
        assert not any(each.problem for each in sums)
    assert done == [*range(6)]


async def test_a_dead_key_goes_along_as_its_topic_grows_and_returns_in_order() -> None:
    rows = [(b"bad" if at % 4 == 0 else b"good%d" % (at % 4), b"%d" % at) for at in range(80)]
    done: list[tuple[bytes | None, int]] = []
    mended = False

    async def handle(record: DeliveredRecord) -> None:
        if record.payload == b"8" and not mended:
            raise Reject("it is poison")
        done.append((record.key, int(record.payload)))

    async with (
        ordered(rows[:40], on_dead_letter="block") as (_, client),
        client.subscribe(FILTER) as subscription,
    ):
        running = asyncio.ensure_future(subscription.run(handle, concurrency=16))
        await settled(client, dead=8)
        await grown(client, 6, rows[40:])
        await settled(client, dead=18)
        letters = [each async for each in client.queues.dead_letters("g", whole=True)]
        assert [int(each.payload) for each in letters] == [*range(8, 80, 4)]
        poison = letters[0]
        assert poison.stream.startswith("orders/0/")
        of_old = client.queues.dead_letters("g", stream=poison.stream)
        assert len([each async for each in of_old]) == 8
        why = await client.groups.why("g", stream=poison.stream, offset=poison.offset)
        assert [each.reason.code for each in why.records] == ["dead"]
        of_key = await client.groups.why("g", key=b"bad")
        behind = [each for each in of_key.records if each.reason.code == "behind-key"]
        assert {str(each.stream).split("/")[1] for each in behind} == {"0", "1"}
        mended = True
        await client.operations.apply(
            RedriveDeadLetters("g", stream=poison.stream), reason="mended"
        )
        await settled(client)
        running.cancel()
        sums = await client.groups.verify("g", scan=True)
        assert not any(each.problem for each in sums)
    assert [at for key, at in done if key == b"bad"] == [*range(0, 80, 4)]


async def test_what_is_dead_in_a_closed_stream_is_left_out_of_a_redrive_until_that_is_open() -> (
    None
):
    release = asyncio.Event()
    mended = False

    async def handle(record: DeliveredRecord) -> None:
        if record.payload == b"bad" and not mended:
            raise Reject("it is poison")
        if record.payload == b"slow":
            await release.wait()

    async with (
        ordered([], on_dead_letter="block") as (_, client),
        client.producer("orders") as producer,
        client.subscribe(FILTER) as subscription,
    ):
        first = await producer.send(b"bad", key=KEYS[0])
        for key in KEYS[1:]:
            other = await producer.send(b"fine", key=key)
            if other.stream != first.stream:
                break
        await producer.send(b"slow", key=key)
        running = asyncio.ensure_future(subscription.run(handle, concurrency=16))
        await grown(client, 1, [])
        finished = (str(first.stream), "finished")
        while finished not in [(e.stream, e.state) for e in await client.grants.list("g")]:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.02)
        mended = True
        plan = await client.operations.plan(RedriveDeadLetters("g"))
        assert (plan.nothing_to_do, plan.streams) == (True, ())
        assert "1 dead letter is left out" in plan.effects[-1]
        assert f"closed: waits for {other.stream}" in plan.effects[-1]
        release.set()
        await settled(client, dead=1)
        await client.operations.apply(RedriveDeadLetters("g"), reason="mended")
        await settled(client)
        running.cancel()


async def test_where_dead_letters_are_skipped_the_rest_of_the_key_goes_on_in_order() -> None:
    done: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        if int(record.payload) % 10 == 3:
            raise Reject("never")
        done.append(int(record.payload))

    rows = [(b"one", b"%d" % at) for at in range(40)]
    async with (
        ordered(rows, on_dead_letter="skip") as (_, client),
        client.subscribe(FILTER) as subscription,
    ):
        running = asyncio.ensure_future(subscription.run(handle, concurrency=16))
        await settled(client, dead=4)
        running.cancel()
    assert done == [at for at in range(40) if at % 10 != 3]


async def test_what_outlasts_its_ack_wait_comes_again_before_what_follows_it() -> None:
    rows = [(b"late" if at % 2 else b"other", b"%d" % at) for at in range(12)]
    begun: list[int] = []
    at_work: set[bytes | None] = set()
    async with (
        ordered(rows, ack_wait=1) as (_, client),
        client.subscribe(FILTER) as subscription,
    ):

        async def handle(record: DeliveredRecord) -> None:
            assert record.key not in at_work
            at_work.add(record.key)
            begun.append(int(record.payload))
            if begun.count(1) == 1 and record.payload == b"1":
                await retrying(client)
            at_work.discard(record.key)

        running = asyncio.ensure_future(subscription.run(handle, concurrency=8))
        await settled(client)
        running.cancel()
    assert [at for at in begun if at % 2] == [1, 1, 3, 5, 7, 9, 11]
    assert [at for at in begun if not at % 2] == [0, 2, 4, 6, 8, 10]


async def retrying(client: Client) -> None:
    """Wait until something is in the retry queue."""
    while not (await client.groups.describe("g")).group.retrying:  # noqa: ASYNC110 - no event tells it
        await asyncio.sleep(0.02)


async def grown(client: Client, partitions: int, rows: list[tuple[bytes, bytes]]) -> None:
    """The topic grows, and these are produced behind that."""
    begun = await client.operations.apply(GrowTopic("orders", partitions), reason="more")
    assert (await client.operations.ended(begun.number)).state == "done"
    async with client.producer("orders") as producer:
        await producer.send_columns(
            payloads=[payload for _, payload in rows], keys=[key for key, _ in rows]
        )
