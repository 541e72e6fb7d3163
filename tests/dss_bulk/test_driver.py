"""How a driver works off chunks, with work and a lease that are made up."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dss_bulk.driver import DRIVER_ATTEMPTS_MAX, drive
from dss_bulk.work import ChunkDone, Work
from dss_client.job_values import JobChunk, JobTarget
from dss_core.errors import DriverCrashed
from dss_core.routing import Router
from dss_core.staged import StagedFile

CHUNKS = 4
TARGET = JobTarget("copies", 1, 4, 1, Router.BLOCK, ("copies/#",))


class Told:
    """What was begun and committed, in its order; also the engine, its work, client and lease."""

    name = "a made up engine"
    chunks_at_once = 2

    def __init__(self, target: JobTarget | None) -> None:
        self.said = ""
        self.lost: Exception | None = None
        self.steps: list[str] = []
        self.job: Any = SimpleNamespace(job_id=1, chunks=CHUNKS, published=0)
        self.granted: Any = SimpleNamespace(job=self.job, target=target, staging=Path())
        self.jobs = self

    @asynccontextmanager
    async def opened(self, _job: object) -> AsyncGenerator[None, None]:
        yield

    def work_of(self, _client: object, _granted: object) -> Work:
        return self

    @asynccontextmanager
    async def drive(self, _job: str, *, driver: str) -> AsyncGenerator["Told", None]:
        assert driver.startswith(self.name)
        yield self

    async def get(self, _job: str) -> object:
        return self.job

    async def open_chunks(self) -> AsyncGenerator[JobChunk, None]:
        for number in range(CHUNKS):
            yield JobChunk(number, (), "", 0, 0, None, None)

    async def over_restarts(self, act: Callable[[], Awaitable[ChunkDone]]) -> ChunkDone:
        return await act()

    async def wait_until_lost(self) -> None:
        await asyncio.Event().wait()

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        assert last == (chunk.number == CHUNKS - 1)
        self.steps.append(f"work {chunk.number}")
        return ChunkDone()

    async def commit(
        self, chunk: int, files: Sequence[StagedFile], *, output: str, records: int
    ) -> None:
        assert (list(files), output, records) == ([], "", 0)
        for _ in range(5):  # who works meanwhile has its turn
            await asyncio.sleep(0)
        self.steps.append(f"commit {chunk}")

    def stop(self) -> None:
        self.steps.append("stop")

    def discard(self) -> None:
        self.steps.append("discard")


async def driven(told: Told) -> None:
    client: Any = told  # of a client it has what a driver asks for
    await drive(client, "again", engine=told)


@pytest.mark.parametrize("target", [TARGET, None])
async def test_chunks_are_committed_in_their_order(target: JobTarget | None) -> None:
    told = Told(target)
    await driven(told)
    committed = [step for step in told.steps if step.startswith("commit")]
    assert committed == [f"commit {number}" for number in range(CHUNKS)]


async def test_the_last_chunk_is_staged_while_the_one_before_is_committed() -> None:
    told = Told(TARGET)
    await driven(told)
    assert told.steps.index("work 3") < told.steps.index("commit 2")


async def test_what_ends_a_job_without_a_target_finds_all_of_the_rest_committed() -> None:
    told = Told(None)
    await driven(told)
    assert told.steps[-2:] == ["work 3", "commit 3"]
    assert told.steps.index("commit 2") < told.steps.index("work 3")


class Crashing(Told):
    """Its work crashes at a chunk, so often."""

    def __init__(self, times: int) -> None:
        super().__init__(TARGET)
        self.job.name = "again"
        self.times = times
        self.failure = ""

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        if chunk.number == 2 and self.times:
            self.times -= 1
            raise ValueError("no such value")
        return await super().chunk(chunk, last=last)

    async def renew(self) -> None:
        self.steps.append(f"said {self.said}")

    async def give_up(self, reason: str) -> None:
        self.failure = reason


async def test_a_driver_that_crashes_each_time_fails_its_job_with_the_reason() -> None:
    told = Crashing(DRIVER_ATTEMPTS_MAX)
    with pytest.raises(
        DriverCrashed, match="crashed 3 times, the last time by ValueError: no such"
    ):
        await driven(told)
    assert "ValueError: no such value" in told.failure
    assert [json.loads(step[5:])["attempt"] for step in told.steps if "attempt" in step] == [
        *range(1, DRIVER_ATTEMPTS_MAX + 1)
    ]


async def test_what_crashed_once_goes_on_in_another_attempt() -> None:
    told = Crashing(1)
    await driven(told)
    assert (told.steps[-1], told.failure) == (f"commit {CHUNKS - 1}", "")
