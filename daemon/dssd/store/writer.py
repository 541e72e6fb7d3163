"""The thread ``store-writer``: the only place where the database is touched.

It takes all waiting jobs, answers the questions from committed rows, applies the commits in one
transaction, and reports all answers in one call. Invariant: an answer is reported only after what
it says is durable; after a failure of the disk nothing is written any more. This module must not
know asyncio: ``answered`` brings an answer to its caller.
"""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any, TypeVar

from dss_core.errors import BackupFailed, DiskFailed, DiskFull, DssError, Stopping
from dssd.measuring.latencies import Latencies
from dssd.measuring.limits import LATENCY_BOUNDS_S
from dssd.store.database import concerns_database, described, is_full, opened
from dssd.store.reserve import Reserve
from dssd.store.transactions import CommitRequest, IdRequest, Transactions

STORE_COMMITS_PER_SYNC_MAX = 1_024
"""Commits that share one transaction: enough to make a sync cheap, few enough to bound a wait."""


THREAD = "store-writer"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Open:
    """Open the database. The first job."""

    path: Path


@dataclass(frozen=True, slots=True)
class Question:
    """Read committed rows."""

    ask: Callable[[Transactions], object]


@dataclass(frozen=True, slots=True)
class WriteBack:
    """Write the whole log back."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy the database to a new file. Other jobs are done between its pieces."""

    path: Path


@dataclass(frozen=True, slots=True)
class Close:
    """Write the log back and close the database. The last job."""


Task = CommitRequest | IdRequest | Question | Open | WriteBack | Copy | Close


class _Ended(Exception):
    """The store closes, and no caller waits for a copy."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A task, and who gets its answer."""

    task: Task
    caller: Any
    """Given back with the answer; the writer does not look at it."""


Answers = list[tuple[Job, object]]
"""Each job with its result, or with the exception that its caller gets."""


