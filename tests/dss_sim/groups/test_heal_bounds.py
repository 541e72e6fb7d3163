from dataclasses import replace

from dss_sim.groups.client import Habits
from dss_sim.groups.heal_bounds import bounds_of
from dss_sim.groups.plan import Timed, plan_of
from dssd.limits import UNSUBSCRIBE_MS
from dssd.machines.leader.timing import LeaderTiming

EVEN = ((1_000_000, 0),)
BARE = replace(
    plan_of(0),
    timed=(),
    rates={},
    habits=(Habits(),),
    clocks=EVEN,
    timing=LeaderTiming(lease_ms=2_000, revoke_deadline_ms=3_000),
)
SITTING = replace(BARE, habits=(Habits(), Habits(sit=0.1)))


def test_where_nothing_is_left_behind_the_bounds_are_leases_and_a_little_work() -> None:
    bounds = bounds_of(BARE)
    assert bounds.granted_us < 2 * 2_000_000 + 3_000_000
    assert bounds.settled_us < 3 * 2_000_000 + 3_000_000
    assert bounds.settled_us - bounds.granted_us == 2_000_000
    assert bounds.calm_us < 2_000_000 + 3_000_000


def test_a_slow_clock_takes_its_time_and_longer_leases_take_theirs() -> None:
    slow = bounds_of(replace(BARE, clocks=(*EVEN, (800_000, 5))))
    assert slow.granted_us - bounds_of(BARE).granted_us == 1_000_000
    patient = replace(BARE, timing=replace(BARE.timing, lease_ms=6_000))
    assert bounds_of(patient).settled_us - bounds_of(BARE).settled_us == 3 * 4_000_000


def test_who_keeps_what_is_asked_for_is_waited_for_until_the_deadline() -> None:
    late = bounds_of(replace(BARE, rates={"late_final": 0.1}))
    assert late.granted_us - bounds_of(BARE).granted_us == 3_000_000
    leaving = bounds_of(replace(BARE, timed=(Timed(0, "unsubscribe", 0, 0),)))
    assert leaving.granted_us - bounds_of(BARE).granted_us == UNSUBSCRIBE_MS * 1_000


def test_records_that_were_refused_or_sat_on_come_again_in_their_time() -> None:
    refusing = bounds_of(replace(BARE, habits=(Habits(refuse=0.1),)))
    rest_us = BARE.heal_us + 1_000_000
    assert refusing.settled_us - bounds_of(BARE).settled_us == rest_us
    wait_us = max(group.ack_wait_ms for group in BARE.groups) * 1_000
    sitting = bounds_of(SITTING)
    assert sitting.settled_us - refusing.settled_us == wait_us + 3_000_000
    assert sitting.granted_us - refusing.granted_us == 3_000_000
