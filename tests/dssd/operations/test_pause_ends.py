"""Pauses that end at their time, over real leaders, a log and a store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from dss_core.changes import PauseGroup, ResumeGroup
from dssd.machines.start_point import Earliest
from dssd.operations.pause_ends import PauseEnds
from dssd.store.rows import GroupRow
from support.operated_groups import Works

SOON_MS = 400
HOUR_MS = 3_600_000


@asynccontextmanager
async def ending(works: Works) -> AsyncIterator[None]:
    """Pauses end by themselves meanwhile."""
    plant = works.plant
    ends = PauseEnds(plant.store, plant.groups, works.operations, plant.clock)
    task = asyncio.create_task(ends.run())
    await asyncio.sleep(0)
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def made(works: Works) -> None:
    await works.plant.topic("orders", 1)
    await works.plant.group("$share/billing/orders/#", Earliest())


def group(works: Works) -> GroupRow:
    return works.plant.groups.find("billing")


def soon(works: Works, ms: int = SOON_MS) -> PauseGroup:
    return PauseGroup("billing", works.plant.clock.wall_ms() + ms)


async def test_a_pause_ends_at_its_time_by_an_operation_of_the_daemon(works: Works) -> None:
    await made(works)
    async with ending(works):
        assert (await works.apply(soon(works))).state == "done"
        await works.until(lambda: not group(works).paused)
    newest = next(iter(works.operations.newest()))
    assert (newest.kind, newest.principal) == ("groups.resume", "dssd")
    assert newest.reason.startswith("the pause was to end at 20")


async def test_a_pause_that_was_to_end_while_no_daemon_ran_ends_with_the_next_start(
    works: Works,
) -> None:
    await made(works)
    await works.apply(soon(works, HOUR_MS))
    works.plant.clock.ahead_ms += 2 * HOUR_MS
    await works.restart()
    async with ending(works):
        await works.until(lambda: not group(works).paused)


async def test_a_jump_of_the_wall_clock_ends_no_pause(works: Works) -> None:
    await made(works)
    async with ending(works):
        await works.apply(soon(works, HOUR_MS))
        works.plant.clock.ahead_ms += 2 * HOUR_MS
        await works.plant.group("$share/other/orders/#", Earliest())
        await works.apply(PauseGroup("other"))
        assert group(works).paused


async def test_a_pause_that_was_given_a_later_end_or_none_outlives_its_first_one(
    works: Works,
) -> None:
    await made(works)
    await works.plant.group("$share/other/orders/#", Earliest())
    async with ending(works):
        await works.apply(soon(works))
        await works.apply(PauseGroup("billing"))
        await works.apply(PauseGroup("other", works.plant.clock.wall_ms() + 2 * SOON_MS))
        await works.until(lambda: not works.plant.groups.find("other").paused)
        assert group(works).paused


async def test_a_pause_that_was_resumed_is_not_ended_once_more(works: Works) -> None:
    await made(works)
    await works.plant.group("$share/other/orders/#", Earliest())
    async with ending(works):
        await works.apply(soon(works))
        resumed = await works.apply(ResumeGroup("billing"))
        await works.apply(PauseGroup("other", works.plant.clock.wall_ms() + 2 * SOON_MS))
        await works.until(lambda: not works.plant.groups.find("other").paused)
    of_billing = [row for row in works.operations.newest() if row.subject.startswith("billing")]
    assert of_billing[0].number == resumed.number
