"""What operations do about entries that lie in closed streams, which nobody may hold."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dss_core.changes import BuryRetries, GrowTopic, RedriveDeadLetters, RemoveTopic, Undo
from dss_core.errors import NotUndoable
from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Progress
from dss_sim.played_groups import Member
from dssd.leaders.declarations import AskedRetries
from dssd.machines.messages import StreamReport, UpdateProgress
from dssd.machines.queues import QueueState
from dssd.machines.start_point import Earliest
from dssd.operations.kinds import retries
from dssd.operations.kinds.queue_choice import Chosen
from support.laned_groups import laned
from support.operated_groups import ANA, Works
from support.queued_entries import Failed, append_entries

WAITING = tuple(Failed(at, key=b"k%d" % at, attempt=1, due_ms=9_000_000) for at in range(3))
CLOSED = "orders/1/0 is closed: waits for orders/0/0"


class Grown:
    """An ordered group whose topic has grown: the stream of the old storage topic is open, those of
    the new one are closed."""

    def __init__(self, works: Works) -> None:
        self.works = works

    async def begin(self) -> None:
        plant = self.works.plant
        [stream] = await plant.topic("orders", 1)
        await plant.publish(stream, 2)
        parsed = SubscriptionFilter.parse("$share/g/orders/#")
        asked = AskedRetries(5, ordered=True)
        self.group = await plant.groups.declare(parsed, start=Earliest(), retries=asked)
        await self.works.apply(GrowTopic("orders", 2))
        await plant.catalogue.make_queues(self.group.group_id, plant.catalogue.get("orders"))
        self.open, self.closed = (
            self._queues(each)
            for each in (stream, plant.catalogue.get("orders").producing.streams()[0])
        )

    def _queues(self, stream: StreamId) -> Sequence[StreamId]:
        queues = self.works.plant.catalogue.queues_of(self.group.group_id, stream)
        assert queues is not None
        return queues

    async def put(self, queue: StreamId, *failed: Failed) -> None:
        await append_entries(self.works.plant, queue, failed)

    async def member(self) -> Member:
        member = self.works.plant.member(self.group, "ann")
        member.want()
        return member

    async def done(self, change: RedriveDeadLetters | BuryRetries, level: int) -> int:
        """Apply it; the holder of the open stream does it."""
        row = await self.works.operations.apply(change, caller=ANA)
        member = await self.member()
        [granted] = await member.granted(1)
        queues: list[QueueState] = [*granted.queues]
        queues[level - 1] = replace(queues[level - 1], progress=Progress(1)).end_errand()
        report = StreamReport(
            granted.stream, granted.grant_epoch, granted.progress, 0, queues=tuple(queues)
        )
        message = UpdateProgress(member.borrower_id, member.epoch, (report,))
        self.works.plant.registry.to_leader(self.group.group_id, message)
        assert (await self.works.ended(row.number)).state == "done"
        return row.number


@pytest.fixture
async def grown(works: Works) -> Grown:
    grown = Grown(works)
    await grown.begin()
    return grown


@pytest.mark.parametrize(
    ("change", "level", "to", "then"),
    [
        (RedriveDeadLetters("g"), DEAD, RETRY, "dssctl rq dead 'g@orders/#' deals with them"),
        (
            BuryRetries("g", everything=True),
            RETRY,
            DEAD,
            "dssctl dlq redrive 'g@orders/#' brings them back",
        ),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_an_undo_leaves_out_what_went_on_to_closed_streams_or_is_refused(
    grown: Grown, change: RedriveDeadLetters | BuryRetries, level: int, to: int, then: str
) -> None:
    await grown.put(grown.open[level - 1], WAITING[0])
    number = await grown.done(change, level)
    went_on = [replace(each, operation=number) for each in WAITING]
    await grown.put(grown.closed[to - 1], *went_on[1:])
    with pytest.raises(NotUndoable, match=f"left of it lies in streams .*: {CLOSED}"):
        await grown.works.operations.plan(Undo(number))
    await grown.put(grown.open[to - 1], replace(went_on[0], offset=1))
    plan = await grown.works.operations.plan(Undo(number))
    assert [each.stream for each in plan.streams] == ["orders/0/0"]
    assert plan.effects[-1].startswith("2 ")
    assert plan.effects[-1].endswith(
        f"for they lie in streams that are not open: {CLOSED}. {then} then."
    )


async def test_an_operation_whose_streams_are_closed_behind_its_plan_ends_and_says_so(
    grown: Grown, monkeypatch: pytest.MonkeyPatch
) -> None:
    await grown.put(grown.closed[RETRY - 1], *WAITING)
    member = await grown.member()
    await member.granted(1)

    def were_open(chosen: Sequence[Chosen]) -> tuple[list[Chosen], list[Chosen]]:
        return [*chosen], []

    monkeypatch.setattr(retries, "without_closed", were_open)
    row = await grown.works.operations.apply(BuryRetries("g", everything=True), caller=ANA)
    ended = await grown.works.ended(row.number)
    assert ended.state == "failed"
    assert ended.failure == (
        "1 stream was closed before it was done there, and what is left of it stays where it is: "
        f"{CLOSED}. Once that is open: dssctl rq dead 'g@orders/#'"
    )
    # So the one that the parent may need is not kept away.
    again = await grown.works.operations.plan(BuryRetries("g", everything=True))
    assert not again.nothing_to_do


@pytest.mark.parametrize(
    "change",
    [RedriveDeadLetters("g"), BuryRetries("g", everything=True)],
    ids=lambda each: type(each).__name__,
)
async def test_an_operation_whose_topic_is_removed_before_it_was_done_ends_and_says_so(
    works: Works, change: RedriveDeadLetters | BuryRetries
) -> None:
    await laned(works, WAITING[0], retrying=WAITING[1:])
    row = await works.operations.apply(change, caller=ANA)
    await works.apply(RemoveTopic("orders", force=True))
    ended = await works.ended(row.number)
    assert (ended.state, ended.failure) == (
        "failed",
        "orders was removed before it was done there, with all that waited or was dead",
    )
