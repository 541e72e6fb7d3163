"""A daemon with a fault: ``broken_daemon.py FAULT ARGUMENTS OF DSSD``; the faults are below."""

import errno
import os
import sqlite3
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from dss_core.errors import StoreDamaged
from dssd.__main__ import main
from dssd.leaders.registry import Registry
from dssd.log.segment_log import SegmentLog
from dssd.rpc.log import LogServicer
from dssd.store.port import Put
from dssd.store.rows import TopicRow
from dssd.store.transactions import CommitRequest, Outcome, Request, Transactions


async def _blunder(self: object, request: object, context: object) -> None:
    raise ZeroDivisionError("a programmer's error")


def _blunder_in_a_call() -> None:
    LogServicer.Publish = _blunder  # type: ignore[assignment, method-assign] # that is the fault


def _blunder_where_a_question_asks_the_leaders() -> None:
    def snapshot(self: object, group_id: int) -> NoReturn:
        raise ZeroDivisionError("a programmer's error")

    Registry.snapshot = snapshot  # type: ignore[method-assign] # that is the fault


class _Once:
    """Raises the first time that it is called, then does what it stands for."""

    def __init__(self, usual: Callable[..., Any]) -> None:
        self._usual = usual
        self._has_raised = False

    def __get__(self, owner: object, kind: type) -> Callable[..., Any]:
        return partial(self, owner)

    def __call__(self, *given: object, **more: object) -> Any:  # noqa: ANN401 - as what it stands for
        if not self._has_raised:
            self._has_raised = True
            raise ZeroDivisionError("a programmer's error")
        return self._usual(*given, **more)


SEAMS = (
    "heap_upkeep.HeapUpkeep.look",
    "topics.retention.RetentionSchedule.enforce",
    "topics.queue_trims.QueueTrims.trim",
    "leaders.retention_ahead.RetentionAhead.look",
    "leaders.gone_streams.GoneStreams.sweep",
    "operations.pause_ends.PauseEnds._next_s",
    "operations.history.History.trim",
    "schedules.book.Book.names",
    "questions.samples.Sampler.look",
    "questions.watch_looks.Looks.look",
    "jobs.jobs.Jobs.tick",
    "rpc.slow_consumers.SlowConsumerWatch.look",
    "rpc.connection_bounds.Connections._look",
    "rpc.arrivals.ArrivalWatch.look",
    "rpc.login_watch.LoginWatch.look",
    "metrics.collection.put_disk",
    "schedules.tasks.lag_check._LagCheck.work",
    "rpc.topics.TopicsServicer.List",
)
"""Of each that stands beside the core, something that its loop, its task or its call calls."""
PACES = {
    "heap_upkeep": "HEAP_LOOK_S",
    "jobs.jobs": "TICK_S",
    "leaders.retention_ahead": "RETENTION_AHEAD_EVERY_S",
    "rpc.slow_consumers": "CLOG_LOOK_S",
    "supervision.containment": "SERVICE_PAUSE_S",
}
"""Pauses that a test does not wait for."""


def _placed(seam: str) -> tuple[object, str]:
    """The class or the module that has it, and its name there."""
    room, _, name = seam.rpartition(".")
    module, _, owner = room.rpartition(".")
    if owner.islower():
        return import_module(f"dssd.{room}"), name
    return getattr(import_module(f"dssd.{module}"), owner), name


def _blunder_once_in_all_that_stands_beside_the_core() -> None:
    for seam in SEAMS:
        holder, name = _placed(seam)
        setattr(holder, name, _Once(getattr(holder, name)))
    for module, pace in PACES.items():
        vars(import_module(f"dssd.{module}"))[pace] = 0.01


def _fail_to_store_a_topic(error: Exception) -> None:
    usual = Transactions.apply

    def apply(self: Transactions, requests: Sequence[Request]) -> list[Outcome]:
        commits = [each for each in requests if isinstance(each, CommitRequest)]
        writes = [write for each in commits for write in each.writes]
        if any(isinstance(write, Put) and isinstance(write.row, TopicRow) for write in writes):
            raise error
        return usual(self, requests)

    Transactions.apply = apply  # type: ignore[method-assign] # that is the fault


def _blunder_in_the_stores_thread() -> None:
    _fail_to_store_a_topic(ZeroDivisionError("a programmer's error"))


def _find_a_damaged_row() -> None:
    reason = "a row is not as it was written"
    _fail_to_store_a_topic(StoreDamaged(path="store.sqlite", reason=reason))


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
    "blunder-of-leaders": _blunder_where_a_question_asks_the_leaders,
    "blunders-beside": _blunder_once_in_all_that_stands_beside_the_core,
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
