"""Operations on dead letters: which they choose, what they commit, and what they refuse."""

import json
from dataclasses import replace

import pytest

from dss_core.changes import (
    BuryRetries,
    Direction,
    DiscardDeadLetters,
    LaneRanges,
    MoveCursors,
    RedriveDeadLetters,
    SkipRecords,
    ToEarliest,
    Undo,
)
from dss_core.errors import (
    IllegalArgument,
    NotUndoable,
    OperationInProgress,
    StreamNotRead,
)
from dss_core.lane import DEAD, RETRY
from dss_core.limits import REDRIVE_RATE_MAX
from dss_core.progress import Progress
from dss_sim.played_groups import Member
from dssd.machines.messages import GrantedStream, StreamReport, UpdateProgress
from dssd.operations.kinds import queue_choice
from dssd.operations.plans import Made
from dssd.queues import looking
from support.laned_groups import laned
from support.operated_groups import ANA, Works
from support.queued_entries import Failed, append_entries

OTHER = 0x1230000000000001
CAME_BACK, GIVEN_UP = "dead letters came back", "dead letters were given up"


async def dead_of(works: Works) -> Progress:
    [stream] = (await works.plant.registry.survey(works.plant.groups.find("g"))).streams
    return stream.view.queues[DEAD - 1].progress


FIVE = tuple(Failed(offset, fingerprint=OTHER if offset % 2 else 1) for offset in range(5))


async def test_a_plan_names_the_dead_letters_of_the_error_and_the_key_that_is_meant(
    works: Works,
) -> None:
    odd = replace(FIVE[3], key=b"odd")
    await laned(works, *FIVE[:3], odd, FIVE[4])
    plan = await works.operations.plan(RedriveDeadLetters("g", error="123"))
    assert isinstance(plan.change, RedriveDeadLetters)
    [lane] = plan.change.lanes
    assert (lane.stream, lane.ranges) == ("orders/0/0", ((1, 2), (3, 4)))
    assert plan.summary == "redrive 2 dead letters in 1 stream of g@orders/#"
    assert plan.streams[0].again == 2
    plan = await works.operations.plan(RedriveDeadLetters("g", key=b"odd"))
    assert isinstance(plan.change, RedriveDeadLetters)
    assert plan.change.lanes[0].ranges == ((3, 4),)
    plan = await works.operations.plan(RedriveDeadLetters("g", stream="orders/0/0", offset=2))
    assert isinstance(plan.change, RedriveDeadLetters)
    assert plan.change.lanes[0].ranges == ((2, 3),)


async def test_a_choice_that_takes_nothing_says_what_was_looked_for_and_where_to_look(
    works: Works,
) -> None:
    await laned(works, *FIVE)
    none = "of g@orders/#: none of its 5 dead letters is"
    for change, told in (
        (RedriveDeadLetters("g", error="fff"), f"redrive nothing {none} of the error fff"),
        (RedriveDeadLetters("g", key=b"eve"), f"redrive nothing {none} of the key eve"),
        (
            DiscardDeadLetters("g", stream="orders/0/0", offset=9),
            f"discard nothing {none} of the record orders/0/0@9",
        ),
    ):
        plan = await works.operations.plan(change)
        assert (plan.nothing_to_do, plan.summary) == (True, told)
        assert plan.effects == ("See what is there: dssctl dlq errors 'g@orders/#'",)
    with pytest.raises(StreamNotRead):
        await works.operations.plan(RedriveDeadLetters("g", stream="orders/0/9"))


async def test_a_group_without_dead_letters_says_so(works: Works) -> None:
    await laned(works)
    plan = await works.operations.plan(RedriveDeadLetters("g"))
    assert plan.summary == "redrive nothing of g@orders/#: it has no dead letters"
    assert (plan.nothing_to_do, plan.effects) == (True, ())


async def test_a_redrive_ends_once_the_holder_brought_all_back_and_later_deaths_stay(
    works: Works,
) -> None:
    group, dead = await laned(works, *FIVE)
    asked = RedriveDeadLetters("g")
    row = await works.operations.apply(asked, caller=ANA)
    await append_entries(works.plant, dead, [Failed(9)])
    member = works.plant.member(group, "ann")
    member.want()
    [granted] = await member.granted(1)
    assert granted.queues[DEAD - 1].redrive[:3] == (row.number, ((0, 5),), 10)
    with pytest.raises(OperationInProgress):
        await works.operations.apply(asked, caller=ANA)
    came_back(member, granted, Progress(5))
    assert (await works.ended(row.number)).state == "done"
    assert (await dead_of(works)).floor == 5
    with pytest.raises(NotUndoable):
        await works.operations.plan(Undo(row.number))


