"""How a job ended is told once, whatever was quicker."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dss_sim.played_groups import Plant
from dssd.events.events import Events
from dssd.events.model import Event
from dssd.jobs.held_job import JobChunk
from dssd.jobs.jobs import END_TOLD_LATE_MS, Jobs
from dssd.jobs.model import ChunkInput, Spec
from dssd.jobs.staging import Staging
from dssd.store.job_rows import ChunkRow, JobProgressRow, JobRow
from dssd.store.memory import MemoryStore
from dssd.store.paging import scan_all
from dssd.store.port import Put
from dssd.store.rows import EventRow

SPEC = Spec("", "", "", 1, "", ()).to_json()
JOB = JobRow(7, "nightly", "audit", "local", "active", SPEC, 0, 0, 0, 1, 0, 1, None, "", 0)


def lost(_event: Event) -> None:
    """The daemon dies before it is kept."""


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Plant]:
    store = MemoryStore()
    row = ChunkRow(JOB.job_id, 0, ChunkInput().to_json(), 0, 0, 0, "", None)
    await store.commit([Put(JOB), Put(JobProgressRow(JOB.job_id, 0, 0, 0, 0, "")), Put(row)])
    made = Plant(tmp_path / "log", store)
    await made.start()
    yield made
    await made.stop()
    await store.close()


async def opened(plant: Plant, note: Callable[[Event], None]) -> Jobs:
    staging = Staging(plant.directory.parent / "staging")
    return await Jobs.open(plant.store, plant.catalogue, plant.log, staging, plant.clock, note)


@asynccontextmanager
async def life(plant: Plant) -> AsyncIterator[Jobs]:
    """As a daemon lives; what it told is kept when it ends."""
    async with await Events.open(plant.store, plant.clock) as events:
        jobs = await opened(plant, events.note)
        jobs.tell_ends(events.newest_at_open_ms)
        yield jobs


async def told(plant: Plant) -> list[tuple[str, str]]:
    rows = [found.row for found in await scan_all(plant.store, EventRow)]
    return [(row.code, row.sentence) for row in rows if row.code in ("job.ended", "job.failed")]


async def test_a_job_that_ended_just_before_a_kill_is_told_of_by_the_next_start_alone(
    plant: Plant,
) -> None:
    jobs = await opened(plant, lost)
    granted = await jobs.acquire(JOB.name, "a driver", b"token")
    await jobs.commit(JOB.name, JobChunk(0, granted.progress.epoch, (), "{}"))
    for _ in range(2):
        async with life(plant):
            pass
        assert [code for code, _ in await told(plant)] == ["job.ended"]


async def test_a_job_that_failed_just_before_a_kill_is_told_of_by_the_next_start_alone(
    plant: Plant,
) -> None:
    jobs = await opened(plant, lost)
    granted = await jobs.acquire(JOB.name, "a driver", b"token")
    await jobs.give_up(JOB.name, granted.progress.epoch, "no such column")
    for _ in range(2):
        async with life(plant):
            pass
        assert await told(plant) == [("job.failed", "Its driver gave up: no such column.")]


async def test_a_job_that_ended_long_before_the_newest_event_is_not_told_of_again(
    plant: Plant,
) -> None:
    jobs = await opened(plant, lost)
    granted = await jobs.acquire(JOB.name, "a driver", b"token")
    await jobs.commit(JOB.name, JobChunk(0, granted.progress.epoch, (), "{}"))
    ended_at_ms = jobs.get(JOB.name).row.ended_at_ms
    assert ended_at_ms is not None
    noted: list[Event] = []
    late = await opened(plant, noted.append)
    late.tell_ends(ended_at_ms + END_TOLD_LATE_MS)
    assert noted == []
    late.tell_ends(ended_at_ms + END_TOLD_LATE_MS - 1)
    assert [event.kind.code for event in noted] == ["job.ended"]
