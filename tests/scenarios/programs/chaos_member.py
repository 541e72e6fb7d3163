"""A member of a group that takes records in any of four ways, and settles them in all ways.

Usage: chaos_member.py ENDPOINT CLIENT_ID FILTER WAY SEED

WAY is iterate, batches, fetch or run; or hold: nothing is settled until it was told ``again``.

It acknowledges most records a moment after it was given them, waits for some of the acks until they
are durable, refuses some with and some without a delay, and in a ``run`` some handlers fail. Each
line on stdout has the moment on the monotonic clock: ``record`` right behind a hand-out, ``acked``
and ``nakked`` right before, ``durable`` behind the answer and with the moment of the question.

``again`` on stdin makes it leave at once, records in hand, and come back in the same breath;
``leave`` makes it drain and end.
"""

import argparse
import asyncio
import json
import logging
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import NoReturn

import dss_client
from dss_client import DeliveredBatch, DeliveredRecord, GrantNotice, Subscription
from dss_core.errors import GrantNotHeld, OutcomeUnknown, TimedOut, Unreachable

REFUSED, FAILED, SYNC = 0.02, 0.02, 0.04
"""Shares of the records."""
DELAYS_S = (None, 0.0, 0.3, 1.0, 2.5)
SETTLED_WITHIN_S = 0.1
"""A record is held for up to so long, so that whoever kills this finds it at work."""
FETCHED_MAX = 40
FETCH_S = 0.05
"""Short, as what clients vanished with comes alone, so that there is no more to wait for."""
CONCURRENCY = 8


class HandlerFailed(Exception):
    """What the handler of a run raises now and then."""


class Settling:
    """What becomes of records once they are taken."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        # Bounded by the credit: what is in it is not acknowledged.
        self._due: asyncio.Queue[tuple[float, Callable[[], Awaitable[None]]]] = asyncio.Queue()

    def later(self, settle: Callable[[], Awaitable[None]]) -> None:
        """Settle something in a moment, in the order in which it was taken."""
        due_s = time.monotonic() + self.chance.random() * SETTLED_WITHIN_S
        self._due.put_nowait((due_s, settle))

    async def work(self) -> NoReturn:
        """Settle what is due."""
        while True:
            due_s, settle = await self._due.get()
            await asyncio.sleep(due_s - time.monotonic())
            await settle()
            self._due.task_done()

    async def all_settled(self) -> None:
        """Wait until nothing is in hand."""
        await self._due.join()

    async def one(self, record: DeliveredRecord) -> None:
        """Any fate."""
        drawn = self.chance.random()
        if drawn < REFUSED:
            await self.refuse(record, [record])
        else:
            await self.accept(record, [record], sync=drawn < REFUSED + SYNC)

    async def whole(self, batch: DeliveredBatch, records: Sequence[DeliveredRecord]) -> None:
        """A batch at once, or its records one by one."""
        drawn = self.chance.random()
        if drawn < 0.5:
            await self.accept(batch, records, sync=drawn < 0.1)
        elif drawn < 0.5 + REFUSED:
            await self.refuse(batch, records)
        else:
            for record in records:
                await self.one(record)

    async def accept(
        self,
        what: DeliveredRecord | DeliveredBatch,
        records: Sequence[DeliveredRecord],
        *,
        sync: bool,
    ) -> None:
        """Acknowledge."""
        tell(*(said("acked", record, offset=record.offset) for record in records))
        asked_at_ns = time.monotonic_ns()
        try:
            await what.ack(sync=sync)
        except (GrantNotHeld, OutcomeUnknown):
            # Nobody says that it is durable; who is lent the stream next gets it again.
            return
        if sync:
            tell(said("durable", records[0], asked_at_ns=asked_at_ns))

    async def refuse(
        self, what: DeliveredRecord | DeliveredBatch, records: Sequence[DeliveredRecord]
    ) -> None:
        """Nak, with or without a delay."""
        delay_s = self.chance.choice(DELAYS_S)
        delay_ms = round((delay_s or 0.0) * 1_000)
        tell(*(said("nakked", each, offset=each.offset, delay_ms=delay_ms) for each in records))
        await what.nak(delay_s)


async def iterate(subscription: Subscription, settling: Settling) -> None:
    """One by one."""
    async for record in subscription:
        tell_handed([record])
        settling.later(partial(settling.one, record))


async def hold(subscription: Subscription) -> None:
    """One by one, and settle nothing."""
    async for record in subscription:
        tell_handed([record])


async def take_batches(subscription: Subscription, settling: Settling) -> None:
    """By the batch."""
    async for batch in subscription.batches():
        records = list(batch)
        tell_handed(records)
        settling.later(partial(settling.whole, batch, records))


async def fetch(subscription: Subscription, settling: Settling, over: asyncio.Event) -> None:
    """Some at a time, until it is over."""
    while not over.is_set():
        records = await subscription.fetch(settling.chance.randint(1, FETCHED_MAX), FETCH_S)
        tell_handed(records)
        for record in records:
            settling.later(partial(settling.one, record))


async def run(subscription: Subscription, settling: Settling) -> None:
    """By a handler, which fails now and then."""

    async def handle(record: DeliveredRecord) -> None:
        tell_handed([record])
        await asyncio.sleep(settling.chance.random() * SETTLED_WITHIN_S / 2)
        drawn = settling.chance.random()
        if drawn < FAILED:
            tell(said("nakked", record, offset=record.offset, delay_ms=0))
            raise HandlerFailed
        await settling.one(record)

    await subscription.run(handle, concurrency=CONCURRENCY)


class Life:
    """A member, from its first subscription to its end."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._settling = Settling(random.Random(arguments.seed))
        self._over = asyncio.Event()
        self._came_back = False

    async def live(self) -> None:
        """Take part until told to leave."""
        arguments = self._arguments
        client = dss_client.connect(arguments.client_id, endpoint=arguments.endpoint)
        orders = heard_orders()
        async with client, asyncio.TaskGroup() as tasks:
            settling = tasks.create_task(self._settling.work(), name="settling")
            while not self._over.is_set():
                try:
                    await self._subscribe(client, orders)
                    tell({"event": "outside"})
                except (Unreachable, OutcomeUnknown, TimedOut):
                    # The daemon is down just now, or died of the question.
                    continue
            settling.cancel()
        tell({"event": "left"})

    async def _subscribe(self, client: dss_client.Client, orders: AsyncIterator[str]) -> None:
        """One subscription, until the next order."""
        subscribing = client.subscribe(
            self._arguments.filter,
            on_grant=lambda notice: tell(noticed("granted", notice)),
            on_revoke=lambda notice: tell(noticed("revoked", notice)),
        )
        async with subscribing as subscription, asyncio.TaskGroup() as tasks:
            tell({"event": "subscribed"})
            consuming = tasks.create_task(self._consume(subscription), name="consuming")
            if await anext(orders) == "leave":
                self._over.set()
                await subscription.drain()
                await consuming
                await self._settling.all_settled()
            else:
                consuming.cancel()
                self._came_back = True

    async def _consume(self, subscription: Subscription) -> None:
        match self._arguments.way:
            case "hold" if not self._came_back:
                await hold(subscription)
            case "iterate" | "hold":
                await iterate(subscription, self._settling)
            case "batches":
                await take_batches(subscription, self._settling)
            case "fetch":
                await fetch(subscription, self._settling, self._over)
            case "run":
                await run(subscription, self._settling)


