"""Opens the parts of a daemon in the order of their dependencies; they close in reverse.

::

    store ▸ log ▸ catalogue ▸ events ▸ groups ▸ registry ▸ sessions ▸ jobs ▸ operations ▸ questions
          ▸ schedules ▸ tasks ▸ access

Invariant: the stack closes every opened part, also if a later part fails to open. This
module serves nobody, and knows no address.
"""

import errno
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from dss_core.errors import DiskFailed, DiskFull
from dssd.access.access import Access
from dssd.backups.backups import Backups
from dssd.clock import Clock
from dssd.config import Config
from dssd.data_directory import DataDirectory
from dssd.events.events import Events
from dssd.jobs.jobs import Jobs
from dssd.jobs.staging import Staging
from dssd.leaders.dead_letters import DeadLetterPlaces
from dssd.leaders.gone_streams import GoneStreams
from dssd.leaders.groups import Groups
from dssd.leaders.reached_offsets import reached_offsets
from dssd.leaders.registry import Registry
from dssd.leaders.retention_losses import RetentionLosses
from dssd.leaders.unused_groups import UnusedGroups
from dssd.log.segment_log import SegmentLog
from dssd.operations.kind_table import operation_kinds
from dssd.operations.operations import Operations
from dssd.ownership.directory_guard import DirectoryGuard
from dssd.questions.questions import Questions
from dssd.questions.watch_looks import Looks
from dssd.questions.watches import Watches
from dssd.rpc.acting import Acting
from dssd.rpc.demands import Known
from dssd.schedules.book import Book
from dssd.schedules.definition_kinds import DefinitionKinds
from dssd.schedules.schedules import Schedules
from dssd.schedules.task_runs import TaskRunKind, TaskRuns
from dssd.schedules.tasks.model import Tasks
from dssd.schedules.tasks.registry import built_in
from dssd.sessions.sessions import Sessions
from dssd.start_findings import tell_start_findings
from dssd.store.paging import scan_all
from dssd.store.rows import StorageTopicRow
from dssd.store.sqlite import SqliteStore
from dssd.task_wiring import Facts, TaskWiring
from dssd.topics.catalogue import Catalogue
from dssd.topics.old_storage_topics import OldStorageTopics
from dssd.topics.retention import RetentionSchedule

Failed = Callable[[BaseException], None]
"""Receives errors that must end the process; may be called on any thread."""


@dataclass(frozen=True, slots=True)
class Parts:
    """All that was opened, below the server."""

    guard: DirectoryGuard
    store: SqliteStore
    log: SegmentLog
    catalogue: Catalogue
    events: Events
    groups: Groups
    registry: Registry
    unused: UnusedGroups
    sessions: Sessions
    jobs: Jobs
    operations: Operations
    schedules: Schedules
    tasks: Tasks
    retention: RetentionSchedule
    unread: RetentionLosses
    questions: Questions
    watches: Watches
    access: Access
    known: Known
    acting: Acting
    gone: GoneStreams
    backups: Backups
    dead_letters: DeadLetterPlaces


