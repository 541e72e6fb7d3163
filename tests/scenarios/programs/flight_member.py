"""A member of a group of flights: says of each record what it sums up, then acknowledges it.

Usage: flight_member.py ENDPOINT CLIENT_ID FILTER

A line a record on stdout: stream, offset, carrier, delay in minutes, whether it came before, and
the moment. What is no flight is refused, for as long as it comes. Ends with the code of the
condition where its subscription is ended for good.
"""

import asyncio
import json
import sys
import time

import dss_client
from dss_client import DeliveredRecord
from dss_core.errors import DssError

REST_S = 0.2


async def take(record: DeliveredRecord) -> None:
    """Sum it up and acknowledge it, or refuse it."""
    try:
        flight = json.loads(record.payload)
    except ValueError:
        tell(event="refused", stream=record.stream, offset=record.offset, attempt=record.attempt)
        await record.nak(REST_S)
        return
    tell(
        event="flight",
        stream=record.stream,
        offset=record.offset,
        carrier=flight["carrier"],
        delay=flight["arr_delay"] or 0,
        again=record.redelivered,
        at_ns=time.monotonic_ns(),
    )
    await record.ack()


def tell(**event: object) -> None:
    """Say what happens."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


async def main(endpoint: str, client_id: str, filter_: str) -> None:
    """Take records until somebody ends it."""
    try:
        async with (
            dss_client.connect(client_id, endpoint=endpoint) as client,
            client.subscribe(
                filter_,
                on_grant=lambda notice: tell(event="granted", stream=notice.stream),
                on_revoke=lambda notice: tell(event="revoked", stream=notice.stream),
            ) as subscription,
        ):
            async for record in subscription:
                await take(record)
    except DssError as ended:
        tell(event="ended", code=ended.code, message=ended.message)


asyncio.run(main(*sys.argv[1:]))
