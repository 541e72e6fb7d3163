"""What drivers of a job said, as it is read and kept."""

from dataclasses import replace
from pathlib import Path

from dssctl.job_logs import JOB_LOG_BYTES_MAX, DriversLog, begin_log, older
from dssctl.output import Instant
from support.looked_at_job import JOB

FIRST = b'{"at": "2026-11-22T10:00:00.500+00:00", "published": 1, "chunks": 2}\n'
FIRST_US = 1_795_341_600_500_000


def texts(log: DriversLog) -> list[object]:
    return [item["text"] for item in log.items()]


def test_lines_are_told_once_as_they_come_and_one_without_a_time_has_that_before(
    tmp_path: Path,
) -> None:
    path = tmp_path / "again.log"
    log = DriversLog(path)
    assert texts(log) == []
    path.write_bytes(FIRST + b"error DSS7005: another")
    assert list(log.items()) == [
        {"at": Instant(FIRST_US), "by": "driver", "text": "published 1, chunks 2"}
    ]
    with path.open("ab") as file:
        file.write(b" has it\n")
    assert list(log.items()) == [
        {"at": Instant(FIRST_US), "by": "driver", "text": "error DSS7005: another has it"}
    ]
    assert texts(log) == []


def test_a_log_that_is_large_becomes_the_older_half_and_both_are_told(tmp_path: Path) -> None:
    path = tmp_path / "again.log"
    path.write_bytes(b"x" * 99 + b"\n")
    begin_log(path, JOB)
    assert path.exists()
    path.write_bytes(b"before\n" * (JOB_LOG_BYTES_MAX // 7 + 1))
    begin_log(path, JOB)
    assert not path.exists()
    path.write_bytes(b"behind\n")
    told = texts(DriversLog(path))
    assert (told[0], told[-1]) == ("before", "behind")
    begin_log(path, JOB)
    assert older(path).exists()


def test_a_job_begins_with_nothing_of_one_that_had_its_name(tmp_path: Path) -> None:
    path = tmp_path / "again.log"
    path.write_bytes(b"of another\n")
    older(path).write_bytes(b"of another\n")
    begin_log(path, replace(JOB, epoch=0))
    assert texts(DriversLog(path)) == []


def test_a_log_that_was_begun_anew_is_told_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "again.log"
    path.write_bytes(b"one\ntwo\n")
    log = DriversLog(path)
    assert texts(log) == ["one", "two"]
    path.write_bytes(b"new\n")
    assert texts(log) == ["new"]
