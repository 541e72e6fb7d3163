"""The backups of one daemon: its snapshots, the ledger of confirmed backups, and the writer for the
task ``backup``.

Invariant: a snapshot and its files are removed, however its backup ends. This module
must not know where the task writes to: the daemon's file says that.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import monotonic

from dss_core.backups.directory import BackupDirectory
from dss_core.backups.manifest import BackedUpFile, Manifest
from dss_core.backups.targets import DirectoryTarget
from dss_core.errors import BackupFailed
from dssd.backups.ledger import BackupLedger, WrittenBackup
from dssd.backups.snapshots import Snapshot, SnapshotFile, Snapshots, remove_snapshot
from dssd.clock import Clock
from dssd.data_directory import FORMAT, DataDirectory
from dssd.events.events import Events
from dssd.log.file_list import LogFiles
from dssd.schedules.tasks.backup import WrittenByTask
from dssd.store.sqlite import SqliteStore
from dssd.store.uninterrupted import finished
from dssd.version import version

COPY_STEP_BYTES = 1 << 20
"""Bytes that the daemon copies in one piece. After a piece it rests as long as the piece took, so
that copying takes at most half of a processor and of a disk."""


class Backups:
    """Of one daemon. Built by `open`."""

    def __init__(self, snapshots: Snapshots, ledger: BackupLedger) -> None:
        self.snapshots = snapshots
        self.ledger = ledger

    @classmethod
    async def open(
        cls,
        directory: DataDirectory,
        store: SqliteStore,
        log: LogFiles,
        incarnation: bytes,
        clock: Clock,
        events: Events,
    ) -> "Backups":
        """Read which backups are known, and remove what a killed daemon left."""
        folder = directory.snapshot_path
        # Left by a daemon that was killed during a backup.
        await asyncio.to_thread(remove_snapshot, folder)
        snapshots = Snapshots(folder, store, log, incarnation, clock)
        return cls(snapshots, await BackupLedger.open(events))

    async def write(self, into: Path, keep: int, told: Callable[[int, int], None]) -> WrittenByTask:
        """Write a backup into a directory of backups, and keep only the newest ones.

        Raises:
            BackupTargetUnfit, BackupUnderWay, NoRoomForBackup: nothing was begun.
            BackupFailed: it is not whole; older ones are as they were.
        """
        with ExitStack() as stack:
            opened = BackupDirectory.opened(into)
            directory = await asyncio.to_thread(stack.enter_context, opened)
            target = await asyncio.to_thread(DirectoryTarget, directory)
            async with self.snapshots.taken() as snapshot:
                id_ = self.ledger.hand_over(snapshot)
                try:
                    manifest, new_bytes = await _written(snapshot, target, told)
                finally:
                    target.abandon()
            written = WrittenBackup(str(directory.path), manifest.bytes, new_bytes)
            self.ledger.confirm(id_, written)
            older = [int(path.stem) for path in directory.manifest_paths()][:-keep]
            await asyncio.to_thread(directory.remove, frozenset(older))
        return WrittenByTask(manifest.number, manifest.bytes, new_bytes, len(older))


async def _written(
    snapshot: Snapshot, target: DirectoryTarget, told: Callable[[int, int], None]
) -> tuple[Manifest, int]:
    """The manifest of what was written, and how many bytes were."""
    held = _held(snapshot, target)
    coming = sum(each.bytes for each in snapshot.files if each.name not in held)
    await asyncio.to_thread(target.begin, coming)
    files: list[BackedUpFile] = []
    done = 0
    for file in snapshot.files:
        if file.name in held:
            there = held[file.name]
            files.append(replace(there, sealed=file.sealed, modified_ns=file.modified_ns))
            continue
        files.append(await _copied(file, target))
        done += file.bytes
        told(done, coming)
    manifest = Manifest(
        number=0,
        incarnation=snapshot.incarnation.hex(),
        taken_at_us=snapshot.taken_at_us,
        version=version(),
        store_format=snapshot.store_format,
        directory_format=FORMAT,
        files=tuple(files),
        ends=snapshot.ends.ends,
    )
    return await asyncio.to_thread(target.finish, manifest), coming


def _held(snapshot: Snapshot, target: DirectoryTarget) -> Mapping[str, BackedUpFile]:
    """The files of a snapshot that the directory has already, by name."""
    if target.incarnation != snapshot.incarnation.hex():
        return {}
    there = ((each, target.held.get(each.name)) for each in snapshot.files)
    return {each.name: one for each, one in there if one is not None and each.is_as(one)}


async def _copied(file: SnapshotFile, target: DirectoryTarget) -> BackedUpFile:
    """Copy a file, with rests."""
    await asyncio.to_thread(target.open, file.name, file.bytes)
    for at in range(0, file.bytes, COPY_STEP_BYTES):
        began_s = monotonic()
        copy = asyncio.to_thread(_copy_step, file, at, target)
        # A cancelled task must not close a file that a thread still writes.
        await finished(copy, name="copy for a backup")
        await asyncio.sleep(monotonic() - began_s)
    return await asyncio.to_thread(target.close, sealed=file.sealed, modified_ns=file.modified_ns)


def _copy_step(file: SnapshotFile, at: int, target: DirectoryTarget) -> None:
    wanted = min(COPY_STEP_BYTES, file.bytes - at)
    try:
        with file.path.open("rb", buffering=0) as opened:
            opened.seek(at)
            content = opened.read(wanted)
    except OSError as error:
        raise BackupFailed(reason=f"{file.name} cannot be read: {error.strerror}") from error
    if len(content) != wanted:
        raise BackupFailed(reason=f"{file.name} became shorter")
    target.write(content)
