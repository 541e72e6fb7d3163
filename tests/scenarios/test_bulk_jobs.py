"""Bulk jobs on a real daemon: every record exactly once, whatever is killed or said twice."""

import asyncio
import os
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

import dss_client
from dss_client import Client
from dss_client.changes import (
    CancelJob,
    CreateJob,
    EditTopic,
    PauseJob,
    RemoveJob,
    RemoveTopic,
    ResumeJob,
)
from dss_client.job_values import Job, JobInput
from dss_client.record import Record
from dss_core.columns import Columns
from dss_core.errors import (
    CopyLoop,
    JobExists,
    JobLeased,
    JobNotDone,
    JobNotFound,
    JobNotInState,
    OutcomeUnknown,
    StagedFileRefused,
    Unreachable,
)
from dss_core.origin import ORIGIN
from dss_core.staged import StagedFile, StagedWriter
from support.bulk_jobs import read_chunk, replay, staged
from support.daemon_process import running, short_directory
from support.proof_share import share
from support.revived_daemon import RevivedDaemon, revived

PATIENCE_S = 60.0
RECORDS, CHUNK_BYTES = share((800, 64 << 10), (3_000, 128 << 10))
RECORDS_AMONG_DEATHS = 3_000
"""Enough for the job to go on when the first one comes."""
KEYS = 40
RATE_BYTES_S = share(1 << 18, 1 << 20)
SUBJECT = "copies/again"


@pytest.fixture
async def home() -> AsyncIterator[Path]:
    with short_directory() as directory:
        yield directory


@pytest.fixture
async def client(home: Path) -> AsyncIterator[Client]:
    """Of a daemon with a topic of records, and one for copies of twice the partitions."""
    endpoint = f"unix:{home / 's'}"
    async with (
        running("--data-dir", str(home / "d"), "--listen", endpoint),
        dss_client.connect(endpoint=endpoint) as connected,
    ):
        await fill(connected)
        yield connected


async def fill(client: Client, records: int = RECORDS) -> None:
    await client.topics.create("orders", partitions=2)
    await client.topics.create("copies", partitions=4)
    async with client.producer("orders") as producer:
        for number in range(records):
            producer.send_nowait(b"%d" % number + b"." * 400, key=b"k%d" % (number % KEYS))
        await producer.flush()


async def make(client: Client, name: str = "again", **options: object) -> None:
    made = CreateJob(name, "replay", source="orders", target="copies", chunk_bytes=CHUNK_BYTES)
    change = replace(made, **options)  # type: ignore[arg-type] # each is of its field
    await client.operations.apply(await client.operations.plan(change), reason="a test")


async def copies(client: Client) -> list[Record]:
    return [record async for record in client.read("copies/#")]


def check_copies(found: list[Record], records: int = RECORDS) -> None:
    """Each record once, and those of a key in their order."""
    numbers = [int(record.payload.split(b".")[0]) for record in found]
    assert Counter(numbers) == Counter(range(records))
    origins = Counter(record.header(ORIGIN) for record in found)
    assert max(origins.values()) == 1
    by_key: defaultdict[bytes, list[int]] = defaultdict(list)
    for record in found:
        assert record.key is not None
        by_key[record.key].append(int(record.payload.split(b".")[0]))
    assert all(own == sorted(own) for own in by_key.values())


async def watched_until_done(client: Client) -> set[tuple[str, bool]]:
    """What a watcher is told of the job."""
    seen: set[tuple[str, bool]] = set()
    async with aclosing(client.watch("jobs")) as updates:
        async for update in updates:
            for _, value in update.changed:
                assert isinstance(value, Job)
                seen.add((value.state, value.driver_lives))
                if value.state == "done":
                    return seen
    return seen


def staged_left(home: Path) -> list[Path]:
    # Folders may go while this walks, which `os.walk` does not mind.
    found = os.walk(home / "d" / "staging")
    return [Path(folder, name) for folder, _, names in found for name in names]


async def until_swept(home: Path) -> None:
    while staged_left(home):  # noqa: ASYNC110 - a directory tells nobody
        await asyncio.sleep(0.02)


async def test_a_job_of_a_time_without_a_record_copies_none(client: Client) -> None:
    await make(client, start_us=9_000_000_000_000_000)
    job = await client.jobs.get("again")
    assert (job.state, job.chunks, await copies(client)) == ("done", 0, [])


