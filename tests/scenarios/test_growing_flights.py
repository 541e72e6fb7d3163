"""Real flights into a topic that grows from 6 to 12 partitions while all of it is killed."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import dss_client
from dss_client import Client
from dss_client.changes import GrowTopic
from dss_core.errors import DssError
from dss_core.routing import Router, key_hash, partition_of
from support.proof_share import share
from support.revived_daemon import revived
from support.settled_group import until_settled
from support.started_program import StartedProgram, started

FLIGHTS = Path(__file__).resolve().parents[2] / "examples" / "flights.parquet"
PRODUCER = Path(__file__).parent / "programs" / "flight_producer.py"
FILTER = "$share/delays/flights/#"
COUNT = share(6_000, 336_776)
PRODUCERS = 2
PATIENCE_S = share(60.0, 900.0)


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


async def consume(endpoint: str, taken: set[int]) -> None:
    """A member, which another follows where it is cancelled."""
    async with (
        dss_client.connect(endpoint=endpoint) as client,
        client.subscribe(FILTER) as subscription,
    ):
        async for record in subscription:
            taken.add(json.loads(record.payload)["number"])
            await record.ack()


@asynccontextmanager
async def members(endpoint: str, count: int) -> AsyncIterator[set[int]]:
    taken: set[int] = set()
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(consume(endpoint, taken)) for _ in range(count)]
        yield taken
        for each in running:
            each.cancel()


async def grown(client: Client, partitions: int) -> None:
    """Grow it, whatever the daemon dies of meanwhile: one operation, by its id."""
    plan = await client.operations.plan(GrowTopic("flights", partitions))
    while True:
        with suppress(DssError):
            row = await client.operations.apply(plan, operation_id=f"grow to {partitions}")
            assert (await client.operations.ended(row.number)).state == "done"
            return
        await asyncio.sleep(0.05)


async def in_log(client: Client) -> list[tuple[str, int, int, str]]:
    found = []
    async for record in client.read("flights/#", follow=False):
        flight = json.loads(record.payload)
        found.append((record.stream, record.offset, flight["number"], flight["tailnum"]))
    return found


async def test_flights_stay_in_order_by_aircraft_while_their_topic_grows() -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        revived() as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await client.topics.create("flights", partitions=6)
        await client.groups.create(FILTER, start="earliest")
        async with members(daemon.endpoint, 2) as taken:
            first, second = [await producing(daemon.endpoint, part) for part in range(PRODUCERS)]
            await sent(client, 0.4, first, second)
            growing = asyncio.create_task(grown(client, 12))
            await sent(client, 0.5, first, second)
            await daemon.revive()
            await growing
            await sent(client, 0.8, first, second)
            first.kill()
            await first.wait()
            first = await producing(daemon.endpoint, 0)
            await grown(client, 24)
            await sent(client, 1, first, second)
            assert [await first.wait(), await second.wait()] == [0, 0]
            await until_settled(client, "delays", patience_s=PATIENCE_S)
        assert taken == set(range(COUNT))
        check_order(await in_log(client))
        sums = await client.groups.verify("delays", scan=True)
        assert [each.problem for each in sums] == [""] * (6 + 12 + 24)


def check_order(found: list[tuple[str, int, int, str]]) -> None:
    assert sorted(number for _, _, number, _ in found) == list(range(COUNT))
    shapes = {0: (6, 1), 1: (12, 2), 2: (24, 4)}
    last: dict[str, int] = {}
    for stream, _, number, tailnum in sorted(found, key=lambda one: (one[0].split("/")[1], one[1])):
        _, ordinal, partition = stream.split("/")
        hashed = key_hash((tailnum or "").encode())
        assert int(partition) == partition_of(Router.BLOCK, hashed, *shapes[int(ordinal)])
        assert last.get(tailnum, -1) < number, (stream, number)
        last[tailnum] = number
    assert {stream.split("/")[1] for stream, *_ in found} == {"0", "1", "2"}
