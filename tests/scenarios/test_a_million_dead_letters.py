"""A million dead letters of 50,000 keys, in an operator's hands.

They die of three errors, one by one, as a consumer refuses them. Pages and counts tell all of
them; one error is redriven, and one discarded, in as many operations as that takes. What became of
each is judged by the files that the daemon leaves.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import dss_client
from dss_client import Client, Subscription
from dss_client.changes import DiscardDeadLetters, RedriveDeadLetters
from dss_core.lane import DEAD, MAIN, RETRY
from dss_core.limits import REDRIVE_RATE_MAX
from support.proof_share import only_in_proof
from support.queue_history import Files
from support.revived_daemon import RevivedDaemon, revived

TOPIC, GROUP = "orders", "g"
FILTER = f"$share/{GROUP}/{TOPIC}/#"
RECORDS, KEYS, PARTITIONS = 1_000_000, 50_000, 12
OF_KEY = RECORDS // KEYS
SENT_AT_ONCE = KEYS
USUAL, MENDED, HOPELESS = "the bank does not answer", "no such customer", "no such currency"
PATIENCE_S = 1_200.0
LOOK_AGAIN_S = 0.1

pytestmark = [pytest.mark.slow("a million records fail"), only_in_proof]


def key_of(number: int) -> int:
    return number % KEYS


def error_of(number: int) -> str:
    return {0: MENDED, 50: HOPELESS}.get(key_of(number) % 100, USUAL)


OF_ERROR = Counter(map(error_of, range(RECORDS)))


def numbers_of(error: str) -> set[int]:
    return {number for number in range(RECORDS) if error_of(number) == error}


@asynccontextmanager
async def failed() -> AsyncIterator[tuple[RevivedDaemon, Client]]:
    """A daemon with all of them."""
    async with (
        asyncio.timeout(PATIENCE_S),
        revived() as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await client.topics.create(TOPIC, partitions=PARTITIONS)
        await client.groups.create(FILTER, start="earliest", max_deliver=3, backoff=[0.01])
        async with client.producer(TOPIC) as producer:
            for first in range(0, RECORDS, SENT_AT_ONCE):
                numbers = range(first, first + SENT_AT_ONCE)
                await producer.send_columns(
                    payloads=[b"%d" % each for each in numbers],
                    keys=[b"k%d" % key_of(each) for each in numbers],
                )
        async with client.subscribe(FILTER) as subscription:
            refusing = asyncio.create_task(refuse(subscription), name="member")
            await dead(client, RECORDS)
            refusing.cancel()
        yield daemon, client


async def refuse(subscription: Subscription) -> None:
    async for record in subscription:
        await record.reject(error_of(int(record.payload)))


async def dead(client: Client, count: int) -> None:
    """Wait until so many are dead, and nothing else is left."""
    while True:
        group = (await client.groups.describe(GROUP)).group
        if (group.lag, group.retrying, group.dead) == (0, 0, count):
            return
        await asyncio.sleep(LOOK_AGAIN_S)


async def check_pages(client: Client) -> None:
    """Each is on one page; those of a key are its own, oldest first."""
    seen = bytearray(RECORDS)
    async for each in client.queues.dead_letters(GROUP, whole=True):
        seen[int(each.payload)] += 1
    assert seen == b"\1" * RECORDS
    of_key = [
        int(each.payload)
        async for each in client.queues.dead_letters(GROUP, key=b"k4711", whole=True)
    ]
    assert of_key == [*range(4_711, RECORDS, KEYS)]
    newest = await client.queues.newest(GROUP, 20)
    assert (len(newest.entries), newest.total, newest.is_cut) == (20, RECORDS, False)


async def check_counts(client: Client, expected: Counter[str]) -> dict[str, str]:
    """By error and by key, in pieces, to the last one; the fingerprint of each error."""
    errors = await client.queues.errors(GROUP)
    assert {each.error: each.count for each in errors.errors} == expected
    assert errors.counted == errors.total == expected.total()
    some = await client.queues.errors(GROUP, at_most=20_000)
    assert 20_000 <= some.counted < some.total == expected.total()
    return {each.error: each.fingerprint for each in errors.errors}


async def check_keys(client: Client) -> None:
    keys = await client.queues.keys(GROUP)
    assert keys.looked_at_all
    assert {each.key: each.count for each in keys.keys} == {
        b"k%d" % each: OF_KEY for each in range(KEYS)
    }


async def carried_out(client: Client, change: RedriveDeadLetters | DiscardDeadLetters) -> int:
    """In how many operations there is nothing left to do."""
    times = 0
    while True:
        plan = await client.operations.plan(change)
        if plan.nothing_to_do:
            return times
        begun = await client.operations.apply(plan, reason="of that error")
        ended = await client.operations.ended(begun.number)
        assert ended.state == "done", ended
        times += 1


async def take(subscription: Subscription, taken: Counter[int]) -> None:
    async for record in subscription:
        taken[int(record.payload)] += 1
        await record.ack(sync=False)


async def test_all_are_told_and_those_of_one_error_come_back_and_of_another_are_given_up() -> None:
    taken: Counter[int] = Counter()
    async with failed() as (daemon, client):
        await check_pages(client)
        fingerprints = await check_counts(client, OF_ERROR)
        await check_keys(client)
        async with client.subscribe(FILTER) as subscription:
            taking = asyncio.create_task(take(subscription, taken), name="member")
            mended = RedriveDeadLetters(GROUP, error=fingerprints[MENDED], rate=REDRIVE_RATE_MAX)
            assert await carried_out(client, mended) > 0
            await dead(client, RECORDS - OF_ERROR[MENDED])
            hopeless = DiscardDeadLetters(GROUP, error=fingerprints[HOPELESS])
            assert await carried_out(client, hopeless) > 0
            await dead(client, OF_ERROR[USUAL])
            taking.cancel()
        await check_counts(client, Counter({USUAL: OF_ERROR[USUAL]}))
        assert await daemon.process.stop() == 0
        files = await Files.read(daemon.data, GROUP, TOPIC)
        await asyncio.to_thread(judge, files)
    assert taken == Counter(numbers_of(MENDED))


def judge(files: Files) -> None:
    """Each died once; those of one error came back once, by an operation, and are done with.

    What came back is counted by the progress of its queues too, for finished files of them are
    trimmed meanwhile.
    """
    redrives = {each.number for each in files.operations if each.kind == "dlq.redrive"}
    died = bytearray(RECORDS)
    back: Counter[int] = Counter()
    given_up: set[int] = set()
    for each in files.records():
        number = int(each.payload)
        is_done = files.progress[each.place.queue].is_acked(each.place.offset)
        if each.place.level == DEAD:
            assert each.entry is not None
            assert each.entry.source_level == MAIN
            died[number] += 1
            given_up |= {number} if is_done else set()
            continue
        assert is_done, each
        if each.place.level == RETRY:
            assert each.entry is not None
            assert each.entry.operation in redrives
            back[number] += 1
    assert died == b"\1" * RECORDS
    assert given_up == numbers_of(MENDED) | numbers_of(HOPELESS)
    assert back.keys() <= numbers_of(MENDED)
    assert max(back.values(), default=1) == 1
    assert acked_in(files, RETRY) == OF_ERROR[MENDED]


def acked_in(files: Files, level: int) -> int:
    """How many records of the queues of a level are acknowledged, without a hole."""
    queues = [each for queue, each in files.progress.items() if queue[0] == level]
    assert not any(each.ranges for each in queues)
    return sum(each.floor for each in queues)
