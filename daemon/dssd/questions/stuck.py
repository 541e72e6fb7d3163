"""`Groups.Stuck`: groups and streams without progress, the reasons, and what would help.

A group is stuck if it is paused, has records but no member, or an operation on it waits. A stream
is stuck if it has records and its delivery is stalled, it takes too long to change hands, or the
group made no progress in it for a while; then the reason is that of the record at the floor, as
`why` gives it. Invariant: it starts no leader and changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from dss_core.answers import Reason
from dss_core.errors import StreamNotFound
from dss_core.ids import StreamId
from dss_core.limits import ACKED_RANGES_MAX
from dss_core.times import text_of_span
from dssd.clock import Clock
from dssd.leaders.groups import Groups
from dssd.leaders.lag import GroupSurvey, StreamSurvey
from dssd.leaders.registry import Registry
from dssd.loop_yield import LoopTurn
from dssd.machines.messages import Stall
from dssd.operations.history import UNENDED
from dssd.operations.operations import Operations
from dssd.questions import reasons
from dssd.questions.limits import STUCK_AFTER_MS, STUCK_FAILURES
from dssd.questions.overviews import Overview
from dssd.questions.queued_reasons import queued
from dssd.questions.queues import QueueQuestions
from dssd.questions.reasons import Now, RecordAsked
from dssd.questions.samples import Sampler
from dssd.questions.why import WhyQuestions
from dssd.store.rows import GroupRow, OperationRow

STUCK_HANDING_OVER_MS = 10_000
"""A stream that is lent or given back for longer than a lease waits for a holder that is frozen."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A group or stream without progress."""

    group: str
    """NAME@FILTER."""
    stream: str
    """Empty: all of the group."""
    reason: Reason
    lag: int
    """Records that it is not done with."""
    still_ms: int | None
    """For how long nothing moved, where that is known."""
    client_id: str = ""
    """Who holds the stream."""


