"""What happens to the large world, and what is counted.

All clients come. A thousand faults strike while members join and leave; then the faults end, and it
is measured how long it takes until everything is allocated again. Then members join and leave
undisturbed, and the moves of each change are counted. At last only records flow, and messages are
counted.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from random import Random
from time import thread_time

from dss_sim.groups.client import Client
from dss_sim.groups.plan import SECOND_US, Plan, Timed
from dss_sim.groups.run import heal
from dss_sim.groups.timed_events import happen
from dss_sim.scale.world import GROUPS, TOPICS, LargeWorld

FAULTS_COUNT = 1_000
FAULTS = {
    "lose_leader": 250,
    "kill_client": 200,
    "cut_pipe": 200,
    "freeze_client": 180,
    "partition": 80,
    "crash_session_host": 40,
    "freeze_session_host": 35,
    "freeze_leader_host": 8,
    "crash_leader_host": 3,
    "crash_at_effect": 2,
    "crash_daemon": 2,
}
"""For a thousand faults. Those that stop everything are rare, so that groups settle in between."""

LOAD, UNDER_FAULTS, CHANGES, STEADY = 0.05, 0.7, 0.1, 0.1
"""Shares of the whole time; the rest is for converging."""

FRAMES_A_SECOND = 10
"""At full size, frames of 1 to 6 records: this is about the protocol, not about throughput."""

CHANGE_UNDER_FAULTS_US = 2 * SECOND_US
CHANGE_US = SECOND_US // 2
"""Between two clients that come or go undisturbed, at full size; longer if there are few groups."""

COUNTED_AFTER_US = 4 * SECOND_US
"""How long after a join or leave its moves are counted."""

AWAY_OF_ALL = 0.02
"""The share of clients that are away when as many come as go."""

LOOK_US = SECOND_US // 10

Watch = Callable[[int], None]
"""Called with the time of the world, in µs, each time that some of it has passed."""


@dataclass(slots=True)
class Change:
    """A member of a group joined or left."""

    joined: bool
    streams: int
    members: int
    """The member that joined or left included."""
    moves: int = 0
    """Grants that were made because of it."""

    @property
    def share(self) -> int:
        """The most that one member holds: no more streams may move."""
        return ceil(self.streams / self.members)


@dataclass(slots=True)
class Figures:
    """The figures of one life."""

    faults: int = 0
    struck: int = 0
    """Faults of single messages and commits."""
    events: int = 0
    cpu_s: float = 0.0
    messages: int = 0
    borrowers: int = 0
    """At the end."""
    lent_streams: int = 0
    """The streams of all groups together."""
    settled_first_ms: int | None = None
    """How long it took after the last client came; None: it did not converge in time."""
    settled_again_ms: int | None = None
    """How long it took after the last fault; None: it did not converge in time."""
    changes: list[Change] = field(default_factory=list)
    steady_s: float = 0.0
    steady: Counter[str] = field(default_factory=Counter)
    """Messages by kind while only records flow."""
    backlog_max: int = 0
    backlog_end: int = 0
    closes: int = 0


def lived(plan: Plan, faults: int, watch: Watch) -> Figures:
    """Let a world live its time; returns its figures.

    Raises:
        Violation: something does not hold.
    """
    began_s = thread_time()
    world = LargeWorld(plan)
    whole_us = plan.heal_us
    chance = world.chance.of("what happens")
    figures = Figures(faults=faults)
    _let_records_flow(world, whole_us)
    figures.settled_first_ms = _come(world, round(LOAD * whole_us), chance, watch)
    _suffer(world, faults, round(UNDER_FAULTS * whole_us), chance, watch)
    figures.struck = len(world.chance.struck)
    heals_us = round((1 - CHANGES - STEADY) * whole_us)
    figures.settled_again_ms = _recover(world, heals_us, watch)
    figures.changes = _count_changes(world, round(CHANGES * whole_us), chance, watch)
    before = world.sent.copy()
    _pass_time(world, whole_us, watch)
    figures.steady, figures.steady_s = world.sent - before, STEADY * whole_us / SECOND_US
    _sum_up(world, figures)
    figures.cpu_s = thread_time() - began_s
    return figures


def _sum_up(world: LargeWorld, figures: Figures) -> None:
    figures.borrowers = sum(len(client.wanted) for client in world.clients if client.staying)
    figures.lent_streams = sum(world.plan.partitions[each.topic] for each in world.plan.groups)
    figures.events, figures.messages = world.schedule.happened, world.network.sent
    figures.backlog_max, figures.backlog_end = world.backlog_max, world.backlog
    figures.closes = world.closes


# Phases


def _come(world: LargeWorld, until_us: int, chance: Random, watch: Watch) -> int | None:
    for client in world.clients:
        world.schedule.after(chance.randrange(until_us // 2), client.begin)
    _pass_time(world, until_us // 2, watch)
    settled_ms = _converge(world, until_us, watch)
    _pass_time(world, until_us, watch)
    return settled_ms


def _suffer(world: LargeWorld, faults: int, span_us: int, chance: Random, watch: Watch) -> None:
    for kind in chance.choices(list(FAULTS), list(FAULTS.values()), k=faults):
        amount = int(chance.choice((0.3, 2.0, 8.0)) * chance.random() * SECOND_US) + 50_000
        after_us = chance.randrange(span_us)
        timed = Timed(world.schedule.now_us + after_us, kind, chance.randrange(1 << 16), amount)
        world.schedule.after(after_us, partial(happen, world, timed))

    def change() -> None:
        _come_or_go(world, chance)

    for after_us in range(0, span_us, CHANGE_UNDER_FAULTS_US):
        world.schedule.after(after_us, change)
    _pass_time(world, world.schedule.now_us + span_us, watch)


def _recover(world: LargeWorld, until_us: int, watch: Watch) -> int | None:
    began_us = world.schedule.now_us
    heal(world)
    thawed_ms = (world.schedule.now_us - began_us) // 1_000
    settled_ms = _converge(world, until_us, watch)
    _pass_time(world, until_us, watch)
    return None if settled_ms is None else thawed_ms + settled_ms


def _pass_time(world: LargeWorld, until_us: int, watch: Watch) -> None:
    while (now_us := world.schedule.now_us) < until_us:
        passed: list[None] = []
        part_us = min(SECOND_US, until_us - now_us)
        world.schedule.after(part_us, partial(passed.append, None))
        while not passed:
            world.step()
        watch(world.schedule.now_us)


def _converge(world: LargeWorld, until_us: int, watch: Watch) -> int | None:
    """How long it took until everything was allocated, in ms; None if it was not in time."""
    began_us = world.schedule.now_us
    unsettled = world.unsettled()
    while unsettled:
        if world.schedule.now_us >= until_us:
            return None
        _pass_time(world, world.schedule.now_us + LOOK_US, watch)
        # A settled group may become unsettled again, by a lease that ends late.
        unsettled = world.unsettled(unsettled) or world.unsettled()
    return (world.schedule.now_us - began_us) // 1_000


def _let_records_flow(world: LargeWorld, span_us: int) -> None:
    chance = world.chance.of("records")
    streams = list(world.names)
    full = len(streams) / sum(topics * each for topics, each in TOPICS)
    for _ in range(round(FRAMES_A_SECOND * span_us / SECOND_US * full)):
        append = partial(world.append, chance.choice(streams), chance.randint(1, 6))
        world.schedule.after(chance.randrange(span_us), append)


def _come_or_go(world: LargeWorld, chance: Random) -> Client:
    away = [client for client in world.clients if not client.staying]
    if chance.random() < len(away) / (2 * AWAY_OF_ALL * len(world.clients)):
        client = chance.choice(away)
        client.begin()
    else:
        client = chance.choice([client for client in world.clients if client.staying])
        client.leave()
    return client


# Joins and leaves, counted


def _count_changes(world: LargeWorld, span_us: int, chance: Random, watch: Watch) -> list[Change]:
    """Let clients come and go; returns the changes of groups that no other change touched
    meanwhile."""
    ends_us = world.schedule.now_us + span_us
    begun: defaultdict[str, list[tuple[int, Change]]] = defaultdict(list)
    while world.schedule.now_us < ends_us - COUNTED_AFTER_US:
        before = {name: len(world.staying(name)) for name in world.groups}
        client = _come_or_go(world, chance)
        for name in client.wanted.values():
            change = _begun_change(world, name, before[name] + client.staying, client)
            begun[name].append((world.schedule.now_us, change))
        pause_us = CHANGE_US * ceil(GROUPS / len(world.groups))
        _pass_time(world, min(world.schedule.now_us + pause_us, ends_us), watch)
    _pass_time(world, ends_us, watch)
    return [
        change
        for of_group in begun.values()
        for at_us, change in of_group
        if change.members > 1
        and all(abs(other_us - at_us) > COUNTED_AFTER_US for other_us, other in of_group
                if other is not change)
    ]  # fmt: skip


def _begun_change(world: LargeWorld, name: str, members: int, client: Client) -> Change:
    leader = world.leader_of(name)
    change = Change(client.staying, len(leader.streams) if leader else 0, members)
    before = _lent(world, name)

    def count() -> None:
        change.moves = _lent(world, name) - before

    world.schedule.after(COUNTED_AFTER_US, count)
    return change


def _lent(world: LargeWorld, name: str) -> int:
    """How often streams of the group were lent so far, as its leader counts for each stream."""
    leader = world.leader_of(name)
    return sum(lent.grant_epoch for lent in leader.streams.values()) if leader else 0
