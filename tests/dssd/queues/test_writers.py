import asyncio

from dss_core.lane import MAIN, RETRY
from dssd.machines.delivery.events import Moved
from support.held_lane import Holder, entries_of, piece


async def move_held(holder: Holder) -> asyncio.Task[Moved]:
    """The first holder's move, whose append is begun and not answered."""
    begun = holder.log.hold()
    moving = asyncio.create_task(holder.move(piece(0, 1), epoch=1))
    await begun.wait()
    return moving


async def others_turns() -> None:
    """All that can go on has gone on."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_append_begun_before_a_take_over_is_seen_by_the_next_holder(
    holder: Holder,
) -> None:
    await holder.publish(b"a")
    await holder.opened(epoch=1)
    moving = await move_held(holder)
    opening = asyncio.create_task(holder.opened(epoch=2))
    await others_turns()
    assert not opening.done()
    holder.log.go_on()
    assert [entry.source_offset for entry in entries_of(await opening, RETRY)] == [0]
    assert (await moving).failed == ()


async def test_an_append_whose_holder_goes_away_is_waited_for_all_the_same(holder: Holder) -> None:
    await holder.publish(b"a")
    await holder.opened(epoch=1)
    moving = await move_held(holder)
    moving.cancel()
    opening = asyncio.create_task(holder.opened(epoch=2))
    await others_turns()
    assert not opening.done()
    holder.log.go_on()
    assert len(entries_of(await opening, RETRY)) == 1


async def test_an_append_that_comes_after_a_take_over_is_refused(holder: Holder) -> None:
    await holder.publish(b"a", b"b")
    await holder.opened(epoch=1)
    await holder.opened(epoch=2)
    moved = await holder.move(piece(0, 2), epoch=1)
    assert (moved.entries, moved.lost, moved.failed) == ((), (), (piece(0, 2),))
    assert await holder.rows(RETRY) == []


async def test_a_holder_that_comes_late_opens_nothing(holder: Holder) -> None:
    await holder.opened(epoch=2)
    assert await holder.opened(epoch=1) == []
    await holder.publish(b"a")
    assert (await holder.move(piece(0, 1), epoch=2)).failed == ()


async def test_a_holder_that_is_overtaken_while_it_waits_opens_nothing(holder: Holder) -> None:
    await holder.publish(b"a")
    await holder.opened(epoch=1)
    moving = await move_held(holder)
    openings = [asyncio.create_task(holder.opened(epoch=epoch)) for epoch in (2, 3)]
    await others_turns()
    holder.log.go_on()
    second, third = await asyncio.gather(*openings)
    assert (second, len(entries_of(third, RETRY))) == ([], 1)
    await moving


async def test_nobody_appends_to_queues_that_nobody_opened(holder: Holder) -> None:
    await holder.publish(b"a")
    assert (await holder.move(piece(0, 1))).failed == (piece(0, 1),)


async def test_a_lane_whose_queues_were_removed_is_forgotten(holder: Holder) -> None:
    await holder.publish(b"a")
    await holder.opened(epoch=1)
    retry = holder.shelf.catalogue.topic_of(holder.levels[RETRY])
    stream = holder.shelf.catalogue.topic_of(holder.levels[MAIN])
    holder.writers.topic_changed(stream, removed=True)
    holder.writers.topic_changed(retry, removed=False)
    assert (await holder.move(piece(0, 1))).failed == ()
    holder.writers.topic_changed(retry, removed=True)
    assert (await holder.move(piece(0, 1))).failed == (piece(0, 1),)
