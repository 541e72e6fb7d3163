"""Jobs of lanes: one at a time each, for as long as the grant is held."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dss_core.ids import StreamId
from dss_core.lane import DEAD, MAIN, RETRY
from dssd.events.kinds import RECORDS_PASSED, STREAM_DAMAGED, STREAM_UNREADABLE
from dssd.leaders.declarations import PASS, STALL
from dssd.leaders.delivery_trouble import DeliveryTrouble
from dssd.machines.delivery.events import LaneOpened, Move, Moved, OpenLane
from dssd.queues import opening
from dssd.sessions.lane_jobs import LaneAnswer, LaneJobs, LaneTrouble
from dssd.sessions.log_reads import SessionGrant
from dssd.store.rows import GroupRow
from dssd.subscriptions.agent import Agent
from support.heard_events import Heard
from support.held_lane import Holder, entries_of, held_lane, piece

GRANT = 4
NAMES = "orders/0/1", "retry", "dead"


class Jobs:
    """The jobs of a session that holds one lane, and what they answered."""

    def __init__(self, holder: Holder) -> None:
        self.holder = holder
        self.heard = Heard()
        self.grants: dict[int, SessionGrant] = {}
        self.answers: asyncio.Queue[LaneAnswer] = asyncio.Queue()
        trouble = DeliveryTrouble(self.heard, "c")
        self.jobs = LaneJobs(holder.parts, trouble, self.grants, self.answers.put_nowait)
        group = GroupRow(7, "g", "orders/#", "shared", "", None, 30_000, 0, 0)
        agent = cast(Agent, SimpleNamespace(group=group))
        self.held = SessionGrant(
            agent, holder.levels[MAIN], NAMES, lambda: None, None, holder.lane()
        )
        self.grants[GRANT] = self.held
        main, retry, dead = holder.levels
        self.opening = OpenLane(GRANT, main, 1, retry, 0, dead, 0)

    async def next(self, kind: type[LaneAnswer]) -> LaneAnswer:
        async with asyncio.timeout(5):
            while not isinstance(answer := await self.answers.get(), kind):
                pass
            return answer


@pytest.fixture
async def jobs(tmp_path: Path) -> AsyncIterator[Jobs]:
    async with held_lane(tmp_path / "log") as holder, asyncio.TaskGroup() as tasks:
        made = Jobs(holder)
        serving = tasks.create_task(made.jobs.serve())
        yield made
        serving.cancel()


async def test_a_lane_is_opened_and_its_records_are_moved(jobs: Jobs) -> None:
    await jobs.holder.publish(b"a", b"b")
    jobs.jobs.ask(jobs.opening)
    await jobs.next(LaneOpened)
    jobs.jobs.ask(Move(GRANT, (piece(0, 1), piece(1, 2, to=DEAD))))
    moved = await jobs.next(Moved)
    assert isinstance(moved, Moved)
    assert [level for level, _ in moved.entries] == [RETRY, DEAD]


async def test_a_job_of_a_grant_that_is_over_is_not_begun(jobs: Jobs) -> None:
    await jobs.holder.publish(b"a")
    await jobs.holder.opened()
    jobs.jobs.ask(Move(GRANT, (piece(0, 1),)))
    del jobs.grants[GRANT]
    jobs.jobs.drop(GRANT)
    await asyncio.sleep(0)
    assert jobs.holder.log.reads == 0


async def test_a_job_ends_with_its_grant_and_what_it_began_to_append_is_there(jobs: Jobs) -> None:
    await jobs.holder.publish(b"a")
    await jobs.holder.opened()
    begun = jobs.holder.log.hold()
    jobs.jobs.ask(Move(GRANT, (piece(0, 1),)))
    await begun.wait()
    jobs.jobs.drop(GRANT)
    jobs.holder.log.go_on()
    assert len(entries_of(await jobs.holder.opened(epoch=2), RETRY)) == 1
    assert jobs.answers.empty()


async def test_a_queue_that_stays_unreadable_is_read_until_its_grant_is_over(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "OPEN_AGAIN_S", 0)
    await jobs.holder.publish(b"a")
    await jobs.holder.opened()
    await jobs.holder.move(piece(0, 1))
    jobs.holder.log.unreadable = 1 << 30
    jobs.jobs.ask(jobs.opening)
    for _ in range(3):
        await jobs.holder.log.next_read()
    jobs.jobs.drop(GRANT)
    await asyncio.sleep(0)
    after = jobs.holder.log.reads
    for _ in range(10):
        await asyncio.sleep(0)
    assert jobs.holder.log.reads == after
    assert {event.subject for event in jobs.heard.events} == {"retry"}
    assert {event.kind for event in jobs.heard.events} == {STREAM_UNREADABLE}


async def test_the_other_lanes_go_on_while_one_is_read_again(jobs: Jobs) -> None:
    jobs.holder.writers.room = asyncio.Semaphore(1)
    await jobs.holder.publish(b"a")
    await jobs.holder.opened()
    await jobs.holder.move(piece(0, 1))
    jobs.holder.log.unreadable = 1
    jobs.jobs.ask(jobs.opening)
    await jobs.holder.log.next_read()
    other = 2 * GRANT
    jobs.grants[other] = jobs.held
    jobs.jobs.ask(Move(other, (piece(0, 1),)))
    assert (await jobs.next(Moved)).grant == other
    jobs.jobs.drop(GRANT)


async def test_many_lanes_that_are_lent_at_once_are_opened_in_turns(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, begun_at, opened = 0, list[int](), 0
    writers = jobs.holder.parts.writers
    usual = writers.take_over

    async def take_over(lane: StreamId, epoch: int) -> bool:
        begun_at.append(turns)
        return await usual(lane, epoch)

    monkeypatch.setattr(writers, "take_over", take_over)
    jobs.jobs.ask(jobs.opening)
    for grant in range(2 * GRANT, 50 * GRANT, GRANT):
        jobs.grants[grant] = jobs.held
        jobs.jobs.ask(jobs.opening._replace(grant=grant))
    while opened < 49:
        await asyncio.sleep(0)
        turns += 1
        while not jobs.answers.empty():
            opened += isinstance(jobs.answers.get_nowait(), LaneOpened)
    assert len(set(begun_at)) == 49


async def test_a_group_that_stalls_at_damage_passes_over_nothing(jobs: Jobs) -> None:
    for policy in (PASS, STALL):
        jobs.held.agent.group = replace(jobs.held.agent.group, on_damage=policy)
        trouble = LaneTrouble(DeliveryTrouble(jobs.heard, "c"), jobs.held)
        assert await trouble.damaged(DEAD, ((3, 5),)) is (policy == PASS)
    kinds = [event.kind for event in jobs.heard.events]
    assert kinds == [RECORDS_PASSED, STREAM_DAMAGED]
