"""Operations on records that wait for their next attempt: whom they mean, what they commit."""

from dataclasses import replace

import pytest

from dss_core.changes import BuryRetries, Change, GrowTopic, RetryNow, SkipRetries, Undo
from dss_core.errors import IllegalArgument, NothingChosen, NotUndoable
from dss_core.filters import SubscriptionFilter
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Progress, Ranges
from dssd.leaders.declarations import AskedRetries
from dssd.machines.messages import GrantedStream, StreamReport, UpdateProgress
from dssd.machines.queues import BURY, Errand, QueueState
from dssd.machines.start_point import Earliest
from dssd.operations.plans import Made, Plan
from support.laned_groups import laned
from support.operated_groups import ANA, Works
from support.queued_entries import Failed, append_entries

OTHER = 0x1230000000000001
WAITING = tuple(
    Failed(at, fingerprint=OTHER if at % 2 else 1, attempt=1, due_ms=9_000_000, client_id=who)
    for at, who in enumerate(("ann", "ben", "ann", "ben"))
)


async def planned(works: Works, change: Change) -> tuple[Plan, Ranges]:
    plan = await works.operations.plan(change)
    assert isinstance(plan.change, RetryNow | SkipRetries | BuryRetries)
    return plan, tuple(span for lane in plan.change.lanes for span in lane.ranges)


async def retry_of(works: Works) -> QueueState:
    [stream] = (await works.plant.registry.survey(works.plant.groups.find("g"))).streams
    return stream.view.queues[RETRY - 1]


async def test_a_plan_names_what_waits_by_error_key_record_member_and_time(works: Works) -> None:
    await laned(works, retrying=[*WAITING[:3], replace(WAITING[3], key=b"odd")])
    for change, ranges in (
        (RetryNow("g"), ((0, 4),)),
        (RetryNow("g", error="123"), ((1, 2), (3, 4))),
        (SkipRetries("g", key=b"odd"), ((3, 4),)),
        (BuryRetries("g", stream="orders/0/0", offset=2), ((2, 3),)),
        (BuryRetries("g", client_id="ben"), ((1, 2), (3, 4))),
        (SkipRetries("g", everything=True), ((0, 4),)),
        (SkipRetries("g", end_us=1), ()),
        (SkipRetries("g", start_us=1), ((0, 4),)),
    ):
        assert (await planned(works, change))[1] == ranges
    plan, _ = await planned(works, BuryRetries("g", client_id="ben"))
    assert plan.summary == "give up 2 records in 1 stream of g@orders/#"


async def test_what_cannot_be_taken_back_says_what_it_means(works: Works) -> None:
    await laned(works, retrying=WAITING)
    for change in (SkipRetries("g"), BuryRetries("g")):
        with pytest.raises(
            NothingChosen, match=r"does not say which records .*; nothing was changed"
        ):
            await works.operations.plan(change)
    plan, _ = await planned(works, SkipRetries("g", key=b"eve"))
    assert plan.nothing_to_do
    assert plan.summary == (
        "pass over nothing of g@orders/#: none of its 4 records that wait is of the key eve"
    )
    await works.plant.group("$share/plain/orders/#")
    with pytest.raises(IllegalArgument, match="--max-deliver"):
        await works.operations.plan(RetryNow("plain"))


async def test_what_needs_a_holder_leaves_out_closed_streams_or_it_would_wait_for_these(
    works: Works,
) -> None:
    plant = works.plant
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 2)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    retries = AskedRetries(5, ordered=True)
    group = await plant.groups.declare(parsed, start=Earliest(), retries=retries)
    await works.apply(GrowTopic("orders", 2))
    member = plant.member(group, "ann")
    member.want()
    await member.granted(1)
    closed = plant.catalogue.get("orders").producing.streams()[0]
    queues = plant.catalogue.queues_of(group.group_id, closed)
    assert queues is not None
    await append_entries(plant, queues[RETRY - 1], WAITING)
    for change in (SkipRetries("g", everything=True), BuryRetries("g", everything=True)):
        plan, ranges = await planned(works, change)
        assert (plan.nothing_to_do, ranges) == (True, ())
        assert plan.effects[-1] == (
            "4 records are left out, for they lie in streams that are not open: "
            "orders/1/0 is closed: waits for orders/0/0. The same command deals with them then."
        )
    assert (await planned(works, RetryNow("g")))[1] == ((0, 4),)


