"""A member that an operator ends again and again, in a real daemon, goes on where it stopped.

Each session has hundreds of records in the queue of its client when it is ended. None of them is to
blame for that: they come next, in order, and the stream does not go on around them.
"""

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

import dss_client
from dss_client import Client
from dss_client.changes import CloseSession, Evict
from dss_core.errors import BorrowerEvicted, SessionClosed
from support.proof_share import share
from support.revived_daemon import RevivedDaemon, revived

RECORDS = 1_500
TAKEN = 6
"""Records that a session acknowledges before it is ended."""
ENDS = 4
"""More than so many doubts as make a record come alone."""


@pytest.fixture
async def daemon() -> AsyncIterator[RevivedDaemon]:
    """A daemon whose topic has one stream, of one key."""
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("t", partitions=1)
            async with client.producer("t") as producer:
                await producer.send_columns(payloads=[b"x"] * RECORDS, keys=[b"k"] * RECORDS)
        yield daemon


async def ended(
    daemon: RevivedDaemon, operator: Client, group: str, change: CloseSession | Evict
) -> list[tuple[int, bool]]:
    """What a session acknowledges until an operator ends it: offset, and whether marked."""
    given: list[tuple[int, bool]] = []
    with suppress(BorrowerEvicted, SessionClosed):
        async with (
            dss_client.connect("ann", endpoint=daemon.endpoint) as client,
            client.subscribe(f"$share/{group}/t/#") as subscription,
        ):
            async for record in subscription:
                given.append((record.offset, record.redelivered))
                await record.ack()
                if len(given) == TAKEN:
                    operation = await operator.operations.apply(change)
                    await operator.operations.ended(operation.number)
    return given


@pytest.mark.parametrize("protocol", share(["borrow"], ["borrow", "lease"]))
async def test_who_is_evicted_and_closed_in_turn_goes_on_in_order(
    daemon: RevivedDaemon, protocol: str
) -> None:
    async with dss_client.connect("operator", endpoint=daemon.endpoint) as operator:
        await operator.groups.create("$share/g/t/#", start="earliest", protocol=protocol)
        given: list[tuple[int, bool]] = []
        for number in range(ENDS + 1):
            change = CloseSession("ann") if number % 2 else Evict("g", "ann", grace_ms=0)
            given += await ended(daemon, operator, "g", change)
    assert given == [(offset, False) for offset in range(TAKEN * (ENDS + 1))]
