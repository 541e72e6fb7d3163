"""Which groups of a run have queues, and the faults of these: drawn apart, so that no other plan
changes.

Invariant: where a plan is strict, nothing here disturbs it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from dssd.machines.queues import RetryPolicy

if TYPE_CHECKING:
    from dss_sim.groups.plan import GroupPlan, Plan, Timed

QUEUES_SHARE = 1 / 4
"""The share of runs in which groups have queues."""
BACKOFFS_MS = ((100,), (300, 1_500), (1_000, 2_500))
BACKOFF_MS_MAX = 2_500
SLOW_READ_US = (50_000, 2_000_000)
"""How long a read for a move takes: longer than short deadlines of revokes."""
ACK_WAIT_MS = 200
"""The ack wait in some runs: shorter than the delay of users who acknowledge late."""
HELD_BACK_US = (50_000, 4_000_000)
"""How long an append is held back: longer than a short lease and all that follows its end."""
RATES: Mapping[str, tuple[float, ...]] = {
    "hold_back_entries": (0.05, 0.3),
    "refuse_entries": (0.05, 0.3),
    "slow_queue_reads": (0.05, 0.3),
}
RECORDS_A_RUN = 1_000
"""A bound that no run reaches."""
REFUSE = (0.1, 0.3, 0.6)
REJECT = (0.0, 0.1, 0.5)
REDRIVE = "redrive"
REDRIVES_MAX = 2
REDRIVES_MS = (0, 500, 3_000)
"""How long a redrive takes; 0: about a millisecond for each record."""
WHOLE = 1
"""The amount of a redrive that takes all dead letters of streams, and so whole keys; 0: any."""
WHOLE_SHARE = 1 / 2
"""The share of redrives of ordered groups that take all."""
ERRAND = "errand"
"""An operator's errand for entries of retry queues."""
ERRANDS_MAX = 3
UNDO, CANCEL = "undo_moves", "cancel_moves"
UNDONE_SHARE = 1 / 2
"""The share of redrives and errands that are undone or cancelled."""
UNDONE_AFTER_US = (1_000, 3_000_000)
"""How soon: while the lane is opened, and after all is done."""
SWITCH = "switch_topic"
GROWN_SHARE = 1 / 3
"""In runs with queues, the share in which topics grow and take new records elsewhere."""
SWITCHES_MAX = 3
PARTITIONS_MAX = 3


def has_queues(plan: "Plan") -> bool:
    """Whether any group of the plan has queues."""
    return any(group.queues is not None for group in plan.groups)


def without_queues(plan: "Plan") -> "Plan":
    """The plan with plain groups only, without the events that were drawn for queues."""
    timed = tuple(each for each in plan.timed if each.kind != SWITCH)
    groups = tuple(replace(group, queues=None) for group in plan.groups)
    return replace(plan, groups=groups, timed=timed)


