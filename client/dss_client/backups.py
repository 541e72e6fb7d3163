"""Backups of a daemon, written here: into a directory of backups, or as one tar.

Invariant: what is written is of one moment, and counts once all of it is there. The daemon is told
when it is durable. A thread writes each piece while the next one arrives.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TypeAlias, TypeVar

from dss_core.backups.directory import BackupDirectory
from dss_core.backups.manifest import BackedUpFile, Manifest
from dss_core.backups.targets import BackupTarget, DirectoryTarget, TarTarget
from dss_core.errors import BackupFailed

if TYPE_CHECKING:
    from dss_api.v1 import backups_pb2
    from dss_client._connection import Connection

    Replies = AsyncGenerator[backups_pb2.CreateBackupReply, None]

_T = TypeVar("_T")

Told: TypeAlias = Callable[[int, int], None]
"""Called with how many bytes came, and how many come in all."""

COPIER_NICENESS = 10
"""Of the threads that copy: whoever produces and consumes beside them is served first."""

COPIERS = 2
"""Threads of a backup: one reads, or waits for the daemon, while the other writes."""

READ_IN_PLACE_BYTES = 4 << 20
"""Of a file that is copied beside the daemon, at once: a step in a thread costs a tenth of it."""

_UNLIKE = "the daemon's answer is not what its list says"


class _InCopier:
    """Runs what blocks in one of the threads that copy."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    async def __call__(self, work: Callable[..., _T], *given: Any, **more: Any) -> _T:  # noqa: ANN401 - of the work
        """What the work returns, or raises; it has ended when this does, also by a cancellation.

        Else a thread could write into a file that was closed meanwhile.
        """
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._threads, partial(work, *given, **more))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.wait({done})
            raise


@contextmanager
def _copiers() -> Iterator[_InCopier]:
    """Threads that give way; what they are at is ended when the block is left."""
    threads = ThreadPoolExecutor(COPIERS, "dss backup", initializer=_give_way)
    try:
        yield _InCopier(threads)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _give_way() -> None:
    """Lower the priority of this thread alone, where the system can."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), COPIER_NICENESS)


@dataclass(frozen=True, slots=True)
class MadeBackup:
    """A backup that is whole and durable."""

    manifest: Manifest
    bytes: int
    """Of all its files."""
    new_bytes: int
    """That were written for it."""
    seconds: float


class Backups:
    """Makes backups; reached as ``client.backups``. For administrators."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def create(
        self, directory: str | os.PathLike[str], *, bytes_s: int = 0, told: Told | None = None
    ) -> MadeBackup:
        """Write a backup into a directory of backups; it is made where it is not there.

        Files of an earlier backup there that have not changed since are not sent again.

        Args:
            directory: on this machine, outside of any data directory.
            bytes_s: how many bytes a second are taken; 0: as many as come.
            told: called as it goes on.

        Raises:
            BackupTargetUnfit, BackupUnderWay, NoRoomForBackup: nothing was begun.
            BackupFailed: what was written is removed by the next one.
            DssError: the daemon refuses, or the connection was lost.
        """
        with _copiers() as in_copier, ExitStack() as stack:
            opened = BackupDirectory.opened(Path(directory))
            into = await in_copier(stack.enter_context, opened)
            target = await in_copier(DirectoryTarget, into)
            return await self._made(target, bytes_s, told, in_copier)

    async def write_tar(
        self, file: BinaryIO, *, bytes_s: int = 0, told: Told | None = None
    ) -> MadeBackup:
        """Write a whole backup as a tar; what is unpacked of it is a directory of backups.

        Args:
            file: is written in order, and need not be one that can be sought in.
            bytes_s, told: as for `create`.

        Raises:
            BackupFailed: the file cannot be written.
            DssError: the daemon refuses, or the connection was lost.
        """
        with _copiers() as in_copier:
            return await self._made(TarTarget(file), bytes_s, told, in_copier)

    async def _made(
        self, target: BackupTarget, bytes_s: int, told: Told | None, in_copier: _InCopier
    ) -> MadeBackup:
        began_s = monotonic()
        request = _request(target)
        request.in_place = await self._sees_files()
        async with aclosing(self._replies(request)) as replies:
            listing = await _listed(replies)
            coming = sum(each.bytes for each in listing.files if not each.held)
            pace = _Pace(bytes_s, coming, told)
            try:
                await in_copier(target.begin, coming)
                source = _InPlace(listing, in_copier) if listing.folder else _OnWire(replies)
                files = await _written(listing, source, target, pace, in_copier)
                manifest = await in_copier(target.finish, _manifest(listing, files))
            finally:
                target.abandon()
            await self._confirm(listing, manifest, coming, target.name)
            async for _ in replies:  # to its end: the daemon may make the next one then
                pass
        return MadeBackup(manifest, manifest.bytes, coming, monotonic() - began_s)

    async def _sees_files(self) -> bool:
        """Whether this process may read the daemon's files by itself, which spares the daemon."""
        from dss_api.v1 import daemon_pb2

        if not self._connection.endpoint.text.startswith("unix:"):
            return False
        request = daemon_pb2.DaemonStatusRequest()
        status = await self._connection.ask(self._connection.daemon.Status, request)
        return os.access(status.data_dir, os.R_OK | os.X_OK)

    async def _replies(self, request: "backups_pb2.CreateBackupRequest") -> "Replies":
        from dss_client._connection import ConnectionLostError

        call = self._connection.backups.Create(request)
        try:
            while (reply := await self._connection.read_or_end(call)) is not None:
                yield reply
        except ConnectionLostError as lost:
            raise lost.reason from lost
        finally:
            call.cancel()

    async def _confirm(
        self, listing: "backups_pb2.BackupListing", manifest: Manifest, coming: int, name: str
    ) -> None:
        from dss_api.v1 import backups_pb2

        request = backups_pb2.ConfirmBackupRequest(
            id=listing.id, destination=name, bytes=manifest.bytes, new_bytes=coming
        )
        await self._connection.ask(self._connection.backups.Confirm, request)


