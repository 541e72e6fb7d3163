"""The timed events of a run: records, clients, operators, faults.

One function for each kind of `Timed`. Each acts on the world as it finds it, and does nothing if it
cannot apply. Details are drawn from the event's own name, so leaving out another event does not
change them.
"""

from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

from dss_api.v1 import sessions_pb2
from dss_core.changes import PauseGroup, ResumeGroup
from dss_core.errors import DssError
from dss_core.filters import SubscriptionFilter
from dss_core.limits import SESSION_GRACE_S
from dss_sim.groups.checker import Violation
from dss_sim.groups.plan import Timed
from dss_sim.sessions.client import NOTICED_US, Client
from dss_sim.sessions.connection import Connection
from dss_sim.sessions.consumer import Up
from dss_sim.sessions.edits import edit_at_once
from dss_sim.sessions.plan import JUMPS_MS, SECOND_US, shared_filters
from dss_sim.sessions.program_events import OF_PROGRAMS
from dss_sim.sessions.world import World
from dssd.leaders.declarations import EXCLUSIVE
from dssd.leaders.takeover import LEASE
from dssd.machines.start_point import Earliest
from dssd.operations.plans import subject_of

VANISH_US = (0, 12_000)
"""How long after its call began a client vanishes."""
RETURN_US = (50_000, 3 * SECOND_US)
STAND_STILL_US = (200_000, 4 * SECOND_US)
"""Too short for the transport to cut the client off."""
TOLD_LATE_US = (200_000, 2_300_000)
"""Below the 0.4 leases after which a client that receives nothing hands out no more."""
TWIN_RECORDS = (4, 12)
TWIN_US = (5_000, 100_000)
"""How long those records are under way when the other process comes."""
DISK_US = (1 * SECOND_US, 9 * SECOND_US)
STEPS = (1, 4_000)
TRANSACTIONS = (1, 12)
NEAR_EXPIRY_US = 1_500_000
MENU = 3


def happen(world: World, timed: Timed) -> None:
    """Let it happen now."""
    chance = Random(f"{world.plan.seed}/{timed.kind}/{timed.at_us}")
    KINDS[timed.kind](world, timed, chance)


def _client(world: World, timed: Timed) -> Client:
    return world.clients[timed.who % len(world.clients)]


def _append(world: World, timed: Timed, chance: Random) -> None:
    streams = sorted(world.names)
    world.append(streams[timed.who % len(streams)], timed.amount)


def _begin(world: World, timed: Timed, chance: Random) -> None:
    _client(world, timed).begin()


def _attach(world: World, timed: Timed, chance: Random) -> None:
    world.disturb("attach")
    _client(world, timed).connect()


def _clean(world: World, timed: Timed, chance: Random) -> None:
    world.disturb("clean")
    _client(world, timed).connect(clean=True)


def _twin(world: World, timed: Timed, chance: Random) -> None:
    """Another process takes the client id; the earlier one is told late, and works on meanwhile."""
    client = _client(world, timed)
    older = client.newest
    if older is None or not older.is_live:
        return
    world.disturb("twin")
    older.consumer.slow_down()
    for stream in sorted(world.names):
        world.append(stream, chance.randint(*TWIN_RECORDS))

    def take_over() -> None:
        call = older.call
        if world.healed or older is not client.newest or call is None or call.frozen:
            return
        if not older.session_id:
            return  # it has nothing in hand
        call.delay()
        world.timeline.after(chance.randint(*TOLD_LATE_US), call.thaw)
        client.connect(clean=chance.random() < 0.5, anew=True)

    world.timeline.after(chance.randint(*TWIN_US), take_over)


def _vanish(world: World, timed: Timed, chance: Random) -> None:
    """Attach, and vanish before the answer, or right after it."""
    world.disturb("vanish")
    client = _client(world, timed)
    connection = client.connect(clean=chance.random() < 0.3)
    if connection is None:
        return
    noticed_us = chance.randint(*VANISH_US) if chance.random() < 0.8 else NOTICED_US[1]

    def cut() -> None:
        if not world.healed:
            world.cut(connection, noticed_us)

    world.timeline.after(chance.randint(*VANISH_US), cut)
    _return_later(world, client, chance)


def _detach(world: World, timed: Timed, chance: Random) -> None:
    world.disturb("detach")
    client = _client(world, timed)
    if client.newest is not None and client.newest.is_live:
        client.newest.leave(politely=True)
        _return_later(world, client, chance)


def _cut(world: World, timed: Timed, chance: Random) -> None:
    world.disturb("cut")
    client = _client(world, timed)
    if client.newest is not None and client.newest.is_live:
        world.cut(client.newest, chance.randint(*NOTICED_US))
        _return_later(world, client, chance)


