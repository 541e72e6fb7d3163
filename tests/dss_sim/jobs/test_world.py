"""A bulk job whose daemon dies after every effect, in turn and at random."""

from pathlib import Path

import pytest

from dss_sim.jobs.world import EFFECTS_MAX, Plan, judged


def test_a_life_without_a_death_takes_fewer_effects_than_are_tried(tmp_path: Path) -> None:
    violations, effects = judged(tmp_path, Plan())
    assert violations == []
    assert 20 < effects < EFFECTS_MAX


@pytest.mark.parametrize("after", range(3, EFFECTS_MAX, 6))
def test_a_death_at_an_effect_loses_and_doubles_nothing(tmp_path: Path, after: int) -> None:
    """A sample: ``make sim-jobs`` takes each effect, before it happens and behind it."""
    assert judged(tmp_path, Plan((after,), happens=after % 4 < 2))[0] == []


@pytest.mark.parametrize("seed", range(5))
def test_deaths_repeats_and_producers_at_random_lose_and_double_nothing(
    tmp_path: Path, seed: int
) -> None:
    assert judged(tmp_path, Plan.of_seed(seed))[0] == []
