"""The client and the real daemon, as processes of their own."""

import asyncio
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

import dss_client
from dss_client import DeliveredRecord, Subscription
from dss_client.changes import Change, CloseSession, Evict
from dss_core.errors import (
    BorrowerEvicted,
    GrantNotHeld,
    GroupNotFound,
    IllegalArgument,
    OutcomeUnknown,
    SessionClosed,
    SessionTakenOver,
    TopicExists,
    Unreachable,
)
from dss_core.routing import Router, key_hash, partition_of
from support.daemon_process import DaemonProcess, running
from support.proof_share import share

KEYS_OF_FIRST = [
    key
    for key in (b"%d" % number for number in range(50))
    if partition_of(Router.BLOCK, key_hash(key), 3, 1) == 0
]


def serve(home: Path) -> tuple[str, ...]:
    """The arguments of a daemon that lives in the directory."""
    return ("--data-dir", str(home / "data"), "--listen", f"unix:{home / 'd.sock'}")


def endpoint(home: Path) -> str:
    """Where it listens."""
    return f"unix:{home / 'd.sock'}"


async def test_topics_and_groups_are_administered(home: Path) -> None:
    async with running(*serve(home)), dss_client.connect(endpoint=endpoint(home)) as client:
        topic = await client.topics.create("t", partitions=4, retention_ms=1_000_000)
        assert (topic.partitions, topic.patterns, topic.router) == (4, ("t/#",), "block")
        with pytest.raises(TopicExists):
            await client.topics.create("t", partitions=4)
        assert (await client.topics.create("t", partitions=4, if_not_exists=True)).name == "t"
        group = await client.groups.create("$share/g/t/#", start="earliest", ack_wait=5)
        assert (group.name, group.state, group.ack_wait_ms) == ("g", "idle", 5_000)
        described = await client.groups.describe("g")
        assert described.group.group_id == group.group_id
        assert described.group.protocol == "borrow"
        leased = await client.groups.create("$share/leased/t/#", protocol="lease")
        assert leased.protocol == "lease"
        with pytest.raises(IllegalArgument):
            await client.groups.create("$share/other/t/#", protocol="other")
        assert await client.groups.remove("leased")
        assert len(await client.grants.list("g")) == 4
        assert await client.groups.remove("g")
        with pytest.raises(GroupNotFound):
            await client.groups.describe("g")
        assert (await client.daemon.status()).topics == 1
        assert await client.topics.remove("t")
        assert await client.topics.list() == ()


async def test_a_plain_read_gives_every_record_and_ends(home: Path) -> None:
    async with running(*serve(home)), dss_client.connect(endpoint=endpoint(home)) as client:
        await client.topics.create("t", partitions=3)
        async with client.producer("t") as producer:
            for number in range(100):
                producer.send_nowait(b"%d" % number, subject=f"t/{number % 2}")
        assert {r.payload for r in [r async for r in client.read("t/#")]} == {
            b"%d" % number for number in range(100)
        }
        even = [record async for record in client.read("t/0", records_max=20)]
        assert len(even) == 20
        assert {record.subject for record in even} == {"t/0"}


@pytest.mark.parametrize("partitions", [2, 5])
async def test_producer_and_member_go_on_with_a_topic_that_was_removed_and_made_anew(
    home: Path, partitions: int
) -> None:
    """With as many partitions as before, and with others."""
    async with running(*serve(home)), dss_client.connect(endpoint=endpoint(home)) as client:
        await client.topics.create("t", partitions=2)
        async with (
            client.producer("t") as producer,
            client.subscribe("$share/g/t/#", start="earliest") as subscription,
        ):
            keys = [b"%d" % number for number in range(60)]
            await producer.send_columns(keys, keys)
            for record in await fetched(subscription, len(keys)):
                await record.ack()
            await client.topics.remove("t", force=True)
            await client.topics.create("t", partitions=partitions)
            await producer.send_columns(keys, keys)
            for key in keys:
                assert await producer.send(key, key=key)
            taken = await fetched(subscription, 2 * len(keys))
            assert Counter(record.payload for record in taken) == dict.fromkeys(keys, 2)
            assert not any(record.redelivered for record in taken)


async def fetched(subscription: Subscription, count: int) -> list[DeliveredRecord]:
    """So many records, however they come."""
    taken: list[DeliveredRecord] = []
    while len(taken) < count:
        taken += await subscription.fetch(count - len(taken))
    return taken


