"""The kinds of operation that operators plan, in one table.

Those of schedules come from `dssd.schedules`, and join it where the daemon is put together.
"""

from collections.abc import Callable
from typing import Protocol

from dss_core.changes import (
    AddStorageTopic,
    AdoptSessions,
    BuryRetries,
    CancelJob,
    Change,
    CloseSession,
    CreateJob,
    DiscardDeadLetters,
    EditGroup,
    EditTopic,
    Evict,
    GrowTopic,
    ImportOffsets,
    MoveCursors,
    PauseGroup,
    PauseJob,
    Rebalance,
    RedeliverRecords,
    RedriveDeadLetters,
    RemoveGroup,
    RemoveJob,
    RemoveTopic,
    ResumeGroup,
    ResumeJob,
    RetryNow,
    RevokeGrant,
    SetShardCount,
    SkipRecords,
    SkipRetries,
    SwitchTopic,
    TransferGrant,
)
from dssd.clock import Clock
from dssd.events.model import Note
from dssd.jobs.jobs import Jobs
from dssd.leaders.dead_letters import DeadLetterPlaces
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.log.port import BulkLog
from dssd.operations.kinds.adoption import ADOPT, SessionAdoptions
from dssd.operations.kinds.cursors import CursorMoves
from dssd.operations.kinds.dead_letters import DeadLetters
from dssd.operations.kinds.eviction import Evictions
from dssd.operations.kinds.group_edits import GroupEdits
from dssd.operations.kinds.growth import TopicGrowth
from dssd.operations.kinds.hand_over import HandOvers
from dssd.operations.kinds.jobs import JobCreations, JobEdits, JobRemovals
from dssd.operations.kinds.pause import PAUSE, RESUME, Pauses
from dssd.operations.kinds.removals import GroupRemovals, TopicRemovals
from dssd.operations.kinds.retries import Retries
from dssd.operations.kinds.sessions import SessionClosures
from dssd.operations.kinds.shard_counts import SET_COUNT, ShardCounts
from dssd.operations.kinds.shards_at_growth import Parts
from dssd.operations.kinds.topic_edits import EditedLog, TopicEdits
from dssd.operations.plans import KindTable, OperationKind
from dssd.sessions.sessions import Sessions
from dssd.store.port import Store
from dssd.topics.catalogue import Catalogue


class ChangedLog(EditedLog, BulkLog, Protocol):
    """What all kinds together ask of the log."""


def operation_kinds(
    store: Store,
    groups: Groups,
    registry: Registry,
    catalogue: Catalogue,
    log: ChangedLog,
    sessions: Sessions,
    jobs: Jobs,
    clock: Clock,
    note: Note,
    parts: Parts,
    is_principal: Callable[[str], bool],
) -> KindTable:
    """The table, over the daemon's parts: who plans which changes, and which operations are its.

    ``parts`` are the operations themselves: a growth applies others.
    """
    places = DeadLetterPlaces(groups, registry, catalogue, log)
    rows: tuple[tuple[OperationKind, tuple[type[Change], ...], tuple[str, ...]], ...] = (
        (
            CursorMoves(store, groups, registry, catalogue, log),
            (MoveCursors, ImportOffsets, SkipRecords, RedeliverRecords),
            ("offsets", "records"),
        ),
        (
            DeadLetters(store, groups, registry, log, note),
            (RedriveDeadLetters, DiscardDeadLetters),
            ("dlq",),
        ),
        (
            Retries(groups, registry, log),
            (RetryNow, SkipRetries, BuryRetries),
            ("rq",),
        ),
        (GroupEdits(store, groups, registry, catalogue), (EditGroup,), ("groups.edit",)),
        (ShardCounts(store, groups, registry, catalogue), (SetShardCount,), (SET_COUNT,)),
        (
            TopicEdits(store, groups, registry, catalogue, log, clock),
            (EditTopic,),
            ("topics.edit",),
        ),
        (
            TopicGrowth(store, groups, registry, catalogue, jobs, clock, parts),
            (AddStorageTopic, SwitchTopic, GrowTopic),
            ("topics.add-storage", "topics.switch", "topics.grow"),
        ),
        (GroupRemovals(groups, registry, jobs), (RemoveGroup,), ("groups.rm",)),
        (TopicRemovals(groups, registry, catalogue, log, jobs), (RemoveTopic,), ("topics.rm",)),
        (SessionClosures(sessions), (CloseSession,), ("sessions.close",)),
        (SessionAdoptions(sessions, is_principal), (AdoptSessions,), (ADOPT,)),
        (
            HandOvers(store, groups, registry),
            (Rebalance, TransferGrant, RevokeGrant),
            ("groups.rebalance", "grants"),
        ),
        (Evictions(store, groups, registry, clock), (Evict,), ("borrowers",)),
        (Pauses(groups, registry, clock), (PauseGroup, ResumeGroup), (PAUSE, RESUME)),
        (JobCreations(jobs, catalogue, log, store, clock, places), (CreateJob,), ("jobs.create",)),
        (JobEdits(jobs, log, store, clock), (PauseJob, ResumeJob, CancelJob), ("jobs",)),
        (JobRemovals(jobs, store), (RemoveJob,), ("jobs.rm",)),
    )
    return KindTable(
        {change: kind for kind, changes, _ in rows for change in changes},
        {name: kind for kind, _, names in rows for name in names},
    )
