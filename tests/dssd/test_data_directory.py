import errno
import os
from pathlib import Path

import pytest

from dss_core.errors import (
    DataDirectoryLocked,
    DataDirectoryNewer,
    DiskFailed,
    DssError,
    ExitCode,
    IllegalConfig,
    NoRoomToStart,
)
from dssd.data_directory import FORMAT, FORMAT_NAME, DataDirectory


def test_a_new_directory_is_made_for_its_owner_only(tmp_path: Path) -> None:
    with DataDirectory(tmp_path / "state" / "dssd") as directory:
        assert directory.path.stat().st_mode & 0o777 == 0o700
        assert directory.log_path.is_dir()


def test_a_directory_can_be_opened_again_once_it_is_closed(tmp_path: Path) -> None:
    with DataDirectory(tmp_path):
        pass
    with DataDirectory(tmp_path):
        pass


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_directory_is_said_to_be_none(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "data"
    path.touch() if kind == "file" else path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(IllegalConfig, match="it is no directory"):
        DataDirectory(path)


def test_two_daemons_cannot_share_a_directory(tmp_path: Path) -> None:
    with DataDirectory(tmp_path), pytest.raises(DataDirectoryLocked) as refused:
        DataDirectory(tmp_path)
    assert refused.value.exit_code == ExitCode.LOCKED


def test_a_directory_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    marker = tmp_path / FORMAT_NAME
    marker.write_text(f"dssd data directory, format {FORMAT + 1}\n")
    with pytest.raises(DataDirectoryNewer) as refused:
        DataDirectory(tmp_path)
    assert refused.value.exit_code == ExitCode.CONFIG
    assert refused.value.fields["found"] == str(FORMAT + 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [FORMAT_NAME]


@pytest.mark.parametrize("line", ["", "format 1\n", "dssd data directory, format one\n", "\xff"])
def test_a_broken_format_file_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / FORMAT_NAME).write_text(line, encoding="latin-1")
    with pytest.raises(IllegalConfig):
        DataDirectory(tmp_path)


def test_somebodys_directory_never_becomes_a_data_directory(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(IllegalConfig, match="not empty"):
        DataDirectory(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_refused_directory_is_not_left_locked(tmp_path: Path) -> None:
    stranger = tmp_path / "thesis.tex"
    stranger.touch()
    with pytest.raises(IllegalConfig):
        DataDirectory(tmp_path)
    stranger.unlink()
    with DataDirectory(tmp_path):
        pass


def test_a_crash_while_a_directory_is_made_is_made_good(tmp_path: Path) -> None:
    (tmp_path / "LOCK").touch()
    (tmp_path / "FORMAT.new").write_text("dssd da")
    with DataDirectory(tmp_path) as directory:
        assert (directory.path / FORMAT_NAME).read_text().endswith(f"format {FORMAT}\n")


@pytest.mark.parametrize(
    ("error", "told"), [(errno.EIO, DiskFailed), (errno.ENOSPC, NoRoomToStart)]
)
def test_a_disk_that_cannot_take_the_format_is_told_as_that_and_the_directory_is_left_unlocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, told: type[DssError]
) -> None:
    def failing(_: int) -> None:
        raise OSError(error, os.strerror(error))

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", failing)
        with pytest.raises(told) as refused:
            DataDirectory(tmp_path)
    assert refused.value.exit_code == ExitCode.IO_ERROR
    with DataDirectory(tmp_path):
        pass
