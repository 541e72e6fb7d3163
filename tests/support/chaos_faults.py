"""What may happen to a group in a chaos run, drawn from a seed.

Two living processes never have one client id: the streams of the older one go to others before it
is told, so for a moment it may hand out what others were handed.

Invariant: the same seed draws the same faults in the same order. Whom they strike is decided by
when they strike, so a run is like another of its seed, not its copy.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Fault(Enum):
    """What is done to a member, or to the daemon."""

    KILL = "a member is killed, and another joins, perhaps under its client id"
    FREEZE = "a member is frozen for a while"
    RETURN = "a member leaves, records in hand, and comes back at once"
    SWAP = "a member joins, and another leaves"
    KILL_DAEMON = "the daemon is killed and started again"
    FREEZE_DAEMON = "the daemon is frozen for a while"


WEIGHTS = {
    Fault.KILL: 5,
    Fault.FREEZE: 6,
    Fault.RETURN: 6,
    Fault.SWAP: 3,
    Fault.KILL_DAEMON: 3,
    Fault.FREEZE_DAEMON: 1,
}
PAUSE_S = (0.2, 1.5)
FROZEN_S = (0.5, 9.0)
"""Shorter and longer than a lease."""
DAEMON_FROZEN_S = (0.1, 4.0)


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault."""

    fault: Fault
    group: int
    """Which of the groups it strikes, unless it is the daemon."""
    after_s: float
    """Since the one before."""
    lasts_s: float
    """Of what is frozen."""
    chance: float
    """Decides what is left to decide, in [0, 1)."""


def strikes(seed: int, groups: int) -> Iterator[Strike]:
    """Faults without an end."""
    drawn = random.Random(seed)
    kinds, weights = [*WEIGHTS], [*WEIGHTS.values()]
    while True:
        (fault,) = drawn.choices(kinds, weights)
        lasts_s = drawn.uniform(*(DAEMON_FROZEN_S if fault is Fault.FREEZE_DAEMON else FROZEN_S))
        group, after_s = drawn.randrange(groups), drawn.uniform(*PAUSE_S)
        yield Strike(fault, group, after_s, lasts_s, drawn.random())