def with_queues(plan: "Plan", timed_as: "type[Timed]", *, strict: bool = False) -> "Plan":
    """The plan; in some runs with queues for its shared groups, and users that refuse more."""
    chance = Random(f"{plan.seed}/queues")
    if chance.random() >= QUEUES_SHARE:
        return plan
    groups = tuple(group if group.private else _queued(group, chance) for group in plan.groups)
    if all(group.private for group in groups):
        return plan
    # In a strict plan no ack wait ends.
    if not strict and chance.random() < 0.3:
        groups = tuple(replace(each, ack_wait_ms=ACK_WAIT_MS) for each in groups)
    refuse, reject = chance.choice(REFUSE), chance.choice(REJECT)
    habits = tuple(
        replace(each, refuse=max(each.refuse, refuse), reject=reject) for each in plan.habits
    )
    rates = {kind: chance.choice(odds) for kind, odds in RATES.items() if chance.random() < 0.4}
    times = 0 if strict else chance.choice((0, 0, 1, REDRIVES_MAX))
    redrives = [
        timed_as(
            chance.randrange(plan.heal_us // 4, plan.heal_us), REDRIVE, chance.randrange(99), 0
        )
        for _ in range(times)
    ]
    errands = [timed_as(*each) for each in _errands(plan, strict=strict)]
    undos = [timed_as(*each) for each in _undos(plan, [*redrives, *errands])]
    more = [*redrives, *errands, *undos, *(timed_as(*each) for each in _switches(plan))]
    timed = sorted([*plan.timed, *more], key=lambda each: each.at_us)
    return replace(
        plan,
        groups=groups,
        habits=habits,
        rates=plan.rates if strict else {**plan.rates, **rates},
        timed=tuple(timed),
    )


def _errands(plan: "Plan", *, strict: bool) -> Iterator[tuple[int, str, int, int]]:
    chance = Random(f"{plan.seed}/errands")
    for _ in range(0 if strict else chance.randint(0, ERRANDS_MAX)):
        yield chance.randrange(plan.heal_us // 4, plan.heal_us), ERRAND, chance.randrange(99), 0


def _undos(plan: "Plan", asked: "list[Timed]") -> Iterator[tuple[int, str, int, int]]:
    chance = Random(f"{plan.seed}/undos")
    for each in asked:
        if chance.random() < UNDONE_SHARE:
            at_us = min(each.at_us + chance.randint(*UNDONE_AFTER_US), plan.heal_us)
            yield at_us, chance.choice((UNDO, CANCEL)), each.who, 0


ORDERED_SHARE = 1 / 2
"""In runs with queues, the share in which all groups with queues are ordered."""
SMALL_QUEUES_SHARE = 1 / 4
"""In runs with ordered groups, the share in which their queues are soon full."""
SMALL_QUEUES = (1, 2, 4, 8)
ROOM_MS = 180_000
"""How many records may wait for room in full queues, however often these are emptied and fill up
again."""
NOT_IN_ORDER = frozenset({"grow_topic", "seal_topic"})
"""Changes that break the order of storage topics: an older one takes records beside a newer one, or
one is sealed without a successor. No daemon does that, and groups without order do not mind."""


GROWN_IN_ORDER_SHARE = 1 / 2
"""In runs with ordered groups, the share in which topics grow anyway."""


def with_order(plan: "Plan", timed_as: "type[Timed]") -> "Plan":
    """The plan; in some runs with ordered groups."""
    chance = Random(f"{plan.seed}/ordered")
    if not has_queues(plan) or chance.random() >= ORDERED_SHARE:
        return plan
    blocks, keyless_dead = chance.random() < 0.6, chance.random() < 0.2
    timed = [
        replace(each, amount=WHOLE)
        if each.kind == REDRIVE and chance.random() < WHOLE_SHARE
        else each
        for each in plan.timed
        if each.kind not in NOT_IN_ORDER
    ]
    room = RECORDS_A_RUN
    if chance.random() < SMALL_QUEUES_SHARE:
        room = chance.choice(SMALL_QUEUES)
    # A stream that stalls at damage keeps others closed for ever, and their records wait there.
    if room < RECORDS_A_RUN:
        # An unreadable record is not moved and keeps its room, perhaps the only one.
        timed = [each for each in timed if each.kind != "lose_sectors"]
    stays = any(each.on_damage != "pass" for each in plan.groups)
    if stays and any(each.kind == SWITCH for each in timed):
        timed = [each for each in timed if each.kind != REDRIVE]
    if (
        not stays
        and chance.random() < GROWN_IN_ORDER_SHARE
        and all(each.kind != SWITCH for each in timed)
    ):
        timed += [timed_as(*each) for each in _drawn_switches(plan, chance)]
        timed.sort(key=lambda each: each.at_us)
    groups = tuple(
        group
        if group.queues is None
        else replace(
            group,
            queues=replace(
                group.queues,
                ordered=True,
                blocks=blocks,
                keyless_dead=keyless_dead,
                queue_records=room,
            ),
        )
        for group in plan.groups
    )
    return replace(plan, groups=groups, timed=tuple(timed))


def waits_for_room(plan: "Plan") -> bool:
    """Whether a failed record may wait in its stream until an operator makes room."""
    return any(
        group.queues is not None
        and group.queues.ordered
        and group.queues.queue_records < RECORDS_A_RUN
        for group in plan.groups
    )


def _switches(plan: "Plan") -> list[tuple[int, str, int, int]]:
    """Growths, which disturb nothing, while records fail and wait."""
    chance = Random(f"{plan.seed}/growths")
    if chance.random() >= GROWN_SHARE:
        return []
    return _drawn_switches(plan, chance)


def _drawn_switches(plan: "Plan", chance: Random) -> list[tuple[int, str, int, int]]:
    first_us, ends_us = plan.heal_us // 8, plan.heal_us
    return [
        (
            chance.randrange(first_us, ends_us),
            SWITCH,
            chance.randrange(99),
            chance.randint(1, PARTITIONS_MAX),
        )
        for _ in range(chance.randint(1, SWITCHES_MAX))
    ]


def _queued(group: "GroupPlan", chance: Random) -> "GroupPlan":
    return replace(group, queues=_policy(chance))


def _policy(chance: Random) -> RetryPolicy:
    return RetryPolicy(
        chance.choice((1, 2, 3, 5)),
        chance.choice(BACKOFFS_MS),
        chance.choice((2, RECORDS_A_RUN, RECORDS_A_RUN)),
        1 << 30,
    )
