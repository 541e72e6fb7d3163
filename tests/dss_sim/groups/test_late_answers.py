"""The script of late answers: harmless as borrowers are, fatal to one that trusts each answer."""

from random import Random

import pytest

from dss_sim.groups.late_answers import LATE_ANSWER_SHARE, LEASE_MS, LOST_UNTIL, MS
from dss_sim.groups.plan import Plan, late_answers, plan_of
from dss_sim.groups.run import run
from dssd.machines.borrower import borrow_machine
from dssd.machines.borrower.state import BorrowerState
from dssd.machines.messages import LeaderConnectResponse
from support.proof_share import share

SCRIPTS = tuple(range(share(2, 8)))


def script_of(seed: int) -> Plan:
    """The script in the world of a seed."""
    return late_answers(plan_of(seed), Random(f"{seed}/script"))


@pytest.mark.parametrize("seed", SCRIPTS)
def test_a_late_answer_to_a_request_for_the_leader_changes_no_lease(seed: int) -> None:
    assert run(script_of(seed)).violation is None


@pytest.mark.parametrize("seed", SCRIPTS)
def test_a_borrower_that_counts_its_lease_from_it_is_always_found(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubled = BorrowerState.CONNECTED, LeaderConnectResponse
    monkeypatch.setitem(borrow_machine.MESSAGES, doubled, borrow_machine._connect)
    outcome = run(script_of(seed))
    assert outcome.violation is not None
    assert outcome.violation.invariant == "S4"
    assert "runs from too late a time" in str(outcome.violation)


def test_a_share_of_the_runs_is_this_script() -> None:
    plans = [plan_of(seed) for seed in range(1_000)]
    kinds = {"freeze_leader_host", "freeze_session_host", "partition", "begin", "append"}
    scripts = [
        plan
        for plan in plans
        if {each.kind for each in plan.timed} == kinds and plan.timing.lease_ms == LEASE_MS
    ]
    assert 0.7 < len(scripts) / len(plans) / LATE_ANSWER_SHARE < 1.3
    for plan in scripts:
        assert not plan.rates
        assert {group.protocol for group in plan.groups} == {"borrow"}
        assert max(each.at_us for each in plan.timed) < LOST_UNTIL * MS < plan.heal_us
