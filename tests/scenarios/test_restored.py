"""Everybody who works with a daemon as its disk is lost, and lives on over the restore of a backup.

A follower, private subscriptions from before and behind the backup, a member of a group, a producer
whose records are on their way, and the driver of a job: each is told that the daemon was restored,
goes on where it can, and is never given another record under a place that it knew.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Set
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import dss_client
from dss_client import Client
from dss_client.changes import CreateJob
from dss_client.job_values import JobChunk
from dss_client.jobs import Lease
from dss_core.errors import JobRestored
from dss_core.limits import RESTORE_OFFSETS_RAISED
from dss_core.staged import StagedFile
from dssd.backups.restore import restore
from support.bulk_jobs import read_chunk, replay, staged
from support.daemon_process import DaemonProcess, short_directory
from support.proof_share import only_in_proof
from support.syscall_faults import data_in, serving

TOPIC, GROUP = "orders", "$share/billing/orders/#"
COPIES, SUBJECT, JOB = "copies", "copies/again", "again"
READERS = ("follower", "member", "private", "late")
PATIENCE_S = 60.0
PAYLOAD_BYTES = 1 << 10
"""So that a few hundred records are a few chunks."""
Place = tuple[str, int]


@dataclass(slots=True)
class Seen:
    """What one reader was given, in all its life."""

    payloads: dict[Place, bytes] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    lost: list[tuple[str, int, int]] = field(default_factory=list)

    def note(self, stream: str, offset: int, payload: bytes) -> None:
        """One record; another one under the same place is what must never be."""
        known = self.payloads.setdefault((stream, offset), payload)
        assert known == payload, f"{stream}@{offset} was {known!r} and is {payload!r}"
        self.changed.set()

    async def until(self, wanted: Callable[[set[bytes]], bool]) -> None:
        """Wait for records."""
        async with asyncio.timeout(PATIENCE_S):
            while not wanted(set(self.payloads.values())):
                self.changed.clear()
                await self.changed.wait()


@dataclass(slots=True)
class Sending:
    """A producer that sends on and on."""

    acked: dict[bytes, Place] = field(default_factory=dict)
    tried: int = 0
    grown: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, client: Client) -> None:
        async with client.producer(TOPIC) as producer:
            while True:
                payload = (b"%d" % self.tried).ljust(PAYLOAD_BYTES)
                self.tried += 1
                ack = await producer.send(payload, key=b"%d" % (self.tried % 7))
                self.acked[payload] = (ack.stream, ack.offset)
                self.grown.set()

    async def more(self, records: int) -> None:
        wanted = len(self.acked) + records
        async with asyncio.timeout(PATIENCE_S):
            while len(self.acked) < wanted:
                self.grown.clear()
                await self.grown.wait()


class Programs:
    """All who live on. Each client is a session of its own."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self.seen: defaultdict[str, Seen] = defaultdict(Seen)
        self.sending = Sending()

    async def client(self, name: str) -> Client:
        connecting = dss_client.connect(name, endpoint=self._endpoint)
        return await self._stack.enter_async_context(connecting)

    def begin(self, work: Awaitable[None]) -> None:
        self._tasks.append(asyncio.ensure_future(work))

    async def subscribe(self, name: str, filter_: str) -> None:
        client, seen = await self.client(name), self.seen[name]
        subscription = client.subscribe(filter_, start="earliest")
        await self._stack.enter_async_context(subscription)

        async def run() -> None:
            async for record in subscription:
                seen.note(record.stream, record.offset, record.payload)
                await record.ack()

        self.begin(run())

    async def follow(self, name: str) -> None:
        client, seen = await self.client(name), self.seen[name]

        def tell(stream: str, first: int, last: int) -> None:
            seen.lost.append((stream, first, last))

        async def run() -> None:
            reading = client.read(f"{TOPIC}/#", start="earliest", follow=True, on_lost=tell)
            async for record in reading:
                seen.note(record.stream, record.offset, record.payload)

        self.begin(run())

    async def end(self) -> None:
        for task in self._tasks:
            failed = task.done() and not task.cancelled() and task.exception()
            assert not failed, failed
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()


