"""Run seeds, or replay one: ``python -m dssd.testing.shells --seeds 3000``.

Exit code 0 where every seed held, 1 where one did not; each that failed is made small and printed
with its seed and the command that replays it.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter

from rich.progress import Progress

from dssd.testing.shells.run import Outcome, run, run_seed, shrunk
from dssd.testing.simulation.history import write_history
from dssd.testing.simulation.transcript import Transcript

CHUNK_SEEDS = 10
TWICE_EVERY = 100
"""One seed of so many is run twice: what does not repeat proves nothing."""
FAILURES_MAX = 10
"""After so many failing seeds it is enough."""


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m dssd.testing.shells", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3_000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="replay this one, with a transcript")
    parser.add_argument("--history", type=Path, help="of a replay: write what observers saw here")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        return replay(arguments.seed, arguments.history)
    return run_seeds(arguments.first, arguments.seeds, arguments.jobs)


def replay(seed: int, history: Path | None = None) -> int:
    """Print what happens in the run of a seed; where it fails, in the least that fails so."""
    outcome = run_seed(seed)
    if outcome.violation is not None:
        outcome = shrunk(outcome)
    transcript = Transcript()
    run(outcome.plan, transcript.note)
    if history is not None:
        write_history(history, outcome.history)
    print("\n".join(transcript.lines))
    if outcome.violation is None:
        print(f"seed {seed}: {outcome.steps} steps, every invariant held", file=sys.stderr)
        return 0
    print(described(seed, outcome), file=sys.stderr)
    return 1


def run_seeds(first: int, seeds: int, jobs: int) -> int:
    """Run many seeds on several cores, with a progress bar where somebody looks."""
    began = perf_counter()
    steps = failures = 0
    with Progress(disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("seeds", total=seeds)
        for seed, took, failed in outcomes(first, seeds, jobs):
            steps += took
            progress.advance(task)
            if failed:
                failures += 1
                progress.console.print(described(seed, shrunk(run_seed(seed))), markup=False)
                if failures == FAILURES_MAX:
                    break
    took_s = perf_counter() - began
    print(
        f"{seeds:,} seeds, {steps:,} steps, {failures} failed; "
        f"{60 * seeds / took_s:,.0f} seeds a minute on {jobs} processes"
    )
    return 1 if failures else 0


def outcomes(first: int, seeds: int, jobs: int) -> Iterator[tuple[int, int, bool]]:
    """Seed, steps and whether it failed, of seed after seed."""
    numbers = range(first, first + seeds)
    if jobs == 1:
        yield from map(_brief, numbers)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_brief, numbers, chunksize=CHUNK_SEEDS)


def _brief(seed: int) -> tuple[int, int, bool]:
    outcome = run_seed(seed)
    if seed % TWICE_EVERY == 0:
        assert run_seed(seed).history == outcome.history, f"seed {seed} does not repeat"
    return seed, outcome.steps, outcome.violation is not None


def described(seed: int, outcome: Outcome) -> str:
    """What failed, on how little, and how to see it."""
    lines = [
        f"seed {seed}: {outcome.violation}",
        f"  after {outcome.steps} steps; replay: make sim-sessions SEED={seed}",
        *(
            f"  {timed.at_us / 1e6:9.6f} s  {timed.kind} {timed.who} {timed.amount}"
            for timed in outcome.plan.timed
        ),
    ]
    return "\n".join([*lines, outcome.trace] if outcome.trace else lines)


if __name__ == "__main__":
    sys.exit(main())
