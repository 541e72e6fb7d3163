"""Leader and borrowers over a line that loses, doubles and reorders a fifth of what they say."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import dss_client
from dss_client import DeliveredRecord
from dssd.testing.revived import revived

PROGRAM = Path(__file__).parent / "programs" / "lossy_daemon.py"
FILTER = "$share/g/t/#"
PORTIONS, PORTION = 2, 600
WITHIN_S = 60.0
POLL_S = 0.05


class Totals:
    """What the members were handed together."""

    def __init__(self) -> None:
        self.counts: Counter[bytes] = Counter()
        self.unmarked: list[DeliveredRecord] = []
        self.by_member: Counter[str] = Counter()
        self.changed = asyncio.Event()

    def handler(self, member: str) -> Callable[[DeliveredRecord], Awaitable[None]]:
        async def handle(record: DeliveredRecord) -> None:
            if self.counts[record.payload] and not record.redelivered:
                self.unmarked.append(record)
            self.counts[record.payload] += 1
            self.by_member[member] += 1
            self.changed.set()

        return handle

    async def until(self, distinct: int) -> None:
        """Wait until so many different records were handled."""
        while len(self.counts) < distinct:
            self.changed.clear()
            await self.changed.wait()


async def publish(client: dss_client.Client, first: int) -> None:
    """A frame now and then, so that the members are at work for a while."""
    async with client.producer("t") as producer:
        for number in range(first, first + PORTION):
            await producer.enqueue(b"%d" % number, key=b"%d" % (number % 97))
            if number % 100 == 0:
                await producer.flush()


async def all_acknowledged(client: dss_client.Client) -> None:
    """Wait until everything is acknowledged for good."""
    while (await client.groups.describe("g")).group.lag:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(POLL_S)


class Part:
    """One member, from its joining to its leaving."""

    def __init__(self, client: dss_client.Client, totals: Totals) -> None:
        self._client = client
        self._totals = totals
        self._granted = asyncio.Event()

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Take part in the group; a stream is lent to it when the block begins."""
        subscribing = self._client.subscribe(
            FILTER, start="earliest", on_grant=lambda notice: self._granted.set()
        )
        async with subscribing as subscription, asyncio.TaskGroup() as tasks:
            handler = self._totals.handler(str(self._client.client_id))
            tasks.create_task(subscription.run(handler), name="run")
            await self._granted.wait()
            yield
            await subscription.drain()


@pytest.mark.parametrize("seed", [1, 2])
async def test_two_members_come_to_the_same_totals_over_a_bad_line(seed: int) -> None:
    totals = Totals()
    async with revived(program=(str(PROGRAM), str(seed))) as daemon:
        async with (
            asyncio.timeout(WITHIN_S),
            dss_client.connect("one", endpoint=daemon.endpoint) as first,
            dss_client.connect("two", endpoint=daemon.endpoint) as second,
        ):
            await first.topics.create("t", partitions=6)
            async with Part(first, totals).taken():
                # The other one comes and goes, so that streams change hands.
                for portion in range(PORTIONS):
                    async with Part(second, totals).taken():
                        await publish(first, portion * PORTION)
                        await totals.until((portion + 1) * PORTION)
                await all_acknowledged(first)
        assert await daemon.process.stop() == 0
    assert set(totals.counts) == {b"%d" % number for number in range(PORTIONS * PORTION)}
    assert totals.unmarked == []
    assert set(totals.by_member) == {"one", "two"}
    said = re.search(r"line: (\d+) messages, (\d+) lost", daemon.process.said)
    assert said, daemon.process.said
    messages, lost = map(int, said.groups())
    assert lost > messages * 0.1 > 5
