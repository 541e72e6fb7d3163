"""After a restart of the daemon each member goes on with its streams, behind its own acks."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import dss_client
from dssd.data_directory import STORE_NAME
from dssd.store.paging import scan_all
from dssd.store.rows import ProgressRow
from dssd.store.sqlite import SqliteStore
from support.daemon_process import short_directory
from support.member_process import MemberProcess, member, until_together
from support.proof_share import share
from support.recorded_run import SYNC_EVERY, Recorded
from support.revived_daemon import RevivedDaemon, revived
from support.trial_verdict import read

pytestmark = pytest.mark.slow("reserved streams wait for their members")


PROGRAM = Path(__file__).parent / "programs" / "member.py"
FILTER = "$share/g/t/#"
PARTITIONS = 6
PATIENCE_S = 60.0
POLL_S = 0.05
PROTOCOLS = pytest.mark.parametrize("protocol", share(["borrow"], ["borrow", "lease"]))


def recording() -> Recorded:
    """What is known of the group, from its beginning."""
    recorded = Recorded("g")
    recorded.declare(f"t/0/{partition}" for partition in range(PARTITIONS))
    return recorded


async def publish(
    daemon: RevivedDaemon, recorded: Recorded, records: int, *, first: int = 0
) -> None:
    """Many keys, so that every stream gets some."""
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer("t") as producer,
    ):
        payloads = [b"%d" % number for number in range(first, first + records)]
        recorded.send(*payloads)
        for ack in await producer.send_columns(payloads=payloads, keys=payloads):
            recorded.stored(ack)


async def stored_acks(daemon: RevivedDaemon) -> int:
    """How many acks the store has that a daemon would find if this one were killed now."""
    with short_directory() as directory:
        for file in daemon.data.glob(f"{STORE_NAME}*"):
            shutil.copy(file, directory)
        store = await SqliteStore.open(directory / STORE_NAME)
        try:
            return sum(found.row.floor for found in await scan_all(store, ProgressRow))
        finally:
            await store.close()


async def until_stored(daemon: RevivedDaemon, acks: int) -> None:
    """Wait until so many acks are stored, with nobody asking for that."""
    async with asyncio.timeout(PATIENCE_S):
        # A commit of another process has no event here.
        while await stored_acks(daemon) < acks:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)


async def judge(daemon: RevivedDaemon, recorded: Recorded, path: Path) -> None:
    """All have left: what they saw must fit together."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        recorded.judge(path, await read(client, "t"), await client.grants.list("g"))


@asynccontextmanager
async def two_members(
    daemon: RevivedDaemon, protocol: str
) -> AsyncIterator[tuple[MemberProcess, MemberProcess]]:
    """Two that share the streams evenly."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create("t", partitions=PARTITIONS)
        await client.groups.create(FILTER, start="earliest", protocol=protocol)
    habits = (FILTER, "--sync", f"{SYNC_EVERY}")
    async with (
        member(PROGRAM, daemon.endpoint, "one", *habits) as one,
        member(PROGRAM, daemon.endpoint, "two", *habits) as two,
    ):
        for each in (one, two):
            await each.holds(PARTITIONS // 2)
        yield one, two


@PROTOCOLS
async def test_each_member_gets_its_streams_back_and_nothing_acknowledged_comes_again(
    protocol: str, tmp_path: Path
) -> None:
    records = 1_200
    recorded = recording()
    async with revived() as daemon, two_members(daemon, protocol) as (one, two):
        await publish(daemon, recorded, records)
        both = (one, two)
        await until_together(both, lambda: len(one.records) + len(two.records) == records)
        await until_stored(daemon, records)
        before = [set(each.streams) for each in both]
        granted = [len(each.granted) for each in both]
        recorded.disturb("the daemon is killed")
        await daemon.revive()
        await publish(daemon, recorded, records, first=records)
        await until_together(both, lambda: len(one.records) + len(two.records) >= 2 * records)
        assert [set(each.streams) for each in both] == before
        moved = [each.granted[count:] for each, count in zip(both, granted, strict=True)]
        assert [sorted(streams) for streams in moved] == [sorted(streams) for streams in before]
        # Whoever leaves waits for its last acks only so long, and then they may be redelivered.
        await until_stored(daemon, 2 * records)
        assert [await each.leave() for each in both] == [0, 0]
        assert len(one.records) + len(two.records) == 2 * records, "an acked record came again"
        recorded.heard("one", one.lines)
        recorded.heard("two", two.lines)
        await judge(daemon, recorded, tmp_path / "history.jsonl")


@PROTOCOLS
async def test_the_streams_of_a_member_that_stays_away_go_to_the_other(
    protocol: str, tmp_path: Path
) -> None:
    records = 600
    recorded = recording()
    async with revived() as daemon, two_members(daemon, protocol) as (one, two):
        recorded.disturb("the daemon and a member are killed")
        await daemon.kill()
        await two.kill()
        await daemon.start()
        await publish(daemon, recorded, records)
        await one.until(lambda: len({record.place for record in one.records}) == records)
        assert await one.leave() == 0
        recorded.heard("one", one.lines)
        recorded.heard("two", two.lines)
        await judge(daemon, recorded, tmp_path / "history.jsonl")