def _request(target: BackupTarget) -> "backups_pb2.CreateBackupRequest":
    from dss_api.v1 import backups_pb2

    request = backups_pb2.CreateBackupRequest(incarnation=bytes.fromhex(target.incarnation))
    by_topic: dict[int, backups_pb2.HeldSegments] = {}
    for name, file in target.held.items():
        if not file.sealed:
            request.written.add(name=name, bytes=file.bytes, modified_ns=file.modified_ns)
            continue
        stem, _, suffix = name.rpartition("/")[2].rpartition(".")
        # An index comes again with its segment.
        index = target.held.get(name.replace(".seg", ".idx"))
        if suffix == "seg" and index is not None and index.sealed:
            topic, segment = (int(each, 16) for each in stem.split("-"))
            held = by_topic.get(topic)
            if held is None:
                held = by_topic[topic] = request.held.add(storage_topic_id=topic)
            held.segments.append(segment)
    return request


async def _listed(replies: "Replies") -> "backups_pb2.BackupListing":
    """All that the daemon says that the backup has, in one message."""
    whole = None
    async for reply in replies:
        if reply.WhichOneof("item") != "listing":
            break
        if whole is None:
            whole = reply.listing
        else:
            whole.files.extend(reply.listing.files)
            whole.ends.extend(reply.listing.ends)
        if not reply.listing.more:
            return whole
    raise BackupFailed(reason="the daemon's answer has no list of files")


async def _written(
    listing: "backups_pb2.BackupListing",
    source: "_OnWire | _InPlace",
    target: BackupTarget,
    pace: "_Pace",
    in_copier: "_InCopier",
) -> list[BackedUpFile]:
    """Write what comes; the files of the backup, those that were there too."""
    files: list[BackedUpFile] = []
    for number, file in enumerate(listing.files):
        if file.held:
            there = target.held[file.name]
            files.append(replace(there, sealed=file.sealed, modified_ns=file.modified_ns))
            continue
        async with _Behind(in_copier) as behind:
            await behind.do(target.open, file.name, file.bytes)
            async with aclosing(source.contents(number, file)) as contents:
                async for content in contents:
                    await behind.do(target.write, content)
                    await pace.took(len(content))
            await behind.done()
        files.append(
            await in_copier(target.close, sealed=file.sealed, modified_ns=file.modified_ns)
        )
    await source.end()
    return files


