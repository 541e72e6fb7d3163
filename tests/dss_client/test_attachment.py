"""What a call makes of its loss, turn by turn of the loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sized
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import Any, cast

import pytest

from dss_api.v1 import sessions_pb2 as wire
from dss_client import Subscription
from dss_client._attachment import Attachment
from dss_client._connection import Connection, ConnectionLostError
from dss_client._doubt import HELD_AGAIN_S
from dss_client._loop_watch import LOOP_HELD_S
from dss_client._subscription_options import SubscriptionOptions
from dss_client.subscription import Keeper
from dss_client.testing import until
from dss_core.errors import DssError, OutcomeUnknown

PING = wire.SessionUp(ping=wire.Ping(token=7))


class Way:
    """The connection and its call, which a test loses."""

    def __init__(self) -> None:
        self.coming: asyncio.Queue[wire.SessionDown | None] = asyncio.Queue()
        self.is_lost = False

    async def read(self, call: object) -> wire.SessionDown:
        item = await self.coming.get()
        if item is None:
            raise ConnectionLostError(OutcomeUnknown())
        return item

    async def write(self, call: object, item: wire.SessionUp) -> None:
        if self.is_lost:
            raise ConnectionLostError(OutcomeUnknown())

    def cancel(self) -> None:
        """The call is over."""


class Listener:
    """A session with one subscription."""

    def __init__(self) -> None:
        async def nobody() -> Keeper:
            raise AssertionError

        self.only = Subscription(nobody, SubscriptionOptions.of("$share/g/t/#"))

    def subscription(self, number: int) -> Subscription:
        return self.only

    def subscribed(self, item: wire.Subscribed) -> None: ...

    def acked(self, number: int) -> None: ...

    def unsubscribed(self, number: int) -> None: ...

    def refused(self, error: DssError, *, subscription: int, final: bool) -> None: ...


class Clock:
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in ("_attachment", "_doubt", "_loop_watch", "_pings"):
        monkeypatch.setattr(f"dss_client.{module}.monotonic", clock)
    return clock


class Asked(Way):
    """Keeps what it is asked, and is told when to answer."""

    def __init__(self) -> None:
        super().__init__()
        self.pings: list[int] = []

    async def write(self, call: object, item: wire.SessionUp) -> None:
        self.pings.append(item.ping.token)

    def answer(self) -> None:
        self.coming.put_nowait(wire.SessionDown(pong=wire.Pong(token=self.pings[-1])))


@asynccontextmanager
async def attached(way: Way, asked_at: float) -> AsyncIterator[Attachment]:
    opened = wire.Opened(lease_ms=6_000, credit_records=10, credit_bytes=1 << 20)
    call: Any = way
    attachment = Attachment(cast("Connection", way), call, opened, Listener(), asked_at)
    running = asyncio.create_task(attachment.run())
    await asyncio.sleep(0)
    yield attachment
    way.coming.put_nowait(None)
    await running


async def test_a_client_that_stood_still_is_sure_again_once_the_daemon_has_answered(
    clock: Clock,
) -> None:
    way = Asked()
    async with attached(way, clock.now) as attachment:
        clock.now += LOOP_HELD_S
        assert attachment.is_sure()
        clock.now += LOOP_HELD_S + 0.001
        assert not attachment.is_sure()
        asking = asyncio.create_task(attachment.sure())
        await until(lambda: way.pings)
        assert not asking.done()
        way.answer()
        await asking
        assert attachment.is_sure()


async def test_a_client_that_stood_still_is_sure_where_it_finds_that_the_call_is_lost(
    clock: Clock,
) -> None:
    way = Asked()
    async with attached(way, clock.now) as attachment:
        clock.now += LOOP_HELD_S + 0.001
        asking = asyncio.create_task(attachment.sure())
        await until(lambda: way.pings)
        way.coming.put_nowait(None)
        await asking


async def test_a_client_whose_loop_is_held_all_the_time_asks_now_and_then(clock: Clock) -> None:
    way = Asked()
    async with attached(way, clock.now) as attachment:
        for _ in range(int(3 * HELD_AGAIN_S / LOOP_HELD_S)):
            clock.now += LOOP_HELD_S + 0.001
            if not attachment.is_sure():
                asking = asyncio.create_task(attachment.sure())
                await until(partial(more_than, way.pings, len(way.pings)))
                way.answer()
                await asking
        assert len(way.pings) == 3


def more_than(pings: Sized, asked: int) -> bool:
    return len(pings) > asked


def lost_in_reading(way: Way, attachment: Attachment) -> None:
    way.coming.put_nowait(None)


def lost_in_writing(way: Way, attachment: Attachment) -> None:
    way.is_lost = True
    attachment.send(PING)


@pytest.mark.parametrize("lose", [lost_in_reading, lost_in_writing])
async def test_nothing_is_handed_out_from_the_turn_on_in_which_the_loss_is_noticed(
    lose: Callable[[Way, Attachment], None],
) -> None:
    way = Way()
    opened = wire.Opened(lease_ms=6_000, credit_records=10, credit_bytes=1 << 20)
    connection = cast("Connection", way)
    call: Any = way
    attachment = Attachment(connection, call, opened, Listener(), monotonic())
    running = asyncio.create_task(attachment.run())
    way.coming.put_nowait(wire.SessionDown(granted=wire.Granted(grant=1, subscription=1)))
    await until(lambda: attachment._grants)
    grant = attachment._grants[1]
    lose(way, attachment)
    await asyncio.sleep(0)
    assert grant.stopped
    assert isinstance(await running, OutcomeUnknown)


async def test_each_delivery_of_a_bundle_is_taken() -> None:
    way, listener = Way(), Listener()
    opened = wire.Opened(lease_ms=6_000, credit_records=10, credit_bytes=1 << 20)
    connection = cast("Connection", way)
    call: Any = way
    running = asyncio.create_task(Attachment(connection, call, opened, listener, monotonic()).run())
    for grant in (1, 2):
        way.coming.put_nowait(wire.SessionDown(granted=wire.Granted(grant=grant, subscription=1)))
    deliveries = [wire.Deliver(grant=grant) for grant in (1, 2, 1)]
    way.coming.put_nowait(wire.SessionDown(bundle=wire.DeliveryBundle(deliveries=deliveries)))
    await until(lambda: listener.only._inbox)
    assert [each.grant.number for each in listener.only._inbox] == [1, 2, 1]
    way.coming.put_nowait(None)
    await running
