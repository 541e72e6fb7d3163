"""The servicer of `Backups`: a snapshot as a list of files and their bytes.

Invariant: all bytes sent are of one snapshot, which exists until the call ends. A thread reads one
piece ahead of the piece being sent, and the event loop copies each piece once.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import aclosing
from typing import Any

import grpc.aio

from dss_api.v1 import backups_pb2, backups_pb2_grpc
from dss_core.backups.manifest import LOG_FOLDER, BackedUpFile
from dss_core.errors import BackupFailed
from dssd.backups.ledger import BackupLedger, WrittenBackup
from dssd.backups.snapshots import Snapshot, SnapshotFile, Snapshots
from dssd.data_directory import FORMAT
from dssd.rpc.principal import login_of
from dssd.version import version

BACKUP_PIECE_BYTES_SENT = 512 << 10
"""One message: large enough to be cheap, small enough that other calls have their turn soon."""

BACKUP_FILES_PER_LISTING = 20_000
"""Files in one message: some 60 bytes each."""

Context = grpc.aio.ServicerContext[Any, Any]
Reply = backups_pb2.CreateBackupReply


class BackupsServicer(backups_pb2_grpc.BackupsServicer):
    """Serves administrators."""

    def __init__(self, snapshots: Snapshots, ledger: BackupLedger) -> None:
        self._snapshots = snapshots
        self._ledger = ledger

    async def Create(
        self, request: backups_pb2.CreateBackupRequest, context: Context
    ) -> AsyncGenerator[backups_pb2.CreateBackupReply, None]:
        """The files of a snapshot."""
        async with self._snapshots.taken() as snapshot:
            held = _held(request, snapshot)
            id_ = self._ledger.hand_over(snapshot)
            in_place = request.in_place and _is_beside(context)
            for listing in _listings(id_, snapshot, held):
                listing.folder = str(snapshot.folder) if in_place else ""
                yield Reply(listing=listing)
            if in_place:
                await self._ledger.confirmed(id_)
            for number, file in enumerate(snapshot.files):
                if in_place or file.name in held:
                    continue
                async with aclosing(_pieces(file)) as pieces:
                    async for content in pieces:
                        yield Reply(piece=backups_pb2.BackupPiece(file=number, content=content))
            yield Reply(end=backups_pb2.BackupEnd())

    async def Confirm(
        self, request: backups_pb2.ConfirmBackupRequest, context: Context
    ) -> backups_pb2.ConfirmBackupReply:
        """It is durable where it was written."""
        written = WrittenBackup(request.destination, request.bytes, request.new_bytes)
        self._ledger.confirm(request.id, written)
        return backups_pb2.ConfirmBackupReply()


def _is_beside(context: Context) -> bool:
    """Whether the caller is a process of this machine that can read the daemon's files."""
    return not login_of(context).key and context.peer().startswith("unix:")


def _held(request: backups_pb2.CreateBackupRequest, snapshot: Snapshot) -> Collection[str]:
    """The files that the caller has unchanged, of the same incarnation."""
    if request.incarnation != snapshot.incarnation:
        return ()
    stems = {
        f"{LOG_FOLDER}{each.storage_topic_id:08x}-{segment:016x}"
        for each in request.held
        for segment in each.segments
    }
    others = {
        each.name: BackedUpFile(each.name, each.bytes, "", modified_ns=each.modified_ns)
        for each in request.written
    }
    return {
        file.name
        for file in snapshot.files
        if (file.sealed and file.name.rpartition(".")[0] in stems)
        or (file.name in others and file.is_as(others[file.name]))
    }


def _listings(
    id_: bytes, snapshot: Snapshot, held: Collection[str]
) -> Iterator[backups_pb2.BackupListing]:
    files = [
        backups_pb2.BackupFile(
            name=each.name,
            bytes=each.bytes,
            sealed=each.sealed,
            held=each.name in held,
            inode=each.inode,
            modified_ns=each.modified_ns,
        )
        for each in snapshot.files
    ]
    ends = [
        backups_pb2.BackupEnds(storage_topic_id=topic, offsets=offsets)
        for topic, offsets in snapshot.ends.ends.items()
    ]
    parts = range(0, max(len(files), len(ends)), BACKUP_FILES_PER_LISTING)
    for at in parts:
        behind = at + BACKUP_FILES_PER_LISTING
        yield backups_pb2.BackupListing(
            id=id_,
            incarnation=snapshot.incarnation,
            taken_at_us=snapshot.taken_at_us,
            version=version(),
            store_format=snapshot.store_format,
            directory_format=FORMAT,
            files=files[at:behind],
            ends=ends[at:behind],
            more=at != parts[-1],
        )


async def _pieces(file: SnapshotFile) -> AsyncGenerator[bytes, None]:
    """The bytes of a file, as far as they belong to the snapshot.

    Raises:
        BackupFailed: they cannot be read.
    """
    descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
    ahead: asyncio.Task[bytes] | None = None
    try:
        for at in range(0, file.bytes, BACKUP_PIECE_BYTES_SENT):
            content = await (ahead or _reading(descriptor, file, at))
            behind = at + BACKUP_PIECE_BYTES_SENT
            ahead = _reading(descriptor, file, behind) if behind < file.bytes else None
            yield content
    finally:
        if ahead is not None:
            # A thread may still use the descriptor, so it must not be closed and reused.
            await asyncio.wait({ahead})
        os.close(descriptor)


def _reading(descriptor: int, file: SnapshotFile, at: int) -> "asyncio.Task[bytes]":
    reading = asyncio.to_thread(_read, descriptor, file, at)
    return asyncio.create_task(reading, name="read for a backup")


def _read(descriptor: int, file: SnapshotFile, at: int) -> bytes:
    wanted = min(BACKUP_PIECE_BYTES_SENT, file.bytes - at)
    try:
        found = os.pread(descriptor, wanted, at)
    except OSError as error:
        raise BackupFailed(reason=f"{file.name} cannot be read: {error.strerror}") from error
    if len(found) != wanted:
        raise BackupFailed(reason=f"{file.name} became shorter")
    return found
