"""Where a backup is written to: directories that have files already, and tars."""

import io
import tarfile
from pathlib import Path

import pytest

from dss_core.backups.directory import BackupDirectory, checked_pieces
from dss_core.backups.targets import DirectoryTarget, TarTarget
from support.backed_up import FILES, INCARNATION, SEGMENT, backed_up, written


def test_sealed_files_of_the_same_data_need_not_come_again(tmp_path: Path) -> None:
    backed_up(tmp_path)
    with BackupDirectory.opened(tmp_path) as opened:
        target = DirectoryTarget(opened)
        assert target.incarnation == INCARNATION
        assert set(target.held) == {f"{SEGMENT}.seg", f"{SEGMENT}.idx"}


def test_a_file_that_is_gone_or_cut_is_not_held(tmp_path: Path) -> None:
    made = backed_up(tmp_path)
    source = BackupDirectory.existing(tmp_path)
    for file in made.files:
        path = source.path_of(file)
        path.write_bytes(path.read_bytes()[:-1])
    with BackupDirectory.opened(tmp_path) as opened:
        assert not DirectoryTarget(opened).held


def test_what_is_unpacked_of_a_tar_is_a_directory_of_backups(tmp_path: Path) -> None:
    tar = io.BytesIO()
    made = written(TarTarget(tar))
    tar.seek(0)
    with tarfile.open(fileobj=tar) as opened:
        opened.extractall(tmp_path, filter="data")
    source = BackupDirectory.existing(tmp_path)
    assert source.manifests() == [made]
    assert {
        each.name: b"".join(checked_pieces(source.path_of(each), each)) for each in made.files
    } == FILES
    assert backed_up(tmp_path).number == 2
    with BackupDirectory.opened(tmp_path) as into:
        into.remove({1, 2})
    assert not list(tmp_path.rglob("*.seg"))


def test_a_tar_that_was_cut_has_no_backup(tmp_path: Path) -> None:
    tar = io.BytesIO()
    target = TarTarget(tar)
    target.begin(10)
    target.open("store.sqlite", 10)
    target.write(b"12345")
    target.abandon()
    tar.seek(0)
    with tarfile.open(fileobj=tar) as opened, pytest.raises(tarfile.ReadError):
        opened.extractall(tmp_path, filter="data")
    assert BackupDirectory.existing(tmp_path).manifests() == []
