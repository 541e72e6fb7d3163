"""A member of a group: takes records one by one and acknowledges them, telling of each on stdout.

Usage: member.py ENDPOINT CLIENT_ID FILTER [--hold ACKED,HELD] [--refuse] [--credit RECORDS]
                 [--compute SECONDS] [--stand RECORDS] [--sync EVERY] [--late SECONDS]

Each line has the moment on the monotonic clock. ``record`` is said right before a record is dealt
with, ``acked`` before it is acknowledged, ``durable`` once the member was told that its acks under
a grant are durable. With ``--sync`` one in so many acks waits for that, and no other is given then.
With ``--late`` each comes so long after its record, so that whoever kills this finds it at work.

With ``--hold`` it acknowledges so many records, takes so many more without, says ``holding``, and
goes on when it reads ``go`` from stdin: first it acknowledges, late perhaps, what it held; or it
refuses every other record of that (``--refuse``). When it reads ``leave`` it drains and ends.

With ``--compute`` it holds its event loop for so long when it takes the first record, and then says
for how long it stood still in that at most. With ``--stand`` it says ``standing`` when it took so
many, and then waits for a line on stdin in a call of the system, its event loop held: whoever
freezes it there freezes it in its own code, not between the client's last look at the clock and
that code.
"""

import argparse
import asyncio
import json
import select
import sys
import time
from typing import NoReturn

import dss_client
from dss_client import DeliveredRecord, GrantNotice, Subscription
from dss_core.errors import GrantNotHeld, OutcomeUnknown

PAYLOAD_BYTES_TOLD = 32


class Acks:
    """How records are acknowledged."""

    def __init__(self, sync_every: int, late_s: float) -> None:
        self._sync_every = sync_every
        self._late_s = late_s
        self._given = 0
        # Bounded by the credit: what is in it is not acknowledged.
        self._due: asyncio.Queue[tuple[float, DeliveredRecord]] = asyncio.Queue()

    async def give_in_time(self, record: DeliveredRecord) -> None:
        """Acknowledge a record at once, or later."""
        if self._late_s:
            self._due.put_nowait((time.monotonic() + self._late_s, record))
        else:
            await self.give(record)

    async def give_late(self) -> NoReturn:
        """Acknowledge what is due."""
        while True:
            due_s, record = await self._due.get()
            await asyncio.sleep(due_s - time.monotonic())
            await self.give(record)
            self._due.task_done()

    async def all_given(self) -> None:
        """Wait until all is acknowledged that was taken."""
        await self._due.join()

    async def give(self, record: DeliveredRecord, *, sync: bool = False) -> None:
        """Acknowledge a record, and tell of it."""
        self._given += 1
        sync = sync or bool(self._sync_every and self._given % self._sync_every == 0)
        place = {"stream": record.stream, "grant_epoch": record.grant_epoch}
        tell("acked", **place, offset=record.offset)
        try:
            await record.ack(sync=sync)
        except (GrantNotHeld, OutcomeUnknown):
            # Nobody says that it is durable; who is lent the stream next gets it again.
            return
        if sync:
            tell("durable", **place)


class Hold:
    """When to stop acknowledging, and what is held then."""

    def __init__(self, acks: Acks, acked: int, held: int, *, refuses: bool) -> None:
        self.go = asyncio.Event()
        self._refuses = refuses
        self._acks = acks
        self._acked = acked
        self._until = acked + held
        self._taken: list[DeliveredRecord] = []
        self._over = self._until == 0

    async def take(self, record: DeliveredRecord) -> None:
        """Acknowledge the record, or hold it."""
        if self._over:
            await self._acks.give_in_time(record)
            return
        self._taken.append(record)
        if len(self._taken) <= self._acked:
            await self._acks.give(record)
        if len(self._taken) == self._until:
            await self._stop()

    async def _stop(self) -> None:
        if self._acked:
            # The answer shows that the daemon knows all that was handed out until now.
            await self._acks.give(self._taken[self._acked - 1], sync=True)
        else:
            await self._taken[0].in_progress()
        tell("holding")
        await self.go.wait()
        self._over = True
        for at, record in enumerate(self._taken[self._acked :]):
            if self._refuses and at % 2:
                await record.nak(error="too late")
            else:
                await self._acks.give(record)


