"""The kinds of operation that operators plan, in one table.

Those of schedules come from `dssd.schedules`, and join it where the daemon is put together.
"""

from typing import Protocol

from dss_core.changes import (
    CancelJob,
    CloseSession,
    CreateJob,
    DiscardDeadLetters,
    EditGroup,
    EditTopic,
    Evict,
    ImportOffsets,
    MoveCursors,
    PauseGroup,
    PauseJob,
    Rebalance,
    RedriveDeadLetters,
    RemoveGroup,
    RemoveJob,
    RemoveTopic,
    ResumeGroup,
    ResumeJob,
    RevokeGrant,
    SkipRecords,
    TransferGrant,
)
from dssd.clock import Clock
from dssd.jobs.jobs import Jobs
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.log.port import BulkLog
from dssd.operations.kinds.cursors import CursorMoves
from dssd.operations.kinds.dead_letters import DeadLetters
from dssd.operations.kinds.eviction import Evictions
from dssd.operations.kinds.group_edits import GroupEdits
from dssd.operations.kinds.hand_over import HandOvers
from dssd.operations.kinds.jobs import JobCreations, JobEdits, JobRemovals
from dssd.operations.kinds.pause import PAUSE, RESUME, Pauses
from dssd.operations.kinds.removals import GroupRemovals, TopicRemovals
from dssd.operations.kinds.sessions import SessionClosures
from dssd.operations.kinds.topic_edits import EditedLog, TopicEdits
from dssd.operations.plans import KindTable
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
) -> KindTable:
    """The table, over the daemon's parts."""
    cursors = CursorMoves(store, groups, registry, catalogue, log)
    dead_letters = DeadLetters(store, groups, registry, log)
    group_edits = GroupEdits(store, groups, registry)
    topic_edits = TopicEdits(store, groups, registry, catalogue, log, clock)
    group_removals = GroupRemovals(groups, registry)
    topic_removals = TopicRemovals(groups, registry, catalogue, log, jobs)
    closures = SessionClosures(sessions)
    hand_overs = HandOvers(store, groups, registry)
    evictions = Evictions(store, groups, registry, clock)
    pauses = Pauses(groups, registry, clock)
    creations = JobCreations(jobs, catalogue, log, store, clock)
    job_edits = JobEdits(jobs, log, store, clock)
    job_removals = JobRemovals(jobs, store)
    return KindTable(
        by_change={
            MoveCursors: cursors,
            ImportOffsets: cursors,
            SkipRecords: cursors,
            RedriveDeadLetters: dead_letters,
            DiscardDeadLetters: dead_letters,
            EditGroup: group_edits,
            EditTopic: topic_edits,
            RemoveGroup: group_removals,
            RemoveTopic: topic_removals,
            CloseSession: closures,
            Rebalance: hand_overs,
            TransferGrant: hand_overs,
            RevokeGrant: hand_overs,
            Evict: evictions,
            PauseGroup: pauses,
            ResumeGroup: pauses,
            CreateJob: creations,
            PauseJob: job_edits,
            ResumeJob: job_edits,
            CancelJob: job_edits,
            RemoveJob: job_removals,
        },
        by_name={
            "offsets": cursors,
            "records": cursors,
            "dlq": dead_letters,
            "groups.edit": group_edits,
            "topics.edit": topic_edits,
            "groups.rm": group_removals,
            "topics.rm": topic_removals,
            "sessions.close": closures,
            "groups.rebalance": hand_overs,
            "grants": hand_overs,
            "borrowers": evictions,
            PAUSE: pauses,
            RESUME: pauses,
            "jobs": job_edits,
            "jobs.create": creations,
            "jobs.rm": job_removals,
        },
    )
