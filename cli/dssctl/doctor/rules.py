"""What the facts mean, from the client to the groups.

Invariant: pure. Each rule has something to say, good or bad, unless it does not apply.
"""

import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dss_core.counted import counted
from dss_core.sentences import as_sentence
from dss_core.times import text_of_span
from dssctl.doctor.facts import Facts
from dssctl.doctor.finding import Finding, fine, problem, warning
from dssctl.limits import (
    CLOCK_SKEW_MS_MAX,
    DISK_FREE_PART_FEW,
    DISK_FREE_PART_LEAST,
    ENDED_BADLY_TOLD_MS,
    JOB_UNDRIVEN_MS,
    NEAR_BOUND_PART,
    OPEN_FILES_MIN,
    OPERATION_RUNS_MS,
    SCHEDULE_LATE_MS,
    SESSION_STALE_MS,
    STUCK_TOLD,
)
from dssctl.output.model import bytes_text

if TYPE_CHECKING:
    from dss_client import DaemonStatus

Rule = Callable[[Facts], Iterator[Finding]]
_RUN_WENT_WRONG = frozenset({"failed", "timed-out", "interrupted"})
_MISTAKE = "internal.error"
_ENDED_BADLY = frozenset({"crashed", "killed", "power-lost"})
_DAMAGE = frozenset({"records.passed", "stream.damaged", "stream.short", "stream.unreadable"})


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


