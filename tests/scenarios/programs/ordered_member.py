"""A member of an ordered group whose handler fails for poison, until it is told to be kind.

Usage: ordered_member.py ENDPOINT CLIENT_ID FILTER MOOD

A line a hand-out on stdout, said before the handler ends: what became of it, the key, the number,
and the moment. Payloads are ``KEY NUMBER``, or ``KEY NUMBER poison``. As MOOD kind: all is done.
"""

import asyncio
import logging
import os
import sys
import time

import dss_client
from dss_client import DeliveredRecord

KIND = "kind"
WORK_S = 0.001


def say(what: str, key: str, number: str) -> None:
    """At once: the next moment may be the last one."""
    os.write(1, f"{what} {key} {number} {time.monotonic_ns()}\n".encode())


async def main(endpoint: str, client_id: str, filter_: str, mood: str) -> None:
    """Take records until somebody ends it."""
    logging.getLogger("dss_client").setLevel(logging.CRITICAL)

    async def take(record: DeliveredRecord) -> None:
        key, number, *poison = record.payload.decode().split()
        say("began", key, number)
        await asyncio.sleep(WORK_S)
        if poison and mood != KIND:
            say("failed", key, number)
            raise ValueError(f"{number} is poison")
        say("done", key, number)

    async with (
        dss_client.connect(client_id, endpoint=endpoint) as client,
        client.subscribe(filter_) as subscription,
    ):
        await subscription.run(take, concurrency=32)


dss_client.run(main(*sys.argv[1:]))
