"""A replay whose daemon, driver or disk fails, at each point of its way.

After each fault every record of what was published is in the target once, the order of keys is
kept, no file is left behind, and the job tells what happened. `DSS_PROOF=full` goes through each
fault at more chunks, and leaves the table of all of them in ``.cache/proof/bulk-faults.md``.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dss_client.changes import CancelJob, EditTopic, PauseJob, RemoveJob, ResumeJob
from dss_core.errors import JobNotDone, JobNotFound, JobNotInState
from support.bulk_jobs import answered
from support.faulty_jobs import (
    JOB,
    LOOK_S,
    RECORDS,
    Rows,
    Scene,
    Verdict,
    scene,
    table_of_faults,
)
from support.prerequisites import MOUNT, leave_out
from support.proof_share import only_in_proof, share
from support.small_disk import CannotMount, fill, mounted

TABLE = Path(".cache/proof/bulk-faults.md")
CHUNKS = share((1,), (0, 1, 2, 3))
"""At which the faults strike."""
PHASES = ("acquiring", "reading", "staging", "committing")
KILLED = share(("committing",), PHASES)
FROZEN = share(("committing",), PHASES[1:])
CANCELLED = share(("staging",), PHASES)
FULL_DISK = share(("committing",), PHASES[1:])
POINTS = ("copied", "stamped", "committed")
STRUCK = share(POINTS[1:2], POINTS)
DISK_BYTES = 48 << 20

at_chunks = pytest.mark.parametrize("chunk", CHUNKS)


@pytest.fixture(scope="module")
def rows() -> Iterator[Rows]:
    """The table of the module."""
    with table_of_faults(TABLE) as table:
        yield table


async def judged(one: Scene, rows: Rows, fault: str) -> Verdict:
    """What came of a fault; clean in any case."""
    verdict = rows[fault] = await one.verdict()
    assert verdict.is_clean, verdict
    return verdict


async def done(one: Scene, rows: Rows, fault: str) -> None:
    """The job went on to its end, and that is told, also where the daemon died behind it."""
    verdict = await judged(one, rows, fault)
    assert (verdict.state, verdict.records) == ("done", RECORDS)
    assert verdict.published == verdict.chunks > max(CHUNKS)
    await one.tells("job.ended")


def published_at(phase: str, chunk: int) -> range:
    """How many chunks may be published where a driver stands at a phase of one.

    That one is not. While it is read and staged, the commit of the one before it may be on its way.
    """
    if phase == "acquiring":
        return range(1)
    earliest = max(0, chunk - 1) if phase in ("reading", "staging") else chunk
    return range(earliest, chunk + 1)


@at_chunks
@pytest.mark.parametrize("phase", KILLED)
async def test_a_driver_that_is_killed_is_replaced(rows: Rows, phase: str, chunk: int) -> None:
    async with scene() as one:
        async with one.driver(phase, 0 if phase == "acquiring" else chunk) as driver:
            await driver.stands()
            driver.signal(signal.SIGKILL)
            await driver.ended()
            ended = await one.drive_on()
        assert ended.epoch == (1 if phase == "acquiring" else 2)
        await done(one, rows, f"driver killed, {phase} chunk {chunk}")


@at_chunks
@pytest.mark.parametrize("phase", FROZEN)
async def test_a_driver_that_wakes_behind_its_lease_publishes_nothing(
    rows: Rows, phase: str, chunk: int
) -> None:
    async with scene() as one:
        async with one.driver(phase, chunk) as driver:
            await driver.stands()
            driver.signal(signal.SIGSTOP)
            assert (await one.drive_on()).epoch == 2
            driver.go_on()
            driver.signal(signal.SIGCONT)
            code, said = await driver.ended()
            assert (code, "DSS7005" in said) == (6, True), said
        assert (await one.job()).state == "done", "it gave up nothing that is another one's"
        await one.tells("job.silent")
        await done(one, rows, f"driver frozen, {phase} chunk {chunk}")


@at_chunks
@pytest.mark.parametrize("point", STRUCK)
async def test_a_daemon_that_is_killed_amid_a_commit_publishes_all_of_it_or_nothing(
    rows: Rows, point: str, chunk: int
) -> None:
    async with scene(point, chunk) as one:
        driving = asyncio.create_task(one.drive_on())
        await one.reached()
        await one.kill_daemon()
        published = (await answered(one.job)).published
        assert published >= chunk + (point == "committed")
        assert (await driving).epoch == 1, "the same driver goes on"
        await done(one, rows, f"daemon killed, chunk {chunk} {point}")


@at_chunks
async def test_a_driver_whose_daemon_is_away_while_it_reads_goes_on(rows: Rows, chunk: int) -> None:
    async with scene() as one:
        async with one.driver("reading", chunk) as driver:
            await driver.stands()
            await one.daemon.kill()
            driver.go_on()
            await one.kill_daemon()
            assert await driver.ended() == (0, "")
        assert (await one.job()).epoch == 1, "the same driver goes on"
        await done(one, rows, f"daemon killed, chunk {chunk} read")


@at_chunks
async def test_a_commit_whose_answer_is_lost_is_answered_when_it_is_repeated(
    rows: Rows, chunk: int
) -> None:
    async with scene("committed", chunk) as one:
        async with one.driver("committing", chunk + 1) as driver:
            await one.reached()
            driver.signal(signal.SIGKILL)
            await driver.ended()
        one.go_on()
        with suppress(JobNotInState):  # the last answer was that of the end
            await one.drive_on()
        await done(one, rows, f"answer lost, chunk {chunk}")


@at_chunks
@pytest.mark.parametrize("phase", CANCELLED)
async def test_a_job_that_is_cancelled_publishes_no_more_and_leaves_nothing(
    rows: Rows, phase: str, chunk: int
) -> None:
    async with scene() as one:
        async with one.driver(phase, 0 if phase == "acquiring" else chunk) as driver:
            await driver.stands()
            if phase == "staging":
                # A thread of the driver stands there; the chunk before is committed meanwhile.
                while (await one.job()).published < chunk:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(LOOK_S)
            await one.client.operations.apply(CancelJob(JOB), reason="enough")
            driver.go_on()
            code, said = await driver.ended()
            assert (code, "DSS7004" in said) == (6, True), said
        verdict = await judged(one, rows, f"cancelled, {phase} chunk {chunk}")
        assert verdict.published in published_at(phase, chunk)
        await check_cancelled(one)


async def check_cancelled(one: Scene) -> None:
    """It says why, and can be forgotten."""
    assert (await one.job()).state == "cancelled"
    with pytest.raises(JobNotDone, match="enough"):
        await one.client.jobs.ended(JOB)
    await one.client.operations.apply(RemoveJob(JOB))
    with pytest.raises(JobNotFound):
        await one.job()


@at_chunks
@pytest.mark.parametrize("point", share(POINTS[1:2], POINTS[:2]))
async def test_a_job_that_is_cancelled_amid_a_commit_does_not_publish_it(
    rows: Rows, point: str, chunk: int
) -> None:
    async with scene(point, chunk) as one:
        async with one.driver("committing", chunk + 1) as driver:
            await one.reached()
            await one.client.operations.apply(CancelJob(JOB), reason="enough")
            one.go_on()
            code, said = await driver.ended()
            assert (code, "DSS7004" in said) == (6, True), said
        verdict = await judged(one, rows, f"cancelled, chunk {chunk} {point}")
        assert verdict.published == chunk
        await check_cancelled(one)


@at_chunks
@pytest.mark.parametrize("point", share(POINTS[1:2], POINTS[:2]))
async def test_a_job_that_is_paused_and_resumed_amid_a_commit_goes_on(
    rows: Rows, point: str, chunk: int
) -> None:
    async with scene(point, chunk) as one:
        driving = asyncio.create_task(one.drive_on())
        await one.reached()
        await one.client.operations.apply(PauseJob(JOB))
        await one.client.operations.apply(ResumeJob(JOB))
        one.go_on()
        assert (await driving).epoch == 1, "the same driver goes on"
        await done(one, rows, f"paused and resumed, chunk {chunk} {point}")


@only_in_proof
@at_chunks
async def test_a_paused_job_that_is_cancelled_ends_its_driver(rows: Rows, chunk: int) -> None:
    async with scene() as one:
        async with one.driver("committing", chunk) as driver:
            await driver.stands()
            await one.client.operations.apply(PauseJob(JOB))
            driver.go_on()
            await one.client.operations.apply(ResumeJob(JOB))
            await one.client.operations.apply(PauseJob(JOB))
            await one.client.operations.apply(CancelJob(JOB), reason="enough")
            code, said = await driver.ended()
            assert (code, "DSS7004" in said) == (6, True), said
        await judged(one, rows, f"cancelled while paused, chunk {chunk}")
        await check_cancelled(one)


@only_in_proof
@at_chunks
async def test_retention_that_is_due_waits_until_the_job_has_ended(rows: Rows, chunk: int) -> None:
    async with scene() as one:
        async with one.driver("reading", chunk) as driver:
            await driver.stands()
            await one.client.operations.apply(EditTopic("orders", retention_ms=1))
            assert {start for start, _ in await spans(one)} == {0}
            driver.go_on()
            assert await driver.ended() == (0, "")
        await done(one, rows, f"retention due, chunk {chunk}")
        # It was due: what is held no longer goes.
        while {start for start, _ in await spans(one)} == {0}:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(LOOK_S)


async def spans(one: Scene) -> list[tuple[int, int]]:
    """Start and end of each stream of the source."""
    topic = await one.client.topics.describe("orders")
    return [(each.start, each.end) for part in topic.storage_topics for each in part.streams]


@at_chunks
@pytest.mark.parametrize("phase", FULL_DISK)
async def test_a_full_disk_holds_a_job_up_until_there_is_room(
    rows: Rows, tmp_path: Path, phase: str, chunk: int
) -> None:
    try:
        with mounted(tmp_path / "disk", DISK_BYTES) as disk:
            async with scene(data=disk / "data") as one:
                async with one.driver(phase, chunk) as driver:
                    await driver.stands()
                    filler = fill(disk)
                    driver.go_on()
                    while "full" not in (await one.job()).said:  # noqa: ASYNC110 - nobody tells
                        await asyncio.sleep(LOOK_S)
                    assert (await one.job()).published in published_at(phase, chunk)
                    filler.unlink()
                    assert await driver.ended() == (0, "")
                assert (await one.job()).epoch == 1
                await done(one, rows, f"disk full, {phase} chunk {chunk}")
    except CannotMount as why:
        leave_out(MOUNT, str(why))
