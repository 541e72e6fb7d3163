"""Bounds of the daemon that are made so small for the run of a seed that it reaches them.

A world of few streams and small frames never comes near bounds that are meant for large ones, but
the code that counts, cuts or waits at a bound is where mistakes are made. So a share of seeds runs
with some of them small. Each is drawn apart: neither another limit nor any other part of a plan
depends on it.

Invariant: every module that has imported a bound by its name has the small value meanwhile (so none
may keep it in a default argument), and the daemon has to keep its promises with every value in the
range of a limit. Bounds at which a client is refused, and those that clients have to know, are not
among these.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from types import ModuleType

SMALL_SHARE = 0.22
"""The share of seeds that run with small limits."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound by its name, and the small values to choose from."""

    name: str
    least: int
    most: int
    odds: float = 0.5
    """The chance that it is small in such a run."""
    loses: bool = False
    """Messages beyond the bound are lost, as any network may lose them."""


@dataclass(frozen=True, slots=True)
class SmallLimit:
    """A bound in one run."""

    name: str
    value: int


MACHINES = (
    Limit(
        "ACKED_RANGES_MAX",
        least=1,
        most=6,
        odds=0.6,
    ),
    # Unless it is small, the one before has no effect.
    Limit("RANGES_ADDED_MAX", least=1, most=4, odds=0.8),
    Limit("RESTING_RANGES_MAX", least=1, most=4),
    Limit("READ_AHEAD_CHUNKS", least=2, most=3),
    Limit("DELIVERY_READ_BYTES_MAX", least=1, most=200),
    Limit("COMMIT_STREAMS_MAX", least=1, most=2),
    Limit("COMMIT_GATHER_MS_MAX", least=1, most=200),
    Limit("MOVES_A_STEP_MAX", least=1, most=2),
    Limit("TIMERS_A_STEP_MAX", least=1, most=3),
    Limit(
        "STREAMS_A_REBALANCE_MS",
        least=1,
        most=4,
    ),
    Limit("STALE_A_CALL_MAX", least=1, most=3),
    Limit("QUEUE_RANGES_MAX", least=1, most=3),
    Limit("SPARSE_RECORDS_MIN", least=2, most=6),
    Limit("GAP_RECORDS_MAX", least=1, most=3),
    Limit("MOVE_RECORDS_MAX", least=3, most=6),
)
"""Limits of leaders and delivery windows."""

SHELLS = (
    Limit("ROUND_INPUTS_MAX", least=1, most=2),
    Limit("ROUND_MESSAGES_MAX", least=1, most=2),
    Limit("SESSION_STEP_INPUTS_MAX", least=1, most=2),
    Limit("SETTLE_STEP_RANGES", least=2, most=4),
    Limit("READERS_PER_SESSION", least=1, most=1),
    Limit("DELIVERY_BYTES_USUAL", least=1, most=400),
    Limit("CLOSED_ROWS_MAX", least=1, most=2),
    Limit("DISCARDED_AT_ONCE_MAX", least=1, most=2),
    Limit("DISCARDS_MAX", least=1, most=2),
    Limit("STARTED_ROWS_MAX", least=1, most=2),
    Limit("SESSIONS_GIVE_WAY_AT_ONCE", least=1, most=2),
    Limit("PAGE_ROWS", least=1, most=3),
    Limit("LEADER_MAILBOX_MAX", least=1, most=3, odds=0.1, loses=True),
    Limit("BORROWER_MAILBOX_MAX", least=1, most=3, odds=0.1, loses=True),
)
"""Limits of what runs them in the daemon."""

_BY_NAME = {limit.name: limit for limit in (*MACHINES, *SHELLS)}


def small_limits(seed: int, limits: Sequence[Limit]) -> tuple[SmallLimit, ...]:
    """The limits that are small in the run of a seed; none in most seeds."""
    if Random(f"{seed}/limits").random() >= SMALL_SHARE:
        return ()
    drawn = ((limit, Random(f"{seed}/limits/{limit.name}")) for limit in limits)
    return tuple(
        SmallLimit(limit.name, chance.randint(limit.least, limit.most))
        for limit, chance in drawn
        if chance.random() < limit.odds
    )


def loses(chosen: Sequence[SmallLimit]) -> bool:
    """Whether messages are lost at one of these bounds."""
    return any(_BY_NAME[each.name].loses for each in chosen)


@contextmanager
def made_small(chosen: Sequence[SmallLimit]) -> Iterator[None]:
    """Give the modules of the daemon these values while the block runs."""
    before = [
        (module, each.name, getattr(module, each.name), each.value)
        for each in chosen
        for module in _users(each.name)
    ]
    try:
        for module, name, _, value in before:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value, _ in before:
            setattr(module, name, value)


def _users(name: str) -> list[ModuleType]:
    """The modules that have an attribute of this name: each binds the bound when it is imported."""
    mine = [
        module
        for path, module in sorted(sys.modules.items())
        if path.startswith(("dssd.", "dss_sim."))
    ]
    return [module for module in mine if name in vars(module)]
