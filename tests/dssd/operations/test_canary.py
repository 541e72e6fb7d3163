"""A redrive of which some go first: the others follow, or stay dead."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dss_core.changes import RedriveDeadLetters, Undo
from dss_core.errors import CanaryTooSmall, NotUndoable
from dss_core.ids import StreamId
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Progress
from dss_sim.played_groups import Member
from dssd.machines.messages import GrantedStream, StreamReport, UpdateProgress
from dssd.machines.queues import BURY
from dssd.operations.kinds import canary
from dssd.store.port import Put, Write
from dssd.store.rows import GroupRow, OperationRow, PendingMoveRow
from support.laned_groups import laned
from support.operated_groups import ANA, Works
from support.queued_entries import Failed, append_entries

DEAD_LETTERS = tuple(Failed(at, key=b"k%d" % at) for at in range(5))
CANARY = RedriveDeadLetters("g", canary=2)


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary, "CANARY_LOOK_S", 0.01)


class Holding:
    """Who holds the lane of the group, and does to it what a holder does."""

    def __init__(self, works: Works, group: GroupRow, retry: StreamId) -> None:
        self._works = works
        self._group = group
        self._retry_stream = retry
        self.member: Member = works.plant.member(group, "ann")
        self.granted: GrantedStream

    async def take(self, *, again: bool = False) -> GrantedStream:
        if again:
            await self._works.given_back(self.member, 0)
        else:
            self.member.want()
        [self.granted] = await self.member.granted(1)
        return self.granted

    async def brings_back(self, row: OperationRow, *offsets: int) -> None:
        """Entries of the retry queue, durable and reported."""
        came = [
            replace(DEAD_LETTERS[at], attempt=0, cause="redriven", operation=row.number)
            for at in offsets
        ]
        await append_entries(self._works.plant, self._retry_stream, came)
        done = self.granted.queues[DEAD - 1].progress.with_acked((at, at + 1) for at in offsets)
        self.reports(dead=done)

    def reports(self, *, retry: Progress | None = None, dead: Progress | None = None) -> None:
        retries, letters = self.granted.queues
        if dead is not None:
            letters = replace(letters, progress=dead)
        if retry is not None:
            retries = replace(retries, progress=retry)
        self.granted = replace(self.granted, queues=(retries, letters))
        report = StreamReport(
            self.granted.stream,
            self.granted.grant_epoch,
            self.granted.progress,
            self.granted.progress.floor,
            sent=0,
            queues=self.granted.queues,
        )
        message = UpdateProgress(self.member.borrower_id, self.member.epoch, (report,))
        self._works.plant.registry.to_leader(self._group.group_id, message)


async def held(works: Works) -> tuple[Holding, StreamId]:
    group, dead = await laned(works, *DEAD_LETTERS)
    [stream] = works.plant.catalogue.get("orders").streams()
    queues = works.plant.catalogue.queues_of(group.group_id, stream)
    assert queues is not None
    return Holding(works, group, queues[RETRY - 1]), dead


async def test_the_others_follow_once_the_canary_is_done_with(works: Works) -> None:
    holding, _ = await held(works)
    row = await works.operations.apply(CANARY, caller=ANA)
    granted = await holding.take()
    assert granted.queues[DEAD - 1].redrive[:2] == (row.number, ((0, 2),))
    await holding.brings_back(row, 0, 1)
    holding.reports(retry=Progress(1))
    assert (await works.operations.whole(row.number)).state == "running"
    holding.reports(retry=Progress(2))
    granted = await holding.take(again=True)
    assert granted.queues[DEAD - 1].redrive[:2] == (row.number, ((0, 5),))
    assert granted.queues[DEAD - 1].progress == Progress(2)
    await holding.brings_back(row, 2, 3, 4)
    assert (await works.ended(row.number)).state == "done"


async def test_the_others_stay_dead_where_one_fails_again_and_it_is_said_why(works: Works) -> None:
    holding, _ = await held(works)
    row = await works.operations.apply(CANARY, caller=ANA)
    await holding.take()
    await holding.brings_back(row, 0, 1)
    again = replace(DEAD_LETTERS[0], attempt=1, operation=row.number, error="still no route")
    await append_entries(works.plant, holding._retry_stream, [again])
    holding.reports(retry=Progress(2))
    ended = await works.ended(row.number)
    assert ended.state == "failed"
    assert ended.failure == (
        "1 of the 2 that came back first failed again: OSError: still no route. So 3 others stay "
        "dead."
    )
    [told] = [each for each in works.told if each.kind.code == "redrive.stopped"]
    assert told.fields["record"] == "orders/0/0@0"
    again_planned = await works.operations.plan(RedriveDeadLetters("g"))
    assert isinstance(again_planned.change, RedriveDeadLetters)
    assert again_planned.change.lanes[0].ranges == ((2, 5),)


async def test_a_share_of_the_canary_may_fail_and_a_death_is_a_failure(works: Works) -> None:
    holding, dead = await held(works)
    row = await works.operations.apply(replace(CANARY, canary_percent=50), caller=ANA)
    await holding.take()
    await holding.brings_back(row, 0, 1)
    await append_entries(works.plant, dead, [replace(DEAD_LETTERS[0], operation=row.number)])
    holding.reports(retry=Progress(2))
    granted = await holding.take(again=True)
    assert granted.queues[DEAD - 1].redrive.ranges == ((0, 5),)


async def test_a_daemon_that_begins_anew_goes_on_to_watch_the_canary(works: Works) -> None:
    holding, _ = await held(works)
    row = await works.operations.apply(CANARY, caller=ANA)
    await works.restart()
    assert (await works.operations.whole(row.number)).state == "running"
    holding.member = works.plant.member(works.plant.groups.find("g"), "ann")
    await holding.take()
    await holding.brings_back(row, 0, 1)
    holding.reports(retry=Progress(2))
    granted = await holding.take(again=True)
    assert granted.queues[DEAD - 1].redrive[:2] == (row.number, ((0, 5),))


async def test_a_canary_that_is_cancelled_brings_nothing_more_back(works: Works) -> None:
    holding, _ = await held(works)
    row = await works.operations.apply(CANARY, caller=ANA)
    await holding.take()
    await holding.brings_back(row, 0)
    await works.operations.cancel(row.number, caller=ANA, reason="not yet")
    await works.given_back(holding.member, 0)
    ended = await works.ended(row.number)
    assert ended.state == "cancelled"
    assert ended.failure.endswith("not yet; 1 of 5 dead letters came back")


async def test_a_canary_that_is_cancelled_as_the_others_are_called_brings_none_of_them(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    holding, _ = await held(works)
    row = await works.operations.apply(CANARY, caller=ANA)
    await holding.take()
    store = works.plant.store
    commit = store.commit

    async def cancelled_before(writes: Sequence[Write], *more: object) -> object:
        if any(isinstance(each, Put) and isinstance(each.row, PendingMoveRow) for each in writes):
            monkeypatch.setattr(store, "commit", commit)
            await works.operations.cancel(row.number, caller=ANA)
        return await commit(writes, *more)  # type: ignore[arg-type] # of commit

    monkeypatch.setattr(store, "commit", cancelled_before)
    await holding.brings_back(row, 0, 1)
    holding.reports(retry=Progress(2))
    granted = await holding.take(again=True)
    assert granted.queues[DEAD - 1].redriving == 0
    ended = await works.ended(row.number)
    assert (ended.state, ended.failure.rpartition("; ")[2]) == (
        "cancelled", "2 of 5 dead letters came back",
    )  # fmt: skip


async def test_a_redrive_is_taken_back_as_far_as_its_records_wait(works: Works) -> None:
    holding, _ = await held(works)
    row = await works.operations.apply(RedriveDeadLetters("g"), caller=ANA)
    await holding.take()
    await holding.brings_back(row, 0, 1, 2, 3, 4)
    assert (await works.ended(row.number)).state == "done"
    holding.reports(retry=Progress(2))
    await works.until(lambda: _retry_floor(works) == 2)
    plan = await works.operations.plan(Undo(row.number))
    assert plan.effects[0] == "3 records of it still waiting go back to the dead letters."
    undo = await works.operations.apply(Undo(row.number), caller=ANA)
    granted = await holding.take(again=True)
    assert granted.queues[RETRY - 1].errand == (undo.number, BURY, ((2, 5),))


async def test_a_redrive_of_which_nothing_waits_cannot_be_taken_back(works: Works) -> None:
    holding, _ = await held(works)
    row = await works.operations.apply(RedriveDeadLetters("g"), caller=ANA)
    await holding.take()
    await holding.brings_back(row, 0, 1, 2, 3, 4)
    holding.reports(retry=Progress(5))
    await works.ended(row.number)
    with pytest.raises(NotUndoable, match="nothing that it brought back waits any more"):
        await works.operations.plan(Undo(row.number))


@pytest.mark.parametrize("how", [{"canary": 0}, {"canary": 1, "canary_percent": 100}])
async def test_a_canary_that_tells_nothing_is_refused(works: Works, how: dict[str, int]) -> None:
    await held(works)
    with pytest.raises(CanaryTooSmall, match="tells nothing about the others"):
        await works.operations.plan(RedriveDeadLetters("g", **how))  # type: ignore[arg-type]


def _retry_floor(works: Works) -> int:
    live = works.plant.registry.snapshot(works.plant.groups.find("g").group_id)
    assert live is not None
    return live.streams[0].queues[RETRY - 1].progress.floor