@pytest.mark.parametrize("stream", share([None], [None, "t/0/0"]))
async def test_a_read_that_follows_outlives_kills_of_the_daemon(
    home: Path, stream: str | None
) -> None:
    daemon = await DaemonProcess.start(*serve(home))
    seen: list[bytes] = []
    rounds, total = 3, 300
    try:
        async with dss_client.connect(endpoint=endpoint(home)) as client:
            await client.topics.create("t", partitions=3)
            key = KEYS_OF_FIRST[0] if stream is not None else None

            async def follow() -> None:
                reading = client.read("t/#", follow=True, stream=stream, records_max=total)
                seen.extend([record.payload async for record in reading])

            following = asyncio.create_task(follow())
            async with client.producer("t") as producer:
                for number in range(total):
                    await producer.enqueue(b"%d" % number, key=key)
                    if number % (total // rounds) == total // rounds // 2:
                        await producer.flush()
                        await daemon.kill()
                        daemon = await DaemonProcess.start(*serve(home))
            async with asyncio.timeout(60):
                await following
    finally:
        await daemon.kill()
    assert sorted(seen, key=int) == [b"%d" % number for number in range(total)]


async def test_a_followed_topic_made_while_the_daemon_was_away_is_read_whole(home: Path) -> None:
    daemon = await DaemonProcess.start(*serve(home))
    try:
        async with dss_client.connect(endpoint=endpoint(home)) as client:
            await client.topics.create("a", partitions=1)
            records = aiter(client.read("#", follow=True, start="now"))
            waiting = asyncio.create_task(anext(records))
            async with client.producer("a") as producer:
                while not waiting.done():
                    await producer.send(b"a")
            await daemon.kill()
            daemon = await DaemonProcess.start(*serve(home))
            await client.topics.create("b", partitions=1)
            async with client.producer("b") as producer:
                await producer.send(b"b")
            async with asyncio.timeout(60):
                while (record := await anext(records)).payload != b"b":
                    assert record.payload == b"a"
            assert (record.stream, record.offset) == ("b/0/0", 0)
    finally:
        await daemon.kill()


async def test_a_read_that_does_not_follow_ends_with_the_connection(home: Path) -> None:
    daemon = await DaemonProcess.start(*serve(home))
    async with dss_client.connect(endpoint=endpoint(home)) as client:
        await client.topics.create("t", partitions=1)
        async with client.producer("t") as producer:
            for _ in range(20):  # more than what is on its way at once
                await producer.enqueue(bytes(1 << 20))
        records = aiter(client.read("t/#"))
        await anext(records)
        await daemon.kill()
        with pytest.raises((Unreachable, OutcomeUnknown)):
            async for _ in records:
                pass


async def test_five_kills_lose_nothing_and_mark_every_duplicate(home: Path) -> None:
    daemon = await DaemonProcess.start(*serve(home))
    seen: Counter[tuple[str, int]] = Counter()
    payloads: Counter[bytes] = Counter()
    unmarked: list[DeliveredRecord] = []
    total, rounds = 3_000, 5
    try:
        async with dss_client.connect(endpoint=endpoint(home)) as client:
            await client.topics.create("t", partitions=4)
            async with client.subscribe("$share/g/t/#", start="earliest") as subscription:

                async def consume() -> None:
                    async for record in subscription:
                        place = (record.stream, record.offset)
                        if seen[place] and not record.redelivered:
                            unmarked.append(record)
                        payloads[record.payload] += not seen[place]
                        seen[place] += 1
                        await record.ack()
                        if len(payloads) == total:
                            return

                consuming = asyncio.create_task(consume())
                async with client.producer("t") as producer:
                    for number in range(total):
                        await producer.enqueue(b"%d" % number, key=b"%d" % (number % 50))
                        if number % (total // rounds) == total // rounds // 2:
                            await asyncio.sleep(0)
                            await daemon.kill()
                            daemon = await DaemonProcess.start(*serve(home))
                    await producer.flush()
                async with asyncio.timeout(60):
                    await consuming
    finally:
        await daemon.kill()
    assert set(payloads.values()) == {1}
    assert unmarked == []


async def test_a_run_keeps_each_key_in_order_while_handlers_fail(home: Path) -> None:
    total = 600
    handled: defaultdict[tuple[str, bytes | None], list[int]] = defaultdict(list)
    failed: set[tuple[str, int]] = set()
    everything = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        await asyncio.sleep(0)
        if record.offset % 100 == 7 and (record.stream, record.offset) not in failed:
            failed.add((record.stream, record.offset))
            raise ValueError
        handled[record.stream, record.key].append(record.offset)
        if sum(map(len, handled.values())) == total:
            everything.set()

    async with running(*serve(home)), dss_client.connect(endpoint=endpoint(home)) as client:
        await client.topics.create("t", partitions=2)
        async with client.producer("t") as producer:
            for number in range(total):
                await producer.enqueue(b"x", key=b"%d" % (number % 20))
            await producer.flush()
        async with client.subscribe("$share/g/t/#", start="earliest") as subscription:
            run = asyncio.create_task(subscription.run(handle))
            async with asyncio.timeout(60):
                await everything.wait()
            await subscription.drain()
            await run
        assert (await client.groups.describe("g")).group.lag == 0
    assert failed
    assert all(offsets == sorted(set(offsets)) for offsets in handled.values())


async def test_the_newest_connection_of_a_client_id_wins(home: Path) -> None:
    async with running(*serve(home)), dss_client.connect("me", endpoint=endpoint(home)) as old:
        await old.topics.create("t", partitions=1)
        async with old.subscribe("$share/g/t/#") as subscription:
            waiting = asyncio.create_task(anext(aiter(subscription)))
            async with (
                dss_client.connect("me", endpoint=endpoint(home)) as new,
                new.subscribe("$share/g/t/#"),
            ):
                with pytest.raises(SessionTakenOver):
                    await waiting


async def test_a_private_subscription_of_a_kept_session_goes_on_where_it_was(home: Path) -> None:
    async with running(*serve(home)):
        first = dss_client.connect("me", session_expiry=60, endpoint=endpoint(home))
        async with first as client:
            await client.topics.create("t", partitions=1)
            async with client.producer("t") as producer, client.subscribe("t/#") as subscription:
                for number in range(10):
                    await producer.send(b"%d" % number)
                for record in await subscription.fetch(4):
                    await record.ack(sync=True)
        again = dss_client.connect("me", False, 60, endpoint(home))
        async with again as client, client.subscribe("t/#") as subscription:
            records = await subscription.fetch(6)
        assert [record.offset for record in records] == list(range(4, 10))


@pytest.mark.parametrize("takes_slowly", share([True], [False, True]))
async def test_a_subscription_that_is_not_taken_from_holds_up_no_other_of_its_client(
    home: Path, takes_slowly: bool
) -> None:
    count = 12_000
    async with running(*serve(home)), dss_client.connect(endpoint=endpoint(home)) as client:
        for topic in ("idle", "busy"):
            await client.topics.create(topic, partitions=8)
            await client.groups.create(f"$share/{topic}/{topic}/#", start="earliest")
            async with client.producer(topic) as producer:
                for number in range(count):
                    await producer.enqueue(b"%d" % number, key=b"%d" % number)
        async with client.subscribe("$share/idle/idle/#") as idle:
            # It is alone, and takes all of the credit.
            await idle.fetch(1)
            async with client.subscribe("$share/busy/busy/#") as busy, asyncio.timeout(60):
                seen = 0
                async for record in busy:
                    await record.ack()
                    seen += 1
                    if takes_slowly and seen % 1_000 == 0:
                        for slow in await idle.fetch(1, timeout=1.0):
                            await slow.ack()
                    if seen == count:
                        break


@pytest.mark.parametrize("protocol", share(["lease"], ["borrow", "lease"]))
async def test_what_a_synchronous_ack_says_at_the_end_of_its_member_is_true(
    home: Path, protocol: str
) -> None:
    async with running(*serve(home)), dss_client.connect(endpoint=endpoint(home)) as client:
        await client.topics.create("t", partitions=1)
        async with client.producer("t") as producer:
            for number in range(200):
                producer.send_nowait(b"%d" % number)
        await client.groups.create("$share/g/t/#", start="earliest", protocol=protocol)
        said: dict[int, bool] = {}
        for change in (Evict("g", "ann", grace_ms=0), CloseSession("ann")):
            await ack_until_ended(home, change, said)
        acked: dict[int, bool] = {}
        for offset in said:
            (found,) = (await client.groups.why("g", stream="t/0/0", offset=offset)).records
            acked[offset] = found.reason.code == "acked"
        assert acked == said


async def ack_until_ended(home: Path, change: Change, said: dict[int, bool]) -> None:
    """Acknowledge one by one until an operator ends the member; what is certain of each ack."""
    async with (
        asyncio.timeout(60),
        dss_client.connect(endpoint=endpoint(home)) as operator,
        dss_client.connect("ann", endpoint=endpoint(home)) as client,
        asyncio.TaskGroup() as tasks,
    ):
        with suppress(BorrowerEvicted, SessionClosed, OutcomeUnknown):
            async with client.subscribe("$share/g/t/#") as subscription:
                records = aiter(subscription)
                record = await anext(records)
                tasks.create_task(operator.operations.apply(change), name="end the member")
                while True:
                    said.pop(record.offset, None)
                    try:
                        await record.ack(sync=True)
                    except GrantNotHeld:
                        said[record.offset] = False
                        return
                    said[record.offset] = True
                    record = await anext(records)
