"""Shards by brute force: which keys change theirs, for every two storage topics in a row."""

from math import gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dss_core.routing import Router, partition_of
from dss_core.shards import (
    Layout,
    Shard,
    better_counts,
    grown_count,
    is_aligned,
    is_even,
    partitions_of,
    shard_of,
)
from support.proof_share import share

WIDEST = share(12, 48)
"""Partitions, at most; every count of shards up to it, and both routers."""

COUNTS = range(1, WIDEST + 1)
HASHES = np.concatenate(
    [
        np.arange(4_096, dtype=np.uint64),
        np.random.default_rng(31).integers(0, 2**64, 8_192, dtype=np.uint64, endpoint=False),
    ]
)
"""Among them is a key for every two partitions that have one in common."""

EDGES = np.arange(0, 2**64, 2**64 // 11_520, dtype=np.uint64)
"""Finer than every two edges of partitions of the range router."""


def routed(router: Router, layout: Layout, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """`partition_of`, over columns."""
    partitions, factor = (np.uint64(each) for each in layout)
    if router is Router.RANGE:
        found = ((hashes >> np.uint64(32)) * partitions) >> np.uint64(32)
    else:
        found = factor * (hashes % np.uint64(layout.base)) + hashes // partitions % factor
    return found.astype(np.int64)


def kept_counts(
    router: Router, old: Layout, new: Layout, hashes: NDArray[np.uint64]
) -> dict[int, bool]:
    """For every count of shards: whether all keys are in one shard, as they are routed."""
    both = np.unique(routed(router, old, hashes) * 64 + routed(router, new, hashes))
    counts = np.arange(1, max(old.partitions, new.partitions) + 1)[:, None]
    before = ((both // 64 + 1) * counts - 1) // old.partitions
    after = ((both % 64 + 1) * counts - 1) // new.partitions
    same = (before == after).all(axis=1)
    return {count: bool(same[count - 1]) for count in range(1, len(same) + 1)}


def test_shards_are_disjoint_slices_and_own_every_partition_together() -> None:
    for partitions in COUNTS:
        for shards in range(1, 2 * WIDEST + 1):
            owned = [partitions_of(each, partitions, shards) for each in range(shards)]
            assert [at for each in owned for at in each] == list(range(partitions))
            assert {len(each) for each in owned} <= {
                partitions // shards,
                -(-partitions // shards),
            }
            for number, own in enumerate(owned):
                assert all(shard_of(at, partitions, shards) == number for at in own)
                assert all(Shard(number, shards).covers(at, partitions) for at in own)


def test_a_count_is_even_where_all_shards_own_as_many_partitions() -> None:
    for partitions in COUNTS:
        for shards in COUNTS:
            sizes = {len(partitions_of(each, partitions, shards)) for each in range(shards)}
            assert is_even(shards, [Layout(partitions, 1)]) == (len(sizes) == 1 and sizes != {0})


def test_columns_are_routed_as_single_keys_are() -> None:
    for router in Router:
        for layout in (Layout(12, 1), Layout(12, 4), Layout(7, 1)):
            column = routed(router, layout, HASHES[::997])
            each = [partition_of(router, int(one), *layout) for one in HASHES[::997]]
            assert column.tolist() == each


def test_under_block_a_count_is_aligned_exactly_where_no_key_changes_its_shard() -> None:
    layouts = [Layout(many, each) for many in COUNTS for each in COUNTS if many % each == 0]
    for old in layouts:
        for partitions in COUNTS:
            grown = partitions % old.base == 0
            new = Layout(partitions, partitions // old.base if grown else 1)
            for count, kept in kept_counts(Router.BLOCK, old, new, HASHES).items():
                assert is_aligned(count, Router.BLOCK, [old, new]) == kept, (old, new, count)


def test_under_range_a_count_is_aligned_exactly_where_no_key_changes_its_shard() -> None:
    for old in COUNTS:
        for new in COUNTS:
            layouts = [Layout(old, 1), Layout(new, 1)]
            found = kept_counts(Router.RANGE, layouts[0], layouts[1], EDGES)
            for count, kept in found.items():
                assert is_aligned(count, Router.RANGE, layouts) == kept, (old, new, count)


@given(st.integers(1, 8), st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_over_many_storage_topics_of_one_base_the_divisors_of_it_are_aligned(
    base: int, factors: list[int]
) -> None:
    layouts = [Layout(base * each, each) for each in factors]
    found = {each for each in range(1, 49) if is_aligned(each, Router.BLOCK, layouts)}
    divisors = {each for each in range(1, 49) if base % each == 0}
    assert found == (set(range(1, 49)) if len(set(factors)) == 1 else divisors)


@pytest.mark.parametrize(
    ("router", "partitions", "shards", "better"),
    [
        (Router.BLOCK, [(12, 1)], 5, (4, 6, 3)),
        (Router.BLOCK, [(12, 1)], 6, ()),
        (Router.BLOCK, [(6, 1), (12, 2)], 12, (6, 3, 2)),
        (Router.BLOCK, [(4, 1), (6, 1)], 6, (1,)),
        (Router.RANGE, [(12, 1), (24, 2)], 8, (6, 4, 12)),
        (Router.RANGE, [(7, 1), (10, 1)], 10, (1,)),
    ],
)
def test_better_counts_are_the_nearest_that_are_even_and_aligned(
    router: Router, partitions: list[tuple[int, int]], shards: int, better: tuple[int, ...]
) -> None:
    layouts = [Layout(*each) for each in partitions]
    assert better_counts(shards, router, layouts) == better
    assert all(gcd(each, *(many for many, _ in partitions)) == each for each in better)


@pytest.mark.parametrize("router", list(Router))
def test_a_grown_topic_offers_a_count_that_is_even_there_and_no_smaller_and_keeps_what_fits(
    router: Router,
) -> None:
    for old in COUNTS:
        for new in COUNTS:
            layouts = [Layout(old, 1), Layout(new, new // old if new % old == 0 else 1)]
            for shards in COUNTS:
                offered = grown_count(shards, router, layouts)
                assert new % offered == 0
                assert min(shards, new) <= offered <= new
                if is_even(shards, layouts) and is_aligned(shards, router, layouts):
                    assert offered == shards
                assert grown_count(offered, router, layouts) == offered
            base = layouts[-1].base
            assert grown_count(base, router, layouts) == base


def test_a_grown_topic_offers_what_is_even_and_aligned_before_what_is_near() -> None:
    grown = [Layout(6, 1), Layout(12, 2)]
    counts = [grown_count(each, Router.BLOCK, grown) for each in range(1, 14)]
    assert counts == [1, 2, 3, 6, 6, 6, 12, 12, 12, 12, 12, 12, 12]
    assert grown_count(4, Router.BLOCK, [Layout(4, 1), Layout(6, 1)]) == 6
    assert grown_count(12, Router.BLOCK, [Layout(12, 1), Layout(4, 1)]) == 4
