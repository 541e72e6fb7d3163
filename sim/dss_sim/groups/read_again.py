"""The scripts in which cursors go back over a switch, each seed with another crash.

Few plans that are drawn have topics that grow, in order, and cursors that go back behind that; each
of these runs has. Invariant: a seed says which script, which protocol, and where it crashes.
"""

from dataclasses import replace
from random import Random

from dss_sim.groups.plan import CrashPoint
from dss_sim.groups.run import Outcome, run
from dss_sim.groups.scenarios import READ_AGAIN, spoken

EFFECTS_MAX = 600
"""The longest script has some fewer; behind its end nothing crashes."""


def run_seed(seed: int) -> Outcome:
    """Run what a seed brings."""
    chance = Random(seed)
    scenario = spoken(chance.choice(READ_AGAIN), chance.choice(("borrow", "lease")))
    crash = CrashPoint(chance.randint(1, EFFECTS_MAX), whole_daemon=chance.random() < 0.5)
    return run(replace(scenario.plan, crash=crash))
