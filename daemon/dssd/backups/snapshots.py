"""Snapshots of a running daemon: the files of a backup, kept unchanged until they are copied.

::

    hold removals ─▶ copy the store, commits between its pieces ─▶ how far the log has come now
                                                                        │
    let removals go on ◀─ a second name for each file that the copy of the store names ◀┘

The log is as new as the store or newer, as after a kill, so a start can recover from it. Only
removals wait for a snapshot, while the store is copied. A file that retention removes later stays
under its second name (a hard link) until the snapshot ends.

Invariant: one snapshot at a time; it lies in a folder of the data directory that a start removes.
Files kept from retention never fill the disk: the snapshot is given up before that.
"""

import asyncio
import errno
import os
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dss_core.backups.manifest import LOG_FOLDER, STORE_FILE, BackedUpFile
from dss_core.counted import bytes_text
from dss_core.errors import BackupFailed, BackupUnderWay, NoRoomForBackup
from dssd.clock import Clock
from dssd.log.file_list import LogEnds, LogFiles
from dssd.log.segment.file import SegmentId, SegmentPaths
from dssd.store import schema
from dssd.store.rows import SegmentRow
from dssd.store.sqlite import SqliteStore
from dssd.store.uninterrupted import finished

BACKUP_STORE_SPARE_BYTES = 64 << 20
"""Free space that remains beside the copy of the store: seconds of publishing."""

ROOM_LOOK_S = 1.0
"""How often the free space is checked: filling the reserve takes longer."""

_GIVEN_UP = (
    "the daemon's disk has no room left for what retention gives up meanwhile; make room there, or"
    " let the backup be faster"
)


