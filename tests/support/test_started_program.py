"""A program that is forked runs as one that is executed."""

import asyncio
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from support.started_program import INTERPRETER, ProgramProcess, started
from support.terminal import AtTerminal

SAYS = """
import os, sys
if __name__ == "__main__":
    print(sys.argv[1:], sys.path[0], os.getppid(), os.environ.get("ASKED"), sys.stdin.readline())
    print(os.getcwd(), file=sys.stderr)
    sys.exit(7)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "says.py").write_text(SAYS)
    return str(tmp_path / "says.py")


async def test_it_has_arguments_streams_environment_and_exit_code(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASKED", "yes")
    said = await started(program, "a", "b", pipes=["stdin", "stdout", "stderr"])
    assert said.stdin is not None
    said.stdin.write(b"told\n")
    out, err = await said.communicate()
    assert out.decode() == f"['a', 'b'] {tmp_path} {os.getpid()} yes told\n\n"
    assert err.decode() == f"{tmp_path}\n"
    assert said.returncode == 7


async def test_one_whose_start_is_given_up_has_ended(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    loop, runs, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    usual = INTERPRETER.start

    def start(*arguments: Any, **options: Any) -> int:  # noqa: ANN401 # what the usual one takes
        begun.append(usual(*arguments, **options))
        loop.call_soon_threadsafe(runs.set)
        goes_on.wait()
        return begun[0]

    monkeypatch.setattr(INTERPRETER, "start", start)
    starting = asyncio.create_task(started(program, pipes=["stdin", "stdout"]))
    await runs.wait()
    starting.cancel()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    with pytest.raises(ProcessLookupError):
        os.kill(begun[0], 0)


async def test_it_ends_by_a_signal_and_nothing_of_it_stays(program: str) -> None:
    waiting = await started(program, pipes=["stdin", "stdout"])
    waiting.terminate()
    assert await waiting.wait() == -signal.SIGTERM
    waiting.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(waiting.pid, 0)


async def test_a_module_runs_by_its_name(program: str) -> None:
    asked = await started("-m", "dssd", "version", pipes=["stdout"])
    out, _ = await asked.communicate()
    assert out.startswith(b"dssd ")
    assert asked.returncode == 0


def test_it_can_be_had_without_an_event_loop(program: str, tmp_path: Path) -> None:
    pipe, asked = subprocess.PIPE, os.environ | {"ASKED": "yes"}
    with ProgramProcess([program, "a"], stdin=pipe, stdout=pipe, env=asked) as said:
        out, _ = said.communicate(b"told\n")
    assert out.decode() == f"['a'] {tmp_path} {os.getpid()} yes told\n\n"
    assert said.returncode == 7
    with ProgramProcess([program], stdin=pipe, stdout=pipe) as waiting:
        waiting.send_signal(signal.SIGTERM)
        assert waiting.wait() == -signal.SIGTERM


def test_a_tool_has_a_terminal_of_a_known_size() -> None:
    tool = AtTerminal("produce", "nowhere", "--help")
    tool.expect("Usage: .*\r\n")
    assert tool.getwinsize() == (24, 120)
    tool.close()
