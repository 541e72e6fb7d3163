"""The lag of a group, for people: from its rows, or from the memory of its live leader.

LAG counts the records between the floor and the end of each stream, less the acknowledged ranges
above the floor. Where the filter does not select whole topics, it includes rejected records until
the floor has passed them; a caller with a budget has them counted out, as far as the budget goes.
Any other LAG is an upper bound, and marked as one; so is one that the log cannot count exactly.
OLDEST is the append time of the oldest record in it. Nothing here starts a leader.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple, assert_never

from dss_core.errors import LogUnreadable, StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId, StreamName
from dss_core.limits import ACKED_RANGES_MAX
from dss_core.progress import Progress, Range, Ranges, complement
from dss_core.times import text_of_ms
from dssd.leaders.filtered_lag import CountBudget, matching_in
from dssd.leaders.generations import parts_with_parents
from dssd.leaders.lanes import queues_of
from dssd.leaders.progress_columns import fate_of, progress_of
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.machines.fate import NO_COUNTS, NO_FATE, Counts
from dssd.machines.leader.events import (
    LeaderGlance,
    LeaderView,
    MemberView,
    StreamGlance,
    StreamView,
)
from dssd.machines.messages import Stall
from dssd.machines.queues import Queues
from dssd.store.paging import scan_all
from dssd.store.port import Store
from dssd.store.rows import GrantRow, GroupRow, LeaderRow, ProgressRow
from dssd.topics.catalogue import Catalogue, StorageTopic, Topic

PARENTS_NAMED_MAX = 4
"""How many parents a sentence names for which a closed stream waits."""


class Queued(NamedTuple):
    """Records of a stream in a group's queues."""

    retrying: int = 0
    """In the retry queue."""
    dead: int = 0
    """Among the dead letters."""
    fullest: int = 0
    """The most records of one stream in both queues."""
    fullest_bytes: int = 0
    """The most bytes in both queues of one stream, estimated: each entry counts as the average of
    its queue."""

    def plus(self, other: "Queued") -> "Queued":
        """The sum of both; of the fullest stream, the higher values."""
        most = max(self.fullest, other.fullest)
        most_bytes = max(self.fullest_bytes, other.fullest_bytes)
        counts = self.retrying + other.retrying, self.dead + other.dead
        return Queued(*counts, most, most_bytes)

    def fills(self, group: GroupRow, percent: int = 100) -> bool:
        """Whether the queues of a stream hold at least this percentage of their bounds."""
        records, bytes_ = group.queue_records * percent, group.queue_bytes * percent
        return 0 < records <= self.fullest * 100 or 0 < bytes_ <= self.fullest_bytes * 100


NOTHING_QUEUED = Queued()


@dataclass(frozen=True, slots=True)
class StreamSurvey:
    """One stream of a group."""

    name: StreamName
    view: StreamView
    end: int
    lag: int
    lag_exact: bool
    oldest_unacked_us: int | None = None
    """Append time of the oldest record in the lag, if it is known."""
    queued: Queued = NOTHING_QUEUED
    waits_for: tuple[str, ...] = ()
    """The unfinished parents of a closed stream."""


@dataclass(frozen=True, slots=True)
class GroupSurvey:
    """A group as operators see it."""

    taken_at_ms: int
    """By the wall clock."""
    state: str
    """idle, active, rebalancing, stalled or paused."""
    reason: str
    leader_epoch: int
    """0 where no leader ever ran."""
    members: tuple[MemberView, ...]
    streams: tuple[StreamSurvey, ...]
    lag: int
    lag_exact: bool
    oldest_unacked_us: int | None

    @property
    def counts(self) -> Counts:
        """How many records the group is done with, of all streams."""
        each = (stream.view.fate.counts for stream in self.streams)
        return Counts(*map(sum, zip(NO_COUNTS, *each, strict=True)))

    @property
    def queued(self) -> Queued:
        """The records in the queues of all streams."""
        return reduce(Queued.plus, (stream.queued for stream in self.streams), NOTHING_QUEUED)


