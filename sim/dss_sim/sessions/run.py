"""Runs: load, faults, heal, end; and their outcome.

What must never happen is judged at every event; what must happen in the end, only after heal: the
disk has room, nobody vanishes, the daemon lives. Then every client that stays has exactly what it
wants, every record is delivered, sessions whose clients are gone are discarded with everything that
they own, and a daemon that is told to stop leaves nothing behind.
"""

import gc
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from unittest.mock import patch

from dss_core.changes import ResumeGroup
from dss_sim.groups.checker import Violation
from dss_sim.groups.history import Ended, Event
from dss_sim.groups.plan import Timed
from dss_sim.groups.shrinking import minimised
from dss_sim.sessions.client import Client
from dss_sim.sessions.library_call import library_surroundings
from dss_sim.sessions.orphans import check_orphans
from dss_sim.sessions.plan import (
    FAULTS_US,
    LOAD_US,
    ClientPlan,
    Habits,
    Plan,
    plan_of,
    shared_filters,
)
from dss_sim.sessions.program_plan import RUN_FILTER
from dss_sim.sessions.timed_events import happen
from dss_sim.sessions.world import World
from dss_sim.small_limits import SmallLimit, loses, made_small
from dssd.operations.plans import subject_of
from dssd.store.rows import GroupRow

START_WITHIN_US = 60_000_000
SETTLED_WITHIN_US = 120_000_000
"""After heal: the longest expiry, a grace, and ack waits and back-offs that began before."""
LOOK_EVERY_US = 500_000
CALM_US = 3_000_000
RUNS_MAX = 200
"""How many runs shrinking tries at most."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run went."""

    plan: Plan
    steps: int
    """Steps of loops and of the world."""
    history: tuple[Event, ...]
    violation: Violation | None
    trace: str = ""


def run_seed(seed: int) -> Outcome:
    """Run what a seed brings."""
    return run(plan_of(seed))


def run(plan: Plan, transcript: Callable[[int, str, object], None] | None = None) -> Outcome:
    """Run a plan to its end, or to the first violation."""
    world = World(plan)
    world.transcript = transcript
    if transcript is not None:
        for limit in plan.limits:
            transcript(0, "plan", limit)
    violation: Violation | None = None
    trace = ""
    with _surroundings(plan) as heard, library_surroundings(plan.seed, world.timeline):
        try:
            _live(world)
            _check_warnings(heard)
        except Violation as found:
            violation = found
        except Exception as raised:  # noqa: BLE001 - I19: what raises is what is looked for
            violation = Violation("I19", f"it raised {raised!r}")
            trace = traceback.format_exc()
        for loop in world.loops():
            loop.dispose()
    return Outcome(plan, world.timeline.steps, tuple(world.history), violation, trace)


@contextmanager
def _surroundings(plan: Plan) -> Iterator[list[warnings.WarningMessage]]:
    """The daemon's surroundings: the length of a turn, the most sessions, bounds."""
    turns = Random(f"{plan.seed}/turns")

    def clock() -> float:
        return turns.random() if plan.turns else 0.0

    with (
        warnings.catch_warnings(record=True) as heard,
        patch("dssd.loop_yield.perf_counter", clock),
        patch("dssd.loop_yield.LOOP_TURN_S", 0.5),
        patch("dssd.sessions.room.SESSIONS_MAX", plan.sessions_max),
        made_small(plan.limits),
    ):
        warnings.simplefilter("always")
        gc.disable()
        try:
            yield heard
        finally:
            gc.enable()


def _check_warnings(heard: Sequence[warnings.WarningMessage]) -> None:
    if heard:
        raise Violation("I19", f"warned: {[str(each.message) for each in heard]}")


def _live(world: World) -> None:
    if loses(world.plan.limits):
        world.disturb("full mailboxes")
    world.start()
    _until(world, START_WITHIN_US, lambda: world.serving is not None, "L2", lambda: "no start")
    world.create_topics()
    world.begin_programs()
    for timed in world.plan.timed:
        world.timeline.after(timed.at_us, partial(happen, world, timed))
    world.pass_time(LOAD_US + FAULTS_US)
    _heal(world)
    _until(world, SETTLED_WITHIN_US, lambda: _is_settled(world), "L2", lambda: _unsettled(world))
    world.tell(Ended(world.timeline.now_us))
    world.pass_time(CALM_US)
    _end(world)


