"""Operations on cursors, planned, applied, undone, over real leaders, a log and a store."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from dss_core.changes import (
    ByRecords,
    Change,
    Direction,
    ImportOffsets,
    MoveCursors,
    PauseGroup,
    RecordSpan,
    SkipRecords,
    StreamOffsets,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
    Undo,
)
from dss_core.errors import (
    GroupNotFound,
    IllegalArgument,
    NotUndoable,
    OffsetOutOfRange,
    OffsetsDoNotFit,
    OperationEnded,
    OperationIdReused,
    OperationInProgress,
    OperationNotFound,
    RevisionMoved,
    StreamNotRead,
)
from dss_core.progress import Progress
from dssd.machines.messages import Revoke
from dssd.machines.start_point import Earliest
from dssd.operations.history import OPERATIONS_KEPT_MS
from dssd.store.port import Precondition, Write
from dssd.store.rows import EventRow, MadeMoveRow, OperationRow, PendingMoveRow, ProgressRow
from support.operated_groups import ANA, Works

RECORDS = 100


async def made(works: Works, streams: int = 2, *, consumed: int = 0) -> None:
    """A topic of full streams, and a group that has consumed a part of each, without members."""
    for stream in await works.plant.topic("orders", streams):
        await works.plant.publish(stream, RECORDS)
    await works.plant.group("$share/billing/orders/#", Earliest())
    if consumed:
        await works.apply(skip(ToOffset(consumed), "orders/0/0"))
        for at in range(1, streams):
            await works.apply(skip(ToOffset(consumed), f"orders/0/{at}"))


def rewind(to: object, *streams: str) -> MoveCursors:
    return MoveCursors("billing", Direction.REWIND, streams, to)  # type: ignore[arg-type] # targets


def skip(to: object, *streams: str) -> MoveCursors:
    return MoveCursors("billing", Direction.SKIP, streams, to)  # type: ignore[arg-type] # targets


def seek(to: object, *streams: str) -> MoveCursors:
    return MoveCursors("billing", Direction.SEEK, streams, to)  # type: ignore[arg-type] # targets


async def test_a_plan_says_what_comes_again_and_changes_nothing(works: Works) -> None:
    await made(works, consumed=60)
    plan = await works.operations.plan(rewind(ToOffset(20), "orders/0/1"))
    [stream] = plan.streams
    assert (stream.stream, stream.floor, stream.target, stream.again) == ("orders/0/1", 60, 20, 40)
    assert (stream.exact, stream.clamped, plan.nothing_to_do) == (True, False, False)
    assert (plan.kind, plan.subject) == ("offsets.rewind", "billing@orders/#")
    assert await works.floors("billing") == [60, 60]


@pytest.mark.parametrize(
    ("change", "floors"),
    [
        (rewind(ToEarliest()), [0, 0]),
        (rewind(ToLatest()), [60, 60]),
        (rewind(ToOffset(20), "orders/0/0"), [20, 60]),
        (rewind(ByRecords(-10)), [50, 50]),
        (rewind(ByRecords(10)), [60, 60]),
        (skip(ToLatest()), [100, 100]),
        (skip(ToEarliest()), [60, 60]),
        (skip(ByRecords(5), "orders/0/1"), [60, 65]),
        (seek(ToOffset(30), "orders/0/0"), [30, 60]),
        (seek(ToOffset(90), "orders/0/0"), [90, 60]),
        (seek(ByRecords(-1_000)), [0, 0]),
        (skip(ByRecords(1_000)), [100, 100]),
        (rewind(ToTime(0)), [0, 0]),
    ],
)
async def test_each_direction_goes_its_way_only(
    works: Works, change: MoveCursors, floors: list[int]
) -> None:
    await made(works, consumed=60)
    row = await works.apply(change)
    assert row.state == "done"
    assert await works.floors("billing") == floors


async def test_what_was_planned_is_applied_although_time_went_on(works: Works) -> None:
    await made(works, consumed=60)
    plan = await works.operations.plan(skip(ToLatest(), "orders/0/0"))
    await works.plant.publish(works.plant.catalogue.topics()[0].streams()[0], 50)
    await works.apply(plan.change, if_revision=plan.revision)
    assert (await works.floors("billing"))[0] == RECORDS


async def test_a_plan_that_was_overtaken_is_refused_and_says_by_what(works: Works) -> None:
    await made(works)
    plan = await works.operations.plan(skip(ToOffset(10), "orders/0/0"))
    overtaking = await works.apply(skip(ToOffset(20), "orders/0/1"))
    with pytest.raises(RevisionMoved, match=f"operation {overtaking.number} applied offsets.skip"):
        await works.apply(plan.change, if_revision=plan.revision)
    assert await works.floors("billing") == [0, 20]


async def test_of_two_operations_on_one_revision_one_wins(works: Works) -> None:
    await made(works)
    plan = await works.operations.plan(skip(ToOffset(10), "orders/0/0"))
    both = [works.apply(plan.change, if_revision=plan.revision) for _ in range(2)]
    outcomes = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(each).__name__ for each in outcomes) in (
        ["OperationRow", "RevisionMoved"],
        ["OperationInProgress", "OperationRow"],
    )


async def test_a_group_has_a_revision_that_each_operation_raises(works: Works) -> None:
    await made(works)
    assert works.plant.groups.find("billing").revision == 0
    await works.apply(skip(ToOffset(10), "orders/0/0"))
    assert works.plant.groups.find("billing").revision == 1
    await works.apply(skip(ToOffset(10), "orders/0/0"))
    assert works.plant.groups.find("billing").revision == 1, "nothing was changed"


async def test_a_repeated_call_gets_the_first_answer(works: Works) -> None:
    await made(works, consumed=60)
    first = await works.apply(rewind(ByRecords(-10), "orders/0/0"), operation_id="ticket 7")
    again = await works.apply(rewind(ByRecords(-10), "orders/0/0"), operation_id="ticket 7")
    assert again.number == first.number
    assert await works.floors("billing") == [50, 60]
    with pytest.raises(OperationIdReused, match=str(first.number)):
        await works.apply(rewind(ByRecords(-20), "orders/0/0"), operation_id="ticket 7")


async def test_an_undo_keeps_what_was_acknowledged_since(works: Works) -> None:
    await made(works, 1, consumed=60)
    done = await works.apply(rewind(ToEarliest()))
    member = await works.consumed("billing", 30)
    undo = await works.operations.apply(Undo(done.number), caller=ANA)
    await works.given_back(member, 35)
    assert (await works.ended(undo.number)).state == "done"
    assert await works.floors("billing") == [60]
    assert undo.undoes == done.number
    assert works.operations.get(done.number).undone_by == undo.number


async def test_an_undone_skip_brings_back_only_what_nobody_acknowledged(works: Works) -> None:
    await made(works, 1)
    member = await works.consumed("billing", 40)
    done = await works.operations.apply(skip(ToOffset(80), "orders/0/0"), caller=ANA)
    await works.given_back(member, 40)
    [granted] = await member.granted(1)
    assert granted.progress.floor == 80
    await works.ended(done.number)
    undo = await works.operations.apply(Undo(done.number), caller=ANA)
    await works.given_back(member, 90)
    await works.ended(undo.number)
    survey = await works.plant.registry.survey(works.plant.groups.find("billing"))
    assert survey.streams[0].view.progress == Progress(40, ((80, 90),))


async def test_an_undo_can_be_undone_and_nothing_is_undone_twice(works: Works) -> None:
    await made(works, 1, consumed=60)
    done = await works.apply(rewind(ToEarliest()))
    undo = await works.apply(Undo(done.number))
    with pytest.raises(NotUndoable, match=f"operation {undo.number} took it back already"):
        await works.apply(Undo(done.number))
    redo = await works.apply(Undo(undo.number))
    assert [undo.kind, redo.kind] == ["offsets.rewind.undo", "offsets.rewind.redo"]
    assert await works.floors("billing") == [0]


async def test_an_operation_that_another_built_on_is_not_undone(works: Works) -> None:
    await made(works, 1, consumed=60)
    first = await works.apply(rewind(ToOffset(30), "orders/0/0"))
    second = await works.apply(rewind(ToOffset(10), "orders/0/0"))
    with pytest.raises(NotUndoable, match=f"operation {second.number} moved the cursor"):
        await works.operations.plan(Undo(first.number))
    assert await works.floors("billing") == [10]


async def test_a_record_is_skipped_by_hand_and_taken_back(works: Works) -> None:
    await made(works, 1)
    done = await works.apply(SkipRecords("billing", "orders/0/0", 7), reason="poison, ticket 12")
    assert (done.kind, done.reason) == ("records.skip", "poison, ticket 12")
    survey = await works.plant.registry.survey(works.plant.groups.find("billing"))
    assert survey.streams[0].view.progress == Progress(0, ((7, 8),))
    assert survey.counts.moved == 1
    await works.apply(Undo(done.number))
    assert await works.floors("billing") == [0]


async def test_a_plan_shows_where_a_floor_comes_to_lie_also_where_nothing_moves(
    works: Works,
) -> None:
    await made(works, 1)

    async def planned(change: Change) -> tuple[int, int, bool]:
        plan = await works.operations.plan(change)
        return plan.streams[0].floor, plan.streams[0].target, plan.nothing_to_do

    above = SkipRecords("billing", "orders/0/0", 7, 2)
    assert await planned(above) == (0, 0, False)
    await works.apply(above)
    assert await planned(above) == (0, 0, True)
    assert await planned(SkipRecords("billing", "orders/0/0", 0, 7)) == (0, 9, False)
    await works.apply(MoveCursors("billing", Direction.SKIP, to=ToOffset(20)))
    assert await planned(MoveCursors("billing", Direction.SKIP, to=ToOffset(5))) == (20, 20, True)


async def test_exported_offsets_are_imported_into_another_group(works: Works) -> None:
    await made(works, 1)
    await works.plant.group("$share/audit/orders/#", Earliest())
    offsets = StreamOffsets("orders", 0, 0, 1, Progress(20, ((30, 40),)), RECORDS)
    await works.apply(ImportOffsets("audit", (offsets,)))
    survey = await works.plant.registry.survey(works.plant.groups.find("audit"))
    assert survey.streams[0].view.progress == Progress(20, ((30, 40),))
    assert await works.floors("billing") == [0]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (rewind(ToOffset(101), "orders/0/0"), OffsetOutOfRange),
        (rewind(ToOffset(1)), IllegalArgument),
        (rewind(ToEarliest(), "orders/0/9"), StreamNotRead),
        (rewind(ToTime(-1)), IllegalArgument),
        (rewind(None), IllegalArgument),
        (MoveCursors("unknown", Direction.SKIP, to=ToLatest()), GroupNotFound),
        (SkipRecords("billing", "orders/0/0", 100), OffsetOutOfRange),
        (SkipRecords("billing", "orders/0/0", 0, 1_001), IllegalArgument),
        (SkipRecords("billing", "payments/0/0", 0), StreamNotRead),
        (
            SkipRecords("billing", "orders/0/0", 0, 600, (RecordSpan("orders/0/0", 700, 401),)),
            IllegalArgument,
        ),
        (
            SkipRecords("billing", "orders/0/0", 0, 1, (RecordSpan("orders/0/0", 100),)),
            OffsetOutOfRange,
        ),
        (Undo(4_711), OperationNotFound),
        (
            ImportOffsets("billing", (StreamOffsets("orders", 0, 0, 3, Progress(1), 1),)),
            OffsetsDoNotFit,
        ),
        (
            ImportOffsets("billing", (StreamOffsets("orders", 0, 0, 2, Progress(1), 101),)),
            OffsetsDoNotFit,
        ),
        (
            ImportOffsets("billing", (StreamOffsets("orders", 1, 0, 2, Progress(1), 1),)),
            StreamNotRead,
        ),
    ],
)
async def test_bad_input_changes_nothing(
    works: Works, change: MoveCursors, error: type[Exception]
) -> None:
    await made(works)
    with pytest.raises(error):
        await works.apply(change)
    assert works.plant.groups.find("billing").revision == 0
    assert list(works.operations.newest()) == []
    with pytest.raises(IllegalArgument):
        await works.apply(rewind(ToEarliest()), reason="x" * 1_001)


async def test_an_operation_that_waits_for_a_member_refuses_others_and_can_be_cancelled(
    works: Works,
) -> None:
    await made(works, 2)
    member = await works.consumed("billing", 60)
    row = await works.operations.apply(rewind(ToEarliest()), caller=ANA)
    assert row.state == "running"
    await member.next(Revoke)
    with pytest.raises(OperationInProgress, match=f"Operation {row.number}, offsets.rewind"):
        await works.apply(skip(ToLatest()))
    assert len(await works.operations.pending_moves(works.operations.get(row.number))) == 2
    await works.operations.cancel(row.number, caller=ANA)
    ended = await works.ended(row.number)
    assert ended.state == "cancelled"
    assert await works.plant.store.scan(PendingMoveRow) == []
    assert await works.floors("billing") == [60, 60]
    with pytest.raises(OperationEnded, match="cancelled already"):
        await works.operations.cancel(row.number, caller=ANA)


async def test_streams_that_are_not_named_stay_with_their_member(works: Works) -> None:
    await made(works, 3)
    member = await works.consumed("billing", 60)
    await works.operations.apply(rewind(ToEarliest(), "orders/0/1"), caller=ANA)
    revoke = await member.next(Revoke)
    assert revoke.stream.partition == 1
    row = await works.plant.registry.survey(works.plant.groups.find("billing"))
    assert [each.view.state for each in row.streams] == ["granted", "revoking", "granted"]


async def test_a_member_gives_its_stream_back_and_gets_it_again_rewound(works: Works) -> None:
    await made(works, 1)
    member = await works.consumed("billing", 60)
    row = await works.operations.apply(rewind(ToOffset(10), "orders/0/0"), caller=ANA)
    await works.given_back(member, 70)
    [granted] = await member.granted(1)
    assert (granted.progress, granted.frontier) == (Progress(10), 10)
    assert granted.suspect_end == 70
    assert (await works.ended(row.number)).state == "done"
    [move] = [found.row for found in await works.plant.store.scan(MadeMoveRow)]
    assert (move.floor_before, move.floor_after) == (70, 10)


async def test_a_restart_between_the_commit_and_the_moves_makes_them(works: Works) -> None:
    await made(works, 2)
    member = await works.consumed("billing", 60)
    row = await works.operations.apply(rewind(ToEarliest()), caller=ANA, reason="replay")
    await member.next(Revoke)
    await works.restart()
    ended = await works.ended(row.number)
    assert (ended.state, ended.reason) == ("done", "replay")
    assert await works.floors("billing") == [0, 0]
    await works.restart()
    assert await works.floors("billing") == [0, 0]
    assert works.operations.get(row.number) == ended


async def test_a_group_that_is_removed_ends_its_operations(works: Works) -> None:
    await made(works, 1)
    member = await works.consumed("billing", 60)
    row = await works.operations.apply(rewind(ToEarliest()), caller=ANA)
    await member.next(Revoke)
    await works.plant.groups.remove(row.group_id)
    ended = await works.ended(row.number)
    assert (ended.state, ended.failure) == ("failed", "the group was removed")
    with pytest.raises(NotUndoable, match="its group was removed"):
        await works.apply(Undo(row.number))


async def test_a_topic_that_is_removed_takes_its_pending_moves_along(works: Works) -> None:
    await made(works, 1)
    member = await works.consumed("billing", 60)
    row = await works.operations.apply(rewind(ToEarliest()), caller=ANA)
    await member.next(Revoke)
    await works.plant.catalogue.remove("orders")
    assert (await works.ended(row.number)).state == "done"


async def test_who_did_what_and_why_is_kept_and_told(works: Works) -> None:
    await made(works, 1)
    row = await works.apply(skip(ToOffset(10), "orders/0/0"), reason="ticket 9")
    assert (row.principal, row.origin, row.reason) == ("local:ana", "unix:", "ticket 9")
    assert json.loads(row.change)["targets"] == [
        {"offset": 10, "storage_topic_id": 2, "stream": "orders/0/0"}
    ]
    codes = [(event.kind.code, event.subject) for event in works.told]
    assert codes == [
        ("operation.applied", "billing@orders/#"),
        ("operation.ended", "billing@orders/#"),
    ]
    assert "ticket 9" in works.told[0].sentence


async def test_a_reason_that_is_a_sentence_ends_the_event_once(works: Works) -> None:
    await made(works, 1)
    await works.apply(skip(ToOffset(10), "orders/0/0"), reason="It was broken.")
    [applied, _ended] = works.told[-2:]
    assert applied.sentence.endswith(": It was broken.")


async def test_old_operations_are_removed_with_what_would_undo_them(works: Works) -> None:
    await made(works, 1)
    row = await works.apply(skip(ToOffset(10), "orders/0/0"), operation_id="old")
    works.plant.clock.ahead_ms += OPERATIONS_KEPT_MS + 1
    await works.restart()
    await works.until(lambda: not list(works.operations.newest()))
    with pytest.raises(OperationNotFound):
        works.operations.get(row.number)
    assert await works.plant.store.scan(OperationRow) == []
    assert await works.plant.store.scan(MadeMoveRow) == []
    again = await works.apply(skip(ToOffset(20), "orders/0/0"), operation_id="old")
    assert again.state == "done"


async def test_details_beyond_their_bytes_are_read_from_the_store(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.operations.history.OPERATION_DETAILS_BYTES_MAX", 1_000)
    await made(works, 2, consumed=50)
    rows = [
        await works.apply(rewind(ByRecords(-1), stream), operation_id=f"ticket {at}")
        for at, stream in enumerate(["orders/0/1", *4 * ["orders/0/0"]])
    ]
    await works.restart()
    first, *_, last = rows
    heads = list(works.operations.newest())
    assert [row.number for row in heads[:5]] == [row.number for row in reversed(rows)]
    assert sum(len(row.change) for row in heads) <= 1_000
    assert works.operations.get(first.number).change == ""
    assert await works.operations.whole(first.number) == first
    assert await works.operations.whole(last.number) == last
    repeated = rewind(ByRecords(-1), "orders/0/1")
    again = await works.operations.apply(repeated, operation_id="ticket 0", caller=ANA)
    assert again == first
    with pytest.raises(OperationIdReused):
        await works.apply(rewind(ByRecords(-2)), operation_id="ticket 0")
    await works.apply(Undo(first.number))
    assert await works.floors("billing") == [46, 50]
    [stored] = [
        found.row
        for found in await works.plant.store.scan(OperationRow)
        if found.row.number == first.number
    ]
    assert (stored.change, bool(stored.undone_by)) == (first.change, True)


async def test_operations_that_changed_nothing_go_before_one_that_can_be_taken_back(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.operations.history.OPERATIONS_KEPT_MAX", 3)
    monkeypatch.setattr("dssd.operations.history.OPERATIONS_SURPLUS_MAX", 2)
    await made(works, 1)
    first = await works.apply(skip(ToOffset(10), "orders/0/0"))
    for _ in range(7):
        await works.apply(skip(ToOffset(10), "orders/0/0"))
    kept = [row.number for row in works.operations.newest()]
    assert kept[-1] == first.number
    assert 3 <= len(kept) <= 6
    await works.apply(Undo(first.number))
    assert await works.floors("billing") == [0]


async def test_the_progress_row_says_which_operation_moved_the_cursor(works: Works) -> None:
    await made(works, 1)
    row = await works.apply(skip(ToOffset(10), "orders/0/0"))
    [progress] = [found.row for found in await works.plant.store.scan(ProgressRow)]
    assert (progress.cursor_generation, progress.moved_count) == (row.number, 10)


async def test_a_plan_for_a_group_that_was_removed_does_not_fit_the_next_of_its_name(
    works: Works,
) -> None:
    await made(works, 1)
    plan = await works.operations.plan(skip(ToLatest()))
    await works.plant.groups.remove(works.plant.groups.find("billing").group_id)
    await works.plant.group("$share/billing/orders/#", Earliest())
    with pytest.raises(RevisionMoved):
        await works.apply(plan.change, if_revision=plan.revision)
    assert await works.floors("billing") == [0]


async def test_an_end_that_comes_with_a_cancellation_stays_an_end(works: Works) -> None:
    await made(works, 1)
    row = await works.apply(skip(ToOffset(10), "orders/0/0"))
    with pytest.raises(OperationEnded):
        await works.operations.cancel(row.number, caller=ANA)
    assert works.operations.get(row.number) == row


async def test_an_id_of_the_daemons_own_is_refused(works: Works) -> None:
    await made(works, 1)
    with pytest.raises(IllegalArgument, match="is of the daemon itself"):
        await works.apply(skip(ToLatest()), operation_id="dssd-7")


async def test_an_undo_that_was_cancelled_half_way_can_be_done_again(works: Works) -> None:
    await made(works, 2, consumed=60)
    done = await works.apply(rewind(ToEarliest()))
    member = await works.consumed("billing", 0)
    undo = await works.operations.apply(Undo(done.number), caller=ANA)
    await works.given_back(member, 0)
    await works.until(lambda: 60 in works.live_floors("billing"))
    await works.operations.cancel(undo.number, caller=ANA)
    assert (await works.ended(undo.number)).state == "cancelled"
    again = await works.operations.apply(Undo(done.number), caller=ANA)
    await works.given_back(member, 0)
    assert (await works.ended(again.number)).state == "done"
    assert await works.floors("billing") == [60, 60]


async def test_a_group_is_paused_while_a_rewind_waits_for_a_member(works: Works) -> None:
    await made(works, 1)
    member = await works.consumed("billing", 60)
    await works.operations.apply(rewind(ToEarliest()), caller=ANA)
    await member.next(Revoke)
    row = await works.operations.apply(PauseGroup("billing"), caller=ANA)
    assert row.kind == "groups.pause"
    assert works.plant.groups.find("billing").paused


async def test_a_cancellation_that_no_leader_heard_of_holds_over_a_restart(works: Works) -> None:
    await made(works, 2)
    member = await works.consumed("billing", 60)
    row = await works.operations.apply(rewind(ToEarliest()), caller=ANA)
    await member.next(Revoke)
    # The daemon ends between the commit of the cancellation and its word to the leader.
    stopping = works.plant.registry
    stopping.instruct = lambda group_id, instruction: None  # type: ignore[method-assign] # as above
    await works.operations.cancel(row.number, caller=ANA, reason="not now")
    await works.restart()
    ended = await works.ended(row.number)
    why = "local:ana cancelled it: not now; 0 of 2 cursors have moved"
    assert (ended.state, ended.failure) == ("cancelled", why)
    assert await works.floors("billing") == [60, 60]
    assert await works.plant.store.scan(PendingMoveRow) == []


async def test_a_cancellation_whose_caller_goes_away_in_its_commit_reaches_the_leader(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(works, 1)
    member = await works.consumed("billing", 60)
    row = await works.operations.apply(rewind(ToEarliest()), caller=ANA)
    await member.next(Revoke)
    committing, goes_on = asyncio.Event(), asyncio.Event()
    usual = works.plant.store.commit

    async def slow(
        writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        committing.set()
        await goes_on.wait()
        return await usual(writes, preconditions)

    monkeypatch.setattr(works.plant.store, "commit", slow)
    calling = asyncio.create_task(works.operations.cancel(row.number, caller=ANA))
    await committing.wait()
    calling.cancel()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert (await works.ended(row.number)).state == "cancelled"


async def test_what_tells_of_an_operation_is_committed_with_it(works: Works) -> None:
    await made(works, 1)
    await works.apply(skip(ToOffset(10), "orders/0/0"), reason="ticket 9")
    drafts = [found.row for found in await works.plant.store.scan(EventRow)]
    assert [each.code for each in drafts] == ["operation.ended", "operation.applied"]
    assert "ticket 9" in drafts[1].sentence
    assert not works.heard.drafts, "each is removed with what is told instead"
