"""Directories of backups: what they refuse, what they share, and what goes."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dss_core.backups import directory as directories
from dss_core.backups.directory import MARKER, BackupDirectory, checked_pieces, require_room
from dss_core.errors import (
    BackupDamaged,
    BackupNewer,
    BackupNotFound,
    BackupTargetUnfit,
    BackupUnderWay,
    NoRoomForBackup,
)
from support.backed_up import FILES, SEGMENT, backed_up


def files_in(path: Path) -> set[str]:
    return {each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file()}


def content_of(path: Path, number: int) -> dict[str, bytes]:
    source = BackupDirectory.existing(path)
    return {
        each.name: b"".join(checked_pieces(source.path_of(each), each))
        for each in source.manifest(number).files
    }


def test_backups_have_what_was_written_and_share_files(tmp_path: Path) -> None:
    path = tmp_path / "b"
    newer = {**FILES, "store.sqlite": b"newer"}
    assert [backed_up(path).number, backed_up(path, newer).number] == [1, 2]
    assert content_of(path, 1) == FILES
    assert content_of(path, 2) == newer
    assert len([each for each in files_in(path) if each.startswith("files/")]) == 4


def test_a_removed_backup_leaves_the_files_of_others(tmp_path: Path) -> None:
    path = tmp_path / "b"
    backed_up(path)
    backed_up(path, {**FILES, "store.sqlite": b"newer"})
    with BackupDirectory.opened(path) as opened:
        assert opened.remove({1}) == len(FILES["store.sqlite"])
    assert content_of(path, 2)[f"{SEGMENT}.seg"] == FILES[f"{SEGMENT}.seg"]
    with pytest.raises(BackupNotFound, match="it has 2"):
        BackupDirectory.existing(path).manifest(1)


def test_what_an_unfinished_backup_left_goes_with_the_next_change(tmp_path: Path) -> None:
    path = tmp_path / "b"
    backed_up(path)
    before = files_in(path)
    with BackupDirectory.opened(path) as opened, opened.incoming() as file:
        file.write(b"half")
        file.keep(f"{SEGMENT}.seg", sealed=True)
    assert len(files_in(path)) == len(before) + 1
    with BackupDirectory.opened(path) as opened:
        assert opened.sweep() == 4
    assert files_in(path) == before


def data_directory(path: Path) -> Path:
    path.mkdir()
    (path / "FORMAT").write_text("dssd data directory, format 1\n")
    return path


def not_empty(tmp_path: Path) -> Path:
    (tmp_path / "mine").write_text("x")
    return tmp_path


def a_file(tmp_path: Path) -> Path:
    (tmp_path / "mine").write_text("x")
    return tmp_path / "mine"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (not_empty, "is not empty"),
        (a_file, "it is a file"),
        (lambda tmp_path: tmp_path / "a" / "b", "is its disk mounted?"),
        (lambda tmp_path: data_directory(tmp_path / "data"), "data directory"),
        (lambda tmp_path: data_directory(tmp_path / "data") / "b", "data directory"),
    ],
)
def test_a_directory_that_cannot_take_backups_is_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], Path], reason: str
) -> None:
    path = make(tmp_path)
    before = files_in(tmp_path)
    with (
        pytest.raises(BackupTargetUnfit, match=re.escape(reason)) as refused,
        BackupDirectory.opened(path),
    ):
        pass
    assert "dssctl backup create" in refused.value.hint_text
    assert files_in(tmp_path) == before


def test_a_link_into_a_data_directory_is_seen(tmp_path: Path) -> None:
    data = data_directory(tmp_path / "data")
    (tmp_path / "link").symlink_to(data)
    with pytest.raises(BackupTargetUnfit), BackupDirectory.opened(tmp_path / "link" / "b"):
        pass


def test_two_do_not_change_it_at_once(tmp_path: Path) -> None:
    with (
        BackupDirectory.opened(tmp_path / "b"),
        pytest.raises(BackupUnderWay),
        BackupDirectory.opened(tmp_path / "b"),
    ):
        pass
    with BackupDirectory.opened(tmp_path / "b"):
        pass


def test_one_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text("backups of a DSS daemon, format 2\n")
    with pytest.raises(BackupNewer):
        BackupDirectory.existing(tmp_path)


def test_too_little_room_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "BACKUP_SPARE_BYTES", 1 << 60)
    with pytest.raises(NoRoomForBackup):
        require_room(tmp_path, 1)
    with pytest.raises(NoRoomForBackup):
        backed_up(tmp_path / "b")
    assert files_in(tmp_path / "b") == {MARKER}


def test_a_flipped_bit_in_each_file_is_named(tmp_path: Path) -> None:
    made = backed_up(tmp_path)
    source = BackupDirectory.existing(tmp_path)
    for file in made.files:
        path = source.path_of(file)
        whole = path.read_bytes()
        path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        with pytest.raises(BackupDamaged, match=re.escape(file.name)):
            list(checked_pieces(path, file))
        path.write_bytes(whole[:-1])
        with pytest.raises(BackupDamaged, match="bytes instead of"):
            list(checked_pieces(path, file))
        path.unlink()
        with pytest.raises(BackupDamaged, match=re.escape(file.name)):
            list(checked_pieces(path, file))
        path.write_bytes(whole)
        assert b"".join(checked_pieces(path, file)) == whole


def test_a_manifest_under_another_number_is_damage(tmp_path: Path) -> None:
    backed_up(tmp_path)
    (tmp_path / "backups" / "000001.json").rename(tmp_path / "backups" / "000009.json")
    with pytest.raises(BackupDamaged, match="of backup 1"):
        BackupDirectory.existing(tmp_path).manifests()