async def test_what_is_brought_forward_is_so_at_once_and_waits_again_by_an_undo(
    works: Works,
) -> None:
    await laned(works, retrying=WAITING)
    row = await works.apply(RetryNow("g", error="123"))
    assert row.state == "done"
    assert (await retry_of(works)).hurried == (row.number, ((1, 2), (3, 4)))
    await works.restart()
    assert (await retry_of(works)).hurried == (row.number, ((1, 2), (3, 4)))
    undo = await works.apply(Undo(row.number))
    assert (undo.state, (await retry_of(works)).hurried.ranges) == ("done", ())
    with pytest.raises(NotUndoable):
        await works.operations.plan(Undo(undo.number))


async def test_an_errand_ends_once_its_holder_has_done_it_and_over_a_restart(works: Works) -> None:
    group, _ = await laned(works, retrying=WAITING)
    row = await works.operations.apply(BuryRetries("g", error="123"), caller=ANA)
    assert await works.operations.records_made(row) is None
    await works.restart()
    assert (await works.operations.whole(row.number)).state == "running"
    member = works.plant.member(group, "ann")
    member.want()
    [granted] = await member.granted(1)
    assert granted.queues[RETRY - 1].errand == Errand(row.number, BURY, ((1, 2), (3, 4)))
    done = Progress(0).with_acked([(1, 2), (3, 4)])
    report = _reported(granted, replace(granted.queues[RETRY - 1].end_errand(), progress=done))
    message = UpdateProgress(member.borrower_id, member.epoch, (report,))
    works.plant.registry.to_leader(group.group_id, message)
    assert (await works.ended(row.number)).state == "done"
    assert (await retry_of(works)).progress == done


async def test_a_cancelled_errand_leaves_what_was_not_dealt_with(works: Works) -> None:
    await laned(works, retrying=WAITING)
    row = await works.operations.apply(SkipRetries("g", everything=True), caller=ANA)
    await works.operations.cancel(row.number, caller=ANA, reason="the wrong group")
    ended = await works.ended(row.number)
    assert ended.state in ("cancelled", "done")
    assert (await retry_of(works)).errand.ranges == ()
    assert (await retry_of(works)).progress == Progress(0)


async def test_what_was_given_up_comes_back_by_an_undo(works: Works) -> None:
    group, dead = await laned(works, retrying=WAITING)
    row = await works.operations.apply(BuryRetries("g", error="123"), caller=ANA)
    member = works.plant.member(group, "ann")
    member.want()
    [granted] = await member.granted(1)
    buried = [replace(each, operation=row.number, cause="given up") for each in WAITING[1::2]]
    await append_entries(works.plant, dead, [replace(WAITING[0], offset=9), *buried])
    done = Progress(0).with_acked([(1, 2), (3, 4)])
    report = _reported(granted, replace(granted.queues[RETRY - 1].end_errand(), progress=done))
    works.plant.registry.to_leader(
        group.group_id, UpdateProgress(member.borrower_id, member.epoch, (report,))
    )
    await works.ended(row.number)
    undo = await works.operations.apply(Undo(row.number), caller=ANA)
    await works.given_back(member, 0)
    [again] = await member.granted(1)
    assert again.queues[DEAD - 1].redrive[:2] == (undo.number, ((1, 3),))


async def test_in_an_ordered_group_what_did_not_fail_is_not_meant(works: Works) -> None:
    plant = works.plant
    [stream] = await plant.topic("orders", 1)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    group = await plant.groups.declare(parsed, retries=AskedRetries(5, ordered=True))
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    queues = plant.catalogue.queues_of(group.group_id, stream)
    assert queues is not None
    follower = replace(WAITING[1], cause="follows", kind=1, due_ms=0)
    await append_entries(plant, queues[RETRY - 1], [WAITING[0], follower])
    plan, ranges = await planned(works, BuryRetries("g", key=b"k"))
    assert ranges == ((0, 1),)
    assert any(each.startswith("Later records of their keys") for each in plan.effects)
    named = SkipRetries("g", stream="orders/0/0", offset=1)
    assert (await planned(works, named))[1] == ((1, 2),)


async def test_what_was_passed_over_does_not_come_back_and_says_what_brings_it(
    works: Works,
) -> None:
    await laned(works, retrying=WAITING)
    plan, _ = await planned(works, SkipRetries("g", key=b"k"))
    assert "dssctl records redeliver" in plan.not_undoable_because
    assert any(each.startswith("Nobody is a member") for each in plan.effects)
    row = await works.operations.apply(SkipRetries("g", key=b"k"), caller=ANA)
    assert await works.operations.records_made(row) in (
        None,
        Made(0, 4, "records were passed over"),
    )


def _reported(granted: GrantedStream, retry: QueueState) -> StreamReport:
    floor = granted.progress.floor
    queues = (retry, granted.queues[DEAD - 1])
    stream, epoch = granted.stream, granted.grant_epoch
    return StreamReport(stream, epoch, granted.progress, floor, sent=floor, queues=queues)
