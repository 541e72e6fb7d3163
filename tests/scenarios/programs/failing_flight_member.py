"""A member of a group of flights whose handler fails by rule, until it is told to be kind.

Usage: failing_flight_member.py ENDPOINT CLIENT_ID FILTER TAILNUM

A line a flight on stdout, said before the handler ends: what became of it and its number. Every
flight of the aeroplane kills the process. As TAILNUM none: everything is done.
"""

import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable

import dss_client
from dss_client import DeliveredRecord, Reject

FAILS, REJECTED, FAILS_ONCE = 101, 103, 7
"""Flights whose number they divide; the first that does counts."""
KIND = "none"


def say(what: str, number: int) -> None:
    """At once: the next moment may be the last one."""
    os.write(1, f"{what} {number}\n".encode())


def handler(tailnum: str) -> Callable[[DeliveredRecord], Awaitable[None]]:
    """What takes flights."""

    async def take(record: DeliveredRecord) -> None:
        flight = json.loads(record.payload)
        number = flight["number"]
        if tailnum != KIND:
            fail_by_rule(record, number, flight["tailnum"] == tailnum)
        say("done", number)

    return take


def fail_by_rule(record: DeliveredRecord, number: int, kills: bool) -> None:
    """End here, or raise, if this flight is one that fails."""
    if kills:
        say("died", number)
        os._exit(9)
    if number % FAILS == 0:
        say("failed", number)
        raise ValueError(f"flight {number} is never right")
    if number % REJECTED == 0:
        say("rejected", number)
        raise Reject(f"flight {number} is nothing")
    if number % FAILS_ONCE == 0 and record.attempt == 1:
        say("failed", number)
        raise TimeoutError(f"flight {number} is late")


async def main(endpoint: str, client_id: str, filter_: str, tailnum: str) -> None:
    """Take flights until somebody ends it."""
    # What fails, and that a connection is gone, is part of the story.
    logging.getLogger("dss_client").setLevel(logging.CRITICAL)
    async with (
        dss_client.connect(client_id, endpoint=endpoint) as client,
        client.subscribe(filter_) as subscription,
    ):
        await subscription.run(handler(tailnum), concurrency=64)


dss_client.run(main(*sys.argv[1:]))