def _state(facts: Facts) -> Iterator[Finding]:
    status = _status(facts)
    up = text_of_span(max(facts.now_us // 1_000 - status.started_at_ms, 0))
    if status.state == "serving":
        yield fine("daemon.state", f"serving for {up}, process {status.pid}")
    else:
        remedy = "Free space on its disk, or shorten a retention."
        if status.state == "stopping":
            remedy = "Wait until it is back: dssctl wait daemon --for ready"
        yield problem(
            "daemon.state", as_sentence(f"It is {status.state}: {status.state_reason}"), remedy
        )


def _before(facts: Facts) -> Iterator[Finding]:
    """How the daemon before ended; trouble for as long as somebody may not know of it."""
    status = _status(facts)
    up_ms = facts.now_us // 1_000 - status.started_at_ms
    reason = f": {status.before_reason}" if status.before_reason else ""
    text = f"the daemon before: {status.before}{reason}"
    if status.before in _ENDED_BADLY and up_ms < ENDED_BADLY_TOLD_MS:
        remedy = "See when and why: dssctl events --severity warning, journalctl -u dssd"
        yield warning("daemon.before", f"{text[0].upper()}{text[1:]}.", remedy)
    else:
        yield fine("daemon.before", text)


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


def _bounds(facts: Facts) -> Iterator[Finding]:
    status = _status(facts)
    held = status.held
    sessions = status.sessions + status.sessions_waiting
    peers = "See who holds most: dssctl daemon status"
    bounds = (
        ("connections", held.connections, held.connections_max, peers),
        ("calls", held.calls, held.calls_max, peers),
        ("bytes in delivery", held.delivery_bytes, held.delivery_bytes_max, peers),
        ("sessions", sessions, status.sessions_max, "See who leaves them: dssctl sessions ls"),
        (
            "producers",
            status.producers,
            status.producers_max,
            "Some program opens a producer for each record: open one and keep it.",
        ),
        ("open files", status.open_files, status.open_files_max, "Raise LimitNOFILE of its unit."),
    )
    near = [each for each in bounds if each[2] and each[1] > NEAR_BOUND_PART * each[2]]
    for what, number, most, remedy in near:
        yield warning("daemon.bounds", f"{number:,} of {most:,} {what}.", remedy)
    if not near:
        yield fine("daemon.bounds", "connections, calls, sessions and producers have room")


def _open_files(facts: Facts) -> Iterator[Finding]:
    most = _status(facts).open_files_max
    if 0 < most < OPEN_FILES_MIN:
        text = f"It may open {most:,} files; clients get half of them as connections."
        yield warning("daemon.open-files", text, "Raise LimitNOFILE of its unit, or ulimit -n.")
    else:
        yield fine("daemon.open-files", f"it may open {most:,} files" if most else "no limit")


def _disk(facts: Facts) -> Iterator[Finding]:
    status = _status(facts)
    free, whole = status.disk_free_bytes, status.disk_size_bytes
    text = f"{bytes_text(free)} of {bytes_text(whole)} are free for {status.data_dir}"
    remedy = "Make room, or shorten a retention: dssctl topics ls, dssctl topics edit"
    if free < DISK_FREE_PART_LEAST * whole:
        yield problem("disk.free", f"Only {text}.", remedy)
    elif free < DISK_FREE_PART_FEW * whole:
        yield warning("disk.free", f"Only {text}.", remedy)
    else:
        yield fine("disk.free", text)


def _retention(facts: Facts) -> Iterator[Finding]:
    status = _status(facts)
    bounded = [each for each in facts.topics if each.topic.retention_bytes is not None]
    growth = sum(max((each.topic.retention_bytes or 0) - each.bytes, 0) for each in bounded)
    if growth > status.disk_free_bytes:
        text = (
            f"Retention lets topics grow by {bytes_text(growth)}, "
            f"and {bytes_text(status.disk_free_bytes)} are free."
        )
        yield warning("disk.retention", text, "Lower it: dssctl topics edit TOPIC --retention-size")
        return
    endless = [
        each
        for each in facts.topics
        if each.topic.retention_bytes is None and each.topic.retention_ms is None
    ]
    few = status.disk_free_bytes < 2 * DISK_FREE_PART_FEW * status.disk_size_bytes
    if endless and few:
        worst = max(endless, key=lambda each: each.bytes)
        keep = counted(len(endless), "topic keeps", "topics keep")
        text = f"{keep} all; {worst.topic.name} is the largest."
        remedy = f"dssctl topics edit {worst.topic.name} --retention 7d"
        yield warning("disk.retention", text, remedy)
    else:
        yield fine("disk.retention", "what retention allows has room")


def _damage(facts: Facts) -> Iterator[Finding]:
    quarantined = _status(facts).quarantined
    if quarantined:
        first = quarantined[0]
        more = f", and {len(quarantined) - 1} more" if len(quarantined) > 1 else ""
        text = f"{first.file} was set aside or damaged: {first.reason.rstrip('.')}{more}."
        yield problem("log.quarantined", text, "Stop dssd and look: dssd check --deep")
    damage = [event for event in facts.events if event.code in _DAMAGE]
    if damage:
        last = damage[-1]
        text = f"{last.subject}: {last.sentence}"
        remedy = f"dssctl events --subject {shlex.quote(last.subject)}; dssd check"
        yield problem("log.damage", text, remedy)
    if not quarantined and not damage:
        yield fine("log.damage", "no file was set aside, no record found damaged today")


def _losses(facts: Facts) -> Iterator[Finding]:
    status = _status(facts)
    for loss in status.unread_losses:
        group = f"{loss.group}@{loss.filter}"
        text = (
            f"Retention of {loss.topic} took {counted(loss.records, 'record')} unread by {group}."
        )
        remedy = f"dssctl topics edit {loss.topic} --retention SPAN"
        yield problem("groups.losing", text, remedy)
    near = [event for event in facts.events if event.code == "retention.near"]
    if near:
        last = near[-1]
        remedy = "Lengthen the retention, or see why the group is behind: dssctl groups ls"
        yield warning("groups.retention", f"{last.subject}: {last.sentence}", remedy)
    if not status.unread_losses and not near:
        yield fine("groups.losing", "retention takes nothing unread")


def _stuck(facts: Facts) -> Iterator[Finding]:
    for each in facts.stuck[:STUCK_TOLD]:
        where = f"{each.group} {each.stream}".rstrip()
        text = f"{where}: {each.reason.sentence} ({counted(each.lag, 'record')})"
        remedy = each.reason.command or f"dssctl groups stuck {shlex.quote(each.group)}"
        yield (problem if each.level == "problem" else warning)("groups.stuck", text, remedy)
    if len(facts.stuck) > STUCK_TOLD:
        more = f"{len(facts.stuck) - STUCK_TOLD} more do not move."
        yield problem("groups.stuck", more, "dssctl groups stuck")
    if not facts.stuck:
        yield fine("groups.stuck", f"{counted(len(facts.groups), 'group')}, none is stuck")


def _behind(facts: Facts) -> Iterator[Finding]:
    # A group that is paused, or changes hands, is told of otherwise.
    behind = [
        each for each in facts.groups if each.state == "active" and each.health == "attention"
    ]
    if behind:
        worst = max(behind, key=lambda group: group.lag)
        name = f"{worst.name}@{worst.filter}"
        text = f"{name} is behind by {counted(worst.lag, 'record')} and does not catch up."
        yield warning("groups.behind", text, f"dssctl groups describe {shlex.quote(name)}")
    else:
        yield fine("groups.behind", "groups with members catch up")


def _sessions(facts: Facts) -> Iterator[Finding]:
    now_ms = facts.now_us // 1_000
    stale = [
        session
        for session in facts.sessions
        if session.state != "connected" and now_ms - session.since_ms > SESSION_STALE_MS
    ]
    if stale:
        oldest = min(stale, key=lambda session: session.since_ms)
        age = text_of_span(now_ms - oldest.since_ms)
        text = f"{counted(len(stale), 'session')} left for long, {oldest.client_id} for {age}."
        remedy = f"If it does not come back: dssctl sessions close {oldest.client_id}"
        yield warning("sessions.stale", text, remedy)
    else:
        yield fine(
            "sessions.stale", f"{counted(len(facts.sessions), 'session')}, none left for long"
        )


def _operations(facts: Facts) -> Iterator[Finding]:
    now_ms = facts.now_us // 1_000
    long = [each for each in facts.running if now_ms - each.applied_at_ms > OPERATION_RUNS_MS]
    for each in long:
        age = text_of_span(now_ms - each.applied_at_ms)
        text = f"Operation {each.number}, {each.kind} of {each.subject}, runs for {age}."
        yield warning("operations.running", text, f"dssctl ops show {each.number}")
    if not long:
        yield fine("operations.running", "no operation runs for long")


def _schedules(facts: Facts) -> Iterator[Finding]:
    now_ms = facts.now_us // 1_000
    bad = False
    for each in facts.schedules:
        runs = f"dssctl schedules runs {each.name}"
        if each.last is not None and each.last.state in _RUN_WENT_WRONG:
            bad = True
            text = f"The last run of {each.name} is {each.last.state}: {each.last.failure}"
            yield problem("schedules.last-run", text, runs)
        if each.state == "broken":
            bad = True
            text = f"{each.name} is not run: the daemon's machine knows no zone {each.time_zone}."
            remedy = f"Install its tzdata, or dssctl schedules edit {each.name} --tz ZONE"
            yield problem("schedules.broken", text, remedy)
        late_ms = 0 if each.next_at_ms is None else now_ms - each.next_at_ms
        if each.state == "idle" and late_ms > SCHEDULE_LATE_MS:
            bad = True
            text = f"{each.name} is due since {text_of_span(late_ms)} and does not run."
            yield warning("schedules.late", text, f"dssctl schedules trigger {each.name}; {runs}")
    if facts.schedules and not bad:
        yield fine("schedules.last-run", f"{counted(len(facts.schedules), 'schedule')} went well")


def _jobs(facts: Facts) -> Iterator[Finding]:
    started_ms, now_ms = _status(facts).started_at_ms, facts.now_us // 1_000
    goes_on = [job for job in facts.jobs if not job.has_ended]
    bad = False
    for job in goes_on:
        # The daemon knows nothing of a driver that it did not hear since it started.
        heard_ms = max(job.created_at_ms, job.said_at_ms or 0, started_ms)
        if job.state != "active" or job.driver_lives or now_ms - heard_ms <= JOB_UNDRIVEN_MS:
            continue
        bad = True
        chunks = f"{job.published} of {job.chunks} chunks are published"
        text = f"Nobody drives {job.name} for {text_of_span(now_ms - heard_ms)}; {chunks}."
        yield problem("jobs.driver", text, f"dssctl jobs drive {shlex.quote(job.name)}")
    if goes_on and not bad:
        yield fine("jobs.driver", f"{counted(len(goes_on), 'job')} under way, none left alone")


def _errors(facts: Facts) -> Iterator[Finding]:
    errors = [
        each
        for each in facts.events
        if each.severity == "error" and each.code not in _DAMAGE | {_MISTAKE}
    ]
    if errors:
        last = errors[-1]
        number = max(_status(facts).errors_in_a_day, len(errors))
        text = f"{counted(number, 'error')} in a day; the last: {last.subject}: {last.sentence}"
        yield warning("events.errors", text, "dssctl events --since -1d --severity error")
    else:
        yield fine("events.errors", "no other errors in a day")


def _mistakes(facts: Facts) -> Iterator[Finding]:
    mistakes = [each for each in facts.events if each.code == _MISTAKE]
    if mistakes:
        last = mistakes[-1]
        parts = ", ".join(sorted({each.subject for each in mistakes}))
        text = f"dssd met mistakes of its own in {parts}; the last: {last.sentence}"
        remedy = "Report it with its traceback, which is in its log: journalctl -u dssd"
        yield problem("daemon.internal-errors", text, remedy)
    else:
        yield fine("daemon.internal-errors", "it met no mistake of its own in a day")


def _status(facts: Facts) -> "DaemonStatus":
    assert facts.status is not None, "these rules are for a daemon that answered"
    return facts.status


_BEFORE: tuple[Rule, ...] = (_client, _socket, _reachable)
_RULES: tuple[Rule, ...] = (
    _failed,
    _state,
    _mistakes,
    _before,
    _version,
    _clock,
    _bounds,
    _open_files,
    _disk,
    _retention,
    _damage,
    _errors,
    _losses,
    _stuck,
    _behind,
    _sessions,
    _operations,
    _schedules,
    _jobs,
)
