"""Strict plans: runs in which nothing may make a record come twice.

The checker is strictest in such a run: each record must come once, unmarked, and in time. One run
in ten is cut down to events that disturb nothing; in half of these a leader dies as well, so that
some faults are held to the strict rules too.

Invariant: an event or a rate that is named here never makes a record come twice to a member that
stays and acknowledges everything. All others count as disturbances.
"""

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from dss_sim.groups.client import Habits
from dss_sim.groups.member_plans import HAND_OVERS

if TYPE_CHECKING:
    from dss_sim.groups.plan import Plan, Timed

STRICT_SHARE = 1 / 10
"""The share of runs that are strict."""
LEADER_FAULTS = frozenset({"lose_leader", "crash_leader_host"})
LEADERLESS_SHARE = 1 / 2
"""The share of strict runs in which a leader dies."""
LEAVES = frozenset({"unsubscribe", "resubscribe"})
UNDISTURBING = (
    frozenset(
        {
            "append", "begin", "join", "intrude", "grow_topic", "seal_topic", "fill_disk", "rot",
            "lose_sectors", "neglect", "cut_producer", "kill_producer", "burst", "move_cursors",
            "undo_moves", "cancel_moves", "instruct_again", "pause", "switch_topic",
        }
    )
    | LEADER_FAULTS
    | LEAVES
    | HAND_OVERS
)  # fmt: skip
"""A new leader adopts the living members and their acks, so even its death repeats no record."""
UNDISTURBING_RATES = frozenset({"double", "late", "slow_commit", "slow_sync", "late_request"})
"""Faults of messages and commits that never make a record come twice."""


SLOWING = frozenset({"late", "slow_commit"})
"""Rates at which finding a new leader may take longer than the rest of a lease."""
PATIENT_MS = 10_000
"""A revoke deadline that is longer than any message is late."""
LASTING_MS = 6_000
"""A lease that survives some late pings in a row."""


def disturbs_by_plan(plan: "Plan") -> bool:
    """Whether the rates, the habits or the deadlines of a plan may make a record come twice."""
    timing = plan.timing
    hasty = timing.revoke_deadline_ms < PATIENT_MS or timing.lease_ms < LASTING_MS
    impatient = hasty and "late" in plan.rates
    sits = any(each.sit for each in plan.habits)
    return impatient or sits or not plan.rates.keys() <= UNDISTURBING_RATES


def cut_to_strict(plan: "Plan", chance: Random, death: "Timed") -> "Plan":
    """The plan without disturbances; in half of the cases a leader dies once, and no member leaves.

    A goodbye is sent only once, so a dead leader may miss it; several deaths in a row may outlast a
    lease.
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
