"""A member of the group that the pages operate on.

Usage: page_member.py CLIENT_ID, with DSSCTL_ENDPOINT set. It rejects some records of each stream
as long as there is no file `mended`, and fails those of the key ``ida`` at their first attempt.
"""

import sys
from pathlib import Path

import dss_client
import dss_client.sync

GROUP = "$share/billing/orders/#"
MENDED = Path.home() / "mended"
NO_PRICE, NO_ADDRESS = range(10, 20), range(20, 23)
"""Offsets of each stream."""


def bill(record: dss_client.sync.DeliveredRecord) -> None:
    if not MENDED.exists():
        if record.offset in NO_PRICE:
            raise dss_client.Reject("no price")
        if record.offset in NO_ADDRESS:
            raise dss_client.Reject("no address")
    if record.key == b"ida" and record.attempt == 1:
        raise ValueError("the bank is away")


def main() -> None:
    with (
        dss_client.sync.connect(client_id=sys.argv[1]) as client,
        client.subscribe(GROUP) as subscription,
    ):
        subscription.run(bill)


dss_client.sync.run(main)
