from dataclasses import replace
from random import Random

from dss_sim.groups.client import Habits
from dss_sim.groups.history import Disturbed
from dss_sim.groups.plan import LOG_RATES, RATES, REQUEST_RATES, Timed, plan_of
from dss_sim.groups.run import run
from dss_sim.groups.strict_plans import (
    LASTING_MS,
    LEADER_FAULTS,
    LEAVES,
    PATIENT_MS,
    STRICT_SHARE,
    UNDISTURBING,
    UNDISTURBING_RATES,
    cut_to_strict,
    disturbs_by_plan,
)
from dss_sim.groups.timed_events import KINDS
from support.proof_share import only_in_proof

DEATH = Timed(3_000_000, "lose_leader", 0, 0)
LIVELY = replace(
    plan_of(1),
    rates={"lose": 0.1, "late": 0.1, "double": 0.1},
    habits=(Habits(later=0.5, refuse=0.1, sit=0.1, hang=1.0),),
    timed=tuple(Timed(at, kind, 0, 1) for at, kind in enumerate(KINDS)),
)


def test_what_disturbs_nothing_is_something_that_happens() -> None:
    assert KINDS.keys() >= UNDISTURBING
    assert RATES.keys() | LOG_RATES.keys() | REQUEST_RATES.keys() >= UNDISTURBING_RATES


def test_a_strict_plan_holds_nothing_that_disturbs() -> None:
    assert disturbs_by_plan(LIVELY)
    cuts = [cut_to_strict(LIVELY, Random(number), DEATH) for number in range(20)]
    assert not any(disturbs_by_plan(plan) for plan in cuts)
    kinds = [{timed.kind for timed in plan.timed} for plan in cuts]
    assert all(each <= UNDISTURBING for each in kinds)
    assert {frozenset(each & (LEADER_FAULTS | LEAVES)) for each in kinds} == {
        LEAVES,
        frozenset({DEATH.kind}),
    }


def test_deadlines_and_leases_that_late_messages_outlast_disturb() -> None:
    late = replace(plan_of(1), rates={"late": 0.1}, habits=(Habits(),))
    for revoke_ms, lease_ms, disturbs in (
        (PATIENT_MS - 1, LASTING_MS, True),
        (PATIENT_MS, LASTING_MS - 1, True),
        (PATIENT_MS, LASTING_MS, False),
    ):
        timing = replace(late.timing, revoke_deadline_ms=revoke_ms, lease_ms=lease_ms)
        assert disturbs_by_plan(replace(late, timing=timing)) == disturbs


@only_in_proof
def test_one_run_in_ten_is_strict_and_leaders_die_in_some_of_them() -> None:
    plans = [plan_of(seed) for seed in range(1_000)]
    strict = [
        plan
        for plan in plans
        if not disturbs_by_plan(plan)
        and plan.timing.revoke_deadline_ms == PATIENT_MS
        and {timed.kind for timed in plan.timed} <= UNDISTURBING
    ]
    assert len(strict) > 0.8 * STRICT_SHARE * len(plans)
    led = [plan for plan in strict if LEADER_FAULTS & {timed.kind for timed in plan.timed}]
    assert len(led) > 0.3 * STRICT_SHARE * len(plans)
    outcomes = [run(plan) for plan in led[:30]]
    undisturbed = [
        not any(isinstance(event, Disturbed) for event in outcome.history) for outcome in outcomes
    ]
    assert undisturbed.count(True) > 10


def test_two_deaths_of_leaders_soon_after_each_other_disturb() -> None:
    quiet = cut_to_strict(LIVELY, Random(0), DEATH)
    quiet = replace(quiet, rates={}, timing=replace(quiet.timing, lease_ms=2_000))
    for after_us, disturbs in ((3_000_000, True), (5_000_000, False)):
        deaths = (DEATH, Timed(DEATH.at_us + after_us, "crash_leader_host", 0, 0))
        begin = Timed(0, "begin", 0, 0)
        history = run(replace(quiet, timed=(begin, *deaths), heal_us=9_000_000)).history
        assert any(isinstance(event, Disturbed) for event in history) == disturbs