async def survey_from_view(
    live: LeaderView,
    group: GroupRow,
    catalogue: Catalogue,
    log: Log,
    wall_ms: int,
    turn: LoopTurn,
    budget: CountBudget | None = None,
) -> GroupSurvey:
    """The group as its live leader has it."""
    return await _survey(live, group, catalogue, log, wall_ms, turn, budget)


async def survey_from_rows(
    store: Store,
    group: GroupRow,
    catalogue: Catalogue,
    log: Log,
    wall_ms: int,
    turn: LoopTurn,
    budget: CountBudget | None = None,
) -> GroupSurvey:
    """The group as its last leader left it."""
    stored = await view_from_rows(store, group, catalogue, turn)
    return await _survey(stored, group, catalogue, log, wall_ms, turn, budget)


async def glance_from_rows(
    store: Store, group: GroupRow, catalogue: Catalogue, turn: LoopTurn
) -> LeaderGlance:
    """A summary of the group as its last leader left it."""
    stored = await view_from_rows(store, group, catalogue, turn)
    streams = (
        StreamGlance(v.stream, v.progress, v.fate, v.stall, v.queues) for v in stored.streams
    )
    return LeaderGlance(stored.leader_epoch, False, 0, 0, tuple(streams))


async def view_from_rows(
    store: Store, group: GroupRow, catalogue: Catalogue, turn: LoopTurn
) -> LeaderView:
    """The group as its last leader left it, without its lag."""
    key = (group.group_id,)
    leader = await store.read(LeaderRow, key)
    grants = {_stream_of(found.row): found.row for found in await scan_all(store, GrantRow, key)}
    await turn.give_way()
    rows = {_stream_of(found.row): found.row for found in await scan_all(store, ProgressRow, key)}
    wanted = TopicFilter.parse(group.filter)
    views: list[StreamView] = []
    for topic in catalogue.meeting(wanted):
        done: set[StreamId] = set()
        for part, parents in parts_with_parents(topic, group):
            for stream, before in zip(part.streams(), parents, strict=True):
                await turn.give_way()
                view = _stored_view(stream, rows.get(stream), grants.get(stream))
                queues = queues_of(catalogue, group, stream, rows)
                view = replace(view, queues=queues) if queues else view
                waits_for = tuple(each for each in before or () if each not in done)
                if waits_for:
                    view = replace(view, state="closed", waits_for=waits_for)
                elif _is_done(view, part):
                    done.add(stream)
                views.append(view)
    epoch = leader.row.leader_epoch if leader else 0
    return LeaderView(epoch, rebalancing=False, members=(), streams=tuple(views))


def _is_done(view: StreamView, part: StorageTopic) -> bool:
    """Whether a leader would find it finished, and nothing in its queues."""
    if view.state == "finished":
        return True
    end = None if part.ends is None else part.ends[view.stream.partition]
    is_read = end is not None and view.progress.floor >= end
    return is_read and all(queue.is_empty for queue in view.queues)


async def stream_from_rows(
    store: Store, group: GroupRow, stream: StreamId, catalogue: Catalogue
) -> StreamView:
    """One stream as the group's last leader left it."""
    rows: dict[StreamId, ProgressRow] = {}
    for each in (stream, *(catalogue.queues_of(group.group_id, stream) or ())):
        found = await store.read(ProgressRow, (group.group_id, *each))
        if found is not None:
            rows[each] = found.row
    grant = await store.read(GrantRow, (group.group_id, *stream))
    view = _stored_view(stream, rows.get(stream), grant.row if grant else None)
    return replace(view, queues=queues_of(catalogue, group, stream, rows) or ())


