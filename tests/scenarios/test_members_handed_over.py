"""Streams change hands and members are ended while a group consumes, in a real daemon.

Three members acknowledge what they get, each record durably, while a producer goes on. Nothing is
lost, and nothing whose acknowledgement was durable comes again.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

import dss_client
from dss_client import Client
from dss_client.changes import Evict, Rebalance, RevokeGrant, TransferGrant
from dss_core.errors import (
    BorrowerEvicted,
    ClientBanned,
    DssError,
    GrantNotHeld,
    OutcomeUnknown,
    TimedOut,
    Unreachable,
)
from support.proof_share import share
from support.revived_daemon import RevivedDaemon, revived
from support.settled_group import until_settled

pytestmark = pytest.mark.slow("members come, are ended and come back, under two protocols")

FILTER = "$share/g/t/#"
PARTITIONS = 6
PATIENCE_S = 60.0
POLL_S = 0.01
PAUSE_S = 0.002
"""Between two sends, so that records come all the time and not all at once."""

Place = tuple[str, int]


class Consuming:
    """A member that acknowledges each record durably, until its subscription ends."""

    def __init__(self, daemon: RevivedDaemon, name: str) -> None:
        self.name = name
        self.given: list[Place] = []
        self.durable: set[Place] = set()
        self.unsure: set[Place] = set()
        """What it acknowledged, and nobody told it whether that counts."""
        self.again: list[Place] = []
        """What came although its acknowledgement was durable."""
        self.ended: DssError | None = None
        self._daemon = daemon
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Subscribe, or subscribe again."""
        self.ended = None
        self._task = asyncio.create_task(self._consume(), name=f"member {self.name}")

    async def stop(self) -> None:
        """Leave."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def over(self) -> DssError:
        """The error that ends the subscription."""
        await until(lambda: self.ended is not None)
        assert self.ended is not None
        return self.ended

    async def _consume(self) -> None:
        while self.ended is None:
            try:
                await self._subscribe()
            except (Unreachable, OutcomeUnknown, TimedOut):
                # The daemon is down just now.
                continue
            except DssError as error:
                self.ended = error

    async def _subscribe(self) -> None:
        async with (
            dss_client.connect(self.name, endpoint=self._daemon.endpoint) as client,
            client.subscribe(FILTER) as subscription,
        ):
            async for record in subscription:
                place = record.stream, record.offset
                self.given.append(place)
                if place in self.durable:
                    self.again.append(place)
                try:
                    await record.ack(sync=True)
                except GrantNotHeld:
                    continue
                except OutcomeUnknown:
                    self.unsure.add(place)
                    continue
                self.durable.add(place)


class Group:
    """Three members of a group, a producer that goes on, and an operator."""

    def __init__(self, daemon: RevivedDaemon, client: Client, members: list[Consuming]) -> None:
        self.daemon = daemon
        self.client = client
        self.members = {member.name: member for member in members}
        self.sent: set[Place] = set()

    async def publish(self) -> None:
        """Send records until it is cancelled."""
        async with self.client.producer("t") as producer:
            number = 0
            while True:
                receipt = await producer.send(b"%d" % number, key=b"k%d" % (number % 50))
                self.sent.add((receipt.stream, receipt.offset))
                number += 1
                await asyncio.sleep(PAUSE_S)

    async def holders(self) -> dict[str, str]:
        """Which client holds each stream under a confirmed grant."""
        found = await self.client.groups.describe("g")
        return {grant.stream: grant.client_id for grant in found.grants if grant.state == "granted"}

    async def shared_by(self, *names: str) -> dict[str, str]:
        """Wait until each of them holds streams, and nobody else does."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                held = await self.holders()
                if len(held) == PARTITIONS and set(held.values()) == set(names):
                    return held
                await asyncio.sleep(POLL_S)

    async def reachable(self) -> None:
        """Wait until the operator's connection is there again after a restart."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    await self.client.groups.describe("g")
                except (Unreachable, OutcomeUnknown, TimedOut):
                    await asyncio.sleep(POLL_S)
                else:
                    return

    async def settled(self) -> None:
        """Wait until the group is done with all that was sent; all of it was acknowledged."""
        await until_settled(self.client, "g", patience_s=PATIENCE_S)
        members = self.members.values()
        # The last answers are still on their way to the members.
        await until(lambda: self.sent <= set().union(*(m.durable | m.unsure for m in members)))

    def check(self) -> None:
        """Nothing that was acknowledged durably came again, to whomever."""
        twice = Counter(place for each in self.members.values() for place in each.durable)
        assert [place for place, times in twice.items() if times > 1] == []
        assert [each.again for each in self.members.values()] == [[], [], []]


async def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(POLL_S)


@asynccontextmanager
async def consuming(protocol: str) -> AsyncIterator[Group]:
    """A group of three, once it consumes."""
    async with AsyncExitStack() as stack:
        daemon = await stack.enter_async_context(revived())
        client = await stack.enter_async_context(dss_client.connect(endpoint=daemon.endpoint))
        await client.topics.create("t", partitions=PARTITIONS)
        await client.groups.create(FILTER, start="earliest", protocol=protocol)
        group = Group(daemon, client, [Consuming(daemon, name) for name in ("ann", "bob", "cat")])
        for member in group.members.values():
            member.begin()
            stack.push_async_callback(member.stop)
        await group.shared_by("ann", "bob", "cat")
        publishing = asyncio.create_task(group.publish(), name="publishing")
        try:
            yield group
        finally:
            publishing.cancel()
            await asyncio.wait([publishing])
        await group.settled()
        group.check()


BOTH = pytest.mark.parametrize("protocol", ["borrow", "lease"])
EITHER = pytest.mark.parametrize("protocol", share(["borrow"], ["borrow", "lease"]))


@BOTH
async def test_streams_are_transferred_revoked_and_rebalanced_under_live_members(
    protocol: str,
) -> None:
    async with consuming(protocol) as group:
        operations = group.client.operations
        held = await group.holders()
        of_ann = [stream for stream, name in held.items() if name == "ann"]
        moved = await operations.apply(TransferGrant("g", of_ann[0], "bob"), reason="nearer")
        assert (await operations.ended(moved.number)).state == "done"
        assert (await group.holders())[of_ann[0]] == "bob"
        described = await group.client.groups.describe("g")
        pins = {grant.stream: grant.pinned_to for grant in described.grants if grant.pinned_to}
        assert pins == {of_ann[0]: "bob"}
        revoked = await operations.apply(RevokeGrant("g", of_ann[1]))
        assert (await operations.ended(revoked.number)).state == "done"
        assert (await group.holders())[of_ann[1]] != "ann"
        plan = await operations.plan(Rebalance("g", moves_max=1))
        assert [move.to_client_id for move in plan.moves] == ["ann"]
        balanced = await operations.apply(plan.change, if_revision=plan.revision)
        assert (await operations.ended(balanced.number)).state == "done"
        assert Counter((await group.holders()).values())["ann"] == 1


@BOTH
async def test_an_evicted_member_is_told_why_and_may_subscribe_again(protocol: str) -> None:
    async with consuming(protocol) as group:
        operations, ann = group.client.operations, group.members["ann"]
        evicted = await operations.apply(Evict("g", "ann"), reason="it is stuck")
        assert (await operations.ended(evicted.number)).state == "done"
        error = await ann.over()
        assert isinstance(error, BorrowerEvicted)
        assert "it is stuck" in error.message
        await group.shared_by("bob", "cat")
        ann.begin()
        await group.shared_by("ann", "bob", "cat")


@EITHER
async def test_a_banned_client_is_kept_out_over_a_restart_until_it_is_let_in(protocol: str) -> None:
    async with consuming(protocol) as group:
        operations, ann = group.client.operations, group.members["ann"]
        evicted = await operations.apply(Evict("g", "ann", ban_ms=600_000))
        assert isinstance(await ann.over(), BorrowerEvicted)
        ann.begin()
        assert isinstance(await ann.over(), ClientBanned)
        await operations.ended(evicted.number)
        await group.shared_by("bob", "cat")
        await group.daemon.revive()
        await group.reachable()
        ann.begin()
        error = await ann.over()
        assert isinstance(error, ClientBanned)
        assert error.fields["client_id"] == "ann"
        await group.shared_by("bob", "cat")
        undone = await operations.undo(evicted.number)
        assert (await operations.ended(undone.number)).state == "done"
        ann.begin()
        await group.shared_by("ann", "bob", "cat")


@EITHER
async def test_an_eviction_is_done_although_the_daemon_dies_in_the_middle(protocol: str) -> None:
    async with consuming(protocol) as group:
        operations, ann = group.client.operations, group.members["ann"]
        evicted = await operations.apply(Evict("g", "ann"), reason="stuck")
        await group.daemon.revive()
        await group.reachable()
        assert (await operations.ended(evicted.number)).state == "done"
        assert isinstance(await ann.over(), BorrowerEvicted)
        await group.shared_by("bob", "cat")
