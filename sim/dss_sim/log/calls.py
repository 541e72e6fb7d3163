"""The log's system calls on files below a root: done, recorded as steps, and struck by faults.

Invariant: a change of a file below the root is both done and recorded, or neither; a call that
would change a file and is not known here fails. After `Died` nothing is done any more. Calls that
change nothing, and calls on other files, go to the system unchanged.
"""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn

from dss_sim.log.faults import Faults, Kind
from dss_sim.log.one_thread import Died, swapped
from dss_sim.power_loss.operations import (
    MakeDirectory,
    OpenFile,
    Operation,
    Rename,
    Reserve,
    Resize,
    Step,
    Sync,
    SyncFailed,
    Unlink,
    Write,
)

Name = str | PathLike[str]
Piece = bytes | bytearray | memoryview

_open, _close = os.open, os.close
_pwritev, _preadv, _ftruncate, _posix_fallocate = (
    os.pwritev,
    os.preadv,
    os.ftruncate,
    os.posix_fallocate,
)
_fsync, _fdatasync = os.fsync, os.fdatasync
_rename, _unlink, _mkdir = os.rename, os.unlink, os.mkdir

REFUSED = (
    *("replace", "remove", "rmdir", "link", "symlink", "truncate"),
    *("write", "writev", "pwrite", "sendfile", "copy_file_range", "dup", "dup2"),
)
"""Calls that change files or descriptors and that the log never uses."""
NOT_NOW = 0.3
"""How often data to be read is not in the page cache."""


