"""Operators deal with what failed, and the daemon is struck at each durable step of that.

A redrive with a canary, one whose canary fails, one that is taken back, a discard; records that
wait are brought forward, passed over, given up, and that is undone; acknowledged ones are delivered
once more. The daemon is killed as it enters each write and each sync of a file from the first of
these operations on, or the sync fails. The next one ends what was begun, and its files are judged.
"""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from support.proof_share import only_in_proof
from support.struck_trials import ERRANDS
from support.syscall_faults import Point, assert_all_sound

pytestmark = [
    pytest.mark.needs_strace,
    pytest.mark.slow("a daemon for each point"),
    pytest.mark.usefixtures("impatient"),
    only_in_proof,
]

DURABLE = ("write", "pwrite64", "pwritev", "pwritev2", "fdatasync", "fsync", "rename")
"""What changes a file or makes it durable."""


def from_the_mark_on(points: Sequence[Point]) -> list[Point]:
    """From the first call on the file that was begun last: that of the mark, before all of them."""
    last = [point.path for point in points if point.path.endswith(".seg") and point.number == 1][-1]
    begins = next(at for at, point in enumerate(points) if point.path == last)
    # How a daemon ended is written as it ends, as well as that goes.
    behind = [point for point in points[begins:] if point.path != "LIFE.new"]
    # Of the pages of a commit only the last one makes it whole.
    return [point for point, after in pairwise(behind) if not _is_page_before(point, after)]


def _is_page_before(point: Point, after: Point) -> bool:
    return point.path.endswith("-wal") and (point.call, point.path) == (after.call, after.path)


async def test_a_kill_at_any_step_leaves_each_record_where_the_last_operation_put_it() -> None:
    points = from_the_mark_on(await ERRANDS.points(DURABLE))
    assert len(points) > 100
    await assert_all_sound(points, ERRANDS.killed_at)


async def test_any_sync_that_fails_leaves_each_record_where_the_last_operation_put_it() -> None:
    points = from_the_mark_on(await ERRANDS.syncs())
    await assert_all_sound(points, ERRANDS.failed_at)