async def heard_orders() -> AsyncIterator[str]:
    """What is said on stdin."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := (await reader.readline()).decode().strip():
        yield line
    yield "leave"


def tell_handed(records: Sequence[DeliveredRecord]) -> None:
    """Report what was handed out together, with one stamp."""
    at_ns = time.monotonic_ns()
    tell(*(handed(record) for record in records), at_ns=at_ns)


def handed(record: DeliveredRecord) -> dict[str, object]:
    """A line about a hand-out."""
    facts = {"payload": record.payload.decode(), "redelivered": record.redelivered}
    return said("record", record, offset=record.offset, attempt=record.attempt, **facts)


def said(event: str, record: DeliveredRecord, **facts: object) -> dict[str, object]:
    """A line about a record, or about its grant."""
    place = {"stream": record.stream, "grant_epoch": record.grant_epoch}
    return {"event": event, **place, **facts}


def noticed(event: str, notice: GrantNotice) -> dict[str, object]:
    """A line about what happened to a stream."""
    place = {"stream": notice.stream, "grant_epoch": notice.grant_epoch}
    return {"event": event, **place, "floor": notice.floor}


def tell(*lines: dict[str, object], at_ns: int = 0) -> None:
    """Report to whoever started this member, who gets all of it though this is killed next."""
    at_ns = at_ns or time.monotonic_ns()
    sys.stdout.write("".join(json.dumps({"at_ns": at_ns, **line}) + "\n" for line in lines))
    sys.stdout.flush()


def main(arguments: Iterable[str]) -> None:
    """Be a member."""
    parser = argparse.ArgumentParser()
    for name in ("endpoint", "client_id", "filter", "way", "seed"):
        parser.add_argument(name)
    # The client logs each handler that fails, and here that is no news.
    logging.disable(logging.ERROR)
    asyncio.run(Life(parser.parse_args([*arguments])).live())


if __name__ == "__main__":
    main(sys.argv[1:])
