"""A member's socket is full, so that no ping of the daemon can reach it: frozen is not busy."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import dss_client
from dss_core.limits import LEASE_MS
from dssd.limits import CLOG_LOOK_S, CLOG_LOOKS_MAX
from support.member_process import member
from support.proof_share import share
from support.revived_daemon import RevivedDaemon, revived

pytestmark = pytest.mark.slow("a frozen member keeps its streams for a lease")

PROGRAM = Path(__file__).parent / "programs" / "member.py"
FILTER = "$share/g/t/#"
RECORDS = 4_000
PAYLOAD = bytes(1_000)
"""A member's share of the records is many times what a socket takes."""


@pytest.fixture(params=share(["borrow"], ["borrow", "lease"]))
async def daemon(request: pytest.FixtureRequest) -> AsyncIterator[RevivedDaemon]:
    """A daemon with a topic and a group."""
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("t", partitions=4)
            await client.groups.create(FILTER, start="earliest", protocol=request.param)
        yield daemon


async def publish(daemon: RevivedDaemon) -> None:
    """More than a socket takes, for each member."""
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer("t") as producer,
    ):
        await producer.send_columns(
            payloads=[PAYLOAD] * RECORDS, keys=[b"%d" % number for number in range(RECORDS)]
        )


async def test_the_streams_of_a_frozen_member_go_elsewhere_after_a_lease(
    daemon: RevivedDaemon,
) -> None:
    async with (
        member(PROGRAM, daemon.endpoint, "sleeps", FILTER) as sleeps,
        member(PROGRAM, daemon.endpoint, "lives", FILTER) as lives,
    ):
        await sleeps.holds(2)
        await lives.holds(2)
        lost = set(sleeps.streams)
        revoked = len(sleeps.revoked)
        sleeps.freeze()
        await publish(daemon)
        within_s = 3 * LEASE_MS / 1_000  # a lease, and twice as long on a busy machine
        await lives.until(lambda: {record.stream for record in lives.records} >= lost, within_s)
        sleeps.thaw()
        await sleeps.until(lambda: set(sleeps.revoked[revoked:]) == lost)
        await sleeps.holds(2)


async def test_a_member_that_computes_for_longer_than_that_keeps_its_streams(
    daemon: RevivedDaemon,
) -> None:
    longer_s = 2 * CLOG_LOOK_S * CLOG_LOOKS_MAX
    async with (
        member(PROGRAM, daemon.endpoint, "busy", FILTER, "--compute", f"{longer_s}") as busy,
        member(PROGRAM, daemon.endpoint, "lives", FILTER) as lives,
    ):
        await busy.holds(2)
        await lives.holds(2)
        revoked = list(busy.revoked)
        await publish(daemon)
        await busy.until(lambda: len(busy.records) + len(lives.records) == RECORDS)
        assert busy.revoked == revoked
        assert {record.stream for record in busy.records} == busy.streams
        assert not any(record.redelivered for record in busy.records)
