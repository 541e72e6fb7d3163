"""A process comes under the client id of another one, which is at work, or stands still.

From the moment at which the newer one is given a record, the older one hands out nothing, and it
does not take the client id back.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import dss_client
from dss_client import Client
from support.member_process import MemberProcess, member
from support.revived_daemon import RevivedDaemon, revived

PROGRAM = Path(__file__).parent / "programs" / "member.py"
FILTER = "$share/g/t/#"
RECORDS = 12_000
STANDING = 6_000
"""More than the older one was given, so that some wait in it; each takes the newer one a while."""
AT_WORK = 500
"""Records after which the older one is in the midst of what it was sent."""
SLICE = 5_000


@pytest.fixture
async def daemon() -> AsyncIterator[RevivedDaemon]:
    """A daemon with a topic and a group."""
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("t", partitions=1)
            await client.groups.create(FILTER, start="earliest")
        yield daemon


@pytest.fixture
async def client(daemon: RevivedDaemon) -> AsyncIterator[Client]:
    """Someone who publishes."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        yield client


def same(daemon: RevivedDaemon, *how: str) -> AbstractAsyncContextManager[MemberProcess]:
    """A process under the one client id."""
    return member(PROGRAM, daemon.endpoint, "same", FILTER, *how)


async def publish(client: Client, records: int) -> None:
    """So many."""
    async with client.producer("t") as producer:
        for first in range(0, records, SLICE):
            size = min(SLICE, records - first)
            await producer.send_columns(payloads=[b"x"] * size, keys=[b"k"] * size)


async def finish(older: MemberProcess, newer: MemberProcess, records: int) -> None:
    """The older one ends, the newer one takes all the rest; what they saw fits together."""
    assert await older.ended() != 0
    handed = {record.place for record in older.records}
    await newer.until(
        # To put the places together takes long, and says something only when there are enough.
        lambda: (
            len(handed) + len(newer.records) >= records
            and len(handed | {each.place for each in newer.records}) == records
        )
    )
    assert await newer.leave() == 0
    assert older.records[-1].at_ns < newer.records[0].at_ns
    assert len(newer.records) == len({record.place for record in newer.records})
    assert all(each.redelivered for each in newer.records if each.place in handed)


@pytest.mark.slow("the daemon waits for a process that stands still")
async def test_a_process_that_stood_still_hands_out_nothing_once_another_has_its_client_id(
    daemon: RevivedDaemon, client: Client
) -> None:
    await publish(client, STANDING)
    async with same(daemon, "--stand", str(AT_WORK)) as older:
        # No client can see a stand-still between its last look at the clock and its user's code.
        await older.told("standing")
        older.freeze()
        async with same(daemon) as newer:
            await newer.until(lambda: newer.records)
            older.tell("go")
            older.thaw()
            await finish(older, newer, STANDING)


async def test_a_process_at_work_gives_back_what_it_did_not_hand_out_before_another_gets_it(
    daemon: RevivedDaemon, client: Client
) -> None:
    await publish(client, RECORDS)
    async with same(daemon) as older:
        await older.until(lambda: len(older.records) >= AT_WORK)
        async with same(daemon) as newer:
            await newer.told("subscribed")
            await publish(client, 1)
            await finish(older, newer, RECORDS + 1)
            # It said how far it came: the newer one is given nothing that is in doubt.
            assert not any(each.redelivered for each in newer.records)


@pytest.mark.slow("processes and the daemon start anew")
async def test_a_process_that_slept_through_a_restart_does_not_take_its_client_id_back(
    daemon: RevivedDaemon, client: Client
) -> None:
    await publish(client, 1)
    async with same(daemon) as older:
        await older.until(lambda: older.records)
        older.freeze()
        await daemon.revive()
        async with same(daemon) as newer:
            await newer.holds(1)
            older.thaw()
            assert await older.ended() != 0
            await publish(client, 1)
            await newer.until(lambda: ("t/0/0", 1) in {each.place for each in newer.records})
            assert await newer.leave() == 0
