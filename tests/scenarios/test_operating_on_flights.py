"""An operator at work on a group of four that reads real flights, with the tool alone.

A rewind by time is planned, applied and taken back; a pause outlives a restart; a member is evicted
and kept out; a record that nobody can handle is skipped by hand. At the end the sums per carrier
are those of the file: nothing was lost, and what came twice is known by its place.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import dss_client
from dss_client import Client
from support.member_process import MemberProcess, member, until_together
from support.proof_share import share
from support.revived_daemon import RevivedDaemon, revived
from support.settled_group import until_settled
from support.started_program import started

pytestmark = pytest.mark.slow("a story of several operations on real processes")

FLIGHTS = Path(__file__).resolve().parents[2] / "examples" / "flights.parquet"
PROGRAM = Path(__file__).parent / "programs" / "flight_member.py"
FILTER = "$share/delays/flights/#"
PARTITIONS = 8
COUNT = share(4_000, 80_000)
NAMES = ("anna", "bert", "cleo", "dora")
POISON = b"no flight at all"

Sums = Counter[str]


@pytest.fixture
async def daemon() -> AsyncIterator[RevivedDaemon]:
    """A daemon with an empty topic."""
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("flights", partitions=PARTITIONS)
        yield daemon


async def dssctl(daemon: RevivedDaemon, *arguments: str, exits: int = 0) -> str:
    """What the tool prints on stdout; it is shown, so that the test tells its story."""
    command = ("-m", "dssctl", "--endpoint", daemon.endpoint, *arguments)
    tool = await started(*command, pipes=["stdout", "stderr"])
    out, err = await tool.communicate()
    sys.stdout.write(f"$ dssctl {' '.join(arguments)}\n{err.decode()}{out.decode()}\n")
    assert tool.returncode == exits, err.decode()
    return out.decode()


async def asked(daemon: RevivedDaemon, *arguments: str) -> dict[str, Any]:
    """What the tool answers to a program."""
    answer = json.loads(await dssctl(daemon, *arguments, "-o", "json"))
    item: dict[str, Any] = answer["item"]
    return item


def flights() -> list[dict[str, Any]]:
    """The first flights of the file."""
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(FLIGHTS).slice(0, COUNT).to_pylist()
    return rows


async def publish(client: Client, rows: Sequence[dict[str, Any]]) -> None:
    """Each flight under the aeroplane that flew it."""
    payloads = [json.dumps(row).encode() for row in rows]
    keys = [(row["tailnum"] or "").encode() for row in rows]
    async with client.producer("flights") as producer:
        await producer.send_columns(payloads=payloads, keys=keys)


def sums_of_file(rows: Sequence[dict[str, Any]]) -> Sums:
    """Minutes of delay per carrier."""
    sums: Sums = Counter()
    for row in rows:
        sums[row["carrier"]] += row["arr_delay"] or 0
    return sums


def lines(members: Sequence[MemberProcess], since_ns: int = 0) -> list[dict[str, Any]]:
    """The flights that members were given."""
    return [
        line
        for each in members
        for line in each.lines
        if line["event"] == "flight" and line["at_ns"] > since_ns
    ]


def sums_of(members: Sequence[MemberProcess]) -> Sums:
    """Minutes of delay per carrier, each record once."""
    by_place = {(line["stream"], line["offset"]): line for line in lines(members)}
    sums: Sums = Counter()
    for line in by_place.values():
        sums[line["carrier"]] += line["delay"]
    return sums


def refused(members: Sequence[MemberProcess]) -> list[dict[str, Any]]:
    """What members could not handle."""
    return [line for each in members for line in each.lines if line["event"] == "refused"]


async def test_an_operator_rewinds_pauses_evicts_and_skips_and_the_sums_are_those_of_the_file(
    daemon: RevivedDaemon,
) -> None:
    rows = flights()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(dss_client.connect(endpoint=daemon.endpoint))
        await dssctl(daemon, "groups", "create", FILTER, "--start", "earliest")
        members = [
            await stack.enter_async_context(member(PROGRAM, daemon.endpoint, name, FILTER))
            for name in NAMES
        ]
        for each in members:
            await each.holds(PARTITIONS // len(NAMES))
        await publish(client, rows[: COUNT // 2])
        between_us = time.time_ns() // 1_000
        await publish(client, rows[COUNT // 2 :])
        await until_settled(client, "delays")

        await rewind_and_undo(daemon, client, members, between_us)
        await pause_over_a_restart(daemon, client, members, rows)
        await evict(daemon, members)
        await skip_the_poison(daemon, client, members)

        await until_settled(client, "delays")
        assert sums_of(members) == sums_of_file([*rows, *rows[:100]])
        await dssctl(daemon, "ops", "ls")
        await dssctl(daemon, "groups", "describe", "delays")


async def rewind_and_undo(
    daemon: RevivedDaemon, client: Client, members: Sequence[MemberProcess], between_us: int
) -> None:
    """By time: planned, applied as planned, and taken back while it comes again."""
    to = f"@{between_us // 1_000_000}.{between_us % 1_000_000:06}"
    rewind = ("offsets", "rewind", "delays", "--to", to)
    plan = await asked(daemon, *rewind, "--dry-run")
    again = sum(stream["again"] for stream in plan["streams"])
    assert again == COUNT - COUNT // 2
    since_ns = time.monotonic_ns()
    done = await asked(daemon, *rewind, "-y", "--reason", "wrong rates, TKT-12")
    await until_together(members, lambda: len(lines(members, since_ns)) > 0)
    await dssctl(daemon, "ops", "undo", str(done["number"]), "-y", "--reason", "rates were right")
    await until_settled(client, "delays")
    again_lines = lines(members, since_ns)
    assert all(line["again"] for line in again_lines)
    back_ns = time.monotonic_ns()
    assert lines(members, back_ns) == []


async def pause_over_a_restart(
    daemon: RevivedDaemon,
    client: Client,
    members: Sequence[MemberProcess],
    rows: Sequence[dict[str, Any]],
) -> None:
    """What comes during a pause waits, also behind a restart."""
    await dssctl(daemon, "groups", "pause", "delays", "-y", "--reason", "database moves")
    paused_ns = time.monotonic_ns()
    await publish(client, rows[:50])
    await daemon.revive()
    await publish(client, rows[50:100])
    for each in members:
        await each.holds(PARTITIONS // len(NAMES))
    group = (await client.groups.describe("delays")).group
    assert (group.state, group.lag) == ("paused", 100)
    assert lines(members, paused_ns) == []
    await dssctl(daemon, "groups", "ls")
    await dssctl(daemon, "groups", "resume", "delays", "-y")
    await until_settled(client, "delays")
    assert len({(line["stream"], line["offset"]) for line in lines(members, paused_ns)}) == 100


async def evict(daemon: RevivedDaemon, members: Sequence[MemberProcess]) -> None:
    """A member ends, told why, and cannot come back."""
    evicted, *others = members
    await dssctl(
        daemon, "borrowers", "evict", "delays", NAMES[0], "--ban", "1h", "-y", "--reason", "looping"
    )
    ended = await evicted.told("ended")
    assert ended["code"] == "DSS6007"
    await until_together(others, lambda: sum(len(each.streams) for each in others) == PARTITIONS)
    async with member(PROGRAM, daemon.endpoint, NAMES[0], FILTER) as again:
        assert (await again.told("ended"))["code"] == "DSS6008"


async def skip_the_poison(
    daemon: RevivedDaemon, client: Client, members: Sequence[MemberProcess]
) -> None:
    """Nobody can handle it: it is acknowledged by hand."""
    async with client.producer("flights") as producer:
        stored = await producer.send(POISON, key=b"N1")
    others = members[1:]
    await until_together(others, lambda: len(refused(others)) >= 2)
    place = refused(others)[0]
    assert place["offset"] == stored.offset
    await dssctl(daemon, "grants", "ls", "--group", "delays")
    await dssctl(
        daemon,
        *("records", "skip", "delays", place["stream"], str(place["offset"])),
        *("-y", "--reason", "poison, TKT-13"),
    )
    await until_settled(client, "delays")
