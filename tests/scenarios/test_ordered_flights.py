"""All flights in an ordered group: each aeroplane's in their order, over deaths and a redrive."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow.parquet
import pytest

from dss_client.changes import RedriveDeadLetters
from support.ordered_group import DEATHS_MAX, FILTER, ordered_group
from support.ordered_members import DIED, Told, done, inversions, kill_at, members
from support.proof_share import only_in_proof

FLIGHTS = Path(__file__).resolve().parents[2] / "examples" / "flights.parquet"
COUNT, KEYLESS = 336_776, 2_512
"""How many flights, and of how many of them the aeroplane is not known."""
KILLER = "N807AW"
"""It flew twice."""
POISON_EACH, ONCE_EACH = 4_001, 101
KILLS, KILLS_OF_REDRIVE = 30, 8
REDRIVE_RATE = 2_000
PATIENCE_S = 1_800.0


def kind(number: int, tailnum: str | None) -> str:
    if tailnum == KILLER:
        return "kills"
    if number % POISON_EACH == POISON_EACH - 1:
        return "poison"
    return "once" if number % ONCE_EACH == 0 else "fine"


def dead_of(keys: Sequence[str | None], kinds: Sequence[str]) -> tuple[set[int], set[int]]:
    """What is dead in the end, and what of that fails by itself."""
    blocked: set[str] = set()
    dead, first = set(), set()
    for number, (key, what) in enumerate(zip(keys, kinds, strict=True)):
        if key in blocked:
            dead.add(number)
        elif what in ("kills", "poison"):
            dead.add(number)
            first.add(number)
            blocked |= set() if key is None else {key}
    return dead, first


@only_in_proof
@pytest.mark.slow("members and the daemon die, and are started again")
async def test_flights_of_each_aeroplane_come_in_order_to_the_last_one() -> None:
    chance, told = Random(2013), Told()
    flights = pyarrow.parquet.read_table(FLIGHTS).slice(0, COUNT).to_pylist()
    keys: list[str | None] = [each["tailnum"] for each in flights]
    kinds = [kind(number, key) for number, key in enumerate(keys)]
    rows = [
        (None if key is None else key.encode(), f"{at} {kinds[at]} {json.dumps(each)}".encode())
        for at, (key, each) in enumerate(zip(keys, flights, strict=True))
    ]
    assert (len(rows), keys.count(None)) == (COUNT, KEYLESS)
    dead, first = dead_of(keys, kinds)
    async with ordered_group(rows, "block", patience_s=PATIENCE_S) as group:
        endpoint, ready = group.daemon.endpoint, COUNT - len(dead)
        kills = sorted(chance.sample(range(ready // 50, ready * 9 // 10), KILLS))
        async with members(endpoint, FILTER, "cruel", told) as living:
            killed = await kill_at(kills, told, living, group.daemon, chance)
            await group.settled(len(dead))
        assert done(told) == {*range(COUNT)} - dead
        await group.check_dead(dead, first)
        # The flights behind the first one of the killer follow it, and kill nobody.
        [(killer, deaths)] = told.numbers[DIED].items()
        assert killer in first
        # A death that the daemon did not live to count is not counted.
        assert 0 < deaths <= DEATHS_MAX + killed["daemon"]
        await group.verified()

        redrive = RedriveDeadLetters("g", rate=REDRIVE_RATE)
        await group.client.operations.apply(redrive, reason="mended")
        before = told.counts["done"]
        kills = sorted(chance.sample(range(before, before + len(dead) * 4 // 5), KILLS_OF_REDRIVE))
        async with members(endpoint, FILTER, "kind", told) as living:
            await kill_at(kills, told, living, group.daemon, chance)
            await group.settled(0)
        await group.verified()
    assert done(told) == {*range(COUNT)}
    assert inversions(told, keys) == []
