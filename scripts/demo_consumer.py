"""One member of the demo's group: reads flights, writes their delays out, then acknowledges them.

Usage: demo_consumer.py ENDPOINT NAME RESULTS.csv [HOLD_AFTER]

Invariant: a record is acknowledged only after its result has left this process, so killing it at
any moment loses nothing. With HOLD_AFTER, the member stops right between the two, after so many
records, and says so: whoever started it can then kill it while it provably holds some.
"""

import asyncio
import json
import logging
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import dss_client

FILTER = "$share/delays/flights/#"


async def consume(endpoint: str, name: str, results: Path, hold_after: int | None) -> None:
    """Take part in the group until SIGTERM."""
    # That connections are lost is part of the story; whoever started this tells it.
    logging.getLogger("dss_client").setLevel(logging.ERROR)
    async with (
        dss_client.connect(name, endpoint=endpoint) as client,
        client.subscribe(
            FILTER,
            on_grant=lambda notice: tell(
                event="granted", stream=notice.stream, at_s=time.monotonic()
            ),
            on_revoke=lambda notice: tell(event="revoked", stream=notice.stream),
        ) as subscription,
    ):
        with results.open("a", encoding="utf-8") as file:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(drain_on_sigterm(subscription), name="drain on SIGTERM")
                await work(subscription, file, hold_after)


async def work(subscription: dss_client.Subscription, file: TextIO, hold_after: int | None) -> None:
    """Write out each batch, then acknowledge it."""
    count = 0
    async for batch in subscription.batches():
        received_at = time.monotonic()
        for record in batch:
            flight = json.loads(record.payload)
            delay = "" if flight["arr_delay"] is None else flight["arr_delay"]
            again = int(record.redelivered)
            file.write(
                f"{record.stream},{record.offset},{flight['carrier']},{delay},"
                f"{again},{received_at:.6f}\n"
            )
        file.flush()
        count += len(batch)
        if hold_after is not None and count >= hold_after:
            tell(
                event="holding",
                stream=batch.stream,
                first=batch.offsets[0],
                last=batch.offsets[-1],
                records=len(batch),
            )
            await asyncio.Event().wait()
        await batch.ack()


async def drain_on_sigterm(subscription: dss_client.Subscription) -> None:
    """When asked to stop, take nothing more and settle what is acknowledged."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    await asked.wait()
    await subscription.drain()


def tell(**event: object) -> None:
    """Report to whoever started this member, one JSON object a line."""
    facts: Mapping[str, object] = event
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _, endpoint_argument, name_argument, results_argument, *hold = sys.argv
    asyncio.run(
        consume(
            endpoint_argument,
            name_argument,
            Path(results_argument),
            int(hold[0]) if hold else None,
        )
    )
