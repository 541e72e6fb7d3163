"""Topics that grow along chains of partitions, under both routers and both protocols."""

from collections import Counter
from dataclasses import replace

import pytest

from dss_core.routing import Router
from dss_sim.groups.catalogue import grown_by, new_topic
from dss_sim.groups.chain_scenarios import CHAIN_SCENARIOS, CHAINS
from dss_sim.groups.chains import NAMED, SMALL
from dss_sim.groups.history import HandedOut, Queued
from dss_sim.groups.plan import Plan, plan_of
from dss_sim.groups.queue_plans import SWITCH
from dss_sim.groups.run import Outcome, run
from dss_sim.groups.scenarios import Scenario, crash_points, spoken
from support.proof_share import only_in_proof, share

PROTOCOLS = ("borrow", "lease")
BY_NAME = {scenario.name: scenario for scenario in CHAIN_SCENARIOS}
SEEDS = 20
CRASH_EVERY = 97
"""One effect of so many is a place to die, of each chain others: it has some thousands."""


def generations(outcome: Outcome) -> Counter[int]:
    """How many records of each storage topic were handed out from their streams."""
    return Counter(
        int(event.stream.split("/")[1])
        for event in outcome.history
        if isinstance(event, HandedOut) and "~" not in event.stream
    )


def check(scenario: Scenario, protocol: str, seed: int = 0) -> Outcome:
    plan = spoken(scenario, protocol).plan
    outcome = run(replace(plan, seed=plan.seed + seed))
    assert outcome.violation is None, f"{scenario.name}, {protocol}: {outcome.violation}"
    return outcome


def chain_of(plan: Plan) -> tuple[int, ...]:
    return (*plan.partitions, *(each.amount for each in plan.timed if each.kind == SWITCH))


def test_growth_has_the_factors_of_the_daemon() -> None:
    def factors(*partitions: int) -> list[tuple[int, int]]:
        topic = new_topic(1, "t", partitions[0], "sync", Router.BLOCK)
        for number, each in enumerate(partitions[1:], 2):
            part = grown_by(topic, each, number)
            topic = replace(topic, storage_topics=(*topic.storage_topics, part))
        return [(each.partitions, each.factor) for each in topic.storage_topics]

    assert factors(4, 8, 16) == [(4, 1), (8, 2), (16, 4)]
    assert factors(4, 6) == [(4, 1), (6, 1)]
    assert factors(2, 6, 2) == [(2, 1), (6, 3), (2, 1)]
    # No daemon makes a storage topic that routes as the last one does.
    assert factors(3, 3) == [(3, 1), (4, 1)]


def test_keys_are_handed_out_from_every_storage_topic_of_a_chain() -> None:
    outcome = check(BY_NAME["4, 6, block"], "borrow")
    handed_out = generations(outcome)
    assert set(handed_out) == {0, 1}
    assert min(handed_out.values()) > 10
    into = {each.stream for each in outcome.history if isinstance(each, Queued)}
    assert any(each.startswith("t1/1/") for each in into)


def test_seeds_draw_chains_under_both_routers() -> None:
    plans = [plan for plan in map(plan_of, range(share(500, 6_000))) if len(plan.partitions) == 1]
    chains = [chain for plan in plans if (chain := chain_of(plan)) in NAMED + SMALL]
    assert len(chains) > len(plans) / 60
    assert {*chains} >= {*share(SMALL[:1], NAMED + SMALL)}
    assert {bool(plan.range_topics) for plan in plans} == {True, False}


@only_in_proof
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", list(BY_NAME))
def test_every_chain_keeps_the_order_of_keys(name: str, protocol: str) -> None:
    generation_count = len(next(chain for of, chain, _ in CHAINS if name.startswith(f"{of}, ")))
    for seed in range(SEEDS):
        handed_out = generations(check(BY_NAME[name], protocol, seed))
        assert set(handed_out) == set(range(generation_count))


@only_in_proof
@pytest.mark.slow("a run for each crash")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", list(BY_NAME))
def test_every_chain_survives_crashes(name: str, protocol: str) -> None:
    scenario = spoken(BY_NAME[name], protocol)
    points = list(crash_points(scenario))
    outcomes = [run(plan) for plan in points[len(name) % CRASH_EVERY :: CRASH_EVERY]]
    broken = [f"{each.plan.crash}: {each.violation}" for each in outcomes if each.violation]
    assert broken == []
    assert len(outcomes) > 10
