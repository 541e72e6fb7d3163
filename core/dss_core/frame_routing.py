"""Whether the records of frames belong to the partitions that the frames name.

Invariant: one verdict a frame, whoever brought it. Arrow is loaded only for frames in its layout.
"""

from collections.abc import Iterator

from dss_core import rows_layout
from dss_core.errors import FrameMisrouted
from dss_core.frame import Verified
from dss_core.routing import Router, key_hash, partition_of


def verify_routing(
    verified: Verified,
    router: Router,
    partitions: int,
    factor: int,
    *,
    hash_keys: bool,
) -> None:
    """Check that every record with a key belongs to the frame's partition.

    Rows are hashed anew; the arrow layout carries the hashes, which ``hash_keys`` checks against
    the keys too.

    Raises:
        FrameMisrouted: a record belongs to another partition.
        FrameCorrupt: a hash is not that of its key.
    """
    frame, header, _, _, body_at, batch = verified
    if batch is not None:
        from dss_core import arrow_layout

        if hash_keys:
            arrow_layout.verify_hashes(batch)
        found = arrow_layout.first_misrouted(batch, header.partition, router, partitions, factor)
        if found is not None:
            row, expected = found
            raise FrameMisrouted(row=row, partition=header.partition, expected=expected)
        return
    for row, key in enumerate(rows_layout.keys(bytes(frame), body_at, header.records)):
        if key is None:
            continue
        expected = partition_of(router, key_hash(key), partitions, factor)
        if expected != header.partition:
            raise FrameMisrouted(row=row, partition=header.partition, expected=expected)


def hash_checks(verified: Verified, records_per_step: int) -> Iterator[None]:
    """What ``hash_keys`` of `verify_routing` checks, so many records for each item asked for.

    Raises:
        FrameCorrupt: a hash is not that of its key.
    """
    batch = verified.batch
    if batch is None:  # rows carry no hashes
        return
    from dss_core import arrow_layout

    for start in range(0, batch.num_rows, records_per_step):
        arrow_layout.verify_hashes(batch.slice(start, records_per_step))
        yield
