"""A member of a group: takes records one by one and acknowledges them, telling of each on stdout.

Usage: member.py ENDPOINT CLIENT_ID FILTER [--hold ACKED,HELD] [--credit RECORDS]
                 [--compute SECONDS]

With ``--hold`` it acknowledges so many records, takes so many more without, says ``holding``, and
goes on when it reads ``go`` from stdin: first it acknowledges, late perhaps, what it held. When it
reads ``leave`` it drains and ends. With ``--compute`` it holds its event loop for so long when it
takes the first record.
"""

import argparse
import asyncio
import json
import sys
import time

import dss_client
from dss_client import DeliveredRecord, GrantNotice, Subscription


class Hold:
    """When to stop acknowledging, and what is held then."""

    def __init__(self, acked: int, held: int) -> None:
        self.go = asyncio.Event()
        self._acked = acked
        self._until = acked + held
        self._taken: list[DeliveredRecord] = []
        self._over = self._until == 0

    async def take(self, record: DeliveredRecord) -> None:
        """Acknowledge the record, or hold it."""
        if self._over:
            await record.ack()
            return
        self._taken.append(record)
        if len(self._taken) <= self._acked:
            await record.ack()
        if len(self._taken) == self._until:
            await self._stop()

    async def _stop(self) -> None:
        if self._acked:
            # The answer shows that the daemon knows all that was handed out until now.
            await self._taken[self._acked - 1].ack(sync=True)
        else:
            await self._taken[0].in_progress()
        tell("holding")
        await self.go.wait()
        self._over = True
        for record in self._taken[self._acked :]:
            await record.ack()


async def take_part(arguments: argparse.Namespace) -> None:
    """Be a member until told to leave."""
    hold = Hold(*arguments.hold)
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
            async for record in subscription:
                tell(
                    "record",
                    stream=record.stream,
                    offset=record.offset,
                    redelivered=record.redelivered,
                    attempt=record.attempt,
                    grant=record.grant_number,
                )
                compute(arguments.compute)
                arguments.compute = 0.0
                await hold.take(record)
            await obeying
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


def compute(seconds: float) -> None:
    """Be busy, without a moment for anything else in this program."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        continue


def tell_grant(event: str, notice: GrantNotice) -> None:
    """Report what happened to a stream."""
    tell(event, stream=notice.stream)


def tell(event: str, **facts: object) -> None:
    """Report to whoever started this member."""
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
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
    parser.add_argument("--credit", type=int, default=None)
    parser.add_argument("--compute", type=float, default=0.0)
    asyncio.run(take_part(parser.parse_args()))