class _OnWire:
    """The messages of the daemon."""

    def __init__(self, replies: "Replies") -> None:
        self._replies = replies

    async def contents(
        self, number: int, file: "backups_pb2.BackupFile"
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of a file.

        Raises:
            BackupFailed: the daemon sends something else.
        """
        left = file.bytes
        while left > 0:
            reply = await anext(self._replies, None)
            if reply is None or reply.WhichOneof("item") != "piece":
                raise BackupFailed(reason=_UNLIKE)
            content = reply.piece.content
            left -= len(content)
            if reply.piece.file != number or left < 0:
                raise BackupFailed(reason=_UNLIKE)
            yield content

    async def end(self) -> None:
        """See that nothing comes any more.

        Raises:
            BackupFailed: something does.
        """
        end = await anext(self._replies, None)
        if end is None or end.WhichOneof("item") != "end":
            raise BackupFailed(reason=_UNLIKE)


class _InPlace:
    """The daemon's files themselves, on its machine."""

    def __init__(self, listing: "backups_pb2.BackupListing", in_copier: "_InCopier") -> None:
        self._folder = Path(listing.folder)
        self._in_copier = in_copier

    async def contents(
        self, number: int, file: "backups_pb2.BackupFile"
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of a file, as far as they belong to the backup.

        Raises:
            BackupFailed: it cannot be read.
        """
        path = self._folder / file.name.rpartition("/")[2]
        try:
            opened = path.open("rb", buffering=0)
        except OSError as error:
            raise BackupFailed(reason=f"{path} cannot be read: {error.strerror}") from error
        with opened:
            if os.fstat(opened.fileno()).st_ino != file.inode:
                raise BackupFailed(reason=f"{path} is not the daemon's file")
            for at in range(0, file.bytes, READ_IN_PLACE_BYTES):
                wanted = min(READ_IN_PLACE_BYTES, file.bytes - at)
                content = await self._in_copier(opened.read, wanted)
                if len(content) != wanted:
                    raise BackupFailed(reason=f"{path} became shorter")
                yield content

    async def end(self) -> None:
        """The daemon holds them until the backup is confirmed."""


def _manifest(listing: "backups_pb2.BackupListing", files: list[BackedUpFile]) -> Manifest:
    return Manifest(
        number=0,
        incarnation=listing.incarnation.hex(),
        taken_at_us=listing.taken_at_us,
        version=listing.version,
        store_format=listing.store_format,
        directory_format=listing.directory_format,
        files=tuple(files),
        ends={each.storage_topic_id: tuple(each.offsets) for each in listing.ends},
    )


class _Behind:
    """Steps in a thread, one after the other; the caller is a step ahead."""

    def __init__(self, in_copier: "_InCopier") -> None:
        self._in_copier = in_copier
        self._step: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Steps may be begun."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """No step goes on, whatever became of the last one."""
        if self._step is not None:
            await asyncio.wait({self._step})

    async def do(self, step: Callable[..., None], *given: Any) -> None:  # noqa: ANN401 - of the step
        """Begin it, once the one before is done."""
        await self.done()
        work = self._in_copier(step, *given)
        self._step = asyncio.create_task(work, name="write a backup")

    async def done(self) -> None:
        """Wait for the last one.

        Raises:
            BackupFailed: it failed.
        """
        if self._step is not None:
            step, self._step = self._step, None
            await step


class _Pace:
    """How fast it goes, and how far it is."""

    def __init__(self, bytes_s: int, coming: int, told: Told | None) -> None:
        self._bytes_s = bytes_s
        self._coming = coming
        self._told = told
        self._came = 0
        self._began_s = monotonic()

    async def took(self, size: int) -> None:
        """So much came; waits until more may."""
        self._came += size
        if self._told is not None:
            self._told(self._came, self._coming)
        if self._bytes_s:
            due_s = self._began_s + self._came / self._bytes_s
            await asyncio.sleep(max(0.0, due_s - monotonic()))