class StuckQuestions:
    """Answers them."""

    def __init__(
        self,
        groups: Groups,
        registry: Registry,
        operations: Operations,
        sampler: Sampler,
        why: WhyQuestions,
        queues: QueueQuestions,
        clock: Clock,
    ) -> None:
        self._queues = queues
        self._groups = groups
        self._registry = registry
        self._operations = operations
        self._sampler = sampler
        self._why = why
        self._clock = clock
        self._noted: frozenset[int] = frozenset()

    def has(self, group_id: int) -> bool:
        """Whether something of the group did not move at the last look."""
        return group_id in self._noted

    async def look(
        self,
        groups: Iterable[Overview],
        lag_in: Callable[[int, StreamId], int],
        after_ms: int = STUCK_AFTER_MS,
    ) -> None:
        """Note which groups `ask` would find something in, judged by their overviews."""
        turn, now_ms = LoopTurn(), self._clock.wall_ms()
        found = {
            row.group_id
            for row in self._operations.unended()
            if now_ms - row.applied_at_ms >= STUCK_HANDING_OVER_MS
        }
        for each in groups:
            await turn.give_way()
            group_id = each.group.group_id
            if each.lag and not each.group.paused:
                still = self._sampler.still(group_id, after_ms)
                if any(lag_in(group_id, stream) for stream in still):
                    found.add(group_id)
        self._noted = frozenset(found)

    async def ask(self, group: str = "", after_ms: int = STUCK_AFTER_MS) -> list[Stuck]:
        """What is stuck in one group or in all; a stream without records is not stuck.

        Raises:
            GroupNotFound, GroupAmbiguous: there is no such group.
        """
        groups = [self._groups.find(group)] if group else list(self._groups.groups())
        turn = LoopTurn()
        found: list[Stuck] = []
        for each in groups:
            found += await self.of_group(each, await self._registry.survey(each, turn), after_ms)
        return found

    async def of_group(
        self, group: GroupRow, survey: GroupSurvey, after_ms: int = STUCK_AFTER_MS
    ) -> list[Stuck]:
        """The group's streams that make no progress, from a survey."""
        found = list(self._waiting_operations(group, survey, after_ms))
        whole = self._whole_group(group, survey)
        if whole is not None:
            return [*found, whole]
        return found + await self._streams(group, survey, after_ms)

    def _whole_group(self, group: GroupRow, survey: GroupSurvey) -> Stuck | None:
        asked = RecordAsked(group, "", 0)
        if group.paused:
            return Stuck(group.full_name, "", reasons.paused(asked), survey.lag, None)
        waiting = survey.lag or survey.queued.retrying
        if waiting and all(member.leaving for member in survey.members):
            reason = reasons.no_members(asked, survey.queued.retrying)
            return Stuck(group.full_name, "", reason, survey.lag, None)
        return None

    def _waiting_operations(
        self, group: GroupRow, survey: GroupSurvey, after_ms: int
    ) -> Iterator[Stuck]:
        for row in self._operations.newest():
            if row.group_id != group.group_id or row.state not in UNENDED:
                continue
            age_ms = survey.taken_at_ms - row.applied_at_ms
            if age_ms >= min(after_ms, STUCK_HANDING_OVER_MS):
                waited_for = sorted(set(self._operations.holders(row).values()) - {""})
                reason = _operation(row, age_ms, waited_for)
                yield Stuck(group.full_name, "", reason, survey.lag, age_ms)

    async def _streams(self, group: GroupRow, survey: GroupSurvey, after_ms: int) -> list[Stuck]:
        found: list[Stuck] = []
        turn = LoopTurn()
        for stream in survey.streams:
            await turn.give_way()
            if stream.lag or stream.queued.retrying:
                with suppress(StreamNotFound):  # its topic was removed meanwhile
                    stuck = await self._stream(group, stream, after_ms)
                    found += [] if stuck is None else [stuck]
        return found

    async def _stream(self, group: GroupRow, stream: StreamSurvey, after_ms: int) -> Stuck | None:
        view = stream.view
        floor = view.progress.floor
        still_ms = self._sampler.still_ms(group.group_id, view.stream)
        asked = RecordAsked(group, str(stream.name), floor)
        reason = self._at_once(asked, stream, after_ms)
        if reason is None and stream.lag and still_ms is not None and still_ms >= after_ms:
            reason = await self._why.at_floor(group, stream.name, view)
        if reason is None:
            return await self._overdue(group, stream, after_ms)
        return Stuck(
            group.full_name, str(stream.name), reason, stream.lag, still_ms, view.client_id
        )

    async def _overdue(self, group: GroupRow, stream: StreamSurvey, after_ms: int) -> Stuck | None:
        """The oldest record of its retry queue, where that should have come again long ago."""
        if not stream.queued.retrying:
            return None
        view, name = stream.view, stream.name
        found = await self._queues.first_due(view, name, ordered=group.ordered)
        now = Now(self._clock.wall_ms(), self._clock.now_ms())
        if found is None or now.wall_ms - found.entry.due_ms < after_ms:
            return None
        asked = RecordAsked(group, str(found.stream), found.entry.origin_offset)
        overdue_ms = now.wall_ms - found.entry.due_ms
        return Stuck(
            group.full_name,
            str(stream.name),
            queued(asked, found, now),
            stream.queued.retrying,
            overdue_ms,
            stream.view.client_id,
        )

    def _at_once(self, asked: RecordAsked, stream: StreamSurvey, after_ms: int) -> Reason | None:
        """Reasons that count at once, or by the leader's own times."""
        view = stream.view
        floor, ranges = view.progress.floor, view.progress.ranges
        if view.stall is not Stall.NONE or len(ranges) >= ACKED_RANGES_MAX:
            return reasons.stalled(asked, view.stall, floor, view.client_id)
        for start, until, count in view.fate.failures:
            if start <= floor < until and count >= STUCK_FAILURES:
                return reasons.failing(asked, count, view.client_id)
        if view.state not in ("granted", "finished", "closed"):
            bound_ms = after_ms if view.state == "free" else min(after_ms, STUCK_HANDING_OVER_MS)
            if view.state_age_ms >= bound_ms:
                live = self._registry.snapshot(asked.group.group_id)
                now = Now(self._clock.wall_ms(), self._clock.now_ms())
                return reasons.not_lent(asked, view, live, now)
        return None


def _operation(row: OperationRow, age_ms: int, waited_for: list[str]) -> Reason:
    told = f"Operation {row.number} waits since {text_of_span(age_ms)}: {row.summary}"
    if waited_for:
        told += f"; for {', '.join(waited_for)}"
    since_ms = row.applied_at_ms
    return Reason("operation-waits", f"{told}.", f"dssctl ops show {row.number}", since_ms=since_ms)
