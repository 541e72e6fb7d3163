"""Who holds SQLite's lock on a database, as the kernel says.

Whoever asks needs a descriptor of the file, and must not close it before SQLite does: the kernel
drops all locks of a process on a file with the first descriptor of it that the process closes.
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
    # A lock that belonged to the descriptor would conflict with all that processes hold, our own
    # process too, so its conflict is what is looked for.
    asked = _LOCK.pack(fcntl.F_WRLCK, 0, _FIRST_BYTE, _BYTES, 0)
    kind, _, _, _, process = _LOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
    return None if kind == fcntl.F_UNLCK else process
