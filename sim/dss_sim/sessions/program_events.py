"""Events of the processes of programs, and bursts of records that fill their queues."""

from collections.abc import Callable, Mapping
from random import Random

from dss_sim.groups.plan import Timed
from dss_sim.sessions.client import NOTICED_US
from dss_sim.sessions.process import Process
from dss_sim.sessions.world import World

STAND_STILL_US = ((100_000, 4_000_000), (4_000_000, 14_000_000))
"""Shorter than what costs a client its streams, and longer."""
IN_HAND_RECORDS = (4, 16)
IN_HAND_US = (5_000, 300_000)
"""How long those records are under way when a process stops."""


def _process(world: World, timed: Timed) -> Process | None:
    return world.programs[timed.who % len(world.programs)].process if world.programs else None


def _burst(world: World, timed: Timed, chance: Random) -> None:
    streams = sorted(world.names)
    world.append(streams[timed.who % len(streams)], timed.amount)


def _kill(world: World, timed: Timed, chance: Random) -> None:
    process = _process(world, timed)
    if process is not None:
        world.disturb("kill_client")
        process.die(chance.choice((0, chance.randint(*NOTICED_US))))


def _stand_still(world: World, timed: Timed, chance: Random) -> None:
    """Freeze a process while it has records in hand; the daemon may take it for gone."""
    process = _process(world, timed)
    if process is None:
        return
    world.disturb("stand_still")
    for stream in sorted(world.names):
        world.append(stream, chance.randint(*IN_HAND_RECORDS))

    def freeze() -> None:
        if world.healed or process.is_over:
            return
        process.stand_still()
        if chance.random() < 0.5:
            process.part(chance.randint(*NOTICED_US) // 4)
        world.timeline.after(chance.randint(*chance.choice(STAND_STILL_US)), process.go_on)

    world.timeline.after(chance.randint(*IN_HAND_US), freeze)


def _part(world: World, timed: Timed, chance: Random) -> None:
    process = _process(world, timed)
    if process is not None:
        world.disturb("cut_pipe")
        process.part(chance.randint(*NOTICED_US))


def _run_anew(world: World, timed: Timed, chance: Random) -> None:
    process = _process(world, timed)
    if process is not None:
        world.disturb("run_anew")
        process.run_anew()


def _retire(world: World, timed: Timed, chance: Random) -> None:
    process = _process(world, timed)
    if process is not None:
        world.disturb("retire")
        process.retire()


def _second(world: World, timed: Timed, chance: Random) -> None:
    """Begin another process of the program while the earlier one works on."""
    if world.programs and not world.healed:
        world.disturb("second")
        world.programs[timed.who % len(world.programs)].begin()


OF_PROGRAMS: Mapping[str, Callable[[World, Timed, Random], None]] = {
    "burst": _burst,
    "kill": _kill,
    "stand_still": _stand_still,
    "part": _part,
    "run_anew": _run_anew,
    "retire": _retire,
    "second": _second,
}
