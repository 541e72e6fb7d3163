"""What programs of a run consume, how their handlers behave, and what happens to their processes.

Drawn apart from everything else, so that no other part of a plan depends on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from dss_sim.groups.plan import Timed

PROGRAMS_SHARE = 0.4
"""The share of runs in which programs consume with the library, beside the other clients."""
PROGRAMS_MAX = 3
RUN_FILTER = "$share/r0/t0/#"
"""The group that only programs use."""
EXPIRIES_S = (0, 5, 14)
CONCURRENCIES = (1, 2, 3, 16)
LOCAL_SHARE = 0.5
WAYS = ("run", "one by one", "batches", "fetch")
"""How a program takes the records of groups that others use as well."""

OF_PROGRAMS: Mapping[str, int] = {
    "kill": 3,
    "stand_still": 3,
    "part": 2,
    "run_anew": 2,
    "retire": 2,
    "second": 1,
}
"""What happens to the processes of programs, and how often each kind may come in a run."""
BURSTS = (2, 6)
BURST_RECORDS = (6, 40)


@dataclass(frozen=True, slots=True)
class HandlerHabits:
    """How the handler of a program treats records, as chances; the others it handles quickly."""

    slow: float = 0.0
    too_slow: float = 0.0
    """It takes so long that the ack wait may run out."""
    refuse: float = 0.0
    sync: float = 0.2
    """It waits until its ack is durable."""
    dies: bool = False
    """Some records kill its process."""


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """A program that consumes with the library, under a client id of its own."""

    expiry_s: int
    filters: tuple[str, ...]
    concurrency: int
    habits: HandlerHabits
    way: str = "run"
    local: bool = True
    """It connects by a unix socket, which ends with its process; otherwise something may lie
    between."""

    def way_of(self, filter_: str) -> str:
        """How it takes the records of one of its filters."""
        return "run" if filter_ == RUN_FILTER else self.way


def programs_of(seed: int, *, calm: bool) -> tuple[ProgramPlan, ...]:
    """The programs of a run."""
    chance = Random(f"{seed}/programs")
    if chance.random() >= PROGRAMS_SHARE:
        return ()
    programs = [_program(chance, calm=calm) for _ in range(chance.randint(1, PROGRAMS_MAX))]
    ways, places = Random(f"{seed}/ways of programs"), Random(f"{seed}/places of programs")
    return tuple(
        replace(program, way=ways.choice(WAYS), local=places.random() < LOCAL_SHARE)
        for program in programs
    )


def _program(chance: Random, *, calm: bool) -> ProgramPlan:
    def maybe(odds: float, *values: float) -> float:
        return 0.0 if calm or chance.random() >= odds else chance.choice(values)

    habits = HandlerHabits(
        slow=maybe(0.6, 0.05, 0.3),
        too_slow=maybe(0.4, 0.02, 0.1),
        refuse=maybe(0.6, 0.05, 0.3),
        dies=maybe(0.3, 1.0) > 0,
    )
    others = ("$share/g0/t0/#", "t0/#")
    filters = (RUN_FILTER, *(each for each in others if chance.random() < 0.3))
    return ProgramPlan(chance.choice(EXPIRIES_S), filters, chance.choice(CONCURRENCIES), habits)


def timed_of(seed: int, begins_us: int, ends_us: int, *, calm: bool) -> list[Timed]:
    """What happens to them and to their streams, in a span of time."""
    chance = Random(f"{seed}/of programs")
    timed = [
        Timed(
            chance.randrange(ends_us),
            "burst",
            chance.randrange(1 << 16),
            chance.randint(*BURST_RECORDS),
        )
        for _ in range(chance.randint(*BURSTS))
    ]
    for kind, most in OF_PROGRAMS.items():
        if not calm and chance.random() < 0.5:
            timed += [
                Timed(chance.randrange(begins_us, ends_us), kind, chance.randrange(1 << 16), 0)
                for _ in range(chance.randint(1, most))
            ]
    return timed
