"""Every task of this daemon, in one list.

What a part of the daemon can do by the clock is made a `Task` in a module beside this one, and
named here. Tasks stand below questions and the wire, so what they need of these comes as functions.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dssd.clock import Clock
from dssd.events.model import Note
from dssd.schedules.tasks.alert import Alerts
from dssd.schedules.tasks.backup import BackupPlace, Write, backup
from dssd.schedules.tasks.checkpoint import checkpoint
from dssd.schedules.tasks.dead_letters import (
    Begin,
    DeadCounts,
    dlq_check,
    dlq_expire,
    dlq_redrive,
)
from dssd.schedules.tasks.export import Endpoint, export
from dssd.schedules.tasks.lag_check import Lags, lag_check
from dssd.schedules.tasks.model import Tasks
from dssd.schedules.tasks.rebalance import Change, rebalance
from dssd.schedules.tasks.retention import retention
from dssd.schedules.tasks.scrub import Scrub, scrub
from dssd.schedules.tasks.sessions import sessions
from dssd.schedules.tasks.snapshot import Gather, snapshot
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue

EXPORTS, HOOKS, SUPPORT = "exports", "hooks", "support"
"""Directories in the data directory: exported topics, programs that alerts may run, and support
snapshots."""


@dataclass(frozen=True, slots=True)
class TaskParts:
    """What tasks ask of the rest of the daemon."""

    data_dir: Path
    clock: Clock
    note: Note
    catalogue: Catalogue
    write_back: Callable[[], Awaitable[int]]
    """Writes the store's log back; returns how many bytes it had."""
    read_sealed: Scrub
    enforce_retention: Callable[[], Awaitable[int]]
    discard_expired: Callable[[], Awaitable[None]]
    sessions_kept: Callable[[], int]
    groups: Callable[[], Sequence[GroupRow]]
    change: Change
    begin: Begin
    lags: Lags
    dead_counts: DeadCounts
    gather: Gather
    endpoint: Endpoint
    write_backup: Write
    backup_place: BackupPlace | None


def built_in(parts: TaskParts) -> Tasks:
    """The tasks."""
    return Tasks(
        [
            backup(parts.write_backup, parts.backup_place),
            checkpoint(parts.write_back),
            dlq_check(parts.dead_counts),
            dlq_expire(parts.groups, parts.begin, parts.clock),
            dlq_redrive(parts.groups, parts.begin, parts.clock),
            export(parts.endpoint, parts.data_dir / EXPORTS),
            lag_check(parts.lags, Alerts(parts.data_dir / HOOKS), parts.note, parts.clock),
            rebalance(parts.groups, parts.change),
            retention(parts.enforce_retention),
            scrub(parts.catalogue, parts.read_sealed, parts.note),
            sessions(parts.discard_expired, parts.sessions_kept),
            snapshot(parts.gather, parts.data_dir / SUPPORT, parts.clock),
        ]
    )
