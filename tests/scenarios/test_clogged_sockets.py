"""A member's socket is full, so that no ping of the daemon can reach it: frozen is not busy."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import dss_client
from dss_core.limits import LEASE_MS
from dssd.limits import PING_TIMEOUT_MS
from dssd.rpc.slow_consumers import CLOG_LOOK_S, CLOG_LOOKS_MAX
from support.member_process import MemberProcess, member, until_together
from support.proof_share import only_in_proof, share
from support.revived_daemon import RevivedDaemon, revived

pytestmark = pytest.mark.slow("a frozen member keeps its streams for a lease")

PROGRAM = Path(__file__).parent / "programs" / "member.py"
FILTER = "$share/g/t/#"
RECORDS = 4_000
PAYLOAD = bytes(1_000)
"""A member's share of the records is many times what a socket takes."""

LONGER_S = 2 * CLOG_LOOK_S * CLOG_LOOKS_MAX
STOOD_STILL_S = PING_TIMEOUT_MS / 1_000 / 3
TRIES = 3


PROTOCOLS = pytest.mark.parametrize("protocol", share(["borrow"], ["borrow", "lease"]))


@asynccontextmanager
async def serving(protocol: str) -> AsyncIterator[RevivedDaemon]:
    """A daemon with a topic and a group."""
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("t", partitions=4)
            await client.groups.create(FILTER, start="earliest", protocol=protocol)
        yield daemon


async def shared(one: MemberProcess, two: MemberProcess) -> int:
    """Wait until they share the streams; a time after they were given what they have.

    That one gave a stream to the other may be heard of later.
    """
    both = (one, two)
    await until_together(
        both, lambda: len(one.streams) == len(two.streams) == 2 and not one.streams & two.streams
    )
    return time.monotonic_ns()


def revoked_since(one: MemberProcess, at_ns: int) -> set[str]:
    """What it lost since then."""
    lost = (line for line in one.lines if line["event"] == "revoked")
    return {line["stream"] for line in lost if line["at_ns"] > at_ns}


async def publish(daemon: RevivedDaemon) -> None:
    """More than a socket takes, for each member."""
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer("t") as producer,
    ):
        await producer.send_columns(
            payloads=[PAYLOAD] * RECORDS, keys=[b"%d" % number for number in range(RECORDS)]
        )


@PROTOCOLS
async def test_the_streams_of_a_frozen_member_go_elsewhere_after_a_lease(protocol: str) -> None:
    async with (
        serving(protocol) as daemon,
        member(PROGRAM, daemon.endpoint, "sleeps", FILTER) as sleeps,
        member(PROGRAM, daemon.endpoint, "lives", FILTER) as lives,
    ):
        shared_ns = await shared(sleeps, lives)
        lost = set(sleeps.streams)
        sleeps.freeze()
        await publish(daemon)
        within_s = 3 * LEASE_MS / 1_000  # a lease, and twice as long on a busy machine
        await lives.until(lambda: {record.stream for record in lives.records} >= lost, within_s)
        sleeps.thaw()
        await sleeps.until(lambda: revoked_since(sleeps, shared_ns) == lost)
        await sleeps.holds(2)


@only_in_proof
@PROTOCOLS
async def test_a_member_that_computes_for_longer_than_that_keeps_its_streams(protocol: str) -> None:
    for _ in range(TRIES):
        async with (
            serving(protocol) as daemon,
            member(PROGRAM, daemon.endpoint, "busy", FILTER, "--compute", f"{LONGER_S}") as busy,
            member(PROGRAM, daemon.endpoint, "lives", FILTER) as lives,
        ):
            try:
                await keeps_its_streams(daemon, busy, lives)
            except AssertionError:
                # Nobody can tell a program that got no processor from one that is frozen.
                if (await busy.told("computed"))["stood_still_s"] < STOOD_STILL_S:
                    raise
            else:
                return
    pytest.fail("the machine stands still all the time")


async def keeps_its_streams(
    daemon: RevivedDaemon, busy: MemberProcess, lives: MemberProcess
) -> None:
    """A try: the one computes as soon as it gets a record."""
    shared_ns = await shared(busy, lives)
    await publish(daemon)
    both = (busy, lives)
    await until_together(both, lambda: len(busy.records) + len(lives.records) >= RECORDS)
    assert not revoked_since(busy, shared_ns)
    assert {record.stream for record in busy.records} == busy.streams
    assert len(busy.records) + len(lives.records) == RECORDS
    assert not any(record.redelivered for record in busy.records)
