"""Takeover: the commit that fences every earlier leader, then the rows of the group.

A leader takes over by a commit that raises the epoch in the leader row, on the condition that the
row has not changed since it was read. The group's rows are read after that commit, so no commit of
an earlier leader can follow. Invariant: every later commit of this leader has the version of the
leader row as its precondition.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from dss_core.errors import StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dssd.leaders.generations import parts_with_parents
from dssd.leaders.lanes import NamesQueues, queue_row, queues_of
from dssd.leaders.progress_columns import (
    fate_columns,
    fate_of,
    packed_attempts,
    packed_ranges,
    progress_of,
    unpacked_attempts,
    unpacked_ranges,
)
from dssd.log.port import Bounds
from dssd.machines.fate import NO_FATE
from dssd.machines.leader.events import (
    CancelledMove,
    CursorMove,
    Persist,
    PresentStream,
    SetVersion,
    StoredStream,
    StreamRecord,
)
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.store.paging import scan_all
from dssd.store.port import (
    Absent,
    Delete,
    Exists,
    Precondition,
    Put,
    Store,
    Versioned,
    VersionIs,
    Write,
)
from dssd.store.rows import (
    GrantRow,
    GroupRow,
    LeaderRow,
    MadeMoveRow,
    OperationRow,
    PendingMoveRow,
    ProgressRow,
    StreamSetRow,
)
from dssd.topics.model import Topic

BORROW = "borrow"
"""The default protocol: streams are lent one by one."""

CANCELLING = "cancelling"
"""The state of an operation whose remaining work is cancelled."""

NO_ROWS: Mapping[StreamId, ProgressRow] = {}

LEASE = "lease"
"""The protocol of groups whose members hold stream sets with versions."""


@dataclass(frozen=True, slots=True)
class Takeover:
    """Leadership of a group."""

    row: LeaderRow
    version: int
    restarted: bool
    """An earlier run of the daemon had a leader of the group."""

    def still_holds(self) -> Precondition:
        """The precondition of every commit of this leader."""
        return VersionIs(LeaderRow, (self.row.group_id,), self.version)


@dataclass(frozen=True, slots=True)
class TakeoverCommit:
    """The commit that a leader takes over by."""

    row: LeaderRow
    conditions: tuple[Precondition, ...]
    restarted: bool
    """An earlier run of the daemon had a leader of the group."""


def next_takeover(
    group_id: int, known: Versioned[LeaderRow] | None, boot_id: bytes
) -> TakeoverCommit:
    """The takeover of a group from the leader of a known row, if there was one."""
    unchanged: Precondition = Absent(LeaderRow, (group_id,))
    epoch = 1
    if known is not None:
        unchanged = VersionIs(LeaderRow, (group_id,), known.version)
        epoch = known.row.leader_epoch + 1
    row = LeaderRow(group_id, boot_id, epoch, beat=0)
    restarted = known is not None and known.row.boot_id != boot_id
    return TakeoverCommit(row, (Exists(GroupRow, (group_id,)), unchanged), restarted)


async def claim(store: Store, group_id: int, boot_id: bytes) -> Takeover:
    """Become the leader of a group.

    The data directory's lock makes this daemon the only one, so any earlier leader is dead.

    Raises:
        PreconditionFailed: the group was removed, or somebody else claimed it meanwhile.
    """
    attempt = next_takeover(group_id, await store.read(LeaderRow, (group_id,)), boot_id)
    [version] = await store.commit([Put(attempt.row)], attempt.conditions)
    return Takeover(attempt.row, version, attempt.restarted)


class Selecting(NamesQueues, Protocol):
    """What a takeover asks of the catalogue."""

    def meeting(self, wanted: TopicFilter) -> tuple[Topic, ...]:
        """The topics that a filter selects."""


class Bounded(Protocol):
    """What a takeover asks of the log."""

    def bounds(self, stream: StreamId) -> Bounds:
        """What a stream holds."""


class GivesWay(Protocol):
    """Lets other tasks run in a long loop; `dssd.loop_yield.LoopTurn` in the daemon."""

    async def give_way(self) -> None:
        """Called in each round."""


async def stored_streams(
    store: Store, catalogue: Selecting, log: Bounded, group: GroupRow, turn: GivesWay
) -> tuple[StoredStream, ...]:
    """The stored state and bounds of every stream that the group's filter selects.

    Rows of removed streams are ignored: they select nothing, and are being deleted. A stream whose
    queues are not made yet is left out: the leader is told of it once they are.
    """
    key = (group.group_id,)
    grants = {_stream_of(found.row): found.row for found in await scan_all(store, GrantRow, key)}
    rows = {_stream_of(found.row): found.row for found in await scan_all(store, ProgressRow, key)}
    wanted = TopicFilter.parse(group.filter)
    streams: list[StoredStream] = []
    for topic in catalogue.meeting(wanted):
        for present in present_streams(topic, catalogue, group, rows):
            await turn.give_way()
            # Its topic may be removed meanwhile; the leader is notified of that too.
            with suppress(StreamNotFound):
                row, grant = rows.get(present.stream), grants.get(present.stream)
                streams.append(_stored(present, row, grant, log))
    return tuple(streams)


async def stored_moves(store: Store, group: GroupRow) -> tuple[CursorMove, ...]:
    """The moves of cursors that applied operations wait for."""
    found = await scan_all(store, PendingMoveRow, (group.group_id,))
    cancelled = {
        number
        for number in {each.row.number for each in found}
        if (operation := await store.read(OperationRow, (number,))) is not None
        and operation.row.state == CANCELLING
    }
    return tuple(
        CursorMove(
            StreamId(each.row.storage_topic_id, each.row.partition),
            each.row.number,
            unpacked_ranges(each.row.dropped),
            unpacked_ranges(each.row.added),
            cancelled=each.row.number in cancelled,
            redriven=unpacked_ranges(each.row.redriven),
            redrive_ms=each.row.redrive_ms,
            whole_keys=each.row.redrive_whole_keys,
            discarded=unpacked_ranges(each.row.discarded),
            errand=each.row.errand_kind,
            entries=unpacked_ranges(each.row.errand_ranges),
        )
        for each in found
    )


def stream_sets_of(group: GroupRow) -> StreamSets | None:
    """The stream sets of a group of the lease protocol; None: it uses the borrow protocol."""
    return StreamSets() if group.protocol == LEASE else None


async def stored_versions(store: Store, group: GroupRow) -> tuple[SetVersion, ...]:
    """The newest versions of stream sets, in a group of the lease protocol."""
    found = await scan_all(store, StreamSetRow, (group.group_id,))
    return tuple(SetVersion(each.row.session_id, each.row.set_version) for each in found)


def present_streams(
    topic: Topic,
    catalogue: NamesQueues,
    group: GroupRow,
    rows: Mapping[StreamId, ProgressRow] = NO_ROWS,
) -> tuple[PresentStream, ...]:
    """The streams of a topic that may be lent, where the sealed ones end, and their queues."""
    return tuple(
        PresentStream(
            stream, None if part.ends is None else part.ends[stream.partition], queues, parents
        )
        for part, of_part in parts_with_parents(topic, group)
        for stream, parents in zip(part.streams(), of_part, strict=True)
        if (queues := queues_of(catalogue, group, stream, rows)) is not None
    )


def writes_of(group: GroupRow, records: tuple[StreamRecord, ...]) -> list[Write]:
    """The rows that a leader's records become."""
    return [write for record in records for _, own in rows_of(group, record) for write in own]


