"""The overview of each group for lists, recomputed only after a change.

A stream of a group is recomputed when its progress, its fate or its bounds changed since the last
time. The rows of a group without a leader are read once: they cannot change until a leader has
started and ended, or a topic changes. Invariant: an overview equals a survey of the group, except
for the time of the oldest record, which comes from samples if they cover it. Nothing here starts a
leader.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from dss_core.errors import LogUnreadable, StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.progress import Progress, Range
from dssd.clock import Clock
from dssd.leaders.filtered_lag import CountBudget, matching_in
from dssd.leaders.groups import Groups
from dssd.leaders.lag import (
    NOTHING_QUEUED,
    GroupSurvey,
    Queued,
    is_stalled,
    lag_of,
    queued_in,
    selects_whole,
    stall_of,
    state_of,
    unacked_in,
)
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.machines.fate import NO_COUNTS, Counts, Fate
from dssd.machines.leader.events import LeaderGlance, StreamGlance
from dssd.machines.queues import Queues
from dssd.questions.limits import STUCK_FAILURES
from dssd.questions.rates import Rates
from dssd.questions.samples import Sampler
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue, Topic

OLDEST_LOOKUPS_MAX = 256
"""How many append times one list, or one look of the sampler, reads from the log where samples do
not reach: some milliseconds. The other groups show the time of an earlier floor, or none."""


_HALTED = frozenset({"paused", "stalled"})
"""States in which a lag cannot drain."""


@dataclass(frozen=True, slots=True)
class Overview:
    """A group, in a line."""

    group: GroupRow
    state: str
    state_reason: str
    leader_epoch: int
    borrowers: int
    standby: int
    streams: int
    lag: int
    lag_exact: bool
    oldest_unacked_us: int | None
    fates: Counts
    arrivals: Rates
    """Arrivals in its topics, including subjects outside its filter."""
    acks: Rates
    """What it is done with."""
    leader_since_ms: int | None
    """By the wall clock; None: nobody leads it."""
    failing: bool = False
    """A record fails again and again: the lag stays until it is acknowledged."""
    retrying: int = 0
    """Records in its retry queues."""
    dead: int = 0
    """Records among its dead letters."""
    fullest: int = 0
    """The most records in the queues of one stream."""
    fullest_bytes: int = 0
    """About how many bytes, for the stream with the most."""
    stuck: bool = False
    """Whether something of it was stuck at the last look."""
    error: str = ""
    """What went wrong with it in the last day."""
    seen_us: int = field(default=0, compare=False)
    """When the overview was made, by the wall clock."""

    @classmethod
    def of_survey(
        cls,
        group: GroupRow,
        survey: GroupSurvey,
        sampler: Sampler,
        leader_since_ms: int | None,
        error: str = "",
    ) -> Self:
        """From a survey, which does not know what is stuck."""
        wanted = TopicFilter.parse(group.filter)
        arrivals, acks = sampler.rates_of(group.group_id, wanted)
        return cls(
            group,
            survey.state,
            survey.reason,
            survey.leader_epoch,
            len(survey.members),
            sum(member.streams == 0 for member in survey.members),
            len(survey.streams),
            survey.lag,
            survey.lag_exact,
            survey.oldest_unacked_us,
            survey.counts,
            arrivals,
            acks,
            leader_since_ms,
            any(fails(stream.view.fate) for stream in survey.streams),
            *survey.queued,
            error=error,
            seen_us=survey.taken_at_ms * 1_000,
        )

    @property
    def is_full(self) -> bool:
        """Whether the queues of a stream hold as many records, or bytes, as they may."""
        return Queued(0, 0, self.fullest, self.fullest_bytes).fills(self.group)

    @property
    def oldest_ms(self) -> float | None:
        """For how long its oldest record has waited."""
        at_us = self.oldest_unacked_us
        return None if at_us is None else max(0, self.seen_us - at_us) / 1_000

    @property
    def drain_ms(self) -> int | None:
        """Time until its lag is gone at last minute's rates; None: it does not catch up."""
        if not self.lag:
            return 0
        if self.failing or self.stuck or self.state in _HALTED or not self.borrowers:
            return None
        faster = self.acks.minute - self.arrivals.minute
        return int(self.lag / faster * 1_000) if faster > 0 else None


def fails(fate: Fate) -> bool:
    """Whether a record of the stream fails again and again."""
    return any(count >= STUCK_FAILURES for _, _, count in fate.failures)


