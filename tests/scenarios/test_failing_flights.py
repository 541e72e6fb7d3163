"""Real flights through a group with queues: some fail, some are refused, one aeroplane kills."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import dss_client
from dss_client import Client, Group
from dss_client.changes import RedriveDeadLetters
from support.proof_share import share
from support.revived_daemon import RevivedDaemon, revived
from support.started_program import StartedProgram, started

FLIGHTS = Path(__file__).resolve().parents[2] / "examples" / "flights.parquet"
PROGRAM = Path(__file__).parent / "programs" / "failing_flight_member.py"
FILTER = "$share/delays/flights/#"
COUNT = share(3_000, 336_776)
PARTITIONS, MEMBERS, MAX_DELIVER = 4, 3, 4
KILLER = share("N521US", "N807AW")
"""It flew a few times among those."""
DEATHS_MAX = MAX_DELIVER + 4
PATIENCE_S = share(60.0, 600.0)

Told = dict[str, Counter[int]]
"""By what became of them, how often each flight was given to a handler."""


def flights() -> list[dict[str, Any]]:
    rows = pyarrow.parquet.read_table(FLIGHTS).slice(0, COUNT).to_pylist()
    return [{"number": number, **row} for number, row in enumerate(rows)]


def dead_by_rule(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[int, str]]:
    for row in rows:
        number = row["number"]
        if row["tailnum"] == KILLER:
            yield number, "died"
        elif number % 101 == 0:
            yield number, "refused"
        elif number % 103 == 0:
            yield number, "rejected"


async def living(endpoint: str, name: str, tailnum: str, told: Told) -> None:
    """A member that is started again whenever it dies."""
    while True:
        process = await started(str(PROGRAM), endpoint, name, FILTER, tailnum, pipes=["stdout"])
        try:
            await heard(process, told)
            await process.wait()
        finally:
            process.kill()
            await process.wait()


async def heard(process: StartedProgram, told: Told) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        what, number = line.split()
        told.setdefault(what.decode(), Counter())[int(number)] += 1


@asynccontextmanager
async def members(daemon: RevivedDaemon, tailnum: str) -> AsyncIterator[Told]:
    told: Told = {"done": Counter(), "died": Counter()}
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(living(daemon.endpoint, f"m{each}", tailnum, told))
            for each in range(MEMBERS)
        ]
        yield told
        for each in running:
            each.cancel()


async def settled(client: Client, dead: int) -> Group:
    """The group, once all is acknowledged, or dead as often as that."""
    while True:
        group = (await client.groups.describe("delays")).group
        if (group.lag, group.retrying, group.dead) == (0, 0, dead):
            return group
        await asyncio.sleep(0.05)


async def fill(client: Client, rows: Sequence[dict[str, Any]]) -> None:
    await client.topics.create("flights", partitions=PARTITIONS)
    await client.groups.create(
        FILTER, start="earliest", max_deliver=MAX_DELIVER, backoff=[0.01, 0.02, 0.05], ack_wait=30
    )
    async with client.producer("flights") as producer:
        await producer.send_columns(
            payloads=[json.dumps(row).encode() for row in rows],
            keys=[(row["tailnum"] or "").encode() for row in rows],
        )


@pytest.mark.slow("members die, and are started again, tens of times")
async def test_flights_are_done_or_dead_by_the_rule_and_redriven_to_the_last_one() -> None:
    rows = flights()
    dead = dict(dead_by_rule(rows))
    assert "died" in dead.values()
    async with (
        asyncio.timeout(PATIENCE_S),
        revived() as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await fill(client, rows)
        async with members(daemon, KILLER) as told:
            await settled(client, len(dead))
        assert told["done"].keys() == {row["number"] for row in rows} - dead.keys()
        assert told["died"].keys() == {each for each, why in dead.items() if why == "died"}
        assert max(told["died"].values()) <= DEATHS_MAX
        letters = {
            json.loads(each.payload)["number"]: each
            async for each in client.queues.dead_letters("delays", whole=True)
        }
        assert letters.keys() == dead.keys()
        # Members may have died with what fails each time: failures and deaths count together.
        causes = {number: each.cause for number, each in letters.items()}
        assert all(why in (dead[at], "died") for at, why in causes.items())
        assert sum(why != dead[at] for at, why in causes.items()) <= len(dead) // 100
        assert {each.attempt for each in letters.values() if each.cause == "refused"} == {4}
        for number, each in letters.items():
            assert each.cause == "died" or f"flight {number} " in each.error
        await verified(client)

        plan = await client.operations.plan(RedriveDeadLetters("delays"))
        await client.operations.apply(plan, reason="mended")
        async with members(daemon, "none") as kind:
            await settled(client, 0)
        assert kind["done"].keys() == dead.keys()
        await verified(client)


async def verified(client: Client) -> None:
    """What the group is done with adds up with what was appended."""
    sums = await client.groups.verify("delays", scan=True)
    assert [each.problem for each in sums] == [""] * len(sums)
    main = [each for each in sums if each.stream.startswith("flights/")]
    assert sum(each.fates.acked + each.fates.retried for each in main) == COUNT
