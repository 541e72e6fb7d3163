"""Crash after every effect, and at every step of a group commit, of every scripted scenario."""

import pytest

from dss_sim.groups.log_scenarios import LOG_SCENARIOS, death_points
from dss_sim.groups.run import run
from dss_sim.groups.scenarios import SCENARIOS, crash_points, spoken
from support.proof_share import share

PROTOCOLS = ("borrow", "lease")
EVERY = share(288, 1)
"""Of the crashes of a scenario, one of so many is tried; of each scenario others."""
AT_A_TIME = 12
"""Scenarios."""


def failures_of(number: int, protocol: str) -> tuple[int, list[str]]:
    """How many crashes were tried in a scenario, and what each that failed broke."""
    tried, broken = 0, list[str]()
    plans = list(crash_points(spoken(SCENARIOS[number], protocol)))
    for plan in plans[number % EVERY :: EVERY]:
        tried += 1
        outcome = run(plan)
        if outcome.violation is not None:
            broken.append(f"{SCENARIOS[number].name}, {plan.crash}: {outcome.violation}")
    return tried, broken


def test_scenarios_have_different_names() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_a_crash_every_scenario_holds(protocol: str) -> None:
    # A sample has each scenario under one of the protocols.
    begin, step = share((PROTOCOLS.index(protocol), len(PROTOCOLS)), (0, 1))
    outcomes = [run(spoken(scenario, protocol).plan) for scenario in SCENARIOS[begin::step]]
    assert [str(outcome.violation) for outcome in outcomes if outcome.violation] == []
    assert all(outcome.effects > 20 for outcome in outcomes)


@pytest.mark.slow("a run for each crash")
@pytest.mark.parametrize("first", range(0, len(SCENARIOS), AT_A_TIME))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_after_a_crash_at_any_effect_everything_still_holds(protocol: str, first: int) -> None:
    # A sample has each scenario under one of the protocols.
    begin, step = share((first + PROTOCOLS.index(protocol), len(PROTOCOLS)), (first, 1))
    end = min(first + AT_A_TIME, len(SCENARIOS))
    results = [failures_of(number, protocol) for number in range(begin, end, step)]
    assert [text for _, broken in results for text in broken] == []
    assert sum(tried for tried, _ in results) >= 60 * len(results) // EVERY


def test_without_a_death_every_scenario_of_the_log_holds() -> None:
    outcomes = [run(scenario.plan) for scenario in LOG_SCENARIOS]
    assert [str(outcome.violation) for outcome in outcomes if outcome.violation] == []
    assert all(outcome.writer_steps > 15 for outcome in outcomes)


def test_after_a_death_at_any_step_of_a_group_commit_everything_still_holds() -> None:
    plans = [plan for scenario in LOG_SCENARIOS for plan in death_points(scenario)]
    assert len(plans) > 500
    plans = plans[:: share(96, 1)]
    broken = [(plan.dies, str(found)) for plan in plans if (found := run(plan).violation)]
    assert broken == []
