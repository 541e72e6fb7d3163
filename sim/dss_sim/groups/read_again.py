"""The scripts in which cursors go back over a switch, each with another crash for each seed.

Few drawn plans have ordered groups, topics that grow, and cursors that go back over the switch;
each of these runs has. Invariant: a seed determines the script, the protocol, and the place of the
crash.
"""

from dataclasses import replace
from random import Random

from dss_sim.groups.plan import CrashPoint
from dss_sim.groups.run import Outcome, run
from dss_sim.groups.scenarios import READ_AGAIN, spoken

EFFECTS_MAX = 600
"""The most effects of a script; after its last effect nothing crashes."""


def run_seed(seed: int) -> Outcome:
    """Run the script of a seed."""
    chance = Random(seed)
    scenario = spoken(chance.choice(READ_AGAIN), chance.choice(("borrow", "lease")))
    crash = CrashPoint(chance.randint(1, EFFECTS_MAX), whole_daemon=chance.random() < 0.5)
    return run(replace(scenario.plan, crash=crash))
