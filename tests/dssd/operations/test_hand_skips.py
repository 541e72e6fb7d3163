"""What a plan says of records that were skipped by hand and come again."""

import pytest

from dss_core.changes import (
    Change,
    Direction,
    MoveCursors,
    RecordSpan,
    SkipRecords,
    ToEarliest,
    ToOffset,
    Undo,
)
from dssd.machines.start_point import Earliest
from support.operated_groups import Works

ALL = MoveCursors("billing", Direction.REWIND, to=ToEarliest())
FIRST = "orders/0/0"


def to(direction: Direction, offset: int) -> MoveCursors:
    return MoveCursors("billing", direction, (FIRST,), ToOffset(offset))


@pytest.fixture
async def skipped(works: Works) -> Works:
    """A group of two streams, behind records of both that were skipped by hand."""
    for stream in await works.plant.topic("orders", 2):
        await works.plant.publish(stream, 100)
    await works.plant.group("$share/billing/orders/#", Earliest())
    more = (RecordSpan("orders/0/1", 70, 4),)
    await works.apply(SkipRecords("billing", FIRST, 7, 2, more))
    await works.apply(MoveCursors("billing", Direction.SKIP, to=ToOffset(80), streams=(FIRST,)))
    return works


async def said(works: Works, change: Change) -> list[str]:
    plan = await works.operations.plan(change)
    return [effect for effect in plan.effects if "by hand" in effect]


async def test_a_rewind_says_how_many_come_again_and_the_first_of_them(skipped: Works) -> None:
    assert await said(skipped, to(Direction.REWIND, 8)) == [
        "1 record that was skipped by hand comes again: orders/0/0 at 8."
    ]
    [told] = await said(skipped, ALL)
    lowest = "orders/0/0 at 7, 8; orders/0/1 at 70, 71, 72 and 1 more."
    assert told == f"6 records that were skipped by hand come again: {lowest}"


@pytest.mark.parametrize("change", [to(Direction.REWIND, 9), to(Direction.SKIP, 90)])
async def test_nothing_is_said_where_none_comes_again(skipped: Works, change: Change) -> None:
    assert await said(skipped, change) == []


async def test_what_came_again_meanwhile_is_not_told_a_second_time(skipped: Works) -> None:
    await skipped.apply(to(Direction.REWIND, 0))
    await skipped.apply(to(Direction.SKIP, 80))
    assert await said(skipped, to(Direction.REWIND, 0)) == []


async def test_an_undo_of_the_skip_itself_says_it_in_its_own_words(skipped: Works) -> None:
    again = await skipped.apply(SkipRecords("billing", FIRST, 90))
    assert await said(skipped, Undo(again.number)) == []
    await skipped.apply(Undo(again.number))
    await skipped.apply(to(Direction.SKIP, 100))
    [told] = await said(skipped, to(Direction.REWIND, 0))
    assert "orders/0/0 at 7, 8." in told
