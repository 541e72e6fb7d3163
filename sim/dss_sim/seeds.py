"""Code that the commands of all simulators share: many seeds on all cores, some of them run twice.

Invariant: a seed is judged in a process of the pool, and only three facts about its run leave that
process, so a million seeds take no more memory than one. It knows no simulator.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import NamedTuple

from rich.progress import Progress

from dss_sim.garbage import frozen_heap

TWICE_EVERY = 100
"""One seed of this many is run twice: a run that does not repeat proves nothing."""
FAILURES_MAX = 10
"""The run ends after this many failed seeds."""


class Judged(NamedTuple):
    """The result of a seed's run."""

    size: int
    """In the simulator's own unit."""
    failed: bool
    trace: object
    """All events, or a digest of them: equal for every run of the seed."""


Judge = Callable[[int], Judged]


def _nothing() -> None:
    """No preparation."""


@dataclass(frozen=True, slots=True)
class Simulator:
    """What runs seeds. Its functions are those of a module, because other processes call them."""

    module: str
    """The module of its command, ``python -m NAME``."""
    seeds: int
    """How many seeds are run by default."""
    sizes: str
    """The unit in which it counts: events, steps."""
    chunk_seeds: int
    """How many seeds a process takes at once."""
    judge: Judge
    described: Callable[[int], str]
    """What failed in a seed, in which shrunken plan, and how to replay it."""
    prepare: Callable[[], object] = _nothing
    """Called once in each process."""


def parser_of(simulator: Simulator, text: str | None) -> argparse.ArgumentParser:
    """The arguments of a simulator's command."""
    parser = argparse.ArgumentParser(prog=f"python -m {simulator.module}", description=text)
    parser.add_argument("--seeds", type=int, default=simulator.seeds, help="how many to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes")
    parser.add_argument("--seed", type=int, help="replay this one, and tell what happens")
    return parser


def run_seeds(simulator: Simulator, first: int, seeds: int, jobs: int) -> int:
    """Run many seeds, with a progress bar on a terminal; returns the exit code, 1 if one failed."""
    began = perf_counter()
    size = failures = 0
    with Progress(disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("seeds", total=seeds)
        for seed, took, failed in outcomes(simulator, first, seeds, jobs):
            size += took
            progress.advance(task)
            if failed:
                failures += 1
                progress.console.print(simulator.described(seed), markup=False)
                if failures == FAILURES_MAX:
                    break
    minutes = (perf_counter() - began) / 60
    sys.stdout.write(
        f"{seeds:,} seeds, {size:,} {simulator.sizes}, {failures} failed; {seeds / minutes:,.0f} "
        f"seeds and {size / minutes:,.0f} {simulator.sizes} a minute on {jobs} processes\n"
    )
    return 1 if failures else 0


def outcomes(
    simulator: Simulator, first: int, seeds: int, jobs: int
) -> Iterator[tuple[int, int, bool]]:
    """For one seed after the other: seed, size and whether it failed."""
    numbers, judged = range(first, first + seeds), partial(_judged, simulator.judge)
    if jobs == 1:
        simulator.prepare()
        yield from map(judged, numbers)
        return
    with forked(jobs, simulator.prepare) as pool:
        yield from pool.map(judged, numbers, chunksize=simulator.chunk_seeds)


@contextmanager
def forked(jobs: int, prepare: Callable[[], object] = _nothing) -> Iterator[ProcessPoolExecutor]:
    """Copies of this process, each of which calls ``prepare`` first.

    They collect no garbage of this process: an object's end may wait for a thread, as that of a
    gRPC channel does, and threads are not copied.
    """
    with frozen_heap(), ProcessPoolExecutor(jobs, initializer=prepare) as pool:
        yield pool


def _judged(judge: Judge, seed: int) -> tuple[int, int, bool]:
    found = judge(seed)
    if seed % TWICE_EVERY == 0:
        assert judge(seed).trace == found.trace, f"seed {seed} does not repeat"
    return seed, found.size, found.failed
