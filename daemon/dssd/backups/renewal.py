"""The changes that a restore makes in the store. Ids, epochs and offsets continue far above those
of the backup, so that none that the lost daemon assigned after the backup is assigned again. A new
incarnation shows clients that the data is not the same.

::

    ids of topics, segments, groups, operations    + 2^20   one sequence, which u32 ids share
    session epochs                                 + 2^20   they begin the numbers of grants
    leader, grant and driver epochs                + 2^40   fencing tokens of before are lower
    offsets of streams that take records           + 2^40   a ceiling: a gap, as behind a kill
    incarnation                                    a new one, with the next number
    records of every group, up to those offsets    marked: perhaps handed out behind the backup
    principals                                     suspended until somebody confirms them

Retry queues and dead letters keep their offsets: only their holders read them by offset, and
session epochs fence those. Revisions and versions stay, because nothing keeps them over a restart.

Invariant: pure; the same rows give the same writes, but for the incarnation.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from dss_core.filters import TopicFilter
from dss_core.limits import RESTORE_EPOCHS_RAISED, RESTORE_OFFSETS_RAISED
from dssd.access.permissions import suspended
from dssd.events.kinds import DATA_RESTORED
from dssd.store.access_rows import PrincipalRow
from dssd.store.job_rows import JobProgressRow
from dssd.store.port import Put, Write
from dssd.store.rows import (
    CeilingRow,
    EventRow,
    GrantRow,
    GroupRow,
    IncarnationRow,
    LeaderRow,
    ProgressRow,
    Row,
    SessionRow,
    StorageTopicRow,
    TopicRow,
)
from dssd.topics.incarnation import next_incarnation

IDS_RAISED = 1 << 20
"""More ids than a daemon assigns between a backup and the loss of its disk: one a second for twelve
days. Ids of 32 bits have room for 4,095 restores."""

SESSION_EPOCHS_RAISED = 1 << 20
"""More connections than one session makes between a backup and the loss of the disk. The epoch is
the upper half of a grant's number, which has 63 bits."""

KINDS_READ: tuple[type[Row], ...] = (
    *(CeilingRow, EventRow, GrantRow, GroupRow, IncarnationRow, JobProgressRow, LeaderRow),
    *(PrincipalRow, ProgressRow, SessionRow, StorageTopicRow, TopicRow),
)

R = TypeVar("R", bound=Row)
Stream = tuple[int, int]
"""Storage topic and partition."""


class StoredRows:
    """The rows of a store, by kind."""

    def __init__(self, rows: Mapping[type[Row], Sequence[Row]]) -> None:
        self._rows = rows

    def all(self, kind: type[R]) -> list[R]:
        """Those of one kind, in key order."""
        return [row for row in self._rows.get(kind, ()) if isinstance(row, kind)]


@dataclass(frozen=True, slots=True)
class Renewal:
    """The writes of a restore."""

    writes: list[Write] = field(default_factory=list)
    incarnation: bytes = b""
    restores: int = 0
    suspended: int = 0
    """Principals that wait to be confirmed."""


def renewal(rows: StoredRows, ends: Mapping[int, Sequence[int]], at_ms: int, told: str) -> Renewal:
    """The writes that turn a backed-up store into one that can continue.

    ``ends`` are of its log, by storage topic. ``told`` is the sentence of the event.
    """
    data = next_incarnation(rows.all(IncarnationRow) or [IncarnationRow(1, b"")])
    going_on = _going_on_at(rows, ends)
    principals = [
        replace(row, permissions=suspended(row.permissions)) for row in rows.all(PrincipalRow)
    ]
    changed: list[Row] = [
        data,
        *principals,
        *(CeilingRow(*stream, ceiling=at) for stream, at in going_on.items()),
        *_epochs(rows),
        *_marked(rows, going_on, ends),
        _event(rows, at_ms, told, data),
    ]
    return Renewal(
        [Put(row) for row in changed], data.incarnation, data.number - 1, len(principals)
    )


