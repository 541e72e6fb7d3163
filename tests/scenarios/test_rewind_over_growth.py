"""An ordered group is rewound over a switch while its members live, and that is taken back."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator

import pytest

import dss_client
from dss_client import Client, Record, Reject
from dss_client.changes import GrowTopic, MoveCursors, Undo
from support.ordered_group import FILTER, OrderedGroup, Row, ordered_group
from support.proof_share import only_in_proof

KEYS = 40
OLD, NEW = 400, 200
"""Records of the first storage topic, and of the next one."""
POISON = {OLD - 40 + 7, OLD + 11}
"""Of two keys: what a handler rejects, so that all behind it waits."""
PATIENCE_S = 60.0


def rows(first: int, count: int) -> list[Row]:
    return [(b"k%d" % (at % KEYS), b"%d" % at) for at in range(first, first + count)]


class Seen:
    """What handlers were given, by key."""

    def __init__(self) -> None:
        self.by_key: defaultdict[int, list[int]] = defaultdict(list)
        self.count = 0
        self._heard = asyncio.Event()

    async def __call__(self, record: Record) -> None:
        number = int(record.payload)
        self.by_key[number % KEYS].append(number)
        self.count += 1
        self._heard.set()
        if number in POISON:
            raise Reject("poison")

    async def reaches(self, count: int) -> None:
        """Wait until so many came."""
        while self.count < count:
            self._heard.clear()
            await self._heard.wait()


async def applied(client: Client, change: object) -> int:
    begun = await client.operations.apply(change, reason="again")  # type: ignore[arg-type]
    ended = await client.operations.ended(begun.number)
    assert ended.state == "done", ended
    return begun.number


async def consume(client: Client, seen: Seen) -> None:
    async with client.subscribe(FILTER) as subscription:
        await subscription.run(seen)


@pytest.fixture
async def group() -> AsyncIterator[OrderedGroup]:
    async with ordered_group(rows(0, OLD), "block", patience_s=PATIENCE_S) as made:
        yield made


def held_up(number: int) -> bool:
    """Whether it waits behind a dead letter of its key."""
    return any(number % KEYS == each % KEYS and number > each for each in POISON)


@only_in_proof
@pytest.mark.slow("a group is read twice, over a switch")
async def test_what_comes_again_is_in_order_and_a_key_that_was_held_up_stays_so(
    group: OrderedGroup,
) -> None:
    client, seen = group.client, Seen()
    waiting = [at for at in range(OLD + NEW) if at in POISON or held_up(at)]
    async with (
        asyncio.TaskGroup() as tasks,
        dss_client.connect(endpoint=group.daemon.endpoint) as other,
    ):
        runs = [tasks.create_task(consume(each, seen)) for each in (client, other)]
        await seen.reaches(OLD // 2)
        await applied(client, GrowTopic("orders", 6))
        await group.produce(rows(OLD, NEW))
        await group.settled(len(waiting))
        first = {key: [*numbers] for key, numbers in seen.by_key.items()}
        seen.by_key.clear()
        seen.count = 0
        streams = tuple(f"orders/0/{at}" for at in range(4))
        back = MoveCursors("g", "rewind", to="earliest", streams=streams)
        plan = await client.operations.plan(back)
        assert any("are closed, and wait until" in each for each in plan.effects)
        number = await applied(client, back)
        await group.settled(len(waiting))
        # Of the old storage topic all comes again but what waits, and nothing of the new one.
        again = {
            key: [at for at in numbers if at < OLD and at not in POISON]
            for key, numbers in first.items()
        }
        assert {key: numbers for key, numbers in seen.by_key.items() if numbers} == again
        await group.check_dead(waiting, ())
        await group.verified()
        await applied(client, Undo(number))
        states = {each.state for each in await client.grants.list("g")}
        assert "closed" not in states
        seen.by_key.clear()
        await group.produce(rows(OLD + NEW, KEYS))
        free = [at for at in range(KEYS) if not held_up(OLD + NEW + at)]
        await group.settled(len(waiting) + KEYS - len(free))
        assert sorted(key for key, numbers in seen.by_key.items() if numbers) == free
        for run in runs:
            run.cancel()
