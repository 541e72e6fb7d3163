"""Pause and resume of a group, planned, applied, undone, over real leaders, a log and a store."""

import json

import pytest

from dss_core.changes import (
    Direction,
    MoveCursors,
    PauseGroup,
    ResumeGroup,
    ToEarliest,
    Undo,
)
from dss_core.errors import (
    GroupNotFound,
    IllegalArgument,
    NotUndoable,
    OperationInProgress,
    RevisionMoved,
)
from dss_sim.played_groups import Member
from dssd.machines.messages import Grant, Pause, PauseChanged, PauseObeyed
from dssd.machines.start_point import Earliest
from dssd.operations.kinds.pause import PAUSE_MS_MAX
from dssd.operations.plans import Plan
from dssd.store.rows import GroupRow
from support.operated_groups import ANA, Works

HOUR_MS = 3_600_000
PAUSE, RESUME = PauseGroup("billing"), ResumeGroup("billing")


async def made(works: Works) -> Member:
    """A group over one stream, with one member."""
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 10)
    await works.plant.group("$share/billing/orders/#", Earliest())
    return await works.consumed("billing", 4)


def group(works: Works) -> GroupRow:
    return works.plant.groups.find("billing")


async def obeyed(works: Works, member: Member) -> Pause:
    """The member is told of a change of the pause, and confirms it."""
    told = await member.next(PauseChanged)
    answer = PauseObeyed(member.borrower_id, told.leader_epoch, told.pause.change)
    works.plant.registry.to_leader(member.group.group_id, answer)
    return told.pause


async def applied(works: Works, member: Member, change: PauseGroup | ResumeGroup | Undo) -> str:
    row = await works.operations.apply(change, caller=ANA)
    await obeyed(works, member)
    return (await works.ended(row.number)).kind


async def test_a_pause_is_done_when_its_members_have_confirmed_it(works: Works) -> None:
    member = await made(works)
    row = await works.operations.apply(PAUSE, caller=ANA, reason="the bank is closed")
    assert (row.state, row.kind, row.revision) == ("running", "groups.pause", 1)
    assert (await obeyed(works, member)).paused
    assert (await works.ended(row.number)).state == "done"
    assert group(works).paused
    assert json.loads(row.before) == {"paused": False, "until_ms": None}
    assert json.loads(row.after) == {"paused": True, "until_ms": None}


async def test_a_plan_of_a_pause_says_whom_it_touches_and_changes_nothing(works: Works) -> None:
    await made(works)
    until_ms = works.plant.clock.wall_ms() + HOUR_MS
    plan = await works.operations.plan(PauseGroup("billing", until_ms))
    assert (plan.kind, plan.subject, plan.members) == ("groups.pause", "billing@orders/#", ("ann",))
    [stream] = plan.streams
    assert (stream.stream, stream.floor, stream.target, stream.again) == ("orders/0/0", 4, 4, 0)
    assert plan.summary.startswith("pause billing@orders/# until 20")
    assert any("resumes by itself" in each for each in plan.effects)
    assert not group(works).paused


async def test_a_paused_group_is_shown_so_with_its_end_and_its_lag(works: Works) -> None:
    member = await made(works)
    until_ms = works.plant.clock.wall_ms() + HOUR_MS
    await applied(works, member, PauseGroup("billing", until_ms))
    survey = await works.plant.registry.survey(group(works))
    assert (survey.state, survey.lag) == ("paused", 6)
    assert survey.reason.startswith("until 20")
    await applied(works, member, RESUME)
    survey = await works.plant.registry.survey(group(works))
    assert (survey.state, survey.reason) == ("active", "")


async def test_a_pause_of_a_paused_group_changes_its_end_only(works: Works) -> None:
    member = await made(works)
    await applied(works, member, PAUSE)
    until_ms = works.plant.clock.wall_ms() + HOUR_MS
    row = await works.apply(PauseGroup("billing", until_ms))
    assert (row.state, group(works).paused_until_ms) == ("done", until_ms)


async def test_the_same_pause_again_is_done_only_when_the_members_have_confirmed(
    works: Works,
) -> None:
    member = await made(works)
    first = await works.operations.apply(PAUSE, caller=ANA)
    await works.operations.cancel(first.number, caller=ANA)
    again = await works.operations.apply(PAUSE, caller=ANA)
    assert works.operations.get(again.number).state == "running"
    await obeyed(works, member)
    assert (await works.ended(again.number)).state == "done"


async def test_a_pause_that_every_member_has_confirmed_is_nothing_to_do_a_second_time(
    works: Works,
) -> None:
    member = await made(works)
    until_ms = works.plant.clock.wall_ms() + HOUR_MS
    await applied(works, member, PAUSE)
    for change in (PAUSE, PauseGroup("billing", until_ms)):
        if change is not PAUSE:
            await works.apply(change)
        revision = group(works).revision
        plan = await works.operations.plan(change)
        assert (plan.nothing_to_do, plan.effects) == (True, ())
        row = await works.apply(change)
        assert (row.state, row.summary.endswith("nothing would change")) == ("done", True)
        assert group(works).revision == revision


