"""What a person is told of a daemon that does not answer."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dss_client.late_daemon import stopped_process
from dss_core.errors import PASSING, DaemonStopped, TimedOut
from dssctl.connection import in_time
from dssctl.settings import Settings

LISTENER = """
import socket, sys
listening = socket.create_server(sys.argv[1], family=socket.AF_UNIX)
print("listens", flush=True)
input()
"""


@pytest.fixture
def listener() -> Iterator[tuple[str, int]]:
    """The endpoint and the number of a process that listens and answers nothing."""
    with TemporaryDirectory(prefix="dss") as folder:
        path = f"{folder}/s"
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", LISTENER, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with process:
            assert process.stdout is not None
            process.stdout.readline()
            yield f"unix:{path}", process.pid
            process.kill()


def stop(process: int) -> None:
    """Stop it, and wait until it is."""
    os.kill(process, signal.SIGSTOP)
    os.waitid(os.P_PID, process, os.WSTOPPED)


def test_a_process_that_runs_is_not_stopped(listener: tuple[str, int], tmp_path: Path) -> None:
    assert stopped_process(listener[0]) is None
    assert stopped_process(f"unix:{tmp_path}/nobody") is None
    assert stopped_process("127.0.0.1:1") is None


async def test_a_stopped_daemon_is_told_while_it_is_waited_for_and_in_the_end(
    listener: tuple[str, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint, process = listener
    stop(process)
    monkeypatch.setattr("dssctl.connection.SILENT_S", 0)
    settings = Settings(endpoint=endpoint, timeout_s=0.1)
    with pytest.raises(DaemonStopped) as raised:
        await in_time(settings, asyncio.Event().wait())
    assert isinstance(raised.value, PASSING)
    assert f"kill -CONT {process}" in raised.value.hint_text
    said = capsys.readouterr().err
    assert said == (
        f"note: the daemon has not answered: its process {process} is stopped; "
        f"kill -CONT {process}\n"
    )


async def test_a_daemon_that_is_slow_is_told_of_once(
    listener: tuple[str, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dssctl.connection.SILENT_S", 0)
    with pytest.raises(TimedOut):
        await in_time(Settings(endpoint=listener[0], timeout_s=0.1), asyncio.Event().wait())
    assert capsys.readouterr().err == "note: the daemon has not answered yet\n"


async def test_who_answers_soon_is_not_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert await in_time(Settings(), asyncio.sleep(0, "answer")) == "answer"
    assert capsys.readouterr().err == ""
