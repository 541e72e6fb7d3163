"""Runs seeds on a copy of the package until one fails: what a mutant's own process does.

``python -m dss_sim.mutants.trial FOLDER PACKAGE JUDGE SEEDS_MAX FIRST...`` prints as JSON, for each
first seed, how many seeds it took and which invariant did not hold, or null.
"""

import json
import logging
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple


class Found(NamedTuple):
    """How a mutant was found."""

    seeds: int
    """How many seeds were run, the failed one included."""
    invariant: str
    text: str


def found(judge: str, first: int, seeds_max: int) -> Found | None:
    """Let a simulator run seeds from the first on; None if none of so many fails."""
    run_seed = import_module(judge).run_seed
    for seed in range(first, first + seeds_max):
        violation = run_seed(seed).violation
        if violation is not None:
            return Found(seed - first + 1, violation.invariant, str(violation))
    return None


def main(arguments: list[str]) -> int:
    """Search from each first seed."""
    folder, package, judge, seeds_max, *firsts = arguments
    file = import_module(package).__file__
    if file is None or not Path(file).is_relative_to(folder):
        sys.stderr.write(f"{file} is not the copy in {folder}\n")
        return 2
    # The daemon's warnings are about what the simulator does to it.
    logging.disable(logging.CRITICAL)
    answers = [found(judge, int(first), int(seeds_max)) for first in firsts]
    sys.stdout.write(json.dumps(answers))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
