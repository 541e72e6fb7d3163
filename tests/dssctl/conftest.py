"""The program as its users run it, here with a daemon of its own."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.daemon_process import LISTENING
from support.dssctl_call import Completed, call_dssctl
from support.started_program import ProgramProcess

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
LOOK_AGAIN_S = 0.05

Run = Callable[..., Completed]


@pytest.fixture
def dssctl() -> Run:
    """Runs one command without a terminal and without a daemon."""
    return call_dssctl


@dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon process of this test module."""

    endpoint: str
    process: ProgramProcess

    def dssctl(self, *arguments: str, stdin: bytes = b"") -> Completed:
        """Run one command against it."""
        return call_dssctl("--endpoint", self.endpoint, *arguments, stdin=stdin)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """A real daemon. Its folder is short-named: a unix socket's path is bounded."""
    folder = Path(tempfile.mkdtemp(prefix="dssctl-", dir="/tmp"))
    endpoint = f"unix:{folder}/s"
    log = folder / "log"
    with log.open("wb") as output:
        serve = ("-m", "dssd", "serve", "--data-dir", f"{folder}/d", "--listen", endpoint)
        process = ProgramProcess(serve, stdout=output, stderr=output)
    try:
        _wait_until_it_listens(process, log)
        yield Daemon(endpoint, process)
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder)


def _wait_until_it_listens(process: ProgramProcess, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        if LISTENING in log.read_text():
            return
        time.sleep(LOOK_AGAIN_S)
    pytest.fail(f"the daemon did not start:\n{log.read_text()}")
