"""Backups of a daemon to which everything is done at once, each restored and judged by its log.

A topic that grows under its producer, a group whose records fail and are redriven, retention that
takes all the time, topics that come and go, and a job that copies. What was confirmed before a
backup began is in it, what came after its end is not, and no record is there twice or out of order.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import dss_client
from dss_client import Client
from dss_client.changes import CreateJob, GrowTopic, RedriveDeadLetters
from dss_core.backups.directory import BackupDirectory
from dssd.backups.restore import restore
from support.bulk_jobs import read_chunk, replay, staged
from support.daemon_process import running, short_directory
from support.proof_share import only_in_proof
from support.struck_trials import SMALL
from support.syscall_faults import damage_in, data_in, serving

GROWS, EXPIRES, SOURCE, COPIES, JOB = "grows", "expires", "source", "copies", "again"
FILTER = f"$share/billing/{GROWS}/#"
SUBJECT = "copies/again"
KEYS, FAILING = 7, 11
BACKUPS = 6
COPIED, PAUSE_S = 2_000, 0.1
"""Records of some thirty chunks, and how long the driver rests behind each."""
PATIENCE_S = 120.0
Place = tuple[str, int]


@dataclass(slots=True)
class Known:
    """What the programs know: places by the acks, and payloads whose acknowledgement is durable."""

    tried: int = 0
    stored: dict[Place, bytes] = field(default_factory=dict)
    acked: set[bytes] = field(default_factory=set)

    def copy(self) -> "Known":
        return Known(self.tried, dict(self.stored), set(self.acked))


async def publish(client: Client, known: Known) -> None:
    async with client.producer(GROWS) as producer:
        for number in count():
            known.tried = number + 1
            ack = await producer.send(b"%d" % number, key=b"%d" % (number % KEYS))
            known.stored[ack.stream, ack.offset] = b"%d" % number


async def consume(client: Client, known: Known) -> None:
    async with client.subscribe(FILTER) as subscription:
        async for record in subscription:
            if int(record.payload) % FAILING == 0 and not record.redelivered:
                await record.reject()
                continue
            await record.ack(sync=True)
            known.acked.add(record.payload)


async def expire(client: Client) -> None:
    async with client.producer(EXPIRES) as producer:
        while True:
            await producer.send(bytes(8 << 10))


async def come_and_go(client: Client) -> None:
    for number in count():
        name = f"passing{number}"
        await client.topics.create(name, partitions=2)
        async with client.producer(name) as producer:
            await producer.send(b"x")
        await client.topics.remove(name, force=True)


async def operate(client: Client) -> None:
    for partitions in (4, 6, 3):
        row = await client.operations.apply(GrowTopic(GROWS, partitions))
        await client.operations.ended(row.number)
        row = await client.operations.apply(RedriveDeadLetters("billing"))
        await client.operations.ended(row.number)


async def copy(client: Client) -> None:
    async with client.jobs.drive(JOB, driver="one") as lease:
        async for chunk in lease.open_chunks():
            records = await read_chunk(client, chunk)
            await lease.commit(chunk.number, [staged(lease, chunk.number, records, SUBJECT)])
            await asyncio.sleep(PAUSE_S)


WORK: tuple[Callable[[Client], Coroutine[Any, Any, None]], ...] = (
    expire,
    come_and_go,
    operate,
    copy,
)


async def prepared(client: Client) -> None:
    await client.topics.create(GROWS, partitions=2)
    await client.topics.create(EXPIRES, partitions=1, retention_bytes=64 << 10)
    await client.topics.create(SOURCE, partitions=2)
    await client.topics.create(COPIES, partitions=3)
    await client.groups.create(FILTER, start="earliest", max_deliver=2)
    async with client.producer(SOURCE) as producer:
        for number in range(COPIED):
            payload = (b"%d" % number).ljust(1 << 10)
            producer.send_nowait(payload, key=b"%d" % (number % KEYS))
        await producer.flush()
    change = CreateJob(JOB, "replay", source=SOURCE, target=COPIES, chunk_bytes=64 << 10)
    await client.operations.apply(change)


async def backed_up(client: Client, into: Path, known: Known) -> list[tuple[Known, int]]:
    """Of each backup what was known before, and how much was tried when it ended."""
    made = []
    for _ in range(BACKUPS):
        wanted = len(known.stored) + 40
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if len(known.stored) >= wanted:
                    break
                await asyncio.sleep(0.005)
        before = known.copy()
        await client.backups.create(into)
        made.append((before, known.tried))
    return made


@only_in_proof
@pytest.mark.slow("a restored daemon for each backup, whose groups start anew")
@pytest.mark.usefixtures("impatient")
async def test_each_backup_among_all_kinds_of_writes_has_what_was_confirmed_and_goes_on() -> None:
    with short_directory() as home:
        known = Known()
        arguments = serving(home, "first")
        async with (
            running(*arguments, program=SMALL, from_nothing=True) as daemon,
            dss_client.connect("operator", endpoint=daemon.endpoint) as client,
        ):
            await prepared(client)
            async with asyncio.TaskGroup() as tasks:
                working = [tasks.create_task(work(client)) for work in WORK]
                working.append(tasks.create_task(publish(client, known)))
                working.append(tasks.create_task(consume(client, known)))
                made = await backed_up(client, home / "b", known)
                for each in working:
                    each.cancel()
        numbers = [each.number for each in BackupDirectory.existing(home / "b").manifests()]
        for number, (before, tried) in zip(numbers, made, strict=True):
            place = home / f"r{number}"
            place.mkdir()
            restore(home / "b", data_in(place), number)
            assert not damage_in(data_in(place))
            await check(place, before, tried, known.acked)


async def check(place: Path, before: Known, tried: int, ever_acked: set[bytes]) -> None:
    """What a daemon on one of them has, and how its group and its job come to their ends."""
    async with (
        running(*serving(place, "s")) as daemon,
        dss_client.connect("other", endpoint=daemon.endpoint) as client,
    ):
        log = await read(client, GROWS)
        assert before.stored.items() <= log.items()
        check_order(log, tried)
        taken = await drained(client)
        assert not taken & before.acked, "what was acknowledged comes again"
        dead = {each.payload async for each in client.queues.dead_letters("billing", whole=True)}
        assert set(log.values()) <= taken | ever_acked | dead, "a record is lost to the group"
        job = await client.jobs.get(JOB)
        if not job.has_ended:
            await replay(client, JOB, subject=SUBJECT)
        copies = sorted(int(each) for each in (await read(client, COPIES)).values())
        assert copies == list(range(COPIED))
        wrong = [each for each in await client.groups.verify("billing", scan=True) if each.problem]
        assert not wrong, wrong
        assert await daemon.stop() == 0
        assert "Traceback" not in daemon.said


async def read(client: Client, topic: str) -> dict[Place, bytes]:
    found = {}
    async for record in client.read(f"{topic}/#", start="earliest"):
        found[record.stream, record.offset] = record.payload
    return found


def check_order(log: dict[Place, bytes], tried: int) -> None:
    """Each record once, none of later; those of a key in their order, over storage topics too."""
    numbers = [int(each) for each in log.values()]
    assert len(set(numbers)) == len(numbers)
    assert max(numbers) < tried
    by_key: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for (stream, offset), payload in log.items():
        storage_topic = int(stream.split("/")[1])
        by_key[int(payload) % KEYS].append((storage_topic, offset, int(payload)))
    for places in by_key.values():
        found = [number for _, _, number in sorted(places)]
        assert found == sorted(found)


async def drained(client: Client) -> set[bytes]:
    """All that the group gets until nothing is left of it."""
    taken = set()
    async with asyncio.timeout(PATIENCE_S), client.subscribe(FILTER) as subscription:
        while True:
            for record in await subscription.fetch(100, 0.2):
                taken.add(record.payload)
                await record.ack()
            group = (await client.groups.describe("billing")).group
            if group.lag + group.retrying == 0:
                return taken
