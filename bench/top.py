"""How soon the dashboard answers a key, and how soon it is there.

It runs on a terminal of its own, large, over 2,000 groups that all change. A key moves to the next
row; it is answered when the number of that row is written to the terminal. Keys come at uneven
times, so that none keeps step with the updates.
"""

import os
import random
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pexpect

GROUPS = 2_000
PER_SECOND = 10
KEYS = 60
PAUSE_S = (0.05, 0.15)
SIZE = (45, 160)
STARTS = 5
TIMEOUT_S = 60
DASHBOARD = str(Path(__file__).parent / "programs" / "dashboard.py")


@dataclass(frozen=True, slots=True)
class Answered:
    """What the dashboard took, in milliseconds."""

    p50_ms: float
    p99_ms: float
    cpu_p50_ms: float
    """Of processor time, updates that came between included: what else the machine does is not in
    it."""
    cpu_p99_ms: float


def answered(per_second: float) -> Answered:
    """A key to the row that it moves to, at so many updates a second."""
    child = _spawned(DASHBOARD, str(GROUPS), str(per_second))
    took_ms, worked_ms = [], []
    try:
        child.expect_exact(f"1/{GROUPS}")
        assert child.pid is not None
        time.sleep(1)
        for number in range(2, KEYS + 2):
            time.sleep(random.uniform(*PAUSE_S))
            began, worked = time.perf_counter(), _worked_s(child.pid)
            child.send("j")
            child.expect(rf"\b{number}/{GROUPS}")
            took_ms.append((time.perf_counter() - began) * 1_000)
            worked_ms.append((_worked_s(child.pid) - worked) * 1_000)
    finally:
        child.close(force=True)
    return Answered(
        statistics.median(took_ms), _p99(took_ms), statistics.median(worked_ms), _p99(worked_ms)
    )


def _worked_s(pid: int) -> float:
    """Processor time that a process has taken."""
    return time.clock_gettime((~pid << 3) | 2)  # what clock_getcpuclockid gives on Linux


def _p99(values: list[float]) -> float:
    return sorted(values)[max(0, round(len(values) * 0.99) - 1)]


@dataclass(frozen=True, slots=True)
class Took:
    """One start, in milliseconds."""

    wall_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Started:
    """How long a start took, the least of several."""

    python: Took
    """Of an interpreter that does nothing."""
    painted: Took
    """Until the dashboard has painted its first screen, without a daemon."""
    taken: Took
    """Until it has the terminal, and takes keys."""


def started() -> Started:
    """Both in turns, so that what else the machine does hits both."""
    _painted()  # compiles what is not compiled yet
    turns = [(_nothing(), *_painted()) for _ in range(STARTS)]
    return Started(*(_least([turn[at] for turn in turns]) for at in range(3)))


def _least(found: list[Took]) -> Took:
    return Took(min(each.wall_ms for each in found), min(each.cpu_ms for each in found))


def _nothing() -> Took:
    began, worked = time.perf_counter(), _children_s()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return Took((time.perf_counter() - began) * 1_000, (_children_s() - worked) * 1_000)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _painted() -> tuple[Took, Took]:
    """Until the first picture, and until Textual has the terminal, of which it asks for clicks."""
    began = time.perf_counter()
    child = _spawned("-m", "dssctl", "--endpoint", "unix:/nowhere/s", "top")
    assert child.pid is not None
    took = []
    try:
        for seen in ("waiting for the daemon", "\x1b[?1000h"):
            child.expect_exact(seen)
            worked_ms = _worked_s(child.pid) * 1_000
            took.append(Took((time.perf_counter() - began) * 1_000, worked_ms))
    finally:
        child.close(force=True)
    return took[0], took[1]


def _spawned(*arguments: str) -> "pexpect.spawn[str]":
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    child = pexpect.spawn(
        sys.executable,
        list(arguments),
        dimensions=SIZE,
        timeout=TIMEOUT_S,
        searchwindowsize=4_096,
        encoding="utf-8",
        env=environment | {"TERM": "xterm-256color"},
    )
    child.delaybeforesend = None
    return child


if __name__ == "__main__":
    for pace in (0, PER_SECOND, 0, PER_SECOND):
        print(pace, answered(pace))
    print(started())
