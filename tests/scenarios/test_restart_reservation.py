"""After a restart of the daemon each member goes on with its streams, behind its own acks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import dss_client
from dss_client.testing.member_process import MemberProcess, member, until_together
from dssd.testing.revived import RevivedDaemon, revived

PROGRAM = Path(__file__).parent / "programs" / "member.py"
FILTER = "$share/g/t/#"
PARTITIONS = 6
ACK_AGE_S = 0.1


async def publish(daemon: RevivedDaemon, records: int) -> None:
    """Many keys, so that every stream gets some."""
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer("t") as producer,
    ):
        numbers = range(records)
        await producer.send_columns(
            payloads=[b"%d" % number for number in numbers],
            keys=[b"%d" % number for number in numbers],
        )


@asynccontextmanager
async def two_members(daemon: RevivedDaemon) -> AsyncIterator[tuple[MemberProcess, MemberProcess]]:
    """Two that share the streams evenly."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create("t", partitions=PARTITIONS)
        await client.groups.create(FILTER, start="earliest")
    async with (
        member(PROGRAM, daemon.endpoint, "one", FILTER) as one,
        member(PROGRAM, daemon.endpoint, "two", FILTER) as two,
    ):
        for each in (one, two):
            await each.holds(PARTITIONS // 2)
        yield one, two


async def test_each_member_gets_its_streams_back_and_nothing_acknowledged_comes_again() -> None:
    records = 1_200
    async with revived() as daemon, two_members(daemon) as (one, two):
        await publish(daemon, records)
        both = (one, two)
        await until_together(both, lambda: len(one.records) + len(two.records) == records)
        # The age of an ack is what this is about: no condition tells it.
        await asyncio.sleep(ACK_AGE_S)
        before = [set(each.streams) for each in both]
        granted = [len(each.granted) for each in both]
        await daemon.revive()
        await publish(daemon, records)
        await until_together(both, lambda: len(one.records) + len(two.records) >= 2 * records)
        assert [set(each.streams) for each in both] == before
        moved = [each.granted[count:] for each, count in zip(both, granted, strict=True)]
        assert [sorted(streams) for streams in moved] == [sorted(streams) for streams in before]
        assert len({record.place for each in both for record in each.records}) == 2 * records
        assert len(one.records) + len(two.records) == 2 * records, "an acked record came again"
        assert [await each.leave() for each in both] == [0, 0]


async def test_the_streams_of_a_member_that_stays_away_go_to_the_other() -> None:
    records = 600
    async with revived() as daemon, two_members(daemon) as (one, two):
        await daemon.kill()
        await two.kill()
        await daemon.start()
        await publish(daemon, records)
        await one.until(lambda: len({record.place for record in one.records}) == records)
        assert await one.leave() == 0
