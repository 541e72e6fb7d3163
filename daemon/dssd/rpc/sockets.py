"""Finds gRPC's sockets among the descriptors of this process, because gRPC does not expose them.

Invariant: nothing but a socket is duplicated or closed here. Once a process closes any descriptor
of a file, the kernel drops all its locks on that file. So a duplicate of one of the store's, closed
again, would take away the lock with which SQLite keeps other processes out.
"""

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager

DESCRIPTORS = "/proc/self/fd"


def descriptors() -> list[int]:
    """The numbers of all open descriptors.

    Raises:
        OSError: none is left to look with.
    """
    # Of 4,096 connections, paths would take three times as long, twice a second.
    return [int(name) for name in os.listdir(DESCRIPTORS)]  # noqa: PTH208 - see above


def socket_inode(descriptor: int) -> int | None:
    """Which socket it is; None where it is none, or was closed meanwhile."""
    try:
        file = os.fstat(descriptor)
    except OSError:
        return None
    return file.st_ino if stat.S_ISSOCK(file.st_mode) else None


@contextmanager
def borrowed(descriptor: int) -> Iterator[socket.socket]:
    """Borrow a socket for a query; it stays gRPC's and is not closed.

    gRPC may close it at any time, and its number may then name another socket.

    Raises:
        OSError: it is no socket, or it was closed.
    """
    asked = socket.socket(fileno=descriptor)
    try:
        yield asked
    finally:
        asked.detach()


@contextmanager
def pinned(descriptor: int, inode: int) -> Iterator[socket.socket]:
    """Duplicate a socket, so that the number stays valid whatever gRPC closes.

    Raises:
        OSError: it was closed, or no descriptor is left.
    """
    if socket_inode(descriptor) != inode:
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
    # The number may come to name another file here, but never one of the store: those are open from
    # before the first connection until after the last.
    own = os.dup(descriptor)
    try:
        if socket_inode(own) != inode:
            raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
        with borrowed(own) as connection:
            yield connection
    finally:
        os.close(own)
