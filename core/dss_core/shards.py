"""Which shard a partition belongs to, and which counts of shards are even, or aligned.

With S shards and P partitions of a storage topic, shard s owns these, multiplied before divided::

    s*P div S  to  (s+1)*P div S - 1          P 10, S 4:  0 1 | 2 3 4 | 5 6 | 7 8 9

They are disjoint, and together all partitions, for every S; with more shards than partitions some
own none. Over the storage topics that a group reads, a count is *even* where each shard owns as
many partitions as any other, in each of them: S divides every P. It is *aligned* where all records
of a key lie in one shard, whichever storage topic they are in. Where all these have the same P and
K, every S is. Else, with B = P / K::

    block    the divisors of B where all have one B; only 1 where they have several
    range    the common divisors of all P

Order of keys never rests on any of this: what is aligned decides only whether the member that has a
key's older records has its newer ones too. Invariant: pure arithmetic, and nothing of members.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from dss_core.routing import Router

TABLES_KEPT = 64
"""Of storage topics and counts that were cut last: 9 MB, where each has 4,096 partitions."""


class Layout(NamedTuple):
    """How a storage topic routes."""

    partitions: int
    factor: int

    @property
    def base(self) -> int:
        """How many blocks of partitions it has under the block router."""
        return self.partitions // self.factor


class Shard(NamedTuple):
    """One of so many shards. The same number of another count is another shard."""

    number: int
    of: int

    def covers(self, partition: int, partitions: int) -> bool:
        """Whether it owns a partition of a storage topic with so many."""
        return shard_of(partition, partitions, self.of) == self.number


def partitions_of(shard: int, partitions: int, shards: int) -> range:
    """What a shard owns of a storage topic with so many partitions."""
    assert 0 <= shard < shards
    return range(shard * partitions // shards, (shard + 1) * partitions // shards)


def shard_of(partition: int, partitions: int, shards: int) -> int:
    """Which shard owns a partition of a storage topic with so many."""
    assert 0 <= partition < partitions
    return ((partition + 1) * shards - 1) // partitions


@lru_cache(maxsize=TABLES_KEPT)
def shards_by_partition(partitions: int, shards: int) -> tuple[int, ...]:
    """`shard_of` each partition of a storage topic, for whoever cuts whole groups."""
    return tuple(shard_of(each, partitions, shards) for each in range(partitions))


def is_even(shards: int, layouts: Iterable[Layout]) -> bool:
    """Whether every shard owns as many partitions as any other, in each storage topic."""
    return all(layout.partitions % shards == 0 for layout in layouts)


def is_aligned(shards: int, router: Router, layouts: Sequence[Layout]) -> bool:
    """Whether all records of a key lie in one shard."""
    alike = _alignment(router, layouts)
    return alike is None or alike % shards == 0


def _alignment(router: Router, layouts: Sequence[Layout]) -> int | None:
    """The number whose divisors are the aligned counts; None: every count is."""
    if router is Router.RANGE:
        counts = {layout.partitions for layout in layouts}
        return None if len(counts) < 2 else gcd(*counts)
    if len(set(layouts)) < 2:
        return None
    bases = {layout.base for layout in layouts}
    return 1 if len(bases) > 1 else bases.pop()


def better_counts(
    shards: int, router: Router, layouts: Sequence[Layout], counts_max: int = 3
) -> tuple[int, ...]:
    """The counts nearest to one that is not both even and aligned, which are; the nearest first."""
    if _fits(shards, router, layouts):
        return ()
    widest = max((layout.partitions for layout in layouts), default=0)
    good = (each for each in range(1, widest + 1) if _fits(each, router, layouts))
    return tuple(sorted(good, key=lambda each: (abs(each - shards), each))[:counts_max])


def grown_count(shards: int, router: Router, layouts: Sequence[Layout]) -> int:
    """The count that a group of so many is offered where a storage topic is added: the last one.

    It divides its partitions, for those are there to stay, and is no smaller than before, where
    there are as many partitions: whoever works now has work then. Among such counts one that is
    even and aligned over all storage topics comes first, then one that is even, then the nearest.
    """
    new = layouts[-1].partitions
    return min(
        _divisors(new, min(shards, new)),
        key=lambda each: (
            not _fits(each, router, layouts),
            not is_even(each, layouts),
            each,
        ),
    )


def _divisors(number: int, least: int) -> Iterator[int]:
    return (each for each in range(least, number + 1) if number % each == 0)


def _fits(shards: int, router: Router, layouts: Sequence[Layout]) -> bool:
    return is_even(shards, layouts) and is_aligned(shards, router, layouts)
