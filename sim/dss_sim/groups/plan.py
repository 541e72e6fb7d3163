"""The plan of a run, drawn from its seed: a world, a workload, and a choice of faults.

Each seed enables its own random subset of faults at its own intensities (swarm testing), so some
runs are calm, some have one fault again and again, some have all. An event at a time of its own is
a `Timed`; a fault of single messages and commits is a rate, asked for by `Randomness.strike`. Both
can be left out when a failure is shrunk.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from dss_core.routing import Router
from dss_sim.groups.chains import with_chains
from dss_sim.groups.client import Habits
from dss_sim.groups.hold_operator import holds
from dss_sim.groups.late_answers import LATE_ANSWER_SHARE, with_late_answers
from dss_sim.groups.member_plans import operations
from dss_sim.groups.pause_operator import pauses
from dss_sim.groups.queue_plans import with_order, with_queues
from dss_sim.groups.randomness import Strike
from dss_sim.groups.shard_operator import with_shards
from dss_sim.groups.strict_plans import LEADER_FAULTS, STRICT_SHARE, cut_to_strict
from dss_sim.small_limits import MACHINES, SmallLimit, small_limits
from dssd.machines.leader.timing import LeaderTiming
from dssd.machines.queues import RetryPolicy

SECOND_US = 1_000_000
LEASE_SHARE = 1 / 3
"""The share of groups that speak the lease protocol."""
STALL_SHARE = 1 / 4
"""The share of groups that stall at damaged records."""
NEGLECT_SHARE = 1 / 2
"""In runs with several groups, the share in which users neglect one for a while."""
NEGLECTS_MAX = 3
SECTORS_SHARE = 1 / 10
"""The share of runs in which some records can never be read again."""
RESTLESS_SHARE = 1 / 10
"""The share of runs in which one client leaves and comes back all the time."""
RESTLESS: Mapping[str, tuple[int, int, int]] = {
    "append": (30, 1, 6),
    "freeze_client": (3, 500_000, 2_500_000),
    "resubscribe": (3, 0, 0),
    "lose_leader": (1, 0, 0),
}
"""Further events of such a run: how often, and the least and the largest amount."""
AWAY_US = (250_000, 800_000)
"""How long it is away: others get its streams, and messages about it are still under way."""
LOAD_US = 1 * SECOND_US
"""Members come and records flow, without faults."""
FAULTS_US = 6 * SECOND_US
"""After this time any fault may strike."""

RATES: Mapping[str, tuple[float, ...]] = {
    "lose": (0.02, 0.1, 0.3),
    "double": (0.02, 0.1, 0.2),
    "late": (0.02, 0.1, 0.2),
    "slow_commit": (0.05, 0.3),
    "late_final": (0.1, 0.5),
}
"""Faults of single messages and commits, and the intensities to choose from."""

LOG_RATES: Mapping[str, tuple[float, ...]] = {"slow_sync": (0.05, 0.3)}
"""Faults of single syncs."""

FAULTS: Mapping[str, int] = {
    "partition": 4,
    "lose_leader": 3,
    "crash_leader_host": 2,
    "crash_session_host": 2,
    "crash_daemon": 2,
    "stop_daemon": 2,
    "crash_at_effect": 3,
    "kill_client": 3,
    "cut_pipe": 3,
    "freeze_client": 2,
    "freeze_session_host": 2,
    "freeze_leader_host": 2,
}
"""Faults at a time of their own, and how often each may come in a run."""

CHANGES: Mapping[str, int] = {
    "join": 2,
    "leave": 1,
    "unsubscribe": 2,
    "resubscribe": 2,
    "intrude": 1,
    "grow_topic": 1,
    "seal_topic": 1,
    "remove_topic": 1,
    "destroy_group": 1,
}
"""Events of members and operators."""

REQUEST_RATES: Mapping[str, tuple[float, ...]] = {"late_request": (0.1, 0.5)}
"""Faults of single requests of producers."""

LOG_FAULTS: Mapping[str, int] = {
    "lose_power": 2,
    "die_writing": 2,
    "fail_sync": 2,
    "fill_disk": 2,
    "rot": 3,
    "fail_reads": 3,
    "cut_producer": 3,
    "kill_producer": 2,
}
"""Faults of the disk, the machine and the producers, and how often each may come in a run."""

LOG_CHANGES: Mapping[str, int] = {"burst": 2}
"""Further events of producers."""

LOG_ODDS = 0.25
"""The odds that each of these kinds is part of a run."""

OPERATIONS: Mapping[str, int] = {
    "move_cursors": 4,
    "undo_moves": 3,
    "cancel_moves": 2,
    "instruct_again": 2,
}
"""Operations on cursors, and how often each may come in a run."""

OPERATED_SHARE = 1 / 4
"""The share of runs in which operators move cursors."""

OS_SHARE = 0.3
"""The share of topics of durability os."""


@dataclass(frozen=True, slots=True)
class Timed:
    """An event at a time."""

    at_us: int
    kind: str
    who: int
    """Which host, client, topic or group: modulo how many there are."""
    amount: int
    """A duration in µs, a count or another number, by kind."""


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A crash in the middle of a step."""

    effect: int
    """After the effect of this number, counted from 1 over all hosts."""
    whole_daemon: bool
    """Leaders and sessions die together; else only the host that carried it out."""


