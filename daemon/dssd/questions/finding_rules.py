"""The rules for findings about the daemon, its topics and sessions; groups have their own table.

`dssctl doctor`, `top` and the pages of topics and sessions use these rules. Each rule has a stable
code, and gives a finding, good or bad, unless it does not apply. Invariant: pure.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from dss_core.answers import DaemonStatus
from dss_core.counted import bytes_text, counted
from dss_core.errors import DssError
from dss_core.sentences import as_sentence
from dss_core.times import text_of_span
from dssd.events import kinds
from dssd.events.model import KeptEvent, Severity
from dssd.jobs.held_job import JobView
from dssd.questions.overviews import Overview
from dssd.questions.reasons import QUEUES_FULL, quoted
from dssd.questions.stuck import Stuck
from dssd.questions.verdicts import (
    BEHIND,
    DEAD,
    Level,
    Verdict,
    verdict_of,
    verdict_of_stuck,
)
from dssd.schedules.views import BROKEN, IDLE, ScheduleView
from dssd.sessions.listing import SessionView
from dssd.store.rows import OperationRow
from dssd.topics.model import Topic

NEAR_BOUND_PART = 0.8
"""Share of a limit in use from which an operator should look for the cause."""

OPEN_FILES_MIN = 4_096
"""With fewer, clients get fewer than half of the connections that the daemon would serve."""

DISK_FREE_PART_FEW = 0.1
DISK_FREE_PART_LEAST = 0.03
"""Of the disk: a tenth is the bound of the alert DssDiskFillsUp; below the other it is a matter of
minutes under load."""

STUCK_TOLD = 5
"""Groups that findings name; groups stuck has all."""

SESSION_STALE_MS = 3_600_000
"""A client that restarts is back sooner."""

ENDED_BADLY_TOLD_MS = 24 * 3_600 * 1_000
"""How long after a start the end of the previous daemon is a finding: no shift misses it."""

OPERATION_RUNS_MS = 10 * 60_000
"""Leases end in seconds, so an operation that runs for longer waits for something odd."""

SCHEDULE_OVERDUE_MS = 10 * 60_000
"""A run that is due begins within its jitter, minutes at most."""

CERTIFICATE_LEFT_MS_FEW = 14 * 24 * 3_600 * 1_000
CERTIFICATE_LEFT_MS_LEAST = 2 * 24 * 3_600 * 1_000
"""Certificates are usually renewed when a third of their time is left, a month of ninety days. One
with two days left has to be renewed by hand."""

BACKUP_OLD_MS = 7 * 24 * 3_600 * 1_000
"""Finds a backup routine that was forgotten; daily backups have a stricter alert."""

JOB_UNDRIVEN_MS = 5 * 60_000
"""A replaced driver returns within its lease, seconds."""


_RUN_WENT_WRONG = frozenset({"failed", "timed-out", "interrupted"})
_ENDED_BADLY = frozenset({"crashed", "killed", "power-lost"})
_DAMAGED = (
    *(kinds.RECORDS_PASSED, kinds.STREAM_DAMAGED),
    *(kinds.STREAM_SHORT, kinds.STREAM_UNREADABLE),
)
_DAMAGE = frozenset(each.code for each in _DAMAGED)


class KeptTopic(NamedTuple):
    """A topic, and how much of the log it has."""

    topic: Topic
    bytes: int


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts for the rules: all, or those of one topic or session."""

    daemon: DaemonStatus
    groups: Sequence[Overview] = ()
    stuck: Sequence[Stuck] = ()
    """Entries of one group stand together."""
    events: Sequence[KeptEvent] = ()
    """Warnings and errors of the last day, the oldest first."""
    topics: Sequence[KeptTopic] = ()
    sessions: Sequence[SessionView] = ()
    operations: Sequence[OperationRow] = ()
    """Operations that have not ended."""
    schedules: Sequence[ScheduleView] = ()
    jobs: Sequence[JobView] = ()
    failed: Mapping[str, DssError] = field(default_factory=dict)
    """Questions that failed, by what they ask for."""

    @property
    def now_ms(self) -> int:
        """By the wall clock."""
        return self.daemon.now_us // 1_000

    def age_ms(self, at_ms: int) -> int:
        """How long ago something was."""
        return self.now_ms - at_ms


