"""The demo as a newcomer runs it, but without a terminal: it works, and nothing of it is left."""

import asyncio
import os
import re
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.daemon_process import short_directory
from support.proof_share import only_in_proof, share

DEMO = Path(__file__).parents[2] / "scripts" / "demo.py"
MARK = "DSS_DEMO_RUN"
PATIENCE_S = 100.0
IN_A_TABLE = re.compile(r"\S {2,}\S|\u2500")
FLIGHTS = share(8_000, 336_776)


@pytest.fixture
def temporary() -> Iterator[Path]:
    with short_directory() as made:
        yield made


@asynccontextmanager
async def started(
    temporary: Path, mark: str, *arguments: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A demo; should the test fail, nothing of it survives the test either."""
    demo = await asyncio.create_subprocess_exec(
        *(sys.executable, str(DEMO), *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | {"TMPDIR": str(temporary), MARK: mark},
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield demo
    finally:
        for pid in processes_marked(mark):
            os.kill(pid, signal.SIGKILL)
        await demo.wait()


def processes_marked(mark: str) -> list[int]:
    """All processes that descend from a run, whatever became of their parents."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
        except OSError:  # it ended, or it is another user's
            continue
        if f"{MARK}={mark}".encode() in environment.split(b"\0"):
            found.append(int(process.name))
    return found


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


@only_in_proof
@pytest.mark.slow("the demo as it is")
async def test_the_demo_runs_through_and_leaves_nothing_behind(temporary: Path) -> None:
    mark = uuid.uuid4().hex
    async with started(temporary, mark, "--flights", str(FLIGHTS)) as demo:
        printed = (await demo.communicate())[0].decode()
        assert demo.returncode == 0, printed
        assert processes_marked(mark) == []
    assert "\x1b" not in printed
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 80
    assert len([line for line in lines if line.strip() and not IN_A_TABLE.search(line)]) <= 25
    assert f"have acknowledged all {FLIGHTS:,}." in printed
    assert names_in(temporary) == []


async def test_a_demo_that_is_interrupted_leaves_nothing_behind(temporary: Path) -> None:
    mark = uuid.uuid4().hex
    async with started(temporary, mark, "--flights", str(FLIGHTS)) as demo:
        assert demo.stdout is not None
        # Its first line comes once the daemon runs.
        assert await demo.stdout.readline()
        assert len(processes_marked(mark)) > 1
        demo.send_signal(signal.SIGINT)
        printed = (await demo.communicate())[0].decode()
        assert demo.returncode == 128 + signal.SIGINT, printed
        assert processes_marked(mark) == []
    assert "Traceback" not in printed
    assert names_in(temporary) == []
