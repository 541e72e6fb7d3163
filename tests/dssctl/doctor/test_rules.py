"""What the doctor makes of facts."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from dss_api.v1 import daemon_pb2
from dss_client import (
    DaemonStatus,
    Event,
    Held,
    Quarantined,
    Schedule,
    ScheduleRun,
    SessionSummary,
    Stuck,
    UnreadLoss,
)
from dss_client.answers import Reason
from dss_core.errors import Unreachable
from dssctl import VERSION
from dssctl.doctor.facts import Facts
from dssctl.doctor.finding import Finding, Level
from dssctl.doctor.rules import findings_of
from dssctl.limits import ENDED_BADLY_TOLD_MS
from support.blank_values import blank
from support.looked_at_job import JOB

NOW_US = 1_800_000_000_000_000
NOW_MS = NOW_US // 1_000
STATUS = blank(
    DaemonStatus,
    daemon_pb2.DaemonStatus,
    version=VERSION,
    pid=7,
    started_at_ms=NOW_MS - 3_600_000,
    data_dir="/d",
    listening=("unix:/d/s",),
    state="serving",
    topics=1,
    streams=1,
    groups=1,
    sessions=1,
    disk_free_bytes=50 << 30,
    sqlite_version="3",
    boot_id="b",
    held=Held(7, 4_096, 5, 4_096, 3 << 20, 256 << 20),
    now_us=NOW_US,
    disk_size_bytes=100 << 30,
    open_files=30,
    open_files_max=65_536,
    sessions_max=65_536,
    producers=2,
    producers_max=187_500,
)
REASON = Reason("no-members", "Nobody is there.", "dssctl consume x", "", None, None, 0, None)
AWAY = SessionSummary("c", "detached", NOW_MS - 2 * 3_600_000, 86_400, 1, 1, "p", "")


def facts(status: DaemonStatus | None = STATUS) -> Facts:
    return Facts(endpoint="h:1", status=status, now_us=NOW_US)


def event(code: str, severity: str = "error") -> Event:
    return Event(
        number=1,
        at_ms=NOW_MS,
        severity=severity,
        code=code,
        subject="orders/0/1",
        sentence="It is so.",
        fields={},
        times=1,
        last_at_ms=NOW_MS,
    )


def with_events(*events: Event) -> Facts:
    given = facts()
    given.events = events
    return given


def with_stuck(count: int, level: str = "problem") -> Facts:
    given = facts()
    given.stuck = (Stuck("billing@orders/#", "", REASON, 3, None, level),) * count
    return given


def with_session() -> Facts:
    given = facts()
    given.sessions = (AWAY,)
    return given


def trouble(given: Facts) -> list[Finding]:
    return [each for each in findings_of(given) if each.level is not Level.OK]


def test_where_all_is_well_each_rule_says_so() -> None:
    found = findings_of(facts())
    assert trouble(facts()) == []
    assert len({each.check for each in found}) == len(found) >= 15
    assert not any(each.remedy for each in found)


@pytest.mark.parametrize(
    ("given", "check", "level"),
    [
        (lambda: facts(replace(STATUS, state="read-only")), "daemon.state", "problem"),
        (lambda: facts(replace(STATUS, version="0.0.1")), "daemon.version", "warning"),
        (lambda: facts(replace(STATUS, now_us=NOW_US - 5_000_000)), "daemon.clock", "warning"),
        (
            lambda: facts(replace(STATUS, held=Held(4_000, 4_096, 0, 1, 0, 1))),
            "daemon.bounds",
            "warning",
        ),
        (lambda: facts(replace(STATUS, open_files_max=1_024)), "daemon.open-files", "warning"),
        (lambda: facts(replace(STATUS, disk_free_bytes=5 << 30)), "disk.free", "warning"),
        (lambda: facts(replace(STATUS, disk_free_bytes=1 << 30)), "disk.free", "problem"),
        (
            lambda: facts(replace(STATUS, quarantined=(Quarantined("f", "bad"),))),
            "log.quarantined",
            "problem",
        ),
        (
            lambda: facts(replace(STATUS, unread_losses=(UnreadLoss("t", "g", "#", 1, True, 0),))),
            "groups.losing",
            "problem",
        ),
        (lambda: with_events(event("records.passed")), "log.damage", "problem"),
        (lambda: with_events(event("retention.near", "warning")), "groups.retention", "warning"),
        (lambda: with_events(event("retention.lost")), "events.errors", "warning"),
        (lambda: with_events(event("internal.error")), "daemon.internal-errors", "problem"),
        (lambda: with_stuck(1), "groups.stuck", "problem"),
        (lambda: with_stuck(1, level="attention"), "groups.stuck", "warning"),
        (with_session, "sessions.stale", "warning"),
    ],
)
def test_a_trouble_is_found_with_what_helps(
    given: Callable[[], Facts], check: str, level: str
) -> None:
    (found,) = trouble(given())
    assert (found.check, found.level.value) == (check, level)
    assert found.remedy


def test_of_many_that_are_stuck_a_few_are_named_and_the_others_counted() -> None:
    found = trouble(with_stuck(9))
    assert len(found) == 6
    assert found[-1].text == "4 more do not move."


def test_a_daemon_that_does_not_answer_ends_the_list_there() -> None:
    given = Facts(endpoint="unix:/nowhere/s", socket="there is no socket /nowhere/s")
    given.unreachable = Unreachable(endpoint="unix:/nowhere/s")
    found = findings_of(given)
    assert [each.check for each in found] == [
        "client.version", "client.socket", "daemon.reachable",
    ]  # fmt: skip
    assert [each.level for each in found[1:]] == [Level.PROBLEM, Level.PROBLEM]


def test_a_question_that_failed_is_a_finding_of_its_own() -> None:
    given = facts()
    given.failed = {"groups": Unreachable(endpoint="e")}
    (found,) = trouble(given)
    assert found.check == "daemon.answers"
    assert found.text.startswith("groups could not be asked for: DSS")


def test_a_job_that_nobody_drives_for_long_is_named() -> None:
    alone = replace(JOB, driver_lives=False, created_at_ms=NOW_MS - 3_600_000)
    found = facts()
    found.jobs = (
        alone,
        replace(alone, name="silent", said_at_ms=NOW_MS - 600_000),
        replace(alone, name="just now", said_at_ms=NOW_MS - 20_000),
        replace(alone, name="paused", state="paused"),
        replace(alone, name="over", state="done", ended_at_ms=NOW_MS),
        replace(alone, name="driven", driver_lives=True),
    )
    named = [each for each in findings_of(found) if each.check == "jobs.driver"]
    assert [each.level for each in named] == [Level.PROBLEM] * 2
    assert [each.remedy for each in named] == [
        "dssctl jobs drive again",
        "dssctl jobs drive silent",
    ]
    assert "3 of 8 chunks" in named[0].text
    assert found.status is not None
    found.status = replace(found.status, started_at_ms=NOW_MS - 1_000)
    [fine] = [each for each in findings_of(found) if each.check == "jobs.driver"]
    assert fine.level is Level.OK


def test_a_schedule_whose_last_run_went_wrong_or_that_is_late_is_named() -> None:
    run = ScheduleRun(3, NOW_MS, "cron", "failed", 1, NOW_MS, NOW_MS, None, 0, "", "No room.", 1)
    schedule = Schedule(
        *("scrub", "scrub", {}, "0 3 * * *", "UTC", 0, "skip", 0, 0, 0, 0, False, 0, 1),
        *("idle", NOW_MS - 3_600_000, (), run),
    )
    given = facts()
    given.schedules = (schedule, replace(schedule, name="fine", next_at_ms=None, last=None))
    failed, late = trouble(given)
    assert (failed.check, failed.level.value) == ("schedules.last-run", "problem")
    assert failed.text == "The last run of scrub is failed: No room."
    assert (late.check, late.level.value) == ("schedules.late", "warning")
    given.schedules = (replace(schedule, state="broken", time_zone="X/Y", last=None),)
    (broken,) = trouble(given)
    assert (broken.check, broken.level.value) == ("schedules.broken", "problem")


@pytest.mark.parametrize(
    ("before", "up_ms", "level"),
    [
        ("stopped", 1, Level.OK),
        ("killed", 1, Level.WARNING),
        ("crashed", 1, Level.WARNING),
        ("crashed", ENDED_BADLY_TOLD_MS, Level.OK),
    ],
)
def test_a_daemon_that_ended_badly_is_told_of_for_a_day(
    before: str, up_ms: int, level: Level
) -> None:
    reason = "exit 70, KeyError: 'x'" if before == "crashed" else ""
    started_ms = NOW_MS - up_ms
    status = replace(STATUS, before=before, before_reason=reason, started_at_ms=started_ms)
    [finding] = [
        each for each in findings_of(facts(status=status)) if each.check == "daemon.before"
    ]
    assert finding.level is level
    assert reason in finding.text