Found = Iterator[Verdict]
Rule = Callable[[Facts], Found]


def _fine(code: str, told: str) -> Verdict:
    return Verdict(Level.HEALTHY, code, told)


def _attention(code: str, told: str, *helps: str) -> Verdict:
    return Verdict(Level.ATTENTION, code, told, helps)


def _problem(code: str, told: str, *helps: str) -> Verdict:
    return Verdict(Level.PROBLEM, code, told, helps)


def _failed(facts: Facts) -> Found:
    for what, failure in facts.failed.items():
        told = f"{what} could not be asked for: {failure.code}: {failure.message}"
        yield _problem("daemon.answers", told, *filter(None, [failure.hint_text]))


def _state(facts: Facts) -> Found:
    daemon = facts.daemon
    if daemon.state == "serving":
        up = text_of_span(max(facts.age_ms(daemon.started_at_ms), 0))
        yield _fine("daemon.state", f"serving for {up}, process {daemon.pid}")
    else:
        helps = "Free space on its disk, or shorten a retention."
        if daemon.state == "stopping":
            helps = "Wait until it is back: dssctl wait daemon --for ready"
        told = as_sentence(f"It is {daemon.state}: {daemon.state_reason}")
        yield _problem("daemon.state", told, helps)


def _mistakes(facts: Facts) -> Found:
    mistakes = [each for each in facts.events if each.code == kinds.INTERNAL_ERROR.code]
    if mistakes:
        parts = ", ".join(sorted({each.subject for each in mistakes}))
        told = f"dssd met mistakes of its own in {parts}; the last: {mistakes[-1].sentence}"
        helps = "Report it with its traceback, which is in its log: journalctl -u dssd"
        yield _problem("daemon.internal-errors", told, helps)
    else:
        yield _fine("daemon.internal-errors", "it met no mistake of its own in a day")


def _before(facts: Facts) -> Found:
    """How the previous daemon ended: a finding as long as an operator may not know of it."""
    daemon = facts.daemon
    reason = f": {daemon.before_reason}" if daemon.before_reason else ""
    told = f"the daemon before: {daemon.before}{reason}"
    up_ms = facts.age_ms(daemon.started_at_ms)
    if daemon.before in _ENDED_BADLY and up_ms < ENDED_BADLY_TOLD_MS:
        helps = "See when and why: dssctl events --severity warning, journalctl -u dssd"
        yield _attention("daemon.before", f"{told[0].upper()}{told[1:]}.", helps)
    else:
        yield _fine("daemon.before", told)


def _bounds(facts: Facts) -> Found:
    daemon, held = facts.daemon, facts.daemon.held
    sessions = daemon.sessions + daemon.sessions_waiting
    peers = "See who holds most: dssctl daemon status"
    opened = "Some program opens a producer for each record: open one and keep it."
    leaves = "See who leaves them: dssctl sessions ls"
    bounds = (
        ("connections", held.connections, held.connections_max, peers),
        ("calls", held.calls, held.calls_max, peers),
        ("bytes in delivery", held.delivery_bytes, held.delivery_bytes_max, peers),
        ("sessions", sessions, daemon.sessions_max, leaves),
        ("producers", daemon.producers, daemon.producers_max, opened),
        ("open files", daemon.open_files, daemon.open_files_max, "Raise LimitNOFILE of its unit."),
    )
    near = [each for each in bounds if each[2] and each[1] > NEAR_BOUND_PART * each[2]]
    for what, number, most, helps in near:
        yield _attention("daemon.bounds", f"{number:,} of {most:,} {what}.", helps)
    if not near:
        yield _fine("daemon.bounds", "connections, calls, sessions and producers have room")


