"""A daemon for all tests of a module, without an event loop of its own.

Invariant: it ends with the block, and its folder is removed with it.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.daemon_process import LISTENING
from support.started_program import ProgramProcess

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
LOOK_AGAIN_S = 0.05


@contextmanager
def served() -> Iterator[tuple[str, ProgramProcess]]:
    """Its endpoint and its process. The folder has a short name, because a unix socket's path is
    bounded."""
    folder = Path(tempfile.mkdtemp(prefix="dssctl-", dir="/tmp"))
    endpoint = f"unix:{folder}/s"
    log = folder / "log"
    with log.open("wb") as output:
        serve = ("-m", "dssd", "serve", "--data-dir", f"{folder}/d", "--listen", endpoint)
        process = ProgramProcess(serve, stdout=output, stderr=output)
    try:
        wait_until_it_listens(process, log)
        yield endpoint, process
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder)


def wait_until_it_listens(process: ProgramProcess, log: Path) -> None:
    """Fail the running test if it does not."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        if LISTENING in log.read_text():
            return
        time.sleep(LOOK_AGAIN_S)
    pytest.fail(f"the daemon did not start:\n{log.read_text()}")
