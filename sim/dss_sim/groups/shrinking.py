"""Shrinks a failing run to a small one that still fails: fewer faults, changes and records.

Delta debugging (Zeller and Hildebrandt, 2002) over everything in a run that can be left out: timed
events, small limits, and strikes of its fault tape. A candidate counts if it breaks the same
invariant. The answer is deterministic, because each run is.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from dss_sim.groups.plan import Plan, Timed
from dss_sim.groups.randomness import Strike
from dss_sim.groups.run import Outcome, run
from dss_sim.small_limits import SmallLimit

RUNS_MAX = 600
"""How many runs shrinking may take: some ten seconds."""

T = TypeVar("T")
Part = Timed | SmallLimit | Strike


def shrunk(outcome: Outcome) -> Outcome:
    """A small run that breaks the same invariant.

    Raises:
        ValueError: the run did not fail.
    """
    violation = outcome.violation
    if violation is None:
        raise ValueError("it did not fail")
    best = outcome
    runs = 0

    def still_fails(parts: Sequence[Part]) -> bool:
        nonlocal best, runs
        if runs >= RUNS_MAX:
            return False
        runs += 1
        tried = run(_with_parts(outcome.plan, [*begins, *parts]))
        if tried.violation is None or tried.violation.invariant != violation.invariant:
            return False
        best = tried
        return True

    # Without members nothing is delivered, and no end is reached.
    begins = [timed for timed in outcome.plan.timed if timed.kind == "begin"]
    others = [timed for timed in outcome.plan.timed if timed.kind != "begin"]
    parts: list[Part] = [*outcome.plan.limits, *others, *outcome.struck]
    minimised(parts, still_fails)
    return best


def _with_parts(plan: Plan, parts: Sequence[Part]) -> Plan:
    timed = tuple(part for part in plan.timed if part in set(parts))
    limits = tuple(part for part in parts if isinstance(part, SmallLimit))
    kept = frozenset(part for part in parts if not isinstance(part, Timed | SmallLimit))
    return replace(plan, timed=timed, limits=limits, kept=kept)


def minimised(parts: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of the parts that fails, and passes if any of its chunks is left out."""
    kept = list(parts)
    chunks = 2
    while kept:
        size = max(len(kept) // chunks, 1)
        for start in range(0, len(kept), size):
            candidate = kept[:start] + kept[start + size :]
            if fails(candidate):
                kept = candidate
                chunks = max(chunks - 1, 2)
                break
        else:
            if size == 1:
                break
            chunks = min(2 * chunks, len(kept))
    return kept
