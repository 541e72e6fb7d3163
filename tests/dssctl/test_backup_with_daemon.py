"""``dssctl backup`` against a daemon, and on a directory alone."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from dss_core.errors import ExitCode
from support.dssctl_call import Daemon


def numbers(daemon: Daemon, place: str) -> list[int]:
    listed = daemon.dssctl("backup", "ls", place, "-o", "json")
    assert listed.returncode == 0, listed.stderr
    return [each["number"] for each in json.loads(listed.stdout)["items"]]


def test_backups_are_made_listed_and_removed(daemon: Daemon, tmp_path: Path) -> None:
    place = str(tmp_path / "b")
    first = daemon.dssctl("backup", "create", place, "-o", "json")
    assert first.returncode == 0, first.stderr
    made = json.loads(first.stdout)["item"]
    assert (made["number"], made["directory"]) == (1, place)
    assert made["new_bytes"] == made["bytes"] > 0
    assert daemon.dssctl("backup", "create", place, "--rate", "1G").returncode == 0
    assert numbers(daemon, place) == [1, 2]
    removed = daemon.dssctl("backup", "rm", place, "--keep", "1", "-y")
    assert removed.returncode == 0, removed.stderr
    assert numbers(daemon, place) == [2]
    status = daemon.dssctl("daemon", "status", "-o", "json")
    assert json.loads(status.stdout)["item"]["backup_at"]


def test_a_tar_goes_to_stdout_and_nothing_else_does(daemon: Daemon) -> None:
    done = daemon.dssctl("backup", "create", "-")
    assert done.returncode == 0, done.stderr
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        assert {"DSS-BACKUPS", "store.sqlite", "backups/000001.json"} <= set(tar.getnames())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("create", "{tmp}/no/b"), ExitCode.USAGE, b"DSS1181"),
        (("create", "{tmp}/file"), ExitCode.USAGE, b"DSS1181"),
        (("create", "{tmp}/b", "--rate", "7"), ExitCode.USAGE, b"has no unit"),
        (("ls", "{tmp}"), ExitCode.USAGE, b"holds no backups"),
        (("rm", "{tmp}"), ExitCode.USAGE, b"--keep N"),
        (("rm", "{tmp}", "1", "--keep", "1"), ExitCode.USAGE, b"--keep N"),
        (("rm", "{tmp}", "1", "-y"), ExitCode.USAGE, b"holds no backups"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would_work(
    daemon: Daemon, tmp_path: Path, words: tuple[str, ...], code: int, said: bytes
) -> None:
    (tmp_path / "file").write_text("x")
    done = daemon.dssctl("backup", *(each.replace("{tmp}", str(tmp_path)) for each in words))
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_number_that_is_not_there_is_named_with_those_that_are(
    daemon: Daemon, tmp_path: Path
) -> None:
    place = str(tmp_path / "b")
    assert daemon.dssctl("backup", "create", place).returncode == 0
    done = daemon.dssctl("backup", "rm", place, "9", "-y")
    assert done.returncode == ExitCode.NOT_FOUND
    assert b"it has 1" in done.stderr
