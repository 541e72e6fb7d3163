"""The task ``backup``: copies all data to the directory in the daemon's file, and keeps the newest
copies.

Creators of schedules may be remote, so they must not choose where all data goes, nor which program
runs. So destination, number and hook are not arguments: they come from the daemon's file.
Invariant: a successful run leaves a backup that is complete and durable. A failing hook fails the
run, and the backup stays.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dss_core.counted import bytes_text, counted
from dss_core.errors import TaskFailed
from dssd.schedules.tasks.alert import AlertFailed, run_program
from dssd.schedules.tasks.model import Given, Say, Task

NAME = "backup"

BACKUP_HOOK_TIMEOUT_S = 6 * 3_600.0
"""A hook ships the backup elsewhere: over a slow line a night."""

_HOW = 'say where in the daemon\'s file: [backup] directory = "/backups/dss"'


@dataclass(frozen=True, slots=True)
class BackupPlace:
    """Where it goes, and who is told."""

    directory: Path
    keep: int
    hook: Path | None


@dataclass(frozen=True, slots=True)
class WrittenByTask:
    """What a run wrote."""

    number: int
    bytes: int
    new_bytes: int
    removed: int
    """Older backups."""


Write = Callable[[Path, int, Callable[[int, int], None]], Awaitable[WrittenByTask]]
"""Writes a backup into a directory, and keeps so many; called with how far it is."""


def backup(write: Write, place: BackupPlace | None) -> Task:
    """The task, over what writes a backup."""

    async def work(_given: Given, say: Say) -> None:
        if place is None:
            raise TaskFailed(task=NAME, why=f"nobody said where to: {_HOW}")

        def told(done: int, every: int) -> None:
            say.now(f"{bytes_text(done)} of {bytes_text(every)}")

        made = await write(place.directory, place.keep, told)
        older = f"; {counted(made.removed, 'older one')} went" if made.removed else ""
        say(
            f"backup {made.number} in {place.directory}: {bytes_text(made.bytes)}, "
            f"{bytes_text(made.new_bytes)} new{older}."
        )
        if place.hook is not None:
            await _hooked(place.hook, _document(place, made), say)

    return Task(NAME, "Copy all data to where the daemon's file says, and keep so many.", work)


async def _hooked(hook: Path, document: Mapping[str, Any], say: Say) -> None:
    try:
        await run_program(hook, document, 1, say, BACKUP_HOOK_TIMEOUT_S)
    except AlertFailed as failed:
        why = f"the backup is there, but {failed}."
        raise TaskFailed(task=NAME, why=why) from failed


def _document(place: BackupPlace, made: WrittenByTask) -> Mapping[str, Any]:
    return {
        "kind": "Backup",
        "directory": str(place.directory),
        "number": made.number,
        "bytes": made.bytes,
        "new_bytes": made.new_bytes,
    }