@dataclass(frozen=True, slots=True)
class Dies:
    """The daemon dies in the middle of a group commit."""

    step: int
    """After the step of this number of the log's writer, from 1."""
    power: bool
    """The machine dies with it."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A group."""

    name: str
    topic: int
    every: int
    earliest: bool
    ack_wait_ms: int
    private: bool
    """It is private, owned by the session of the first client."""
    protocol: str = "borrow"
    on_damage: str = "pass"
    queues: RetryPolicy | None = None
    """Its retry policy, if it has queues."""
    shards: int = 0
    """The number of shards at first; 0: its streams are shared out one by one; `AS_BASE`: the base
    of the storage topic that takes records."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run, except for the chance that its seed adds."""

    seed: int
    partitions: tuple[int, ...]
    """The number of partitions of each topic."""
    groups: tuple[GroupPlan, ...]
    habits: tuple[Habits, ...]
    """The habits of each client's user."""
    session_hosts: int
    clocks: tuple[tuple[int, int], ...]
    """Clock rate in parts per million and clock start in ms: of the leaders' host, the sessions'
    hosts, the clients' hosts."""
    credit_records: int
    credit_bytes: int
    rates: Mapping[str, float]
    timed: tuple[Timed, ...]
    heal_us: int = LOAD_US + FAULTS_US
    kept: frozenset[Strike] | None = None
    crash: CrashPoint | None = None
    timing: LeaderTiming = field(default_factory=LeaderTiming)
    dies: Dies | None = None
    producers: int = 1
    os_topics: frozenset[int] = frozenset()
    """Topics of durability os, by number."""
    range_topics: frozenset[int] = frozenset()
    """Topics of the router range, by number."""
    keepers: frozenset[str] = frozenset()
    """Clients whose programs keep state by shard."""
    limits: tuple[SmallLimit, ...] = ()
    """Bounds of the daemon that are small in this run."""

    def kind_of(self, topic: int) -> tuple[str, Router]:
        """The durability and the router of a topic, by its number."""
        durability = "os" if topic in self.os_topics else "sync"
        return durability, Router.RANGE if topic in self.range_topics else Router.BLOCK


def plan_of(seed: int) -> Plan:
    """The plan of a seed."""
    ordered = with_order(unordered_plan_of(seed), Timed)
    return with_shards(with_chains(ordered, Timed), Timed)


