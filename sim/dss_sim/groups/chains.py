"""Chains of growths as users make them: real numbers of partitions, one after the other, with both
routers and the factors that the daemon gives them.

A chain runs through its switches while members, leaders, disks and operators do what the plan of
the seed says. Invariant: chains are drawn apart, so no other plan changes; the daemon's own rule
gives each storage topic its factor (`dssd.topics.growth`).
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from dss_sim.groups.queue_plans import SWITCH

if TYPE_CHECKING:
    from dss_sim.groups.plan import Plan, Timed

Chain = tuple[int, ...]
"""Chains of numbers of partitions, the first one's first."""

NAMED: tuple[Chain, ...] = ((4, 8, 16), (6, 12, 24), (4, 6), (7, 10), (12, 4))
"""K 1, 2, 4 twice; K stays 1; numbers without a common divisor; fewer."""
SMALL: tuple[Chain, ...] = (
    (1, 2, 4), (2, 4, 8), (2, 3), (3, 2), (4, 1), (2, 6, 2), (2, 4, 3), (3, 6, 4, 8),
)  # fmt: skip
"""The same shapes, with more records for each stream. In some, a factor above 1 is followed by
another number, up or down."""
CHAIN_SHARE = 1 / 2
"""The share of runs with ordered groups that pass over damage."""
NAMED_SHARE = 1 / 4
"""The share of these."""
QUICK_SHARE = 1 / 2
"""The share of switches that follow the one before at once, before anything is read."""
QUICK_US = 60_000
RANGE_SHARE = 1 / 2
"""The share of topics with the router range, in runs with ordered groups."""
MORE_FRAMES_MAX = 40
FRAME_RECORDS_MAX = 6


class Line(NamedTuple):
    """The parts of a `Timed`."""

    at_us: int
    kind: str
    who: int
    amount: int


def with_chains(plan: "Plan", timed_as: "type[Timed]") -> "Plan":
    """The plan; in some runs with ordered groups with a chain instead of other growths."""
    ordered = [each for each in plan.groups if each.queues is not None and each.queues.ordered]
    if not ordered:
        return plan
    chance = Random(f"{plan.seed}/chain")
    topics = range(len(plan.partitions))
    plan = replace(
        plan, range_topics=frozenset(at for at in topics if chance.random() < RANGE_SHARE)
    )
    # A stream that stalls at damage keeps all later streams closed for ever.
    stays = any(each.on_damage != "pass" for each in plan.groups)
    if stays or chance.random() >= CHAIN_SHARE:
        return plan
    chain = chance.choice(NAMED if chance.random() < NAMED_SHARE else SMALL)
    return grown_along(plan, ordered[0].topic, chain, chance, timed_as)


def grown_along(
    plan: "Plan", topic: int, chain: Chain, chance: Random, timed_as: "type[Timed]"
) -> "Plan":
    """The plan with a topic that grows along a chain, and by nothing else, with more records."""
    partitions = tuple(
        chain[0] if at == topic else before for at, before in enumerate(plan.partitions)
    )
    kept = [each for each in plan.timed if each.kind != SWITCH]
    drawn = [*_switches(plan.heal_us, topic, chain, chance), *_frames(plan.heal_us, chance)]
    timed = sorted([*kept, *(timed_as(*each) for each in drawn)], key=lambda each: each.at_us)
    return replace(plan, partitions=partitions, timed=tuple(timed))


def _switches(heal_us: int, topic: int, chain: Chain, chance: Random) -> Iterator[Line]:
    at_us = chance.randrange(heal_us // 8, heal_us * 3 // 4)
    for partitions in chain[1:]:
        yield Line(at_us, SWITCH, topic, partitions)
        quick = chance.random() < QUICK_SHARE
        at_us += chance.randrange(QUICK_US if quick else heal_us // 4)


def _frames(heal_us: int, chance: Random) -> Iterator[Line]:
    for _ in range(chance.randint(0, MORE_FRAMES_MAX)):
        at_us, who = chance.randrange(heal_us), chance.randrange(1 << 16)
        yield Line(at_us, "append", who, chance.randint(1, FRAME_RECORDS_MAX))
