"""The store behind a disk: when commits take effect, and what a crash leaves of them."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from dss_core.errors import DiskFull, Stopping
from dss_sim.sessions.slow_store import Disk, SlowStore
from dss_sim.sessions.timeline import Timeline, VirtualLoop
from dssd.store.port import Absent, PreconditionFailed, Put
from dssd.store.rows import SubscriptionRow


def row(number: int) -> SubscriptionRow:
    return SubscriptionRow(b"s", number, "f", 1)


class Desk:
    """A store of one life, and what it told."""

    def __init__(self, seed: int = 0) -> None:
        self.timeline = Timeline()
        self.disk = Disk(Random(seed))
        self.loop = VirtualLoop(self.timeline)  # type: ignore[abstract] # enough of a loop
        self.deaths = 0
        self.store = SlowStore(self.disk, self.timeline, self.loop, self.die)

    def die(self) -> None:
        self.deaths += 1
        self.loop.abandon()

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 # what the work gives
        task = self.loop.create_task(work)
        while not task.done() and not self.loop.abandoned:
            self.timeline.step()
        return task.result() if task.done() else None


def test_a_commit_takes_a_while_and_is_told_when_it_takes_effect() -> None:
    desk = Desk()
    told: list[int] = []
    desk.disk.committed = lambda writes, asker: told.append(desk.timeline.now_us)
    desk.do(desk.store.commit([Put(row(1))]))
    [at_us] = told
    assert 0 < at_us < desk.timeline.now_us
    assert desk.disk.held(SubscriptionRow) == [row(1)]


def test_a_question_beside_a_commit_sees_what_was_before() -> None:
    desk = Desk()

    async def both() -> tuple[list[int], object]:
        return tuple(  # type: ignore[return-value] # what two calls gave
            await asyncio.gather(
                desk.store.commit([Put(row(1))]), desk.store.read(SubscriptionRow, (b"s", 1))
            )
        )

    _, seen = desk.do(both())
    assert seen is None


def test_a_failed_precondition_is_the_callers() -> None:
    desk = Desk()
    desk.do(desk.store.commit([Put(row(1))]))
    with pytest.raises(PreconditionFailed):
        desk.do(desk.store.commit([Put(row(1))], [Absent(SubscriptionRow, (b"s", 1))]))


def test_a_caller_that_is_cancelled_changes_nothing_about_its_commit() -> None:
    desk = Desk()
    task = desk.loop.create_task(desk.store.commit([Put(row(1))]))
    desk.timeline.step()
    task.cancel()
    desk.do(desk.store.read(SubscriptionRow, (b"s", 1)))
    assert task.cancelled()
    assert desk.disk.held(SubscriptionRow) == [row(1)]


def test_a_full_disk_refuses_some_commits_and_writes_nothing_of_them() -> None:
    desk = Desk()
    desk.disk.full = True
    refused = 0
    for number in range(1, 21):
        try:
            desk.do(desk.store.commit([Put(row(number))]))
        except DiskFull:
            refused += 1
    assert 0 < refused < 20
    assert len(desk.disk.held(SubscriptionRow)) == 20 - refused


def test_a_death_at_a_commit_leaves_it_made_or_not() -> None:
    left = set()
    for seed in range(20):
        desk = Desk(seed)
        desk.disk.dies_at = 2
        desk.do(desk.store.commit([Put(row(1))]))
        desk.do(desk.store.commit([Put(row(2))]))
        assert desk.deaths == 1
        left.add(len(desk.disk.held(SubscriptionRow)))
        desk.loop.dispose()
    assert left == {1, 2}


def test_a_closed_store_takes_nothing_more() -> None:
    desk = Desk()
    committing = desk.loop.create_task(desk.store.commit([Put(row(1))]))
    desk.timeline.step()
    desk.do(desk.store.close())
    assert committing.result() == [1]
    with pytest.raises(Stopping):
        desk.do(desk.store.commit([Put(row(2))]))
