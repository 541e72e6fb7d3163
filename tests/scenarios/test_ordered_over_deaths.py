"""An ordered group whose handler kills its process for one key, and whose member stands still."""

from pathlib import Path

import pytest

from support.member_process import PATIENCE_S, member
from support.ordered_group import DEATHS_MAX, FILTER, Row, ordered_group
from support.ordered_members import DIED, Told, done, inversions, members
from support.proof_share import only_in_proof, share

PROGRAM = Path(__file__).parent / "programs" / "member.py"
KEYS, RECORDS, KILLER = 20, 400, 60


def key_of(number: int) -> int:
    return number % KEYS


@pytest.mark.slow("members die of a record, and are started again")
@pytest.mark.parametrize("on_dead_letter", share(["block"], ["block", "skip"]))
async def test_a_record_that_kills_is_dead_soon_and_only_its_own_key_waits(
    on_dead_letter: str,
) -> None:
    told = Told()
    rows: list[Row] = [
        (b"k%d" % key_of(at), b"%d %s" % (at, b"kills" if at == KILLER else b"fine"))
        for at in range(RECORDS)
    ]
    dead = {KILLER}
    if on_dead_letter == "block":
        dead = {at for at in range(KILLER, RECORDS) if key_of(at) == key_of(KILLER)}
    async with ordered_group(rows, on_dead_letter, patience_s=PATIENCE_S) as group:
        async with members(group.daemon.endpoint, FILTER, "cruel", told):
            await group.settled(len(dead))
        await group.check_dead(dead, ())
        await group.verified()
    assert done(told) == {*range(RECORDS)} - dead
    assert told.numbers[DIED].keys() == {KILLER}
    assert told.numbers[DIED][KILLER] <= DEATHS_MAX
    assert inversions(told, [key_of(at) for at in range(RECORDS)], passable={KILLER}) == []


@only_in_proof
@pytest.mark.slow("a lease has to end")
async def test_who_stood_still_hands_out_nothing_of_what_was_moved_meanwhile() -> None:
    rows: list[Row] = [(b"moved" if at % 2 else b"other", b"%d" % at) for at in range(12)]
    moved = [at for at in range(12) if at % 2]
    async with (
        ordered_group(rows, "block", patience_s=PATIENCE_S) as group,
        member(PROGRAM, group.daemon.endpoint, "sleeps", FILTER, "--hold", "0,2") as sleeps,
    ):
        await sleeps.told("holding")
        assert {int(each.payload) for each in sleeps.records} == {0, 1}
        sleeps.freeze()
        taken: list[int] = []
        async with group.client.subscribe(FILTER) as subscription:
            for record in await subscription.fetch(2, PATIENCE_S):
                if record.key == b"moved":
                    # So long that all behind it is moved, and the other is awake again.
                    await record.nak(delay=2.0)
                else:
                    await record.ack()
            async for record in subscription:
                await record.ack()
                taken.append(int(record.payload))
                if len(taken) == 5:
                    break
            await group.retrying(len(moved))
            sleeps.tell("go")
            sleeps.thaw()
            await subscription.drain()
        await group.settled(0)
        assert taken == [2, 4, 6, 8, 10]
        assert [int(each.payload) for each in sleeps.records[2:]] == moved
        await group.verified()
