"""A member of an ordered group whose handler does with a record what that says, or is kind.

Usage: ordered_member.py ENDPOINT CLIENT_ID FILTER MOOD

Payloads are ``NUMBER KIND ...``: *fine*; *once* fails at its first attempt; *poison* fails always;
*kills* ends the process. As MOOD kind, all is done. A line on stdout at the beginning of each
hand-out and before its end: what became of it, the number, and the moment.
"""

import asyncio
import logging
import os
import sys
import time

import dss_client
from dss_client import DeliveredRecord
from dss_core.errors import Unreachable

KIND = "kind"
WORK_S = 0.001


def say(what: str, number: str) -> None:
    """At once: the next moment may be the last one."""
    os.write(1, f"{what} {number} {time.monotonic_ns()}\n".encode())


async def main(endpoint: str, client_id: str, filter_: str, mood: str) -> None:
    """Take records until somebody ends it."""
    # What fails, and that a connection is gone, is part of the story.
    logging.getLogger("dss_client").setLevel(logging.CRITICAL)

    async def take(record: DeliveredRecord) -> None:
        number, kind, *_ = record.payload.decode().split(maxsplit=2)
        say("began", number)
        await asyncio.sleep(WORK_S)
        if mood != KIND:
            do(number, kind, record.attempt)
        say("done", number)

    async with (
        dss_client.connect(client_id, endpoint=endpoint) as client,
        client.subscribe(filter_) as subscription,
    ):
        await subscription.run(take, concurrency=32)


def do(number: str, kind: str, attempt: int) -> None:
    """End here, or raise, if this record is one that fails."""
    if kind == "kills":
        say("died", number)
        os._exit(9)
    if kind == "poison" or (kind == "once" and attempt == 1):
        say("failed", number)
        raise ValueError(f"{number} is {kind}")


try:
    dss_client.run(main(*sys.argv[1:]))
except Unreachable:
    # The daemon is dead at this moment; who started this process starts the next one.
    sys.exit(1)