async def test_a_replay_copies_each_record_once_and_keeps_the_order_of_keys(
    client: Client, home: Path
) -> None:
    async with asyncio.timeout(PATIENCE_S):
        plan = await client.operations.plan(
            CreateJob("again", "replay", source="orders", target="copies")
        )
        assert any("order" in effect for effect in plan.effects)
        await make(client)
        job = await client.jobs.get("again")
        assert (job.state, job.published, job.driver_lives) == ("active", 0, False)

        seen = asyncio.create_task(watched_until_done(client))
        assert await replay(client, "again", subject=SUBJECT) == job.chunks > 3
        assert {state for state, _ in await seen} == {"active", "done"}

        done = await client.jobs.ended("again")
        assert (done.records, done.published) == (RECORDS, job.chunks)
        check_copies(await copies(client))
        await until_swept(home)
        results = [chunk.result async for chunk in client.jobs.chunks("again")]
        assert sum(each.records for each in results if each) == RECORDS
        await client.operations.apply(RemoveJob("again"))
        with pytest.raises(JobNotFound):
            await client.jobs.get("again")


async def test_a_commit_that_is_repeated_is_answered_as_before(client: Client) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await make(client)
        async with client.jobs.drive("again", driver="one") as lease:
            chunk = await anext(lease.open_chunks())
            file = staged(lease, chunk.number, await read_chunk(client, chunk), SUBJECT)
            first, joined = await asyncio.gather(
                lease.commit(chunk.number, [file]), lease.commit(chunk.number, [file])
            )
            assert first == joined == await lease.commit(chunk.number, [file])
            with pytest.raises(JobNotInState, match="before chunk 1"):
                await lease.commit(2, [])
        assert len(await copies(client)) == first.records


async def test_a_second_driver_waits_for_the_first(client: Client) -> None:
    await make(client)
    async with client.jobs.drive("again", driver="one"):
        with pytest.raises(JobLeased, match="The driver one works on job again") as leased:
            async with client.jobs.drive("again", driver="two"):
                pass
    assert re.search(r"or \d+s after it fell silent", leased.value.hint_text)


async def test_what_is_staged_wrongly_is_refused_and_nothing_is_published(
    client: Client,
) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await make(client)
        async with client.jobs.drive("again", driver="one") as lease:
            for subject, partition, key in (
                ("foreign/subject", 0, None),
                (SUBJECT, 3, b"k0"),
                (SUBJECT, 9, None),
            ):
                with StagedWriter(lease.granted.staging, lease.granted.staged_for(0)) as writer:
                    writer.add(Columns([b"x"], [key], subject, None, 1), partition)
                    file = writer.finish()
                with pytest.raises(StagedFileRefused):
                    await lease.commit(0, [file])
            for wrong in (
                StagedFile("../../store.sqlite", 1, 1),
                StagedFile(file.name, file.bytes + 1, 1),
                StagedFile(file.name, file.bytes, 2),
                StagedFile("00000000-" + "0" * 16 + ".staged", 100, 1),
            ):
                with pytest.raises(StagedFileRefused):
                    await lease.commit(0, [wrong])
        assert await copies(client) == []
        assert (await client.jobs.get("again")).published == 0


async def test_a_paused_job_publishes_once_it_is_resumed(client: Client) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await make(client)
        await client.operations.apply(PauseJob("again"))
        driving = asyncio.create_task(replay(client, "again", subject=SUBJECT))
        while not (await client.jobs.get("again")).driver_lives:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
        assert (await client.jobs.get("again")).published == 0
        await client.operations.apply(ResumeJob("again"))
        await driving
        check_copies(await copies(client))


async def test_a_cancelled_job_keeps_what_it_published_and_leaves_no_file(
    client: Client, home: Path
) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await make(client)
        async with client.jobs.drive("again", driver="one") as lease:
            chunks = [chunk async for chunk in lease.open_chunks()]
            for chunk in chunks[:2]:
                file = staged(lease, chunk.number, await read_chunk(client, chunk), SUBJECT)
                if chunk.number == 1:
                    await client.operations.apply(CancelJob("again"), reason="enough")
                    with pytest.raises(JobNotInState, match="cancelled"):
                        await lease.commit(chunk.number, [file])
                else:
                    await lease.commit(chunk.number, [file])
        with pytest.raises(JobNotDone, match="enough"):
            await client.jobs.ended("again")
        await until_swept(home)
        assert len(await copies(client)) == chunks[0].records_planned


async def test_a_rate_bounds_what_is_published_a_second(client: Client) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await make(client, rate_bytes_s=RATE_BYTES_S)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await replay(client, "again", subject=SUBJECT)
        done = await client.jobs.ended("again")
        took_s = loop.time() - began_s
        assert done.bytes / RATE_BYTES_S * 0.8 - 0.3 < took_s, "the last chunk waits for nobody"


async def test_what_cannot_be_made_is_said_and_leaves_nothing(client: Client) -> None:
    with pytest.raises(CopyLoop, match="would write to orders"):
        await client.operations.plan(CreateJob("loop", "replay", source="orders", target="orders"))
    await make(client)
    with pytest.raises(JobExists):
        await client.operations.plan(CreateJob("again", "replay", source="orders", target="copies"))
    assert [job.name for job in await client.jobs.list()] == ["again"]


