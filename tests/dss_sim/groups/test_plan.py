from dss_sim.groups.plan import (
    FAULTS_US,
    LOAD_US,
    NEGLECT_SHARE,
    RESTLESS_SHARE,
    SECTORS_SHARE,
    STALL_SHARE,
    Plan,
    plan_of,
)
from dss_sim.groups.queue_plans import UNTOLD


def toggles(plan: Plan) -> list[str]:
    """What the last client does in the time of faults."""
    last = len(plan.habits) - 1
    return [each.kind for each in plan.timed if each.kind in ("join", "leave") and each.who == last]


def test_in_one_run_of_ten_a_client_goes_and_comes_back_all_the_time_and_stays() -> None:
    restless = [plan for plan in map(plan_of, range(1_000)) if len(toggles(plan)) > 6]
    assert 0.7 < len(restless) / 1_000 / RESTLESS_SHARE < 1.3
    for plan in restless:
        assert toggles(plan) == ["leave", "join"] * (len(toggles(plan)) // 2)
        goes_on = any(each.kind == UNTOLD for each in plan.timed)
        assert goes_on or plan.heal_us == LOAD_US + FAULTS_US
        assert all(each.at_us <= plan.heal_us for each in plan.timed)
        assert {group.protocol for group in plan.groups} <= {"borrow", "lease"}
    protocols = [plan.groups[0].protocol for plan in restless]
    assert 0 < protocols.count("lease") < protocols.count("borrow")


def test_some_groups_stay_before_damage_and_some_records_can_never_be_read_again() -> None:
    plans = [plan_of(seed) for seed in range(400)]
    groups = [group.on_damage for plan in plans for group in plan.groups]
    assert 0.7 < groups.count("stall") / len(groups) / STALL_SHARE < 1.3
    lost = [any(each.kind == "lose_sectors" for each in plan.timed) for plan in plans]
    assert 0.5 < lost.count(True) / len(lost) / SECTORS_SHARE < 1.5


def test_users_of_several_groups_neglect_one_of_them_in_some_runs() -> None:
    plans = [plan for plan in map(plan_of, range(600)) if len(plan.groups) > 1]
    neglect = [any(each.kind == "neglect" for each in plan.timed) for plan in plans]
    assert 0.7 < neglect.count(True) / len(neglect) / NEGLECT_SHARE < 1.3


def test_a_seed_has_one_plan() -> None:
    assert all(plan_of(seed) == plan_of(seed) for seed in range(100))
