"""A group is rewound while its members consume, and the rewind is taken back, over all that dies.

Real processes: members of all ways to consume, a daemon that is killed between the commit of the
operation and its moves, a member that is frozen meanwhile.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

import dss_client
from dss_client import Client
from support.member_process import Handed, MemberProcess, member, until_together
from support.proof_share import only_in_proof, share
from support.revived_daemon import RevivedDaemon, revived

pytestmark = pytest.mark.slow("what members refuse rests for a while")

PROGRAM = Path(__file__).parent / "programs" / "chaos_member.py"
FILTER = "$share/g/t/#"
PARTITIONS = 6
RECORDS = 600
PATIENCE_S = 60.0
POLL_S = 0.01


@pytest.fixture(params=share(["borrow"], ["borrow", "lease"]))
async def daemon(request: pytest.FixtureRequest) -> AsyncIterator[RevivedDaemon]:
    """A daemon with a full topic and a group that begins at its first record."""
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("t", partitions=PARTITIONS)
            await client.groups.create(FILTER, start="earliest", protocol=request.param)
            keys = [b"k%d" % (number % 60) for number in range(RECORDS)]
            async with client.producer("t") as producer:
                payloads = [b"%d" % number for number in range(RECORDS)]
                await producer.send_columns(payloads=payloads, keys=keys)
        yield daemon


async def joined(
    stack: AsyncExitStack, daemon: RevivedDaemon, ways: Sequence[str]
) -> list[MemberProcess]:
    """Members of the group, one a way, once they share the streams."""
    members = [
        await stack.enter_async_context(
            member(PROGRAM, daemon.endpoint, f"{way}-{at}", FILTER, way, str(at))
        )
        for at, way in enumerate(ways)
    ]
    for each in members:
        await each.holds(PARTITIONS // len(ways))
    return members


async def settled(client: Client) -> None:
    """Wait until all is acknowledged."""
    async with asyncio.timeout(PATIENCE_S):
        # What other processes acknowledge has no event here.
        while (await client.groups.describe("g")).group.lag:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)


async def waits_for(client: Client, number: int, streams: int) -> dict[str, str]:
    """Of which streams an operation waits for whom, once there are no more than so many."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            operation = await client.operations.get(number)
            waited_for = {
                each.stream: each.client_id for each in operation.streams if not each.done
            }
            if len(waited_for) <= streams:
                return waited_for
            await asyncio.sleep(POLL_S)


def handed(members: Sequence[MemberProcess]) -> list[Handed]:
    """Everything that users were given, in the order in which they were."""
    return sorted((each for one in members for each in one.records), key=lambda each: each.at_ns)


def check_again(members: Sequence[MemberProcess], since_ns: int) -> None:
    """Every record came again since, and said so."""
    again = [each for each in handed(members) if each.at_ns > since_ns]
    assert len({each.place for each in again}) == RECORDS
    assert all(each.redelivered for each in again)


async def test_every_record_comes_again_marked_although_the_daemon_dies_in_the_middle(
    daemon: RevivedDaemon,
) -> None:
    async with AsyncExitStack() as stack:
        members = await joined(stack, daemon, ("iterate", "run", "fetch"))
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await settled(client)
            rewound_ns = time.monotonic_ns()
            operation = await client.operations.rewind("g", to="earliest", reason="replay")
            await daemon.revive()
            ended = await client.operations.ended(operation.number)
            assert (ended.state, ended.reason) == ("done", "replay")
            everything = partial(seen_since, members, rewound_ns)
            await until_together(members, lambda: len(everything()) == RECORDS, PATIENCE_S)
            await settled(client)
            check_again(members, rewound_ns)
            assert [await each.leave() for each in members] == [0, 0, 0]


def seen_since(members: Sequence[MemberProcess], since_ns: int) -> set[tuple[str, int]]:
    """The records that were handed out since."""
    return {each.place for each in handed(members) if each.at_ns > since_ns}


async def test_nothing_that_was_acknowledged_comes_again_once_a_rewind_is_taken_back(
    daemon: RevivedDaemon,
) -> None:
    async with AsyncExitStack() as stack:
        early = await joined(stack, daemon, ("iterate", "batches"))
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await settled(client)
            assert [await each.leave() for each in early] == [0, 0]
            late = await joined(stack, daemon, ("hold", "hold"))
            rewound = await client.operations.rewind("g", to="earliest")
            everything = partial(seen_since, late, 0)
            await until_together(late, lambda: len(everything()) == RECORDS, PATIENCE_S)
            assert (await client.operations.ended(rewound.number)).state == "done"
            assert (await client.groups.describe("g")).group.lag == RECORDS
            undone = await client.operations.undo(rewound.number)
            for each in late:
                # Who holds on to everything gives nothing back before the deadline.
                each.tell("again")
            assert (await client.operations.ended(undone.number)).state == "done"
            back_ns = time.monotonic_ns()
            assert (await client.groups.describe("g")).group.lag == 0
            async with client.producer("t") as producer:
                await producer.send(b"after", key=b"k0")
            await until_together(late, lambda: seen_since(late, back_ns), PATIENCE_S)
            assert len(seen_since(late, back_ns)) == 1


@only_in_proof
async def test_a_frozen_member_delays_its_own_streams_only(daemon: RevivedDaemon) -> None:
    async with AsyncExitStack() as stack:
        members = await joined(stack, daemon, ("iterate", "run", "fetch"))
        frozen, *others = members
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await settled(client)
            of_frozen = set(frozen.streams)
            wanted = {each.place for each in handed(members) if each.stream not in of_frozen}
            frozen.freeze()
            rewound_ns = time.monotonic_ns()
            operation = await client.operations.rewind("g", to="earliest")
            waited_for = await waits_for(client, operation.number, len(of_frozen))
            assert waited_for == dict.fromkeys(of_frozen, "iterate-0")
            # What they refuse rests, so all of it may come only after the lease of the frozen one.
            again = partial(seen_since, others, rewound_ns)
            await until_together(others, lambda: again() >= wanted, PATIENCE_S)
            assert (await client.operations.ended(operation.number)).state == "done"
            frozen.thaw()
            await settled(client)
            check_again(members, rewound_ns)
