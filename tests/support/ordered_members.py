"""Members of an ordered group as processes that die and are started again, and their judge.

Invariant: the judge uses only the reports of handlers, with their times on the machine's one clock,
never what the daemon or the client says about itself.
"""

import asyncio
from array import array
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from heapq import merge
from pathlib import Path
from random import Random

from support.revived_daemon import RevivedDaemon
from support.started_program import StartedProgram, started

PROGRAM = Path(__file__).parents[1] / "scenarios" / "programs" / "ordered_member.py"
MEMBERS = 3
BEGAN, DONE, FAILED, DIED = WORDS = ("began", "done", "failed", "died")
PASSED = "passed"
"""An operator gave a record up."""
NOBODY: Mapping[int, int] = {}

Line = tuple[int, int, int, str]
"""A time, the life that reported it, a number and what happened to the record."""


class Life:
    """The reports of one process, some bytes a line: a proof has millions."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._said = array("q")

    def note(self, what: str, number: int, at_ns: int) -> None:
        """Add a report."""
        self._said.extend((at_ns, number * len(WORDS) + WORDS.index(what)))

    def lines(self) -> Iterator[Line]:
        """Its reports, in order."""
        for at in range(0, len(self._said), 2):
            number, what = divmod(self._said[at + 1], len(WORDS))
            yield self._said[at], self._number, number, WORDS[what]


class Told:
    """The reports of all members of a group, over all of their lives."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.numbers: dict[str, Counter[int]] = {FAILED: Counter(), DIED: Counter()}
        """How often each record failed, and how often a process died of it."""
        self.lives: list[Life] = []
        self._heard = asyncio.Event()

    async def hear(self, process: StartedProgram) -> None:
        """Read the reports of a new life, to its end."""
        life = Life(len(self.lives))
        self.lives.append(life)
        assert process.stdout is not None
        async for line in process.stdout:
            what, number, at_ns = line.decode().split()
            life.note(what, int(number), int(at_ns))
            self.counts[what] += 1
            if what in self.numbers:
                self.numbers[what][int(number)] += 1
            self._heard.set()

    async def reaches(self, done: int) -> None:
        """Wait until this many hand-outs have ended."""
        while self.counts[DONE] < done:
            self._heard.clear()
            await self._heard.wait()

    def lines(self) -> Iterator[Line]:
        """All reports, by their times."""
        return merge(*(each.lines() for each in self.lives))


@asynccontextmanager
async def members(
    endpoint: str, filter_: str, mood: str, told: Told
) -> AsyncIterator[dict[str, StartedProgram]]:
    """Members by their names, each started again whenever it dies."""
    living: dict[str, StartedProgram] = {}

    async def live(name: str) -> None:
        while True:
            program = living[name] = await started(
                str(PROGRAM), endpoint, name, filter_, mood, pipes=["stdout"]
            )
            try:
                await told.hear(program)
                await program.wait()
            finally:
                program.kill()
                await program.wait()

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(live(f"m{at}"), name=f"m{at}") for at in range(MEMBERS)]
        yield living
        for each in running:
            each.cancel()


async def kill_at(
    done: Sequence[int],
    told: Told,
    living: dict[str, StartedProgram],
    daemon: RevivedDaemon,
    chance: Random,
) -> Counter[str]:
    """Kill somebody each time that a number of hand-outs have ended; the counts say how often a
    member dies, and the daemon."""
    killed: Counter[str] = Counter()
    for each in done:
        await told.reaches(each)
        name = chance.choice(sorted(living))
        whom = chance.choice(("member", "member", "daemon", "both"))
        if whom != "daemon":
            living[name].kill()
        if whom != "member":
            await daemon.revive()
        killed += Counter({"member": whom != "daemon", "daemon": whom != "member"})
    return killed


def inversions(
    told: Told,
    keys: Sequence[Hashable | None],
    passable: Collection[int] = (),
    passed: Mapping[int, int] = NOBODY,
) -> list[str]:
    """Records that were handled out of order, or at the same time as another one of their key, by
    number and key.

    Records without a key have no order. A ``passable`` record no longer holds up its key once it
    failed, and neither do those that operators ``passed`` over, from a given time on. A life that
    did not end what it began is dead, and handled nothing at the same time as others.
    """
    order: defaultdict[Hashable, list[int]] = defaultdict(list)
    for number, key in enumerate(keys):
        order[key].append(number)
    firsts: defaultdict[Hashable, int] = defaultdict(int)
    """For each key, how many of its records, from the first on, no longer hold it up."""
    settled = bytearray(len(keys))
    out: defaultdict[Hashable, dict[int, bool]] = defaultdict(dict)
    """For each key, the lives that handle a record of it, and whether another life got one
    meanwhile."""
    wrong: list[str] = []
    by_operators = sorted((at_ns, 0, number, PASSED) for number, at_ns in passed.items())
    for _, life, number, what in merge(told.lines(), by_operators):
        key = keys[number]
        if key is None:
            continue
        of_key, with_lives = order[key], out[key]
        if what == BEGAN:
            if firsts[key] < len(of_key) and of_key[firsts[key]] < number:
                wrong.append(f"{number} of {key} came before {of_key[firsts[key]]}")
            if life in with_lives:
                wrong.append(f"{number} of {key} came while another was out")
            with_lives.update(dict.fromkeys(with_lives, True))
            with_lives[life] = False
            continue
        if what != PASSED and with_lives.pop(life, True):
            wrong.append(f"{number} of {key} was out beside another")
        settled[number] |= what in (DONE, PASSED) or number in passable
        while firsts[key] < len(of_key) and settled[of_key[firsts[key]]]:
            firsts[key] += 1
    return wrong


def done(told: Told) -> set[int]:
    """The records that were handled at least once."""
    return {number for _, _, number, what in told.lines() if what == DONE}
