"""The plan of a run, drawn from its seed: clients, what they and operators do, and faults.

Each seed enables its own subset of faults at its own intensities. Everything that happens is a
`Timed`, so a failing run is shrunk by leaving some of them out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from dss_sim.groups.plan import Timed
from dss_sim.sessions.program_plan import ProgramPlan, programs_of, timed_of
from dss_sim.small_limits import MACHINES, SHELLS, SmallLimit, small_limits
from dssd.limits import SILENT_HOLDER_MS
from dssd.machines.leader.timing import LeaderTiming

SECOND_US = 1_000_000
LOAD_US = 2 * SECOND_US
"""Clients come and records flow, without faults."""
FAULTS_US = 24 * SECOND_US
"""Then any fault may strike."""

SESSIONS_MAX = 1 << 16
"""More than any run has."""
EXPIRIES_S = (0, 5, 14, 30)
"""Shorter than the grace, a little longer, and long enough to span restarts and jumps."""
JUMPS_MS = (30_000, 3_600_000, 24 * 3_600_000)
JUMPS_MAX = 4
"""Four days at most, because tombstones are kept for seven."""

USERS: Mapping[str, int] = {
    "attach": 4,
    "clean": 2,
    "vanish": 4,
    "detach": 4,
    "cut": 4,
    "leave": 1,
    "intrude": 2,
    "subscribe": 4,
    "unsubscribe": 3,
    "freeze": 2,
}
"""What clients do, and how often each kind may come in a run."""

OPERATORS: Mapping[str, int] = {"declare": 2, "remove": 2, "remove_private": 1}

FAULTS: Mapping[str, int] = {
    "wall": JUMPS_MAX,
    "fill_disk": 2,
    "slow_disk": 2,
    "crash": 2,
    "crash_at_commit": 3,
    "crash_at_step": 2,
    "crash_at_expiry": 3,
    "stop": 2,
}
"""What the machine and the daemon's process suffer. A stop is a clean one."""

CALM_SHARE = 0.08
"""The share of runs in which nothing goes wrong."""
PAUSED_SHARE = 0.4
"""The share of runs in which operators pause groups."""
PAUSES_MAX = 4
PAUSE_US = (20_000, 9 * SECOND_US)

EDITED_SHARE = 0.4
"""The share of runs in which operators edit groups."""
EDITS_MAX = 4

APART: Mapping[str, float] = {
    "clean_on_full_disk": 0.15,
    "fill_disk_at_expiry": 0.15,
    "twin": 0.3,
}
"""Faults that need something else beside them, and how often they come. They are drawn apart, so
that nothing else depends on them."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How a user treats records, as chances; all other records are acknowledged at once."""

    later: float = 0.0
    refuse: float = 0.0
    sit: float = 0.0
    """Neither acks nor refuses, until told to behave."""
    sync: float = 0.2
    """The share of settles for which it asks to be told when they are durable."""


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """A client, under a client id of its own."""

    expiry_s: int
    local: bool
    """Which of the two principals it is."""
    by_id: bool
    """Whether it resumes by the session's id, or by its client id alone."""
    habits: Habits
    menu: tuple[str, ...]
    """Its filters by subscription number, from 1."""
    begins: int
    """How many of them it subscribes to as soon as it comes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run, except for the chance that its seed brings."""

    seed: int
    partitions: tuple[int, ...]
    """Of each topic."""
    clients: tuple[ClientPlan, ...]
    earliest: tuple[bool, ...]
    """For each shared group, whether its first use declares it from the earliest record on."""
    timed: tuple[Timed, ...]
    timing: LeaderTiming
    sessions_max: int
    credit_records: int
    turns: bool
    """Whether long loops yield at any round."""
    limits: tuple[SmallLimit, ...] = ()
    """Bounds of the daemon that are small in this run."""
    programs: tuple[ProgramPlan, ...] = ()
    """In addition to the clients; none if the number of sessions is bounded."""


def plan_of(seed: int) -> Plan:
    """The plan of a seed."""
    plan = plan_without_programs(seed)
    calm = _is_calm(seed)
    programs = programs_of(seed, calm=calm)
    if not programs or plan.sessions_max < SESSIONS_MAX:
        return plan
    timed = [*plan.timed, *timed_of(seed, LOAD_US, LOAD_US + FAULTS_US, calm=calm)]
    timed.sort(key=lambda each: each.at_us)
    return replace(plan, programs=programs, timed=tuple(timed))


def _is_calm(seed: int) -> bool:
    return Random(f"{seed}/plan").random() < CALM_SHARE