def _certificate(facts: Facts) -> Found:
    """What TLS is served with: whether it can be renewed, and how long it lasts."""
    daemon = facts.daemon
    if not daemon.certificate:
        return
    left_ms = (daemon.certificate_ends_ms or 0) - facts.now_ms
    renew = f"Renew it: {daemon.certificate} is read again as it changes."
    ends = f"the certificate ends in {text_of_span(max(left_ms, 0))}"
    if daemon.certificate_problem:
        told = f"{daemon.certificate} is not served: {daemon.certificate_problem}; {ends}."
        yield _problem("daemon.certificate", told, "Mend its files; they are read again.")
    elif left_ms < CERTIFICATE_LEFT_MS_LEAST:
        told = "The certificate has ended." if left_ms <= 0 else f"It is due for renewal: {ends}."
        yield _problem("daemon.certificate", told, renew)
    elif left_ms < CERTIFICATE_LEFT_MS_FEW:
        yield _attention("daemon.certificate", as_sentence(ends[0].upper() + ends[1:]), renew)
    else:
        yield _fine("daemon.certificate", ends)


def _backup(facts: Facts) -> Found:
    daemon = facts.daemon
    age_ms = facts.age_ms(daemon.backup_at_ms or 0)
    if daemon.backup_at_ms and age_ms > BACKUP_OLD_MS:
        told = f"The last backup was taken {text_of_span(age_ms)} ago."
        yield _attention("daemon.backup", told, "dssctl backup create DIR")
    elif daemon.backup_at_ms:
        yield _fine("daemon.backup", f"a backup was taken {text_of_span(max(age_ms, 0))} ago")
    else:
        yield _fine("daemon.backup", "no backup is known: dssctl backup create DIR")
    if daemon.principals_suspended:
        who = counted(daemon.principals_suspended, "principal waits", "principals wait")
        told = f"{who} to be confirmed since a backup was restored."
        helps = "dssctl principals ls --filter suspended=yes", "dssctl principals confirm NAME"
        yield _attention("access.suspended", told, *helps)


def _open_files(facts: Facts) -> Found:
    most = facts.daemon.open_files_max
    if 0 < most < OPEN_FILES_MIN:
        told = f"It may open {most:,} files; clients get half of them as connections."
        yield _attention("daemon.open-files", told, "Raise LimitNOFILE of its unit, or ulimit -n.")
    else:
        yield _fine("daemon.open-files", f"it may open {most:,} files" if most else "no limit")


def _disk(facts: Facts) -> Found:
    free, whole = facts.daemon.disk_free_bytes, facts.daemon.disk_size_bytes
    told = f"{bytes_text(free)} of {bytes_text(whole)} are free for {facts.daemon.data_dir}"
    helps = "Make room, or shorten a retention: dssctl topics ls, dssctl topics edit"
    if free < DISK_FREE_PART_LEAST * whole:
        yield _problem("disk.free", f"Only {told}.", helps)
    elif free < DISK_FREE_PART_FEW * whole:
        yield _attention("disk.free", f"Only {told}.", helps)
    else:
        yield _fine("disk.free", told)


def _retention(facts: Facts) -> Found:
    free, whole = facts.daemon.disk_free_bytes, facts.daemon.disk_size_bytes
    bounds = ((each.topic.retention_bytes, each.bytes) for each in facts.topics)
    growth = sum(max(bound - kept, 0) for bound, kept in bounds if bound is not None)
    endless = [
        each
        for each in facts.topics
        if each.topic.retention_bytes is None and each.topic.retention_ms is None
    ]
    if growth > free:
        told = f"Retention lets topics grow by {bytes_text(growth)}, and {bytes_text(free)} are"
        helps = "Lower it: dssctl topics edit TOPIC --retention-size"
        yield _attention("disk.retention", f"{told} free.", helps)
    elif endless and free < 2 * DISK_FREE_PART_FEW * whole:
        worst = max(endless, key=lambda each: each.bytes).topic.name
        told = f"{counted(len(endless), 'topic keeps', 'topics keep')} all; {worst} is the largest."
        yield _attention("disk.retention", told, f"dssctl topics edit {worst} --retention 7d")
    else:
        yield _fine("disk.retention", "what retention allows has room")


def _damage(facts: Facts) -> Found:
    quarantined = facts.daemon.quarantined
    if quarantined:
        first = quarantined[0]
        more = f", and {len(quarantined) - 1} more" if len(quarantined) > 1 else ""
        told = f"{first.file} was set aside or damaged: {first.reason.rstrip('.')}{more}."
        yield _problem("log.quarantined", told, "Stop dssd and look: dssd check --deep")
    damage = [event for event in facts.events if event.code in _DAMAGE]
    if damage:
        subject = damage[-1].subject
        look = f"dssctl events --subject {shlex.quote(subject)}"
        yield _problem("log.damage", f"{subject}: {damage[-1].sentence}", look, "dssd check")
    if not quarantined and not damage:
        yield _fine("log.damage", "no file was set aside, no record found damaged today")


