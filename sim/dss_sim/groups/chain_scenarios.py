"""The most usual growths, by name, each as a script in which every event of ordered growth happens
once: members are killed, freeze, join and leave, the daemon dies, numbers of shards change, records
fail, die and come back, before and after every switch.

Invariant: a script has no chance except that of its users, which the plan's seed draws.
"""

from collections.abc import Iterator
from dataclasses import replace

from dss_core.routing import Router
from dss_sim.groups.chains import Chain
from dss_sim.groups.client import Habits
from dss_sim.groups.plan import GroupPlan, Timed
from dss_sim.groups.queue_plans import ERRAND, REDRIVE, SWITCH, WHOLE
from dss_sim.groups.scenarios import MS, SCENARIOS, Scenario, at, records
from dss_sim.groups.shard_operator import AS_BASE, SET_COUNT
from dssd.machines.queues import RetryPolicy

LATER_MS = 900
QUICKLY_MS = 15
"""The time between two switches: enough for a daemon's death and its effects, or less than a
hand-over."""
CHAINS: tuple[tuple[str, Chain, int], ...] = (
    ("4, 8, 16", (4, 8, 16), LATER_MS),
    ("6, 12, 24", (6, 12, 24), LATER_MS),
    ("4, 6", (4, 6), LATER_MS),
    ("7, 10", (7, 10), LATER_MS),
    ("12, 4", (12, 4), LATER_MS),
    ("4, 8, 16 quickly", (4, 8, 16), QUICKLY_MS),
    ("4, 6, 3 quickly", (4, 6, 3), QUICKLY_MS),
)
"""K 1, 2, 4; K back to 1; no common divisor; fewer; and twice before anything of the first is
read."""
HABITS = (Habits(refuse=0.3), Habits(refuse=0.3, reject=0.4), Habits(later=0.5, refuse=0.2))
FRAMES_EACH = 24
EVERY_MS = 18
FIRST_SWITCH_MS = 500
HEAL_AFTER_MS = 1_200
BACKOFF_MS = 100


def _scenario(name: str, chain: Chain, gap_ms: int, router: Router) -> Scenario:
    script = sorted(_script(chain, gap_ms), key=lambda each: each.at_us)
    policy = RetryPolicy(2, (BACKOFF_MS,), 1_000, 1 << 30, ordered=True, blocks=True)
    group = GroupPlan("g0", 0, 0, True, 2_000, private=False, queues=policy, shards=AS_BASE)
    plan = replace(
        SCENARIOS[0].plan,
        seed=len(name),
        partitions=chain[:1],
        groups=(group,),
        habits=HABITS,
        clocks=tuple((1_000_000, 1_000 * n) for n in range(2 + len(HABITS))),
        timed=tuple(script),
        heal_us=script[-1].at_us + HEAL_AFTER_MS * MS,
        range_topics=frozenset({0} if router is Router.RANGE else ()),
        keepers=frozenset({"c2"}),
    )
    return Scenario(f"{name}, {router.value}", plan)


def _script(chain: Chain, gap_ms: int) -> Iterator[Timed]:
    yield from (at(10, "begin"), at(15, "begin", 1))
    yield from records(200, FRAMES_EACH, every_ms=EVERY_MS, partitions=chain[0])
    for number, partitions in enumerate(chain[1:]):
        begins_ms = FIRST_SWITCH_MS + number * gap_ms
        yield at(begins_ms, SWITCH, 0, partitions)
        yield at(begins_ms + 5, SET_COUNT, 0, max(partitions // 2, 1))
        yield from records(begins_ms + 40, FRAMES_EACH, every_ms=EVERY_MS, partitions=partitions)
        yield at(begins_ms + 60, "kill_client", number, 150 * MS)
        yield at(begins_ms + 80, "begin", 2)
        yield at(begins_ms + 200, "crash_daemon")
        yield at(begins_ms + 520, SET_COUNT, 0, partitions)
        yield at(begins_ms + 560, "freeze_client", 1, 200 * MS)
        yield at(begins_ms + 600, REDRIVE, 0, WHOLE)
        yield at(begins_ms + 640, ERRAND)
        yield at(begins_ms + 700, "leave", 2)
        yield at(begins_ms + 850, "join", 2)


CHAIN_SCENARIOS: tuple[Scenario, ...] = tuple(
    _scenario(*named, router) for named in CHAINS for router in Router
)
