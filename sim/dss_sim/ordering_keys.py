"""The ordering keys of the records of a run.

Some records have no key, which is not the empty key. Each of the others has one of a handful of
keys of its stream, most often the same one. A key has at most one byte, and routes to the partition
of its record.

Invariant: keys follow from the seed of the run, the stream and the number of the frame. They are
drawn apart from all other chance, so nothing else depends on them.
"""

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import TypeVar

from dss_core.routing import Router, key_hash, partition_of

WEIGHTS = (4, 10, 4, 2, 1, 1)
"""How often a record has no key, and how often each of the keys of its stream."""
KEYS_A_STREAM = len(WEIGHTS) - 1
FRAME_RECORDS_MAX = 64
EMPTY = b""
_FIRST = ord("a")
_BYTES = 256
_DRAWN = 251
"""After this many frames the draws repeat; a prime, so that any stride passes over all of them."""

Key = TypeVar("Key")


@cache
def keys_of_stream(
    partition: int, partitions: int, factor: int = 1, router: Router = Router.BLOCK
) -> tuple[bytes, ...]:
    """Keys of a topic that route to the partition, the commonest first; none if too few fit."""
    usual = (bytes([(_FIRST + at) % _BYTES]) for at in range(_BYTES - 1))
    how = partitions, factor, router
    fitting = [key for key in usual if partition_of_key(key, *how) == partition]
    if partition_of_key(EMPTY, *how) == partition:
        fitting.insert(1, EMPTY)
    return tuple(fitting[:KEYS_A_STREAM])


def partition_of_key(
    key: bytes, partitions: int, factor: int = 1, router: Router = Router.BLOCK
) -> int:
    """The partition to which it routes, given how many there are."""
    return partition_of(router, key_hash(key), partitions, factor)


def text_of(key: bytes | None) -> str | None:
    """The key as it is written in histories."""
    return None if key is None else key.decode("latin-1")


class OrderingKeys:
    """The draws of one run."""

    def __init__(self, seed: int | str) -> None:
        chance, ranks = Random(f"{seed}/keys"), range(len(WEIGHTS))
        self._ranks = chance.choices(ranks, WEIGHTS, k=_DRAWN + FRAME_RECORDS_MAX)

    def of_frame(
        self, of_stream: Sequence[Key], number: int, records: int
    ) -> tuple[Key | None, ...]:
        """The keys of the records of a frame, drawn from those of its stream; the same each
        time."""
        choices = (None, *of_stream)
        first, count = number % _DRAWN, len(choices)
        return tuple([choices[rank % count] for rank in self._ranks[first : first + records]])