def _heal(world: World) -> None:
    """End all faults; clients that stay come back and behave."""
    disk = world.disk
    disk.full, disk.slow, disk.dies_at, world.crash_at_step = False, 0.0, 0, 0
    disk.trouble_us = world.timeline.now_us
    world.healed = True
    _until(world, START_WITHIN_US, lambda: world.serving is not None, "L2", lambda: "no start")
    for client in world.clients[max(1, world.plan.sessions_max - 1) :]:
        world.disturb("leave")
        client.leave()
    sweeper = _sweeper(world)
    for client in world.clients:
        client.behave()
    for program in world.programs:
        program.behave()
    world.clients.append(sweeper)


def _sweeper(world: World) -> Client:
    """A client that joins every shared group, so that each has a member in the end."""
    menu = (*shared_filters(len(world.plan.partitions)), RUN_FILTER)
    plan = ClientPlan(0, True, False, Habits(), menu, 0)
    return Client(world, "sweeper", plan, world.chance("sweeper"))


def _sweep(world: World, sweeper: Client) -> None:
    shared = {(row.name, row.filter) for row in world.disk.held(GroupRow)}
    for number, wanted in enumerate(sweeper.plan.menu, 1):
        _, name, filter_ = wanted.split("/", 2)
        if (name, filter_) in shared:
            sweeper.subscribe(number)
    if sweeper.wanted and not sweeper.staying:
        sweeper.connect()


def _is_settled(world: World) -> bool:
    *_, sweeper = world.clients
    _sweep(world, sweeper)
    jumps = any(timed.kind == "wall" for timed in world.plan.timed)
    for group in world.disk.held(GroupRow):
        # The others end by themselves, unless a clock that was set back makes that take days.
        if group.paused and (jumps or group.paused_until_ms is None):
            world.operate(ResumeGroup(subject_of(group)))
    staying = world.staying()
    if not all(client.is_settled for client in staying) or world.serving is None:
        return False
    connected = {client.session_id for client in staying}
    return world.rules.live.keys() == connected and not world.checker.unsettled()


def _unsettled(world: World) -> str:
    staying = world.staying()
    waiting = [client.described() for client in staying if not client.is_settled]
    connected = {client.session_id for client in staying}
    lasting = [row for key, row in world.rules.live.items() if key not in connected]
    return (
        f"clients {waiting}, sessions {lasting}, "
        f"(group, stream, floor, end): {world.checker.unsettled()}"
    )


def _end(world: World) -> None:
    """Check that everything is done and nothing is left over, now and after a stop."""
    life = world.serving
    assert life is not None
    check_orphans(world.disk, life.groups.groups())
    counts = life.sessions.counts()
    staying = len(world.staying())
    if (counts.connected, counts.detached) != (staying, 0):
        raise Violation("S13", f"{staying} clients are connected: {counts}")
    gc.collect()
    world.stop()
    _until(world, START_WITHIN_US, lambda: life.loop.abandoned, "F22", lambda: "it does not stop")
    check_orphans(world.disk, None)


def _until(
    world: World, within_us: int, reached: Callable[[], bool], name: str, text: Callable[[], str]
) -> None:
    until_us = world.timeline.now_us + within_us
    while not reached():
        if world.timeline.now_us > until_us:
            raise Violation(name, text())
        world.pass_time(LOOK_EVERY_US)


def shrunk(outcome: Outcome) -> Outcome:
    """The smallest run found that breaks the same invariant.

    Raises:
        ValueError: the run did not fail.
    """
    violation = outcome.violation
    if violation is None:
        raise ValueError("it did not fail")
    best, runs = outcome, 0
    begins = tuple(timed for timed in outcome.plan.timed if timed.kind == "begin")

    def still_fails(parts: Sequence[Timed | SmallLimit]) -> bool:
        nonlocal best, runs
        runs += 1
        if runs > RUNS_MAX:
            return False
        happening = (each for each in parts if isinstance(each, Timed))
        timed = tuple(sorted((*begins, *happening), key=lambda each: each.at_us))
        limits = tuple(each for each in parts if isinstance(each, SmallLimit))
        tried = run(replace(outcome.plan, timed=timed, limits=limits))
        if tried.violation is None or tried.violation.invariant != violation.invariant:
            return False
        best = tried
        return True

    others = [each for each in outcome.plan.timed if each.kind != "begin"]
    parts: list[Timed | SmallLimit] = [*outcome.plan.limits, *others]
    minimised(parts, still_fails)
    return best