def _stored_view(stream: StreamId, row: ProgressRow | None, grant: GrantRow | None) -> StreamView:
    return StreamView(
        stream=stream,
        state="finished" if row is not None and row.finished else "free",
        client_id="",
        grant_epoch=grant.grant_epoch if grant else 0,
        progress=progress_of(row),
        state_age_ms=0,
        fate=NO_FATE if row is None else fate_of(row),
        cursor_generation=0 if row is None else row.cursor_generation,
        pinned_session_id=grant.pinned_session_id if grant else None,
    )


async def progress_from_rows(
    store: Store, group: GroupRow, storage_topic_ids: Collection[int]
) -> dict[StreamId, Progress]:
    """How far the group's last leader left it in streams of the storage topics."""
    progress: dict[StreamId, Progress] = {}
    for storage_topic_id in storage_topic_ids:
        key = (group.group_id, storage_topic_id)
        for found in await scan_all(store, ProgressRow, key):
            progress[_stream_of(found.row)] = progress_of(found.row)
    return progress


async def _survey(
    view: LeaderView,
    group: GroupRow,
    catalogue: Catalogue,
    log: Log,
    wall_ms: int,
    turn: LoopTurn,
    budget: CountBudget | None,
) -> GroupSurvey:
    wanted = TopicFilter.parse(group.filter)
    streams: list[StreamSurvey] = []
    for stream_view in view.streams:
        await turn.give_way()
        # If it is missing, its topic was removed meanwhile.
        with suppress(StreamNotFound):
            streams.append(await _survey_stream(stream_view, wanted, catalogue, log, budget))
    await turn.give_way()
    state, reason = _state(group, view, streams)
    dated = [each.oldest_unacked_us for each in streams if each.oldest_unacked_us is not None]
    return GroupSurvey(
        taken_at_ms=wall_ms,
        state=state,
        reason=reason,
        leader_epoch=view.leader_epoch,
        members=view.members,
        streams=tuple(streams),
        lag=sum(stream.lag for stream in streams),
        lag_exact=all(stream.lag_exact for stream in streams),
        oldest_unacked_us=min(dated, default=None),
    )


async def _survey_stream(
    view: StreamView,
    wanted: TopicFilter,
    catalogue: Catalogue,
    log: Log,
    budget: CountBudget | None,
) -> StreamSurvey:
    start, end = log.span(view.stream)
    lag, exact = lag_of(view.stream, view.progress, (start, end), log)
    first: int | None = max(view.progress.floor, start)
    if lag and not selects_whole(wanted, catalogue.topic_of(view.stream)):
        exact = False
        if budget is not None:
            unacked = unacked_in(view.progress, (start, end))
            counted = await matching_in(view.stream, unacked, wanted, log, budget)
            if counted is not None:
                (lag, first), exact = counted, True
    oldest_us = await _time_at(view.stream, first, log) if lag and first is not None else None
    name = catalogue.name_of(view.stream)
    waits_for = tuple(str(catalogue.name_of(each)) for each in view.waits_for)
    queued = queued_in(view.queues, log)
    return StreamSurvey(name, view, end, lag, exact, oldest_us, queued, waits_for)


def queued_in(queues: Queues, log: Log) -> Queued:
    """What waits in the queues of a stream.

    Raises:
        StreamNotFound: its topic was removed.
    """
    counts = [lag_of(each.stream, each.progress, log.span(each.stream), log) for each in queues]
    records = [records for records, _ in counts]
    if not records:
        return Queued()
    retrying, dead = records
    size = sum(
        _bytes_of(each.stream, count, log) for each, count in zip(queues, records, strict=True)
    )
    return Queued(retrying, dead, retrying + dead, size)


def _bytes_of(queue: StreamId, records: int, log: Log) -> int:
    """The approximate size of so many entries of a queue."""
    if not records:
        return 0
    bounds = log.bounds(queue)
    return bounds.bytes * records // max(1, bounds.end - bounds.start)


def lag_of(stream: StreamId, progress: Progress, span: Range, log: Log) -> tuple[int, bool]:
    """How many records of the span are not acknowledged, and whether the log can count exactly."""
    # Count the gaps between acknowledged ranges, rather than subtract the ranges: these also cover
    # offsets that no record has.
    counts = [log.count(stream, low, high) for low, high in unacked_in(progress, span)]
    return sum(count for count, _ in counts), all(exact for _, exact in counts)


