"""Single records once more: what a plan says of them, what it reopens, and how it is taken back."""

import pytest

from dss_core.changes import Direction, MoveCursors, RedeliverRecords, SkipRecords, ToEarliest, Undo
from dss_core.errors import IllegalArgument, NotUndoable, OffsetOutOfRange
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Progress
from dssd.leaders.lanes import queue_row
from dssd.machines.queues import QueueState
from dssd.store.port import Put
from support.laned_groups import laned
from support.operated_groups import Works
from support.queued_entries import Failed, append_entries


async def progress_of(works: Works, group: str = "g") -> Progress:
    [stream] = (await works.plant.registry.survey(works.plant.groups.find(group))).streams
    return stream.view.progress


async def consumed(works: Works, records: int) -> None:
    """A plain group that is done with so many records of one stream."""
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, records)
    await works.plant.group("$share/g/orders/#")
    await works.apply(MoveCursors("g", Direction.SKIP, to=ToEarliest()))
    await works.apply(SkipRecords("g", "orders/0/0", 0, records))


async def test_a_record_comes_once_more_and_no_cursor_moves(works: Works) -> None:
    await consumed(works, 5)
    plan = await works.operations.plan(RedeliverRecords("g", "orders/0/0", 2))
    assert plan.summary == (
        "redeliver records of g@orders/#: 1 of 1 stream; 1 record comes again, 0 passed over"
    )
    assert plan.effects[-1].startswith("No cursor moves")
    row = await works.apply(RedeliverRecords("g", "orders/0/0", 2))
    assert (row.state, row.kind) == ("done", "records.redeliver")
    assert await progress_of(works) == Progress(2, ((3, 5),))
    await works.apply(Undo(row.number))
    assert await progress_of(works) == Progress(5)


async def test_what_is_not_acknowledged_or_not_there_is_not_brought_again(works: Works) -> None:
    await consumed(works, 3)
    row = await works.apply(RedeliverRecords("g", "orders/0/0", 1))
    again = await works.operations.plan(RedeliverRecords("g", "orders/0/0", 1))
    assert again.nothing_to_do
    with pytest.raises(OffsetOutOfRange):
        await works.operations.plan(RedeliverRecords("g", "orders/0/0", 3))
    with pytest.raises(IllegalArgument):
        await works.operations.plan(RedeliverRecords("g", "orders/0/0", 0, 0))
    await works.apply(Undo(row.number))


async def test_a_skip_of_records_is_taken_back_also_after_later_operations(works: Works) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 6)
    await works.plant.group("$share/g/orders/#")
    await works.apply(MoveCursors("g", Direction.REWIND, to=ToEarliest()))
    skipped = await works.apply(SkipRecords("g", "orders/0/0", 1, 2))
    later = await works.apply(SkipRecords("g", "orders/0/0", 4))
    undo = await works.apply(Undo(skipped.number))
    assert undo.state == "done"
    assert await progress_of(works) == Progress(0, ((4, 5),))
    await works.apply(Undo(later.number))
    assert await progress_of(works) == Progress(0)
    rewound = await works.apply(MoveCursors("g", Direction.SKIP, to=ToEarliest()))
    with pytest.raises(NotUndoable):
        await works.operations.plan(Undo(rewound.number))


async def test_a_rewind_says_what_of_it_waits_in_queues_and_what_is_dead(works: Works) -> None:
    group, _ = await laned(works)
    [main] = works.plant.catalogue.get("orders").streams()
    await works.plant.publish(main, 5)
    queues = works.plant.catalogue.queues_of(group.group_id, main)
    assert queues is not None
    await append_entries(works.plant, queues[RETRY - 1], [Failed(1)])
    await append_entries(works.plant, queues[DEAD - 1], [Failed(2), Failed(3)])
    reported = (QueueState(queue, applied_end=end) for end, queue in enumerate(queues, 1))
    await works.plant.store.commit([Put(queue_row(group, each)) for each in reported])
    await works.apply(SkipRecords("g", "orders/0/0", 0, 5))
    rewind = await works.operations.plan(MoveCursors("g", Direction.REWIND, to=ToEarliest()))
    told = " ".join(rewind.effects)
    assert "1 of them waits in the retry queues, and comes from there, once" in told
    assert "2 of them are among the dead letters too, and come from the stream besides" in told
    assert "dssctl dlq discard 'g@orders/#'" in told
