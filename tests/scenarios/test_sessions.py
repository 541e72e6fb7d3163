"""Sessions and memberships as clients live them, against a real daemon."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from math import ceil
from time import monotonic
from typing import Any

import pytest

import dss_client
from dss_api.v1 import sessions_pb2 as wire
from dss_client import Client, DeliveredRecord, GrantNotice, Subscription
from dss_core.errors import GroupDestroyed, GroupNotFound, SessionTakenOver
from dss_core.limits import ACKED_RANGES_MAX
from support.raw_stubs import Stubs, connected
from support.revived_daemon import RevivedDaemon, revived

PATIENCE_S = 60.0
POLL_S = 0.02
QUIET_S = 0.3
STREAMS = 12
TRIES = 3
A_MS = 0.001
"""What the daemon, which counts in milliseconds, may be early."""
FILTER = "$share/g/t/#"


@pytest.fixture
async def daemon() -> AsyncIterator[RevivedDaemon]:
    """A daemon."""
    async with revived() as daemon:
        yield daemon


@pytest.fixture
async def client(daemon: RevivedDaemon) -> AsyncIterator[Client]:
    """Someone who publishes and administers."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        yield client


async def publish(client: Client, *payloads: bytes) -> None:
    """One after the other."""
    async with client.producer("t") as producer:
        for payload in payloads:
            await producer.send(payload, key=payload)


async def take(subscription: Subscription, count: int) -> list[DeliveredRecord]:
    """So many records."""
    records = await subscription.fetch(count, PATIENCE_S) if count else []
    assert len(records) == count
    return records


async def acked(records: list[DeliveredRecord]) -> None:
    """Acknowledge these, durably; all are of one stream."""
    for record in records[:-1]:
        await record.ack()
    await records[-1].ack(sync=True)


# One client id


async def test_a_second_connection_takes_over_and_the_first_is_told_so(
    daemon: RevivedDaemon, client: Client
) -> None:
    await client.topics.create("t", partitions=1)
    await publish(client, *(b"%d" % number for number in range(6)))
    revoked = asyncio.Event()
    async with (
        asyncio.TaskGroup() as tasks,
        dss_client.connect("me", endpoint=daemon.endpoint) as old,
        old.subscribe(FILTER, start="earliest", on_revoke=lambda _: revoked.set()) as first,
    ):
        records = await take(first, 4)
        await acked(records[:2])
        # Who settles what it has is not waited for, so it answers before its time is over.
        tasks.create_task(refused_once(revoked, records[2:]), name="refuse")
        async with (
            dss_client.connect("me", endpoint=daemon.endpoint) as new,
            new.subscribe(FILTER) as second,
        ):
            again = sorted(await take(second, 4), key=lambda record: record.offset)
            with pytest.raises(SessionTakenOver) as told:
                await take(first, 1)
            assert told.value.code == "DSS6002"
            # What the first was given, it may still try to acknowledge; nobody hears it.
            await records[2].ack()
            assert [record.offset for record in again] == [2, 3, 4, 5]
            # What the first had not handed out, nobody has seen.
            assert [record.attempt for record in again] == [2, 2, 1, 1]
            assert [record.redelivered for record in again] == [True, True, False, False]
            await acked(again)
    assert (await client.groups.describe("g")).group.lag == 0


async def refused_once(when: asyncio.Event, records: list[DeliveredRecord]) -> None:
    """Refuse these records, once something has happened."""
    await when.wait()
    for record in records:
        await record.nak()


async def test_a_clean_start_forgets_and_a_resumed_session_remembers(
    daemon: RevivedDaemon, client: Client
) -> None:
    await client.topics.create("t", partitions=1)
    await publish(client, b"0", b"1", b"2")

    async def life(count: int, *, clean_start: bool, start: str | None) -> list[tuple[int, bool]]:
        """Take all there is, and acknowledge the first; what was it, and was it marked?"""
        connecting = dss_client.connect("me", clean_start, 600, daemon.endpoint)
        async with connecting as mine, mine.subscribe("t/#", start=start) as subscription:
            records = await take(subscription, count)
            assert await subscription.fetch(1, timeout=QUIET_S) == []
            if records:
                await acked(records[:1])
            # The others are left as they are: handed out, and not acknowledged.
            return [(record.offset, record.redelivered) for record in records]

    fresh = [(0, False), (1, False), (2, False)]
    assert await life(3, clean_start=True, start="earliest") == fresh
    assert await life(2, clean_start=False, start="earliest") == [(1, True), (2, True)]
    assert await life(3, clean_start=True, start="earliest") == fresh
    assert await life(0, clean_start=True, start="now") == []