async def test_all_lanes_of_a_redrive_take_as_long_as_all_dead_letters_do_at_its_rate(
    works: Works,
) -> None:
    group, _ = await laned(works, *FIVE)
    plan = await works.operations.plan(RedriveDeadLetters("g", rate=2))
    assert isinstance(plan.change, RedriveDeadLetters)
    assert plan.change.rate == 2
    assert plan.effects[0] == (
        "5 records come again at the first attempt, due at once, at most 2 a second: in 2s or more."
    )
    await works.operations.apply(RedriveDeadLetters("g", rate=2), caller=ANA)
    await works.restart()
    member = works.plant.member(group, "ann")
    member.want()
    [granted] = await member.granted(1)
    assert granted.queues[DEAD - 1].redrive.over_ms == 2_500


@pytest.mark.parametrize("rate", [0, REDRIVE_RATE_MAX + 1])
async def test_a_redrive_has_a_rate_that_can_be_kept(works: Works, rate: int) -> None:
    await laned(works, *FIVE)
    with pytest.raises(IllegalArgument, match="1 to 1,000,000 records a second"):
        await works.operations.plan(RedriveDeadLetters("g", rate=rate))


async def test_a_redrive_says_how_many_came_back_and_a_cancelled_one_leaves_the_rest_dead(
    works: Works,
) -> None:
    group, _ = await laned(works, *FIVE)
    row = await works.operations.apply(RedriveDeadLetters("g"), caller=ANA)
    member = works.plant.member(group, "ann")
    member.want()
    [granted] = await member.granted(1)
    assert await works.operations.records_made(row) == Made(0, 5, CAME_BACK)
    watched = works.operations.watch(row.number)
    await anext(watched)
    came_back(member, granted, Progress(2))
    await anext(watched)  # though nothing of the operation ended
    assert await works.operations.records_made(row) == Made(2, 5, CAME_BACK)
    await watched.aclose()
    await works.operations.cancel(row.number, caller=ANA, reason="not mended")
    await works.given_back(member, 0)
    ended = await works.ended(row.number)
    assert ended.state == "cancelled"
    assert ended.failure.endswith("cancelled it: not mended; 2 of 5 dead letters came back")
    assert await works.operations.records_made(ended) is None
    assert await dead_of(works) == Progress(2)
    again = await works.operations.plan(RedriveDeadLetters("g"))
    assert isinstance(again.change, RedriveDeadLetters)
    assert again.change.lanes[0].ranges == ((2, 5),)


def came_back(member: Member, granted: GrantedStream, done: Progress) -> None:
    """The holder reports that dead letters came back."""
    retry, dead = granted.queues
    floor = granted.progress.floor
    report = StreamReport(
        granted.stream,
        granted.grant_epoch,
        granted.progress,
        floor,
        sent=floor,
        queues=(retry, replace(dead, progress=done)),
    )
    message = UpdateProgress(member.borrower_id, member.epoch, (report,))
    member.plant.registry.to_leader(member.group.group_id, message)


async def test_a_skip_says_that_what_waits_for_a_retry_stays(works: Works) -> None:
    group, _ = await laned(works)
    [main] = works.plant.catalogue.get("orders").streams()
    await works.plant.publish(main, 3)
    skip = SkipRecords("g", "orders/0/0", 0)
    assert not any("retry" in effect for effect in (await works.operations.plan(skip)).effects)
    queues = works.plant.catalogue.queues_of(group.group_id, main)
    assert queues is not None
    await append_entries(works.plant, queues[RETRY - 1], [Failed(1)])
    for change in (skip, MoveCursors("g", Direction.SKIP, to=ToEarliest())):
        effects = (await works.operations.plan(change)).effects
        assert effects[-1].startswith("1 record waits in the retry queues of these streams, which")
        assert "dssctl rq ls 'g@orders/#'" in effects[-1]
    rewind = await works.operations.plan(MoveCursors("g", Direction.REWIND, to=ToEarliest()))
    assert not any("retry" in effect for effect in rewind.effects)


async def test_discarded_dead_letters_are_done_also_over_a_restart(works: Works) -> None:
    await laned(works, *FIVE)
    row = await works.apply(DiscardDeadLetters("g", error="123"))
    assert (row.state, row.not_undoable_because != "") == ("done", True)
    assert await dead_of(works) == Progress(0).with_acked([(1, 2), (3, 4)])
    await works.restart()
    assert await dead_of(works) == Progress(0).with_acked([(1, 2), (3, 4)])


