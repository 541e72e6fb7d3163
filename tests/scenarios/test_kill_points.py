"""kill -9 at every system call that a daemon makes on its files, one call a run.

A trial runs once to count the calls, and once for each point with the daemon killed as it enters
that call: of the log, of the store, at the start, in the midst and while it stops. An offline
check finds no damage in what is left; then a daemon starts on it, and one verdict judges.
`make proof` tries all 800 points, which takes a quarter of an hour; `make test` tries two of
them, of different kinds of call and file.
"""

import signal
from functools import partial
from pathlib import Path

import pytest

from support import syscall_faults, trial_verdict
from support.client_trial import Journal, perform
from support.daemon_process import running, short_directory
from support.syscall_faults import MISSED, Point

pytestmark = [pytest.mark.needs_strace, pytest.mark.slow("a daemon for each point")]

SMALL = (str(Path(__file__).parent / "programs" / "small_daemon.py"),)
SAMPLE = 2


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of a dead daemon does not wait long for its answers when it leaves."""
    monkeypatch.setattr("dss_client.session.CLOSE_TIMEOUT_S", 0.1)


async def all_points() -> list[Point]:
    """What can be struck in a trial."""
    with short_directory() as directory:
        output = directory / "calls"
        work = partial(perform, Journal())
        tracer = syscall_faults.counting(output)
        exit_code, said = await syscall_faults.lived(directory, work, tracer=tracer, program=SMALL)
        assert exit_code == 0, said
        return syscall_faults.points_in(output, syscall_faults.data_in(directory))


async def killed_at(point: Point) -> str:
    """Kill a daemon there, and judge the next one."""
    journal = Journal()
    with short_directory() as directory:
        data = syscall_faults.data_in(directory)
        tracer = syscall_faults.injecting(point, data, syscall_faults.KILL, directory / "calls")
        work = partial(perform, journal)
        exit_code, said = await syscall_faults.lived(directory, work, tracer=tracer, program=SMALL)
        if exit_code != -signal.SIGKILL:
            return MISSED if exit_code == 0 else f"exit code {exit_code}: {said}"
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


async def test_a_kill_at_any_call_loses_nothing_that_was_acknowledged_and_invents_nothing() -> None:
    points = syscall_faults.chosen(await all_points(), SAMPLE)
    await syscall_faults.assert_all_sound(points, killed_at)