def _errors(facts: Facts) -> Found:
    told_elsewhere = _DAMAGE | {kinds.INTERNAL_ERROR.code}
    errors = [
        each
        for each in facts.events
        if each.severity is Severity.ERROR and each.code not in told_elsewhere
    ]
    if errors:
        last, number = errors[-1], max(facts.daemon.errors_in_a_day, len(errors))
        told = f"{counted(number, 'error')} in a day; the last: {last.subject}: {last.sentence}"
        yield _attention("events.errors", told, "dssctl events --since -1d --severity error")
    else:
        yield _fine("events.errors", "no other errors in a day")


def _losses(facts: Facts) -> Found:
    losses = facts.daemon.unread_losses
    for loss in losses:
        took = f"Retention of {loss.topic} took {counted(loss.records, 'record')} unread"
        helps = f"dssctl topics edit {loss.topic} --retention SPAN"
        yield _problem("groups.losing", f"{took} by {loss.group}@{loss.filter}.", helps)
    near = [event for event in facts.events if event.code == kinds.RETENTION_NEAR.code]
    if near:
        helps = "Lengthen the retention, or see why the group is behind: dssctl groups ls"
        told = f"{near[-1].subject}: {near[-1].sentence}"
        yield _attention("groups.retention", told, helps)
    if not losses and not near:
        yield _fine("groups.losing", "retention takes nothing unread")


def _stuck(facts: Facts) -> Found:
    parted = groupby(facts.stuck, lambda each: each.group)
    by_group = [(name, list(of_it)) for name, of_it in parted]
    for name, of_it in by_group[:STUCK_TOLD]:
        found = verdict_of_stuck(of_it)
        told = f"{name}: {found.sentence} ({counted(sum(each.lag for each in of_it), 'record')})"
        helps = found.commands or (f"dssctl groups stuck {shlex.quote(name)}",)
        yield Verdict(found.level, "groups.stuck", told, helps)
    more = len(by_group) - STUCK_TOLD
    if more > 0:
        told = f"{counted(more, 'more group does', 'more groups do')} not move."
        yield _problem("groups.stuck", told, "dssctl groups stuck")
    if not by_group:
        yield _fine("groups.stuck", f"{counted(len(facts.groups), 'group')}, none is stuck")


def _behind(facts: Facts) -> Found:
    behind = [each for each in facts.groups if verdict_of(each).code == BEHIND]
    if behind:
        worst = max(behind, key=lambda each: each.lag)
        lag = counted(worst.lag, "record")
        helps = f"dssctl groups describe {quoted(worst.group)}"
        told = f"{worst.group.full_name} is behind by {lag} and does not catch up."
        yield _attention("groups.behind", told, helps)
    else:
        yield _fine("groups.behind", "groups with members catch up")


def _dead(facts: Facts) -> Found:
    """Groups with dead letters, or without room for more; the newest ones that died in a day."""
    judged = [(each.group.full_name, verdict_of(each)) for each in facts.groups]
    found = [each for each in judged if each[1].code in (DEAD, QUEUES_FULL)]
    died = {each.subject: each for each in facts.events if each.code == kinds.RECORD_DEAD.code}
    for name, verdict in found[:STUCK_TOLD]:
        last = died.get(name)
        ago = text_of_span(facts.age_ms(last.last_at_ms)) if last else ""
        newest = f" The last one {ago} ago: {as_sentence(last.sentence)}" if last else ""
        told = f"{name}: {verdict.sentence}{newest}"
        yield Verdict(verdict.level, "groups.dead", told, verdict.commands)
    more = len(found) - STUCK_TOLD
    if more > 0:
        told = f"{counted(more, 'more group has', 'more groups have')} dead letters."
        yield _attention("groups.dead", told, "dssctl groups ls -o wide --filter 'dead>0'")
    if not found:
        yield _fine("groups.dead", "no group has dead letters")


