"""What the daemon makes of what it knows of itself."""

from dataclasses import replace

import pytest

from dss_core.answers import Held, Quarantined, Reason, UnreadLoss
from dss_core.errors import DiskFull
from dssd.events.kinds import (
    INTERNAL_ERROR,
    RECORDS_PASSED,
    RETENTION_LOST,
    RETENTION_NEAR,
)
from dssd.events.model import EventKind, KeptEvent, Severity
from dssd.jobs.held_job import JobView
from dssd.questions.finding_rules import ENDED_BADLY_TOLD_MS, Facts, findings_of
from dssd.questions.stuck import Stuck
from dssd.questions.verdicts import Level, Verdict
from dssd.schedules.views import ScheduleView
from dssd.sessions.listing import SessionView
from dssd.store.job_rows import JobProgressRow, JobRow
from dssd.store.schedule_rows import ScheduleRow, ScheduleRunRow
from support.daemon_facts import DAEMON, NOW_MS
from support.overviews import DONE

WELL = Facts(DAEMON)
FAILED = replace(DONE, dead=3)
ALONE = Reason("no-members", "Nobody is there.", "dssctl consume x")
PAUSED = Reason("paused", "It is paused.", "dssctl groups resume x")
AWAY = SessionView("c", b"", False, NOW_MS - 2 * 3_600_000, 86_400, 1, 1, "p", "")


def daemon(**others: object) -> Facts:
    return Facts(replace(DAEMON, **others))  # type: ignore[arg-type]


def certificate(days_left: int) -> dict[str, object]:
    """What a daemon with TLS has beside its other facts."""
    ends_ms = NOW_MS + days_left * 24 * 3_600_000
    return {"certificate": "/c.pem", "certificate_ends_ms": ends_ms, "certificate_problem": ""}


def told(kind: EventKind) -> Facts:
    event = KeptEvent(1, NOW_MS, kind.code, kind.severity, "orders/0/1", "It is so.", {}, 1, NOW_MS)
    return Facts(DAEMON, events=(event,))


def stuck(count: int, reason: Reason = ALONE) -> Facts:
    groups = (f"billing{number}@orders/#" for number in range(count))
    return Facts(DAEMON, stuck=[Stuck(group, "", reason, 3, None) for group in groups])


def trouble(facts: Facts) -> list[Verdict]:
    return [each for each in findings_of(facts) if each.level is not Level.HEALTHY]


def test_where_all_is_well_each_rule_says_so() -> None:
    found = findings_of(WELL)
    assert trouble(WELL) == []
    assert len({each.code for each in found}) == len(found) >= 12
    assert not any(each.commands for each in found)


@pytest.mark.parametrize(
    ("facts", "code", "level"),
    [
        (daemon(state="read-only"), "daemon.state", "problem"),
        (daemon(held=Held(4_000, 4_096, 0, 1, 0, 1)), "daemon.bounds", "attention"),
        (daemon(open_files_max=1_024), "daemon.open-files", "attention"),
        (daemon(**certificate(13)), "daemon.certificate", "attention"),
        (daemon(**certificate(1)), "daemon.certificate", "problem"),
        (daemon(**certificate(-1)), "daemon.certificate", "problem"),
        (
            daemon(**certificate(80) | {"certificate_problem": "no key"}),
            "daemon.certificate",
            "problem",
        ),
        (daemon(backup_at_ms=NOW_MS - 8 * 24 * 3_600_000), "daemon.backup", "attention"),
        (daemon(principals_suspended=2), "access.suspended", "attention"),
        (daemon(disk_free_bytes=5 << 30), "disk.free", "attention"),
        (daemon(disk_free_bytes=1 << 30), "disk.free", "problem"),
        (daemon(quarantined=(Quarantined("f", "bad"),)), "log.quarantined", "problem"),
        (
            daemon(unread_losses=(UnreadLoss("t", "g", "#", 1, True, 0),)),
            "groups.losing",
            "problem",
        ),
        (told(RECORDS_PASSED), "log.damage", "problem"),
        (told(RETENTION_NEAR), "groups.retention", "attention"),
        (told(RETENTION_LOST), "events.errors", "attention"),
        (told(INTERNAL_ERROR), "daemon.internal-errors", "problem"),
        (stuck(1), "groups.stuck", "problem"),
        (stuck(1, PAUSED), "groups.stuck", "attention"),
        (Facts(DAEMON, sessions=(AWAY,)), "sessions.stale", "attention"),
        (Facts(DAEMON, failed={"events": DiskFull()}), "daemon.answers", "problem"),
    ],
)
def test_a_trouble_is_found_with_what_helps(facts: Facts, code: str, level: str) -> None:
    (found,) = trouble(facts)
    assert (found.code, found.level) == (code, level)
    assert found.commands


