"""What the facts mean, as far as only the tool can know. The daemon has found the rest.

Invariant: pure. Each rule has a result, good or bad, unless it does not apply.
"""

import sys

from dss_core.times import text_of_span
from dssctl import VERSION
from dssctl.doctor.facts import Facts
from dssctl.doctor.finding import Finding, Level, fine, problem, warning

CLOCK_SKEW_MS_MAX = 1_000
"""With a larger difference, times like -15m mean something else here than there."""


_LEVELS = {"healthy": Level.OK, "attention": Level.WARNING, "problem": Level.PROBLEM}


def findings_of(facts: Facts) -> list[Finding]:
    """All findings, in order from the client to the groups."""
    python = ".".join(map(str, sys.version_info[:3]))
    found = [fine("client.version", f"dssctl {VERSION}, Python {python}")]
    if facts.endpoint.startswith("unix:"):
        found.append(_socket(facts))
    found.append(_reachable(facts))
    if facts.status is None:
        return found
    if facts.failed is not None:
        failed = f"findings could not be asked for: {facts.failed.code}: {facts.failed.message}"
        found.append(problem("daemon.answers", failed, facts.failed.hint_text))
    found += [_version(facts.status.version), _clock(facts.status.now_us - facts.now_us)]
    for each in facts.found:
        level = _LEVELS.get(each.level, Level.WARNING)
        found.append(Finding(each.code, level, each.sentence, "; ".join(each.commands)))
    return found


def _socket(facts: Facts) -> Finding:
    if not facts.socket:
        return fine("client.socket", facts.endpoint)
    remedy = "Start dssd, or name its socket: --endpoint unix:PATH or DSSCTL_ENDPOINT."
    return problem("client.socket", f"{facts.socket}.", remedy)


def _reachable(facts: Facts) -> Finding:
    trouble = facts.unreachable
    if trouble is None:
        took = f"{facts.round_trip_ms:.0f} ms"
        return fine("daemon.reachable", f"{facts.endpoint} answers in {took}")
    hint = trouble.hint_text or "See its log: journalctl -u dssd"
    return problem("daemon.reachable", f"{trouble.code}: {trouble.message}", hint)


def _version(there: str) -> Finding:
    if there == VERSION:
        return fine("daemon.version", f"dssd {there}")
    told = f"dssctl is {VERSION}, dssd is {there}."
    return warning("daemon.version", told, "Install the same version of both.")


def _clock(skew_us: int) -> Finding:
    skew_ms = skew_us // 1_000
    if abs(skew_ms) <= CLOCK_SKEW_MS_MAX:
        return fine("daemon.clock", f"the clocks differ by {abs(skew_ms)} ms")
    ahead = "ahead of" if skew_ms > 0 else "behind"
    told = f"Its clock is {text_of_span(abs(skew_ms))} {ahead} this one."
    remedy = "Set the clocks (chronyc makestep); until then times like -15m are off."
    return warning("daemon.clock", told, remedy)
