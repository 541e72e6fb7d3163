"""Programs under `dss_client.run` and `dss_client.sync.run` that a signal tells to end."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest

import dss_client
from dss_client.testing import MemoryDaemon
from support.revived_daemon import RevivedDaemon, revived
from support.started_program import StartedProgram, started

PROGRAM = Path(__file__).parent / "programs/stopped.py"
RECORDS = 40
SORTS = ["async", "sync"]
PATIENCE_S = 60.0


@asynccontextmanager
async def program(
    sort: str, work: str, endpoint: str, *, grace_s: float = PATIENCE_S
) -> AsyncIterator[StartedProgram]:
    """One that is at work; killed when the block ends, unless it has ended before."""
    arguments = (str(PROGRAM), sort, work, endpoint, str(grace_s))
    process = await started(*arguments, pipes=["stdout"])
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert process.stdout is not None
            assert await process.stdout.readline() == b"begun\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def ended(process: StartedProgram) -> tuple[int, list[str]]:
    """Its exit code, and all that it said."""
    async with asyncio.timeout(PATIENCE_S):
        assert process.stdout is not None
        said = (await process.stdout.read()).decode().splitlines()
        return await process.wait(), said


def done(said: list[str]) -> set[int]:
    return {int(line.removeprefix("done ")) for line in said if line.startswith("done ")}


async def publish(daemon: MemoryDaemon | RevivedDaemon, records: int) -> None:
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer("t") as producer,
    ):
        await producer.send_columns([b"x"] * records)


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_member_ends_its_handlers_acknowledges_and_leaves(
    sort: str, number: signal.Signals
) -> None:
    async with revived() as daemon, dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create("t", partitions=1)
        await publish(daemon, RECORDS)
        async with program(sort, "run", daemon.endpoint) as process:
            process.send_signal(number)
            code, said = await ended(process)
        assert (code, said[-1]) == (0, "left")
        handled = done(said)
        assert 0 < len(handled) < RECORDS
        async with client.subscribe("$share/g/t/#") as subscription:
            rest = await subscription.fetch(RECORDS - len(handled), timeout=PATIENCE_S)
        assert {record.offset for record in rest} == {*range(RECORDS)} - handled
        assert not [record for record in rest if record.redelivered]
        codes = [event.code for event in (await client.events.list()).events]
    assert "member.lost" not in codes


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("work", ["iterate", "fetch"])
async def test_who_takes_records_one_by_one_ends_behind_the_one_in_hand(
    sort: str, work: str, daemon: MemoryDaemon
) -> None:
    await publish(daemon, RECORDS)
    async with program(sort, work, daemon.endpoint) as process:
        process.send_signal(signal.SIGTERM)
        code, said = await ended(process)
    assert code == 0
    assert 0 < daemon.acknowledged() == len([line for line in said if line.startswith("done")])


@pytest.mark.parametrize("sort", SORTS)
async def test_a_program_that_only_publishes_ends_once_all_of_it_is_stored(
    sort: str, daemon: MemoryDaemon
) -> None:
    async with program(sort, "publish", daemon.endpoint) as process:
        process.send_signal(signal.SIGTERM)
        code, said = await ended(process)
    # Its work was cut short: whoever waits for it must see that.
    assert code == 128 + signal.SIGTERM
    (sent,) = done(said)
    # The one in hand may have been accepted and not counted.
    assert daemon.stored() - sent in (0, 1)


async def test_what_is_under_way_is_cut_short_when_the_grace_is_over(daemon: MemoryDaemon) -> None:
    await publish(daemon, 1)
    async with program("async", "hang", daemon.endpoint, grace_s=0.1) as process:
        process.send_signal(signal.SIGTERM)
        assert await ended(process) == (128 + signal.SIGTERM, [])
    assert daemon.acknowledged() == 0


async def test_a_second_signal_ends_it_at_once(daemon: MemoryDaemon) -> None:
    await publish(daemon, 1)
    async with program("async", "hang", daemon.endpoint) as process:
        # The first may come in the same moment, and counts once then.
        while process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.05)
        assert (await ended(process))[0] == 128 + signal.SIGTERM


@pytest.mark.parametrize("sort", SORTS)
async def test_a_frozen_daemon_delays_the_end_by_no_more_than_the_grace(sort: str) -> None:
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("t", partitions=1)
        async with program(sort, "idle", daemon.endpoint, grace_s=0.3) as process:
            with daemon.frozen():
                began_s = monotonic()
                process.send_signal(signal.SIGTERM)
                code, _ = await ended(process)
                # Far below the 5 s that each closing waits for a daemon else.
                assert monotonic() - began_s < 4
    assert code in (0, 128 + signal.SIGTERM)
