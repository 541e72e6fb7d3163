"""Exports of dead letters as processes that are killed, or write to the same file."""

import asyncio
import json
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import dss_client
from support.proof_share import only_in_proof
from support.revived_daemon import RevivedDaemon, revived
from support.started_program import StartedProgram, started

RECORDS = 2_000
PATIENCE_S = 60.0
LOOK_AGAIN_S = 0.01

pytestmark = [pytest.mark.slow("several programs"), only_in_proof]


async def fill(client: dss_client.Client) -> None:
    await client.topics.create("orders", partitions=2)
    await client.groups.create("$share/g/orders/#", start="earliest", max_deliver=2)
    async with client.producer("orders") as producer:
        await producer.send_columns(
            payloads=[b"%d" % each for each in range(RECORDS)],
            keys=[b"%d" % each for each in range(RECORDS)],
        )
    async with client.subscribe("$share/g/orders/#") as subscription:
        left = RECORDS
        async for batch in subscription.batches():
            await batch.reject("no such customer")
            left -= len(batch)
            if not left:
                break
        while (await client.groups.describe("g")).group.dead < RECORDS:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_AGAIN_S)


async def export(daemon: RevivedDaemon, file: Path) -> StartedProgram:
    command = ("--endpoint", daemon.endpoint, "dlq", "export", "g", str(file))
    return await started("-m", "dssctl", *command, pipes=["stderr"])


def names_in(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


async def begun(folder: Path, count: int) -> None:
    """Wait until so many exports have begun to write."""
    while len(names_in(folder)) < count:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_AGAIN_S)


async def exported(program: StartedProgram) -> tuple[int, str]:
    _, said = await program.communicate()
    return await program.wait(), said.decode()


def check_whole(file: Path) -> None:
    items = [json.loads(line)["item"] for line in file.read_text().splitlines()]
    assert sorted(int(each["payload"]) for each in items) == [*range(RECORDS)]


async def test_an_export_that_is_killed_is_in_the_way_of_none_and_leaves_no_half_of_a_file(
    tmp_path: Path,
) -> None:
    file = tmp_path / "letters.jsonl"
    async with (
        asyncio.timeout(PATIENCE_S),
        revived() as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await fill(client)
        with daemon.frozen():
            killed = await export(daemon, file)
            await begun(tmp_path, 1)
            killed.send_signal(signal.SIGKILL)
            await killed.wait()
        assert not file.exists()
        code, said = await exported(await export(daemon, file))
        assert (code, f"{RECORDS:,} dead letters" in said) == (0, True), said
        check_whole(file)
        assert (await client.groups.describe("g")).group.dead == RECORDS


async def test_of_two_exports_to_one_file_the_first_has_it_and_the_other_is_told(
    tmp_path: Path,
) -> None:
    file = tmp_path / "letters.jsonl"
    async with (
        asyncio.timeout(PATIENCE_S),
        revived() as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
        AsyncExitStack() as stack,
    ):
        await fill(client)
        with daemon.frozen():
            both = [await export(daemon, file) for _ in range(2)]
            for each in both:
                stack.callback(each.kill)
            await begun(tmp_path, 2)
        told = sorted([await exported(each) for each in both])
        assert [code for code, _ in told] == [0, 74], told
        assert "DSS1151" in told[1][1]
        check_whole(file)
        assert names_in(tmp_path) == [file.name]
