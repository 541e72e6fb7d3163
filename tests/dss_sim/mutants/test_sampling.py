"""Samples that go through all mutants."""

import pytest

from dss_sim.mutants.catalogue import GROUPS, MUTANTS
from dss_sim.mutants.sampling import sampled


@pytest.mark.parametrize("size", [1, 8, 50])
@pytest.mark.parametrize("first", [0, 1234])
def test_turns_that_follow_each_other_go_through_all_mutants_before_one_comes_again(
    size: int, first: int
) -> None:
    turns = range(first, first + len(MUTANTS) // size + 1)
    names = [each.name for turn in turns for each in sampled(GROUPS, size, turn)]
    assert len(set(names[: len(MUTANTS)])) == len(MUTANTS)


def test_a_sample_is_the_same_at_the_same_turn_and_another_at_the_next() -> None:
    assert sampled(GROUPS, 8, 5) == sampled(GROUPS, 8, 5)
    assert not set(sampled(GROUPS, 8, 5)) & set(sampled(GROUPS, 8, 6))


def test_a_sample_is_spread_over_the_groups() -> None:
    for turn in range(len(MUTANTS) // 16):
        sample = set(sampled(GROUPS, 16, turn))
        assert sum(1 for group in GROUPS if sample & set(group)) >= 5


def test_a_sample_holds_each_mutant_at_most_once() -> None:
    assert sorted(each.name for each in sampled(GROUPS, 1000, 3)) == sorted(
        each.name for each in MUTANTS
    )