SETTLED_NS = 1_000_000_000
"""File systems distinguish write times to a few milliseconds. A time older than this proves that no
later write happened."""


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """One file of a snapshot."""

    name: str
    """In a data directory."""
    path: Path
    """Where it is, while the snapshot is."""
    bytes: int
    """How many of its first bytes belong to the snapshot."""
    sealed: bool
    inode: int
    modified_ns: int = 0
    """When it was last written; 0: so recently that another write might get the same time."""

    def is_as(self, there: BackedUpFile) -> bool:
        """Whether a backup of the same incarnation has this file unchanged."""
        return there.is_still(sealed=self.sealed, size=self.bytes, modified_ns=self.modified_ns)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of one backup."""

    folder: Path
    """It has all of its files, under their last names."""
    incarnation: bytes
    taken_at_us: int
    store_format: int
    files: tuple[SnapshotFile, ...]
    ends: LogEnds


class Snapshots:
    """Takes them, of one daemon."""

    def __init__(
        self, folder: Path, store: SqliteStore, log: LogFiles, incarnation: bytes, clock: Clock
    ) -> None:
        self._folder = folder
        self._store = store
        self._log = log
        self._incarnation = incarnation
        self._clock = clock
        self._under_way = False

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[Snapshot]:
        """A snapshot, which exists until the block ends.

        Raises:
            BackupUnderWay: there is one.
            NoRoomForBackup: the store cannot be copied.
            BackupFailed: it cannot be taken.
        """
        if self._under_way:
            raise BackupUnderWay(what="A backup of this daemon")
        self._under_way = True
        try:
            async with self._given_up_in_time():
                yield await self._taken()
        except OSError as error:
            raise BackupFailed(reason=_why(error)) from error
        finally:
            # A cancelled task must not leave it behind.
            remove = asyncio.to_thread(remove_snapshot, self._folder)
            await finished(remove, name="remove a snapshot")
            self._under_way = False

    @asynccontextmanager
    async def _given_up_in_time(self) -> AsyncIterator[None]:
        """Give the snapshot up when the disk fills: a slow copy must not keep retention from making
        room.

        Raises:
            BackupFailed: there is no room any more.
        """
        try:
            async with asyncio.timeout(None) as until:
                watch = asyncio.create_task(self._watch_room(until), name="room for a backup")
                try:
                    yield
                finally:
                    watch.cancel()
        except TimeoutError as error:
            if not until.expired():
                raise
            raise BackupFailed(reason=_GIVEN_UP) from error

    async def _watch_room(self, until: asyncio.Timeout) -> None:
        folder = self._store.path.parent
        while True:
            await asyncio.sleep(ROOM_LOOK_S)
            usage = await asyncio.to_thread(shutil.disk_usage, folder)
            if usage.free < BACKUP_STORE_SPARE_BYTES:
                until.reschedule(asyncio.get_running_loop().time())
                return

    async def _taken(self) -> Snapshot:
        await asyncio.to_thread(_prepare, self._folder, self._store.path)
        copy = self._folder / STORE_FILE
        async with self._log.held():
            before = self._log.ends()
            await self._store.copy_to(copy)
            now, taken_at_us = self._log.ends(), self._clock.wall_us()
            # The copy of the store may name a topic that was removed from the log meanwhile.
            ends = LogEnds({**before.sizes, **now.sizes}, {**before.ends, **now.ends})
            link = partial(_linked, self._folder, self._log.paths, copy, ends)
            files = await asyncio.to_thread(link)
        return Snapshot(self._folder, self._incarnation, taken_at_us, schema.FORMAT, files, ends)


def remove_snapshot(folder: Path) -> None:
    """Remove what is left of a snapshot. Blocking."""
    shutil.rmtree(folder, ignore_errors=True)


def _prepare(folder: Path, store: Path) -> None:
    remove_snapshot(folder)
    needed, free = store.stat().st_size + BACKUP_STORE_SPARE_BYTES, shutil.disk_usage(store).free
    if free < needed:
        texts = {"needed": bytes_text(needed), "free": bytes_text(free)}
        raise NoRoomForBackup(path=folder.parent, **texts)
    folder.mkdir(mode=0o700)


def _linked(
    folder: Path, paths: SegmentPaths, copy: Path, ends: LogEnds
) -> tuple[SnapshotFile, ...]:
    """The files of a snapshot, those of the log under second names."""
    store = copy.stat()
    files = [SnapshotFile(STORE_FILE, copy, store.st_size, sealed=False, inode=store.st_ino)]
    for segment, is_sealed, watermark in _segments_in(copy):
        size = ends.sizes.get(segment, watermark)
        found = _link(folder, paths.segment(segment), size, sealed=is_sealed)
        if found is None:
            continue  # no frame was ever written to it, and a start knows that
        files.append(found)
        index = _link(folder, paths.index(segment), None, sealed=is_sealed)
        producers = _link(folder, paths.producers(segment), None, sealed=False)
        files += [beside for beside in (index, producers) if beside is not None]
    return tuple(files)


def _segments_in(copy: Path) -> Sequence[tuple[SegmentId, bool, int]]:
    """The segments that the copy of the store names; each with whether it is sealed, and where it
    ends at least."""
    table = SegmentRow.TABLE
    columns = "storage_topic_id, segment_id, state, watermark_bytes"
    uri = f"{copy.as_uri()}?immutable=1"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        found = connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2").fetchall()
    return [
        (SegmentId(topic, segment), state != "active", watermark)
        for topic, segment, state, watermark in found
    ]


def _link(folder: Path, path: Path, size: int | None, *, sealed: bool) -> SnapshotFile | None:
    """A second name for a file; None where it is not there."""
    second = folder / path.name
    try:
        os.link(path, second)
    except FileNotFoundError:
        return None
    found = second.stat()
    size = found.st_size if size is None else size
    if found.st_size < size:
        reason = f"{path.name} has {found.st_size} bytes and not {size}: see dssd check"
        raise BackupFailed(reason=reason)
    name, modified_ns = f"{LOG_FOLDER}{path.name}", _settled_ns(found)
    return SnapshotFile(name, second, size, sealed, found.st_ino, modified_ns)


def _settled_ns(found: os.stat_result) -> int:
    return found.st_mtime_ns if time.time_ns() - found.st_mtime_ns > SETTLED_NS else 0


def _why(error: OSError) -> str:
    if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
        return f"the file system of the data directory makes no second names: {error.strerror}"
    return f"the daemon's disk: {error.strerror}"