Chunks = AsyncGenerator[JobChunk, None]


async def next_staged(client: Client, lease: Lease, chunks: Chunks) -> tuple[int, list[StagedFile]]:
    """The next chunk of a job, ready to be published."""
    chunk = await anext(chunks)
    records = await read_chunk(client, chunk)
    return chunk.number, [staged(lease, chunk.number, records, SUBJECT)]


async def everybody(programs: Programs) -> Client:
    """All are at work, and a job is planned; returns the operator."""
    operator = await programs.client("operator")
    await operator.topics.create(TOPIC, partitions=2)
    await operator.topics.create(COPIES, partitions=4)
    await operator.groups.create(GROUP, start="earliest")
    await programs.follow("follower")
    await programs.subscribe("member", GROUP)
    await programs.subscribe("private", f"{TOPIC}/#")
    programs.begin(programs.sending.run(operator))
    await programs.sending.more(200)
    change = CreateJob(JOB, "replay", source=TOPIC, target=COPIES, chunk_bytes=64 << 10)
    await operator.operations.apply(change)
    return operator


async def restored(daemon: DaemonProcess, home: Path) -> DaemonProcess:
    """The disk is lost, and the backup takes its place."""
    await daemon.kill()
    data_in(home).rename(home / "lost")
    await asyncio.to_thread(restore, home / "b", data_in(home))
    return await DaemonProcess.start(*serving(home, "first"))


@only_in_proof
@pytest.mark.slow("a group that starts anew behind its leases")
@pytest.mark.usefixtures("impatient")
async def test_everybody_is_told_and_nobody_gets_another_record_under_a_place_that_it_knew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with short_directory() as home:
        daemon = await DaemonProcess.start(*serving(home, "first"))
        programs = Programs(daemon.endpoint)
        try:
            operator = await everybody(programs)
            acked = programs.sending.acked
            async with operator.jobs.drive(JOB, driver="one") as lease:
                chunks = lease.open_chunks()
                await lease.commit(*await next_staged(operator, lease, chunks))
                before = set(acked)
                await operator.backups.create(home / "b")
                await lease.commit(*await next_staged(operator, lease, chunks))
                third = await next_staged(operator, lease, chunks)
                await programs.subscribe("late", f"{TOPIC}/#")
                await programs.sending.more(100)
                last = set(acked)
                for name in READERS:
                    await programs.seen[name].until(last.issubset)
                daemon = await restored(daemon, home)
                await programs.sending.more(50)
                with pytest.raises(JobRestored, match="restored from a backup"):
                    await lease.commit(*third)
            newest = set(acked) - last
            for name in READERS:
                await programs.seen[name].until(newest.issubset)
            await check_log(operator, acked, before | newest, last)
            await check_job(operator)
            assert min(acked[each][1] for each in newest) > RESTORE_OFFSETS_RAISED
            assert programs.seen["follower"].lost
            told = {each.split(":")[0] for each in caplog.messages if "was restored from" in each}
            assert told == {"the session", f"the producer of {TOPIC}", "the reading"}
        finally:
            await programs.end()
            await daemon.kill()


async def check_log(
    client: Client, acked: Mapping[bytes, Place], there: Set[bytes], last: Set[bytes]
) -> None:
    """Each record is there once, where it was acknowledged; what is gone left its place empty."""
    log = [record async for record in client.read(f"{TOPIC}/#", start="earliest")]
    stored = Counter(record.payload for record in log)
    assert max(stored.values()) == 1, "a record of a producer in doubt is there twice"
    places = {(each.stream, each.offset): each.payload for each in log}
    assert {each: places.get(acked[each]) for each in there} == {each: each for each in there}
    gone = last - stored.keys()
    assert gone, "something was acknowledged behind the backup"
    assert not {acked[each] for each in gone} & places.keys()


async def check_job(client: Client) -> None:
    """It goes on where the backup has it, and copies each record once."""
    assert (await client.jobs.get(JOB)).published == 1
    await replay(client, JOB, subject=SUBJECT)
    done = await client.jobs.ended(JOB)
    copies = [record.payload async for record in client.read(f"{COPIES}/#")]
    assert len(copies) == len(set(copies)) == done.records
