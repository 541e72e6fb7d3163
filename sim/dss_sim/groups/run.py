"""Runs of the simulator: load, faults, heal, and the outcome.

Safety is judged at every event. Liveness is judged only after `heal`: no fault strikes any more,
frozen hosts thaw, users behave. Then every stream must be granted (L1), progress must reach the end
of every stream (L2), members hold equal shares (L3), and only pings be sent (L5), each within its
time (`heal_bounds`).
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dss_core.limits import LEASE_MS
from dss_sim.groups.checker import Violation
from dss_sim.groups.heal_bounds import bounds_of
from dss_sim.groups.history import Disturbed, Ended, Event
from dss_sim.groups.plan import Plan, plan_of
from dss_sim.groups.queue_plans import waits_for_room
from dss_sim.groups.randomness import Strike
from dss_sim.groups.strict_plans import disturbs_by_plan
from dss_sim.groups.timed_events import happen
from dss_sim.groups.world import World
from dss_sim.small_limits import made_small
from dssd.machines.leader.lent_stream import HELD, NOT_LENT, StreamState
from dssd.machines.leader.state import Leader, LeaderState

STEADY_US = LEASE_MS * 1_000
ROOM_EVERY_US = 2_000_000
"""How often queues that may be full are emptied."""
LOOK_EVERY = 20
"""Events between two checks whether everything is settled."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run."""

    plan: Plan
    events: int
    effects: int
    """Effects carried out by all hosts together."""
    writer_steps: int
    """Steps of the log's group commits."""
    history: tuple[Event, ...]
    struck: tuple[Strike, ...]
    violation: Violation | None
    trace: str = ""
    """The error of a machine that raised."""


def run(plan: Plan, transcript: Callable[[int, str, object], None] | None = None) -> Outcome:
    """Run a plan to its end, or to the first violation."""
    world = World(plan)
    world.transcript = transcript
    if transcript is not None:
        for limit in plan.limits:
            transcript(0, "plan", limit)
    violation: Violation | None = None
    trace = ""
    try:
        with made_small(plan.limits):
            _live(world)
    except Violation as found:
        violation = found
    except Exception as raised:  # noqa: BLE001 - I19: a machine that raises is what is looked for
        violation = Violation("I19", f"a machine raised {raised!r}")
        trace = traceback.format_exc()
    history, struck = tuple(world.history), tuple(world.chance.struck)
    happened, effects, steps = world.schedule.happened, world.effects, world.writer.steps
    return Outcome(plan, happened, effects, steps, history, struck, violation, trace)


def run_seed(seed: int) -> Outcome:
    """Run the plan of a seed."""
    return run(plan_of(seed))


def _live(world: World) -> None:
    plan = world.plan
    if disturbs_by_plan(plan):
        world.tell(Disturbed(0, "by plan"))
    for timed in plan.timed:
        world.schedule.after(timed.at_us, partial(happen, world, timed))
    _pass_time(world, plan.heal_us)
    heal(world)
    bounds, healed_us = bounds_of(plan), world.schedule.now_us
    _until(world, bounds.granted_us, partial(is_balanced, world), "L1", partial(_shares, world))
    left_us = healed_us + bounds.settled_us - world.schedule.now_us
    if waits_for_room(plan):
        _make_room(world)
    _until(world, left_us, partial(is_settled, world), "L2", partial(_unsettled, world))
    world.tell(Ended(world.schedule.now_us))
    kept_us = max(healed_us + bounds.given_back_us - world.schedule.now_us, 0)
    _pass_time(world, kept_us + bounds.calm_us)
    if not is_balanced(world):
        raise Violation("L3", _shares(world))
    _stay_steady(world)


def _pass_time(world: World, span_us: int) -> None:
    passed: list[None] = []
    world.schedule.after(span_us, partial(passed.append, None))
    while not passed:
        world.step()


def _make_room(world: World) -> None:
    """An operator who is told of full queues redrives dead letters until nothing waits."""
    if is_settled(world):
        return
    for group in world.groups.values():
        if group.max_deliver and group.ordered:
            world.cursor_operator.redrive(group, whole=True)
    world.schedule.after(ROOM_EVERY_US, partial(_make_room, world))


