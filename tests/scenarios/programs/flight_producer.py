"""A producer of flights: sends those of some aircraft that are not in the topic yet, in order.

Usage: flight_producer.py ENDPOINT FLIGHTS COUNT PART OF

Of all aircraft it has those of which the number, by their name, is PART of OF. What an earlier one
has stored is looked up in the log first, so one that was killed is followed by another. Each line
on stdin is the number of a flight: those before it may be sent.

A payload is what members of ordered groups take: the number, what becomes of it, and the flight.
"""

import asyncio
import json
import sys
import zlib
from pathlib import Path

import pyarrow.parquet

import dss_client
from dss_client import Client

ONCE_EACH = 101
"""One flight of so many fails at its first attempt."""


async def stored(client: Client) -> set[int]:
    """The flights that are in the log."""
    return {
        int(record.payload.split()[0]) async for record in client.read("flights/#", follow=False)
    }


async def main(endpoint: str, flights: str, count: str, part: str, of: str) -> None:
    """Send what is missing."""
    rows = pyarrow.parquet.read_table(Path(flights)).slice(0, int(count)).to_pylist()
    allowed = 0
    async with dss_client.connect(endpoint=endpoint) as client:
        there = await stored(client)
        async with client.producer("flights") as producer:
            for number, row in enumerate(rows):
                while number >= allowed:
                    allowed = int(await asyncio.to_thread(sys.stdin.readline))
                key = (row["tailnum"] or "").encode()
                if zlib.crc32(key) % int(of) == int(part) and number not in there:
                    kind = "fine" if number % ONCE_EACH else "once"
                    payload = f"{number} {kind} {json.dumps(row)}".encode()
                    await producer.enqueue(payload, key=key)


asyncio.run(main(*sys.argv[1:]))
