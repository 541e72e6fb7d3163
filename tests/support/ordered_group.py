"""An ordered group on a daemon that dies and comes back, with the records that it must get."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import dss_client
from dss_client import Client
from support.revived_daemon import REAL, RevivedDaemon, revived

FILTER = "$share/g/orders/#"
PARTITIONS, MAX_DELIVER = 4, 3
DEATHS_MAX = MAX_DELIVER + 4
"""How many members may die of a record before it is dead."""
LOOK_AGAIN_S = 0.05

Row = tuple[bytes | None, bytes]
"""A key and a payload, whose first word is the number of the record."""


@dataclass(frozen=True, slots=True)
class OrderedGroup:
    """The group `g` of the topic `orders`. Built by `ordered_group`."""

    daemon: RevivedDaemon
    client: Client

    async def produce(self, rows: Sequence[Row]) -> None:
        """Append them, in their order."""
        async with self.client.producer("orders") as producer:
            await producer.send_columns(
                payloads=[payload for _, payload in rows], keys=[key for key, _ in rows]
            )

    async def settled(self, dead: int) -> None:
        """Wait until all is acknowledged, except for this many dead letters."""
        while True:
            group = (await self.client.groups.describe("g")).group
            if (group.lag, group.retrying, group.dead) == (0, 0, dead):
                return
            await asyncio.sleep(LOOK_AGAIN_S)

    async def retrying(self, count: int) -> None:
        """Wait until this many are in the retry queues."""
        while (await self.client.groups.describe("g")).group.retrying != count:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_AGAIN_S)

    async def verified(self) -> None:
        """Check that its counts of records match what was appended."""
        sums = await self.client.groups.verify("g", scan=True)
        assert [each.problem for each in sums] == [""] * len(sums)

    async def check_dead(self, dead: Collection[int], poison: Collection[int]) -> None:
        """Check that each of these, and nothing else, is dead, once; poison has its error."""
        letters = [each async for each in self.client.queues.dead_letters("g", whole=True)]
        by_number = {int(each.payload.split()[0]): each for each in letters}
        assert sorted(by_number) == sorted(dead)
        assert len(letters) == len(by_number)
        for number in poison:
            letter = by_number[number]
            # Members may have died with it each time: failures and deaths count together.
            assert letter.cause == "died" or letter.error == f"{number} is poison"


@asynccontextmanager
async def ordered_group(
    rows: Sequence[Row],
    on_dead_letter: str,
    *,
    patience_s: float,
    protocol: str = "borrow",
    program: Sequence[str] = REAL,
) -> AsyncIterator[OrderedGroup]:
    """The group, for a topic with these records."""
    async with (
        asyncio.timeout(patience_s),
        revived(program=program) as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await client.topics.create("orders", partitions=PARTITIONS)
        await client.groups.create(
            FILTER,
            start="earliest",
            ordered=True,
            max_deliver=MAX_DELIVER,
            backoff=[0.01, 0.05],
            on_dead_letter=on_dead_letter,
            ack_wait=30,
            protocol=protocol,
        )
        group = OrderedGroup(daemon, client)
        await group.produce(rows)
        yield group
