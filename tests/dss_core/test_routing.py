"""Routing against big-integer arithmetic, scalar and vectorised; parents by brute force."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dss_core.arrow_routing import hashes_of, partitions_of
from dss_core.limits import PARTITIONS_MAX
from dss_core.routing import Router, key_hash, parents, partition_of

hashes = st.integers(0, 2**64 - 1)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, int]:
    """Partitions and a factor that divides them."""
    factor = draw(st.integers(1, 64))
    return factor * draw(st.integers(1, PARTITIONS_MAX // factor)), factor


def by_big_integers(router: Router, hashed: int, partitions: int, factor: int) -> int:
    if router is Router.RANGE:
        return hashed * partitions // 2**64
    base = partitions // factor
    return factor * (hashed % base) + (hashed // partitions) % factor


def test_the_hash_of_a_key_is_xxh64_with_the_seed_of_spark() -> None:
    assert key_hash(b"") == 0x98B1582B0977E704
    assert key_hash(b"abc") == 0x13C1D910702770E6


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_hashes_of_many_keys_equal_those_of_each(keys: list[bytes]) -> None:
    assert hashes_of(keys).to_pylist() == [key_hash(key) for key in keys]


@given(st.sampled_from(Router), hashes, shapes())
@example(Router.RANGE, 2**64 - 1, (PARTITIONS_MAX, 1))
@example(Router.BLOCK, 2**64 - 1, (PARTITIONS_MAX, PARTITIONS_MAX))
def test_a_partition_is_in_range_and_equals_big_integer_arithmetic(
    router: Router, hashed: int, shape: tuple[int, int]
) -> None:
    found = partition_of(router, hashed, *shape)
    assert 0 <= found < shape[0]
    assert found == by_big_integers(router, hashed, *shape)


@given(hashes, shapes())
def test_block_keeps_a_key_in_the_block_of_its_hash_modulo_the_base(
    hashed: int, shape: tuple[int, int]
) -> None:
    partitions, factor = shape
    found = partition_of(Router.BLOCK, hashed, partitions, factor)
    assert found // factor == hashed % (partitions // factor)


@given(hashes, hashes, shapes())
def test_range_keeps_the_order_of_hashes(one: int, other: int, shape: tuple[int, int]) -> None:
    low, high = sorted((one, other))
    assert partition_of(Router.RANGE, low, *shape) <= partition_of(Router.RANGE, high, *shape)


@given(st.sampled_from(Router), st.lists(st.none() | hashes, max_size=50), shapes())
@example(Router.BLOCK, [0, 2**63 - 1, 2**63, 2**64 - 1, None], (12, 4))
@example(Router.RANGE, [0, 2**63 - 1, 2**63, 2**64 - 1, None], (12, 4))
def test_the_vectorised_routers_equal_the_scalar_ones(
    router: Router, column: list[int | None], shape: tuple[int, int]
) -> None:
    found = partitions_of(router, pa.array(column, pa.uint64()), *shape).to_pylist()
    assert found == [None if h is None else partition_of(router, h, *shape) for h in column]


@pytest.mark.parametrize("router", Router)
@given(st.data())
def test_the_old_partition_of_every_key_is_a_parent_of_its_new_one(
    router: Router, data: st.DataObject
) -> None:
    old, new, hashed = data.draw(shapes()), data.draw(shapes()), data.draw(hashes)
    after = partition_of(router, hashed, *new)
    assert partition_of(router, hashed, *old) in parents(router, after, old=old, new=new)


@pytest.mark.parametrize("router", Router)
@pytest.mark.parametrize(
    ("old", "new"), [((4, 1), (8, 2)), ((6, 2), (9, 1)), ((3, 1), (3, 1)), ((8, 2), (12, 3))]
)
def test_parents_are_exactly_the_partitions_that_share_a_key(
    router: Router, old: tuple[int, int], new: tuple[int, int]
) -> None:
    seen: dict[int, set[int]] = {q: set() for q in range(new[0])}
    # The routers depend on h modulo these and on its position in 2^64: sample both finely.
    period = old[0] * new[0] * old[1] * new[1]
    samples = 5 * period
    for index in range(samples):
        hashed = index if router is Router.BLOCK else index * 2**64 // samples
        seen[partition_of(router, hashed, *new)].add(partition_of(router, hashed, *old))
    found = {q: set(parents(router, q, old=old, new=new)) for q in seen}
    assert found == seen
