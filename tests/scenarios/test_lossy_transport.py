"""Leader and borrowers over a line that loses, doubles and reorders a fifth of what they say."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import dss_client
from dss_client import DeliveredRecord, GrantNotice, Subscription
from support.proof_share import share
from support.recorded_run import Place, Recorded
from support.revived_daemon import revived
from support.settled_group import until_settled
from support.trial_verdict import read

pytestmark = pytest.mark.slow("lost messages wait for leases")


PROGRAM = Path(__file__).parent / "programs" / "lossy_daemon.py"
FILTER = "$share/g/t/#"
PARTITIONS = 6
PORTIONS, PORTION = 2, 600
CONCURRENCY = 16
WITHIN_S = 60.0


class Totals:
    """What the members were handed together."""

    def __init__(self) -> None:
        self.recorded = Recorded("g")
        self.recorded.declare(f"t/0/{partition}" for partition in range(PARTITIONS))
        # Streams are taken back from members that know nothing of it, so records come twice.
        self.recorded.disturb("a bad line")
        self.members: set[str] = set()
        self._places: set[Place] = set()
        self._changed = asyncio.Event()

    async def consume(self, subscription: Subscription, member: str) -> None:
        """Take and acknowledge, many at once, until the subscription is drained."""
        room = asyncio.Semaphore(CONCURRENCY)

        async def acknowledge(record: DeliveredRecord) -> None:
            await self.recorded.acknowledge(member, record)
            room.release()

        async with asyncio.TaskGroup() as acking:
            async for record in subscription:
                self.recorded.handed_out(member, record)
                self.members.add(member)
                self._places.add((record.stream, record.offset))
                self._changed.set()
                acking.create_task(acknowledge(record), name="acknowledge")
                await room.acquire()

    async def until(self, distinct: int) -> None:
        """Wait until so many different records were handed out."""
        while len(self._places) < distinct:
            self._changed.clear()
            await self._changed.wait()

    async def publish(self, client: dss_client.Client, first: int) -> None:
        """A frame now and then, so that the members are at work for a while."""
        async with client.producer("t") as producer:
            for number in range(first, first + PORTION):
                payload = b"%d" % number
                self.recorded.send(payload)
                await producer.enqueue(payload, key=payload[-2:])
                if number % 100 == 0:
                    await producer.flush()


def line_in(said: str) -> str:
    """What the daemon said at its end of the line between leaders and borrowers."""
    [line] = [line for line in said.splitlines() if line.startswith("line: ")]
    return line.removeprefix("line: ")


class Part:
    """One member, from its joining to its leaving."""

    def __init__(self, client: dss_client.Client, totals: Totals) -> None:
        self._client = client
        self._totals = totals
        self._granted = asyncio.Event()

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Take part in the group; a stream is lent to it when the block begins."""
        subscribing = self._client.subscribe(FILTER, start="earliest", on_grant=self._on_grant)
        async with subscribing as subscription, asyncio.TaskGroup() as tasks:
            consuming = self._totals.consume(subscription, str(self._client.client_id))
            tasks.create_task(consuming, name="consume")
            await self._granted.wait()
            yield
            await subscription.drain()

    def _on_grant(self, notice: GrantNotice) -> None:
        self._totals.recorded.granted(notice)
        self._granted.set()


@pytest.mark.parametrize("seed", share([1], [1, 2]))
async def test_two_members_come_to_the_same_totals_over_a_bad_line(
    seed: int, tmp_path: Path
) -> None:
    totals = Totals()
    async with revived(program=(str(PROGRAM), str(seed))) as daemon:
        async with (
            asyncio.timeout(WITHIN_S),
            dss_client.connect("one", endpoint=daemon.endpoint) as first,
            dss_client.connect("two", endpoint=daemon.endpoint) as second,
        ):
            await first.topics.create("t", partitions=PARTITIONS)
            async with Part(first, totals).taken():
                # The other one comes and goes, so that streams change hands.
                for portion in range(PORTIONS):
                    async with Part(second, totals).taken():
                        await totals.publish(first, portion * PORTION)
                        await totals.until((portion + 1) * PORTION)
                await until_settled(first, "g", patience_s=WITHIN_S)
            log, standings = await read(first, "t"), await first.grants.list("g")
        assert await daemon.process.stop() == 0
    totals.recorded.judge(tmp_path / "history.jsonl", log, standings)
    assert totals.members == {"one", "two"}
    said = daemon.process.said
    line = {what: int(count) for count, what in re.findall(r"(\d+) (\w+)(?:,|$)", line_in(said))}
    assert line["messages"] > 50, said
    for fault in ("lost", "doubled", "late"):
        assert line[fault] > line["messages"] * 0.1, said
