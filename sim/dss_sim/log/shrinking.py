"""The smallest part of a failing run that still breaks the same rule: fewer and smaller acts.

Invariant: the answer is deterministic, because each run is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dss_sim.groups.shrinking import minimised
from dss_sim.log.acts import Act, Adopt, Numbered, Send, Together
from dss_sim.log.run import Outcome, run

RUNS_MAX = 250
"""How many runs shrinking tries at most: about a minute."""
STATES = 40
"""Crashes judged in each run if a crash broke the rule: which crash fails differs each time."""


def shrunk(outcome: Outcome) -> Outcome:
    """The smallest run found that breaks the same rule.

    Raises:
        ValueError: the run did not fail.
    """
    if outcome.violation is None or outcome.where is None:
        raise ValueError("it did not fail")
    rule = outcome.violation.rule
    states = 0 if outcome.where.crash is None else STATES
    best, runs = outcome, 0

    def still_fails(acts: Sequence[Numbered]) -> bool:
        nonlocal best, runs
        if runs >= RUNS_MAX:
            return False
        runs += 1
        tried = run(replace(outcome.plan, acts=tuple(acts)), states)
        if tried.violation is None or tried.violation.rule != rule:
            return False
        best = tried
        return True

    kept = minimised(outcome.plan.acts, still_fails)
    for at in range(len(kept)):
        for simpler in _simpler(kept[at].act):
            candidate = [*kept[:at], replace(kept[at], act=simpler), *kept[at + 1 :]]
            if still_fails(candidate):
                kept = candidate
                break
    return best


def _simpler(act: Act) -> Iterator[Act]:
    """Smaller forms of the act, the smallest first."""
    match act:
        case Together(acts):
            yield from acts
            yield from (Together(acts[:at] + acts[at + 1 :]) for at in range(len(acts)))
        case Send(sendings) if len(sendings) > 1:
            yield from (Send((one,)) for one in sendings)
            yield from (Send(sendings[:at] + sendings[at + 1 :]) for at in range(len(sendings)))
        case Adopt(topic, sendings) if len(sendings) > 1:
            yield from (Adopt(topic, (one,)) for one in sendings)
