"""The verdict on a group: the one table of rules for lists, pages, checks and the dashboard.

The first that holds decides::

    what is known                       level       code
    something of it does not move       problem     that of its reason
    an operator paused it               attention   paused
    a record fails again and again      problem     failing
    something stood at the last look    problem     stuck
    a stream is stalled                 problem     stalled
    records wait, and it has no member  problem     no-members
    queues of a stream have no room     problem     queues-full
    records are among its dead letters  attention   dead
    its streams change hands            attention   rebalancing
    its lag grows, or stands            attention   behind
    something went wrong in a day       attention   error
    records wait                        healthy     at-work
    nothing waits                       healthy     done

A list knows the facts of an overview. A question about one group also knows what is stuck, which
needs a look at each stream. Invariant: pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from dss_core.answers import Reason
from dss_core.counted import bytes_text, counted
from dss_core.forecast import drained_in_ms
from dss_core.times import text_of_ms, text_of_span
from dssd.machines.queues import BLOCK
from dssd.questions.overviews import Overview
from dssd.questions.reasons import PAUSED, QUEUES_FULL, RecordAsked, no_members, quoted
from dssd.questions.stuck import Stuck

BEHIND = "behind"
"""The code of a group that does not catch up."""
DEAD = "dead"
"""The code of a group with records that failed for good."""


class Level(StrEnum):
    """How bad it is."""

    HEALTHY = "healthy"
    ATTENTION = "attention"
    """It may become a problem, or an operator intended it."""
    PROBLEM = "problem"
    """Records do not move."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a group is."""

    level: Level
    code: str
    sentence: str
    commands: tuple[str, ...] = ()
    """What helps, or shows more."""


def level_of(reason: Reason) -> Level:
    """The level of a stuck group: a pause is intended."""
    return Level.ATTENTION if reason.code == PAUSED else Level.PROBLEM


def verdict_of(group: Overview, stuck: Sequence[Stuck] = ()) -> Verdict:
    """The verdict on a group, by its overview and the stuck streams that are known."""
    stuck_of = f"dssctl groups stuck {quoted(group.group)}"
    found = verdict_of_stuck(stuck) if stuck else None
    if found is not None and found.level is Level.PROBLEM:
        return found
    if group.group.paused:
        return _paused(group)
    if group.failing or group.stuck:
        told, code = "A record of it fails again and again.", "failing"
        if not group.failing:
            told, code = "Something of it does not move.", "stuck"
        return Verdict(Level.PROBLEM, code, told, (stuck_of,))
    if group.state == "stalled":
        return Verdict(
            Level.PROBLEM, "stalled", f"It is stalled: {group.state_reason}.", (stuck_of,)
        )
    if (group.lag or group.retrying) and not group.borrowers:
        reason = no_members(RecordAsked(group.group, "", 0))
        told = f"Nobody is a member, and {_waiting(group)}."
        return Verdict(Level.PROBLEM, reason.code, told, (reason.command,))
    moving = _full(group) if group.is_full else _moving(group)
    return _erred(group) if group.error and moving.level is Level.HEALTHY else moving


def _erred(group: Overview) -> Verdict:
    name = quoted(group.group)
    commands = (f"dssctl events --subject {name}", f"dssctl groups verify {name}")
    told = f"It goes on, but something went wrong today: {group.error}"
    return Verdict(Level.ATTENTION, "error", told, commands)


def _paused(group: Overview) -> Verdict:
    until_ms = group.group.paused_until_ms
    end = "" if until_ms is None else f" until {text_of_ms(until_ms)}"
    told = f"An operator paused it{end}; {_waiting(group)}."
    return Verdict(Level.ATTENTION, PAUSED, told, (f"dssctl groups resume {quoted(group.group)}",))


