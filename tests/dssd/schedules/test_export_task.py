"""What the task ``export`` takes, and what becomes of its driver."""

import asyncio
import os
from pathlib import Path

import pytest

from dss_core.errors import DssError, TaskFailed
from dssd.schedules.tasks import export as export_task
from dssd.schedules.tasks.export import export
from support.played_schedules import Heard

WAITS = """
import json, os, time
print(json.dumps({"said": str(os.getpid())}), flush=True)
time.sleep(600)
"""


async def nowhere() -> str:
    return "unix:/nowhere"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"topic": ".."},
        {"topic": "orders", "folder": ".."},
        {"topic": "orders", "folder": "a/b"},
        {"topic": "orders", "only": "a/#/b"},
    ],
)
def test_folders_lie_in_the_directory_and_what_is_wrong_is_told_when_the_schedule_is_made(
    tmp_path: Path, arguments: dict[str, str]
) -> None:
    with pytest.raises(DssError):
        export(nowhere, tmp_path).given(arguments)


CHATS = r"""
import json, sys
print("a library's warning")
print("x" * 200_000)
print("[1]")
print(json.dumps({"said": 7}))
print(json.dumps({"other": 1}))
sys.stdout.buffer.write(b"\xff\x00 no line's end")
"""


@pytest.fixture
def program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """What is run in place of the driver."""
    (tmp_path / "played_driver.py").write_text(request.param)
    monkeypatch.setattr(export_task, "PROGRAM", "played_driver")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.mark.parametrize("program", [WAITS], indirect=True)
@pytest.mark.usefixtures("program")
async def test_a_run_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    begun = asyncio.Event()

    class Told(Heard):
        def __call__(self, line: str, /) -> None:
            super().__call__(line)
            begun.set()

    said = Told()
    task = export(nowhere, tmp_path / "exports")
    running = asyncio.ensure_future(task.work(task.given({"topic": "orders"}), said))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(int(said[0]), 0)


@pytest.mark.parametrize("program", ["raise SystemExit(9)"], indirect=True)
@pytest.mark.usefixtures("program")
async def test_a_driver_that_ends_without_a_word_fails_the_run(tmp_path: Path) -> None:
    task = export(nowhere, tmp_path / "exports")
    with pytest.raises(TaskFailed, match="ended with 9"):
        await task.work(task.given({"topic": "orders"}), Heard())


@pytest.mark.parametrize("program", [CHATS], indirect=True)
@pytest.mark.usefixtures("program")
async def test_what_is_not_the_drivers_own_word_is_said_as_it_is(tmp_path: Path) -> None:
    task = export(nowhere, tmp_path / "exports")
    said = Heard()
    await task.work(task.given({"topic": "orders"}), said)
    assert said[0] == "a library's warning"
    assert said[1].strip("x") == ""
    assert said[2:] == ["[1]", "7", '{"other": 1}', "\ufffd\x00 no line's end"]