def unordered_plan_of(seed: int) -> Plan:
    """The plan of a seed without ordered groups."""
    plan = replace(_usual(seed), limits=small_limits(seed, MACHINES))
    plan = _with_neglect(_with_lost_sectors(plan))
    asked = [Timed(*each, 0) for each in operations(seed, LOAD_US, LOAD_US + FAULTS_US)]
    asked += [Timed(*each) for each in pauses(seed, LOAD_US // 2, LOAD_US + FAULTS_US)]
    asked += [Timed(*each) for each in holds(seed, LOAD_US // 2, LOAD_US + FAULTS_US)]
    timed = sorted([*plan.timed, *asked], key=lambda each: each.at_us)
    plan = replace(plan, timed=tuple(timed))
    # Drawn apart, so that the other plans do not depend on it.
    chance = Random(f"{seed}/restless")
    restless = chance.random() < RESTLESS_SHARE
    plan = _operated(_restless(plan, chance) if restless else plan)
    if restless:
        return with_queues(plan, Timed)
    chance = Random(f"{seed}/late answers")
    if chance.random() < LATE_ANSWER_SHARE:
        return late_answers(plan, chance)
    chance = Random(f"{seed}/strict")
    if chance.random() >= STRICT_SHARE:
        return with_queues(plan, Timed)
    strict = cut_to_strict(plan, chance, _death_of_leader(chance))
    return with_queues(strict, Timed, strict=True)


def late_answers(plan: Plan, chance: Random) -> Plan:
    """The script of late answers, in a world like that of the plan."""
    world, lines = with_late_answers(plan, chance)
    timed = sorted((Timed(*line) for line in lines), key=lambda each: each.at_us)
    return replace(world, timed=tuple(timed))


def _operated(plan: Plan) -> Plan:
    """The plan; in some runs with operators who move cursors, and often undo or cancel that."""
    chance = Random(f"{plan.seed}/operations")
    if chance.random() >= OPERATED_SHARE:
        return plan
    timed = list(plan.timed)
    for _ in range(chance.randint(1, OPERATIONS["move_cursors"])):
        at_us, who = chance.randrange(LOAD_US // 2, LOAD_US + FAULTS_US), chance.randrange(1 << 16)
        timed.append(Timed(at_us, "move_cursors", who, 0))
        for kind, times in OPERATIONS.items():
            if kind != "move_cursors" and chance.random() < times / 6:
                after_us = int(chance.choice((0.02, 0.3, 3.0)) * chance.random() * SECOND_US)
                then_us = min(at_us + after_us, LOAD_US + FAULTS_US)
                timed.append(Timed(then_us, kind, who, 0))
    return replace(plan, timed=tuple(sorted(timed, key=lambda each: each.at_us)))


def _death_of_leader(chance: Random) -> Timed:
    at_us = chance.randrange(LOAD_US, LOAD_US + FAULTS_US)
    return Timed(at_us, chance.choice(sorted(LEADER_FAULTS)), chance.randrange(1 << 16), 0)


def _with_lost_sectors(plan: Plan) -> Plan:
    chance = Random(f"{plan.seed}/sectors")
    if chance.random() >= SECTORS_SHARE:
        return plan
    at_us = chance.randrange(LOAD_US, LOAD_US + FAULTS_US)
    return _with(plan, [Timed(at_us, "lose_sectors", chance.randrange(1 << 16), 0)])


def _with_neglect(plan: Plan) -> Plan:
    chance = Random(f"{plan.seed}/neglect")
    if len(plan.groups) < 2 or chance.random() >= NEGLECT_SHARE:
        return plan
    ends_us = LOAD_US + FAULTS_US
    return _with(
        plan,
        [
            Timed(chance.randrange(ends_us), "neglect", chance.randrange(1 << 16), ends_us // parts)
            for parts in chance.choices((1, 2, 4), k=chance.randint(1, NEGLECTS_MAX))
        ],
    )


def _with(plan: Plan, more: Sequence[Timed]) -> Plan:
    timed = sorted([*plan.timed, *more], key=lambda each: each.at_us)
    return replace(plan, timed=tuple(timed))


def _restless(plan: Plan, chance: Random) -> Plan:
    """Few members, and one that goes and comes back: each has the same streams again and again.

    So most late or doubled messages are about a grant that its receiver has anew.
    """
    clients = chance.randint(2, 3)
    ends_us = LOAD_US + FAULTS_US
    timed = [Timed(chance.randrange(LOAD_US // 4), "begin", at, 0) for at in range(clients)]
    for kind, (times, least, most) in RESTLESS.items():
        for _ in range(times):
            at_us, who = chance.randrange(ends_us), chance.randrange(1 << 16)
            timed.append(Timed(at_us, kind, who, chance.randint(least, most)))
    at_us, away = LOAD_US, False
    while at_us < ends_us:
        timed.append(Timed(at_us, "join" if away else "leave", clients - 1, 0))
        at_us, away = at_us + chance.randint(*AWAY_US), not away
    if away:
        timed.append(Timed(ends_us, "join", clients - 1, 0))
    group = GroupPlan("g0", 0, 0, True, 5_000, private=False, protocol=_protocol(plan.seed, 0))
    return replace(
        plan,
        partitions=(chance.randint(2, 4),),
        groups=(group,),
        habits=tuple(_restless_habits(chance) for _ in range(clients)),
        session_hosts=1,
        clocks=tuple(_clock(chance, skewed=False) for _ in range(2 + clients)),
        rates={"double": 0.2, "late": 0.2, "lose": chance.choice((0.0, 0.2)), "late_final": 0.1},
        timed=tuple(sorted(timed, key=lambda each: each.at_us)),
        timing=replace(
            plan.timing, lease_ms=2_000, revoke_deadline_ms=chance.choice((300, 800, 3_000))
        ),
    )


def _restless_habits(chance: Random) -> Habits:
    """Habits with some users who keep records for longer than a revoke waits."""
    later, refuse = chance.choice((0.0, 0.3, 0.5)), chance.choice((0.0, 0.1))
    return Habits(later, refuse, sit=chance.choice((0.0, 0.05)), hang=1.0)


def _usual(seed: int) -> Plan:
    chance = Random(f"{seed}/plan")
    calm = chance.random() < 0.1
    topics = chance.choice((1, 1, 2))
    partitions = tuple(chance.randint(1, 4) for _ in range(topics))
    clients = chance.randint(1, 4)
    groups = tuple(_group(seed, chance, at, topics) for at in range(chance.choice((1, 1, 2))))
    session_hosts = chance.randint(1, min(3, clients))
    skewed = chance.random() < 0.5
    clocks = tuple(_clock(chance, skewed=skewed) for _ in range(1 + session_hosts + clients))
    habits = tuple(_habits(chance, calm=calm) for _ in range(clients))
    credit_records, credit_bytes = chance.choice((4, 20, 4_000)), chance.choice((60, 1 << 20))
    # The plan for the log is drawn apart, so that nothing else depends on it.
    log = Random(f"{seed}/log")
    rates: dict[str, float] = {}
    if not calm:
        rates = _swarm_rates(chance, RATES, 0.4) | _swarm_rates(log, LOG_RATES, 0.2)
        rates |= _swarm_rates(Random(f"{seed}/requests"), REQUEST_RATES, 0.2)
    timed = _timed(chance, clients, topics, calm=calm) + _log_timed(log, calm=calm)
    return Plan(
        seed,
        partitions,
        groups,
        habits,
        session_hosts,
        clocks,
        credit_records,
        credit_bytes,
        rates,
        tuple(sorted(timed, key=lambda each: each.at_us)),
        timing=LeaderTiming(
            lease_ms=chance.choice((2_000, 6_000)),
            # Short ones end within a run, so that their consequences are seen too.
            revoke_deadline_ms=10_000 if calm else chance.choice((800, 3_000, 10_000)),
            idle_ms=chance.choice((1_500, 30_000)),
        ),
        producers=log.randint(1, 3),
        os_topics=frozenset(at for at in range(topics) if log.random() < OS_SHARE),
    )


def _group(seed: int, chance: Random, at: int, topics: int) -> GroupPlan:
    return GroupPlan(
        f"g{at}",
        chance.randrange(topics),
        chance.choice((0, 0, 3)),
        chance.random() < 0.7,
        chance.choice((2_000, 5_000, 30_000)),
        private=chance.random() < 0.15,
        protocol=_protocol(seed, at),
        on_damage="stall" if Random(f"{seed}/damage/{at}").random() < STALL_SHARE else "pass",
    )


def _protocol(seed: int, at: int) -> str:
    """The lease protocol for a third of the groups; drawn apart, so that nothing else depends on
    it."""
    return "lease" if Random(f"{seed}/protocol/{at}").random() < LEASE_SHARE else "borrow"


def _clock(chance: Random, *, skewed: bool) -> tuple[int, int]:
    rate = chance.randint(800_000, 1_250_000) if skewed else 1_000_000
    return rate, chance.randint(0, 1_000_000)


def _habits(chance: Random, *, calm: bool) -> Habits:
    def maybe(odds: float, *values: float) -> float:
        return chance.choice(values) if chance.random() < odds else 0.0

    if calm:
        return Habits(later=maybe(0.5, 0.1, 0.5))
    sit, hang = maybe(0.2, 0.02, 0.2), maybe(0.4, 0.3, 1.0)
    return Habits(maybe(0.4, 0.1, 0.5), maybe(0.3, 0.05, 0.3), sit, hang=hang)


def _swarm_rates(
    chance: Random, rates: Mapping[str, tuple[float, ...]], odds: float
) -> dict[str, float]:
    return {kind: chance.choice(values) for kind, values in rates.items() if chance.random() < odds}


def _timed(chance: Random, clients: int, topics: int, *, calm: bool) -> list[Timed]:
    ends_us = LOAD_US + FAULTS_US
    timed = [
        Timed(chance.randrange(ends_us), "append", chance.randrange(1 << 16), chance.randint(1, 6))
        for _ in range(chance.randint(10, 60))
    ]
    timed += [
        Timed(chance.randrange(LOAD_US if at else LOAD_US // 4), "begin", at, 0)
        for at in range(clients)
    ]
    kinds: dict[str, int] = {}
    for most in (CHANGES, {} if calm else FAULTS):
        odds = 0.25 if most is CHANGES else 0.3
        kinds |= {kind: times for kind, times in most.items() if chance.random() < odds}
    if calm:
        kinds = {kind: times for kind, times in kinds.items() if kind in ("join", "grow_topic")}
    amount = _amounts(chance)
    for kind, times in kinds.items():
        timed += [
            Timed(chance.randrange(LOAD_US, ends_us), kind, chance.randrange(1 << 16), amount(kind))
            for _ in range(chance.randint(1, times))
        ]
    return timed


def _log_timed(chance: Random, *, calm: bool) -> list[Timed]:
    kinds = LOG_CHANGES if calm else {**LOG_CHANGES, **LOG_FAULTS}
    return [
        Timed(
            chance.randrange(LOAD_US, LOAD_US + FAULTS_US),
            kind,
            chance.randrange(1 << 16),
            int(chance.choice((0.3, 2.0)) * chance.random() * SECOND_US) + 50_000,
        )
        for kind, times in kinds.items()
        if chance.random() < LOG_ODDS
        for _ in range(chance.randint(1, times))
    ]


def _amounts(chance: Random) -> Callable[[str], int]:
    def amount(kind: str) -> int:
        if kind == "crash_at_effect":
            return chance.randint(1, 60)
        if kind == "grow_topic":
            return chance.randint(1, 3)
        return int(chance.choice((0.3, 2.0, 8.0)) * chance.random() * SECOND_US) + 50_000

    return amount
