"""A member whose process ends at once when it is handed a record of a certain payload.

Usage: doomed_member.py ENDPOINT CLIENT_ID FILTER PAYLOAD

It acknowledges every other record as it comes. Each line on stdout is an event, as ``member.py``
tells them; before it dies of the record, it tells ``doomed`` with the record's attempt.
"""

import asyncio
import json
import os
import sys

import dss_client


def tell(event: str, **facts: object) -> None:
    """Say it before anything else happens."""
    os.write(1, json.dumps({"event": event, **facts}).encode() + b"\n")


async def take_part(endpoint: str, client_id: str, topic_filter: str, payload: str) -> None:
    """Acknowledge records until the one comes."""
    async with (
        dss_client.connect(client_id, endpoint=endpoint) as client,
        client.subscribe(topic_filter) as subscription,
    ):
        tell("subscribed")
        async for record in subscription:
            if bytes(record.payload) == payload.encode():
                tell("doomed", attempt=record.attempt, redelivered=record.redelivered)
                os._exit(9)
            await record.ack()


if __name__ == "__main__":
    asyncio.run(take_part(*sys.argv[1:]))
