"""SIGKILL of a real process between the sync of a frame and its reply."""

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dss_core.ids import StreamId
from dssd.log.port import Append, Appended

PROGRAM = Path(__file__).parent / "programs" / "killed_appender.py"
SPEC = importlib.util.spec_from_file_location("killed_appender", PROGRAM)
assert SPEC is not None
assert SPEC.loader is not None
appender = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(appender)


@pytest.mark.parametrize("roll", ["roll", "stay"])
@pytest.mark.parametrize("frames", [1, 4])
async def test_a_frame_synced_but_not_answered_keeps_its_offset_when_sent_again(
    tmp_path: Path, frames: int, roll: str
) -> None:
    process = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, str(PROGRAM), str(tmp_path), str(frames), roll],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    answered = [int(line) for line in process.stdout.split()]
    assert answered == list(range(frames - 1)), "the last one had no reply"

    store, log = await appender.open_log(tmp_path)
    stream = StreamId(7, 0)
    assert log.bounds(stream).end == frames
    for sequence in range(frames):
        frame = appender.numbered_frame(sequence)
        (again,) = await log.append([Append(stream, frame, 1)])
        assert isinstance(again, Appended)
        assert (again.base_offset, again.repeated) == (sequence, True)
    assert log.quarantined() == []
    await log.close()
    await store.close()


async def test_a_kill_loses_no_record_of_durability_os_and_no_offset_is_assigned_twice(
    tmp_path: Path,
) -> None:
    process = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, str(PROGRAM), str(tmp_path), "50", "unsynced"],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert [int(line) for line in process.stdout.split()] == list(range(50))
    store, log = await appender.open_log(tmp_path)
    stream = StreamId(7, 0)
    chunk = await log.read(stream, 0, bytes_max=1 << 20)
    assert (chunk.base, chunk.records, chunk.damaged) == (0, 50, ())
    (following,) = await log.append([Append(stream, appender.numbered_frame(50), 1, "os")])
    assert isinstance(following, Appended)
    assert following.base_offset > 50
    assert log.count(stream, 0, following.base_offset + 1) == (51, True)
    assert log.quarantined() == []
    await log.close()
    await store.close()
