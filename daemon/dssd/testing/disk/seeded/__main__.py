"""Run seeds, or replay one: ``python -m dssd.testing.disk.seeded --seeds 2000``.

Exit code 0 where every seed held, 1 where one did not; each that failed is shrunk and printed with
its seed, its acts, the crash, and the command that replays it.
"""

import argparse
import logging
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter

from rich.progress import Progress

from dssd.testing.disk.seeded.run import Outcome, run_seed
from dssd.testing.disk.seeded.shrinking import shrunk

CHUNK_SEEDS = 10
TWICE_EVERY = 100
"""One seed of so many is run twice: what does not repeat proves nothing."""
FAILURES_MAX = 10
"""After so many failing seeds it is enough."""


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m dssd.testing.disk.seeded", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2_000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="replay this one, and say what it does")
    arguments = parser.parse_args()
    # The log warns of a full disk, which is what is asked for here.
    logging.disable(logging.CRITICAL)
    if arguments.seed is not None:
        return replay(arguments.seed)
    return run_seeds(arguments.first, arguments.seeds, arguments.jobs)


def replay(seed: int) -> int:
    """Print what the run of a seed does; where it fails, the shrunken one."""
    outcome = run_seed(seed)
    if outcome.violation is not None:
        print(described(shrunk(outcome)), file=sys.stderr)
        return 1
    print("\n".join(acts_of(outcome)))
    print(
        f"seed {seed}: {outcome.lives} lives, {outcome.steps} steps, {outcome.states} crashes, "
        "every rule held",
        file=sys.stderr,
    )
    return 0


def run_seeds(first: int, seeds: int, jobs: int) -> int:
    """Run many seeds on several cores, with a progress bar where somebody looks."""
    began = perf_counter()
    states = failures = 0
    with Progress(disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("seeds", total=seeds)
        for seed, judged, failed in outcomes(first, seeds, jobs):
            states += judged
            progress.advance(task)
            if failed:
                failures += 1
                progress.console.print(described(shrunk(run_seed(seed))), markup=False)
                if failures == FAILURES_MAX:
                    break
    minutes = (perf_counter() - began) / 60
    print(
        f"{seeds:,} seeds, {states:,} crashes, {failures} failed; {seeds / minutes:,.0f} seeds "
        f"and {states / minutes:,.0f} crashes a minute on {jobs} processes"
    )
    return 1 if failures else 0


def outcomes(first: int, seeds: int, jobs: int) -> Iterator[tuple[int, int, bool]]:
    """Seed, crashes that were judged, and whether it failed, of seed after seed."""
    numbers = range(first, first + seeds)
    if jobs == 1:
        yield from map(_brief, numbers)
        return
    with ProcessPoolExecutor(jobs, initializer=logging.disable) as pool:
        yield from pool.map(_brief, numbers, chunksize=CHUNK_SEEDS)


def _brief(seed: int) -> tuple[int, int, bool]:
    outcome = run_seed(seed)
    if seed % TWICE_EVERY == 0:
        assert run_seed(seed).digest == outcome.digest, f"seed {seed} does not repeat"
    return seed, outcome.states, outcome.violation is not None


def described(outcome: Outcome) -> str:
    """What failed, on how little, and how to see it."""
    seed, where = outcome.plan.seed, outcome.where
    assert where is not None
    crash = "in its own life"
    if where.crash is not None:
        crash = f"the power goes after step {where.crash.after}, kept: {where.crash.how}"
    return "\n".join(
        [
            *(f"seed {seed}: {violation}" for violation in outcome.violations[:3]),
            f"  {crash}; after {where.era} losses of power; replay: make sim-log SEED={seed}",
            *(f"  {line}" for line in acts_of(outcome)),
            *(f"  step: {step}" for step in where.last),
        ]
    )


def acts_of(outcome: Outcome) -> list[str]:
    """Settings and acts, a line each."""
    plan = outcome.plan
    return [repr(plan.settings), *(f"{one.number:3} {one.act}" for one in plan.acts)]


if __name__ == "__main__":
    sys.exit(main())
