"""What is asked of a lane that is just being re-homed ends as failed, and says so."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dss_core.changes import (
    BuryRetries,
    DiscardDeadLetters,
    GrowTopic,
    RedriveDeadLetters,
    RetryNow,
)
from dss_core.filters import SubscriptionFilter
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Progress
from dss_sim.played_groups import LOOK_AGAIN_S, Member
from dssd.leaders import rehoming
from dssd.leaders.declarations import AskedRetries
from dssd.machines.messages import GrantedStream, StreamReport, UpdateProgress
from dssd.machines.queues import Queues
from dssd.machines.start_point import Earliest
from dssd.operations.kinds import canary
from dssd.operations.kinds.canary import ELSEWHERE, Canaries, Canary
from dssd.queues.lane import Trouble
from dssd.queues.moving import Parts
from dssd.queues.rehoming import Rehoming, rehome
from dssd.store.rows import GroupRow
from support.operated_groups import ANA, Works
from support.queued_entries import Failed, append_entries

ENTRIES = tuple(Failed(at, key=b"k%d" % at) for at in range(3))


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary, "CANARY_LOOK_S", 0.01)


class Gate:
    """Holds the re-homing of lanes up, until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_asked, self._open = asyncio.Event(), asyncio.Event()
        usual = rehome

        async def late(asked: Rehoming, parts: Parts, trouble: Trouble) -> Queues | None:
            self.is_asked.set()
            await self._open.wait()
            return await usual(asked, parts, trouble)

        monkeypatch.setattr(rehoming, "rehome", late)

    def open(self) -> None:
        self._open.set()


async def ordered(
    works: Works, dead: Sequence[Failed] = (), retrying: Sequence[Failed] = (), records: int = 0
) -> GroupRow:
    """An ordered group with these in the queues of a stream, whose topic has grown."""
    plant = works.plant
    [stream] = await plant.topic("orders", 1)
    if records:
        await plant.publish(stream, records)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    asked = AskedRetries(5, ordered=True)
    group = await plant.groups.declare(parsed, start=Earliest(), retries=asked)
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    queues = plant.catalogue.queues_of(group.group_id, stream)
    assert queues is not None
    for level, entries in ((RETRY, retrying), (DEAD, dead)):
        if entries:
            await append_entries(plant, queues[level - 1], entries)
    await works.apply(GrowTopic("orders", 2))
    return group


async def state_of(works: Works) -> str:
    """Of the stream of the sealed storage topic."""
    survey = await works.plant.registry.survey(works.plant.groups.find("g"))
    return survey.streams[0].view.state


@pytest.mark.parametrize(
    ("change", "level"),
    [
        (DiscardDeadLetters("g", everything=True), DEAD),
        (RedriveDeadLetters("g"), DEAD),
        (RetryNow("g"), RETRY),
        (BuryRetries("g", everything=True), RETRY),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_an_order_that_meets_a_lane_on_its_way_fails_and_the_same_command_finds_it(
    works: Works,
    monkeypatch: pytest.MonkeyPatch,
    change: DiscardDeadLetters | RedriveDeadLetters | RetryNow | BuryRetries,
    level: int,
) -> None:
    gate = Gate(monkeypatch)
    dead, retrying = (ENTRIES, ()) if level == DEAD else ((), ENTRIES)
    group = await ordered(works, dead, retrying)
    works.plant.member(group, "ann").want()
    await gate.is_asked.wait()
    assert await state_of(works) == "rehoming"
    row = await works.operations.apply(change, caller=ANA)
    gate.open()
    ended = await works.ended(row.number)
    assert ended.state == "failed"
    assert ended.failure.startswith("0 of 1 streams did it: the others are gone, or were read")
    again = await works.operations.plan(change)
    assert " 3 " in again.summary
    assert {each.stream[:9] for each in again.streams} == {"orders/1/"}


async def test_a_canary_in_a_lane_on_its_way_fails_and_the_others_stay(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    works.plant.member(await ordered(works, ENTRIES), "ann").want()
    await gate.is_asked.wait()
    row = await works.operations.apply(RedriveDeadLetters("g", canary=1), caller=ANA)
    ended = await works.ended(row.number)
    gate.open()
    assert (ended.state, ended.failure) == ("failed", ELSEWHERE)


async def test_others_that_went_on_their_way_before_they_were_asked_for_stay_dead(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = await ordered(works, ENTRIES, records=1)
    member = works.plant.member(group, "ann")
    member.want()
    await member.granted(1)
    usual = Canaries._bring_others

    async def late(canaries: Canaries, asked: Canary, stopped: asyncio.Event) -> None:
        reported(member, granted, done, floor=1)
        await works.given_back(member, 1)
        while await state_of(works) != "finished":  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)
        await usual(canaries, asked, stopped)

    monkeypatch.setattr(Canaries, "_bring_others", late)
    row = await works.operations.apply(RedriveDeadLetters("g", canary=1), caller=ANA)
    await works.given_back(member, 0)
    [granted] = await member.granted(1)
    retry, dead = granted.queues
    assert dead.redrive[:2] == (row.number, ((0, 1),))
    back = replace(ENTRIES[0], attempt=0, cause="redriven", operation=row.number)
    await append_entries(works.plant, retry.stream, [back])
    done = (replace(retry, progress=Progress(1)), replace(dead, progress=Progress(1)))
    reported(member, granted, done, floor=0)
    ended = await works.ended(row.number)
    assert (ended.state, ended.failure) == ("failed", ELSEWHERE)
    left = await works.operations.plan(RedriveDeadLetters("g"))
    assert left.summary.startswith("redrive 2 dead letters")


def reported(member: Member, granted: GrantedStream, queues: Queues, *, floor: int) -> None:
    """What the holder did, with what it holds."""
    report = StreamReport(
        granted.stream, granted.grant_epoch, Progress(floor), floor, sent=floor, queues=queues
    )
    message = UpdateProgress(member.borrower_id, member.epoch, (report,))
    member.plant.registry.to_leader(member.group.group_id, message)
