"""The task ``backup``: where it writes, what it says, and its hook."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dss_core.errors import BackupFailed, TaskFailed
from dssd.schedules.tasks.backup import BackupPlace, Write, WrittenByTask, backup
from support.played_schedules import Heard

MADE = WrittenByTask(number=7, bytes=2 << 20, new_bytes=1 << 20, removed=1)


def writing(made: list[tuple[Path, int]]) -> Write:
    async def write(directory: Path, keep: int, told: Callable[[int, int], None]) -> WrittenByTask:
        made.append((directory, keep))
        told(1, 2)
        return MADE

    return write


def hook(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "hook"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return path


async def ran(place: BackupPlace | None, made: list[tuple[Path, int]]) -> list[str]:
    said = Heard()
    await backup(writing(made), place).work({}, said)
    return said


async def test_it_writes_where_the_file_of_the_daemon_says_and_tells_the_hook(
    tmp_path: Path,
) -> None:
    made: list[tuple[Path, int]] = []
    told = tmp_path / "told"
    place = BackupPlace(Path("/backups"), 3, hook(tmp_path, f"cat > {told}; echo shipped"))
    lines = await ran(place, made)
    assert made == [(Path("/backups"), 3)]
    assert "backup 7 in /backups" in lines[0]
    assert "1 older one went" in lines[0]
    assert "shipped" in lines
    document = json.loads(told.read_text())
    assert (document["kind"], document["directory"], document["number"]) == (
        "Backup",
        "/backups",
        7,
    )


async def test_a_hook_that_fails_fails_the_run_and_says_that_the_backup_is_there(
    tmp_path: Path,
) -> None:
    place = BackupPlace(Path("/backups"), 3, hook(tmp_path, "exit 3"))
    with pytest.raises(TaskFailed, match="the backup is there, but"):
        await ran(place, [])


async def test_without_a_place_it_fails_with_what_to_write_into_the_file() -> None:
    made: list[tuple[Path, int]] = []
    with pytest.raises(TaskFailed, match=r"\[backup\] directory"):
        await ran(None, made)
    assert made == []


async def test_a_backup_that_fails_fails_the_run_and_no_hook_is_told(tmp_path: Path) -> None:
    async def write(*_: object) -> WrittenByTask:
        raise BackupFailed(reason="the disk is full")

    told = tmp_path / "told"
    place = BackupPlace(Path("/backups"), 3, hook(tmp_path, f"cat > {told}"))
    with pytest.raises(BackupFailed):
        await backup(write, place).work({}, Heard())
    assert not told.exists()
