"""A redrive that sends some dead letters ahead: the canary.

::

    the first ──► come back ──► all done with ──────────────► the others come back
                      └───────► too many of them fail ──────► the others stay dead

An entry that fails again carries the number of the operation, so it is found among the new entries
of the queues. Once the canary is done, the others are committed as rows of the same operation, and
the leader tells their lanes. After a restart the daemon looks again from the queue ends at which
the operation began. Invariant: until the canary is done, rows name only the canary, so nothing else
comes back, even over a crash.
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dss_core.errors import CanaryFailed
from dss_core.ids import StreamId, StreamName
from dss_core.lane import DEAD, RETRY
from dss_core.limits import REDRIVE_RATE
from dss_core.progress import Ranges, normalised, total, without
from dssd.events.kinds import REDRIVE_STOPPED
from dssd.events.model import GROUP_FIELD, Event, Note
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.machines.delivery.causes import FOLLOWS
from dssd.machines.leader.events import CancelMoves, CursorMove, MoveCursors, StreamView
from dssd.machines.leader.lent_stream import StreamState
from dssd.operations.kinds.queue_choice import ChoiceBudget
from dssd.operations.kinds.queue_moves import move_row
from dssd.operations.plans import Worked
from dssd.queues.looking import EntryLook, Lane, QueueEntry
from dssd.store.port import Put, Store
from dssd.store.rows import OperationRow

CANARY_LOOK_S = 0.5
"""The pause between looks at a canary: each surveys the group, some milliseconds."""

CANARY_LOOK_BYTES = 8 << 20
"""How much of the queues one look reads; the next look continues there."""


READ_TO_END = frozenset({StreamState.REHOMING.value, StreamState.FINISHED.value})

ELSEWHERE = (
    "a stream was read to its end meanwhile, and its waiting entries moved to streams of the next "
    "storage topic: run the same command again for the dead letters there"
)


@dataclass(frozen=True, slots=True)
class CanaryLane:
    """The canary's part in one stream."""

    name: str
    stream: StreamId
    first: Ranges
    """The dead letters of the canary."""
    all: Ranges
    """The dead letters of the canary, and those that follow it."""
    ends: tuple[int, int]
    """The ends of its queues when the operation began."""