def unacked_in(progress: Progress, span: Range) -> Ranges:
    """The unacknowledged ranges of a stream's span."""
    start, end = span
    return complement(progress.ranges, max(progress.floor, start), end)


async def _time_at(stream: StreamId, offset: int, log: Log) -> int | None:
    try:
        return await log.time_at(stream, offset)
    except LogUnreadable:
        return None  # the age stays unknown; the delivery reports why the stream stalls


def _state(group: GroupRow, view: LeaderView, streams: list[StreamSurvey]) -> tuple[str, str]:
    each = ((stream.name, stream.view.progress, stream.view.stall) for stream in streams)
    stalled = next((stall_of(*one) for one in each if is_stalled(one[1], one[2])), "")
    return state_of(group, stalled, has_members=bool(view.members), rebalancing=view.rebalancing)


def state_of(
    group: GroupRow, stalled: str, *, has_members: bool, rebalancing: bool
) -> tuple[str, str]:
    """A group's state and its reason; stalled: which stream is, and why, or empty."""
    if group.paused:
        until_ms = group.paused_until_ms
        return "paused", "" if until_ms is None else f"until {text_of_ms(until_ms)}"
    if stalled:
        return "stalled", stalled
    if not has_members:
        return "idle", ""
    return ("rebalancing", "") if rebalancing else ("active", "")


def is_stalled(progress: Progress, stall: Stall) -> bool:
    """Whether nothing of the stream is delivered.

    The holder's report decides; without a holder, the next one will find it at the cap.
    """
    return stall is not Stall.NONE or len(progress.ranges) >= ACKED_RANGES_MAX


def stall_of(name: StreamName, progress: Progress, stall: Stall) -> str:
    """Which stream is stalled, and why."""
    return f"{name} {stall_sentence(stall, progress.floor)}"


def hindrance_sentence(view: StreamView, waits_for: Sequence[str]) -> str:
    """Why nothing of a stream is delivered, or empty; for a closed stream it names its parents."""
    if waits_for:
        return f"closed: waits for {named(waits_for)}"
    return "" if view.stall is Stall.NONE else stall_sentence(view.stall, view.progress.floor)


def named(streams: Sequence[str]) -> str:
    """Some streams, for people."""
    rest = len(streams) - PARENTS_NAMED_MAX
    shown = ", ".join(streams[:PARENTS_NAMED_MAX])
    return f"{shown} and {rest} more" if rest > 0 else shown


def stall_sentence(stall: Stall, floor: int) -> str:
    """Why a stream is stalled; the floor is its oldest unacknowledged record."""
    match stall:
        case Stall.UNREADABLE:
            return f"cannot be read behind {floor}; the read is tried again"
        case Stall.DAMAGED:
            return f"holds damaged records behind {floor}, and the group stalls at damage"
        case Stall.UNACKED | Stall.NONE:
            return f"waits for the record at {floor}"
        case _:
            assert_never(stall)


def selects_whole(wanted: TopicFilter, topic: Topic) -> bool:
    """Whether every subject that the topic owns matches the filter."""
    return all(_covers(wanted, pattern) for pattern in topic.patterns)


def _covers(wanted: TopicFilter, pattern: TopicFilter) -> bool:
    if wanted.hides_dollar and not pattern.hides_dollar and pattern.levels[0].startswith("$"):
        return False
    for index, level in enumerate(wanted.levels):
        if index >= len(pattern.levels):
            return False
        if level not in ("+", pattern.levels[index]):
            return False
    if len(pattern.levels) > len(wanted.levels):
        return wanted.open_ended
    return wanted.open_ended or not pattern.open_ended


def _stream_of(row: GrantRow | ProgressRow) -> StreamId:
    return StreamId(row.storage_topic_id, row.partition)
