"""Reads parts of files: from the page cache on the event loop, else on a reader thread.

`preadv2(RWF_NOWAIT)` reads from the page cache or not at all, so the loop never waits for a disk. A
thread named ``log-reader`` reads what the page cache lacks. Files are never mapped: a truncated one
would kill the process.

Invariant: at most `descriptors_max` descriptors stay open between reads; one in use is not
closed. If the process has none left, reads wait for one as they wait for a disk. `bytes_read`
counts the bytes that the kernel returned. A read gives fewer bytes only where the file ends or is
missing; one that fails raises, so that nobody takes a disk's trouble for damage.
"""

import asyncio
import errno
import os
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from dssd.descriptors import shortage_in
from dssd.log.disk_errors import unreadable

DESCRIPTOR_WAIT_S = 0.05
"""How long a read waits before it asks again for a descriptor when the process has none left."""

LOG_READER_THREADS = 2
"""How many threads read what is not in the page cache."""


_NOT_NOW = frozenset({errno.EAGAIN, errno.EOPNOTSUPP, errno.ENOSYS})


class _OpenFile:
    """A descriptor and how many reads use it."""

    __slots__ = ("dropped", "fd", "users")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.users = 0
        self.dropped = False


class FileReader:
    """Reads of all files of the log."""

    def __init__(self, descriptors_max: int) -> None:
        self._descriptors_max = descriptors_max
        self._open: OrderedDict[str, _OpenFile] = OrderedDict()
        """By path as text: hashing a `Path` takes as long as reading a page."""
        self._threads = ThreadPoolExecutor(LOG_READER_THREADS, thread_name_prefix="log-reader")
        self.bytes_read = 0

    async def read(self, path: Path, position: int, size: int) -> bytes:
        """Up to ``size`` bytes at a position: fewer where the file ends.

        Raises:
            LogUnreadable: the read failed; it may be tried again.
        """
        return bytes(await self.view(path, position, size))

    async def read_anew(self, path: Path, position: int, size: int) -> bytes:
        """As `read`, past the page cache where the kernel agrees: what it holds may be wrong.

        Raises:
            LogUnreadable: the read failed; it may be tried again.
        """
        with suppress(FileNotFoundError):
            file = await self._opened(str(path))
            os.posix_fadvise(file.fd, position, size, os.POSIX_FADV_DONTNEED)
        return await self.read(path, position, size)

    async def view(self, path: Path, position: int, size: int) -> memoryview:
        """As `read`, without a copy; the view keeps all memory of the read.

        Raises:
            LogUnreadable: the read failed; it may be tried again.
        """
        try:
            file = await self._opened(str(path))
        except FileNotFoundError:
            return memoryview(b"")
        file.users += 1
        try:
            buffer = bytearray(size)
            view = memoryview(buffer)
            done = _read_now(file.fd, view, position)
            if done < size:
                done += await asyncio.get_running_loop().run_in_executor(
                    self._threads, _read_waiting, file.fd, view[done:], position + done
                )
        except OSError as error:
            # The descriptor may be what is stale, so the next try opens the file anew.
            self._drop(str(path))
            raise unreadable(path, error) from error
        finally:
            file.users -= 1
            self._close_unused(file)
        self.bytes_read += done
        return view[:done]

    def drop(self, path: Path) -> None:
        """Close a file that will be removed; reads in progress finish first."""
        self._drop(str(path))

    def _drop(self, path: str) -> None:
        file = self._open.pop(path, None)
        if file is not None:
            file.dropped = True
            self._close_unused(file)

    def close(self) -> None:
        """Close all files and end the threads."""
        self._threads.shutdown(wait=True)
        for path in list(self._open):
            self._drop(path)

    async def _opened(self, path: str) -> _OpenFile:
        while True:
            file = self._open.get(path)
            if file is not None:
                self._open.move_to_end(path)
                return file
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                raise
            except OSError as error:
                if shortage_in(error) is None:
                    raise unreadable(Path(path), error) from error
                await self._make_way()
                continue
            return self._keep(path, fd)

    async def _make_way(self) -> None:
        """Close the file that was read longest ago; if there is none, wait for a descriptor."""
        if self._open:
            self._drop(next(iter(self._open)))
        else:
            await asyncio.sleep(DESCRIPTOR_WAIT_S)

    def _keep(self, path: str, fd: int) -> _OpenFile:
        file = self._open[path] = _OpenFile(fd)
        while len(self._open) > self._descriptors_max:
            self._drop(next(iter(self._open)))
        return file

    def _close_unused(self, file: _OpenFile) -> None:
        if file.dropped and file.users == 0:
            os.close(file.fd)


def _read_now(fd: int, view: memoryview, position: int) -> int:
    """Read what the page cache has, without waiting; returns how many bytes."""
    try:
        return os.preadv(fd, [view], position, os.RWF_NOWAIT)
    except OSError as error:
        if error.errno in _NOT_NOW:
            return 0
        raise


def _read_waiting(fd: int, view: memoryview, position: int) -> int:
    """Read up to where the view or the file ends; returns how many bytes."""
    done = 0
    while done < len(view):
        count = os.preadv(fd, [view[done:]], position + done)
        if count == 0:
            break
        done += count
    return done
