"""How a leader takes over: the claim that fences every other leader, and what the group has.

The claim is a commit of the leader row with its epoch raised, on the condition that nobody else
claimed since it was read. Rows are read after it, so no commit of an earlier leader can follow.
Invariant: every later commit of this leader has the version of that row as its precondition.
"""

from dataclasses import dataclass

from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dssd.core.leading import PresentStream, StoredStream, StreamRecord
from dssd.leaders.encoding import (
    packed_attempts,
    packed_ranges,
    progress_of,
    unpacked_attempts,
)
from dssd.log.port import Log
from dssd.store.paging import scan_all
from dssd.store.port import Absent, Exists, Precondition, Put, Store, VersionIs, Write
from dssd.store.rows import GrantRow, GroupRow, LeaderRow, ProgressRow
from dssd.topics.catalogue import Catalogue, Topic


@dataclass(frozen=True, slots=True)
class Claim:
    """Leadership of a group."""

    row: LeaderRow
    version: int
    restarted: bool
    """There was a leader before, of another run of the daemon."""

    def still_holds(self) -> Precondition:
        """What every commit of this leader depends on."""
        return VersionIs(LeaderRow, (self.row.group_id,), self.version)


async def claim(store: Store, group_id: int, boot_id: bytes) -> Claim:
    """Become the leader of a group.

    The data directory's lock makes this daemon the only one, so whoever led before is dead.

    Raises:
        PreconditionFailed: the group was removed, or somebody else claimed it meanwhile.
    """
    known = await store.read(LeaderRow, (group_id,))
    unchanged: Precondition = Absent(LeaderRow, (group_id,))
    epoch = 1
    if known is not None:
        unchanged = VersionIs(LeaderRow, (group_id,), known.version)
        epoch = known.row.leader_epoch + 1
    row = LeaderRow(group_id, boot_id, epoch, beat=0)
    [version] = await store.commit([Put(row)], [Exists(GroupRow, (group_id,)), unchanged])
    return Claim(row, version, restarted=known is not None and known.row.boot_id != boot_id)


async def stored_streams(
    store: Store, catalogue: Catalogue, log: Log, group: GroupRow
) -> tuple[StoredStream, ...]:
    """What the store and the log have of every stream that the group's filter selects.

    Rows of streams that are gone are left alone: they cost nothing and select nothing.
    """
    key = (group.group_id,)
    grants = {_stream_of(found.row): found.row for found in await scan_all(store, GrantRow, key)}
    rows = {_stream_of(found.row): found.row for found in await scan_all(store, ProgressRow, key)}
    wanted = TopicFilter.parse(group.filter)
    return tuple(
        _stored(present, rows.get(present.stream), grants.get(present.stream), log)
        for topic in catalogue.meeting(wanted)
        for present in present_streams(topic)
    )


def present_streams(topic: Topic) -> tuple[PresentStream, ...]:
    """The streams of a topic, and where the sealed ones end."""
    return tuple(
        PresentStream(stream, None if part.ends is None else part.ends[stream.partition])
        for part in topic.storage_topics
        for stream in part.streams()
    )


def writes_of(group: GroupRow, records: tuple[StreamRecord, ...]) -> list[Write]:
    """The rows that a leader's records become."""
    writes: list[Write] = []
    for record in records:
        writes.append(Put(_progress_row(group, record)))
        if record.grant is not None:
            writes.append(
                Put(
                    GrantRow(
                        group.group_id,
                        *record.stream,
                        grant_epoch=record.grant.grant_epoch,
                        session_id=record.grant.session_id,
                        borrower_id=record.grant.borrower_id,
                        cursor_generation=group.cursor_generation,
                    )
                )
            )
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
        cursor_generation=group.cursor_generation,
    )


def _stream_of(row: GrantRow | ProgressRow) -> StreamId:
    return StreamId(row.storage_topic_id, row.partition)


def _stored(
    present: PresentStream, row: ProgressRow | None, grant: GrantRow | None, log: Log
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
    )
