"""What may happen to a group in a chaos run, drawn from a seed.

Two living processes never have one client id: the streams of the older one go to others before it
is told, so for a moment both may hand out the same records.

Invariant: the same seed draws the same faults in the same order. Their targets are chosen when they
strike, so two runs of a seed are similar, not equal.
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
    """Time since the previous fault."""
    lasts_s: float
    """How long a process is frozen."""
    chance: float
    """A random number in [0, 1) for choices made when it strikes."""


def strikes(seed: int, groups: int) -> Iterator[Strike]:
    """Endless faults."""
    drawn = random.Random(seed)
    kinds, weights = [*WEIGHTS], [*WEIGHTS.values()]
    while True:
        (fault,) = drawn.choices(kinds, weights)
        lasts_s = drawn.uniform(*(DAEMON_FROZEN_S if fault is Fault.FREEZE_DAEMON else FROZEN_S))
        group, after_s = drawn.randrange(groups), drawn.uniform(*PAUSE_S)
        yield Strike(fault, group, after_s, lasts_s, drawn.random())
