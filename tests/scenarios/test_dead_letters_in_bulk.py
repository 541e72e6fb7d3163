"""Replays and exports of what lies dead in a group, on a real daemon."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dss_client
from dss_api.v1 import jobs_pb2
from dss_bulk.driver import drive
from dss_bulk.local_engine import LocalEngine
from dss_bulk.next_export import next_export
from dss_client import Client
from dss_client.changes import CreateJob, DiscardDeadLetters, GrowTopic, RemoveGroup
from dss_core.dead_origin import ATTEMPT, ERROR
from dss_core.dead_origin import GROUP as IN_GROUP
from dss_core.errors import (
    DssError,
    ExportBroken,
    GroupNotFound,
    IllegalJob,
    NoneIsDead,
    NothingDead,
    TopicNotInGroup,
)
from support.daemon_process import running, short_directory
from support.dead_letters import GROUP, dead, grouped, key_of, member, produce, rejected

FIRST, SECOND = 60, 120
DISCARDED = (6, 7, 30)
LEFT = [number for number in range(SECOND) if number not in DISCARDED]
LATER = range(SECOND, SECOND + 4)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Of a daemon with dead letters of two storage topics, of which some were given up."""
    with short_directory() as home:
        endpoint = f"unix:{home / 's'}"
        async with (
            running("--data-dir", str(home / "d"), "--listen", endpoint),
            dss_client.connect(endpoint=endpoint) as connected,
        ):
            await grouped(connected)
            await produce(connected, range(FIRST))
            await rejected(connected, range(FIRST))
            await applied(connected, GrowTopic("orders", 3))
            await produce(connected, range(FIRST, SECOND))
            yield connected


async def applied(client: Client, change: object) -> None:
    begun = await client.operations.apply(change, reason="a test")  # type: ignore[arg-type]
    assert (await client.operations.ended(begun.number)).state == "done"


async def discarded(client: Client, numbers: Sequence[int]) -> None:
    async for each in client.queues.dead_letters(GROUP, whole=True):
        if int(each.payload) in numbers:
            change = DiscardDeadLetters(GROUP, stream=each.stream, offset=each.offset)
            await applied(client, change)


async def made(client: Client, name: str, target: str) -> None:
    await client.topics.create(target, partitions=4)
    change = CreateJob(
        name, "replay", source="orders", dead_letters="billing", target=target, chunk_bytes=64 << 10
    )
    plan = await client.operations.plan(change)
    assert "They stay where they are" in " ".join(plan.effects)
    await client.operations.apply(plan, reason="a test")


async def check_copies(client: Client, target: str, numbers: Sequence[int]) -> None:
    by_key: defaultdict[bytes | None, list[int]] = defaultdict(list)
    async for record in client.read(f"{target}/#"):
        number = int(record.payload)
        by_key[record.key].append(number)
        assert record.key == key_of(number)
        stream, _, offset = (record.header("dss-origin") or b"").decode().partition("@")
        [origin] = [
            each async for each in client.read(stream=stream, start=f"={offset}", records_max=1)
        ]
        assert (origin.payload, origin.key) == (record.payload, record.key)
        assert record.subject == f"{target}/eu"
        assert record.header("n") == b"own"
        assert record.header(ERROR) == b"no price for %d" % number
        assert (record.header(IN_GROUP), record.header(ATTEMPT)) == (GROUP.encode(), b"1")
        assert record.header("dss-lane") is None
    copied = [number for of_key in by_key.values() for number in of_key]
    assert Counter(copied) == Counter(numbers)
    assert all(of_key == sorted(of_key) for of_key in by_key.values())


