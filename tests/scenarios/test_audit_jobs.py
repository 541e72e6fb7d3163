"""Audits of topics of a real daemon: clean ones, and ones that are not as they ought to be."""

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

import dss_client
from dss_bulk import whole_range
from dss_bulk.audit_work import AuditWork
from dss_bulk.audits.output import Output, output_of
from dss_bulk.audits.params import AuditParams
from dss_bulk.audits.partial import Check
from dss_bulk.audits.report import Report, report_of
from dss_bulk.driver import drive
from dss_bulk.local_engine import LOCAL, LocalEngine
from dss_client import Client
from dss_client.changes import CreateJob
from support.daemon_process import DaemonProcess, running
from support.segment_bytes import flip, frame_places

RECORDS, KEYS = 400, 10
CHUNK_BYTES = 64 << 10
LIFE_S_MAX = 60.0


@asynccontextmanager
async def served(directory: Path) -> AsyncIterator[tuple[Client, DaemonProcess]]:
    arguments = ("--data-dir", str(directory / "d"), "--listen", f"unix:{directory}/s")
    async with (
        asyncio.timeout(LIFE_S_MAX),
        running(*arguments) as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        yield client, daemon


async def make(client: Client, change: CreateJob) -> None:
    await client.operations.apply(await client.operations.plan(change), reason="a test")


async def make_audit(client: Client, name: str, topic: str, only: str = "") -> None:
    params = AuditParams.of(await client.topics.describe(topic)).to_json()
    await make(
        client,
        CreateJob(name, "audit", source=topic, filter=only, chunk_bytes=CHUNK_BYTES, params=params),
    )


async def told(client: Client, name: str) -> tuple[Report, Output]:
    """What the manifest of an audit says."""
    job = await client.jobs.get(name)
    output = await output_of(client.jobs.chunks(name))
    return report_of(output.partial, AuditParams.from_json(name, job.params).partitions), output


async def audited(client: Client, name: str, topic: str, only: str = "") -> tuple[Report, Output]:
    await make_audit(client, name, topic, only)
    assert (await drive(client, name, engine=LOCAL)).state == "done"
    return await told(client, name)


async def replay(client: Client, name: str) -> None:
    await make(
        client,
        CreateJob(name, "replay", source="orders", target="copies", chunk_bytes=CHUNK_BYTES),
    )
    await drive(client, name, engine=LOCAL)


def ceilings_stored(directory: Path) -> int:
    """How many streams of the running daemon have a ceiling, by a copy of its store."""
    copies = Path(tempfile.mkdtemp(dir=directory))
    for name in ("store.sqlite", "store.sqlite-wal"):
        shutil.copy(directory / "d" / name, copies / name)
    with closing(sqlite3.connect(copies / "store.sqlite")) as rows:
        return int(rows.execute("SELECT count(*) FROM ceilings").fetchone()[0])


@pytest.mark.slow("seven jobs, one after the other")
async def test_copies_are_clean_until_they_are_made_again(directory: Path) -> None:
    async with served(directory) as (client, _):
        await client.topics.create("orders", partitions=2)
        await client.topics.create("copies", partitions=4)
        await client.groups.create("$share/slow/copies/#", start="earliest")
        async with client.producer("orders") as producer:
            for number in range(RECORDS):
                subject = "orders/eu" if number % 4 else "orders/us"
                key = b"k%d" % (number % KEYS)
                producer.send_nowait(b"%0600d" % number, key=key, subject=subject)
        await replay(client, "once")
        report, output = await audited(client, "clean", "copies")
        assert report.findings == ()
        assert report.records == RECORDS
        assert sum(each.records for each in report.streams) == RECORDS
        assert len(report.streams) == 4
        assert {each.records for each in report.keys} == {RECORDS // KEYS}
        assert [(each.group, each.lag) for each in output.groups] == [("slow@copies/#", RECORDS)]
        some, _ = await audited(client, "some", "copies", only="copies/us")
        assert (some.findings, some.records) == ((), RECORDS // 4)

        await replay(client, "twice")
        report, _ = await audited(client, "doubled", "copies")
        found = {each.check: each for each in report.findings}
        assert found[Check.DUPLICATES].count == RECORDS
        assert found[Check.DUPLICATES].examples[0].startswith("the copy of orders/0/")
        # The second copies begin in the middle of a chunk, or between two.
        assert set(found) - {Check.DUPLICATES} <= {Check.ORDER, Check.UNEXAMINED}
        assert len(found) > 1
        await gone_on_with(client)


async def gone_on_with(client: Client) -> None:
    """Another driver that goes on with an audit says what one alone would have said."""
    await make_audit(client, "parted", "copies")
    async with client.jobs.drive("parted", driver="a test") as lease:
        last = lease.job.chunks - 1
        assert last > 2
        async for chunk in lease.open_chunks():
            work = AuditWork(client, lease.granted)
            done = await work.chunk(chunk, last=chunk.number == last)
            await lease.commit(chunk.number, output=done.output)
            if chunk.number == 1:
                so_far, output = await told(client, "parted")
                assert 0 < so_far.records < 2 * RECORDS
                assert not output.is_whole
    report, _ = await told(client, "parted")
    assert report == (await told(client, "doubled"))[0]


async def test_damage_and_what_a_kill_left_are_told_apart(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(directory) as (client, daemon):
        await client.topics.create("t", partitions=1)
        async with client.producer("t") as producer:
            for frame in range(4):
                await producer.send_columns(payloads=[b"%d" % frame] * 100)
        await daemon.stop()
    [segment] = (directory / "d" / "log").glob("*.seg")
    flip(segment, frame_places(segment)[3] - 1)
    async with served(directory) as (client, daemon):
        await client.topics.create("fast", partitions=1, durability="os")
        async with client.producer("fast") as producer:
            before = 0
            # Until the store has a ceiling, each record is durable, and a kill leaves no gap.
            while not ceilings_stored(directory):
                await producer.send(b"before")
                before += 1
        await daemon.kill()
    async with served(directory) as (client, _):
        async with client.producer("fast") as producer:
            receipt = await producer.send(b"after")
        report, _ = await audited(client, "damaged", "t")
        [damage] = report.findings
        assert (damage.check, damage.count) == (Check.DAMAGE, 100)
        assert damage.examples == ("t/0/0 200..299",)
        assert (report.records, report.keyless) == (300, 300)
        await make_audit(client, "over-the-wire", "t")
        await drive(client, "over-the-wire", engine=LocalEngine(in_place=False))
        assert (await told(client, "over-the-wire"))[0] == report
        monkeypatch.setattr(whole_range, "IN_PLACE_HOLES_MAX", 0)
        assert (await audited(client, "holes", "t"))[0] == report
        report, _ = await audited(client, "killed", "fast")
        found = [(finding.check, finding.count) for finding in report.findings]
        assert found == [(Check.LOST, receipt.offset - before)]
        assert report.is_clean
