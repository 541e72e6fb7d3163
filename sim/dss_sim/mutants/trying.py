"""Trying mutants: each in a process of its own, several at a time.

Invariant: a process runs the copy and nothing else of the mutant's package, and checks that itself.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from dss_sim.mutants import trial
from dss_sim.mutants.planting import Mutant, planted
from dss_sim.mutants.trial import Found

FIRST_SEEDS = (0, 100_000, 200_000)
SEEDS_MAX = 2_000
"""How many seeds may fail to find a mutant before it counts as survived."""


class TrialFailed(Exception):
    """The process of a mutant did not answer."""


class Verdict(NamedTuple):
    """The result for a mutant."""

    mutant: Mutant
    found: tuple[Found | None, ...]
    """By first seed."""

    @property
    def is_caught(self) -> bool:
        """Whether it was found from every first seed."""
        return None not in self.found

    @property
    def seeds(self) -> int:
        """The median of how many seeds it took; `SEEDS_MAX` if it survived."""
        return int(median(SEEDS_MAX if each is None else each.seeds for each in self.found))

    @property
    def invariants(self) -> tuple[str, ...]:
        """The invariants that caught it, the most frequent first."""
        names = [each.invariant for each in self.found if each is not None]
        return tuple(sorted(set(names), key=lambda name: (-names.count(name), name)))


def tried(
    mutant: Mutant, firsts: Sequence[int] = FIRST_SEEDS, seeds_max: int = SEEDS_MAX
) -> Verdict:
    """Run seeds on a copy with this mutant.

    Raises:
        NotPlantable: it is not clear what it changes.
        TrialFailed: its process did not run the copy to the end.
    """
    with TemporaryDirectory(prefix="dss-mutant-") as name:
        folder = Path(name).resolve()
        planted(mutant, folder)
        package = mutant.package.name
        asked = [str(folder), package, mutant.judge, str(seeds_max), *map(str, firsts)]
        command = [sys.executable, "-m", trial.__name__, *asked]
        # The current directory comes before everything else in a process started with -m.
        # Everything except the copy is found where this process found it, so that the judge is its
        # own.
        path = os.pathsep.join([str(folder), *filter(None, sys.path)])
        answer = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
    if answer.returncode:
        raise TrialFailed(f"{mutant.name}: {answer.stderr[-2_000:]}")
    said = json.loads(answer.stdout)
    return Verdict(mutant, tuple(None if each is None else Found(*each) for each in said))


def tried_all(
    mutants: Iterable[Mutant],
    jobs: int,
    firsts: Sequence[int] = FIRST_SEEDS,
    seeds_max: int = SEEDS_MAX,
) -> Iterator[Verdict]:
    """Verdicts as they come.

    Raises:
        NotPlantable: it is not clear what one changes.
        TrialFailed: the process of one did not run the copy to the end.
    """
    with ThreadPoolExecutor(jobs, thread_name_prefix="mutant") as pool:
        asked = [pool.submit(tried, mutant, firsts, seeds_max) for mutant in mutants]
        for answered in as_completed(asked):
            yield answered.result()
