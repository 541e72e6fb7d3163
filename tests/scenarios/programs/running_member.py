"""A member of a group that uses `run`, and tells when each of its handlers begins and ends.

Usage: running_member.py ENDPOINT CLIENT_ID FILTER WORK_SECONDS

A line a handler on stdout: key, stream, offset, grant epoch, and the two moments on the monotonic
clock; and one a grant: ``granted``, stream, grant epoch, moment. With what it shows who it is, the
environment says.
"""

import asyncio
import logging
import os
import sys
import time

import dss_client
from dss_client import DeliveredRecord

CONCURRENCY = 8


def say(*facts: object) -> None:
    """With the moment, at once."""
    os.write(1, f"{' '.join(map(str, facts))} {time.monotonic_ns()}\n".encode())


async def main(endpoint: str, client_id: str, filter_: str, work_s: float) -> None:
    """Take records until somebody ends it."""
    logging.getLogger("dss_client").setLevel(logging.CRITICAL)

    async def take(record: DeliveredRecord) -> None:
        began_ns = time.monotonic_ns()
        await asyncio.sleep(work_s)
        assert record.key is not None
        facts = record.key.decode(), record.stream, record.offset, record.grant_epoch
        say(*facts, began_ns)

    def granted(notice: dss_client.GrantNotice) -> None:
        say("granted", notice.stream, notice.grant_epoch)

    async with (
        dss_client.connect(client_id, endpoint=endpoint) as client,
        client.subscribe(filter_, on_grant=granted) as subscription,
    ):
        await subscription.run(take, concurrency=CONCURRENCY)


if __name__ == "__main__":
    endpoint, client_id, filter_, work_s = sys.argv[1:]
    dss_client.run(main(endpoint, client_id, filter_, float(work_s)))
