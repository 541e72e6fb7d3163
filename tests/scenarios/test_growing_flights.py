"""Real flights in an ordered group: its topic grows from 6 to 12 partitions and on to 24, and its
shards from 3 to 6, while records come and fail and all that runs is killed. Then the group is
rewound over both switches, and that is undone halfway. What is judged is what the handlers wrote:
each aircraft's flights in their order, and all of them.
"""

import asyncio
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet
import pytest

import dss_client
from dss_client import Client
from dss_client.changes import Change, GrowTopic, MoveCursors, SetShardCount, Undo
from dss_core.errors import DssError
from dss_core.routing import Router, key_hash, partition_of
from support.ordered_members import Told, done, inversions, members
from support.proof_share import share
from support.revived_daemon import revived
from support.started_program import StartedProgram, started

FLIGHTS = Path(__file__).resolve().parents[2] / "examples" / "flights.parquet"
PRODUCER = Path(__file__).parent / "programs" / "flight_producer.py"
GROUP = "delays"
FILTER = f"$share/{GROUP}/flights/#"
COUNT = share(1_500, 336_776)
PRODUCERS = 2
CHAIN = {0: (6, 1), 1: (12, 2), 2: (24, 4)}
"""Partitions and factor, by storage topic."""
PATIENCE_S = share(60.0, 1_800.0)


async def producing(endpoint: str, part: int) -> StartedProgram:
    arguments = (str(PRODUCER), endpoint, str(FLIGHTS), str(COUNT), str(part), str(PRODUCERS))
    return await started(*arguments, pipes=["stdin"])


async def sent(client: Client, share: float, *producers: StartedProgram) -> None:
    """Let producers go on; return when half of what they may send is stored."""
    before, allowed = await records(client), round(share * COUNT)
    for each in producers:
        assert each.stdin is not None
        each.stdin.write(b"%d\n" % allowed)
    while True:
        if await records(client) >= (before + allowed) // 2:
            return
        await asyncio.sleep(0.01)


async def records(client: Client) -> int:
    return next(each.records for each in await client.topics.list() if each.topic.name == "flights")


async def applied(client: Client, change: Change, operation_id: str) -> int:
    """Make a change once, by its id, whatever the daemon dies of meanwhile; its number."""
    plan = await client.operations.plan(change)
    while True:
        with suppress(DssError):
            row = await client.operations.apply(plan, operation_id=operation_id)
            assert (await client.operations.ended(row.number)).state == "done"
            return row.number
        await asyncio.sleep(0.05)


async def settled(client: Client) -> None:
    """Wait until nothing is left to do."""
    while True:
        group = (await client.groups.describe(GROUP)).group
        if (group.lag, group.retrying) == (0, 0):
            return
        await asyncio.sleep(0.05)


async def rewound_and_undone(endpoint: str, client: Client) -> Told:
    """All comes again from the first storage topic on, until that is taken back; what was told."""
    again = Told()
    number = await applied(client, MoveCursors(GROUP, "rewind", to="earliest"), "again")
    async with members(endpoint, FILTER, "kind", again):
        await again.reaches(COUNT // 4)
        await applied(client, Undo(number), "not again")
        await settled(client)
    return again


def aircraft() -> list[str]:
    column = pyarrow.parquet.read_table(FLIGHTS).slice(0, COUNT)["tailnum"]
    return [tailnum or "" for tailnum in column.to_pylist()]


async def check_log(client: Client, keys: list[str]) -> None:
    """Each flight is there once, where its key goes, behind the one before of its aircraft."""
    found = []
    async for record in client.read("flights/#", follow=False):
        _, of, at = record.stream.split("/")
        found.append((int(of), record.offset, int(at), int(record.payload.split()[0])))
    assert sorted(number for *_, number in found) == list(range(COUNT))
    last: dict[str, int] = {}
    for ordinal, _, partition, number in sorted(found):
        key = keys[number]
        assert partition == partition_of(Router.BLOCK, key_hash(key.encode()), *CHAIN[ordinal])
        assert last.get(key, -1) < number
        last[key] = number
    assert {ordinal for ordinal, *_ in found} == set(CHAIN)


@pytest.mark.slow("producers, members and the daemon die, and are started again")
async def test_flights_come_in_order_by_aircraft_while_topic_and_shards_grow() -> None:
    keys, told = aircraft(), Told()
    async with (
        asyncio.timeout(PATIENCE_S),
        revived() as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await client.topics.create("flights", partitions=6)
        await client.groups.create(
            FILTER, start="earliest", ordered=True, max_deliver=5, backoff=[0.01, 0.1], shards=3
        )
        async with members(daemon.endpoint, FILTER, "cruel", told) as living:
            first, second = [await producing(daemon.endpoint, part) for part in range(PRODUCERS)]
            await sent(client, 0.4, first, second)
            growing = asyncio.create_task(applied(client, GrowTopic("flights", 12), "to 12"))
            await sent(client, 0.5, first, second)
            living["m0"].kill()
            await daemon.revive()
            await growing
            cutting = asyncio.create_task(applied(client, SetShardCount(GROUP, 6), "6 shards"))
            living["m1"].kill()
            await sent(client, 0.8, first, second)
            await cutting
            first.kill()
            await first.wait()
            first = await producing(daemon.endpoint, 0)
            await applied(client, GrowTopic("flights", 24), "to 24")
            await sent(client, 1, first, second)
            assert [await first.wait(), await second.wait()] == [0, 0]
            await settled(client)
            standing = await client.groups.shards(GROUP)
            assert (standing.even, standing.aligned) == (True, True)
            assert [len(each.holders) for each in standing.each] == [1] * 6
        again = await rewound_and_undone(daemon.endpoint, client)
        assert inversions(again, keys) == []
        assert COUNT // 4 <= len(done(again)) < COUNT
        assert done(told) == set(range(COUNT))
        assert inversions(told, keys) == []
        await check_log(client, keys)
        sums = await client.groups.verify(GROUP, scan=True)
        assert [each.problem for each in sums] == [""] * (6 + 12 + 24)