def test_of_many_that_are_stuck_a_few_are_named_and_the_others_counted() -> None:
    found = trouble(stuck(9))
    assert len(found) == 6
    assert found[-1].sentence == "4 more groups do not move."


def test_streams_of_one_group_that_do_not_move_are_one_finding() -> None:
    each = Stuck("billing@orders/#", "orders/0/1", ALONE, 3, None)
    (found,) = trouble(Facts(DAEMON, stuck=(each, each)))
    said = "orders/0/1: Nobody is there. So stands 1 more stream."
    assert found.sentence == f"billing@orders/#: {said} (6 records)"


def test_a_group_with_dead_letters_is_named_with_the_last_one() -> None:
    event = KeptEvent(
        1, NOW_MS, "record.dead", Severity.WARNING, FAILED.group.full_name, "It is.", {}, 1,
        NOW_MS - 60_000,
    )  # fmt: skip
    (found,) = trouble(Facts(DAEMON, groups=(FAILED, DONE), events=(event,)))
    assert found.sentence == "billing@orders/#: 3 records are dead. The last one 1m00s ago: It is."
    assert found.commands == ("dssctl dlq describe 'billing@orders/#'",)
    full = replace(FAILED, fullest=3, group=replace(FAILED.group, queue_records=3))
    (found, *others) = trouble(Facts(DAEMON, groups=(full,) * 7))
    assert (found.level, found.code) == (Level.PROBLEM, "groups.dead")
    assert others[-1].sentence == "2 more groups have dead letters."


def test_a_job_that_nobody_drives_for_long_is_named() -> None:
    row = JobRow(
        *(1, "again", "replay", "local", "active", "{}", 0, 0, 0, 8, 0, NOW_MS - 3_600_000),
        *(None, "", 1),
    )
    alone = JobView(row, JobProgressRow(1, 3, 0, 0, 1, "d"), False, "", None)

    def job(**others: object) -> JobView:
        return alone._replace(row=replace(row, **others))  # type: ignore[arg-type]

    jobs = (
        alone,
        job(name="silent")._replace(said_at_ms=NOW_MS - 600_000),
        job(name="just now")._replace(said_at_ms=NOW_MS - 20_000),
        job(name="paused", state="paused"),
        job(name="over", state="done", ended_at_ms=NOW_MS),
        job(name="driven")._replace(driver_lives=True),
    )
    found = trouble(Facts(DAEMON, jobs=jobs))
    assert [each.level for each in found] == [Level.PROBLEM] * 2
    assert [each.commands[0] for each in found] == [
        "dssctl jobs drive again",
        "dssctl jobs drive silent",
    ]
    assert "3 of 8 chunks" in found[0].sentence
    new = replace(DAEMON, started_at_ms=NOW_MS - 1_000)
    assert trouble(Facts(new, jobs=jobs)) == []


def test_a_schedule_whose_last_run_went_wrong_or_that_is_late_is_named() -> None:
    run = ScheduleRunRow(
        3, 1, NOW_MS, "cron", "failed", 1, NOW_MS, NOW_MS, None, 0, "", "No room.", 1
    )
    row = ScheduleRow(
        *("scrub", 3, "scrub", "{}", "0 3 * * *", "UTC", 0, "skip", 0, 0, 0, 0, False, 0, 1)
    )
    view = ScheduleView(row, "idle", NOW_MS - 3_600_000, (), run)
    well = replace(view, next_ms=None, last=None)
    failed, late = trouble(Facts(DAEMON, schedules=(view, well)))
    assert (failed.code, failed.level) == ("schedules.last-run", "problem")
    assert failed.sentence == "The last run of scrub is failed: No room."
    assert (late.code, late.level) == ("schedules.late", "attention")
    nowhere = replace(well, state="broken", row=replace(row, time_zone="X/Y"))
    (broken,) = trouble(Facts(DAEMON, schedules=(nowhere,)))
    assert (broken.code, broken.level) == ("schedules.broken", "problem")


@pytest.mark.parametrize(
    ("before", "up_ms", "level"),
    [
        ("stopped", 1, Level.HEALTHY),
        ("killed", 1, Level.ATTENTION),
        ("crashed", 1, Level.ATTENTION),
        ("crashed", ENDED_BADLY_TOLD_MS, Level.HEALTHY),
    ],
)
def test_a_daemon_that_ended_badly_is_told_of_for_a_day(
    before: str, up_ms: int, level: Level
) -> None:
    reason = "exit 70, KeyError: 'x'" if before == "crashed" else ""
    facts = daemon(before=before, before_reason=reason, started_at_ms=NOW_MS - up_ms)
    (found,) = (each for each in findings_of(facts) if each.code == "daemon.before")
    assert found.level is level
    assert reason in found.sentence
