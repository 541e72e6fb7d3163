"""What a call makes of its loss, turn by turn of the loop."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from dss_api.v1 import sessions_pb2 as wire
from dss_client import Subscription
from dss_client._attachment import Attachment
from dss_client._connection import Connection, ConnectionLostError
from dss_client.subscription import Keeper, SubscriptionOptions
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

    def unsubscribed(self, number: int) -> None: ...

    def refused(self, error: DssError, *, subscription: int, final: bool) -> None: ...


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
    attachment = Attachment(connection, call, opened, Listener())
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
    running = asyncio.create_task(Attachment(connection, call, opened, listener).run())
    for grant in (1, 2):
        way.coming.put_nowait(wire.SessionDown(granted=wire.Granted(grant=grant, subscription=1)))
    deliveries = [wire.Deliver(grant=grant) for grant in (1, 2, 1)]
    way.coming.put_nowait(wire.SessionDown(bundle=wire.DeliveryBundle(deliveries=deliveries)))
    await until(lambda: listener.only._inbox)
    assert [each.grant.number for each in listener.only._inbox] == [1, 2, 1]
    way.coming.put_nowait(None)
    await running
