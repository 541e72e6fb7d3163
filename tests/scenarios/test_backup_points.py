"""Backups and restores, struck at each system call: killed there, or the call fails.

The tool as it writes into a directory that has a backup, and as it removes one; a daemon as it
takes snapshots and writes a backup by itself; a restore. What must hold is in
`support.struck_backups`. All of it is in `make proof`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from support.daemon_process import short_directory
from support.proof_share import only_in_proof
from support.struck_backups import (
    BY_TOOL,
    DaemonTrial,
    RestoreTrial,
    ToolTrial,
    backed_up,
)
from support.syscall_faults import FAIL, KILL, Point, assert_all_sound, chosen

pytestmark = [
    only_in_proof,
    pytest.mark.needs_strace,
    pytest.mark.slow("a daemon or a restore for each point"),
    pytest.mark.usefixtures("impatient"),
]

SAMPLE = 4
FAILING = frozenset({"write", "fdatasync", "fsync", "rename", "mkdir", "openat"})
"""Calls whose failure must be told: where a file cannot be removed, the next change does it."""

StruckAt = Callable[[Point, str], Awaitable[str]]


async def assert_sound(points: list[Point], struck_at: StruckAt, fault: str) -> None:
    wanted = [each for each in points if fault == KILL or each.call in FAILING]
    assert wanted
    await assert_all_sound(chosen(wanted, SAMPLE), partial(_struck, struck_at, fault))


async def _struck(struck_at: StruckAt, fault: str, point: Point) -> str:
    return await struck_at(point, fault)


@pytest.mark.parametrize("fault", [KILL, FAIL])
@pytest.mark.parametrize(
    "words", [("backup", "create", "DIR"), ("backup", "rm", "DIR", "1", "-y")], ids=" ".join
)
async def test_a_tool_that_is_struck_leaves_whole_backups_and_the_next_one_goes_on(
    words: tuple[str, ...], fault: str
) -> None:
    trial = ToolTrial(words)
    await assert_sound(await trial.points(), trial.struck_at, fault)


async def test_a_daemon_that_is_killed_leaves_whole_backups_and_its_records() -> None:
    trial = DaemonTrial()
    await assert_all_sound(chosen(await trial.points(), SAMPLE), trial.killed_at)


@pytest.fixture
async def backups() -> AsyncIterator[Path]:
    """A directory with one backup."""
    with short_directory() as home:
        async with backed_up(home):
            pass
        yield home / BY_TOOL


@pytest.mark.parametrize("fault", [KILL, FAIL])
async def test_a_restore_that_is_struck_is_no_data_directory_or_a_whole_one(
    backups: Path, fault: str
) -> None:
    trial = RestoreTrial(backups)
    await assert_sound(await trial.points(), trial.struck_at, fault)
