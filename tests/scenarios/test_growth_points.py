"""A daemon whose topic grows under producers, struck at each system call of the two steps.

From the first call of the addition of a storage topic until it has stopped, behind the switch: the
daemon is killed there, or a sync fails, or a write finds no room. What it leaves is the topic as it
was, or switched as a whole; the next daemon ends what was begun, and the producers, who live on,
have each of their records in the log once and in order. `make proof` tries all points, `make test`
one kill.
"""

from collections import Counter
from collections.abc import Sequence

import pytest

from support.proof_share import only_in_proof
from support.struck_trials import GROWTH
from support.syscall_faults import Point, assert_all_sound, chosen

pytestmark = [
    pytest.mark.needs_strace,
    pytest.mark.slow("a daemon for each point"),
    pytest.mark.usefixtures("impatient"),
]

SAMPLE = 1


SURE = 6
"""So often each call on a file of the log comes; how often after that depends on how fast the
producers are."""


def from_the_first_step_on(points: Sequence[Point]) -> list[Point]:
    """What comes behind the record that marks the beginning: in the second file of the log."""
    files = list(dict.fromkeys(point.path for point in points if point.path.endswith(".seg")))
    marks = [at for at, point in enumerate(points) if point.path == files[1]]
    # How a daemon ended is written as it ends, as well as that goes.
    behind = [point for point in points[marks[0] :] if point.path != "LIFE.new"]
    seen: Counter[tuple[str, str]] = Counter()
    sure: list[Point] = []
    for point in behind:
        seen[point.call, point.path] += 1
        if not point.path.endswith(".seg") or seen[point.call, point.path] <= SURE:
            sure.append(point)
    return sure


async def test_a_kill_at_any_call_leaves_a_topic_as_it_was_or_switched_as_a_whole() -> None:
    points = from_the_first_step_on(await GROWTH.points())
    await assert_all_sound(chosen(points, SAMPLE), GROWTH.killed_at)


@only_in_proof
async def test_any_sync_that_fails_ends_the_daemon_and_the_next_one_ends_the_growth() -> None:
    points = from_the_first_step_on(await GROWTH.syncs())
    await assert_all_sound(chosen(points, SAMPLE), GROWTH.failed_at)


@only_in_proof
async def test_any_write_that_finds_no_room_is_done_again_and_the_topic_grows() -> None:
    points = from_the_first_step_on(await GROWTH.points(("pwritev2", "pwrite64")))
    await assert_all_sound(chosen(points, SAMPLE), GROWTH.refused_at)