@dataclass(slots=True)
class _SeenStream:
    """A stream of a group as it was at the last look."""

    progress: Progress
    fate: Fate
    span: Range
    lag: int
    exact: bool
    whole: bool
    """The filter selects all of its topic."""
    queues: Queues = ()
    queued: Queued = NOTHING_QUEUED
    first: int | None = None
    """The offset of the oldest record that the filter takes, if that was counted."""
    floor: int = -1
    """The offset to which the time belongs."""
    floor_us: int | None = None


class StreamLag(NamedTuple):
    """A stream of a group, as it was at the last look."""

    stream: StreamId
    floor: int
    end: int
    lag: int
    lag_exact: bool
    oldest_unacked_us: int | None


class _Totals(NamedTuple):
    """Of all streams of a group."""

    lag: int = 0
    exact: bool = True
    stalled: str = ""
    """Which stream is stalled, and why."""
    oldest_us: int | None = None
    failing: bool = False
    queued: Queued = NOTHING_QUEUED


NOTHING = _Totals()


@dataclass(slots=True)
class _SeenGroup:
    """A group as it was at the last look."""

    wanted: TopicFilter
    glance: LeaderGlance | None = None
    totals: _Totals = NOTHING
    counts: Counts = NO_COUNTS
    undated: bool = False
    """The append time at a floor is still to be read."""
    uncounted: bool = False
    """The matches of the filter in a stream are still to be counted."""
    streams: dict[StreamId, _SeenStream] = field(default_factory=dict)
    stored: LeaderGlance | None = None
    leader_changes: int = 0


@dataclass(slots=True)
class _Look:
    """One look at many groups."""

    turn: LoopTurn
    spans: dict[StreamId, Range]
    """The bounds of every stream."""
    grown: dict[StreamId, tuple[Range, int]]
    """Streams whose bounds changed since the last look: the old bounds, and how many records
    came."""
    dates: dict[tuple[StreamId, int], int | None] = field(default_factory=dict)
    """Append times of records at floors, from the log."""

    budget: CountBudget | None = None
    """The budget for reading the log to count the matches of a partial filter."""

    @property
    def may_count(self) -> bool:
        """Whether the log may be read to count."""
        return self.budget is not None and not self.budget.spent

    @property
    def may_date(self) -> bool:
        """Whether one more append time may be read from the log."""
        return len(self.dates) < OLDEST_LOOKUPS_MAX


