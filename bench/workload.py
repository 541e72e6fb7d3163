"""The records that every program of the bench sends or expects: the same bytes for all.

Payloads are 100 bytes, keys 8 bytes out of 10,000, one subject, 12 partitions.
"""

import os

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.frame import HEADER_BYTES, stamped
from dss_core.routing import Router, key_hash, partition_of

TOPIC = "bench"
PARTITIONS = 12
FACTOR = 1
PAYLOAD = bytes(range(100))
KEYS = [b"key-%04d" % number for number in range(10_000)]
TIMESTAMP_US = 1_795_000_000_000_000


def frames_by_partition(
    records_per_frame: int, frames_per_partition: int
) -> dict[int, list[bytes]]:
    """Frames ready to send, their sequences from 0, for each partition."""
    producer_id = os.urandom(16)
    return {
        partition: [
            build_frame(columns, partition=partition, producer_id=producer_id, sequence=sequence)
            for sequence in range(frames_per_partition)
        ]
        for partition, columns in _columns_by_partition(records_per_frame).items()
    }


def stored(frame: bytes, base_offset: int) -> bytes:
    """A frame as the daemon stores and sends it."""
    head = stamped(
        frame,
        base_offset=base_offset,
        append_time_us=TIMESTAMP_US,
        topic_epoch=1,
        storage_topic_id=1,
    )
    return head + frame[HEADER_BYTES:]


def key_of_each_partition() -> list[bytes]:
    """One key a partition."""
    return [keys[0] for keys in _keys_by_partition().values()]


def _keys_by_partition() -> dict[int, list[bytes]]:
    keys: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    for key in KEYS:
        keys[partition_of(Router.BLOCK, key_hash(key), PARTITIONS, FACTOR)].append(key)
    return keys


def _columns_by_partition(records: int) -> dict[int, Columns]:
    return {
        partition: Columns(
            payloads=[PAYLOAD] * records,
            keys=(own * (records // len(own) + 1))[:records],
            subjects=TOPIC,
            timestamps_us=TIMESTAMP_US,
        )
        for partition, own in _keys_by_partition().items()
    }
