"""What makes no record come twice, and plans that hold nothing else.

Where nothing disturbs, the judge is at its strictest: each record comes once, unmarked, in its
time. One run in ten is cut down to what disturbs nothing, and of those half have their leaders die
besides, so that this is asked of runs with faults too.

Invariant: whatever is named here may strike a member that stays and acknowledges everything, and
costs it no record. What is not named here disturbs.
"""

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from dss_sim.groups.client import Habits

if TYPE_CHECKING:
    from dss_sim.groups.plan import Plan, Timed

STRICT_SHARE = 1 / 10
"""Of the runs, those in which nothing disturbs."""
LEADER_FAULTS = frozenset({"lose_leader", "crash_leader_host"})
LEADERLESS_SHARE = 1 / 2
"""Of those, the ones in which a leader dies at least once."""
LEAVES = frozenset({"unsubscribe", "resubscribe"})
UNDISTURBING = (
    frozenset(
        {
            "append", "begin", "join", "intrude", "grow_topic", "seal_topic", "fill_disk", "rot",
            "cut_producer", "kill_producer", "burst",
        }
    )
    | LEADER_FAULTS
    | LEAVES
)  # fmt: skip
"""A new leader adopts who lives and what they acknowledged, so even its death costs nothing."""
UNDISTURBING_RATES = frozenset({"double", "late", "slow_commit", "slow_sync", "late_request"})
"""What happens to messages and commits at these rates never makes a record come twice."""


SLOWING = frozenset({"late", "slow_commit"})
"""Rates at which the way to a new leader may take longer than is left of a lease."""
PATIENT_MS = 10_000
"""A revoke deadline that what is late does not outlast."""
LASTING_MS = 6_000
"""A lease that some late pings in a row do not outlast."""


def disturbs_by_plan(plan: "Plan") -> bool:
    """Whether the rates, the habits or the deadlines of a plan may make a record come twice."""
    timing = plan.timing
    hasty = timing.revoke_deadline_ms < PATIENT_MS or timing.lease_ms < LASTING_MS
    impatient = hasty and "late" in plan.rates
    sits = any(each.sit for each in plan.habits)
    return impatient or sits or not plan.rates.keys() <= UNDISTURBING_RATES


def cut_to_strict(plan: "Plan", chance: Random, death: "Timed") -> "Plan":
    """The plan without what disturbs; in half of the cases a leader dies, once, and nobody leaves.

    For what a member says as it leaves is said once, and deaths in a row may outlast a lease.
    """
    dies = chance.random() < LEADERLESS_SHARE
    kinds = UNDISTURBING - LEADER_FAULTS - (LEAVES if dies else frozenset())
    strikes = UNDISTURBING_RATES - (SLOWING if dies else frozenset())
    rates = {kind: rate for kind, rate in plan.rates.items() if kind in strikes}
    lease_ms = LASTING_MS if "late" in rates else plan.timing.lease_ms
    timed = [each for each in plan.timed if each.kind in kinds]
    return replace(
        plan,
        rates=rates,
        timed=tuple(sorted([*timed, death] if dies else timed, key=lambda each: each.at_us)),
        habits=tuple(Habits(later=each.later, sync=each.sync) for each in plan.habits),
        timing=replace(plan.timing, lease_ms=lease_ms, revoke_deadline_ms=PATIENT_MS),
    )
