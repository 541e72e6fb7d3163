"""Two operators deal with what fails in an ordered group, while members and the daemon are killed.

Redrives with and without canaries while their keys fail again, discards, records that are brought
forward, passed over, given up and delivered once more, all undone or stopped at moments that are
drawn. Then what failed is mended, and all comes back. Judged by what handlers said and by the files
that the daemon leaves: no record is lost, in two places or out of its key's order, and none is
given up that no operation named.
"""

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from random import Random

import pytest

from dss_core.lane import DEAD, RETRY
from dssd.store.rows import OperationRow
from support.ordered_group import FILTER, OrderedGroup, Row, ordered_group
from support.ordered_members import BEGAN, Told, done, inversions, members
from support.proof_share import only_in_proof
from support.queue_history import Found, Place, QueueHistory, history_of
from support.queue_operators import Operator, all_ended, bring_all_back
from support.started_program import StartedProgram

HOARDING = Path(__file__).parent / "programs" / "hoarding_daemon.py"
RECORDS, KEYS = 6_000, 60
OPERATIONS = 150
"""Of each operator."""
KILLED = {"member": 0.15, "daemon": 0.04}
"""How often somebody is killed behind an operation of one operator."""
PATIENCE_S = 900.0
DONE = ("dlq.redrive", "dlq.discard", "rq.retry-now", "rq.skip", "rq.dead", "records.redeliver")
"""Each of these at least once."""
GIVES_UP = {"dlq.discard": DEAD, "rq.skip": RETRY}

pytestmark = [
    pytest.mark.slow("members and the daemon die, and are started again"),
    only_in_proof,
]


def key_of(number: int) -> bytes:
    return b"k%d" % (number % KEYS)


def row(number: int) -> Row:
    kind = "poison" if number % 41 == 7 else "once" if number % 13 == 5 else "fine"
    return key_of(number), f"{number} {kind}".encode()


class Killer:
    """Kills members and the daemon, one after the other."""

    def __init__(
        self, group: OrderedGroup, living: dict[str, StartedProgram], chance: Random
    ) -> None:
        self.killed: Counter[str] = Counter()
        self._group = group
        self._living = living
        self._chance = chance
        self._turn = asyncio.Lock()

    async def perhaps(self) -> None:
        if self._living and self._chance.random() < KILLED["member"]:
            self._living[self._chance.choice(sorted(self._living))].kill()
            self.killed["member"] += 1
        if self._chance.random() < KILLED["daemon"]:
            async with self._turn:
                await self._group.daemon.revive()
            self.killed["daemon"] += 1


async def operate(operator: Operator, killer: Killer) -> None:
    for _ in range(OPERATIONS):
        await operator.act()
        await killer.perhaps()


@pytest.mark.parametrize(("seed", "on_dead_letter"), [(40, "block"), (41, "block"), (42, "skip")])
async def test_no_record_is_lost_doubled_or_turned_over_by_operators(
    seed: int, on_dead_letter: str
) -> None:
    told, keys = Told(), [b"k%d" % each for each in range(KEYS)]
    rows = [row(number) for number in range(RECORDS)]
    async with ordered_group(
        rows, on_dead_letter, patience_s=PATIENCE_S, program=(str(HOARDING),)
    ) as group:
        endpoint = group.daemon.endpoint
        operators = [
            Operator(group.client, Random(f"{seed}/{each}"), keys) for each in ("ann", "bob")
        ]
        async with members(endpoint, FILTER, "cruel", told) as living:
            killer = Killer(group, living, Random(f"{seed}/killer"))
            async with asyncio.TaskGroup() as tasks:
                for each in operators:
                    tasks.create_task(operate(each, killer), name="operator")
        async with members(endpoint, FILTER, "kind", told):
            await all_ended(group.client)
            await bring_all_back(group.client)
        await group.verified()
        assert await group.daemon.process.stop() == 0
        history = await history_of(group.daemon.data, "g", "orders")
    did = sum((each.did for each in operators), Counter[str]())
    assert min(killer.killed.values()) > 0
    assert {kind for kind in did if kind.endswith(" done")} >= {f"{each} done" for each in DONE}, (
        did
    )
    assert history.wrong() == []
    assert [*left_open(history)] == []
    assert [*unjustified(history)] == []
    assert [*came_again(history, told)] == []
    passed = passed_over(history)
    lost = {*range(RECORDS)} - done(told) - passed.keys()
    assert not lost, f"{lost}: {[history.way(each) for each in places_of(history, lost)]}"
    if on_dead_letter == "block":
        assert inversions(told, [key_of(at) for at in range(RECORDS)], passed=passed) == []