class RawSession:
    """An Attach call, item by item."""

    def __init__(self, stubs: Stubs) -> None:
        self.call = stubs.sessions.Attach()

    async def say(self, **item: Any) -> None:  # noqa: ANN401 # any of the items
        await self.call.write(wire.SessionUp(**item))

    async def hear(self, kind: str) -> Any:  # noqa: ANN401 # the item of that kind
        """The next item of the kind."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                item = await self.call.read()
                assert isinstance(item, wire.SessionDown), "the call ended"
                if item.WhichOneof("item") == kind:
                    return getattr(item, kind)

    async def open(self, session_id: bytes = b"", *, clean_start: bool = False) -> wire.Opened:
        """Open with an expiry of 0."""
        opening = wire.Open(client_id="me", clean_start=clean_start, session_id=session_id)
        await self.say(open=opening)
        opened = await self.hear("opened")
        assert isinstance(opened, wire.Opened)
        return opened


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_session_of_expiry_0_waits_for_its_client_through_a_short_absence(
    daemon: RevivedDaemon, client: Client, restarted: bool
) -> None:
    await client.topics.create("t", partitions=1)
    await publish(client, b"0", b"1")
    async with connected(daemon.endpoint) as stubs:
        session = RawSession(stubs)
        first = await session.open(clean_start=True)
        assert not first.session_present
        await session.say(subscribe=wire.Subscribe(subscription=1, filter="t/#"))
        await session.hear("granted")
    if restarted:
        await daemon.revive()
    await publish(client, b"2")
    async with connected(daemon.endpoint) as stubs:
        session = RawSession(stubs)
        second = await session.open(first.session_id)
        assert second.session_present
        assert second.session_id == first.session_id
        assert second.session_epoch > first.session_epoch
        # It has its subscription, which began behind the first two records, and is used again.
        await session.say(subscribe=wire.Subscribe(subscription=1, filter="t/#"))
        granted = await session.hear("granted")
        assert (granted.subscription, granted.progress.floor) == (1, 2)
        deliver = await session.hear("deliver")
        assert deliver.frames


async def test_a_synchronous_ack_survives_the_daemon_killed_right_behind_it(
    daemon: RevivedDaemon, client: Client
) -> None:
    await client.topics.create("t", partitions=1)
    await publish(client, *(b"%d" % number for number in range(10)))
    async with client.subscribe(FILTER, start="earliest") as subscription:
        for number in range(3):
            records = await take(subscription, 3)
            assert records[0].offset == number
            await records[0].ack(sync=True)
            await daemon.revive()
    assert (await client.groups.describe("g")).grants[0].progress.floor == 3


# Groups


async def test_who_leaves_a_daemon_that_does_not_answer_is_told_what_may_come_again(
    daemon: RevivedDaemon,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await client.topics.create("t", partitions=1)
    await publish(client, b"one")
    async with client.subscribe(FILTER, start="earliest") as subscription:
        [record] = await take(subscription, 1)
        with daemon.frozen(), monkeypatch.context() as hurried:
            hurried.setattr("dss_client.session.CLOSE_TIMEOUT_S", POLL_S)
            await record.ack()
            await subscription.drain()
        assert "were acknowledged last may be redelivered" in caplog.text
        caplog.clear()
        await subscription.drain()
    assert not caplog.text


async def test_who_leaves_without_open_acks_is_not_told_of_any(
    daemon: RevivedDaemon,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await client.topics.create("t", partitions=1)
    await publish(client, b"one")
    async with client.subscribe(FILTER, start="earliest") as subscription:
        await take(subscription, 1)
        with daemon.frozen(), monkeypatch.context() as hurried:
            hurried.setattr("dss_client.session.CLOSE_TIMEOUT_S", POLL_S)
            await subscription.drain()
        assert "the daemon did not answer within" in caplog.text
        assert "redelivered" not in caplog.text


async def test_members_of_a_destroyed_group_are_told_and_do_not_bring_it_back(
    daemon: RevivedDaemon, client: Client
) -> None:
    await client.topics.create("t", partitions=2)
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as other,
        client.subscribe(FILTER) as one,
        other.subscribe(FILTER) as two,
    ):
        waiting = [asyncio.create_task(take(each, 1)) for each in (one, two)]
        await client.groups.remove("g")
        for each in waiting:
            with pytest.raises(GroupDestroyed):
                await each
        # A daemon that starts anew, and members that come back to it, change nothing about that.
        await daemon.revive()
        with pytest.raises(GroupDestroyed):
            async with other.subscribe(FILTER):
                pass
        with pytest.raises(GroupNotFound):
            await client.groups.describe("g")
        await client.groups.create(FILTER, start="earliest")
        await publish(client, b"x")
        async with other.subscribe(FILTER) as again:
            [record] = await take(again, 1)
            assert record.payload == b"x"
            await record.ack()


class Member:
    """A member in this process, which keeps count of its streams."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.streams: set[str] = set()
        self.granted = 0
        self.revoked = 0
        self.subscription: Subscription
        self._changed = asyncio.Event()
        self._stack = AsyncExitStack()

    async def join(self, daemon: RevivedDaemon) -> None:
        """Connect and subscribe."""
        connecting = dss_client.connect(self.name, endpoint=daemon.endpoint)
        client = await self._stack.enter_async_context(connecting)
        subscribing = client.subscribe(
            FILTER, start="earliest", on_grant=self._gain, on_revoke=self._lose
        )
        self.subscription = await self._stack.enter_async_context(subscribing)

    async def leave(self) -> None:
        """Leave the group and disconnect."""
        await self._stack.aclose()

    def forget_counts(self) -> None:
        self.granted = self.revoked = 0

    async def holds(self, streams: int) -> None:
        """Wait until it holds so many streams."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.streams) != streams:
                self._changed.clear()
                await self._changed.wait()

    def _gain(self, notice: GrantNotice) -> None:
        self.streams.add(notice.stream)
        self.granted += 1
        self._changed.set()

    def _lose(self, notice: GrantNotice) -> None:
        self.streams.discard(notice.stream)
        self.revoked += 1
        self._changed.set()


async def test_a_join_and_a_leave_move_no_more_than_they_must_and_disturb_nobody_else(
    daemon: RevivedDaemon, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await client.topics.create("t", partitions=STREAMS)
    for _ in range(TRIES):
        try:
            await no_more_moves_than_must(daemon)
        except AssertionError:
            # A machine that stands still for seconds cuts members off, and their streams go too.
            if "lost its connection" not in caplog.text:
                raise
            caplog.clear()
        else:
            return
    pytest.fail("members are cut off all the time")


async def no_more_moves_than_must(daemon: RevivedDaemon) -> None:
    members = one, two, three = Member("one"), Member("two"), Member("three")
    try:
        await one.join(daemon)
        await two.join(daemon)
        for each in (one, two):
            await each.holds(STREAMS // 2)
            each.forget_counts()
        await three.join(daemon)
        await three.holds(STREAMS // 3)
        assert three.granted == ceil(STREAMS / 3)
        assert one.revoked + two.revoked == ceil(STREAMS / 3)
        assert one.granted == two.granted == 0
        assert not one.streams & two.streams
        assert not (one.streams | two.streams) & three.streams
        for each in (one, two):
            each.forget_counts()
        await three.leave()
        for each in (one, two):
            await each.holds(STREAMS // 2)
        assert (one.granted, two.granted) == (2, 2)
        assert one.revoked == two.revoked == 0
    finally:
        for each in members:
            await each.leave()


async def test_more_members_than_streams_stand_by_and_step_in(
    daemon: RevivedDaemon, client: Client
) -> None:
    await client.topics.create("t", partitions=2)
    members = [Member(name) for name in ("one", "two", "three")]
    for each in members[:2]:
        await each.join(daemon)
    for each in members[:2]:
        await each.holds(1)
    await members[2].join(daemon)
    described = await client.groups.describe("g")
    while described.group.borrowers < 3 or described.group.state != "active":
        await asyncio.sleep(POLL_S)
        described = await client.groups.describe("g")
    assert described.group.standby == 1
    assert [each.client_id for each in described.borrowers if each.standby] == ["three"]
    assert members[2].subscription.state == "standby"
    await members[0].leave()
    await members[2].holds(1)
    await publish(client, b"a", b"b", b"c", b"d")
    assert (await client.groups.describe("g")).group.standby == 0
    taken: list[DeliveredRecord] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(taken) < 4:
            for each in members[1:]:
                taken += await each.subscription.fetch(4, QUIET_S)
    assert {record.payload for record in taken} == {b"a", b"b", b"c", b"d"}
    for record in taken:
        await record.ack()
    assert members[1].revoked == 0
    for each in members[1:]:
        await each.leave()


# What comes again


async def test_a_refused_record_comes_again_after_its_delay_and_later_ones_do_not_wait(
    client: Client,
) -> None:
    await client.topics.create("t", partitions=1)
    async with client.subscribe(FILTER, start="earliest") as subscription:
        await publish(client, b"0", b"1")
        refused, next_one = await take(subscription, 2)
        refused_at_s = monotonic()
        await refused.nak(delay=0.3)
        await next_one.ack()
        await publish(client, b"2")
        [later] = await take(subscription, 1)
        assert (later.payload, later.redelivered, later.attempt) == (b"2", False, 1)
        await later.ack()
        [again] = await take(subscription, 1)
        assert monotonic() - refused_at_s > 0.3 - A_MS
        assert (again.offset, again.redelivered, again.attempt) == (0, True, 2)
        await again.nak(delay=0)
        [third] = await take(subscription, 1)
        assert (third.offset, third.redelivered, third.attempt) == (0, True, 3)
        await third.ack(sync=True)
    assert (await client.groups.describe("g")).group.lag == 0


async def test_without_a_delay_the_daemon_backs_off_at_least_twice_as_long_each_time(
    client: Client,
) -> None:
    await client.topics.create("t", partitions=1)
    async with client.subscribe(FILTER, start="earliest") as subscription:
        await publish(client, b"0")
        [record] = await take(subscription, 1)
        for attempt, rest_s in ((2, 1.0), (3, 2.0)):
            refused_at_s = monotonic()
            await record.nak()
            [record] = await take(subscription, 1)
            assert record.attempt == attempt
            assert monotonic() - refused_at_s > rest_s - A_MS
        await record.ack()


async def test_a_record_that_is_not_acknowledged_in_time_comes_again(client: Client) -> None:
    await client.topics.create("t", partitions=1)
    ack_wait_s = 1.5
    async with client.subscribe(FILTER, start="earliest", ack_wait=ack_wait_s) as subscription:
        await publish(client, b"0", b"1")
        records = await take(subscription, 2)
        handed_at_s = monotonic()
        await records[1].ack()
        [again] = await take(subscription, 1)
        assert monotonic() - handed_at_s >= ack_wait_s / 2
        assert (again.offset, again.redelivered, again.attempt) == (0, True, 2)
        await again.ack(sync=True)
        assert await subscription.fetch(1, timeout=ack_wait_s + QUIET_S) == []


async def test_where_every_other_record_is_acknowledged_the_next_members_get_the_others(
    daemon: RevivedDaemon, client: Client
) -> None:
    await client.topics.create("t", partitions=1)
    count = 3 * ACKED_RANGES_MAX
    async with client.producer("t") as producer:
        await producer.send_columns([b"%d" % number for number in range(count)])
    async with client.subscribe(FILTER, start="earliest") as first:
        records = await take(first, count)
        await acked([record for record in records if record.offset % 2])
    even = list(range(0, count, 2))
    for name in ("keeps-all", "acknowledges-all"):
        async with (
            dss_client.connect(name, endpoint=daemon.endpoint) as other,
            other.subscribe(FILTER) as second,
        ):
            left = await take(second, len(even))
            assert [record.offset for record in left] == even
            assert all(record.redelivered for record in left)
            if name == "acknowledges-all":
                await acked(left)
    assert (await client.groups.describe("g")).group.lag == 0