def verdict_of_stuck(stuck: Sequence[Stuck]) -> Verdict:
    """The verdict on a group of which something is stuck."""
    first = stuck[0]
    told = f"{first.stream}: {first.reason.sentence}" if first.stream else first.reason.sentence
    more = len(stuck) - 1
    if more:
        told += f" So {'stands' if more == 1 else 'stand'} {counted(more, 'more stream')}."
    commands = dict.fromkeys(filter(None, (each.reason.command for each in stuck)))
    worst = Level.PROBLEM if any(level_of(each.reason) is Level.PROBLEM for each in stuck) else None
    return Verdict(worst or Level.ATTENTION, first.reason.code, told, tuple(commands))


def _moving(group: Overview) -> Verdict:
    """The verdict on a group that nothing blocks."""
    if group.dead:
        return _with_dead_letters(group)
    watch = (f"dssctl watch lags grants -g {quoted(group.group)}",)
    if group.state == "rebalancing":
        return Verdict(Level.ATTENTION, "rebalancing", "Its streams change hands.", watch)
    if not group.lag and not group.retrying:
        idle = "" if group.borrowers else " Nobody is a member."
        told = f"It has acknowledged all records that it is to get.{idle}"
        return Verdict(Level.HEALTHY, "done", told)
    drained_ms = forecast_ms(group) if group.lag else None
    if drained_ms == inf:
        stuck = f"dssctl groups stuck {quoted(group.group)} --for 10s"
        told = f"It does not catch up: {_waiting(group)}{_oldest(group)}."
        return Verdict(Level.ATTENTION, BEHIND, told, (stuck, *watch))
    soon = "" if drained_ms is None else f", and none will in {_seconds(drained_ms)}"
    return Verdict(Level.HEALTHY, "at-work", f"It is at work: {_waiting(group)}{soon}.")


def _full(group: Overview) -> Verdict:
    name, most = quoted(group.group), group.group.queue_records
    stays = "a failed record comes again and again in its place"
    if group.group.ordered:
        stays = "a failed record waits in its stream for room, and holds up its key"
    held = f"{most:,} records, as many as they may"
    more = f"dssctl groups edit {name} --queue-records {2 * most}"
    if group.fullest < most:
        size = group.group.queue_bytes
        held = f"{bytes_text(group.fullest_bytes)}, as much as they may"
        more = f"dssctl groups edit {name} --queue-bytes {2 * size}B"
    told = (
        f"The queues of a stream hold {held}: {stays};"
        f" {counted(group.dead, 'record')} {_are(group.dead)} dead,"
        f" {group.retrying:,} come again."
    )
    return Verdict(Level.PROBLEM, QUEUES_FULL, told, (f"dssctl dlq errors {name}", more))


def _with_dead_letters(group: Overview) -> Verdict:
    told = f"{counted(group.dead, 'record')} {_are(group.dead)} dead"
    if group.group.ordered and group.group.on_dead_letter == BLOCK:
        told += ", their keys wait for them to be redriven or discarded"
    told += f"; {_waiting(group)}." if group.lag or group.retrying else "."
    command = f"dssctl dlq describe {quoted(group.group)}"
    return Verdict(Level.ATTENTION, DEAD, told, (command,))


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def forecast_ms(group: Overview) -> float | None:
    """Time until its lag is gone; infinite if it does not shrink, None: unknown."""
    return drained_in_ms(group.lag, group.drain_ms, group.oldest_ms, group.arrivals, group.acks)


def _waiting(group: Overview) -> str:
    bound = "" if group.lag_exact else "at most "
    told = f"{bound}{counted(group.lag, 'record')} {'waits' if group.lag == 1 else 'wait'}"
    return told + (f", {group.retrying} failed and come again" if group.retrying else "")


def _oldest(group: Overview) -> str:
    return "" if group.oldest_ms is None else f", the oldest for {_seconds(group.oldest_ms)}"


def _seconds(span_ms: float) -> str:
    return text_of_span(max(0, int(span_ms)) // 1_000 * 1_000)
