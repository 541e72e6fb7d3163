"""Many keys of an ordered group, some of them poisoned, while members and the daemon are killed."""

from collections.abc import Iterable, Sequence
from random import Random

import pytest

from dss_client.changes import RedriveDeadLetters
from support.ordered_group import FILTER, Row, ordered_group
from support.ordered_members import FAILED, Told, done, inversions, kill_at, members
from support.proof_share import share

RECORDS, OF_KEY = share(3_000, 1_000_000), share(30, 100)
KEYS = RECORDS // OF_KEY
POISON = share(20, 100)
"""Of so many keys one has a record that always fails, a quarter on; of so many records one fails
once."""
KILLS, KILLS_OF_REDRIVE = share(3, 60), share(2, 12)
REDRIVE_RATE = share(2_000, 500)
PATIENCE_S = share(60.0, 3_600.0)

pytestmark = pytest.mark.slow("members and the daemon die, and are started again")


def key_of(number: int) -> int:
    return number % KEYS


def is_poison(number: int) -> bool:
    return key_of(number) % POISON == 0 and number // KEYS == OF_KEY // 4


def rows(numbers: Iterable[int]) -> list[Row]:
    return [(b"k%d" % key_of(each), payload(each)) for each in numbers]


def payload(number: int) -> bytes:
    kind = "poison" if is_poison(number) else "once" if number % POISON == 7 else "fine"
    return f"{number} {kind}".encode()


def moments(chance: Random, kills: int, first: int, last: int) -> Sequence[int]:
    """So many counts of what was done, in their order."""
    return sorted(chance.sample(range(first, last), kills))


async def test_no_key_is_turned_over_by_deaths_nor_by_its_redrive() -> None:
    chance, told = Random(30), Told()
    poison = [number for number in range(RECORDS) if is_poison(number)]
    first_dead = {key_of(number): number for number in poison}
    dead = [at for at in range(RECORDS) if at >= first_dead.get(key_of(at), RECORDS)]
    async with ordered_group(rows(range(RECORDS)), "block", patience_s=PATIENCE_S) as group:
        endpoint = group.daemon.endpoint
        kills = moments(chance, KILLS, RECORDS // 100, (RECORDS - len(dead)) * 19 // 20)
        async with members(endpoint, FILTER, "cruel", told) as living:
            killed = await kill_at(kills, told, living, group.daemon, chance)
            await group.settled(len(dead))
        assert done(told) == {*range(RECORDS)} - {*dead}
        await group.check_dead(dead, poison)
        await group.verified()

        await group.produce(rows(range(RECORDS, RECORDS + KEYS)))
        redrive = RedriveDeadLetters("g", rate=REDRIVE_RATE)
        await group.client.operations.apply(redrive, reason="mended")
        before = told.counts["done"]
        kills = moments(chance, KILLS_OF_REDRIVE, before, before + KEYS + len(dead) * 9 // 10)
        async with members(endpoint, FILTER, "kind", told) as living:
            killed += await kill_at(kills, told, living, group.daemon, chance)
            await group.settled(0)
        await group.verified()
    assert done(told) == {*range(RECORDS + KEYS)}
    assert inversions(told, [key_of(number) for number in range(RECORDS + KEYS)]) == []
    assert told.numbers[FAILED].keys() >= {*poison}
    assert min(killed.values()) > 0


async def test_where_dead_letters_are_skipped_their_keys_go_on_in_order_over_deaths() -> None:
    chance, told = Random(31), Told()
    poison = {number for number in range(RECORDS) if is_poison(number)}
    async with ordered_group(
        rows(range(RECORDS)), "skip", patience_s=PATIENCE_S, protocol="lease"
    ) as group:
        kills = moments(chance, KILLS, RECORDS // 100, RECORDS * 19 // 20)
        async with members(group.daemon.endpoint, FILTER, "cruel", told) as living:
            await kill_at(kills, told, living, group.daemon, chance)
            await group.settled(len(poison))
        await group.check_dead(poison, poison)
        await group.verified()
    assert done(told) == {*range(RECORDS)} - poison
    keys = [key_of(number) for number in range(RECORDS)]
    assert inversions(told, keys, passable=poison) == []
