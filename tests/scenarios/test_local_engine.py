"""The local engine on a real daemon: real topics, real files, drivers that die."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dss_client
from dss_bulk import export
from dss_bulk.audits.params import AuditParams
from dss_bulk.backfill_work import BackfillParams, chunks_of
from dss_bulk.driver import Progress, drive
from dss_bulk.export_work import ExportParams
from dss_bulk.inputs import Inputs
from dss_bulk.local_engine import LOCAL
from dss_bulk.replay_params import ReplayParams
from dss_bulk.row_rule import RowRule
from dss_client import Client
from dss_client.changes import CreateJob, RemoveJob
from dss_core.errors import (
    ExportBroken,
    HopLimit,
    IllegalJob,
    JobLeased,
    JobNotInState,
    RowsRefused,
    StagedFileRefused,
)
from support.daemon_process import running, short_directory
from support.proof_share import only_in_proof
from support.started_program import started

RECORDS = 2_000
KEYS = 40


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Of a daemon with a topic ``orders`` that has records, and one ``copies``."""
    with short_directory() as home:
        endpoint = f"unix:{home / 's'}"
        async with (
            running("--data-dir", str(home / "d"), "--listen", endpoint),
            dss_client.connect(endpoint=endpoint) as connected,
        ):
            await fill(connected)
            yield connected


async def fill(client: Client) -> None:
    await client.topics.create("orders", partitions=2)
    await client.topics.create("copies", partitions=4)
    async with client.producer("orders") as producer:
        for number in range(RECORDS):
            subject = "orders/eu" if number % 4 else "orders/us"
            key = b"k%d" % (number % KEYS)
            producer.send_nowait(b"%0200d" % number, key=key, subject=subject)
        await producer.flush()


async def make(client: Client, change: CreateJob) -> None:
    await client.operations.apply(await client.operations.plan(change), reason="a test")


def replay(name: str, params: ReplayParams | None = None, filter: str = "") -> CreateJob:
    text = "" if params is None else params.to_json()
    return CreateJob(
        name, "replay", source="orders", target="copies", filter=filter, chunk_bytes=64 << 10,
        params=text,
    )  # fmt: skip


async def payloads(client: Client, topic: str) -> list[int]:
    return [int(record.payload) async for record in client.read(f"{topic}/#")]


async def test_a_replay_copies_each_record_once_in_order_with_its_origin(client: Client) -> None:
    await make(client, replay("whole"))
    seen: list[Progress] = []
    job = await drive(client, "whole", seen.append, engine=LOCAL)
    assert (job.state, job.records) == ("done", RECORDS)
    assert (seen[0].published, seen[-1].published) == (0, job.chunks)
    of_key: dict[bytes | None, list[int]] = {}
    async for record in client.read("copies/#"):
        assert record.header("dss-job") == b"whole"
        assert record.subject in ("copies/eu", "copies/us")
        of_key.setdefault(record.key, []).append(int(record.payload))
    assert all(numbers == sorted(numbers) for numbers in of_key.values())
    assert Counter(n for numbers in of_key.values() for n in numbers) == Counter(range(RECORDS))


async def test_a_replay_of_some_takes_those_and_names_them_anew(client: Client) -> None:
    params = ReplayParams(subject="copies/again/{rest}", key=b"k4".hex())
    await make(client, replay("some", params, "orders/us"))
    await drive(client, "some", engine=LOCAL)
    assert await payloads(client, "copies") == list(range(4, RECORDS, KEYS))
    async for record in client.read("copies/#"):
        assert record.subject == "copies/again/us"


@only_in_proof
@pytest.mark.slow("another driver has to wait until the lease of a killed one is over")
async def test_a_driver_that_is_killed_is_replaced_and_nothing_is_lost_or_doubled(
    client: Client,
) -> None:
    await make(client, replay("dies"))
    program = ("-m", "dss_bulk", "dies", "--endpoint", client.endpoint)
    killed = await started(*program, pipes=["stdout"])
    assert killed.stdout is not None
    while json.loads(await killed.stdout.readline())["published"] < 2:
        pass
    killed.kill()
    await killed.wait()
    while True:
        try:
            job = await drive(client, "dies", engine=LOCAL)
            break
        except JobLeased as leased:
            await asyncio.sleep(int(leased.fields["left_ms"]) / 1_000)
    assert (job.state, job.epoch) == ("done", 2)
    assert Counter(await payloads(client, "copies")) == Counter(range(RECORDS))


async def test_a_copy_of_copies_ends_at_the_limit_of_hops(client: Client) -> None:
    await make(client, replay("first"))
    await drive(client, "first", engine=LOCAL)
    back = CreateJob("back", "replay", source="copies", target="orders", hops_max=1)
    await make(client, back)
    with pytest.raises(HopLimit):
        await drive(client, "back", engine=LOCAL)
    job = await client.jobs.get("back")
    assert job.state == "failed"
    assert "copied 1 times" in job.failure
    with pytest.raises(JobNotInState):
        await drive(client, "back", engine=LOCAL)


def unfinished(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".run")]


