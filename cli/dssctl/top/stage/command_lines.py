"""Command lines of dssctl that show or change the same.

Invariant: a shown line can be pasted into a shell; texts of the daemon or of a person are quoted.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING

from dss_core import changes
from dss_core.times import text_of_ms, text_of_span
from dssctl.output.escape import quoted
from dssctl.top.model.places import Place

if TYPE_CHECKING:
    from dss_client.changes import Change, MoveCursors


def word(text: str) -> str:
    """A text as one word of a shell."""
    return quoted(text) if not text.isprintable() else shlex.quote(text)


def plain(line: str) -> Callable[[Place], str]:
    """The same line at every place."""
    return lambda _place: f"dssctl {line}"


def of_group(line: str) -> Callable[[Place], str]:
    """A line that ends with the group."""
    return lambda place: f"dssctl {line} {word(place.group)}"


def of_name(line: str) -> Callable[[Place], str]:
    """A line that ends with the name of the place."""
    return lambda place: f"dssctl {line} {word(place.name)}"


def events_line(place: Place) -> str:
    """The events of a place."""
    subject = place.stream or place.group or place.name
    return f"dssctl events --subject {word(subject)}" if subject else "dssctl events"


def operations_line(place: Place) -> str:
    """The operations of a place."""
    return f"dssctl ops ls -g {word(place.group)}" if place.group else "dssctl ops ls"


def consume_line(place: Place) -> str:
    """The records of a stream."""
    start = "" if place.offset is None else f" --start ={place.offset}"
    return f"dssctl consume --stream {word(place.stream)}{start} --no-follow"


def dead_line(place: Place) -> str:
    """The dead letters of a place."""
    if place.noun == "dead-letter":
        return f"dssctl dlq peek {word(place.group)} {word(place.name)}"
    of_error = f" --error {word(place.name)}" if place.name else ""
    if place.noun == "dead-keys":
        return f"dssctl dlq keys {word(place.group)}{of_error}"
    key = "" if place.key is None else place.key.decode(errors="surrogateescape")
    of_key = f" --key {word(key)}" if place.key is not None else ""
    return f"dssctl dlq ls {word(place.group)}{of_error}{of_key}"


def record_line(place: Place) -> str:
    """One record, and where it stands for the group."""
    if place.group:
        where = f"--stream {word(place.stream)} --offset {place.offset}"
        return f"dssctl groups why {word(place.group)} {where}"
    return f"{consume_line(place)} -n 1"


def change_line(change: "Change", *, revision: int | None = None, reason: str = "") -> str:
    """The command that makes a change; empty if there is none."""
    found = _words(change)
    if not found:
        return ""
    verb, options, names = found
    if revision is not None:
        options = (*options, "--if-revision", str(revision))
    if reason:
        options = (*options, "--reason", reason)
    if any(name.startswith("-") for name in names):
        names = ("--", *names)
    return " ".join(["dssctl", *verb, *map(word, options), *map(word, names)])


def trigger_line(schedule: str, reason: str = "") -> str:
    """The command that runs a schedule's task now."""
    given = f"--reason {word(reason)} " if reason else ""
    dashes = "-- " if schedule.startswith("-") else ""
    return f"dssctl schedules trigger {given}{dashes}{word(schedule)}"


_Words = tuple[tuple[str, str], tuple[str, ...], tuple[str, ...]]


_OF_ONE = {
    changes.ResumeGroup: ("groups", "resume"),
    changes.RemoveGroup: ("groups", "rm"),
    changes.PauseSchedule: ("schedules", "pause"),
    changes.ResumeSchedule: ("schedules", "resume"),
    changes.CloseSession: ("sessions", "close"),
    changes.Undo: ("ops", "undo"),
    changes.PauseJob: ("jobs", "pause"),
    changes.ResumeJob: ("jobs", "resume"),
    changes.CancelJob: ("jobs", "cancel"),
    changes.RemoveJob: ("jobs", "rm"),
}
"""Changes that need only a name, their first field."""


def _words(change: "Change") -> _Words | None:
    """Noun and verb, options, and names."""
    verb = _OF_ONE.get(type(change))
    if verb is not None:
        return verb, (), (str(getattr(change, fields(change)[0].name)),)
    return _of_queues(change) or _of_members(change) or _of_rest(change)


_OF_QUEUES = {
    changes.RedriveDeadLetters: ("dlq", "redrive"),
    changes.DiscardDeadLetters: ("dlq", "discard"),
    changes.RetryNow: ("rq", "retry-now"),
    changes.SkipRetries: ("rq", "skip"),
    changes.BuryRetries: ("rq", "dead"),
}


def _of_queues(change: "Change") -> _Words | None:
    verb = _OF_QUEUES.get(type(change))
    if verb is None or not isinstance(change, changes.ChosenEntries):
        return None
    options: list[str] = ["--error", change.error] if change.error else []
    if change.key is not None:
        options += ["--key", change.key.decode(errors="surrogateescape")]
    if isinstance(change, changes.RedriveDeadLetters) and change.canary is not None:
        options += ["--canary", str(change.canary)]
    names = [change.group]
    if change.offset is not None:
        names.append(f"{change.stream}@{change.offset}")
    elif change.stream:
        options += ["--origin", change.stream]
    return verb, tuple(options), tuple(names)


def _of_rest(change: "Change") -> _Words | None:
    match change:
        case changes.SkipRecords(group, stream, offset, count, more=()):
            return ("records", "skip"), ("--count", str(count)), (group, stream, str(offset))
        case changes.PauseGroup(group, until_ms):
            until = () if until_ms is None else ("--until", text_of_ms(until_ms))
            return ("groups", "pause"), until, (group,)
        case changes.Rebalance(group, moves_max):
            most = () if moves_max is None else ("--max-moves", str(moves_max))
            return ("groups", "rebalance"), most, (group,)
        case changes.RemoveTopic(topic, force):
            return ("topics", "rm"), ("--force",) if force else (), (topic,)
        case _:
            return _moved(change)


def _moved(change: "Change") -> _Words | None:
    from dss_client.changes import MoveCursors

    return _move(change) if isinstance(change, MoveCursors) else None


def _of_members(change: "Change") -> _Words | None:
    match change:
        case changes.Evict(group, borrower, grace_ms, ban_ms):
            spans = (("--grace", grace_ms), ("--ban", ban_ms))
            options = [each for name, ms in spans if ms for each in (name, text_of_span(ms))]
            return ("borrowers", "evict"), tuple(options), (group, borrower)
        case changes.TransferGrant(group, stream, to):
            return ("grants", "transfer"), ("--to", to), (group, stream)
        case changes.RevokeGrant(group, stream):
            return ("grants", "revoke"), (), (group, stream)
        case _:
            return None


def _move(change: "MoveCursors") -> _Words:
    where = ("--to", str(change.to)) if change.to is not None else ("--by", _by(change))
    streams: Sequence[str] = [each for name in change.streams for each in ("--stream", name)]
    return ("offsets", change.direction), (*where, *streams), (change.group,)


def _by(change: "MoveCursors") -> str:
    by = change.by or 0
    signed = change.direction == "seek"
    if isinstance(by, timedelta):
        ms = round(by.total_seconds() * 1_000)
        return ("-" if signed and ms < 0 else "") + text_of_span(abs(ms))
    return str(by if signed else abs(by))
