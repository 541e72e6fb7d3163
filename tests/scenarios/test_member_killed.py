"""A member dies or freezes while it holds records: others get them, marked, and nothing is lost."""

import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import dss_client
from dss_client.testing.member_process import Handed, MemberProcess, member, until_together
from dss_core.limits import LEASE_MS
from dssd.testing.revived import RevivedDaemon, revived

PROGRAM = Path(__file__).parent / "programs" / "member.py"
FILTER = "$share/g/t/#"
PARTITIONS = 4
RECORDS = 400


@pytest.fixture
async def daemon() -> AsyncIterator[RevivedDaemon]:
    """A daemon with a topic and a group."""
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("t", partitions=PARTITIONS)
            await client.groups.create(FILTER, start="earliest")
        yield daemon


def joined(
    daemon: RevivedDaemon, name: str, *options: str
) -> AbstractAsyncContextManager[MemberProcess]:
    """A member of the group."""
    return member(PROGRAM, daemon.endpoint, name, FILTER, *options)


async def publish(daemon: RevivedDaemon, records: int = RECORDS) -> None:
    """One frame a partition."""
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer("t") as producer,
    ):
        numbers = range(records)
        await producer.send_columns(
            payloads=[b"%d" % number for number in numbers],
            keys=[b"%d" % number for number in numbers],
        )


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


def assert_duplicates_are_marked(*handed: Handed) -> None:
    """Of all hand-outs of a record only the first may say that it is the first."""
    unmarked = Counter(record.place for record in handed if not record.redelivered)
    assert [place for place, count in unmarked.items() if count > 1] == []


async def test_what_a_killed_member_held_goes_to_the_other_marked_and_counted(
    daemon: RevivedDaemon,
) -> None:
    async with joined(daemon, "dies", "--hold", "20,5") as dies, joined(daemon, "lives") as lives:
        await shared_evenly(dies, lives)
        await publish(daemon)
        await dies.told("holding")
        orphaned = set(dies.streams)
        await dies.kill()
        killed_at_s = time.monotonic()
        acked, held = dies.records[:20], dies.records[20:]
        assert len(held) == 5
        everything = await ends(daemon)
        left = everything - places(*acked)
        await lives.until(lambda: places(*lives.records) >= left)
        assert places(*lives.records) == left, "an acked record came again"
        assert len(lives.records) == len(left)
        assert await lives.leave() == 0
    again = [record for record in lives.records if record.stream in orphaned]
    assert min(record.at_s for record in again) - killed_at_s < LEASE_MS / 2_000
    handed_out = places(*held)
    assert {record.place for record in again if record.attempt == 2} == handed_out
    assert {record.attempt for record in again} == {1, 2}
    # A frame goes whole: of these streams all records were with the dead member.
    sent = {record.stream for record in dies.records}
    assert all(record.redelivered for record in again if record.stream in sent)


async def test_the_streams_of_a_frozen_member_go_elsewhere_and_it_hands_out_none_of_them_later(
    daemon: RevivedDaemon,
) -> None:
    async with joined(daemon, "sleeps", "--hold", "20,5") as sleeps, joined(daemon, "l") as lives:
        await shared_evenly(sleeps, lives)
        await publish(daemon)
        await sleeps.told("holding")
        lost = set(sleeps.streams)
        sleeps.freeze()
        within_s = LEASE_MS / 1_000 + 1
        await lives.until(lambda: {record.stream for record in lives.records} >= lost, within_s)
        await publish(daemon)
        everything = await ends(daemon)
        left = everything - places(*sleeps.records[:20])
        await lives.until(lambda: places(*lives.records) >= left)
        before = list(sleeps.records)
        old_grants = {record.grant for record in before}
        sleeps.tell("go")
        sleeps.thaw()
        await shared_evenly(sleeps, lives)
        await publish(daemon)
        everything = await ends(daemon)
        both = (sleeps, lives)
        await until_together(both, lambda: places(*sleeps.records, *lives.records) >= everything)
        assert [await one.leave() for one in both] == [0, 0]
    after = sleeps.records[len(before) :]
    assert after
    assert not {record.grant for record in after} & old_grants
    assert_duplicates_are_marked(*sleeps.records, *lives.records)