def _return_later(world: World, client: Client, chance: Random) -> None:
    """Soon, about when its session expires, or only by another event."""
    drawn = chance.random()
    stay_us = max(client.plan.expiry_s, SESSION_GRACE_S) * SECOND_US
    if drawn < 0.4:
        world.timeline.after(chance.randint(*RETURN_US), partial(_return, client))
    elif drawn < 0.7:
        late_us = stay_us + chance.randint(-NEAR_EXPIRY_US, NEAR_EXPIRY_US)
        world.timeline.after(late_us, partial(_return, client))


def _return(client: Client) -> None:
    if client.staying and not (client.newest is not None and client.newest.is_live):
        client.connect()


def _leave(world: World, timed: Timed, chance: Random) -> None:
    world.disturb("leave")
    _client(world, timed).leave()


def _intrude(world: World, timed: Timed, chance: Random) -> None:
    """Another principal uses the client id, perhaps with the session's id."""
    client = _client(world, timed)
    opening = sessions_pb2.Open(
        client_id=client.name,
        clean_start=chance.random() < 0.4,
        session_id=client.session_id if chance.random() < 0.5 else b"",
        session_expiry_s=chance.choice((0, 5)),
    )
    name = f"{client.name}.intruder"
    connection = Intruder(client, name, opening, local=not client.plan.local)
    connection.call = world.connected(connection)
    if connection.call is not None:
        connection.call.up(Up(open=opening))
        world.timeline.after(SECOND_US, partial(world.cut, connection, 0))


class Intruder(Connection):
    """Another principal connects under the client's id, and only waits for the answer."""

    def take(self, message: sessions_pb2.SessionDown) -> None:
        """The daemon says something."""
        if self.left_us is None and message.WhichOneof("item") == "opened":
            self.answered = True
            self.session_id = message.opened.session_id
            self.client.world.opened(self, message.opened)
        elif self.left_us is None and message.WhichOneof("item") == "error":
            self.answered = True
            self.client.world.refused(self, message.error)

    def ended(self) -> None:
        """The daemon ended the call, or is gone."""


def _subscribe(world: World, timed: Timed, chance: Random) -> None:
    _client(world, timed).subscribe(1 + timed.amount % MENU)


def _unsubscribe(world: World, timed: Timed, chance: Random) -> None:
    client = _client(world, timed)
    if client.wanted:
        world.disturb("unsubscribe")
        client.unsubscribe(chance.choice(sorted(client.wanted)))


def _freeze(world: World, timed: Timed, chance: Random) -> None:
    connection = _client(world, timed).newest
    if connection is None or connection.call is None or not connection.is_live:
        return
    world.disturb("freeze")
    call = connection.call
    connection.consumer.stand_still()
    call.freeze()

    def thaw() -> None:
        call.thaw()
        connection.consumer.doubt()

    world.timeline.after(chance.randint(*STAND_STILL_US), thaw)


async def _tolerant(work: Coroutine[Any, Any, object]) -> None:
    """Do what an operator asks; a failed request changes nothing else."""
    with suppress(DssError):
        await work


def _declare(world: World, timed: Timed, chance: Random) -> None:
    life = world.serving
    if life is None:
        return
    filters = shared_filters(len(world.plan.partitions))
    parsed = SubscriptionFilter.parse(filters[timed.who % len(filters)])
    protocol = LEASE if chance.random() < 0.6 else None
    work = life.groups.declare(parsed, start=Earliest(), protocol=protocol)
    life.run(_tolerant(work), "declare")


def _remove(world: World, timed: Timed, chance: Random) -> None:
    _remove_one(world, timed, private=False)


def _remove_private(world: World, timed: Timed, chance: Random) -> None:
    _remove_one(world, timed, private=True)


def _remove_one(world: World, timed: Timed, *, private: bool) -> None:
    life = world.serving
    if life is None:
        return
    groups = [group for group in life.groups.groups() if (group.kind == EXCLUSIVE) == private]
    if groups:
        world.disturb("remove")
        group_id = groups[timed.who % len(groups)].group_id
        world.rules.removals.add(group_id)
        life.run(_tolerant(life.groups.remove(group_id)), "remove")


def _pause(world: World, timed: Timed, chance: Random) -> None:
    """Pause a group, until a time or until somebody resumes it."""
    life = world.serving
    groups = () if life is None else life.groups.groups()
    if not groups or life is None:
        return
    name = subject_of(groups[timed.who % len(groups)])
    ends_by_itself = chance.random() < 0.4
    until_ms = life.clock.wall_ms() + timed.amount // 1_000 if ends_by_itself else None
    world.operate(PauseGroup(name, until_ms))
    if not ends_by_itself:
        world.timeline.after(timed.amount, partial(world.operate, ResumeGroup(name)))