async def test_where_nothing_would_change_no_revision_is_made(works: Works) -> None:
    await made(works)
    row = await works.apply(RESUME)
    assert (row.state, row.revision, group(works).revision) == ("done", 0, 0)
    assert row.summary.endswith("nothing would change")


@pytest.mark.parametrize("ahead_ms", [-1, 0, PAUSE_MS_MAX + HOUR_MS])
async def test_a_pause_must_end_in_the_future(works: Works, ahead_ms: int) -> None:
    await made(works)
    until_ms = works.plant.clock.wall_ms() + ahead_ms
    with pytest.raises(IllegalArgument, match="it is in the future"):
        await works.operations.apply(PauseGroup("billing", until_ms), caller=ANA)
    assert (group(works).paused, group(works).revision) == (False, 0)


async def test_a_group_that_is_not_there_cannot_be_paused(works: Works) -> None:
    with pytest.raises(GroupNotFound):
        await works.operations.plan(PauseGroup("nobody"))


async def test_a_plan_that_was_overtaken_by_a_pause_is_refused(works: Works) -> None:
    member = await made(works)
    plan: Plan = await works.operations.plan(PAUSE)
    await applied(works, member, PAUSE)
    with pytest.raises(RevisionMoved, match=r"applied groups\.pause"):
        await works.operations.apply(plan.change, caller=ANA, if_revision=plan.revision)


async def test_a_pause_is_undone_by_a_resume_and_a_resume_by_a_pause(works: Works) -> None:
    member = await made(works)
    pause = await works.operations.apply(PAUSE, caller=ANA)
    await obeyed(works, member)
    await works.ended(pause.number)
    assert await applied(works, member, Undo(pause.number)) == "groups.pause.undo"
    assert not group(works).paused
    undo = next(iter(works.operations.newest()))
    assert await applied(works, member, Undo(undo.number)) == "groups.pause.redo"
    assert group(works).paused


async def test_a_pause_that_others_built_on_is_not_undone(works: Works) -> None:
    member = await made(works)
    pause = await works.operations.apply(PAUSE, caller=ANA)
    await obeyed(works, member)
    await works.ended(pause.number)
    await applied(works, member, RESUME)
    with pytest.raises(NotUndoable, match="resumed since"):
        await works.operations.plan(Undo(pause.number))


async def test_a_resume_is_not_undone_once_its_pause_would_be_over(works: Works) -> None:
    member = await made(works)
    await applied(works, member, PauseGroup("billing", works.plant.clock.wall_ms() + HOUR_MS))
    resume = await works.operations.apply(RESUME, caller=ANA)
    await obeyed(works, member)
    await works.ended(resume.number)
    works.plant.clock.ahead_ms += 2 * HOUR_MS
    with pytest.raises(NotUndoable, match="would have ended"):
        await works.operations.plan(Undo(resume.number))


async def test_a_resume_does_not_wait_for_the_pause_that_it_ends(works: Works) -> None:
    member = await made(works)
    pause = await works.operations.apply(PAUSE, caller=ANA)
    assert (await member.next(PauseChanged)).pause.paused
    resume = await works.operations.apply(RESUME, caller=ANA)
    assert (await works.ended(pause.number)).state == "done"
    assert not (await obeyed(works, member)).paused
    assert (await works.ended(resume.number)).state == "done"


async def test_another_operation_waits_until_a_pause_is_done(works: Works) -> None:
    member = await made(works)
    pause = await works.operations.apply(PAUSE, caller=ANA)
    rewind = MoveCursors("billing", Direction.REWIND, (), ToEarliest())
    with pytest.raises(OperationInProgress, match=str(pause.number)):
        await works.operations.apply(rewind, caller=ANA)
    await obeyed(works, member)
    await works.ended(pause.number)


async def test_a_pause_that_is_cancelled_waits_for_nobody_and_stays(works: Works) -> None:
    await made(works)
    pause = await works.operations.apply(PAUSE, caller=ANA)
    await works.operations.cancel(pause.number, caller=ANA)
    assert (await works.ended(pause.number)).state == "cancelled"
    assert group(works).paused


async def test_a_pause_outlives_the_daemon_and_is_told_to_who_comes_then(works: Works) -> None:
    member = await made(works)
    pause = await works.operations.apply(PAUSE, caller=ANA)
    assert (await member.next(PauseChanged)).pause.paused
    await works.restart()
    assert (await works.ended(pause.number)).state == "done"
    again = works.plant.member(group(works), "ben", "ann")
    again.want()
    assert (await obeyed(works, again)).paused
    granted = await again.next(Grant)
    assert [each.pause.paused for each in granted.streams] == [True]
