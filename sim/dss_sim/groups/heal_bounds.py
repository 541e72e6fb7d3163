"""How long a world may take after heal, derived from what its plan may have left behind.

The protocol's part is counted in leases (docs/protocol.md: every stream is granted within 2 L,
everything is consumed within 3 L plus the work). In addition, records that users keep stay out
until their ack wait ends, refused records wait out their delay, and a revoke waits for a holder
that does not give back. All of that runs on the clocks of the hosts; the slowest clock counts.

Invariant: nothing here is measured from runs.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_sim.groups.hold_operator import HOLD
from dss_sim.groups.member_plans import GRACE_MS_MAX, MEMBER_OPERATIONS
from dss_sim.groups.network import LATE_US
from dss_sim.groups.queue_plans import (
    BACKOFF_MS_MAX,
    HELD_BACK_US,
    REDRIVES_MS,
    ROOM_MS,
    SLOW_READ_US,
    has_queues,
    waits_for_room,
)
from dss_sim.groups.schedule import PARTS
from dssd.limits import READ_AGAIN_MS_MAX, REDELIVERY_MS, REFUSED_MOVE_MS, UNSUBSCRIBE_MS
from dssd.machines.delivery.redrive_pace import REDRIVE_MS_MAX

if TYPE_CHECKING:
    from dss_sim.groups.plan import Plan

MOVES = frozenset({"move_cursors", "undo_moves", "cancel_moves"})
GRANTED_LEASES = 2
SETTLED_LEASES = 3
WORK_US = 1_000_000
"""The time for clients to reconnect, leaders to gather and commit, and users to acknowledge."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Spans of true time, in µs."""

    granted_us: int
    """L1: from heal until every stream is granted, and shares are equal."""
    settled_us: int
    """L2: from heal until all is consumed."""
    given_back_us: int
    """From heal until every stream that was asked back or left is given back."""
    calm_us: int
    """After both: until messages on their way have arrived, and dead members are missed; for L3."""


def bounds_of(plan: "Plan") -> Bounds:
    """The bounds for a world of this plan."""
    slowest = min(rate for rate, _ in plan.clocks)

    def true_us(span_ms: int) -> int:
        return span_ms * 1_000 * PARTS // slowest

    lease_ms, given_back_ms = plan.timing.lease_ms, _given_back_ms(plan)
    late_us = LATE_US[1] + WORK_US
    if any(timed.kind in MEMBER_OPERATIONS for timed in plan.timed):
        # Then pinned streams are rebalanced, and evicted members come back.
        given_back_ms += max(plan.timing.revoke_deadline_ms, GRACE_MS_MAX)
        late_us += LATE_US[1] + WORK_US
    if any(timed.kind == HOLD for timed in plan.timed):
        # Reservations for earlier holders end first, then each stream is asked back.
        given_back_ms += lease_ms + plan.timing.revoke_deadline_ms
    return Bounds(
        true_us(GRANTED_LEASES * lease_ms + given_back_ms) + late_us,
        true_us(
            SETTLED_LEASES * lease_ms + given_back_ms + _come_again_ms(plan) + _stalled_ms(plan)
        )
        + late_us,
        true_us(given_back_ms),
        true_us(lease_ms) + late_us,
    )


def _given_back_ms(plan: "Plan") -> int:
    """How long a holder may keep a stream that it is asked for, or leaves."""
    leaves = any(timed.kind in ("unsubscribe", "resubscribe") for timed in plan.timed)
    keeps = "late_final" in plan.rates or any(habits.sit for habits in plan.habits)
    # A failed record that cannot be read cannot be moved, and its lane is not given back before.
    keeps = keeps or (has_queues(plan) and any(each.kind == "lose_sectors" for each in plan.timed))
    if any(timed.kind in MOVES for timed in plan.timed):
        # A refused record without room in its queue is waited for until then.
        keeps = keeps or waits_for_room(plan)
    return max(leaves * UNSUBSCRIBE_MS, keeps * plan.timing.revoke_deadline_ms)


def _stalled_ms(plan: "Plan") -> int:
    """How long readable records wait behind a failing read."""
    lost = any(timed.kind == "lose_sectors" for timed in plan.timed)
    rots = any(timed.kind == "rot" for timed in plan.timed)
    stalls = rots and any(group.on_damage == "stall" for group in plan.groups)
    return READ_AGAIN_MS_MAX if lost or stalls else 0


def _come_again_ms(plan: "Plan") -> int:
    """How long a refused record may rest, or a kept one stay with its user."""
    sits = any(habits.sit for habits in plan.habits)
    queued_ms = 0
    if has_queues(plan):
        # An append is held back, another one is refused and tried again; then entries wait for
        # their time, and redriven ones come one after the other.
        queued_ms = (
            (HELD_BACK_US[1] + SLOW_READ_US[1]) // 1_000
            + REFUSED_MOVE_MS
            + BACKOFF_MS_MAX
            + max(REDRIVE_MS_MAX, *REDRIVES_MS)
        )
    if waits_for_room(plan):
        queued_ms += ROOM_MS
    return queued_ms + _rests_ms(plan, sits=sits)


def _rests_ms(plan: "Plan", *, sits: bool) -> int:
    if not sits and not any(habits.refuse for habits in plan.habits):
        return 0
    # Each rest is twice the one before, so the next one is as long as all together, plus one.
    rest_ms = plan.heal_us // 1_000 + REDELIVERY_MS
    return rest_ms + sits * max(group.ack_wait_ms for group in plan.groups)
