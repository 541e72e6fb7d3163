"""A member dies or freezes while it holds records: others get them, marked, and nothing is lost."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from time import monotonic_ns

import pytest

import dss_client
from dss_core.limits import LEASE_MS
from support.member_process import Handed, MemberProcess, member, until_together
from support.proof_share import share
from support.recorded_run import SYNC_EVERY, Recorded
from support.revived_daemon import RevivedDaemon, revived
from support.trial_verdict import read

pytestmark = pytest.mark.slow("a lease has to end")


PROGRAM = Path(__file__).parent / "programs" / "member.py"
FILTER = "$share/g/t/#"
PARTITIONS = 4
RECORDS = 400
ELSEWHERE_NS_MAX = 1_000_000_000
"""From the death of a member to its records at another one."""


@pytest.fixture(params=share(["borrow"], ["borrow", "lease"]))
async def daemon(request: pytest.FixtureRequest) -> AsyncIterator[RevivedDaemon]:
    """A daemon with a topic and a group."""
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("t", partitions=PARTITIONS)
            await client.groups.create(FILTER, start="earliest", protocol=request.param)
        yield daemon


@pytest.fixture
def recorded(daemon: RevivedDaemon) -> Recorded:
    """What is known of the group, from its beginning."""
    recorded = Recorded("g")
    recorded.declare(f"t/0/{partition}" for partition in range(PARTITIONS))
    return recorded


def joined(
    daemon: RevivedDaemon, name: str, *options: str
) -> AbstractAsyncContextManager[MemberProcess]:
    """A member of the group."""
    return member(PROGRAM, daemon.endpoint, name, FILTER, "--sync", f"{SYNC_EVERY}", *options)


async def publish(daemon: RevivedDaemon, recorded: Recorded, first: int = 0) -> None:
    """One frame a partition."""
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer("t") as producer,
    ):
        payloads = [b"%d" % number for number in range(first, first + RECORDS)]
        recorded.send(*payloads)
        for ack in await producer.send_columns(payloads=payloads, keys=payloads):
            recorded.stored(ack)


async def judge(daemon: RevivedDaemon, recorded: Recorded, path: Path) -> None:
    """All have left: what they saw must fit together."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        recorded.judge(path, await read(client, "t"), await client.grants.list("g"))


async def ends(daemon: RevivedDaemon) -> set[tuple[str, int]]:
    """Every record of the topic."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        return {
            (grant.stream, offset)
            for grant in await client.grants.list("g")
            for offset in range(grant.end)
        }


async def shared_evenly(*members: MemberProcess) -> None:
    """Wait until each member holds its part of the streams."""
    for one in members:
        await one.holds(PARTITIONS // len(members))


def places(*handed: Handed) -> set[tuple[str, int]]:
    """Which records these are."""
    return {record.place for record in handed}


async def test_what_a_killed_member_held_goes_to_the_other_marked_and_counted(
    daemon: RevivedDaemon, recorded: Recorded, tmp_path: Path
) -> None:
    async with joined(daemon, "dies", "--hold", "20,5") as dies, joined(daemon, "lives") as lives:
        await shared_evenly(dies, lives)
        await publish(daemon, recorded)
        await dies.told("holding")
        orphaned = set(dies.streams)
        recorded.disturb("a member is killed")
        await dies.kill()
        killed_at_ns = monotonic_ns()
        acked, held = dies.records[:20], dies.records[20:]
        assert len(held) == 5
        everything = await ends(daemon)
        left = everything - places(*acked)
        await lives.until(lambda: places(*lives.records) >= left)
        assert len(lives.records) == len(left), "a record came to the living twice"
        assert await lives.leave() == 0
    recorded.heard("dies", dies.lines)
    recorded.heard("lives", lives.lines)
    await judge(daemon, recorded, tmp_path / "history.jsonl")
    again = [record for record in lives.records if record.stream in orphaned]
    assert min(record.at_ns for record in again) - killed_at_ns < ELSEWHERE_NS_MAX
    handed_out = places(*held)
    # A frame goes whole: of these streams all records were with the dead member.
    sent = {record.stream for record in dies.records}
    in_doubt = {record.place for record in again if record.stream in sent}
    assert {record.place for record in again if record.attempt == 2} >= handed_out | in_doubt
    assert {record.attempt for record in again} <= {1, 2}
    assert all(record.redelivered for record in again if record.attempt == 2)


async def test_the_streams_of_a_frozen_member_go_elsewhere_and_it_hands_out_none_of_them_later(
    daemon: RevivedDaemon, recorded: Recorded, tmp_path: Path
) -> None:
    async with joined(daemon, "sleeps", "--hold", "20,5") as sleeps, joined(daemon, "l") as lives:
        await shared_evenly(sleeps, lives)
        await publish(daemon, recorded)
        await sleeps.told("holding")
        lost = set(sleeps.streams)
        recorded.disturb("a member is frozen")
        sleeps.freeze()
        within_s = LEASE_MS / 1_000 + 1
        await lives.until(lambda: {record.stream for record in lives.records} >= lost, within_s)
        await publish(daemon, recorded, RECORDS)
        everything = await ends(daemon)
        left = everything - places(*sleeps.records[:20])
        await lives.until(lambda: places(*lives.records) >= left)
        before = len(sleeps.records)
        # What the others were lent meanwhile has handed out: were it to hand out on now, under its
        # old grants, that would be seen.
        sleeps.tell("go")
        sleeps.thaw()
        await shared_evenly(sleeps, lives)
        await publish(daemon, recorded, 2 * RECORDS)
        everything = await ends(daemon)
        both = (sleeps, lives)
        await until_together(both, lambda: places(*sleeps.records, *lives.records) >= everything)
        assert [await one.leave() for one in both] == [0, 0]
    assert len(sleeps.records) > before
    recorded.heard("sleeps", sleeps.lines)
    recorded.heard("lives", lives.lines)
    await judge(daemon, recorded, tmp_path / "history.jsonl")
