"""A daemon whose records fail, struck at each system call from the first append to a queue on.

Between the append of an entry and the commit that acknowledges its source, at each sync of both,
and before and after: the daemon is killed there, or the sync fails, or the write finds no room.
Then each record is acknowledged, waits or is dead, once. `make proof` tries all 700 points, which
takes half an hour; `make test` one kill.
"""

from collections.abc import Sequence

import pytest

from support.proof_share import only_in_proof
from support.struck_trials import LANES
from support.syscall_faults import Point, assert_all_sound, chosen

pytestmark = [
    pytest.mark.needs_strace,
    pytest.mark.slow("a daemon for each point"),
    pytest.mark.usefixtures("impatient"),
]

SAMPLE = 1


def from_the_first_entry_on(points: Sequence[Point]) -> list[Point]:
    """From the first call on the file of a queue on: the first file is that of the topic itself."""
    files = list(dict.fromkeys(point.path for point in points if point.path.endswith(".seg")))
    begins = next(at for at, point in enumerate(points) if point.path.startswith(files[1]))
    # How a daemon ended is written as it ends, as well as that goes.
    return [point for point in points[begins:] if point.path != "LIFE.new"]


async def test_a_kill_at_any_call_leaves_each_record_that_failed_in_one_place() -> None:
    points = from_the_first_entry_on(await LANES.points())
    await assert_all_sound(chosen(points, SAMPLE), LANES.killed_at)


@only_in_proof
async def test_any_sync_that_fails_leaves_each_record_that_failed_in_one_place() -> None:
    points = from_the_first_entry_on(await LANES.syncs())
    await assert_all_sound(chosen(points, SAMPLE), LANES.failed_at)


@only_in_proof
async def test_any_write_that_finds_no_room_is_done_again_and_loses_no_record() -> None:
    points = from_the_first_entry_on(await LANES.points(("pwritev2", "pwrite64")))
    await assert_all_sound(chosen(points, SAMPLE), LANES.refused_at)