class StoreWriter:
    """Owns the thread. ``answered`` and ``failed`` are called in it.

    ``failed`` is called once, with `DiskFailed` where disk or database failed; anything else is a
    programmer's error.
    """

    def __init__(
        self, answered: Callable[[Answers], None], failed: Callable[[BaseException], None]
    ) -> None:
        self._answered = answered
        self._failed = failed
        self._jobs: SimpleQueue[Sequence[Job]] = SimpleQueue()
        self.commits = Latencies(LATENCY_BOUNDS_S)
        """Of transactions, each with all that waited for it."""
        # A daemon thread: its process may end without it at any moment, as it may be killed.
        self._thread = threading.Thread(target=self._run, name=THREAD, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread to end: it has answered `Close`, or failed."""
        self._thread.join()

    def hand_over(self, jobs: Sequence[Job]) -> None:
        """Queue jobs; those of one call share a transaction if they fit into one."""
        self._jobs.put(jobs)

    def _run(self) -> None:
        try:
            self._serve()
        except OSError as error:
            self._failed(DiskFailed(reason=f"store: {error}"))
        except BaseException as error:  # noqa: BLE001 - handed on: it ends the daemon, as it is
            if isinstance(error, sqlite3.Error) and concerns_database(error):
                error = DiskFailed(reason=f"store: {described(error)}")
            self._failed(error)

    def _serve(self) -> None:
        transactions = self._opened()
        closing: list[Job] = []
        while transactions is not None:
            jobs = self._gathered()
            closing += self._done(transactions, jobs)
            for job in jobs:
                if isinstance(job.task, Copy):
                    self._copy(transactions, job, job.task, closing)
            if closing:
                transactions.close()
                self._answered([(job, None) for job in closing])
                return

    def _done(self, transactions: Transactions, jobs: Sequence[Job]) -> list[Job]:
        """Do all jobs but copies; returns the requests to end."""
        self._answered(_questions(transactions, jobs) + self._committed(transactions, jobs))
        self._answered(_written_back(transactions, jobs))
        # On a full disk the commits stay in the write-ahead log, and the next transaction tries
        # again.
        _unless_full(transactions.write_back_if_due)
        return [job for job in jobs if isinstance(job.task, Close)]

    def _copy(self, transactions: Transactions, job: Job, copy: Copy, closing: list[Job]) -> None:
        """Copy the database; other jobs are done between the pieces."""
        failed: list[BaseException] = []

        def between() -> None:
            try:
                waiting = self._waiting()
                assert not any(isinstance(each.task, Copy) for each in waiting), "one at a time"
                closing.extend(self._done(transactions, waiting) if waiting else ())
            except BaseException as error:
                failed.append(error)
                raise
            if closing:
                raise _Ended

        outcome: object = None
        try:
            between()
            transactions.copy_to(copy.path, between)
        except _Ended:
            outcome = Stopping()
        except (sqlite3.Error, OSError) as error:
            if failed:
                raise
            outcome = BackupFailed(reason=f"the store was not copied: {error}")
        self._answered([(job, outcome)])

    def _committed(self, transactions: Transactions, jobs: Sequence[Job]) -> Answers:
        began_s = perf_counter()
        answers = _commits(transactions, jobs)
        if answers:
            self.commits.note(perf_counter() - began_s)
        return answers

    def _opened(self) -> Transactions | None:
        """The open database; None if it cannot be opened, which the caller is told."""
        (job,) = self._jobs.get()
        assert isinstance(job.task, Open)
        try:
            path = job.task.path
            transactions = Transactions(opened(path), Reserve(path))
        except DssError as error:
            self._answered([(job, error)])
            return None
        self._answered([(job, None)])
        return transactions

    def _gathered(self) -> list[Job]:
        """The waiting jobs, at least one: those that came during the last sync share the next."""
        jobs = list(self._jobs.get())
        return [*jobs, *self._waiting(STORE_COMMITS_PER_SYNC_MAX - len(jobs))]

    def _waiting(self, most: int = STORE_COMMITS_PER_SYNC_MAX) -> list[Job]:
        """The jobs that wait now, about so many."""
        jobs: list[Job] = []
        while len(jobs) < most:
            try:
                jobs += self._jobs.get_nowait()
            except Empty:
                break
        return jobs


def _questions(transactions: Transactions, jobs: Sequence[Job]) -> Answers:
    return [
        (job, _answer(transactions, job.task)) for job in jobs if isinstance(job.task, Question)
    ]


def _written_back(transactions: Transactions, jobs: Sequence[Job]) -> Answers:
    """Answers how many bytes the log had; on a full disk that it is full."""
    asked = [job for job in jobs if isinstance(job.task, WriteBack)]
    if not asked:
        return []
    written = _unless_full(transactions.write_all_back)
    return [(job, DiskFull() if written is None else written) for job in asked]


def _answer(transactions: Transactions, question: Question) -> object:
    try:
        return question.ask(transactions)
    except sqlite3.Error as error:
        if concerns_database(error):
            raise
        return error
    except (OverflowError, UnicodeEncodeError) as error:
        return error


def _commits(transactions: Transactions, jobs: Sequence[Job]) -> Answers:
    """Apply the commits; on a full disk, those that find room."""
    commits = [(job, job.task) for job in jobs if isinstance(job.task, CommitRequest | IdRequest)]
    if not commits:
        return []
    requests = [request for _, request in commits]
    outcomes: Sequence[object] | None = _unless_full(lambda: transactions.apply(requests))
    if outcomes is None:
        outcomes = _applied_on_full_disk(transactions, requests)
    return [(job, outcome) for (job, _), outcome in zip(commits, outcomes, strict=True)]


def _applied_on_full_disk(
    transactions: Transactions, requests: Sequence[CommitRequest | IdRequest]
) -> Sequence[object]:
    """Make room and try again: together, then with a larger database, then each on its own.

    After the log is written back its space is used again. So acknowledgements, which rewrite
    existing rows, go on while the disk is full; new rows in the same batch must not stop them.
    """
    _unless_full(transactions.make_room)
    outcomes = _unless_full(lambda: transactions.apply(requests))
    if outcomes is None and transactions.let_grow():
        outcomes = _unless_full(lambda: transactions.apply(requests))
        _unless_full(transactions.make_room)
    if outcomes is not None:
        return outcomes
    return [_applied_alone(transactions, request) for request in requests]


def _applied_alone(transactions: Transactions, request: CommitRequest | IdRequest) -> object:
    outcomes = _unless_full(lambda: transactions.apply([request]))
    return DiskFull() if outcomes is None else outcomes[0]


def _unless_full(work: Callable[[], T]) -> T | None:
    """The result of the work; None if the disk was full and nothing was done."""
    try:
        return work()
    except sqlite3.Error as error:
        if not is_full(error):
            raise
        return None
