"""A topic that an ordered group reads grows twice, while members and the daemon are killed and some
records are dead; `test_growing_flights` has a sample of the same without these.
"""

from collections.abc import Iterable

import pytest

from dss_client.changes import GrowTopic
from support.ordered_group import FILTER, OrderedGroup, Row, ordered_group
from support.ordered_members import Told, done, inversions, members
from support.proof_share import only_in_proof

RECORDS, KEYS, POISON_EACH = 100_000, 500, 100
PATIENCE_S = 300.0


def rows(numbers: Iterable[int]) -> list[Row]:
    return [
        (b"k%d" % (at % KEYS), b"%d %s" % (at, b"fine" if at % POISON_EACH else b"poison"))
        for at in numbers
    ]


async def grown(group: OrderedGroup, partitions: int, numbers: Iterable[int]) -> None:
    """The topic grows, and these are produced behind that."""
    change = GrowTopic("orders", partitions)
    begun = await group.client.operations.apply(change, reason="more")
    assert (await group.client.operations.ended(begun.number)).state == "done"
    await group.produce(rows(numbers))


@only_in_proof
@pytest.mark.slow("members and the daemon die, and are started again")
async def test_no_key_is_turned_over_though_the_topic_grows_twice_while_they_are_killed() -> None:
    told, third = Told(), RECORDS // 3
    poison = {*range(0, RECORDS, POISON_EACH)}
    async with ordered_group(rows(range(third)), "skip", patience_s=PATIENCE_S) as group:
        async with members(group.daemon.endpoint, FILTER, "cruel", told) as living:
            await told.reaches(third // 2)
            await grown(group, 6, range(third, 2 * third))
            living["m0"].kill()
            # Again, before the first of them is read to the end.
            await grown(group, 3, range(2 * third, RECORDS))
            await group.daemon.revive()
            await told.reaches(2 * third)
            living["m1"].kill()
            await group.settled(len(poison))
        await group.check_dead(poison, poison)
        await group.verified()
        letters = group.client.queues.dead_letters("g", whole=True)
        assert {each.stream.split("/")[1] async for each in letters} == {"0", "1", "2"}
        old = [e for e in await group.client.grants.list("g") if e.stream[:9] != "orders/2/"]
        assert {each.state for each in old} == {"finished"}
    assert done(told) == {*range(RECORDS)} - poison
    assert inversions(told, [at % KEYS for at in range(RECORDS)], passable=poison) == []