class Overviews:
    """Built once; lives as long as what it watches."""

    def __init__(
        self,
        groups: Groups,
        registry: Registry,
        catalogue: Catalogue,
        log: Log,
        sampler: Sampler,
        clock: Clock,
        is_stuck: Callable[[int], bool],
        error_of: Callable[[GroupRow], str],
    ) -> None:
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue
        self._log = log
        self._sampler = sampler
        self._clock = clock
        self._is_stuck = is_stuck
        self._error_of = error_of
        self._seen: dict[int, _SeenGroup] = {}
        self._spans: dict[StreamId, Range] = {}
        self._looking = asyncio.Lock()
        """One look at a time: each goes by what changed since the one before."""
        catalogue.watch(self._topic_changed)
        groups.watch_removed(lambda group: self._forget(group.group_id))

    async def all(
        self, *, private: bool = False, budget: CountBudget | None = None
    ) -> list[Overview]:
        """The overview of every group; of private ones only where they are wanted.

        Within a budget the log is read for an exact lag where a filter takes a part of a topic.
        """
        found: list[Overview] = []
        async with self._looking:
            look = await self._begun(budget)
            for group in self._groups.groups():
                await look.turn.give_way()
                # Also for groups that the caller does not want: the next look only considers growth
                # since this one.
                overview = await self._overview(group, look)
                if private or group.kind != "exclusive":
                    found.append(overview)
            # Not earlier: a cancelled look has not given every group its growth.
            self._spans = look.spans
        return found

    def mark(self, group_id: int) -> object:
        """A value that becomes a new object when a stream of the group was recomputed."""
        seen = self._seen.get(group_id)
        return None if seen is None else seen.totals

    def lag_in(self, group_id: int, stream: StreamId) -> int:
        """The lag of a group in a stream, as at the last look; 0 where it was not looked at."""
        seen = self._seen.get(group_id)
        known = None if seen is None else seen.streams.get(stream)
        return 0 if known is None else known.lag

    def lags(self, group_id: int) -> list[StreamLag]:
        """The lag in each stream of a group, as at the last look."""
        seen = self._seen.get(group_id)
        if seen is None or seen.glance is None:
            return []
        known = ((each.stream, seen.streams.get(each.stream)) for each in seen.glance.streams)
        return [
            StreamLag(
                stream,
                of.progress.floor,
                of.span[1],
                of.lag,
                of.exact,
                of.floor_us if of.lag else None,
            )
            for stream, of in known
            if of is not None
        ]

    async def _begun(self, budget: CountBudget | None) -> _Look:
        """A look, and all that grew since the last one."""
        turn = LoopTurn()
        spans: dict[StreamId, Range] = {}
        grown: dict[StreamId, tuple[Range, int]] = {}
        for topic in self._catalogue.topics():
            await turn.give_way()
            with suppress(StreamNotFound):  # its topic was removed meanwhile
                for stream in topic.streams():
                    span, before = self._log.span(stream), self._spans.get(stream)
                    if before is not None and span == before:
                        # Keep the same object: what was seen of the stream is compared by identity.
                        spans[stream] = before
                    else:
                        spans[stream] = span
                        low = span[1] if before is None else before[1]
                        more = self._log.count(stream, low, span[1])[0]
                        grown[stream] = (before or span, more)
        return _Look(turn, spans, grown, budget=budget)

    def _topic_changed(self, topic: Topic, removed: bool) -> None:
        # Streams come and go, and stored rows with them.
        self._seen.clear()

    def _forget(self, group_id: int) -> None:
        self._seen.pop(group_id, None)

    async def _overview(self, group: GroupRow, look: _Look) -> Overview:
        seen = self._seen.get(group.group_id)
        if seen is None:
            seen = self._seen[group.group_id] = _SeenGroup(TopicFilter.parse(group.filter))
        glance = self._registry.glance(group.group_id)
        if glance is None:
            glance = await self._stored(group, seen)
        open_ = (seen.undated and look.may_date) or (seen.uncounted and look.may_count)
        if open_ or glance is not seen.glance or not seen.streams.keys().isdisjoint(look.grown):
            seen.totals = await self._totals(seen, glance, look)
            seen.glance = glance
        lag, exact, stalled, oldest_us, failing, queued = seen.totals
        state, reason = state_of(
            group, stalled, has_members=glance.borrowers > 0, rebalancing=glance.rebalancing
        )
        return Overview(
            group,
            state,
            reason,
            glance.leader_epoch,
            glance.borrowers,
            glance.standby,
            len(glance.streams),
            lag,
            exact,
            oldest_us,
            seen.counts,
            *self._sampler.rates_of(group.group_id, seen.wanted),
            self._registry.leader_since_ms(group.group_id),
            failing,
            *queued,
            self._is_stuck(group.group_id),
            self._error_of(group),
            self._clock.wall_us(),
        )

    async def _totals(self, seen: _SeenGroup, glance: LeaderGlance, look: _Look) -> _Totals:
        lag, exact, stalled, oldest_us, changed = 0, True, "", None, False
        failing, queued = False, NOTHING_QUEUED
        seen.undated = seen.uncounted = False
        for stream in glance.streams:
            stream_id, progress, fate, stall, queues = stream
            span = look.spans.get(stream_id)
            if span is None:  # its topic came or went meanwhile: the next look has it
                seen.undated = True
                continue
            known = seen.streams.get(stream_id)
            if known is None or known.progress is not progress or known.fate is not fate:
                changed = True
                known = await self._look_again(seen, stream, span, look)
            elif self._is_other(known, stream_id, span, look):
                known = await self._look_again(seen, stream, span, look)
            if queues:
                queued = queued.plus(self._queued(known, queues))
            if not stalled and is_stalled(progress, stall):
                stalled = self._stalled(stream)
            failing = failing or fails(known.fate)
            if known.lag:
                seen.undated = seen.undated or known.floor < 0
                seen.uncounted = seen.uncounted or not (known.whole or known.exact)
                lag += known.lag
                exact = exact and known.exact
                at_us = known.floor_us
                if at_us is not None and (oldest_us is None or at_us < oldest_us):
                    oldest_us = at_us
        if changed:
            each = (one.fate.counts.without_restores() for one in seen.streams.values())
            seen.counts = Counts(*map(sum, zip(NO_COUNTS, *each, strict=True)))
        return _Totals(lag, exact, stalled, oldest_us, failing, queued)

    def _queued(self, known: _SeenStream, queues: Queues) -> Queued:
        """Count the entries in the queues. Entries are appended before the report that replaces
        ``queues``, so comparing that is enough."""
        if known.queues is not queues:
            with suppress(StreamNotFound):  # its topic was removed meanwhile
                known.queued = queued_in(queues, self._log)
            known.queues = queues
        return known.queued

    async def _stored(self, group: GroupRow, seen: _SeenGroup) -> LeaderGlance:
        changes = self._registry.leader_changes(group.group_id)
        if seen.stored is None or seen.leader_changes != changes:
            seen.stored = await self._registry.stored_glance(group)
            seen.leader_changes = changes
        return seen.stored

    def _stalled(self, stream: StreamGlance) -> str:
        try:
            name = self._catalogue.name_of(stream.stream)
        except StreamNotFound:  # its topic was removed meanwhile
            return ""
        return stall_of(name, stream.progress, stream.stall)

    def _is_other(self, known: _SeenStream, stream: StreamId, span: Range, look: _Look) -> bool:
        """Whether it must be looked at again, though its progress is the same."""
        if known.lag and known.floor < 0 and look.may_date:
            return True
        if known.lag and not known.whole and not known.exact and look.may_count:
            return True
        return known.span != span and not _takes_growth(known, span, look.grown.get(stream))

    async def _look_again(
        self,
        seen: _SeenGroup,
        stream: StreamGlance,
        span: Range,
        look: _Look,
    ) -> _SeenStream:
        await look.turn.give_way()
        known = seen.streams.get(stream.stream)
        try:
            known = self._looked_at(seen.wanted, known, stream, span)
            if known.lag and not known.whole:
                await self._count_for(seen.wanted, known, stream.stream, look)
            if known.lag:
                await self._date_floor(known, stream.stream, look)
        except StreamNotFound:  # its topic was removed meanwhile
            known = _SeenStream(stream.progress, stream.fate, span, 0, exact=True, whole=True)
        seen.streams[stream.stream] = known
        return known

    def _looked_at(
        self, wanted: TopicFilter, known: _SeenStream | None, stream: StreamGlance, span: Range
    ) -> _SeenStream:
        if known is None:
            topic = self._catalogue.topic_of(stream.stream)
            whole = selects_whole(wanted, topic)
            known = _SeenStream(stream.progress, stream.fate, span, 0, exact=True, whole=whole)
        known.progress, known.fate, known.span = stream.progress, stream.fate, span
        known.lag, exact = lag_of(stream.stream, stream.progress, span, self._log)
        known.exact = exact and (known.whole or not known.lag)
        return known

    async def _count_for(
        self, wanted: TopicFilter, known: _SeenStream, stream: StreamId, look: _Look
    ) -> None:
        """Count what the filter takes, if that is cheap; else the lag stays an upper bound."""
        known.exact, known.first = False, None
        if look.budget is None or look.budget.spent:
            return
        unacked = unacked_in(known.progress, known.span)
        counted = await matching_in(stream, unacked, wanted, self._log, look.budget)
        if counted is not None:
            known.exact = True
            known.lag, known.first = counted

    async def _date_floor(self, known: _SeenStream, stream: StreamId, look: _Look) -> None:
        """Note when the record at the floor came: from samples, else from the log within a
        budget."""
        floor = max(known.progress.floor, known.span[0], known.first or 0)
        if floor == known.floor:
            return
        age = self._sampler.age_of(stream, floor)
        if age is not None and not age.at_least:
            known.floor, known.floor_us = floor, self._clock.wall_us() - age.ms * 1_000
            return
        if (stream, floor) not in look.dates:
            if not look.may_date:
                return
            look.dates[stream, floor] = None
            with suppress(LogUnreadable):  # The delivery reports it.
                look.dates[stream, floor] = await self._log.time_at(stream, floor)
        known.floor, known.floor_us = floor, look.dates[stream, floor]


def _takes_growth(known: _SeenStream, span: Range, grown: tuple[Range, int] | None) -> bool:
    """If only the end changed and the group was behind already, just add the new records."""
    if grown is None or not (known.lag and known.whole):
        return False
    before, more = grown
    if known.span is not before or before[0] != span[0]:
        return False
    known.lag += more
    known.span = span
    return True