async def take_part(arguments: argparse.Namespace) -> None:
    """Be a member until told to leave."""
    acks = Acks(arguments.sync, arguments.late)
    hold = Hold(acks, *arguments.hold, refuses=arguments.refuse)
    client = dss_client.connect(
        arguments.client_id, endpoint=arguments.endpoint, credit_records=arguments.credit
    )
    async with client, asyncio.TaskGroup() as tasks:
        subscribing = client.subscribe(
            arguments.filter,
            on_grant=lambda notice: tell_grant("granted", notice),
            on_revoke=lambda notice: tell_grant("revoked", notice),
        )
        async with subscribing as subscription:
            tell("subscribed")
            obeying = tasks.create_task(obey(subscription, hold), name="obey")
            giving = tasks.create_task(acks.give_late(), name="late acks")
            taken = 0
            async for record in subscription:
                tell_record(record)
                taken += 1
                if arguments.compute:
                    tell("computed", stood_still_s=compute(arguments.compute))
                    arguments.compute = 0.0
                if taken == arguments.stand:
                    stand()
                await hold.take(record)
            await obeying
            await acks.all_given()
            giving.cancel()
        tell("left", late_acks=subscription.late_acks)


async def obey(subscription: Subscription, hold: Hold) -> None:
    """Do what is said on stdin."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := (await reader.readline()).decode().strip():
        if line == "go":
            hold.go.set()
        elif line == "leave":
            break
    await subscription.drain()


def compute(seconds: float) -> float:
    """Be busy, without a moment for anything else in this program; the longest that it had to wait
    for a processor meanwhile.
    """
    stood_still_s = 0.0
    last_s = time.monotonic()
    until_s = last_s + seconds
    while last_s < until_s:
        now_s = time.monotonic()
        stood_still_s = max(stood_still_s, now_s - last_s)
        last_s = now_s
    return stood_still_s


def stand() -> None:
    """Wait until something is said on stdin, without a moment for anything else."""
    tell("standing")
    select.select((sys.stdin,), (), ())


def tell_record(record: DeliveredRecord) -> None:
    """Report what was handed out."""
    tell(
        "record",
        stream=record.stream,
        offset=record.offset,
        payload=record.payload[:PAYLOAD_BYTES_TOLD].decode(),
        redelivered=record.redelivered,
        attempt=record.attempt,
        grant_epoch=record.grant_epoch,
    )


def tell_grant(event: str, notice: GrantNotice) -> None:
    """Report what happened to a stream."""
    tell(event, stream=notice.stream, grant_epoch=notice.grant_epoch, floor=notice.floor)


def tell(event: str, **facts: object) -> None:
    """Report to whoever started this member, who gets all of it though this is killed next."""
    line = json.dumps({"event": event, "at_ns": time.monotonic_ns(), **facts})
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def two_numbers(text: str) -> tuple[int, int]:
    """``ACKED,HELD``."""
    acked, held = text.split(",")
    return int(acked), int(held)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("endpoint")
    parser.add_argument("client_id")
    parser.add_argument("filter")
    parser.add_argument("--hold", type=two_numbers, default=(0, 0))
    parser.add_argument("--refuse", action="store_true")
    parser.add_argument("--credit", type=int, default=None)
    parser.add_argument("--compute", type=float, default=0.0)
    parser.add_argument("--stand", type=int, default=0)
    parser.add_argument("--sync", type=int, default=0)
    parser.add_argument("--late", type=float, default=0.0)
    asyncio.run(take_part(parser.parse_args()))
