"""Who holds SQLite's lock on a database, as the kernel says.

A caller needs a descriptor of the file, and must not close it before SQLite closes its own: when a
process closes any descriptor of a file, the kernel drops all its locks on that file.
"""

import fcntl
import struct

_LOCK = struct.Struct("hhqqi0q")
"""The kernel's ``struct flock``: type, whence, start, length, process."""
_FIRST_BYTE = 0x40000000
"""Where SQLite has its locks: pending, reserved, and 510 bytes of shared ones."""
_BYTES = 512


def lock_holder(descriptor: int) -> int | None:
    """The process that holds a lock of SQLite on the open file; None where nobody does.

    Raises:
        OSError: the file system or the kernel does not tell.
    """
    # Ask whether a lock owned by the descriptor would conflict: it conflicts with locks of all
    # processes, our own too.
    asked = _LOCK.pack(fcntl.F_WRLCK, 0, _FIRST_BYTE, _BYTES, 0)
    kind, _, _, _, process = _LOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
    return None if kind == fcntl.F_UNLCK else process
