"""A member leaves, records in hand, and comes back in the same breath: nothing is lost or doubled.

Its old streams are being given back while it asks for new ones: to another member who has joined,
or to a daemon that hears of both at once, because it stood still.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

import dss_client
from dss_client import Client
from support.chaos_rules import check_rests
from support.member_process import Handed, MemberProcess, member, until_together
from support.proof_share import only_in_proof, share
from support.recorded_run import Recorded
from support.revived_daemon import RevivedDaemon, revived
from support.settled_group import until_settled
from support.trial_verdict import read

pytestmark = pytest.mark.slow("what members refuse rests for a while")

PROGRAM = Path(__file__).parent / "programs" / "chaos_member.py"
FILTER = "$share/g/t/#"
PARTITIONS = 4
RECORDS = 400
RETURNS = 5
PATIENCE_S = 60.0
POLL_S = 0.01
PAYLOADS = [b"k%d %d" % (number % 40, number) for number in range(RECORDS)]


@pytest.fixture(params=share(["lease"], ["borrow", "lease"]))
async def daemon(request: pytest.FixtureRequest) -> AsyncIterator[RevivedDaemon]:
    """A daemon with a topic and a group."""
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("t", partitions=PARTITIONS)
            await client.groups.create(FILTER, start="earliest", protocol=request.param)
        yield daemon


@pytest.fixture
def recorded() -> Recorded:
    """What is known of the group, from its beginning."""
    recorded = Recorded("g")
    recorded.declare(f"t/0/{partition}" for partition in range(PARTITIONS))
    # Who leaves with records in hand leaves them to be handed out again.
    recorded.disturb("a member leaves, records in hand")
    return recorded


def joined(
    daemon: RevivedDaemon, name: str, way: str
) -> AbstractAsyncContextManager[MemberProcess]:
    """A member of the group."""
    return member(PROGRAM, daemon.endpoint, name, FILTER, way, name)


async def publish(client: Client, recorded: Recorded) -> None:
    """Some records a key."""
    recorded.send(*PAYLOADS)
    async with client.producer("t") as producer:
        keys = [payload.split()[0] for payload in PAYLOADS]
        for ack in await producer.send_columns(payloads=PAYLOADS, keys=keys):
            recorded.stored(ack)


async def states(client: Client) -> set[str]:
    """Of the streams of the group."""
    return {grant.state for grant in await client.grants.list("g")}


async def shared(client: Client, wanted: dict[str, int]) -> None:
    """Wait until each client holds so many streams."""
    async with asyncio.timeout(PATIENCE_S):
        # Where streams move, the members do not all hear of it.
        while Counter(  # noqa: ASYNC110
            grant.client_id for grant in await client.grants.list("g")
        ) != Counter(wanted):
            await asyncio.sleep(POLL_S)


async def judge(
    client: Client, recorded: Recorded, path: Path, members: Sequence[MemberProcess]
) -> None:
    """All leave: what they saw must fit together."""
    assert [await each.leave() for each in members] == [0] * len(members)
    said = {f"member {at}": each.lines for at, each in enumerate(members)}
    for name, lines in said.items():
        recorded.heard(name, lines)
    recorded.judge(path, await read(client, "t"), await client.grants.list("g"))
    check_rests(said)


def has_come(returning: MemberProcess, times: int) -> bool:
    """Whether it subscribed so often."""
    return len([line for line in returning.lines if line["event"] == "subscribed"]) == times


def handed_again(returning: MemberProcess, other: MemberProcess) -> list[Handed]:
    """What was handed out since the one that returned had everything in hand."""
    return [*returning.records[RECORDS:], *other.records]


async def test_who_comes_back_while_its_streams_are_being_given_to_another_gets_its_share_again(
    daemon: RevivedDaemon, recorded: Recorded, tmp_path: Path
) -> None:
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        joined(daemon, "returns", "hold") as returns,
    ):
        await returns.holds(PARTITIONS)
        await publish(client, recorded)
        await returns.until(lambda: len(returns.records) == RECORDS)
        async with joined(daemon, "joins", "iterate") as joins:
            async with asyncio.timeout(PATIENCE_S):
                # The revoke waits for what it holds; the state of a stream has no event here.
                while "revoking" not in await states(client):  # noqa: ASYNC110
                    await asyncio.sleep(POLL_S)
            assert joins.records == []
            returns.tell("again")
            await returns.until(partial(has_come, returns, 2))
            everything = {record.place for record in returns.records}
            again = partial(handed_again, returns, joins)
            await until_together(
                (returns, joins), lambda: {record.place for record in again()} == everything
            )
            assert all(record.redelivered for record in again())
            await until_settled(client, "g")
            await shared(client, {"returns": 2, "joins": 2})
            await judge(client, recorded, tmp_path / "history.jsonl", (returns, joins))


async def test_who_comes_and_goes_at_once_over_and_over_loses_nothing(
    daemon: RevivedDaemon, recorded: Recorded, tmp_path: Path
) -> None:
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        joined(daemon, "returns", "iterate") as returns,
        joined(daemon, "stays", "fetch") as stays,
    ):
        await returns.holds(PARTITIONS // 2)
        await publish(client, recorded)
        for turn in range(RETURNS):
            # Whether it has streams again by then differs from turn to turn.
            returns.tell("again")
            await returns.until(partial(has_come, returns, turn + 2))
        await until_settled(client, "g")
        await shared(client, {"returns": 2, "stays": 2})
        await judge(client, recorded, tmp_path / "history.jsonl", (returns, stays))


@only_in_proof
async def test_a_daemon_that_stood_still_hears_of_the_leave_and_of_the_return_at_once(
    daemon: RevivedDaemon, recorded: Recorded, tmp_path: Path
) -> None:
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        joined(daemon, "returns", "hold") as returns,
    ):
        await returns.holds(PARTITIONS)
        await publish(client, recorded)
        await returns.until(lambda: len(returns.records) == RECORDS)
        with daemon.frozen():
            returns.tell("again")
            # It waits for the answer to its leave only for so long.
            await returns.told("outside")
        await returns.until(lambda: len(returns.records) == 2 * RECORDS)
        await until_settled(client, "g")
        await judge(client, recorded, tmp_path / "history.jsonl", (returns,))
