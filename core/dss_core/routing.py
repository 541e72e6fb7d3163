"""Which partition a key belongs to, and which old partitions may hold a new one's keys.

The hash of a key is xxh64 with seed 42, as unsigned 64 bits: the same bits as ``xxhash64`` of
Spark SQL, so bulk jobs route natively. With P partitions and factor K, the base is B = P / K::

    block    partition = K * (h mod B) + (h div P) mod K        K divides P
    range    partition = h * P >> 64                            K is not used

Invariant: pure arithmetic, without Arrow; `dss_core.arrow_routing` gives the same for columns.
Records without a key are not routed here.
"""

from enum import StrEnum
from math import gcd

from xxhash import xxh64_intdigest

HASH_SEED = 42

SWITCHES = "switches"
"""What a producer says it knows that goes on where its topic is switched to other streams."""


class Router(StrEnum):
    """How the keys of a topic are spread; chosen once, when it is created."""

    BLOCK = "block"
    RANGE = "range"


def key_hash(key: bytes) -> int:
    """The routing hash of a key, unsigned 64 bits."""
    return xxh64_intdigest(key, HASH_SEED)


def partition_of(router: Router, hashed: int, partitions: int, factor: int) -> int:
    """The partition of a key with this hash. The factor must divide the partitions."""
    if router is Router.RANGE:
        return hashed * partitions >> 64
    assert partitions % factor == 0
    base = partitions // factor
    return factor * (hashed % base) + hashed // partitions % factor


def parents(
    router: Router, partition: int, *, old: tuple[int, int], new: tuple[int, int]
) -> tuple[int, ...]:
    """The old partitions that can hold keys of a new one, in order.

    ``old`` and ``new`` are (partitions, factor) of two storage topics that follow each other.
    """
    old_partitions, old_factor = old
    new_partitions, new_factor = new
    assert 0 <= partition < new_partitions
    if router is Router.RANGE:
        first = partition * old_partitions // new_partitions
        end = -(-(partition + 1) * old_partitions // new_partitions)
        return tuple(range(first, end))
    old_base = old_partitions // old_factor
    step = gcd(old_base, new_partitions // new_factor)
    blocks = range(partition // new_factor % step, old_base, step)
    return tuple(old_factor * block + slot for block in blocks for slot in range(old_factor))