def rows_of(group: GroupRow, record: StreamRecord) -> list[tuple[int, list[Write]]]:
    """The rows that a record becomes, by storage topic."""
    queues: list[tuple[int, list[Write]]] = [
        (queue.stream.storage_topic_id, [Put(queue_row(group, queue))]) for queue in record.queues
    ]
    return [(record.stream.storage_topic_id, stream_writes(group, record)), *queues]


def stream_writes(group: GroupRow, record: StreamRecord) -> list[Write]:
    """The rows of the stream itself."""
    writes: list[Write] = [Put(_progress_row(group, record))]
    writes += _move_writes(group, record)
    if record.grant is not None:
        writes.append(
            Put(
                GrantRow(
                    group.group_id,
                    *record.stream,
                    grant_epoch=record.grant.grant_epoch,
                    session_id=record.grant.session_id,
                    borrower_id=record.grant.borrower_id,
                    cursor_generation=record.cursor_generation,
                    pinned_session_id=record.grant.pinned_session_id,
                )
            )
        )
    return writes


def _move_writes(group: GroupRow, record: StreamRecord) -> list[Write]:
    """The writes for a pending move that was made or cancelled."""
    ended = record.ended_move
    if ended is None:
        return []
    gone = Delete(PendingMoveRow, (group.group_id, *record.stream))
    if isinstance(ended, CancelledMove):
        return [gone]
    made = MadeMoveRow(
        ended.number,
        *record.stream,
        floor_before=ended.before.floor,
        ranges_before=packed_ranges(ended.before.ranges),
        floor_after=ended.after.floor,
        ranges_after=packed_ranges(ended.after.ranges),
    )
    return [gone, Put(made)]


def version_writes(group: GroupRow, persist: Persist) -> list[Write]:
    """The rows that the versions in a commit become."""
    writes: list[Write] = []
    for each in persist.versions:
        if each.version is None:
            writes.append(Delete(StreamSetRow, (group.group_id, each.session_id)))
        else:
            writes.append(Put(StreamSetRow(group.group_id, each.session_id, each.version)))
    return writes


def _progress_row(group: GroupRow, record: StreamRecord) -> ProgressRow:
    return ProgressRow(
        group.group_id,
        *record.stream,
        floor=record.progress.floor,
        ranges=packed_ranges(record.progress.ranges),
        frontier=record.frontier,
        attempts=packed_attempts(record.attempts),
        finished=record.finished,
        cursor_generation=record.cursor_generation,
        marked_below=record.marked_below,
        **fate_columns(record.fate),
    )


def _stream_of(row: GrantRow | ProgressRow) -> StreamId:
    return StreamId(row.storage_topic_id, row.partition)


def _stored(
    present: PresentStream, row: ProgressRow | None, grant: GrantRow | None, log: Bounded
) -> StoredStream:
    return StoredStream(
        stream=present.stream,
        progress=progress_of(row),
        frontier=0 if row is None else row.frontier,
        end=log.bounds(present.stream).end,
        sealed_end=present.sealed_end,
        grant_epoch=0 if grant is None else grant.grant_epoch,
        session_id=None if grant is None else grant.session_id,
        borrower_id=None if grant is None else grant.borrower_id,
        attempts=() if row is None else unpacked_attempts(row.attempts),
        finished=row is not None and row.finished,
        fate=NO_FATE if row is None else fate_of(row),
        cursor_generation=0 if row is None else row.cursor_generation,
        marked_below=0 if row is None else row.marked_below,
        pinned_session_id=None if grant is None else grant.pinned_session_id,
        queues=present.queues,
        parents=present.parents,
    )