def plan_without_programs(seed: int) -> Plan:
    """The plan without its programs."""
    chance = Random(f"{seed}/plan")
    calm = chance.random() < CALM_SHARE
    topics = chance.choice((1, 1, 2))
    clients = chance.randint(1, 4)
    menus = [_menu(chance, topics) for _ in range(clients)]
    apart = [] if calm else [*_apart(seed), *_pauses(seed), *_edits(seed)]
    return Plan(
        seed,
        tuple(chance.randint(1, 3) for _ in range(topics)),
        tuple(_client(chance, menu, calm=calm) for menu in menus),
        (chance.random() < 0.7, chance.random() < 0.7),
        tuple(sorted([*_timed(chance, clients, calm=calm), *apart], key=lambda each: each.at_us)),
        LeaderTiming(
            revoke_deadline_ms=chance.choice((SILENT_HOLDER_MS, SILENT_HOLDER_MS, 10_000)),
            idle_ms=chance.choice((1_500, 30_000)),
        ),
        sessions_max=chance.choice((SESSIONS_MAX, SESSIONS_MAX, clients + 1, max(2, clients - 1))),
        credit_records=chance.choice((4, 30, 4_000)),
        turns=chance.random() < 0.3,
        limits=small_limits(seed, (*MACHINES, *SHELLS)),
    )


def shared_filters(topics: int) -> tuple[str, ...]:
    """The shared groups of a run: two names, and one of them over another filter."""
    return ("$share/g0/t0/#", f"$share/g1/t{topics - 1}/#", "$share/g0/+/#")


def _menu(chance: Random, topics: int) -> tuple[str, ...]:
    private = tuple(f"t{at}/#" for at in range(topics))
    kinds = (shared_filters(topics), private)
    return tuple(chance.choice(kinds[chance.random() < 0.45]) for _ in range(3))


def _client(chance: Random, menu: tuple[str, ...], *, calm: bool) -> ClientPlan:
    def maybe(odds: float, *values: float) -> float:
        return chance.choice(values) if chance.random() < odds else 0.0

    habits = Habits(maybe(0.4, 0.1, 0.5))
    if not calm:
        habits = Habits(habits.later, maybe(0.3, 0.05, 0.3), maybe(0.2, 0.02, 0.2))
    return ClientPlan(
        chance.choice(EXPIRIES_S),
        chance.random() < 0.8,
        chance.random() < 0.5,
        habits,
        menu,
        chance.randint(1, 2),
    )


def _timed(chance: Random, clients: int, *, calm: bool) -> list[Timed]:
    ends_us = LOAD_US + FAULTS_US
    timed = [
        Timed(chance.randrange(ends_us), "append", chance.randrange(1 << 16), chance.randint(1, 6))
        for _ in range(chance.randint(6, 30))
    ]
    timed += [Timed(chance.randrange(LOAD_US // 2), "begin", at, 0) for at in range(clients)]
    chosen: dict[str, int] = {}
    for kinds, odds in () if calm else ((USERS, 0.5), (OPERATORS, 0.3), (FAULTS, 0.35)):
        chosen |= {kind: most for kind, most in kinds.items() if chance.random() < odds}
    for kind, most in chosen.items():
        timed += [
            Timed(
                chance.randrange(LOAD_US, ends_us),
                kind,
                chance.randrange(1 << 16),
                chance.randrange(1 << 30),
            )
            for _ in range(chance.randint(1, most))
        ]
    return timed


def _apart(seed: int) -> list[Timed]:
    chance = Random(f"{seed}/apart")
    return [
        Timed(chance.randrange(LOAD_US, LOAD_US + FAULTS_US), kind, chance.randrange(1 << 16), 0)
        for kind, odds in APART.items()
        if chance.random() < odds
    ]


def _pauses(seed: int) -> list[Timed]:
    chance = Random(f"{seed}/pauses")
    if chance.random() >= PAUSED_SHARE:
        return []
    ends_us = LOAD_US + FAULTS_US
    return [
        Timed(
            chance.randrange(LOAD_US // 2, ends_us),
            "pause",
            chance.randrange(1 << 16),
            chance.randint(*PAUSE_US),
        )
        for _ in range(chance.randint(1, PAUSES_MAX))
    ]


def _edits(seed: int) -> list[Timed]:
    chance = Random(f"{seed}/edits")
    if chance.random() >= EDITED_SHARE:
        return []
    ends_us = LOAD_US + FAULTS_US
    times = [chance.randrange(LOAD_US // 2, ends_us) for _ in range(chance.randint(1, EDITS_MAX))]
    return [Timed(at_us, "edit", chance.randrange(1 << 16), 0) for at_us in times]
