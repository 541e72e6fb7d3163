"""What the doctor finds by itself, and what it takes from the daemon."""

from dataclasses import replace

import pytest

from dss_api.v1 import daemon_pb2
from dss_client import DaemonStatus, Held, Verdict
from dss_core.errors import Unreachable
from dssctl import VERSION
from dssctl.doctor.facts import Facts
from dssctl.doctor.finding import Finding, Level
from dssctl.doctor.local_findings import findings_of
from support.blank_values import blank

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


def facts(status: DaemonStatus | None = STATUS) -> Facts:
    return Facts(endpoint="h:1", status=status, now_us=NOW_US)


def trouble(given: Facts) -> list[Finding]:
    return [each for each in findings_of(given) if each.level is not Level.OK]


@pytest.mark.parametrize(
    ("status", "check"),
    [
        (replace(STATUS, version="0.0.1"), "daemon.version"),
        (replace(STATUS, now_us=NOW_US - 5_000_000), "daemon.clock"),
    ],
)
def test_another_version_and_another_time_are_found_with_what_helps(
    status: DaemonStatus, check: str
) -> None:
    assert trouble(facts()) == []
    (found,) = trouble(facts(status))
    assert (found.check, found.level) == (check, Level.WARNING)
    assert found.remedy


@pytest.mark.parametrize(
    ("level", "told"),
    [("healthy", Level.OK), ("attention", Level.WARNING), ("problem", Level.PROBLEM)],
)
def test_what_the_daemon_found_is_told_as_it_says(level: str, told: Level) -> None:
    given = facts()
    given.found = (Verdict(level, "disk.free", "Only little.", ("make room", "or less")),)
    found = findings_of(given)[-1]
    assert found == Finding("disk.free", told, "Only little.", "make room; or less")


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
    given.failed = Unreachable(endpoint="e")
    (found,) = trouble(given)
    assert found.check == "daemon.answers"
    assert found.text.startswith("findings could not be asked for: DSS")