@dataclass(frozen=True, slots=True)
class Canary:
    """The canary of one operation."""

    number: int
    group_id: int
    rate: int
    percent: int
    """If more than this share of it fails, the others stay dead letters."""
    whole_keys: bool
    """Canary and others together are all the dead letters of their keys."""
    lanes: tuple[CanaryLane, ...]

    @property
    def size(self) -> int:
        """How many go first."""
        return sum(total(each.first) for each in self.lanes)

    @property
    def others(self) -> int:
        """How many follow."""
        return sum(total(each.all) for each in self.lanes) - self.size

    def moves(self, *, whole: bool) -> tuple[CursorMove, ...]:
        """The moves of the lanes, for the canary or for all."""
        count = self.size + self.others if whole else self.size
        over_ms = -(-count * 1_000 // self.rate)
        lanes = [each for each in self.lanes if (each.all != each.first if whole else each.first)]
        return tuple(
            CursorMove(
                each.stream,
                self.number,
                (),
                (),
                redriven=each.all if whole else each.first,
                redrive_ms=over_ms,
                whole_keys=whole and self.whole_keys,
            )
            for each in lanes
        )

    def before(self) -> dict[str, Any]:
        """The state of the canary that an operation keeps beside its change."""
        lanes = {each.name: [each.first, each.ends] for each in self.lanes}
        return {"canary": lanes, "whole_keys": self.whole_keys}

    def is_too_many(self, failed: int) -> bool:
        """Whether the others stay."""
        return failed * 100 > self.percent * self.size


def kept_canary(row: OperationRow) -> Canary | None:
    """The canary of an operation that was applied; None: it has none."""
    before = json.loads(row.before)
    first = before.get("canary")
    if first is None:
        return None
    change = json.loads(row.change)
    lanes: list[CanaryLane] = []
    for lane in change["lanes"]:
        name = lane["stream"]
        stream = StreamId(lane["storage_topic_id"], StreamName.parse(name).partition)
        ranges, ends = first[name]
        lanes.append(CanaryLane(name, stream, _pairs(ranges), _pairs(lane["ranges"]), tuple(ends)))
    rate = change["rate"] or REDRIVE_RATE
    told = rate, change["canary_percent"], before["whole_keys"]
    return Canary(row.number, row.group_id, *told, tuple(lanes))


def _pairs(ranges: Sequence[Sequence[int]]) -> Ranges:
    return tuple((start, end) for start, end in ranges)


class Canaries:
    """The canaries that run."""

    def __init__(
        self, store: Store, groups: Groups, registry: Registry, log: Log, note: Note
    ) -> None:
        self._store = store
        self._groups = groups
        self._registry = registry
        self._log = log
        self._note = note
        self._stopped: dict[int, asyncio.Event] = {}

    def stop(self, canary: Canary) -> None:
        """Bring back nothing more."""
        self._stopped.setdefault(canary.number, asyncio.Event()).set()
        self._registry.instruct(canary.group_id, CancelMoves(canary.number))

    async def watch(self, canary: Canary) -> Worked | None:
        """Bring the others back once the canary is done, or leave them.

        Raises:
            GroupNotFound: the group was removed.
            LogUnreadable, FrameCorrupt: a queue cannot be read.
        """
        stopped = self._stopped.setdefault(canary.number, asyncio.Event())
        try:
            failed = await self._until_done(canary, stopped)
            if failed is not None and failed.is_elsewhere:
                self._registry.instruct(canary.group_id, CancelMoves(canary.number))
                await self._until_quiet(canary)
                return _told_elsewhere(canary)
            if failed is not None and canary.is_too_many(len(failed.records)):
                self._registry.instruct(canary.group_id, CancelMoves(canary.number))
                await self._until_quiet(canary)
                return self._left_dead(canary, failed)
            if failed is not None:
                await self._bring_others(canary, stopped)
                await self._until_back(canary, stopped)
            await self._until_quiet(canary)
            if failed is not None and not stopped.is_set() and await self._has_missed(canary):
                return _told_elsewhere(canary)
        finally:
            self._stopped.pop(canary.number, None)
        return None

    async def _until_done(self, canary: Canary, stopped: asyncio.Event) -> "Failures | None":
        """The failures of the canary; None: the operation was stopped before they were known."""
        failures = Failures(canary)
        while not stopped.is_set():
            views = await self._views(canary)
            await failures.look(views, self._log)
            if canary.is_too_many(len(failures.records)):
                return failures
            failures.is_elsewhere = self._is_elsewhere(canary, views)
            if failures.is_elsewhere or failures.is_done_with(views):
                return failures
            await _rest(stopped)
        return None

    def _is_elsewhere(self, canary: Canary, views: dict[StreamId, StreamView]) -> bool:
        """Whether a lane was re-homed, so that its entries are in other lanes."""
        states = {views[each.stream].state for each in canary.lanes if each.stream in views}
        return self._groups.get(canary.group_id).ordered and not states.isdisjoint(READ_TO_END)

    async def _has_missed(self, canary: Canary) -> bool:
        """Whether the others of a lane were re-homed before it could bring them back."""
        views = await self._views(canary)
        asked = ((each, views[each.stream]) for each in canary.lanes if each.stream in views)
        return any(
            without(lane.all, normalised((*lane.first, *view.queues[DEAD - 1].redrive.ranges)))
            for lane, view in asked
        )

    async def _bring_others(self, canary: Canary, stopped: asyncio.Event) -> None:
        moves = canary.moves(whole=True)
        group = self._groups.get(canary.group_id)
        await self._store.commit([Put(move_row(group, move)) for move in moves])
        self._registry.instruct(canary.group_id, MoveCursors(canary.number, moves))
        if stopped.is_set():
            # It was told to stop before it knew of these moves, so tell it again.
            self._registry.instruct(canary.group_id, CancelMoves(canary.number))

    async def _until_back(self, canary: Canary, stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            views = await self._views(canary)
            if all(_is_done(views, each, each.all) for each in canary.lanes):
                return
            await _rest(stopped)

    async def _until_quiet(self, canary: Canary) -> None:
        """Wait until no lane is bringing any of it back."""
        while await self._is_at_work(canary):  # noqa: ASYNC110 - a report rings no bell
            await asyncio.sleep(CANARY_LOOK_S)

    async def _is_at_work(self, canary: Canary) -> bool:
        views = await self._views(canary)
        dead = (view.queues[DEAD - 1] for view in views.values())
        return any(each.redriving == canary.number for each in dead)

    async def _views(self, canary: Canary) -> dict[StreamId, StreamView]:
        survey = await self._registry.survey(self._groups.get(canary.group_id))
        return {each.view.stream: each.view for each in survey.streams if each.view.queues}

    def _left_dead(self, canary: Canary, failed: "Failures") -> Worked:
        group = self._groups.get(canary.group_id).full_name
        first = failed.first
        assert first is not None
        stopped = CanaryFailed(
            failed=f"{len(failed.records):,}",
            canary=f"{canary.size:,}",
            error=first.error_words,
            left=f"{canary.others:,}",
            group=group,
        )
        fields = {
            GROUP_FIELD: group,
            "operation": str(canary.number),
            "record": f"{first.stream}@{first.entry.origin_offset}",
            "key": (first.key or b"").decode(errors="backslashreplace"),
            "error": first.error_words,
            "attempt": str(first.entry.attempt),
            "client_id": first.entry.client_id,
        }
        self._note(Event(REDRIVE_STOPPED, group, stopped.message, fields))
        return Worked({"moves": len(canary.lanes), "records": canary.size}, stopped.message)


class Failures:
    """The records of a canary that failed again, as far as the queues were looked at."""

    def __init__(self, canary: Canary) -> None:
        self._canary = canary
        self.records: set[tuple[str, int]] = set()
        """The failed records, by stream and offset."""
        self.is_elsewhere = False
        """Some of it is in other lanes, which are not looked at."""
        self.first: QueueEntry | None = None
        self._looked_to = {each.stream: list(each.ends) for each in canary.lanes}
        self._open: dict[StreamId, set[int]] = {each.stream: set() for each in canary.lanes}
        """Entries of retry queues that were not sent yet, or are in flight."""
        self._is_behind = False
        """The last look did not reach the end of the queues."""

    async def look(self, views: dict[StreamId, StreamView], log: Log) -> None:
        """Look at the entries that the queues got since the last look."""
        look = EntryLook(log, ChoiceBudget(CANARY_LOOK_BYTES))
        for lane in self._canary.lanes:
            view = views.get(lane.stream)
            if view is None:
                continue  # its topic was removed
            for level in (RETRY, DEAD):
                await self._look_at(look, lane, level, view)
        self._is_behind = look.budget.spent

    async def _look_at(
        self, look: EntryLook, lane: CanaryLane, level: int, view: StreamView
    ) -> None:
        topic = StreamName.parse(lane.name).topic
        queue = Lane(topic, level, view.queues[level - 1])
        places = self._looked_to[lane.stream]
        async for end, found in look.entries(queue, places[level - 1]):
            places[level - 1] = end
            for each in found:
                if each.entry.operation == self._canary.number:
                    self._judge(lane, level, each)

    def _judge(self, lane: CanaryLane, level: int, found: QueueEntry) -> None:
        if level == RETRY and not found.entry.attempt:
            self._open[lane.stream].add(found.queue_offset)
        elif found.entry.cause != FOLLOWS:
            self.records.add((str(found.stream), found.entry.origin_offset))
            self.first = self.first or found

    def is_done_with(self, views: dict[StreamId, StreamView]) -> bool:
        """Whether all of the canary came back, and all of it was acknowledged or failed."""
        for lane in self._canary.lanes:
            view = views.get(lane.stream)
            if view is None:
                continue
            retry = view.queues[RETRY - 1].progress
            waiting = self._open[lane.stream]
            waiting -= {at for at in waiting if retry.is_acked(at)}
            if waiting or not _is_done(views, lane, lane.first):
                return False
        return not self._is_behind


def _is_done(views: dict[StreamId, StreamView], lane: CanaryLane, ranges: Ranges) -> bool:
    view = views.get(lane.stream)
    dead = None if view is None else view.queues[DEAD - 1].progress
    return dead is None or all(dead.is_acked_all(start, end) for start, end in ranges)


def _told_elsewhere(canary: Canary) -> Worked:
    return Worked({"moves": len(canary.lanes), "records": canary.size}, ELSEWHERE)


async def _rest(stopped: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(CANARY_LOOK_S):
            await stopped.wait()
