"""A group with queues whose members stand still or die, and whose daemon dies while letters return.

What comes from a member that was given up counts for nothing, and each dead letter that is redriven
comes back once, whoever is killed on the way.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import dss_client
from dss_client import Client, Reject
from dss_client.changes import RedriveDeadLetters
from dssd.data_directory import STORE_NAME
from dssd.leaders.progress_columns import fate_of
from dssd.store.paging import scan_all
from dssd.store.rows import ProgressRow
from dssd.store.sqlite import SqliteStore
from support.member_process import PATIENCE_S, MemberProcess, member
from support.proof_share import only_in_proof
from support.revived_daemon import RevivedDaemon, revived
from support.started_program import StartedProgram, started

PROGRAMS = Path(__file__).parent / "programs"
FILTER = "$share/g/orders/#"
LETTERS, MAX_DELIVER, MEMBERS, KILLS = 3_000, 12, 2, 6
POLL_S = 0.02

pytestmark = [only_in_proof, pytest.mark.slow("leases end, and daemons and members die")]


@asynccontextmanager
async def filled(records: int, **how: object) -> AsyncIterator[tuple[RevivedDaemon, Client]]:
    """A daemon, a client, and a group with records."""
    async with revived() as daemon, dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create("orders", partitions=2)
        await client.groups.create(FILTER, start="earliest", backoff=[3_600], **how)  # type: ignore[arg-type] # of create
        async with client.producer("orders") as producer:
            numbers = [b"%d" % number for number in range(records)]
            await producer.send_columns(payloads=numbers, keys=numbers)
        yield daemon, client


async def settled(client: Client, retrying: int, dead: int) -> None:
    """Wait until nothing of the streams is left, and the queues hold so many."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            group = (await client.groups.describe("g")).group
            if (group.lag, group.retrying, group.dead) == (0, retrying, dead):
                return
            await asyncio.sleep(POLL_S)


def acks_of(member: MemberProcess) -> int:
    """How often it said that it acknowledges."""
    return sum(line["event"] == "acked" for line in member.lines)


async def test_what_a_member_says_that_stood_still_past_its_lease_counts_for_nothing() -> None:
    async with (
        filled(4, max_deliver=2) as (daemon, client),
        member(
            PROGRAMS / "member.py", daemon.endpoint, "sleeps", FILTER, "--hold", "0,4", "--refuse"
        ) as sleeps,
    ):
        await sleeps.told("holding")
        sleeps.freeze()
        async with client.subscribe(FILTER) as subscription:
            taken = await subscription.fetch(4, PATIENCE_S)
            assert {record.attempt for record in taken} == {2}
            sleeps.tell("go")
            sleeps.thaw()
            await sleeps.until(lambda: acks_of(sleeps) == 2)
            for record in taken:
                await record.reject("mine")
            await subscription.drain()
            await settled(client, 0, 4)
        letters = [each async for each in client.queues.dead_letters("g")]
        assert [each.error for each in letters] == ["mine"] * 4


async def test_each_dead_letter_comes_back_once_though_daemon_and_members_are_killed() -> None:
    async with filled(LETTERS, max_deliver=MAX_DELIVER) as (daemon, client):
        async with client.subscribe(FILTER) as subscription, asyncio.TaskGroup() as tasks:
            running = tasks.create_task(subscription.run(rejected, concurrency=64))
            await settled(client, 0, LETTERS)
            running.cancel()
        await client.operations.apply(RedriveDeadLetters("g"), reason="mended")
        living: dict[str, StartedProgram] = {}
        async with asyncio.TaskGroup() as tasks:
            members = [
                tasks.create_task(live(daemon.endpoint, f"m{at}", living)) for at in range(MEMBERS)
            ]
            await fewer_dead(client, LETTERS - 1)
            for kill in range(KILLS):
                await fewer_dead(client, LETTERS * (KILLS - kill) // (KILLS + 1))
                living[f"m{kill % MEMBERS}"].kill()
                if kill % 2:
                    await daemon.revive()
            await settled(client, 0, 0)
            for each in members:
                each.cancel()
        sums = await client.groups.verify("g", scan=True)
        assert not any(each.problem for each in sums)
        assert await daemon.process.stop() == 0
        # One was done with where it was refused, as a dead letter, and once more as it came back.
        acked, retried = await done_in(daemon)
        assert (acked, retried) == (LETTERS, 2 * LETTERS)


async def done_in(daemon: RevivedDaemon) -> tuple[int, int]:
    """How many records are acknowledged on all levels together, and how many are moved on."""
    store = await SqliteStore.open(daemon.data / STORE_NAME)
    try:
        counts = [fate_of(found.row).counts for found in await scan_all(store, ProgressRow)]
    finally:
        await store.close()
    return sum(each.acked for each in counts), sum(each.retried for each in counts)


async def rejected(_: object) -> None:
    raise Reject("never")


async def fewer_dead(client: Client, dead: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if (await client.groups.describe("g")).group.dead <= dead:
                return
            await asyncio.sleep(POLL_S)


async def live(endpoint: str, name: str, living: dict[str, StartedProgram]) -> None:
    """A member that acknowledges all, and is started again whenever it dies."""
    while True:
        program = living[name] = await started(
            str(PROGRAMS / "doomed_member.py"), endpoint, name, FILTER, "none", pipes=["stdout"]
        )
        try:
            await program.wait()
        finally:
            program.kill()
            await program.wait()
