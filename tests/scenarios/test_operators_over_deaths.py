"""Two operators deal with what fails in an ordered group, while members and the daemon are killed.

Redrives with and without canaries while their keys fail again, discards, records that are brought
forward, passed over, given up and delivered once more, all undone or stopped at moments that are
drawn. Then what failed is mended, and all comes back. Judged by what handlers said and by the files
that the daemon leaves: no record is lost, in two places or out of its key's order, and none is
given up that no operation named.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from dss_core.lane import DEAD, RETRY
from dssd.store.rows import OperationRow
from support.ordered_group import FILTER, OrderedGroup, Row, ordered_group
from support.ordered_members import Told, done, inversions, members
from support.proof_share import only_in_proof
from support.queue_history import Place, QueueHistory, history_of
from support.queue_operators import Operator, all_ended, bring_all_back
from support.started_program import StartedProgram

RECORDS, KEYS = 6_000, 60
OPERATIONS = 60
"""Of each operator."""
KILLED = {"member": 0.25, "daemon": 0.08}
"""How often somebody is killed behind an operation of one operator."""
PATIENCE_S = 900.0
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
    async with ordered_group(rows, on_dead_letter, patience_s=PATIENCE_S) as group:
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
    assert {kind.partition(" ")[0] for kind in did} >= {"dlq.redrive", "dlq.discard", "rq.skip"}
    assert history.wrong() == []
    assert [*left_open(history)] == []
    assert [*unjustified(history)] == []
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
    for each in history.origins():
        way = history.way(each.place)
        if history.is_open(way[-1]):
            yield f"{each.payload!r} is not done with: {way}"


def passed_over(history: QueueHistory) -> dict[int, int]:
    """What operators gave up, and from which moment on, by the clock of the members."""
    ahead_ns = time.time_ns() - time.monotonic_ns()
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
    rows = {each.number: each for each in history.files.operations}
    for each in history.records.values():
        source = each.source
        if source is None or source.level != DEAD or each.place.level != RETRY:
            continue
        assert each.entry is not None
        by = rows[each.entry.operation]
        named = history.named_by(by, DEAD) if by.kind == "dlq.redrive" else undone(history, by)
        keys = {history.records[place].key for place in named}
        if source not in named and each.key not in keys:
            yield f"{each.payload!r} came back by {by}"
    for row_ in history.files.operations:
        if row_.kind == "dlq.discard":
            kept = [place for place in history.named_by(row_, DEAD) if history.made_of.get(place)]
            yield from (f"{place} came back, and was given up by {row_}" for place in kept)


def undone(history: QueueHistory, by: OperationRow) -> set[Place]:
    """What the operation that it takes back gave up."""
    assert by.undoes, by
    return {
        each.place
        for each in history.records.values()
        if each.place.level == DEAD and each.entry is not None and each.entry.operation == by.undoes
    }
