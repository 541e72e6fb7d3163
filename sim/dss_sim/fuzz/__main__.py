"""Fuzz all parsers, each for so long: ``python -m dss_sim.fuzz --seconds 3600``.

It prints the seed of each, how many inputs there were and how many were taken. What it finds it
prints with the command that meets it again; then it ends with 1. Each parser runs in a process of
its own, so that one that kills its process is found, too.
"""

import argparse
import gc
import logging
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from ctypes import c_uint64
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import Synchronized

from dss_sim.fuzz.catalogue import PARSERS
from dss_sim.fuzz.parser import Found, Ran, run

SECONDS_VARIABLE = "DSS_FUZZ_S"
SECONDS = 10.0
"""A parser, where nothing else is said: some minutes in all."""
SECONDS_MAX = 86_400.0
SHOWN_BYTES_MAX = 2_000

BY_NAME = {each.name: each for each in PARSERS}
_FORKED = get_context("fork")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments and run."""
    usual = os.environ.get(SECONDS_VARIABLE, str(SECONDS))
    options = argparse.ArgumentParser(prog="python -m dss_sim.fuzz", description=__doc__)
    options.add_argument("--seconds", type=_seconds, default=usual, help="for each parser")
    options.add_argument("--parser", choices=BY_NAME, help="this one alone")
    options.add_argument("--seed", type=int, help="drawn anew where it is left out")
    options.add_argument("--inputs", type=int, help="so many, however long they take")
    options.add_argument("--jobs", type=int, default=os.cpu_count(), help="parsers at a time")
    options.add_argument("--list", action="store_true", help="name the parsers, and run nothing")
    chosen = options.parse_args(arguments)
    if chosen.list:
        print("\n".join(BY_NAME))
        return 0
    seed = secrets.randbelow(1 << 32) if chosen.seed is None else chosen.seed
    names = list(BY_NAME) if chosen.parser is None else [chosen.parser]
    logging.disable(logging.CRITICAL)
    gc.freeze()  # what is loaded is no garbage
    waiting = [_Run(each, seed, chosen.seconds, chosen.inputs) for each in reversed(names)]
    failed = 0
    for ended in _ended(waiting, chosen.jobs):
        print("\n".join(_told(ended)), flush=True)
        failed += ended.ran.found is not None
    return 1 if failed else 0


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"more than 0 and at most {SECONDS_MAX:,.0f}")
    return seconds


class _Run:
    """One parser in a process of its own."""

    def __init__(self, name: str, seed: int, seconds: float, inputs: int | None) -> None:
        self.name = name
        self.seed = seed
        self._limits = seconds, inputs
        self._answer, self._telling = _FORKED.Pipe(duplex=False)
        self._at: Synchronized[int] = _FORKED.Value(c_uint64, 0)
        """The number of the input that it is at; it may die of that."""
        self.process: ForkProcess = _FORKED.Process(target=self._work, name=name)

    def _work(self) -> None:
        seconds, inputs = self._limits
        parser = BY_NAME[self.name]
        ran = run(parser, self.seed, seconds=seconds, inputs=inputs, at=self._note)
        self._telling.send(ran)

    def _note(self, number: int) -> None:
        self._at.value = number

    @property
    def ran(self) -> Ran:
        """What came of it, once its process has ended."""
        self.process.join()
        if self._answer.poll():
            told: Ran = self._answer.recv()
            return told
        why = f"its process ended with {self.process.exitcode}"
        number = self._at.value
        return Ran(number, 0, Found(number, b"", why))


def _ended(waiting: list[_Run], at_once: int) -> Iterator[_Run]:
    running: dict[int, _Run] = {}
    while waiting or running:
        while waiting and len(running) < at_once:
            started = waiting.pop()
            started.process.start()
            running[started.process.sentinel] = started
        for sentinel in wait(list(running)):
            assert isinstance(sentinel, int)
            yield running.pop(sentinel)


def _told(ended: _Run) -> Iterator[str]:
    ran = ended.ran
    yield f"{ended.name}: seed {ended.seed}, {ran.inputs:,} inputs, {ran.taken:,} taken"
    if ran.found is not None:
        number, data, why = ran.found
        yield f"  FOUND {why}"
        yield f"  in {data[:SHOWN_BYTES_MAX]!r}"
        replay = f"--parser '{ended.name}' --seed {ended.seed} --inputs {number}"
        yield f"  again: python -m dss_sim.fuzz {replay}"


if __name__ == "__main__":
    sys.exit(main())
