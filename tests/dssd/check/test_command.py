"""``dssd check`` on directories that are whole, damaged, in use, or no data directory."""

import errno
import io
import json
import os
import re
import shutil
import sqlite3
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import pytest

from dss_api.v1 import topics_pb2
from dss_core.errors import ExitCode
from dss_core.frame import HEADER_BYTES as FRAME_HEADER_BYTES
from dss_core.frame import headers_of
from dssd.__main__ import main
from dssd.check.command import _shown
from dssd.data_directory import FORMAT, FORMAT_NAME, STORE_NAME
from dssd.lock import DirectoryLock
from dssd.log.segment.file import HEADER_BYTES
from dssd.store import integrity
from dssd.store.rows import GroupRow, ProgressRow
from support.daemon_process import running
from support.raw_stubs import connected
from support.raw_topic import RawTopic
from support.segment_bytes import flip

Capture = pytest.CaptureFixture[str]


def check(directory: Path, *arguments: str) -> int:
    return main(["check", "--data-dir", str(directory), *arguments])


def contents(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


def segments(directory: Path) -> list[Path]:
    return sorted((directory / "log").glob("*.seg"))


def records(directory: Path) -> int:
    """How many records the frames of all files have, by their headers."""
    contents = (path.read_bytes()[HEADER_BYTES:] for path in segments(directory))
    return sum(header.records for content in contents for _, header in headers_of(content))


def within_a_frame() -> int:
    """A position in the payload of a segment's first frame."""
    return HEADER_BYTES + FRAME_HEADER_BYTES + 5_000


def change(directory: Path, sql: str, *values: object, table: str = "sequences") -> None:
    """Change the store as a faulty daemon would: the checksums of the table are right."""
    connection = sqlite3.connect(directory / STORE_NAME)
    with connection:
        connection.execute(sql, values)
        integrity.fill(connection, table)
        integrity.unseal(connection)
    connection.close()


def insert(directory: Path, table: str, **row: object) -> None:
    columns, places = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
    sql = f'INSERT INTO "{table}" ({columns}, "checksum") VALUES ({places}, 0)'
    change(directory, sql, *row.values(), table=table)


# Whole ones


@pytest.mark.parametrize("ending", ["stopped", "killed"])
@pytest.mark.parametrize("deep", [(), ("--deep",)])
def test_what_a_daemon_leaves_is_whole_however_it_ended_and_a_check_changes_nothing(
    stopped: Path, killed: Path, ending: str, deep: tuple[str, ...], capsys: Capture
) -> None:
    directory = {"stopped": stopped, "killed": killed}[ending]
    before = contents(directory)
    assert check(directory, *deep) == ExitCode.OK
    said = capsys.readouterr()
    assert "damage" not in said.out
    counted = f"checked 1 topic, {len(segments(directory))} segments, {records(directory)} records"
    assert said.err.startswith(f"{counted}: all is whole, ")
    assert ("--deep" in said.err) is not bool(deep)
    assert contents(directory) == before


def test_the_json_document_has_the_same_findings(killed: Path, capsys: Capture) -> None:
    assert check(killed, "--deep", "-o", "json") == ExitCode.OK
    said = capsys.readouterr()
    assert said.err == ""
    document = json.loads(said.out)
    assert (document["apiVersion"], document["kind"]) == ("dssd/v1", "Check")
    item = document["item"]
    assert (item["damaged"], item["topics"], item["records"]) == (False, 1, records(killed))
    assert item["segments"] == len(segments(killed))
    assert item["bytesRead"] == sum(path.stat().st_size for path in segments(killed))
    assert {finding["weight"] for finding in item["findings"]} == {"note"}
    assert f"log/{segments(killed)[-1].name}" in {each["where"] for each in item["findings"]}


def test_a_torn_tail_is_noted_and_no_damage(killed: Path, capsys: Capture) -> None:
    with segments(killed)[-1].open("ab") as file:
        file.write(RawTopic("orders", 1).frame(b"never acknowledged")[:-5])
    assert check(killed) == ExitCode.OK
    assert "a torn tail of " in capsys.readouterr().out


def test_a_bad_newest_frame_of_full_length_is_damage(killed: Path, capsys: Capture) -> None:
    newest = segments(killed)[-1]
    flip(newest, newest.stat().st_size - 1)
    assert check(killed) == ExitCode.FAILED
    assert re.search(r"damage: log/.*seg: bytes \d+\.\.\d+ are no whole", capsys.readouterr().out)


def test_what_an_earlier_start_set_aside_is_listed(stopped: Path, capsys: Capture) -> None:
    folder = stopped / "log" / "quarantine"
    folder.mkdir()
    (folder / "old.seg").write_bytes(b"12345")
    assert check(stopped) == ExitCode.OK
    said = capsys.readouterr().out
    assert said == "note: log/quarantine/old.seg: set aside by an earlier start, 5 bytes\n"


def test_offsets_that_a_loss_of_power_left_out_are_noted_and_no_damage(
    stopped: Path, capsys: Capture
) -> None:
    store = sqlite3.connect(stopped / STORE_NAME)
    ((topic,),) = store.execute("SELECT storage_topic_id FROM storage_topics").fetchall()
    store.close()
    row = {"storage_topic_id": topic, "partition": 1, "ceiling": 5_000, "version": 1}
    insert(stopped, "ceilings", **row)
    assert check(stopped) == ExitCode.OK
    said = capsys.readouterr().out
    assert re.search(r"note: orders/0/1: the offsets \d+\.\.5000 are left out: ", said)


# Damaged segments


def test_a_flipped_bit_in_a_sealed_segment_is_found_by_a_deep_check(
    stopped: Path, capsys: Capture
) -> None:
    sealed = segments(stopped)[0]
    flip(sealed, within_a_frame())
    assert check(stopped) == ExitCode.OK
    capsys.readouterr()
    assert check(stopped, "--deep") == ExitCode.FAILED
    said = capsys.readouterr()
    assert f"damage: log/{sealed.name}: bytes {HEADER_BYTES}.." in said.out
    assert " are no whole frame" in said.out
    assert "damaged place" in said.err


def test_a_flipped_bit_in_an_active_segment_is_found_by_any_check(
    killed: Path, capsys: Capture
) -> None:
    active = segments(killed)[-1]
    flip(active, within_a_frame())
    assert check(killed) == ExitCode.FAILED
    assert f"damage: log/{active.name}: bytes {HEADER_BYTES}.." in capsys.readouterr().out


def test_a_flipped_bit_in_a_header_is_found_by_any_check(stopped: Path, capsys: Capture) -> None:
    sealed = segments(stopped)[0]
    flip(sealed, 20)
    assert check(stopped) == ExitCode.FAILED
    assert f"damage: log/{sealed.name}: its header: " in capsys.readouterr().out


@pytest.mark.parametrize("number", [0, -1])
def test_a_file_that_was_cut_or_is_gone_is_damage(
    stopped: Path, capsys: Capture, number: int
) -> None:
    path = segments(stopped)[number]
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    assert check(stopped) == ExitCode.FAILED
    assert f"damage: log/{path.name}: it has {len(content) - 10} bytes" in capsys.readouterr().out
    path.unlink()
    assert check(stopped) == ExitCode.FAILED
    assert f"damage: log/{path.name}: the file is missing" in capsys.readouterr().out


@pytest.mark.parametrize("harm", ["missing", "flipped"])
def test_a_lost_index_is_no_damage_because_it_can_be_rebuilt(
    stopped: Path, capsys: Capture, harm: str
) -> None:
    index = segments(stopped)[0].with_suffix(".idx")
    if harm == "missing":
        index.unlink()
    else:
        flip(index, 50)
    assert check(stopped) == ExitCode.OK
    said = capsys.readouterr()
    assert f"note: log/{index.name}: " in said.out
    assert f"{records(stopped)} records: all is whole" in said.err


def test_damaged_marks_are_no_damage_and_stray_marks_are_noted(
    stopped: Path, capsys: Capture
) -> None:
    (marks,) = (stopped / "log").glob("*.marks")
    flip(marks, 50)
    stray = marks.with_name(f"{0x63:08x}-{0x63:016x}.marks")
    stray.write_bytes(b"whatever")
    assert check(stopped) == ExitCode.OK
    said = capsys.readouterr()
    assert f"note: log/{stray.name}: it belongs to no segment" in said.out
    assert f"{records(stopped)} records: all is whole" in said.err


async def test_frames_that_a_start_moved_to_another_file_are_not_counted_twice(
    stopped: Path, capsys: Capture
) -> None:
    arguments = ("--data-dir", str(stopped), "--listen", f"unix:{stopped}/s")
    async with running(*arguments) as daemon, connected(daemon.endpoint) as stubs:
        asked = topics_pb2.DescribeTopicRequest(name="orders")
        epoch = (await stubs.topics.Describe(asked)).topic_epoch
        await RawTopic("orders", epoch).put(stubs, b"above the watermark")
        await daemon.kill()
    expected = records(stopped)
    async with running(*arguments) as daemon:
        assert await daemon.stop() == 0
    assert records(stopped) == expected + 1, "the tail is in two files"
    for index in (stopped / "log").glob("*.idx"):
        index.unlink()
    assert check(stopped) == ExitCode.OK
    said = capsys.readouterr()
    assert "damage" not in said.out
    assert f"{expected} records: all is whole" in said.err


def test_a_segment_without_a_row_and_the_records_that_nobody_can_find_are_damage(
    stopped: Path, capsys: Capture
) -> None:
    second = segments(stopped)[1]
    change(stopped, f"DELETE FROM segments WHERE segment_id = {int(second.stem[9:], 16)}")
    assert check(stopped) == ExitCode.FAILED
    said = capsys.readouterr().out
    assert f"damage: log/{second.name}: no row names it" in said
    assert re.search(r"damage: orders/0/0: the records \d+\.\.\d+ cannot be read", said)


def test_a_row_that_promises_more_than_there_is_is_damage(stopped: Path, capsys: Capture) -> None:
    change(stopped, "UPDATE storage_topics SET ends = '99,0'", table="storage_topics")
    assert check(stopped) == ExitCode.FAILED
    said = capsys.readouterr().out
    assert said == f"damage: orders/0/0: it was sealed at 99, but ends at {records(stopped)}\n"


# The store


def test_progress_beyond_the_log_is_damage(stopped: Path, capsys: Capture) -> None:
    storage_topic_id = int(segments(stopped)[0].name[:8], 16)
    group = GroupRow(7, "team", "orders/#", "shared", "earliest", None, 1, 1, 0)
    insert(stopped, "groups", **asdict(group), version=1)
    for partition, floor in ((0, records(stopped)), (1, 1)):
        row = ProgressRow(7, storage_topic_id, partition, floor, b"", 0, b"", False, 0)
        insert(stopped, "progress", **asdict(row), version=1)
    assert check(stopped) == ExitCode.FAILED
    said = capsys.readouterr().out
    what = "it has consumed orders/0/1 up to 1; the log ends at 0"
    assert said == f"damage: team@orders/#: {what}\n"


def test_a_damaged_store_is_damage_and_says_where(stopped: Path, capsys: Capture) -> None:
    path = stopped / STORE_NAME
    content = bytearray(path.read_bytes())
    content[4_096 : 4_096 * 8] = b"\xff" * 4_096 * 7
    path.write_bytes(content)
    assert check(stopped) == ExitCode.FAILED
    assert f"damage: {STORE_NAME}: " in capsys.readouterr().out


def test_a_value_of_the_store_that_is_not_what_was_written_is_damage(
    stopped: Path, capsys: Capture
) -> None:
    change(stopped, "UPDATE topics SET created_at_ms = created_at_ms + 1")
    assert check(stopped) == ExitCode.FAILED
    what = "the row (1) of table topics is not as it was written"
    assert capsys.readouterr().out == f"damage: {STORE_NAME}: {what}\n"


def test_a_row_that_vanished_from_the_store_is_damage(stopped: Path, capsys: Capture) -> None:
    path = stopped / STORE_NAME
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM topic_names")
    connection.close()
    assert check(stopped) == ExitCode.FAILED
    what = "its rows are not those that were there when it was closed"
    assert capsys.readouterr().out == f"damage: {STORE_NAME}: {what}\n"


def test_a_damaged_write_ahead_log_is_damage(killed: Path, capsys: Capture) -> None:
    log = killed / f"{STORE_NAME}-wal"
    flip(log, 32 + 24 + 100)
    assert check(killed) == ExitCode.FAILED
    assert f"damage: {log.name}: " in capsys.readouterr().out


def test_invalid_text_in_the_store_is_damage(stopped: Path, capsys: Capture) -> None:
    change(stopped, "UPDATE topics SET name = CAST(x'ff' AS TEXT)")
    assert check(stopped) == ExitCode.FAILED
    assert f"damage: {STORE_NAME}: OperationalError: Could not decode" in capsys.readouterr().out


def test_records_without_a_store_are_damage(stopped: Path, capsys: Capture) -> None:
    (stopped / STORE_NAME).unlink()
    assert check(stopped) == ExitCode.FAILED
    assert "it is missing, and the log has records" in capsys.readouterr().out


# Directories that cannot be checked


def test_a_directory_in_use_is_refused(stopped: Path, capsys: Capture) -> None:
    with DirectoryLock(stopped):
        assert check(stopped) == ExitCode.LOCKED
    assert "DSS5005" in capsys.readouterr().err


def test_a_directory_of_a_newer_version_is_refused(stopped: Path, capsys: Capture) -> None:
    change(stopped, "PRAGMA user_version = 999")
    assert check(stopped) == ExitCode.CONFIG
    (stopped / FORMAT_NAME).write_text(f"dssd data directory, format {FORMAT + 1}\n")
    assert check(stopped) == ExitCode.CONFIG
    assert capsys.readouterr().err.count("DSS5006") == 2


def test_a_directory_that_is_no_data_directory_is_refused_and_left_unchanged(
    tmp_path: Path, capsys: Capture
) -> None:
    for directory in (tmp_path, tmp_path / "nowhere"):
        assert check(directory) == ExitCode.CONFIG
        assert "no daemon has used it" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_copied_is_reported_as_a_failed_disk(
    killed: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfile", full)
    assert check(killed) == ExitCode.IO_ERROR
    assert "DSS5007" in capsys.readouterr().err


# For people


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_deep_check_shows_how_far_it_is_on_a_terminal_only() -> None:
    for deep, terminal in ((True, Terminal()), (False, Terminal()), (True, io.StringIO())):
        with _shown(deep, terminal) as (begun, advanced):
            begun(100)
            advanced(50)
        shown = terminal.getvalue()
        assert ("50/100" in shown) is (deep and terminal.isatty()), shown
