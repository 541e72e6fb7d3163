"""Where a backup is written to: directories that have files already, and tars."""

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from dss_core.backups.directory import BackupDirectory, checked_pieces
from dss_core.backups.manifest import BackedUpFile
from dss_core.backups.targets import DirectoryTarget, TarTarget
from support.backed_up import FILES, INCARNATION, SEGMENT, backed_up, written


def test_sealed_files_of_the_same_data_need_not_come_again(tmp_path: Path) -> None:
    backed_up(tmp_path)
    with BackupDirectory.opened(tmp_path) as opened:
        target = DirectoryTarget(opened)
        assert target.incarnation == INCARNATION
        assert {name for name, each in target.held.items() if each.sealed} == {
            f"{SEGMENT}.seg",
            f"{SEGMENT}.idx",
        }


@pytest.mark.parametrize(
    ("sealed", "size", "modified_ns", "is_still"),
    [
        (True, 4, 9, False),
        (False, 4, 7, True),
        (True, 4, 7, True),
        (False, 5, 7, False),
        (False, 4, 8, False),
        (False, 4, 0, False),
    ],
)
def test_a_file_that_may_be_written_comes_again_unless_its_size_and_its_time_stayed(
    sealed: bool, size: int, modified_ns: int, is_still: bool
) -> None:
    there = BackedUpFile(f"{SEGMENT}.seg", 4, "a" * 32, modified_ns=7)
    found = there.is_still(sealed=sealed, size=size, modified_ns=modified_ns)
    assert found is is_still
    assert replace(there, sealed=True).is_still(sealed=True, size=size, modified_ns=modified_ns)
    unknown = replace(there, modified_ns=0)
    assert not unknown.is_still(sealed=sealed, size=size, modified_ns=modified_ns)


def test_of_files_that_may_be_written_those_of_the_newest_backup_are_held(tmp_path: Path) -> None:
    backed_up(tmp_path, {**FILES, "log/00000002-0000000000000004.seg": b"old"})
    backed_up(tmp_path)
    with BackupDirectory.opened(tmp_path) as opened:
        held = DirectoryTarget(opened).held
    assert set(held) == set(FILES)
    assert not held["store.sqlite"].sealed


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