def heal(world: World) -> None:
    """No fault any more; frozen hosts thaw, and users behave."""
    world.chance.calm()
    world.network.heal()
    world.crash_at_effect = 0
    world.writer.heal()
    hosts = [world.leaders.host, *world.session_hosts, *(each.host for each in world.clients)]
    thawed_us = max(host.frozen_until_us for host in hosts)
    if thawed_us >= world.schedule.now_us:
        _pass_time(world, thawed_us + 1 - world.schedule.now_us)
    for client in world.clients:
        client.behave()
    world.healed_us = world.schedule.now_us
    world.member_operator.wind_up()
    world.pause_operator.heal()


def _until(
    world: World, within_us: int, reached: Callable[[], bool], name: str, text: Callable[[], str]
) -> None:
    passed: list[None] = []
    world.schedule.after(within_us, partial(passed.append, None))
    while not reached():
        for _ in range(LOOK_EVERY):
            if passed:
                raise Violation(name, text())
            world.step()


def is_settled(world: World) -> bool:
    """Whether producers have all answers, operations are done, and stored progress is at all
    ends."""
    settled = all(each.settled for each in world.producers) and not _running(world)
    return settled and not world.checker.unsettled()


def _running(world: World) -> list[object]:
    asked = (
        world.cursor_operator, world.member_operator, world.pause_operator, world.shard_operator,
    )  # fmt: skip
    return [each for operator in asked for each in operator.unended()]


def _unsettled(world: World) -> str:
    waiting = [each.name for each in world.producers if not each.settled]
    unread = world.checker.unsettled()
    operations = _running(world)
    return f"producers: {waiting}; operations: {operations}; (group, stream, floor, end): {unread}"


def is_balanced(world: World) -> bool:
    """L1, L3: every open stream is granted, and shares differ by one at most."""
    return all(
        _is_shared_out(world, group.group_id, wanting)
        for group in world.groups.values()
        if (wanting := _wanting(world, group.name))
    )


def _wanting(world: World, group: str) -> list[str]:
    return sorted(
        each.name for each in world.clients if each.staying and group in each.wanted.values()
    )


def _is_shared_out(world: World, group_id: int, wanting: list[str]) -> bool:
    acting = world.leaders.leading.get(group_id)
    leader = acting.leader if acting is not None else None
    if leader is None or leader.state is not LeaderState.LEADING:
        return False
    if any(lent.state not in (StreamState.GRANTED, *NOT_LENT) for lent in leader.streams.values()):
        return False
    # A dead incarnation counts until its lease has ended.
    if not all(world.is_borrower(borrower_id) for borrower_id in leader.members):
        return False
    if any("connecting" in session.rules.standings.values() for session in world.sessions.values()):
        return False
    shares = _counted(leader)
    clients = sorted(member.client_id for member in leader.members.values())
    return clients == wanting and max(shares) - min(shares) <= 1


def _counted(leader: Leader) -> list[int]:
    """The share of each member: streams, or shards, each of which one member has."""
    if leader.shards.slicing is None:
        return [len(member.streams) for member in leader.members.values()]
    slicing = leader.shards.slicing
    return [
        len({slicing.shard_of(stream) for stream in member.streams})
        for member in leader.members.values()
    ]


def _shares(world: World) -> str:
    return "; ".join(
        f"{acting.group.name}: "
        + ", ".join(f"{m.client_id} {len(m.streams)}" for m in acting.leader.members.values())
        + " of "
        + ", ".join(lent.state.value for lent in acting.leader.streams.values())
        for acting in world.leaders.leading.values()
        if acting.leader is not None
    )


def _stay_steady(world: World) -> None:
    """L3, L5: from now on no stream moves, and only pings are sent."""
    owners = _owners(world)
    members = sum(len(a.leader.members) for a in world.leaders.leading.values() if a.leader)
    before = world.network.sent
    _pass_time(world, STEADY_US)
    said = world.network.sent - before
    # A fast clock pings each L/4 of its own: five times within our L, and both ways.
    leases = STEADY_US // 1_000 // world.plan.timing.lease_ms
    if members and said > 2 * 6 * members * leases:
        raise Violation("L5", f"{said} messages within L among {members} members")
    if _owners(world) != owners:
        raise Violation("L3", f"streams moved: {owners} to {_owners(world)}")


def _owners(world: World) -> list[tuple[str, tuple[int, int], bytes | None]]:
    return [
        (acting.group.name, stream, lent.holder)
        for acting in world.leaders.leading.values()
        if acting.leader is not None
        for stream, lent in acting.leader.streams.items()
        if lent.state in HELD
    ]
