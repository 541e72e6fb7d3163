"""A disk that is full from some point of a trial on, and has room again later.

While it is full, what adds something is refused, with the declared code, and everything else goes
on: reads, deliveries, durable acknowledgements, the removal of topics. Once there is room the trial
goes on, within 5 s, and a later daemon has all that was acknowledged.
"""

import asyncio
import time
import traceback
from pathlib import Path

import pytest

from dss_core.errors import DiskFull
from support import trial_verdict
from support.client_trial import ORDERS, Journal, Step, Trial
from support.daemon_process import running, short_directory
from support.prerequisites import MOUNT, leave_out
from support.proof_share import share
from support.small_disk import CannotMount, fill, mounted
from support.syscall_faults import assert_all_sound

pytestmark = pytest.mark.slow("a daemon for each point")


SMALL = (str(Path(__file__).parent / "programs" / "small_daemon.py"),)
DISK_BYTES = 32 << 20
POINTS = share((41,), range(1, 60))
JOINED = 13
"""Steps after which the member is in its group."""
LEFT = 58
LARGE_BYTES = 100_000
"""More than the last pages of the files have left."""
SPARE = "spare"
RECOVER_S_MAX = 60.0
POLL_S = 0.05


async def check_full(trial: Trial, done: int) -> None:
    """What a full disk refuses, and what it does not."""
    with pytest.raises(DiskFull) as refused:
        await trial.send(ORDERS, b"refused", LARGE_BYTES)
    assert refused.value.code == "DSS3001"
    stored = await trial_verdict.read(trial.client, ORDERS)
    acked = {place for place in trial.journal.stored if place[0].startswith(f"{ORDERS}/")}
    assert acked <= stored.keys()
    if JOINED <= done < LEFT:
        await trial.take(2)
        await trial.settle()
        await trial.settle()
    await trial.remove(SPARE)


async def until_refused(steps: list[Step]) -> list[Step]:
    """Do steps until one is refused; returns those that are left, that one first."""
    for at, step in enumerate(steps):
        try:
            await step.do()
        except DiskFull:
            assert step.adds, "only what adds something is refused"
            return steps[at:]
    return []


async def until_taken(step: Step) -> None:
    """Do a step that was refused before; it is taken soon."""
    until = time.monotonic() + RECOVER_S_MAX
    while True:
        try:
            await step.do()
        except DiskFull:
            assert time.monotonic() < until, "it is not taken although there is room"
            await asyncio.sleep(POLL_S)
        else:
            return


async def filled_at(point: int, directory: Path) -> None:
    """A trial whose disk is full after so many steps, and a second daemon on what it left."""
    journal = Journal()
    with mounted(directory / "disk", DISK_BYTES) as disk:
        data = ("--data-dir", str(disk / "data"))
        listen = ("--listen", f"unix:{directory}/first")
        async with running(*data, *listen, program=SMALL, from_nothing=True) as daemon:
            async with Trial(daemon.endpoint, journal) as trial:
                steps = trial.steps()
                for step in steps[:point]:
                    await step.do()
                await trial.create(SPARE)
                filler = fill(disk)
                await check_full(trial, point)
                left = await until_refused(steps[point:])
                filler.unlink()
                for step in left:
                    await until_taken(step)
            assert await daemon.stop() == 0, daemon.said
        async with running(*data, "--listen", f"unix:{directory}/next") as daemon:
            await trial_verdict.check(daemon.endpoint, journal)


@pytest.fixture
def mountable(tmp_path: Path) -> None:
    """Skips where no file system may be mounted."""
    try:
        with mounted(tmp_path / "tried", DISK_BYTES):
            pass
    except CannotMount as why:
        leave_out(MOUNT, str(why))


async def full_from(point: int) -> str:
    """What is wrong where the disk is full from that step on; nothing where all is well."""
    with short_directory() as directory:
        try:
            await filled_at(point, directory)
        except AssertionError:
            return traceback.format_exc()
    return ""


@pytest.mark.usefixtures("mountable")
async def test_a_disk_that_fills_up_refuses_what_adds_and_only_that_until_there_is_room() -> None:
    await assert_all_sound(POINTS, full_from)
