"""A daemon with a fault: ``broken_daemon.py blunder|disk ARGUMENTS OF DSSD``."""

import errno
import os
import sys
from collections.abc import Callable

from dssd.__main__ import main
from dssd.rpc.topics import TopicsServicer


async def _blunder(self: object, request: object, context: object) -> None:
    raise ZeroDivisionError("a programmer's error")


def _blunder_in_a_call() -> None:
    TopicsServicer.List = _blunder  # type: ignore[assignment, method-assign] # that is the fault


def _fail_to_sync() -> None:
    def fdatasync(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    os.fdatasync = fdatasync  # type: ignore[assignment] # that is the fault


FAULTS: dict[str, Callable[[], None]] = {"blunder": _blunder_in_a_call, "disk": _fail_to_sync}

if __name__ == "__main__":
    FAULTS[sys.argv[1]]()
    sys.exit(main(sys.argv[2:]))
