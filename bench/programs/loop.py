"""Baseline: the loop of a consumer that acknowledges each record, in process, without a daemon.

The same frames, of which so many come at once as a daemon sends, become the same records; they are
awaited one by one and acknowledged one by one. What it takes, no daemon and no connection can save.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator

from workload import frames_by_partition, stored

from dss_client._grant import HeldGrant
from dss_client._handout import Handout
from dss_client.record import DeliveredRecord

HANDOUT_RECORDS = 1_000


def deliveries(records_per_frame: int) -> list[bytes]:
    """One of each partition."""
    frames = max(1, HANDOUT_RECORDS // records_per_frame)
    return [
        b"".join(stored(frame, at * records_per_frame) for at, frame in enumerate(own))
        for own in frames_by_partition(records_per_frame, frames).values()
    ]


def handout_of(frames: bytes) -> Handout:
    """As the client makes one of what came."""
    grant = HeldGrant(
        1,
        subscription=1,
        stream="bench/0/0",
        grant_epoch=1,
        floor=0,
        redelivered_below=0,
        touched=lambda _grant, _urgent: None,
    )
    return Handout(grant, frames, (), redelivered=False, attempt=1)


async def records_of(came: list[bytes], rounds: int) -> AsyncGenerator[DeliveredRecord, None]:
    """Each record, made as it is asked for, with as few steps as that takes."""
    for _ in range(rounds):
        for frames in came:
            handout = handout_of(frames)
            for offset, subject, key, payload, headers, timestamp_us in handout.rows():
                record = DeliveredRecord()
                record._source = handout
                record._at = offset
                record.subject = subject
                record.key = key
                record.payload = payload
                record.headers = headers
                record.timestamp_us = timestamp_us
                yield record


async def main(records: int, records_per_frame: int) -> None:
    came = deliveries(records_per_frame)
    rounds = records // (len(came) * HANDOUT_RECORDS) or 1
    seen = 0
    began = time.perf_counter()
    async for record in records_of(came, rounds):
        seen += 1
        await record.ack()
    seconds = time.perf_counter() - began
    print(json.dumps({"records": seen, "seconds": seconds}))


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
