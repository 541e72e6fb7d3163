"""Checks, while the daemon serves, that its paths still lead to the files that it has open.

An operator may move the data directory away, put another one or a backup in its place, or remove
files that look stale. A daemon that went on would acknowledge records that are lost, and its
orderly stop would change files that are not its own.

Invariant: if the directory, the log or the store was replaced, nothing more is written: the process
ends as if killed. If only the store's write-ahead log was removed, the daemon stops in order, which
writes it back. A removed lock file is created again.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from dss_core.errors import (
    DataDirectoryLocked,
    DataDirectoryReplaced,
    DssError,
    StoreUnguarded,
)
from dssd.data_directory import DataDirectory
from dssd.events.kinds import LOCK_REMOVED
from dssd.events.model import Event, Note, unheard
from dssd.lock import leads_to
from dssd.store.lock_holder import lock_holder

DIRECTORY_LOOK_S = 1.0
"""How often the daemon looks whether its files are still at their paths; a look is a few calls of
`stat`. What it acknowledges until the next one may go to files that were removed."""


_MADE_ANEW = "Somebody removed or replaced the file LOCK; the daemon made it anew."


class DirectoryGuard:
    """The guard of one directory. Enter it before the store is opened, leave it after the store is
    closed.

    ``failed`` gets errors that must end the process at once.
    """

    def __init__(self, directory: DataDirectory, failed: Callable[[BaseException], None]) -> None:
        self._directory = directory
        self._failed = failed
        self._open: dict[Path, int] = {}
        self._closing = ExitStack()
        self._tells_holder = False

    def begin(self) -> None:
        """The store was opened, and has its write-ahead log.

        Raises:
            DataDirectoryReplaced: a file is gone already.
        """
        opened = self._directory
        for path in (opened.store_path, opened.wal_path, opened.log_path):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError as error:
                raise DataDirectoryReplaced(path=path) from error
            self._closing.callback(os.close, descriptor)
            self._open[path] = descriptor
        with suppress(OSError):  # some file systems do not tell of locks
            self._tells_holder = self._holder() == os.getpid()

    async def run(self, note: Note) -> NoReturn:
        """Look again and again.

        Raises:
            DssError: as `look`.
        """
        while True:
            await asyncio.sleep(DIRECTORY_LOOK_S)
            self.look(note)

    def look(self, note: Note = unheard) -> None:
        """Look once.

        Raises:
            DataDirectoryReplaced: the directory, the store or the log; `failed` was told.
            StoreUnguarded: the store is to be closed. Where that could do harm, `failed` was told.
        """
        with suppress(OSError):  # the disk does not answer now; the next write reports that
            self._look_at_files()
            self._look_at_store()
            self._look_at_lock(note)

    def __enter__(self) -> Self:
        """Look from `begin` on."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is looked at any more."""
        self._closing.close()
        self._open.clear()

    def _look_at_files(self) -> None:
        if not self._directory.is_in_place():
            self._fail(DataDirectoryReplaced(path=self._directory.path))
        for path in (self._directory.store_path, self._directory.log_path):
            if not self._is_ours(path):
                self._fail(DataDirectoryReplaced(path=path))

    def _look_at_store(self) -> None:
        wal, store = self._directory.wal_path, self._directory.store_path
        holder = self._holder() if self._tells_holder else os.getpid()
        if self._is_ours(wal):
            if holder != os.getpid():
                self._fail(StoreUnguarded(path=store, what="its lock is gone"))
            return
        error = StoreUnguarded(path=store, what=f"its file {wal.name} was removed or replaced")
        if holder not in (os.getpid(), None):
            self._fail(error)
        raise error

    def _look_at_lock(self, note: Note) -> None:
        # A daemon of an older version may hold the new one, until SQLite's lock refuses it.
        with suppress(DataDirectoryLocked):
            if self._directory.restore_lock():
                note(Event(LOCK_REMOVED, str(self._directory.path), _MADE_ANEW))

    def _is_ours(self, path: Path) -> bool:
        opened = self._open.get(path)
        return opened is None or leads_to(path, opened)

    def _holder(self) -> int | None:
        return lock_holder(self._open[self._directory.store_path])

    def _fail(self, error: DssError) -> NoReturn:
        self._failed(error)
        raise error
