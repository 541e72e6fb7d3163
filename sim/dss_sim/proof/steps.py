"""What the whole proof consists of, cut into steps of some minutes each.

Invariant: the steps of a kind together are all there is of that kind, and each is a command that
ends with 0 where it holds.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dss_sim.mutants.catalogue import MUTANTS

PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "auto")
MUTANTS_A_STEP = 16


@dataclass(frozen=True, slots=True)
class Step:
    """One command of the proof."""

    kind: str
    """The row of the report that it belongs to."""
    name: str
    """Unique; what the ledger knows it by."""
    command: tuple[str, ...]
    minutes: float
    """What it takes on two cores, about; for the progress bar."""
    full: bool = True
    """Whether its tests run all of their proof, not the sample of `make test`."""


def _seeds(simulator: str, seeds: int, a_step: int, a_minute: int) -> Iterator[Step]:
    for first in range(0, seeds, a_step):
        last = first + a_step - 1
        command = (sys.executable, "-m", f"dss_sim.{simulator}")
        yield Step(
            f"seeds of {simulator}",
            f"{simulator} {first}-{last}",
            (*command, "--first", str(first), "--seeds", str(a_step)),
            a_step / a_minute,
        )


def _tests(kind: str, minutes: float, *paths: str) -> Step:
    return Step(kind, kind, (*PYTEST, *paths), minutes)


def _mutants() -> Iterator[Step]:
    names = [mutant.name for mutant in MUTANTS]
    for first in range(0, len(names), MUTANTS_A_STEP):
        some = names[first : first + MUTANTS_A_STEP]
        last = first + len(some) - 1
        command = (sys.executable, "-m", "dss_sim.mutants", *some)
        yield Step("mutants", f"mutants {first}-{last}", command, 0.05 * len(some))


SCENARIOS = "tests/scenarios"
LOG = "tests/dssd/log"

STEPS: Sequence[Step] = (
    Step("every test, with samples", "tests", (*PYTEST, "tests"), 5, full=False),
    _tests(
        "many kills under load",
        3,
        f"{SCENARIOS}/test_kill_daemon_under_load.py",
        f"{SCENARIOS}/test_group_loses_members.py",
        f"{SCENARIOS}/test_daemon_killed_under_consumers.py",
    ),
    _tests("chaos", 11, f"{SCENARIOS}/test_chaos.py"),
    _tests("a crash at every effect", 5, "tests/dss_sim/groups/test_scenarios.py"),
    _tests("kill at every system call", 14, f"{SCENARIOS}/test_kill_points.py"),
    _tests("every sync fails", 5, f"{SCENARIOS}/test_disk_errors.py"),
    _tests("the disk is full at every step", 3, f"{SCENARIOS}/test_full_disk_points.py"),
    _tests("every state after a loss of power", 60, f"{SCENARIOS}/test_crash_images.py"),
    _tests(
        "every bit flips",
        10,
        f"{LOG}/segment/test_bit_flips.py",
        f"{LOG}/recovery/test_flips_over_restart.py",
        "tests/dss_core/test_frame_corruption.py",
        "tests/dssd/store/test_integrity.py",
    ),
    _tests(
        "laws of formats and machines",
        4,
        "tests/dss_core",
        "tests/dssd/machines",
        "tests/dss_sim/groups/test_producers.py",
        "tests/dss_sim/power_loss/test_model.py",
    ),
    *_seeds("groups", 10_000, 1_000, 3_600),
    *_seeds("sessions", 3_000, 500, 1_500),
    *_seeds("log", 2_000, 200, 780),
    *_mutants(),
    Step("scale", "scale", (sys.executable, "-m", "dss_sim.scale", "--factor", "1"), 10),
)


def kinds(steps: Iterable[Step] = STEPS) -> list[str]:
    """The rows of the report, in order."""
    return list(dict.fromkeys(step.kind for step in steps))