async def opened(
    config: Config,
    clock: Clock,
    boot_id: bytes,
    directory: DataDirectory,
    stack: AsyncExitStack,
    failed: Failed,
    facts: Facts,
) -> Parts:
    """The parts of a daemon on a directory that it has locked; the stack closes them.

    Raises:
        DiskFull, DiskFailed, StoreDamaged, DataDirectoryReplaced: one cannot be opened.
    """
    guard, store = await _store(directory, stack, failed)
    log = await _log(directory, store, stack, failed)
    catalogue = await Catalogue.open(store, log, wall_ms=clock.wall_ms)
    events = await stack.enter_async_context(await Events.open(store, clock))
    tell_start_findings(events.note, directory.path, log, catalogue)
    groups = await Groups.open(store, catalogue, log, clock)
    registry = Registry(store, groups, catalogue, log, clock, boot_id=boot_id, teller=events)
    await stack.enter_async_context(registry)
    sessions = await Sessions.open(store, catalogue, log, groups, registry, clock, events=events)
    await stack.enter_async_context(sessions)
    jobs = await _jobs(directory, store, catalogue, log, clock, events)
    stack.push_async_callback(jobs.settle)
    backups = await _backups(directory, store, log, catalogue, clock, events)
    unread = RetentionLosses(catalogue, groups, registry, clock, events)
    emptied = OldStorageTopics(store, catalogue, log, clock)
    retention = RetentionSchedule(catalogue, log, clock, unread, emptied)
    operations = await Operations.open(store, groups, registry, clock, events)
    answering = (groups, registry, catalogue, log, sessions, operations, clock)
    questions = Questions(*answering, events.error_of)
    book, task_runs = await Book.open(store), TaskRuns(events.note)
    access = await Access.open(store, clock)
    known = Known(catalogue, groups, operations, jobs, book)
    acting = Acting(access, known)
    check = acting.check_schedule
    schedules = Schedules(store, book, operations, task_runs, clock, events.note, check)
    asked = TaskWiring(config, events, backups, groups, operations, questions, schedules, facts)
    tasks = built_in(asked.parts(directory.path, clock, store, log, catalogue, sessions, retention))
    kinds = operation_kinds(
        store,
        *answering[:4],
        sessions,
        jobs,
        clock,
        events.note,
        operations,
        lambda name: access.present(name) is not None,
    )
    defining = DefinitionKinds(store, book, tasks, clock).kinds()
    kinds = kinds.joined(TaskRunKind(tasks, task_runs).kinds()).joined(defining)
    await stack.enter_async_context(operations.running(kinds))
    await stack.enter_async_context(schedules)
    watched = (groups, registry, catalogue, questions.overviews, operations, sessions)
    looks = Looks(*watched, clock, schedules.views, jobs.all)
    stack.callback(guard.look)  # closing would write to whatever is at its paths now
    return Parts(
        guard=guard, store=store, log=log, catalogue=catalogue, events=events, groups=groups,
        registry=registry, unused=UnusedGroups(store, groups, registry, clock),
        sessions=sessions, jobs=jobs, operations=operations, schedules=schedules, tasks=tasks,
        retention=retention, unread=unread, questions=questions, watches=Watches(looks, events),
        access=access, known=known, acting=acting, gone=GoneStreams(store, catalogue, groups),
        backups=backups, dead_letters=DeadLetterPlaces(groups, registry, catalogue, log),
    )  # fmt: skip


async def _jobs(
    directory: DataDirectory,
    store: SqliteStore,
    catalogue: Catalogue,
    log: SegmentLog,
    clock: Clock,
    events: Events,
) -> Jobs:
    """The bulk jobs; tells the ends that the previous daemon did not tell."""
    staging = Staging(directory.staging_path)
    jobs = await Jobs.open(store, catalogue, log, staging, clock, events.note)
    jobs.tell_ends(events.newest_at_open_ms)
    return jobs


async def _backups(
    directory: DataDirectory,
    store: SqliteStore,
    log: SegmentLog,
    catalogue: Catalogue,
    clock: Clock,
    events: Events,
) -> Backups:
    data = (store, log.files(), catalogue.incarnation)
    return await Backups.open(directory, *data, clock, events)


async def _store(
    directory: DataDirectory, stack: AsyncExitStack, failed: Failed
) -> tuple[DirectoryGuard, SqliteStore]:
    """The store, and the guard that checks that its files stay in place."""
    directory.refuse_lost_store()
    guard = stack.enter_context(DirectoryGuard(directory, failed))
    store = await SqliteStore.open(directory.store_path, on_failure=failed)
    stack.push_async_callback(store.close)
    guard.begin()
    stack.callback(guard.look)  # closing would write to whatever is at its paths now
    return guard, store


async def _log(
    directory: DataDirectory, store: SqliteStore, stack: AsyncExitStack, failed: Failed
) -> SegmentLog:
    storage_topics = [found.row for found in await scan_all(store, StorageTopicRow)]
    try:
        log = await SegmentLog.open(
            directory.log_path,
            store,
            storage_topics=storage_topics,
            ask_reached=partial(reached_offsets, store),
            on_failure=failed,
        )
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull from error
        raise DiskFailed(reason=f"log: {error}") from error
    stack.push_async_callback(log.close)
    return log