def _sessions(facts: Facts) -> Found:
    left = [each for each in facts.sessions if not each.connected]
    stale = [each for each in left if facts.age_ms(each.since_ms) > SESSION_STALE_MS]
    if stale:
        oldest = min(stale, key=lambda each: each.since_ms)
        told = f"{counted(len(stale), 'session')} left for long, {oldest.client_id} for"
        helps = f"If it does not come back: dssctl sessions close {oldest.client_id}"
        age = text_of_span(facts.age_ms(oldest.since_ms))
        yield _attention("sessions.stale", f"{told} {age}.", helps)
    else:
        told = f"{counted(len(facts.sessions), 'session')}, none left for long"
        yield _fine("sessions.stale", told)


def _operations(facts: Facts) -> Found:
    ages = [(each, facts.age_ms(each.applied_at_ms)) for each in facts.operations]
    long = [(each, age_ms) for each, age_ms in ages if age_ms > OPERATION_RUNS_MS]
    for each, age_ms in long:
        told = f"Operation {each.number}, {each.kind} of {each.subject}, runs for"
        helps = f"dssctl ops show {each.number}"
        yield _attention("operations.running", f"{told} {text_of_span(age_ms)}.", helps)
    if not long:
        yield _fine("operations.running", "no operation runs for long")


def _schedules(facts: Facts) -> Found:
    bad = [found for each in facts.schedules for found in _schedule(each, facts.now_ms)]
    yield from bad
    if facts.schedules and not bad:
        told = f"{counted(len(facts.schedules), 'schedule')} went well"
        yield _fine("schedules.last-run", told)


def _schedule(view: ScheduleView, now_ms: int) -> Found:
    name, last = view.row.name, view.last
    runs = f"dssctl schedules runs {name}"
    if last is not None and last.state in _RUN_WENT_WRONG:
        told = f"The last run of {name} is {last.state}: {last.failure}"
        yield _problem("schedules.last-run", told, runs)
    if view.state == BROKEN:
        zone = f"the daemon's machine knows no zone {view.row.time_zone}."
        helps = f"Install its tzdata, or dssctl schedules edit {name} --tz ZONE"
        yield _problem("schedules.broken", f"{name} is not run: {zone}", helps)
    late_ms = 0 if view.next_ms is None else now_ms - view.next_ms
    if view.state == IDLE and late_ms > SCHEDULE_OVERDUE_MS:
        told = f"{name} is due since {text_of_span(late_ms)} and does not run."
        yield _attention("schedules.late", told, f"dssctl schedules trigger {name}", runs)


def _jobs(facts: Facts) -> Found:
    goes_on = [job for job in facts.jobs if job.row.ended_at_ms is None]
    bad = False
    for job in goes_on:
        # The daemon knows nothing of a driver that it did not hear since it started.
        known_ms = (job.row.created_at_ms, job.said_at_ms or 0, facts.daemon.started_at_ms)
        silent_ms = facts.age_ms(max(known_ms))
        alone = job.row.state == "active" and not job.driver_lives
        if alone and silent_ms > JOB_UNDRIVEN_MS:
            bad = True
            chunks = f"{job.progress.published} of {job.row.chunks} chunks are published"
            told = f"Nobody drives {job.row.name} for {text_of_span(silent_ms)}; {chunks}."
            yield _problem("jobs.driver", told, f"dssctl jobs drive {shlex.quote(job.row.name)}")
    if goes_on and not bad:
        yield _fine("jobs.driver", f"{counted(len(goes_on), 'job')} under way, none left alone")


OF_ALL: tuple[Rule, ...] = (
    *(_failed, _state, _mistakes, _before, _bounds, _open_files, _certificate, _backup, _disk),
    *(_retention, _damage),
    *(_errors, _losses, _stuck, _behind, _dead, _sessions, _operations, _schedules, _jobs),
)
"""The rules in the order of their findings."""
OF_TOPIC: tuple[Rule, ...] = (_state, _losses, _damage, _errors, _stuck, _behind, _dead)
OF_SESSION: tuple[Rule, ...] = (_stuck,)


def findings_of(facts: Facts, rules: Sequence[Rule] = OF_ALL) -> list[Verdict]:
    """What the rules find."""
    return [found for rule in rules for found in rule(facts)]
