"""A disk that fails one sync, at any sync of a daemon's life: of the log, the store, a directory.

A trial runs once to count the syncs, and once for each point with that sync failing. What a failed
sync left is unknown to everybody, so the daemon ends at once, with exit code 74, and answers
nothing any more. Then the disk forgets what the segment file had not synced, and the next daemon
must have all that was acknowledged. `make proof` tries all syncs, `make test` a sample.
"""

import os
import re
from functools import partial
from pathlib import Path

import pytest

from dss_core.errors import ExitCode
from dss_sim import strace
from support import syscall_faults, trial_verdict
from support.client_trial import Journal, perform
from support.daemon_process import running, short_directory
from support.syscall_faults import MISSED, Point

pytestmark = [pytest.mark.needs_strace, pytest.mark.slow("a daemon for each point")]

SMALL = (str(Path(__file__).parent / "programs" / "small_daemon.py"),)
SYNCS = ("fdatasync", "fsync")
WRITES = ("pwritev2",)
IGNORED = ("fdatasync", ".")
"""SQLite does not look at what comes of syncing a directory; what it would have made durable, the
daemon has synced before."""
SAMPLE = 2
WRITTEN = re.compile(r", (\d+), 0$")
"""Position and flags of a pwritev2."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of a dead daemon does not wait long for its answers when it leaves."""
    monkeypatch.setattr("dss_client.session.CLOSE_TIMEOUT_S", 0.1)


async def all_syncs() -> list[Point]:
    """What can fail in a trial."""
    with short_directory() as directory:
        output = directory / "calls"
        work = partial(perform, Journal())
        tracer = syscall_faults.counting(output, SYNCS)
        exit_code, said = await syscall_faults.lived(directory, work, tracer=tracer, program=SMALL)
        assert exit_code == 0, said
        found = syscall_faults.points_in(output, syscall_faults.data_in(directory), SYNCS)
        return [point for point in found if (point.call, point.path) != IGNORED]


def forget_unsynced(path: Path, output: Path) -> None:
    """Cut a segment file to what was durable before the sync that failed."""
    size = synced = 0
    for call in strace.calls_of(output.read_text(errors="replace").splitlines()):
        written = WRITTEN.search(call.arguments)
        if written is not None:
            size = int(written[1]) + int(call.result)
        elif call.result == "0":
            synced = size
    os.truncate(path, synced)


async def failed_at(point: Point) -> str:
    """Have a sync fail, and judge the daemon and the next one."""
    journal = Journal()
    with short_directory() as directory:
        data, output = syscall_faults.data_in(directory), directory / "calls"
        tracer = syscall_faults.injecting(point, data, syscall_faults.FAIL, output, also=WRITES)
        work = partial(perform, journal)
        exit_code, said = await syscall_faults.lived(directory, work, tracer=tracer, program=SMALL)
        if exit_code == 0 and "INJECTED" not in output.read_text(errors="replace"):
            return MISSED
        if exit_code != ExitCode.IO_ERROR or "DSS5007" not in said or "Traceback" in said:
            return f"exit code {exit_code}: {said}"
        if point.path.endswith(".seg"):
            forget_unsynced(data / point.path, output)
        if damage := syscall_faults.damage_in(data):
            return f"damage: {damage}"
        async with running(*syscall_faults.serving(directory, "next")) as daemon:
            try:
                await trial_verdict.check(daemon.endpoint, journal)
            except TimeoutError as late:
                late.add_note(daemon.said)
                raise
            except AssertionError as wrong:
                return f"{type(wrong).__name__}: {wrong}\n{daemon.said}"
            return "" if await daemon.stop() == 0 else daemon.said


async def test_any_sync_that_fails_ends_the_daemon_and_nothing_acknowledged_is_lost() -> None:
    points = syscall_faults.chosen(await all_syncs(), SAMPLE)
    await syscall_faults.assert_all_sound(points, failed_at)