class Calls:
    """The calls of one process."""

    def __init__(self, root: Path, steps: list[Step], faults: Faults) -> None:
        self._root = fspath(root)
        self._steps = steps
        self._faults = faults
        self._handles: dict[int, int | None] = {}
        """By descriptor: the handle if it may change something, else None."""
        self._paths: dict[int, str] = {}
        """By descriptor."""
        self._owed: dict[int, int] = {}
        """Sync errors that a descriptor has yet to get, because the sync of another one failed: the
        system tells each descriptor once."""
        self._folders: set[int] = set()
        self._written: set[int] = set()
        """Handles of files that grew: their sync may fail for want of room."""
        self._dead = False

    @property
    def place(self) -> int:
        """How many steps have been recorded."""
        return len(self._steps)

    def die(self) -> NoReturn:
        """End the process here.

        Raises:
            Died: always.
        """
        self._dead = True
        raise Died

    def end(self) -> None:
        """Do nothing from here on."""
        self._dead = True

    def close_all(self) -> None:
        """Close all descriptors, as the end of a process does."""
        for fd in self._handles:
            _close(fd)
        self._handles.clear()

    # What the log calls

    def open(self, path: Name, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """`os.open`."""
        ours = self._below_root(path)
        if ours is None:
            return _open(path, flags, mode, dir_fd=dir_fd)
        self._check_alive()
        changing = bool(flags & (os.O_WRONLY | os.O_RDWR))
        creates = bool(flags & os.O_CREAT) and not os.path.lexists(path)
        if creates:
            self._strike("open")
        fd = _open(path, flags, mode)
        self._handles[fd] = None
        self._paths[fd] = ours
        if changing or flags & os.O_DIRECTORY:
            handle = self._handles[fd] = len(self._steps)
            if flags & os.O_DIRECTORY:
                self._folders.add(handle)
            self._note(OpenFile(handle, ours, creates, bool(flags & os.O_TRUNC)))
        return fd

    def close(self, fd: int) -> None:
        """`os.close`."""
        self._handles.pop(fd, None)
        self._owed.pop(fd, None)
        _close(fd)

    def pwritev(self, fd: int, buffers: Sequence[Piece], offset: int, flags: int = 0) -> int:
        """`os.pwritev`."""
        handle = self._handle(fd)
        content = b"".join(buffers)
        if handle is None:
            return _pwritev(fd, buffers, offset, flags)
        self._check_alive()
        grows = offset + len(content) > os.fstat(fd).st_size
        fault = self._faults.struck("pwritev")
        if fault == "full" and not grows:
            # Overwriting needs no new room.
            fault = None
        arrives = len(content) if fault is None else self._faults.part_of(len(content))
        if fault == "short":
            arrives = max(min(1, len(content)), arrives)
        if arrives:
            # A descriptor that may not write fails here, and nothing is recorded.
            assert _pwritev(fd, [content[:arrives]], offset, flags) == arrives
            self._note(Write(handle, offset, content[:arrives]))
            if grows:
                self._written.add(handle)
        # The kernel reports a partial write as a success, and the error only at the next call.
        if fault in ("kill", "eio") or not arrives:
            self._fail(fault)
        return arrives

    def preadv(
        self, fd: int, buffers: Sequence[bytearray | memoryview], offset: int, flags: int = 0
    ) -> int:
        """`os.preadv`; a read that may not wait gives as much as chance says."""
        if fd not in self._handles or not flags:
            return _preadv(fd, buffers, offset, flags)
        if self._faults.chance.random() < NOT_NOW:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return _preadv(fd, buffers, offset)

    def ftruncate(self, fd: int, length: int) -> None:
        """`os.ftruncate`."""
        handle = self._handle(fd)
        if handle is not None:
            self._strike("ftruncate")
        _ftruncate(fd, length)
        if handle is not None:
            self._note(Resize(handle, length))
            self._written.discard(handle)

    def posix_fallocate(self, fd: int, offset: int, length: int) -> None:
        """`os.posix_fallocate`."""
        handle = self._handle(fd)
        if handle is not None:
            self._strike("posix_fallocate")
        _posix_fallocate(fd, offset, length)
        if handle is not None:
            self._note(Reserve(handle, offset + length))

    def fsync(self, fd: int) -> None:
        """`os.fsync`; it does not wait for the real disk, which would only cost time."""
        self._sync("fsync", _fsync, fd)

    def fdatasync(self, fd: int) -> None:
        """`os.fdatasync`."""
        self._sync("fdatasync", _fdatasync, fd)

    def rename(self, src: Name, dst: Name) -> None:
        """`os.rename`."""
        source, target = self._below_root(src), self._below_root(dst)
        if source is not None and target is not None:
            self._strike("rename")
            _rename(src, dst)
            self._note(Rename(source, target))
            return
        assert source is target, "nothing is moved over the border of the root"
        _rename(src, dst)

    def unlink(self, path: Name, *, dir_fd: int | None = None) -> None:
        """`os.unlink`."""
        ours = self._below_root(path)
        if ours is None:
            _unlink(path, dir_fd=dir_fd)
            return
        if os.path.lexists(path):
            self._strike("unlink")
        _unlink(path)
        self._note(Unlink(ours))

    def mkdir(self, path: Name, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        """`os.mkdir`."""
        ours = self._below_root(path)
        if ours is not None and not os.path.lexists(path):
            self._strike("mkdir")
        _mkdir(path, mode, dir_fd=dir_fd)
        if ours is not None:
            self._note(MakeDirectory(ours))

    def refuse(self, real: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        """A call that is not known here: it is let through for other files only. Its types are
        those of `real`."""
        ours = any(one in self._handles for one in arguments if isinstance(one, int))
        named = [one for one in arguments if isinstance(one, str | PathLike)]
        ours = ours or any(self._below_root(one) is not None for one in named)
        assert not ours, f"the simulated disk does not know {real.__name__}{arguments}"
        return real(*arguments)

    # How they are done

    def _sync(self, call: str, real: Callable[[int], None], fd: int) -> None:
        if fd not in self._handles:
            real(fd)
            return
        self._check_alive()
        handle = self._handle(fd)
        if handle is None:
            handle = self._handles[fd] = len(self._steps)
            self._note(OpenFile(handle, self._paths[fd]))
        fault = self._faults.struck(call)
        folder = handle in self._folders
        has_room = fault == "full" and handle not in self._written
        if fault is None or has_room:
            self._note(Sync(handle))
            self._written.discard(handle)
            if fd in self._owed:
                self._raise(self._owed.pop(fd))
            return
        if fault != "kill" and not folder:
            self._note(SyncFailed(handle))
            self._owe(fd, errno.EIO if fault == "eio" else errno.ENOSPC)
        self._fail(fault)

    def _owe(self, failed: int, error: int) -> None:
        """Let each other descriptor of the file get the error at its next sync."""
        path = self._paths[failed]
        self._owed |= {fd: error for fd in self._handles if self._paths[fd] == path}
        self._owed.pop(failed, None)

    def _strike(self, call: str) -> None:
        """Fail the call if a fault strikes it; else it is to be done."""
        self._check_alive()
        fault = self._faults.struck(call)
        if fault is not None:
            self._fail(fault)

    def _fail(self, fault: Kind | None) -> None:
        match fault:
            case "kill":
                self.die()
            case "eio":
                self._raise(errno.EIO)
            case "full":
                self._raise(errno.ENOSPC)

    def _raise(self, error: int) -> NoReturn:
        raise OSError(error, os.strerror(error))

    def _check_alive(self) -> None:
        if self._dead:
            raise Died

    def _note(self, operation: Operation) -> None:
        at = len(self._steps)
        self._steps.append(Step(operation, at, at))

    def _handle(self, fd: int) -> int | None:
        return self._handles.get(fd)

    def _below_root(self, path: Name) -> str | None:
        text = fspath(path)
        if text == self._root:
            return ""
        if not text.startswith(f"{self._root}/"):
            return None
        return text.removeprefix(f"{self._root}/")


@contextmanager
def called(calls: Calls) -> Iterator[None]:
    """While the block runs, `os` makes its calls here; descriptors left open are closed at the
    end."""
    known = ("open", "close", "pwritev", "preadv", "ftruncate", "posix_fallocate", "fsync")
    names = (*known, "fdatasync", "rename", "unlink", "mkdir")
    others: dict[str, object] = {name: getattr(calls, name) for name in names}
    others |= {name: partial(calls.refuse, getattr(os, name)) for name in REFUSED}
    with swapped(os, **others):
        try:
            yield
        finally:
            calls.close_all()
