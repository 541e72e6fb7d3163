"""What a restore refuses, and what it leaves where it cannot go on."""

from pathlib import Path

import pytest

from dss_core.backups import directory as directories
from dss_core.backups.directory import BackupDirectory
from dss_core.backups.targets import DirectoryTarget
from dss_core.errors import (
    BackupNotFound,
    BackupTargetUnfit,
    DataDirectoryNewer,
    DssError,
    IllegalConfig,
    NoRoomForBackup,
    RestoreTargetUnfit,
    StoreDamaged,
)
from dssd.backups.restore import RESTORING_NAME, restore
from dssd.data_directory import DataDirectory
from dssd.store import schema
from support.backed_up import FILES, backed_up, manifest


def refused(
    backups: Path, into: Path, condition: type[DssError], number: int | None = None
) -> None:
    there = into.exists()
    with pytest.raises(condition):
        restore(backups, into, number)
    assert into.exists() == there


@pytest.mark.parametrize("newer", [{"store_format": schema.FORMAT + 1}, {"directory_format": 2}])
def test_a_backup_of_a_newer_version_is_left_for_that(
    tmp_path: Path, newer: dict[str, int]
) -> None:
    with BackupDirectory.opened(tmp_path / "b") as opened:
        target = DirectoryTarget(opened)
        files = []
        for name, content in FILES.items():
            target.open(name, len(content))
            target.write(content)
            files.append(target.close(sealed=False))
        target.finish(manifest(files=tuple(files), **newer))
    refused(tmp_path / "b", tmp_path / "new", DataDirectoryNewer)


def test_nothing_is_begun_without_a_backup_a_place_and_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(tmp_path, tmp_path / "new", BackupTargetUnfit)
    backed_up(tmp_path / "b")
    refused(tmp_path / "b", tmp_path / "new", BackupNotFound, number=7)
    refused(tmp_path / "b", tmp_path / "no" / "new", RestoreTargetUnfit)
    refused(tmp_path / "b", tmp_path / "b" / "new", RestoreTargetUnfit)
    monkeypatch.setattr(directories, "BACKUP_SPARE_BYTES", 1 << 60)
    refused(tmp_path / "b", tmp_path / "new", NoRoomForBackup)


def test_a_store_that_is_none_leaves_what_no_daemon_starts_on(tmp_path: Path) -> None:
    """Its file is as it was written, so only the look into it tells."""
    backed_up(tmp_path / "b")
    with pytest.raises(StoreDamaged):
        restore(tmp_path / "b", tmp_path / "new")
    assert (tmp_path / "new" / RESTORING_NAME).exists()
    with pytest.raises(IllegalConfig, match="not empty"):
        DataDirectory(tmp_path / "new")
    with pytest.raises(StoreDamaged):  # it begins anew, and does not refuse what it left itself
        restore(tmp_path / "b", tmp_path / "new")
