"""What the facts mean: what only the tool can know. The rest the daemon has found already.

Invariant: pure. Each rule has something to say, good or bad, unless it does not apply.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dss_core.times import text_of_span
from dssctl.doctor.facts import Facts
from dssctl.doctor.finding import Finding, Level, fine, problem, warning
from dssctl.limits import CLOCK_SKEW_MS_MAX

if TYPE_CHECKING:
    from dss_client import DaemonStatus

Rule = Callable[[Facts], Iterator[Finding]]
_LEVELS = {"healthy": Level.OK, "attention": Level.WARNING, "problem": Level.PROBLEM}


def findings_of(facts: Facts) -> list[Finding]:
    """All findings, in the order of the way from the client to the groups."""
    rules = _BEFORE if facts.status is None else _BEFORE + _RULES
    return [finding for rule in rules for finding in rule(facts)]


def _client(facts: Facts) -> Iterator[Finding]:
    yield fine("client.version", f"dssctl {facts.version}, Python {facts.python}")


def _socket(facts: Facts) -> Iterator[Finding]:
    if not facts.endpoint.startswith("unix:"):
        return
    if facts.socket:
        remedy = "Start dssd, or name its socket: --endpoint unix:PATH or DSSCTL_ENDPOINT."
        yield problem("client.socket", f"{facts.socket}.", remedy)
    else:
        yield fine("client.socket", facts.endpoint)


def _reachable(facts: Facts) -> Iterator[Finding]:
    trouble = facts.unreachable
    if trouble is None:
        took = f"{facts.round_trip_ms:.0f} ms"
        yield fine("daemon.reachable", f"{facts.endpoint} answers in {took}")
    else:
        hint = trouble.hint_text or "See its log: journalctl -u dssd"
        yield problem("daemon.reachable", f"{trouble.code}: {trouble.message}", hint)


def _failed(facts: Facts) -> Iterator[Finding]:
    for question, trouble in facts.failed.items():
        text = f"{question} could not be asked for: {trouble.code}: {trouble.message}"
        yield problem("daemon.answers", text, trouble.hint_text)


def _found(facts: Facts) -> Iterator[Finding]:
    """By the daemon's own rules."""
    for each in facts.found:
        level = _LEVELS.get(each.level, Level.WARNING)
        yield Finding(each.code, level, each.sentence, "; ".join(each.commands))


def _version(facts: Facts) -> Iterator[Finding]:
    there = _status(facts).version
    if there == facts.version:
        yield fine("daemon.version", f"dssd {there}")
    else:
        text = f"dssctl is {facts.version}, dssd is {there}."
        yield warning("daemon.version", text, "Install the same version of both.")


def _clock(facts: Facts) -> Iterator[Finding]:
    skew_ms = (_status(facts).now_us - facts.now_us) // 1_000
    if abs(skew_ms) <= CLOCK_SKEW_MS_MAX:
        yield fine("daemon.clock", f"the clocks differ by {abs(skew_ms)} ms")
    else:
        ahead = "ahead of" if skew_ms > 0 else "behind"
        text = f"Its clock is {text_of_span(abs(skew_ms))} {ahead} this one."
        remedy = "Set the clocks (chronyc makestep); until then times like -15m are off."
        yield warning("daemon.clock", text, remedy)


def _status(facts: Facts) -> "DaemonStatus":
    assert facts.status is not None, "these rules are for a daemon that answered"
    return facts.status


_BEFORE: tuple[Rule, ...] = (_client, _socket, _reachable)
_RULES: tuple[Rule, ...] = (_failed, _version, _clock, _found)
