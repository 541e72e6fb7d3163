"""The records that every program of the bench sends or expects: the same bytes for all.

Payloads are 100 bytes, keys 8 bytes out of 10,000, one subject, 12 partitions.
"""

import os

from dss_core.build import Columns, build_frame, partition_columns
from dss_core.routing import Router

TOPIC = "bench"
PARTITIONS = 12
FACTOR = 1
PAYLOAD = bytes(range(100))
KEYS = [b"key-%04d" % number for number in range(10_000)]
PRODUCER_ID = bytes(16)


def columns(records: int) -> Columns:
    """So many records, with their keys in turn."""
    keys = (KEYS * (records // len(KEYS) + 1))[:records]
    return Columns(
        payloads=[PAYLOAD] * records,
        keys=keys,
        subjects=TOPIC,
        headers=None,
        timestamps_us=1_795_000_000_000_000,
    )


def frames_by_partition(
    records_per_frame: int, frames_per_partition: int
) -> dict[int, list[bytes]]:
    """Frames ready to send, their sequences from 0, for each partition."""
    parts = partition_columns(columns(len(KEYS)), Router.BLOCK, PARTITIONS, FACTOR, keyless_start=0)
    producer_id = os.urandom(16)
    return {
        partition: [
            build_frame(
                _resized(part, records_per_frame),
                partition=partition,
                producer_id=producer_id,
                sequence=sequence,
            )
            for sequence in range(frames_per_partition)
        ]
        for partition, part in parts.items()
    }


def _resized(part: Columns, records: int) -> Columns:
    assert part.keys is not None
    keys = (list(part.keys) * (records // len(part.keys) + 1))[:records]
    return Columns(
        payloads=[PAYLOAD] * records,
        keys=keys,
        subjects=TOPIC,
        headers=None,
        timestamps_us=1_795_000_000_000_000,
    )