async def test_a_discard_does_not_count_as_given_up_what_had_come_back_before(
    works: Works,
) -> None:
    group, _ = await laned(works, *FIVE)
    member = works.plant.member(group, "ann")
    member.want()
    [granted] = await member.granted(1)
    row = await works.operations.apply(DiscardDeadLetters("g", everything=True), caller=ANA)
    came_back(member, granted, Progress(2))
    assert await works.operations.records_made(row) == Made(0, 5, GIVEN_UP)
    await works.given_back(member, 0)
    ended = await works.ended(row.number)
    assert ended.state == "failed"
    assert ended.failure.startswith("3 of 5 dead letters were given up: 2 had left before")
    assert "dssctl rq ls 'g@orders/#'" in ended.failure
    assert json.loads(ended.after)["had_left"] == 2
    assert await dead_of(works) == Progress(5)


async def test_a_record_that_went_on_unreported_is_dead_only_where_it_is_now(works: Works) -> None:
    """A holder that died had brought it back, and it failed again, and once more."""
    group, dead = await laned(works, Failed(0), Failed(1))
    [main] = works.plant.catalogue.get("orders").streams()
    queues = works.plant.catalogue.queues_of(group.group_id, main)
    assert queues is not None
    retry, _ = queues
    again = Failed(0, source_level=DEAD, source_offset=0)
    await append_entries(works.plant, retry, [again])
    assert await dead_offsets(works) == [1]
    await append_entries(works.plant, dead, [Failed(0, source_level=RETRY, source_offset=0)])
    assert await dead_offsets(works) == [1, 2]
    await append_entries(works.plant, retry, [replace(again, source_offset=2)])
    assert await dead_offsets(works) == [1]
    plan = await works.operations.plan(DiscardDeadLetters("g", stream="orders/0/0", offset=0))
    assert plan.nothing_to_do
    buried = await works.operations.plan(BuryRetries("g", everything=True))
    assert isinstance(buried.change, BuryRetries)
    assert buried.change.lanes[0].ranges == ((1, 2),)


async def dead_offsets(works: Works) -> list[int]:
    """The dead letters that a redrive of all takes."""
    plan = await works.operations.plan(RedriveDeadLetters("g"))
    assert isinstance(plan.change, RedriveDeadLetters)
    return [at for lane in plan.change.lanes for span in lane.ranges for at in range(*span)]


async def test_a_plan_that_is_applied_later_takes_only_what_is_still_dead(works: Works) -> None:
    await laned(works, *FIVE)
    plan = await works.operations.plan(DiscardDeadLetters("g", everything=True))
    await works.apply(DiscardDeadLetters("g", error="123"))
    assert isinstance(plan.change, DiscardDeadLetters)
    again = await works.operations.plan(plan.change)
    assert isinstance(again.change, DiscardDeadLetters)
    assert again.change.lanes[0].ranges == ((0, 1), (2, 3), (4, 5))


async def test_what_lies_in_several_reads_of_a_queue_is_named_as_one_range(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "LOOKED_AT_BYTES", 1)
    _, queue = await laned(works, Failed(0), Failed(1, error="other", fingerprint=0x123))
    await append_entries(works.plant, queue, [Failed(2), Failed(3)])
    await append_entries(works.plant, queue, [Failed(4)])
    plan = await works.operations.plan(DiscardDeadLetters("g", error="abc"))
    assert isinstance(plan.change, DiscardDeadLetters)
    assert plan.change.lanes[0].ranges == ((0, 1), (2, 5))


async def test_what_one_operation_names_is_bounded_and_the_same_command_does_the_rest(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_choice, "CHOICE_RANGES_MAX", 1)
    await laned(works, *FIVE)
    plan = await works.operations.plan(DiscardDeadLetters("g", error="123"))
    assert isinstance(plan.change, DiscardDeadLetters)
    assert plan.change.lanes[0].ranges == ((1, 2),)
    assert any("the same command does the rest" in each for each in plan.effects)
    many = LaneRanges("orders/0/0", plan.change.lanes[0].storage_topic_id, ((0, 1), (2, 3)))
    with pytest.raises(IllegalArgument):
        await works.operations.plan(DiscardDeadLetters("g", lanes=(many,)))


async def test_what_cannot_be_is_refused_with_what_would_work(works: Works) -> None:
    await laned(works)
    await works.plant.group("$share/plain/orders/#")
    with pytest.raises(IllegalArgument, match="--max-deliver"):
        await works.operations.plan(RedriveDeadLetters("plain"))
    with pytest.raises(IllegalArgument):
        await works.operations.plan(RedriveDeadLetters("g", offset=1))
    lane = LaneRanges("orders/0/7", 1, ((0, 1),))
    with pytest.raises(StreamNotRead):
        await works.operations.plan(RedriveDeadLetters("g", lanes=(lane,)))
    assert (await works.operations.plan(RedriveDeadLetters("g"))).nothing_to_do
