"""Restores a backup into a new directory, while no daemon runs on it.

::

    refuse what cannot be ─▶ NEW/RESTORING ─▶ files, each against its checksum ─▶ the store renewed
                                                                                      │
                                  a data directory, by one rename: RESTORING ─▶ FORMAT ◀┘

No daemon starts on a directory with ``RESTORING``; the same command restarts the restore.
Invariant: a restore changes only files that it wrote itself. Blocking.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dss_core.backups.directory import (
    BackupDirectory,
    checked_pieces,
    inside_data_directory,
    require_room,
)
from dss_core.backups.manifest import STORE_FILE, BackedUpFile, Manifest
from dss_core.default_paths import expanded
from dss_core.errors import DataDirectoryNewer, RestoreTargetUnfit, StoreDamaged
from dssd.backups.renewal import IDS_RAISED, KINDS_READ, Renewal, StoredRows, renewal
from dssd.data_directory import FORMAT, FORMAT_NAME, LOG_NAME, sync_directory, write_staged_marker
from dssd.store import schema
from dssd.store.database import READ_ERRORS, opened, raise_condition
from dssd.store.keys import key_of
from dssd.store.port import Key, Versioned
from dssd.store.reserve import Reserve
from dssd.store.rows import Row
from dssd.store.transactions import Applied, CommitRequest, IdRequest, Transactions

RESTORING_NAME = "RESTORING"

ROWS_READ_AT_ONCE = 10_000
"""Rows of the store that a restore reads in one statement."""

Told = Callable[[int, int], None]
"""Called with the bytes written so far, and the total."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was made."""

    directory: Path
    manifest: Manifest
    renewal: Renewal


def restore(
    backups: Path, into: Path, number: int | None = None, *, told: Told | None = None
) -> Restored:
    """Make a data directory of a backup; the newest one where no number is said.

    Raises:
        BackupTargetUnfit, BackupNotFound, BackupNewer: there is no such backup.
        RestoreTargetUnfit, NoRoomForBackup, DataDirectoryNewer: nothing was changed.
        BackupDamaged: a file is not as it was written; what was begun is no data directory.
        StoreDamaged: so is the store, although its file is.
        OSError: the disk refused it; likewise.
    """
    source = BackupDirectory.existing(backups)
    manifest = source.manifest(number)
    into = expanded(into).absolute()
    _refuse(into, source, manifest)
    marker = _begun(into)
    _copy(source, manifest.files, into, told)
    made = renew(into / STORE_FILE, manifest)
    for folder in (into / LOG_NAME, into):
        sync_directory(folder)
    marker.rename(into / FORMAT_NAME)
    for folder in (into, into.parent):
        sync_directory(folder)
    return Restored(into, manifest, made)


def _refuse(into: Path, source: BackupDirectory, manifest: Manifest) -> None:
    if manifest.store_format > schema.FORMAT or manifest.directory_format > FORMAT:
        found, known = manifest.store_format, schema.FORMAT
        if manifest.directory_format > FORMAT:
            found, known = manifest.directory_format, FORMAT
        raise DataDirectoryNewer(path=source.path, found=found, known=known)
    reason = _unfit(into, source)
    if reason:
        raise RestoreTargetUnfit(path=into, reason=reason)
    require_room(into.parent, manifest.bytes)


def _unfit(into: Path, source: BackupDirectory) -> str:
    """Why nothing can be restored there; empty where it can."""
    if not into.parent.is_dir():
        return f"there is no directory {into.parent}"
    if into.resolve().is_relative_to(source.path.resolve()):
        return "it lies in the directory of the backups"
    data = inside_data_directory(into)
    if data is not None:
        return f"{data} is the data directory of a daemon" + (
            "; move it away first" if data == into.resolve() else ", and it lies in it"
        )
    if into.exists() and not into.is_dir():
        return "it is a file"
    if into.is_dir() and not (into / RESTORING_NAME).exists() and any(into.iterdir()):
        return "it is not empty"
    return ""


def _begun(into: Path) -> Path:
    """Make the directory, with nothing but the file ``RESTORING``."""
    into.mkdir(mode=0o700, exist_ok=True)
    into.chmod(0o700)
    marker = into / RESTORING_NAME
    write_staged_marker(marker)
    sync_directory(into)
    # Left by an interrupted restore: nothing else writes into a directory with that file.
    for left in into.iterdir():
        if left.is_dir():
            shutil.rmtree(left)
        elif left != marker:
            left.unlink()
    (into / LOG_NAME).mkdir(mode=0o700)
    return marker


def _copy(
    source: BackupDirectory, files: Iterable[BackedUpFile], into: Path, told: Told | None
) -> None:
    """Copy files, each against its checksum, durably."""
    files = list(files)
    every, done = sum(each.bytes for each in files), 0
    for file in files:
        target = os.open(into / file.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(target, "wb") as opened_file:
            for piece in checked_pieces(source.path_of(file), file):
                opened_file.write(piece)
                done += len(piece)
                if told is not None:
                    told(done, every)
            opened_file.flush()
            os.fsync(opened_file.fileno())


def renew(store: Path, manifest: Manifest) -> Renewal:
    """Apply the renewal to the store, in one transaction.

    Raises:
        StoreDamaged: it is not as it was written.
        DiskFailed, NoRoomToStart: the disk refused it.
    """
    try:
        return _renewed(store, manifest)
    except READ_ERRORS as error:
        raise_condition(error, store)


def _renewed(store: Path, manifest: Manifest) -> Renewal:
    transactions = Transactions(opened(store), Reserve(store))
    try:
        rows = StoredRows({kind: _all(transactions, kind) for kind in KINDS_READ})
        told = _told(manifest)
        made = renewal(rows, manifest.ends, time.time_ns() // 1_000_000, told)
        commit = CommitRequest(tuple(made.writes), ())
        _, applied = transactions.apply([IdRequest(IDS_RAISED), commit])
        if not isinstance(applied, Applied):
            raise StoreDamaged(path=store, reason=f"it cannot be renewed: {applied}")
    finally:
        transactions.close()
    return made


def _all(transactions: Transactions, kind: type[Row]) -> list[Row]:
    found: list[Versioned[Row]] = []
    after: Key | None = None
    while True:
        page = transactions.scan(kind, (), after, ROWS_READ_AT_ONCE)
        found += page
        if len(page) < ROWS_READ_AT_ONCE:
            return [each.row for each in found]
        after = key_of(page[-1].row)


def _told(manifest: Manifest) -> str:
    taken = datetime.fromtimestamp(manifest.taken_at_us / 1_000_000, UTC)
    return (
        f"The data was restored from backup {manifest.number} of {taken:%Y-%m-%d %H:%M:%S} UTC. "
        "What came later is lost, and streams go on behind a gap."
    )
