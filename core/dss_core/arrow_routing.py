"""Routing of whole columns: `dss_core.routing.partition_of`, vectorised.

Invariant: exactly what the scalar function gives, for every hash; null stays null. Arithmetic is
on unsigned 64 bits. Python ints from 2^63 up do not convert by themselves, so every constant is a
typed scalar. Importing this module imports pyarrow.
"""

from array import array
from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from sys import byteorder
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh64_digest

from dss_core.routing import HASH_SEED, Router, key_hash

_HASH_BYTES = 8


def hashes_of(keys: Sequence[bytes]) -> pa.UInt64Array:
    """`key_hash` of keys that are all present, without an int object for each."""
    hashes = array("Q", b"".join(map(xxh64_digest, keys, repeat(HASH_SEED))))
    if byteorder == "little":  # digests are big endian
        hashes.byteswap()
    return pa.Array.from_buffers(pa.uint64(), len(keys), [None, pa.py_buffer(hashes)])


def add_hashes(found: "array[int]", hashes: pa.UInt64Array) -> None:
    """Add a column of hashes: 0 where it is null, and 1 where a hash is 0."""
    raw = _bytes_of(hashes)
    if hashes.null_count or bytes(_HASH_BYTES) in raw:
        present = pc.is_valid(hashes)
        raw = _bytes_of(pc.if_else(present, pc.max_element_wise(hashes, _scalar(1)), _scalar(0)))
    found.frombytes(raw)


def _bytes_of(hashes: pa.UInt64Array) -> bytes:
    first = hashes.offset * _HASH_BYTES
    return bytes(memoryview(hashes.buffers()[1])[first : first + len(hashes) * _HASH_BYTES])


def hashes_or_null(keys: Sequence[bytes | None]) -> pa.UInt64Array:
    """`key_hash` of keys; null where there is none."""
    if None not in keys:
        return hashes_of(cast("Sequence[bytes]", keys))
    return pa.array([None if key is None else key_hash(key) for key in keys], pa.uint64())


def partitions_of(
    router: Router, hashes: pa.UInt64Array, partitions: int, factor: int
) -> pa.UInt64Array:
    """`partition_of` for a column of hashes. The factor must divide the partitions."""
    if router is Router.RANGE:
        return _range(hashes, partitions)
    assert partitions % factor == 0
    return _block(hashes, partitions, factor)


def _range(hashes: pa.UInt64Array, partitions: int) -> pa.UInt64Array:
    """``h * P >> 64`` by halves, for the product has more than 64 bits."""
    count, half = _scalar(partitions), _scalar(32)
    high = pc.multiply(pc.shift_right(hashes, half), count)
    low = pc.multiply(pc.bit_wise_and(hashes, _scalar(0xFFFF_FFFF)), count)
    return pc.shift_right(pc.add(high, pc.shift_right(low, half)), half)


def _block(hashes: pa.UInt64Array, partitions: int, factor: int) -> pa.UInt64Array:
    block = _remainder(hashes, partitions // factor)
    if factor == 1:
        return block
    slot = _remainder(pc.divide(hashes, _scalar(partitions)), factor)
    return pc.add(pc.multiply(block, _scalar(factor)), slot)


def _remainder(values: pa.UInt64Array, divisor: int) -> pa.UInt64Array:
    if divisor & (divisor - 1) == 0:
        return pc.bit_wise_and(values, _scalar(divisor - 1))
    by = _scalar(divisor)
    return pc.subtract(values, pc.multiply(pc.divide(values, by), by))


@lru_cache(256)
def _scalar(value: int) -> pa.UInt64Scalar:
    return pa.scalar(value, pa.uint64())