async def exported(client: Client, name: str, folder: Path) -> export.ExportState:
    topic = await client.topics.describe("orders")
    state = export.state_of(folder)
    after = {} if state is None else state.ends
    change = CreateJob(name, "export", source="orders", chunk_bytes=64 << 10)
    plan = await client.operations.plan(change)
    made = plan.change
    assert isinstance(made, CreateJob)

    ranges = [
        replace(each, start=max(each.start, after.get(each.stream, 0))) for each in made.ranges
    ]
    ranges = [each for each in ranges if each.start < each.end]
    noted = export.Noted({each.stream: each.end for each in ranges})
    params = ExportParams(str(folder), topic.topic_id, noted)
    await make(client, replace(change, ranges=tuple(ranges), params=params.to_json()))
    await drive(client, name, engine=LOCAL)
    found = export.state_of(folder)
    assert found is not None
    return found


async def test_exports_take_what_is_new_and_a_reader_sees_whole_runs(
    client: Client, tmp_path: Path
) -> None:
    assert (await exported(client, "one", tmp_path)).runs == 1
    async with client.producer("orders") as producer:
        for number in range(RECORDS, RECORDS + 10):
            await producer.send(b"%d" % number, key=b"new")
    assert (await exported(client, "two", tmp_path)).runs == 2
    table = ds.dataset(tmp_path, partitioning="hive").to_table()
    assert Counter(map(int, table["payload"].to_pylist())) == Counter(range(RECORDS + 10))


async def test_a_name_that_is_used_again_exports_again_and_a_failure_leaves_no_file(
    client: Client, tmp_path: Path
) -> None:
    await exported(client, "again", tmp_path)
    removed = await client.operations.plan(RemoveJob("again"))
    await client.operations.apply(removed, reason="a test")
    async with client.producer("orders") as producer:
        await producer.send(b"%d" % RECORDS, key=b"new")
    assert (await exported(client, "again", tmp_path)).runs == 2
    assert ds.dataset(tmp_path, partitioning="hive").count_rows() == RECORDS + 1
    async with client.producer("orders") as producer:
        await producer.send(b"%d" % RECORDS, key=b"new")
    (tmp_path / "run=000003").mkdir()
    with pytest.raises(ExportBroken):
        await exported(client, "broken", tmp_path)
    assert unfinished(tmp_path) == []


async def test_a_backfill_makes_of_each_row_a_record_or_a_reject(
    client: Client, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    keys = [None if number % 100 == 0 else f"k{number % 7}" for number in range(500)]
    pq.write_table(pa.table({"k": keys, "n": list(range(500))}), path)
    rule = RowRule("copies", "k", subject="copies/{k}")
    inputs = Inputs.looked_at([path], rule)

    def job(name: str, rejects: Path | None) -> CreateJob:
        params = BackfillParams(rule, inputs.files, None if rejects is None else str(rejects))
        return CreateJob(
            name, "backfill", target="copies", params=params.to_json(), inputs=chunks_of(inputs)
        )

    await make(client, job("strict", None))
    with pytest.raises(RowsRefused, match="row 0"):
        await drive(client, "strict", engine=LOCAL)
    assert [record async for record in client.read("copies/#")] == []
    await make(client, job("lax", tmp_path / "rejects"))
    done = await drive(client, "lax", engine=LOCAL)
    assert (done.state, done.records) == ("done", 495)
    numbers = [json.loads(record.payload)["n"] async for record in client.read("copies/#")]
    assert Counter(numbers) == Counter(n for n in range(500) if n % 100)
    lines = (tmp_path / "rejects/rejects-00000000.jsonl").read_text().splitlines()
    assert [json.loads(line)["row"] for line in lines] == [0, 100, 200, 300, 400]


async def test_a_subject_outside_of_the_target_ends_the_job_with_nothing_published(
    client: Client,
) -> None:
    await make(client, replay("outside", ReplayParams(subject="elsewhere/{rest}")))
    with pytest.raises(StagedFileRefused):
        await drive(client, "outside", engine=LOCAL)
    assert (await client.jobs.get("outside")).state == "failed"
    assert await payloads(client, "copies") == []


async def test_an_audit_that_is_not_told_what_to_look_for_is_given_up_with_a_sentence(
    client: Client,
) -> None:
    await make(client, CreateJob("look", "audit", source="orders"))
    with pytest.raises(IllegalJob, match="made with AuditParams"):
        await drive(client, "look", engine=LOCAL)
    assert (await client.jobs.get("look")).state == "failed"
    other = AuditParams.of(await client.topics.describe("copies")).to_json()
    await make(client, CreateJob("other", "audit", source="orders", params=other))
    with pytest.raises(IllegalJob, match="got a storage topic while it was made"):
        await drive(client, "other", engine=LOCAL)


async def test_two_drivers_do_not_work_on_one_job(client: Client) -> None:
    await make(client, replay("two"))
    outcomes = await asyncio.gather(
        drive(client, "two", engine=LOCAL),
        drive(client, "two", engine=LOCAL),
        return_exceptions=True,
    )
    assert sum(not isinstance(each, BaseException) for each in outcomes) == 1
    assert Counter(await payloads(client, "copies")) == Counter(range(RECORDS))
