"""Draw a redrive that stops itself and the next one, as an operator sees them at a terminal.

Usage:
    python scripts/draw_redrive.py OUT.svg
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from draw_rewind import Operator, drawn_of

CONSUMER = """
import asyncio, os
import dss_client

async def bill(record):
    if record.payload.decode() in os.environ["BREAKS_ON"].split():
        raise ValueError("no rate for CHF")

async def main():
    async with dss_client.connect(endpoint=os.environ["ENDPOINT"], client_id="anna") as client:
        async with client.subscribe("$share/billing/orders/#") as subscription:
            await subscription.run(bill)

asyncio.run(main())
"""
TITLE = "a canary that comes back, and one that does not"


@contextmanager
def consuming(endpoint: str, breaks_on: str) -> Iterator[None]:
    """A member of the group, whose handler fails for some records."""
    environment = {**os.environ, "ENDPOINT": endpoint, "BREAKS_ON": breaks_on}
    command = [sys.executable, "-c", CONSUMER]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as member:
        try:
            yield
        finally:
            member.kill()


def recorded(endpoint: str) -> str:
    """A group with dead letters of one error: redriven before its consumer is mended, and after."""
    operator = Operator(endpoint)
    operator.make_ready("dssctl topics create orders --partitions 1")
    operator.make_ready("dssctl groups create billing@orders/# --max-deliver 2 --backoff 100ms")
    operator.make_ready("dssctl produce orders", "EUR\nCHF\n" * 6)
    with consuming(endpoint, "CHF"):
        operator.make_ready("dssctl wait group/billing --for dead=6")
        operator.type("dssctl dlq errors billing --columns count,error,newest_at,fingerprint")
        redrive = "dssctl dlq redrive billing --canary 1 -y --reason"
        operator.type(f"{redrive} 'rates are loaded' -o name", fails=True)
    with consuming(endpoint, ""):
        operator.type(f"{redrive} 'TKT-7 is deployed' -o name")
        operator.type("dssctl groups ls --columns name,lag,retrying,dead")
    return operator.seen.replace("\r\n", "\n").rstrip()


if __name__ == "__main__":
    drawn_of(Path(sys.argv[1]), TITLE, recorded)
