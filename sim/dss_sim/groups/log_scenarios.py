"""Scripted runs in which the daemon or its machine dies at every step of every group commit.

The scripts are about producers and disks; their network is sound, and the only faults are those
that the scripts name.
"""

from collections.abc import Iterator
from dataclasses import replace

from dss_sim.groups.plan import Dies, Plan, Timed
from dss_sim.groups.run import run
from dss_sim.groups.scenarios import MS, SCENARIOS, Scenario, at, records
from dss_sim.groups.timed_events import APPENDS_BY

BEGIN = at(10, "begin")
ROT = 2 * APPENDS_BY
"""The last frame of a script at which it may die, with its header and the marks."""


def death_points(scenario: Scenario) -> Iterator[Plan]:
    """The scenario with each possible death in a group commit."""
    for step in range(1, run(scenario.plan).writer_steps + 1):
        for power in (False, True):
            yield replace(scenario.plan, dies=Dies(step, power))


def _scenario(name: str, *script: Timed, producers: int = 1, durability: str = "sync") -> Scenario:
    plan = SCENARIOS[0].plan
    script = (BEGIN, *records(300, 6), *script, *records(900, 4))
    os_topics = frozenset({0} if durability == "os" else ())
    timed, heal_us = tuple(sorted(script, key=lambda line: line.at_us)), 2_500 * MS
    changed = replace(plan, timed=timed, heal_us=heal_us, seed=len(name))
    return Scenario(name, replace(changed, producers=producers, os_topics=os_topics))


def _scenarios(durability: str) -> tuple[Scenario, ...]:
    return tuple(
        _scenario(f"{name}, {durability}", *script, producers=2, durability=durability)
        for name, script in {
            "records flow": (),
            "a producer has more to send than it may have in flight": (at(500, "burst"),),
            "the connection of a producer is cut amid a burst": (
                at(500, "burst"), at(501, "cut_producer", 0, 200 * MS), at(502, "burst"),
            ),
            "a producer is killed amid a burst": (
                at(500, "burst"), at(501, "kill_producer", 0, 200 * MS),
            ),
            "the disk is full for a while": (
                at(400, "fill_disk", 0, 300 * MS), at(450, "burst"), at(650, "burst"),
            ),
            "a frame rots, and the daemon is stopped": (
                at(520, "rot", ROT), at(600, "stop_daemon"),
            ),
            "a topic moves amid bursts": (
                at(500, "burst"), at(501, "switch_topic", 0, 3), at(502, "burst", 7),
                at(900, "burst"),
            ),
            "the daemon dies twice": (at(500, "crash_daemon"), at(1_000, "lose_power")),
        }.items()
    )  # fmt: skip


LOG_SCENARIOS: tuple[Scenario, ...] = (*_scenarios("sync"), *_scenarios("os"))
