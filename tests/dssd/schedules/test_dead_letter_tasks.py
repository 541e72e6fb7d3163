"""Dead letters by the clock: what the tasks begin, leave alone, and fail for."""

import pytest

from dss_core.changes import DiscardDeadLetters, RedriveDeadLetters
from dss_core.errors import IllegalArgument, TaskFailed
from dssd.schedules.tasks.dead_letters import DeadCount, dlq_check, dlq_expire, dlq_redrive
from dssd.schedules.tasks.model import Task
from dssd.store.rows import OperationRow
from support.laned_groups import laned
from support.operated_groups import ANA, Works
from support.played_schedules import HOUR_MS, Heard
from support.queued_entries import Failed


class Begun:
    """Begins operations as the daemon's tasks do."""

    def __init__(self, works: Works) -> None:
        self._works = works
        self.asked: list[RedriveDeadLetters | DiscardDeadLetters] = []

    async def __call__(
        self, change: RedriveDeadLetters | DiscardDeadLetters
    ) -> OperationRow | None:
        self.asked.append(change)
        if (await self._works.operations.plan(change)).nothing_to_do:
            return None
        return await self._works.operations.apply(change, caller=ANA)


async def run(task: Task, **arguments: str) -> list[str]:
    """What it says; arguments with _ for -."""
    said = Heard()
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    try:
        await task.work(task.given(given), said)
    except TaskFailed as failed:
        said.append(f"failed: {failed.fields['why']}")
    return said


async def test_a_redrive_by_the_clock_has_a_canary_and_leaves_plain_groups_alone(
    works: Works,
) -> None:
    await laned(works, *map(Failed, range(3)))
    await works.plant.group("$share/plain/orders/#")
    begun = Begun(works)
    task = dlq_redrive(works.plant.groups.groups, begun, works.plant.clock)
    [said] = await run(task, error="abc", older_than="1h")
    assert said.startswith("g@orders/#: nothing to do.")
    [said] = await run(task)
    assert said.startswith("redrive 3 dead letters in 1 stream of g@orders/#: operation ")
    assert [(each.canary, each.error) for each in begun.asked] == [(10, "abc"), (10, "")]  # type: ignore[union-attr]
    assert await run(task, groups="others") == []
    [refused, failed] = await run(task)
    assert "is still running" in refused
    assert failed == "failed: 1 group could not be dealt with."


async def test_what_is_given_up_by_the_clock_is_as_old_as_was_said(works: Works) -> None:
    await laned(works, *map(Failed, range(3)))
    begun = Begun(works)
    task = dlq_expire(works.plant.groups.groups, begun, works.plant.clock)
    with pytest.raises(IllegalArgument, match="older-than=30d"):
        await run(task)
    assert await run(task, older_than="1h") == ["g@orders/#: nothing to do."]
    [asked] = begun.asked
    assert asked.end_us == (works.plant.clock.wall_ms() - HOUR_MS) * 1_000


async def test_a_check_fails_for_groups_with_more_dead_letters_than_may_be() -> None:
    async def counts() -> list[DeadCount]:
        return [DeadCount("billing@orders/#", 3), DeadCount("audit@orders/#", 0)]

    task = dlq_check(counts)
    assert await run(task) == [
        "billing@orders/# has 3 dead letters",
        "failed: 1 of 2 groups have too many dead letters: billing@orders/# most.",
    ]
    assert await run(task, max_dead="3") == ["2 groups: none has too many dead letters."]
    assert await run(task, groups="aud*") == ["1 group: none has too many dead letters."]
