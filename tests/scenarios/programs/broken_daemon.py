"""A daemon with a fault: ``broken_daemon.py FAULT ARGUMENTS OF DSSD``; the faults are below."""

import errno
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from dss_core.errors import StoreDamaged
from dssd.__main__ import main
from dssd.log.segment_log import SegmentLog
from dssd.rpc.topics import TopicsServicer
from dssd.store.transactions import Transactions


async def _blunder(self: object, request: object, context: object) -> None:
    raise ZeroDivisionError("a programmer's error")


def _blunder_in_a_call() -> None:
    TopicsServicer.List = _blunder  # type: ignore[assignment, method-assign] # that is the fault


def _blunder_in_the_stores_thread() -> None:
    def apply(self: object, requests: object) -> None:
        raise ZeroDivisionError("a programmer's error")

    Transactions.apply = apply  # type: ignore[assignment, method-assign] # that is the fault


def _find_a_damaged_row() -> None:
    def apply(self: object, requests: object) -> None:
        raise StoreDamaged(path="store.sqlite", reason="a row is not as it was written")

    Transactions.apply = apply  # type: ignore[assignment, method-assign] # that is the fault


def _refuse_what_the_store_would_write() -> None:
    def apply(self: object, requests: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    Transactions.apply = apply  # type: ignore[assignment, method-assign] # that is the fault


def _find_no_room_for_the_log() -> None:
    async def open_(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    SegmentLog.open = open_  # type: ignore[method-assign] # that is the fault


def _fail_to_sync() -> None:
    def fdatasync(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    os.fdatasync = fdatasync  # type: ignore[assignment] # that is the fault


def _fail_reads_while_a_file_says_so() -> None:
    usual = os.preadv
    marker = Path(sys.argv[sys.argv.index("--data-dir") + 1]) / "unreadable"

    def preadv(descriptor: int, buffers: list[Any], position: int, flags: int = 0) -> int:
        if marker.exists():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return usual(descriptor, buffers, position, flags)

    os.preadv = preadv  # type: ignore[assignment] # that is the fault


FAULTS: dict[str, Callable[[], None]] = {
    "blunder": _blunder_in_a_call,
    "thread": _blunder_in_the_stores_thread,
    "damaged": _find_a_damaged_row,
    "full": _refuse_what_the_store_would_write,
    "no-room": _find_no_room_for_the_log,
    "disk": _fail_to_sync,
    "unreadable": _fail_reads_while_a_file_says_so,
}

if __name__ == "__main__":
    FAULTS[sys.argv[1]]()
    sys.exit(main(sys.argv[2:]))