def number_at(history: QueueHistory, place: Place) -> int:
    return int(history.records[place].payload.split()[0])


def places_of(history: QueueHistory, numbers: set[int]) -> Iterator[Place]:
    return (each.place for each in history.origins() if number_at(history, each.place) in numbers)


def left_open(history: QueueHistory) -> Iterator[str]:
    for each in history.records.values():
        if history.is_open(each.place):
            yield f"{each.payload!r} is not done with at {each.place}"


def clock_ahead_ns() -> int:
    """So far the clock of the daemon's rows is ahead of the members' one."""
    return time.time_ns() - time.monotonic_ns()


def passed_over(history: QueueHistory) -> dict[int, int]:
    """What operators gave up, and from which moment on, by the clock of the members."""
    ahead_ns = clock_ahead_ns()
    passed: dict[int, int] = {}
    for each in history.files.operations:
        if each.kind in GIVES_UP:
            at_ns = each.applied_at_ms * 1_000_000 - ahead_ns
            for place in history.named_by(each, GIVES_UP[each.kind]):
                number = number_at(history, place)
                passed[number] = min(passed.get(number, at_ns), at_ns)
    return passed


def unjustified(history: QueueHistory) -> Iterator[str]:
    """What came back from the dead letters though no operation named it or a record of its key."""
    back: defaultdict[int, list[Found]] = defaultdict(list)
    for each in history.records.values():
        if each.source is not None and (each.source.level, each.place.level) == (DEAD, RETRY):
            assert each.entry is not None
            back[each.entry.operation].append(each)
    for row_ in history.files.operations:
        is_redrive = row_.kind == "dlq.redrive"
        named = history.named_by(row_, DEAD) if is_redrive else undone(history, row_)
        keys = {history.records[place].key for place in named}
        for each in back.pop(row_.number, ()):
            if each.source not in named and each.key not in keys:
                yield f"{each.payload!r} came back by {row_}"
    yield from (f"{each.payload!r} came back by nobody" for each in chain(*back.values()))


def came_again(history: QueueHistory, told: Told) -> Iterator[str]:
    """What began anew after a discard of it had ended, but for as many as that said had left."""
    began = {number: at_ns for at_ns, _, number, what in told.lines() if what == BEGAN}
    redelivered = {number_at(history, place) for place in history.redelivered()}
    for each in history.files.operations:
        if each.kind == "dlq.discard" and each.state in ("done", "failed"):
            assert each.ended_at_ms is not None
            ended_ns = (each.ended_at_ms + 1) * 1_000_000 - clock_ahead_ns()
            named = {number_at(history, place) for place in history.named_by(each, DEAD)}
            again = {at for at in named - redelivered if began.get(at, 0) > ended_ns}
            if len(again) > json.loads(each.after).get("had_left", 0):
                yield f"{sorted(again)} came again, and were given up by {each}"


def undone(history: QueueHistory, by: OperationRow) -> set[Place]:
    """What the operation that it takes back gave up."""
    return (
        set()
        if not by.undoes
        else {
            each.place
            for each in history.records.values()
            if each.place.level == DEAD
            and each.entry is not None
            and each.entry.operation == by.undoes
        }
    )
