"""Chains of growths as users make them: real numbers of partitions, one after the other, under both
routers, with the factors that the daemon gives them.

A chain runs through its switches while members, leaders, disks and operators do what the plan of
the seed has them do. Invariant: chains are drawn apart, so no other plan changes; the daemon's own
rule gives each storage topic its factor (`dssd.topics.growth`).
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from dss_sim.groups.queue_plans import SWITCH

if TYPE_CHECKING:
    from dss_sim.groups.plan import Plan, Timed

Chain = tuple[int, ...]
"""Numbers of partitions, the first one's first."""

NAMED: tuple[Chain, ...] = ((4, 8, 16), (6, 12, 24), (4, 6), (7, 10), (12, 4))
"""K 1, 2, 4 twice; K stays 1; numbers that share no divisor; down."""
SMALL: tuple[Chain, ...] = (
    (1, 2, 4), (2, 4, 8), (2, 3), (3, 2), (4, 1), (2, 6, 2), (2, 4, 3), (3, 6, 4, 8),
)  # fmt: skip
"""The same shapes, of which a run has more records for each stream. In some a factor above 1 is
followed by another number, up or down."""
CHAIN_SHARE = 1 / 2
"""Of the runs with ordered groups that go on over damage."""
NAMED_SHARE = 1 / 4
"""Of these."""
QUICK_SHARE = 1 / 2
"""Of the switches, those that follow the one before before anything is read."""
QUICK_US = 60_000
RANGE_SHARE = 1 / 2
"""Of the topics of runs with ordered groups, those of the router range."""
MORE_FRAMES_MAX = 40
FRAME_RECORDS_MAX = 6


class Line(NamedTuple):
    """What a `Timed` is made of."""

    at_us: int
    kind: str
    who: int
    amount: int


def with_chains(plan: "Plan", timed_as: "type[Timed]") -> "Plan":
    """The plan, in some runs with ordered groups with a chain in place of other growths."""
    ordered = [each for each in plan.groups if each.queues is not None and each.queues.ordered]
    if not ordered:
        return plan
    chance = Random(f"{plan.seed}/chain")
    topics = range(len(plan.partitions))
    plan = replace(
        plan, range_topics=frozenset(at for at in topics if chance.random() < RANGE_SHARE)
    )
    # Behind a stream that stays before what is damaged all that follows is closed for ever.
    stays = any(each.on_damage != "pass" for each in plan.groups)
    if stays or chance.random() >= CHAIN_SHARE:
        return plan
    chain = chance.choice(NAMED if chance.random() < NAMED_SHARE else SMALL)
    return grown_along(plan, ordered[0].topic, chain, chance, timed_as)


def grown_along(
    plan: "Plan", topic: int, chain: Chain, chance: Random, timed_as: "type[Timed]"
) -> "Plan":
    """The plan where a topic grows along a chain, and by nothing else, with more records."""
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