def _wall(world: World, timed: Timed, chance: Random) -> None:
    """Move the wall clock, but not while a daemon loads: then it is open which date it reads."""
    if world.life is None or world.serving is not None:
        world.wall.move(chance.choice(JUMPS_MS) * chance.choice((-1, 1)))


def _clean_on_full_disk(world: World, timed: Timed, chance: Random) -> None:
    _fill_disk(world, timed, chance)
    _clean(world, timed, chance)


def _fill_disk_at_expiry(world: World, timed: Timed, chance: Random) -> None:
    expires_us = _expires_us(world, timed)
    if expires_us is not None:
        fill = partial(_fill_disk, world, timed, chance)
        world.timeline.after(expires_us - world.timeline.now_us, fill)
        _return_after(world, timed, expires_us, chance)


def _expires_us(world: World, timed: Timed) -> int | None:
    """About when the session of a client that left expires."""
    client = _client(world, timed)
    gone = [each.left_us for each in client.connections if each.left_us is not None]
    if not gone or client.live():
        return None
    return gone[-1] + max(client.plan.expiry_s, SESSION_GRACE_S) * SECOND_US


def _fill_disk(world: World, timed: Timed, chance: Random) -> None:
    if world.healed:
        return
    world.disturb("fill_disk")
    world.disk.full = True

    def empty() -> None:
        world.disk.full = False
        world.disk.trouble_us = world.timeline.now_us

    world.timeline.after(chance.randint(*DISK_US), empty)


def _slow_disk(world: World, timed: Timed, chance: Random) -> None:
    world.disturb("slow_disk")
    world.disk.slow = chance.choice((0.1, 0.6))

    def quicken() -> None:
        world.disk.slow = 0.0
        world.disk.trouble_us = world.timeline.now_us

    world.timeline.after(chance.randint(*DISK_US), quicken)


def _crash(world: World, timed: Timed, chance: Random) -> None:
    world.crash()


def _crash_at_commit(world: World, timed: Timed, chance: Random) -> None:
    if world.life is not None:
        world.disk.dies_at = chance.randint(*TRANSACTIONS)


def _crash_at_step(world: World, timed: Timed, chance: Random) -> None:
    world.crash_at_step = world.timeline.steps + chance.randint(*STEPS)


def _crash_at_expiry(world: World, timed: Timed, chance: Random) -> None:
    """Crash in the middle of the work that is done when a session expires."""
    expires_us = _expires_us(world, timed)
    if expires_us is None:
        return

    def arm() -> None:
        if not world.healed:
            world.disk.dies_at = chance.randint(1, 4)

    world.timeline.after(expires_us - world.timeline.now_us - 1_000, arm)
    _return_after(world, timed, expires_us, chance)


def _return_after(world: World, timed: Timed, expires_us: int, chance: Random) -> None:
    """A client whose session was about to end returns soon after: the session is there as a whole,
    or not at all."""
    span_us = expires_us - world.timeline.now_us + chance.randint(*RETURN_US)
    world.timeline.after(span_us, partial(_return, _client(world, timed)))


def _stop(world: World, timed: Timed, chance: Random) -> None:
    world.stop()


def _edit(world: World, timed: Timed, chance: Random) -> None:
    """Several operators edit one group at once."""
    life = world.serving
    groups = () if life is None else life.groups.groups()
    if groups and life is not None:
        group = groups[timed.who % len(groups)]
        editing = edit_at_once(life, group, f"{world.plan.seed}/edit {timed.at_us}")
        life.run(_judged(world, editing), "edit")


async def _judged(world: World, work: Coroutine[Any, Any, object]) -> None:
    """As `_tolerant`; a violation goes to the world, not to the daemon."""
    try:
        await _tolerant(work)
    except Violation as found:
        world.timeline.after(0, partial(_raise, found))


def _raise(violation: Violation) -> None:
    raise violation


KINDS: Mapping[str, Callable[[World, Timed, Random], None]] = {
    "append": _append,
    "begin": _begin,
    "attach": _attach,
    "clean": _clean,
    "twin": _twin,
    "vanish": _vanish,
    "detach": _detach,
    "cut": _cut,
    "leave": _leave,
    "intrude": _intrude,
    "subscribe": _subscribe,
    "unsubscribe": _unsubscribe,
    "freeze": _freeze,
    "declare": _declare,
    "remove": _remove,
    "remove_private": _remove_private,
    "pause": _pause,
    "edit": _edit,
    "wall": _wall,
    "fill_disk": _fill_disk,
    "slow_disk": _slow_disk,
    "crash": _crash,
    "crash_at_commit": _crash_at_commit,
    "crash_at_step": _crash_at_step,
    "crash_at_expiry": _crash_at_expiry,
    "clean_on_full_disk": _clean_on_full_disk,
    "fill_disk_at_expiry": _fill_disk_at_expiry,
    "stop": _stop,
    **OF_PROGRAMS,
}
