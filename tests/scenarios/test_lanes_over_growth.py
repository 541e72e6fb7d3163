"""A group with queues on a topic that grows twice, while records fail and processes are killed."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

import dss_client
from dss_client import Client
from dss_client.changes import GrowTopic, RedriveDeadLetters
from support.proof_share import share
from support.revived_daemon import RevivedDaemon, revived
from support.started_program import StartedProgram, started

PROGRAM = Path(__file__).parent / "programs" / "failing_flight_member.py"
FILTER = "$share/g/orders/#"
GENERATIONS = (2, 5, 3)
"""Partitions, one growth after the other."""
EACH = share(210, 5_000)
"""Records of a generation."""
COUNT = EACH * len(GENERATIONS)
DEAD = {at for at in range(COUNT) if at % 101 == 0 or at % 103 == 0}
"""By the rule of the members."""
FAILS_BY_RULE, KIND = "no such aeroplane", "none"
PATIENCE_S = share(30.0, 300.0)

pytestmark = pytest.mark.slow("several lives of a daemon, and of members")


Strike = Callable[[], Awaitable[None]]


class Members:
    """Processes that take records, each started again when it dies."""

    def __init__(self, endpoint: str, rule: str) -> None:
        self._start = endpoint, rule
        self._living: dict[str, StartedProgram] = {}
        self.done: Counter[int] = Counter()
        self.told = asyncio.Condition()

    async def live(self, name: str) -> None:
        endpoint, rule = self._start
        while True:
            process = await started(str(PROGRAM), endpoint, name, FILTER, rule, pipes=["stdout"])
            self._living[name] = process
            try:
                await self._hear(process)
                await process.wait()
            finally:
                process.kill()
                await process.wait()

    async def _hear(self, process: StartedProgram) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            what, number = line.split()
            async with self.told:
                self.done[int(number)] += what == b"done"
                self.told.notify_all()

    async def have_done(self, records: int) -> None:
        async with self.told:
            await self.told.wait_for(lambda: len(+self.done) >= records)

    async def kill(self, name: str) -> None:
        self._living[name].kill()


@asynccontextmanager
async def members(daemon: RevivedDaemon, rule: str) -> AsyncIterator[Members]:
    found = Members(daemon.endpoint, rule)
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(found.live(name)) for name in ("ann", "bob")]
        yield found
        for each in running:
            each.cancel()


async def publish(client: Client, generation: int) -> None:
    numbers = range(EACH * generation, EACH * (generation + 1))
    async with client.producer("orders") as producer:
        await producer.send_columns(
            payloads=[json.dumps({"number": at, "tailnum": ""}).encode() for at in numbers],
            keys=[b"%d" % at for at in numbers],
        )


async def grow(client: Client, partitions: int, strike: Strike) -> None:
    """Grow the topic, by an operation under which something dies as soon as it has begun."""
    begun = await client.operations.apply(GrowTopic("orders", partitions), reason="more of it")
    await strike()
    assert (await client.operations.ended(begun.number)).state == "done"


async def settled(client: Client, dead: int) -> None:
    """All records are acknowledged, or dead as often as that; old streams are given back."""
    while True:
        group = (await client.groups.describe("g")).group
        if (group.lag, group.retrying, group.dead) == (0, 0, dead):
            return
        await asyncio.sleep(0.05)


async def verified(client: Client) -> None:
    """Each record is counted once, over all generations."""
    sums = await client.groups.verify("g", scan=True)
    assert [each.problem for each in sums] == [""] * len(sums)
    main = [each for each in sums if each.stream.startswith("orders/")]
    assert len({each.stream for each in main}) == sum(GENERATIONS)
    assert sum(each.fates.acked + each.fates.retried for each in main) == COUNT


async def finished(client: Client) -> None:
    """The lanes of sealed storage topics are over, though dead letters stay in them."""
    sealed = sum(GENERATIONS[:-1])
    while True:
        over = [each for each in await client.grants.list("g") if each.state == "finished"]
        if len(over) == sealed:
            assert {each.stream.split("/")[1] for each in over} == {"0", "1"}
            return
        await asyncio.sleep(0.05)


async def test_a_record_is_done_or_dead_once_in_whatever_generation_it_failed() -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        revived() as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await client.topics.create("orders", partitions=GENERATIONS[0])
        await client.groups.create(
            FILTER, start="earliest", max_deliver=3, backoff=[0.05, 0.2], ack_wait=30
        )
        await publish(client, 0)
        async with members(daemon, FAILS_BY_RULE) as taking:
            strikes: list[Strike] = [daemon.revive, partial(taking.kill, "ann")]
            for generation, strike in enumerate(strikes, start=1):
                await taking.have_done(EACH * (2 * generation - 1) // 2)
                await grow(client, GENERATIONS[generation], strike)
                await publish(client, generation)
            await settled(client, len(DEAD))
            await finished(client)
        assert taking.done.keys() >= set(range(COUNT)) - DEAD
        assert not +Counter({at: taking.done[at] for at in DEAD})
        letters = [each async for each in client.queues.dead_letters("g", whole=True)]
        assert sorted(json.loads(each.payload)["number"] for each in letters) == sorted(DEAD)
        assert {each.stream.split("/")[1] for each in letters} == {"0", "1", "2"}
        await verified(client)

        await client.operations.apply(RedriveDeadLetters("g"), reason="mended")
        async with members(daemon, KIND) as kind:
            await settled(client, 0)
            await finished(client)
        assert kind.done == Counter(DEAD)
        await verified(client)
