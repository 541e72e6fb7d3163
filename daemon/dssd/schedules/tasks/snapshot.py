"""The task ``snapshot``: how the daemon stands, in one file that can be given to whoever helps.

It has names of topics, groups and clients, figures, events, and what operators changed, and nothing
of any record, no address and no reason of a person. Invariant: a file in the directory is whole;
only so many are kept.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dss_core.counted import counted
from dss_core.errors import TaskFailed
from dss_core.redaction import Redaction, reasons_in
from dssd.clock import Clock
from dssd.schedules.tasks import parsing
from dssd.schedules.tasks.model import Argument, Given, Say, Task

SNAPSHOTS_KEPT = 5
"""Support snapshots in the data directory, where nothing is said."""

SNAPSHOTS_KEPT_MAX = 100
"""And at most: some 100 MB."""


NAME = "snapshot"
_PREFIX, _SUFFIX = "snapshot-", ".json"

Gather = Callable[[], Awaitable[dict[str, Any]]]
"""All that a snapshot has, as JSON has it."""


def snapshot(gather: Gather, directory: Path, clock: Clock) -> Task:
    """The task, over what gathers it."""

    async def work(given: Given, say: Say) -> None:
        gathered = await gather()
        redacted = Redaction(reasons=reasons_in(gathered)).value(gathered)
        content = json.dumps(redacted, indent=1, sort_keys=True, default=str).encode()
        name = f"{datetime.fromtimestamp(clock.wall_ms() / 1_000, UTC):%Y%m%dT%H%M%S.%f}"
        path = directory / f"{_PREFIX}{name}{_SUFFIX}"
        try:
            gone = await asyncio.to_thread(_kept, path, content, given["keep"] or SNAPSHOTS_KEPT)
        except OSError as failed:
            why = f"{path} cannot be written: {failed.strerror}."
            raise TaskFailed(task=NAME, why=why) from failed
        say(f"{path}, {counted(len(content), 'byte')}; {counted(gone, 'older one')} went.")

    keep = parsing.number(1, SNAPSHOTS_KEPT_MAX)
    return Task(
        NAME,
        "Write how the daemon stands to a file in DATA-DIR/support, without any record.",
        work,
        (Argument("keep", "Keep so many.", keep, str(SNAPSHOTS_KEPT)),),
    )


def _kept(path: Path, content: bytes, keep: int) -> int:
    """Write it, then remove the oldest that are too many; how many went. Blocking."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    staged = path.with_suffix(".new")
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        staged.rename(path)
    except BaseException:
        with suppress(OSError):
            staged.unlink()
        raise
    older = sorted(path.parent.glob(f"{_PREFIX}*{_SUFFIX}"))[:-keep]
    for each in older:
        each.unlink(missing_ok=True)
    return len(older)
