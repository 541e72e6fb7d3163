"""A daemon of a test ends with what started it, however that ends."""

import asyncio
import os
import select
import sys
from pathlib import Path

import pytest

from support.daemon_process import DaemonProcess
from support.syscall_faults import counting

pytestmark = pytest.mark.parametrize(
    "traced", [False, pytest.param(True, marks=pytest.mark.needs_strace)]
)

PATIENCE_S = 60.0
POLL_S = 0.01
NEVER_LISTENS = """
import os, pathlib, sys, time
said = pathlib.Path(sys.argv[-1])
said.with_suffix(".new").write_text(f"{os.getpid()}")
said.with_suffix(".new").rename(said)
time.sleep(600)
"""
STARTS = """
import asyncio, sys
from support.daemon_process import DaemonProcess
program, said, *tracer = sys.argv[1:]
asyncio.run(DaemonProcess.start(said, program=[program], tracer=tracer, from_nothing=True))
"""


class NeverListens:
    """A program in place of a daemon, which only prints its process id."""

    def __init__(self, folder: Path, *, traced: bool) -> None:
        self.program = folder / "never_listens.py"
        self.program.write_text(NEVER_LISTENS)
        self.said = folder / "pid"
        self.tracer = counting(folder / "calls") if traced else []

    async def pid(self) -> int:
        """Its process id, once it runs."""
        async with asyncio.timeout(PATIENCE_S):
            # No event here tells what another process writes.
            while not self.said.exists():  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)
        return int(self.said.read_text())


async def test_a_daemon_whose_start_is_given_up_has_ended(traced: bool, tmp_path: Path) -> None:
    never = NeverListens(tmp_path, traced=traced)
    starting = asyncio.create_task(
        DaemonProcess.start(str(never.said), program=[str(never.program)], tracer=never.tracer)
    )
    pid = await never.pid()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_daemon_that_started_from_nothing_ends_with_a_run_that_is_killed(
    traced: bool, tmp_path: Path
) -> None:
    never = NeverListens(tmp_path, traced=traced)
    starts = [sys.executable, "-c", STARTS, str(never.program), str(never.said), *never.tracer]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = await asyncio.create_subprocess_exec(*starts, env=environment)
    daemon = os.pidfd_open(await never.pid())
    run.kill()
    await run.wait()
    ended, _, _ = select.select([daemon], [], [], PATIENCE_S)
    os.close(daemon)
    assert ended