async def test_a_replay_copies_what_lay_dead_when_it_was_planned_and_leaves_it(
    client: Client,
) -> None:
    async with member(client, range(FIRST, SECOND)):
        await discarded(client, DISCARDED)
        await made(client, "again", "mended")
        await made(client, "sent", "sent")
        # What dies or is given up now is another matter: the jobs have what they were planned on.
        await produce(client, LATER)
        await discarded(client, (0,))
    await rejected(client, LATER)
    removal = await client.operations.plan(RemoveGroup(GROUP))
    assert "The job again reads its dead letters, and cannot go on." in removal.effects
    # One of a version before does not say that it knows dead letters.
    stub = client._connection.jobs
    with pytest.raises(DssError, match="a driver of a version before"):
        await client._connection.ask(
            stub.Acquire, jobs_pb2.AcquireJobRequest(job="again", driver="old", token=b"t" * 16)
        )
    for name, in_place in (("again", True), ("sent", False)):
        job = await drive(client, name, engine=LocalEngine(in_place=in_place))
        assert (job.state, job.records, job.dead_letters) == ("done", len(LEFT), GROUP)
    await check_copies(client, "mended", LEFT)
    await check_copies(client, "sent", LEFT)
    assert await dead(client) == [*LEFT[1:], *LATER]
    removal = await client.operations.plan(RemoveGroup(GROUP))
    assert not any("reads its dead letters" in each for each in removal.effects)


async def exported(client: Client, name: str, folder: Path) -> pa.Table | None:
    change = CreateJob(name, "export", source="orders", dead_letters="billing")
    found = await next_export(client, change, folder)
    if found.change is None:
        return None
    await client.operations.apply(found.change, reason="a test")
    job = await drive(client, name, engine=LocalEngine())
    assert job.state == "done"
    return await asyncio.to_thread(_of_newest_run, folder)


def _of_newest_run(folder: Path) -> pa.Table:
    run = max(folder.glob("run=*"))
    return pa.concat_tables([pq.read_table(each) for each in sorted(run.rglob("*.parquet"))])


def numbers_in(table: pa.Table | None) -> list[int]:
    assert table is not None
    return sorted(map(int, table["payload"].to_pylist()))


async def test_an_export_has_why_they_are_dead_and_the_next_one_what_died_since(
    client: Client, tmp_path: Path
) -> None:
    await rejected(client, range(FIRST, SECOND))
    await discarded(client, DISCARDED)
    table = await exported(client, "one", tmp_path)
    assert numbers_in(table) == LEFT
    assert table is not None
    [row] = [each for each in table.to_pylist() if each["payload"] == b"61"]
    assert (row["stream"][:9], row["key"], row["headers"]) == (
        "orders/1/", key_of(61), [{"name": "n", "value": b"own"}],
    )  # fmt: skip
    assert (row["attempt"], row["cause"], row["error"]) == (1, "rejected", "no price for 61")
    assert row["entered_at"] >= row["append_time"]
    assert await exported(client, "none", tmp_path) is None
    await discarded(client, (1, 2))
    await produce(client, LATER)
    await rejected(client, LATER)
    assert numbers_in(await exported(client, "two", tmp_path)) == [*LATER]
    with pytest.raises(ExportBroken, match="dead letters of"):
        await next_export(client, CreateJob("all", "export", source="orders"), tmp_path)


async def test_what_has_no_dead_letters_is_refused_with_what_would_help(client: Client) -> None:
    await client.topics.create("other", partitions=1)
    await client.groups.create("$share/plain/orders/#")
    await client.groups.create("$share/well/other/#", max_deliver=2)
    asked = CreateJob("x", "replay", source="orders", target="other", dead_letters="plain")
    wrong: tuple[tuple[dict[str, Any], type[DssError], str], ...] = (
        ({"dead_letters": "nobody"}, GroupNotFound, "nobody"),
        ({}, NoneIsDead, "groups edit 'plain@orders/#' --max-deliver 5"),
        ({"dead_letters": "well"}, TopicNotInGroup, "It reads: other"),
        (
            {"dead_letters": "well", "source": "other", "target": "orders"},
            NothingDead,
            "dssctl dlq errors 'well@other/#'",
        ),
        ({"dead_letters": "billing", "end_us": 1}, NothingDead, "of that time"),
        (
            {"dead_letters": "billing", "kind": "audit", "target": ""},
            IllegalJob,
            "only a replay, an export or a transform reads dead letters",
        ),
    )
    for fields, error, helps in wrong:
        with pytest.raises(error) as refused:
            await client.operations.plan(CreateJob(**{**_fields(asked), **fields}))
        assert helps in f"{refused.value.message} {refused.value.hint_text}"


def _fields(change: CreateJob) -> dict[str, Any]:
    names = ("name", "kind", "source", "target", "dead_letters")
    return {name: getattr(change, name) for name in names}
