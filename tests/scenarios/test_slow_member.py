"""A member that stops after one record costs its credit at most, and blames that record only."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import dss_client
from dss_api.v1 import sessions_pb2 as wire
from dss_api.v1 import types_pb2
from dss_core.frame import headers_of
from support.member_process import PATIENCE_S, member
from support.raw_stubs import connected
from support.revived_daemon import RevivedDaemon, revived

pytestmark = pytest.mark.slow("a revoke has to end")


PROGRAM = Path(__file__).parent / "programs" / "member.py"
FILTER = "$share/g/t/#"
GROWTH_BYTES_MAX = 32 << 20
BACKLOG_BYTES = 96 << 20
LARGE_BYTES = 256 << 10


@pytest.fixture
async def daemon() -> AsyncIterator[RevivedDaemon]:
    """A daemon with a topic and a group."""
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("t", partitions=4)
            await client.groups.create(FILTER, start="earliest")
        yield daemon


async def publish(
    daemon: RevivedDaemon, records: int, *, slice_records: int = 8_192, payload_bytes: int = 100
) -> None:
    """So many records, in frames of at most so many."""
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer("t") as producer,
    ):
        for first in range(0, records, slice_records):
            numbers = range(first, min(records, first + slice_records))
            await producer.send_columns(
                payloads=[b"x" * payload_bytes] * len(numbers),
                keys=[b"%d" % number for number in numbers],
            )
            await producer.flush()


class RawMember:
    """An Attach call without a client library, which counts what it is sent."""

    def __init__(self, call: Any) -> None:  # noqa: ANN401 # the stub's own type is generic
        self._call = call
        self.records = 0
        self.first: wire.Deliver | None = None

    async def say(self, **item: Any) -> None:  # noqa: ANN401 # any of the items
        await self._call.write(wire.SessionUp(**item))

    async def hear(self, kind: str) -> None:
        """Read until an item of the kind came."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                item = await self._call.read()
                assert isinstance(item, wire.SessionDown), "the call ended"
                if item.WhichOneof("item") == "deliver":
                    self._count(item.deliver)
                if item.WhichOneof("item") == kind:
                    return

    def _count(self, deliver: wire.Deliver) -> None:
        self.first = self.first or deliver
        sizes = [header.records for _, header in headers_of(deliver.frames)]
        self.records += sum(sizes) - sum(each.end - each.start for each in deliver.mask)

    async def take_one(self) -> None:
        """Hand out the first record, and acknowledge nothing."""
        await self.hear("deliver")
        assert self.first is not None
        offset = headers_of(self.first.frames)[0][1].base_offset
        settle = wire.Settle(grant=self.first.grant, frontier=offset + 1)
        await self.say(settle=wire.SettleBatch(settles=[settle]))


async def test_at_most_the_credit_is_sent(daemon: RevivedDaemon) -> None:
    credit = 100
    await publish(daemon, 3 * credit, slice_records=1)
    async with connected(daemon.endpoint) as stubs:
        one = RawMember(stubs.sessions.Attach())
        await one.say(open=wire.Open(client_id="slow", clean_start=True, credit_records=credit))
        await one.say(subscribe=wire.Subscribe(subscription=1, filter=FILTER))
        await one.take_one()
        while one.records < credit:
            await one.hear("deliver")
        # An ack gives back the credit of one record, and its answer comes behind all that is sent.
        deliver = one.first
        assert deliver is not None
        offset = headers_of(deliver.frames)[0][1].base_offset
        acked = [types_pb2.Range(start=offset, end=offset + 1)]
        settle = wire.Settle(grant=deliver.grant, frontier=offset + 1, acked=acked, token=7)
        await one.say(settle=wire.SettleBatch(settles=[settle]))
        await one.hear("settled")
        assert credit <= one.records <= credit + 1


async def test_a_member_that_stops_reading_costs_the_daemon_at_most_32_mib(
    daemon: RevivedDaemon,
) -> None:
    await publish(daemon, BACKLOG_BYTES // LARGE_BYTES, slice_records=64, payload_bytes=LARGE_BYTES)
    async with connected(daemon.endpoint) as stubs, connected(daemon.endpoint) as others:
        before_bytes = daemon.resident_bytes()
        stuck = RawMember(stubs.sessions.Attach())
        await stuck.say(
            open=wire.Open(
                client_id="stuck", clean_start=True, credit_records=1_000_000, credit_bytes=1 << 40
            )
        )
        await stuck.say(subscribe=wire.Subscribe(subscription=1, filter=FILTER))
        await stuck.take_one()
        # It reads no more. What another one is told shows that the daemon had time for all.
        other = RawMember(others.sessions.Attach())
        await other.say(open=wire.Open(client_id="other", clean_start=True))
        await other.say(subscribe=wire.Subscribe(subscription=1, filter="t/#"))
        await other.hear("subscribed")
        for token in range(1, 100):
            await other.say(ping=wire.Ping(token=token))
            await other.hear("pong")
        assert daemon.resident_bytes() - before_bytes <= GROWTH_BYTES_MAX


async def test_after_its_death_what_it_had_counts_an_attempt_and_comes_marked(
    daemon: RevivedDaemon,
) -> None:
    await publish(daemon, 2_000)
    async with member(PROGRAM, daemon.endpoint, "slow", FILTER, "--hold", "1,1") as slow:
        await slow.told("holding")
        await slow.kill()
    acked, stopped_at = slow.records
    async with member(PROGRAM, daemon.endpoint, "next", FILTER) as following:
        await following.until(lambda: len(following.records) == 1_999)
        assert await following.leave() == 0
    attempts = {record.place: record.attempt for record in following.records}
    assert len(attempts) == 1_999
    assert acked.place not in attempts
    assert attempts[stopped_at.place] == 2
    assert set(attempts.values()) <= {1, 2}, "in doubt once, and no record twice"
    assert all(record.redelivered for record in following.records if record.attempt == 2)