async def test_retention_waits_for_a_job_and_its_plan_says_so(client: Client) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await make(client)
        plan = await client.operations.plan(EditTopic("orders", retention_ms=1))
        assert any("stay until the jobs have ended" in effect for effect in plan.effects)
        removal = await client.operations.plan(RemoveTopic("orders"))
        assert "The job again reads or writes it, and cannot go on." in removal.effects
        await client.operations.apply(plan)
        assert await replay(client, "again", subject=SUBJECT) > 3
        check_copies(await copies(client))


async def test_a_daemon_that_is_killed_again_and_again_doubles_and_loses_nothing() -> None:
    async with (
        asyncio.timeout(PATIENCE_S * 2),
        revived() as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await fill(client, RECORDS_AMONG_DEATHS)
        await make(client)
        deaths = asyncio.create_task(die(daemon, times=share(2, 4)))
        assert await replay(client, "again", subject=SUBJECT) > 3
        await deaths
        check_copies(await copies(client), RECORDS_AMONG_DEATHS)


async def test_chunks_that_are_asked_for_while_the_daemon_is_away_come_when_it_is_back() -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        revived() as daemon,
        dss_client.connect(endpoint=daemon.endpoint, patient=False) as client,
    ):
        await fill(client)
        await make(client)
        async with client.jobs.drive("again", driver="one") as lease:
            chunks = lease.open_chunks()
            first = await anext(chunks)
            await daemon.kill()
            again = asyncio.ensure_future(anext(lease.open_chunks()))
            published = asyncio.create_task(lease.commit(first.number))
            with pytest.raises((Unreachable, OutcomeUnknown)):  # so both were asked in vain
                await client.jobs.get("again")
            await daemon.start()
            assert await again == first
            assert (await published).records == 0
            assert [chunk.number async for chunk in chunks] == list(range(1, lease.job.chunks))


async def die(daemon: RevivedDaemon, *, times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0.35)
        await daemon.revive()


async def test_a_backfill_has_the_chunks_that_its_planner_says(client: Client) -> None:
    async with asyncio.timeout(PATIENCE_S):
        inputs = tuple(JobInput(f"file {number}", 1, 10) for number in range(3))
        change = CreateJob("fill", "backfill", target="copies", params="{}", inputs=inputs)
        await client.operations.apply(change)
        async with client.jobs.drive("fill", driver="one") as lease:
            assert lease.job.params == "{}"
            async for chunk in lease.open_chunks():
                with StagedWriter(
                    lease.granted.staging, lease.granted.staged_for(chunk.number)
                ) as writer:
                    writer.add(Columns([chunk.input.encode()], None, SUBJECT, None, 1), 2)
                    file = writer.finish()
                await lease.commit(chunk.number, [file])
        found = [record.payload async for record in client.read(stream="copies/0/2")]
        assert found == [b"file 0", b"file 1", b"file 2"]


async def test_an_export_keeps_what_was_said_of_each_chunk(client: Client) -> None:
    async with asyncio.timeout(PATIENCE_S):
        change = CreateJob("out", "export", source="orders", chunk_bytes=CHUNK_BYTES)
        plan = await client.operations.plan(change)
        assert plan.effects[0].endswith("and writes them to files, those of each stream in order.")
        await client.operations.apply(plan)
        async with client.jobs.drive("out", driver="one") as lease:
            assert lease.granted.target is None
            async for chunk in lease.open_chunks():
                await lease.commit(
                    chunk.number, output=f"part-{chunk.number}.parquet", records=chunk.number + 1
                )
        done = await client.jobs.ended("out")
        outputs = [chunk.result.output async for chunk in client.jobs.chunks("out") if chunk.result]
        assert outputs == [f"part-{number}.parquet" for number in range(done.chunks)]
        assert done.records == sum(range(1, done.chunks + 1))


async def test_a_driver_that_gives_up_ends_the_job(client: Client, home: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await make(client)
        async with client.jobs.drive("again", driver="one") as lease:
            chunk = await anext(lease.open_chunks())
            staged(lease, chunk.number, await read_chunk(client, chunk), SUBJECT)
            # A reason of any length ends it: all of it could not be told.
            await lease.give_up("the schema changed between two files: " + "column, " * 1_000)
        with pytest.raises(JobNotDone, match="the schema changed"):
            await client.jobs.ended("again")
        await until_swept(home)
        codes = set[str]()
        while not {"job.taken", "job.failed"} <= codes:
            codes = {event.code for event in (await client.events.list()).events}
            await asyncio.sleep(0.02)