def _going_on_at(rows: StoredRows, ends: Mapping[int, Sequence[int]]) -> dict[Stream, int]:
    """The offset at which each stream that takes records continues."""
    ceilings = {(row.storage_topic_id, row.partition): row.ceiling for row in rows.all(CeilingRow)}
    topics = {row.topic_id for row in rows.all(TopicRow) if not row.level}
    going_on: dict[Stream, int] = {}
    for part in rows.all(StorageTopicRow):
        if part.topic_id not in topics or part.ends is not None:
            continue
        own = ends.get(part.storage_topic_id, ())
        for partition in range(part.partitions):
            stream = part.storage_topic_id, partition
            end = own[partition] if partition < len(own) else 0
            going_on[stream] = max(end, ceilings.get(stream, 0)) + RESTORE_OFFSETS_RAISED
    return going_on


def _epochs(rows: StoredRows) -> Iterator[Row]:
    for leader in rows.all(LeaderRow):
        yield replace(leader, leader_epoch=leader.leader_epoch + RESTORE_EPOCHS_RAISED)
    for session in rows.all(SessionRow):
        yield replace(session, session_epoch=session.session_epoch + SESSION_EPOCHS_RAISED)
    for progress in rows.all(JobProgressRow):
        yield replace(progress, epoch=progress.epoch + RESTORE_EPOCHS_RAISED, driver="")
    for grant in rows.all(GrantRow):
        yield replace(grant, grant_epoch=grant.grant_epoch + RESTORE_EPOCHS_RAISED)


def _marked(
    rows: StoredRows, going_on: Mapping[Stream, int], ends: Mapping[int, Sequence[int]]
) -> Iterator[Row]:
    """Progress that marks every record as perhaps handed out, and new grant rows for streams
    without one: either may have changed after the backup."""
    progress = {
        (row.group_id, row.storage_topic_id, row.partition): row for row in rows.all(ProgressRow)
    }
    granted = {(row.group_id, row.storage_topic_id, row.partition) for row in rows.all(GrantRow)}
    for key in progress.keys() | set(_lent(rows)):
        _, topic, partition = key
        own = ends.get(topic, ())
        end = own[partition] if partition < len(own) else 0
        below = going_on.get((topic, partition), end)
        row = progress.get(key) or _nothing_of(key)
        yield replace(row, marked_below=max(row.marked_below, below))
    for key in set(_lent(rows)) - granted:
        yield GrantRow(*key, RESTORE_EPOCHS_RAISED, None, None, cursor_generation=0)


def _lent(rows: StoredRows) -> Iterator[tuple[int, int, int]]:
    """The streams of each group: group, storage topic, partition."""
    parts: defaultdict[int, list[StorageTopicRow]] = defaultdict(list)
    for part in rows.all(StorageTopicRow):
        parts[part.topic_id].append(part)
    topics = [
        (row.topic_id, [TopicFilter.parse(each) for each in row.patterns.splitlines()])
        for row in rows.all(TopicRow)
        if not row.level
    ]
    for group in rows.all(GroupRow):
        wanted = TopicFilter.parse(group.filter)
        for topic_id, patterns in topics:
            if any(own.overlaps(wanted) for own in patterns):
                for part in parts[topic_id]:
                    for partition in range(part.partitions):
                        yield group.group_id, part.storage_topic_id, partition


def _nothing_of(key: tuple[int, int, int]) -> ProgressRow:
    """Empty progress, for a stream that is newer than its group and has no report."""
    return ProgressRow(
        *key, floor=0, ranges=b"", frontier=0, attempts=b"", finished=False, cursor_generation=0
    )


def _event(rows: StoredRows, at_ms: int, told: str, data: IncarnationRow) -> EventRow:
    number = max((row.number for row in rows.all(EventRow)), default=0)
    return EventRow(
        number=max(number, 0) + 1,
        at_ms=at_ms,
        code=DATA_RESTORED.code,
        severity=DATA_RESTORED.severity.word,
        subject="daemon",
        sentence=told,
        fields=json.dumps(
            {"incarnation": data.incarnation.hex(), "restores": str(data.number - 1)}
        ),
        times=1,
        last_at_ms=at_ms,
    )
