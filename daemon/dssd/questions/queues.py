"""`Queues`: reads the retry queues and dead letters of a group.

Invariant: it starts no leader and changes nothing. A call reads a bounded number of bytes and
answers with a bounded number of entries; where more is left, its token says where.
"""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial

from dss_core.answers import ErrorCount, KeyCount
from dss_core.errors import IllegalArgument, StreamNotFound
from dss_core.ids import StreamId, StreamName
from dss_core.lane import RETRY
from dss_core.progress import Ranges
from dssd.leaders.groups import Groups
from dssd.leaders.lag import lag_of
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.machines.delivery.causes import FOLLOWS
from dssd.machines.leader.events import StreamView
from dssd.questions.limits import ENTRIES_BYTES_MAX, ENTRIES_PAGE_MAX
from dssd.questions.record_look import Budget
from dssd.queues.looking import (
    ALL,
    Choice,
    EntryLook,
    Found,
    Lane,
    Look,
    QueueEntry,
    entries_in,
    errors_in,
    keys_in,
)
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue

QUEUE_LOOK_BYTES_MAX = 8 << 20
"""Bytes of queues that one call reads: some 20,000 entries, half a second of a thread. Callers
continue with the page token."""


ENTRIES_COUNTED_MAX = 20_000
"""How many entries one answer counts by error or key: a tenth of a second; callers continue with
the page token."""

ERRORS_TOLD_MAX = 1_000
"""Errors in one answer: as many as a person can tell apart; callers continue with the page
token."""


KEYS_TOLD_MAX = 1_000
"""About how many keys one answer has; callers continue with the page token."""


FIRST_DUE_BYTES_MAX = 1 << 20
"""Entries of an ordered stream's retry queue that are read to find an overdue one: some
milliseconds. If more records of one key wait in front, overdue entries behind them are not
found."""


@dataclass(frozen=True, slots=True)
class EntriesAsked:
    """Which entries of a level of a group."""

    group: str
    level: int
    choice: Choice = ALL


@dataclass(frozen=True, slots=True)
class EntriesPage:
    """Some entries."""

    entries: tuple[QueueEntry, ...]
    next_token: str
    """Where to go on; empty: all was looked at."""
    total: int
    """How many entries the level has, wanted or not."""


@dataclass(frozen=True, slots=True)
class ErrorsPage:
    """Counts over some entries."""

    errors: tuple[ErrorCount, ...]
    next_token: str
    total: int


@dataclass(frozen=True, slots=True)
class KeysPage:
    """Counts over some entries."""

    keys: tuple[KeyCount, ...]
    next_token: str
    total: int


class QueueQuestions:
    """Answers them."""

    def __init__(
        self,
        groups: Groups,
        registry: Registry,
        catalogue: Catalogue,
        log: Log,
    ) -> None:
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue
        self._log = log

    async def entries(
        self, asked: EntriesAsked, token: str = "", *, whole: bool = False
    ) -> EntriesPage:
        """Entries, stream by stream, the oldest of each first.

        Raises:
            GroupNotFound, GroupAmbiguous, IllegalArgument: there is no such thing.
            LogUnreadable, FrameCorrupt: a queue cannot be read.
        """
        lanes = await self._lanes(asked)
        page = _Page(ENTRIES_PAGE_MAX, ENTRIES_BYTES_MAX, whole=whole)
        places = self._walk(lanes, token, self.look(), entries_in, asked.choice.key)
        next_token = ""
        async with aclosing(places):
            async for next_token, found in places:
                cut = page.take(filter(asked.choice.takes, found or ()))
                if cut is not None:
                    next_token = _token(cut.queue, cut.queue_offset)
                    break
        return EntriesPage(tuple(page.entries), next_token, self._total(lanes))

    async def newest(self, asked: EntriesAsked, count: int, *, whole: bool = False) -> EntriesPage:
        """The newest entries of all streams, at most ``count``, the oldest of them first.

        A token says that not all could be looked at.

        Raises:
            As `entries`.
        """
        lanes = await self._lanes(asked)
        look, best = self.look(), list[QueueEntry]()
        for last_us, lane in await self._last_first(lanes):
            if look.budget.spent or (len(best) == count and last_us < best[0].entered_at_us):
                break
            tail = _tail(look.waiting(lane.queue), count)
            async with aclosing(look.entries(lane, tail)) as pieces:
                async for _, found in pieces:
                    best = sorted([*best, *found], key=lambda each: each.entered_at_us)[-count:]
        page = _Page(count, ENTRIES_BYTES_MAX, whole=whole)
        is_cut = page.take(reversed(best)) is not None or look.budget.spent
        token = "cut" if is_cut else ""
        return EntriesPage(tuple(reversed(page.entries)), token, self._total(lanes))

    async def errors(self, group: str, level: int, token: str = "") -> ErrorsPage:
        """How many entries are of which error, the most frequent first.

        Raises:
            As `entries`.
        """
        lanes = await self._lanes(EntriesAsked(group, level))
        counts: dict[tuple[int, str], ErrorCount] = {}
        places = self._walk(lanes, token, self.look(), errors_in)
        next_token = ""
        async with aclosing(places):
            async for behind, found in places:
                next_token = behind
                for name, each in (found or {}).items():
                    counts[name] = counts[name].with_more(each) if name in counts else each
                counted = sum(each.count for each in counts.values())
                if len(counts) >= ERRORS_TOLD_MAX or counted >= ENTRIES_COUNTED_MAX:
                    break
        told = sorted(counts.values(), key=lambda each: (each.cause == FOLLOWS, -each.count))
        return ErrorsPage(tuple(told), next_token, self._total(lanes))

    async def keys(self, group: str, level: int, error: str = "", token: str = "") -> KeysPage:
        """How many entries, of an error, are of which key, the most frequent first.

        Raises:
            As `entries`.
        """
        lanes = await self._lanes(EntriesAsked(group, level))
        counts: dict[bytes | None, KeyCount] = {}
        counted = 0
        places = self._walk(lanes, token, self.look(), partial(keys_in, error))
        next_token = ""
        async with aclosing(places):
            async for behind, found in places:
                next_token = behind
                for key, each in (found or {}).items():
                    counts[key] = counts[key].with_more(each) if key in counts else each
                counted += sum(each.count for each in (found or {}).values())
                if len(counts) >= KEYS_TOLD_MAX or counted >= ENTRIES_COUNTED_MAX:
                    break
        told = sorted(counts.values(), key=lambda each: -each.count)
        return KeysPage(tuple(told), next_token, self._total(lanes))

    async def in_lane(
        self,
        view: StreamView,
        name: StreamName,
        budget: Budget,
        takes: Callable[[QueueEntry], bool],
        key: bytes | None = None,
    ) -> list[QueueEntry]:
        """The entries of a stream's queues that are wanted, as far as the budget goes."""
        look = self.look(budget)
        found: list[QueueEntry] = []
        for level, queue in enumerate(view.queues, start=1):
            async with aclosing(look.entries(Lane(name.topic, level, queue), key=key)) as pieces:
                async for _, some in pieces:
                    found += filter(takes, some)
        return found

    async def first_due(
        self, view: StreamView, name: StreamName, *, ordered: bool = False
    ) -> QueueEntry | None:
        """The entry that is due first, in the oldest frame of a retry queue.

        In an ordered group an entry that waits for its key has no due time, so the first frame with
        any other entry counts, within the bound.
        """
        budget = Budget(FIRST_DUE_BYTES_MAX if ordered else 1)
        look = EntryLook(self._log, budget, chunk_bytes=1)
        async with aclosing(look.entries(Lane(name.topic, RETRY, view.queues[0]))) as pieces:
            async for _, found in pieces:
                timed = [each for each in found if each.entry.due_ms or not ordered]
                if timed or not ordered:
                    return min(timed, key=lambda each: each.entry.due_ms, default=None)
        return None

    def look(self, budget: Budget | None = None) -> EntryLook:
        """A look for one question."""
        return EntryLook(self._log, budget or Budget(QUEUE_LOOK_BYTES_MAX))

    async def _lanes(self, asked: EntriesAsked) -> list[Lane]:
        """The queues of the level, in the order of their streams."""
        group: GroupRow = self._groups.find(asked.group)
        view = await self._registry.view(group, LoopTurn())
        lanes: list[Lane] = []
        for stream in view.streams:
            if not stream.queues:
                continue
            with suppress(StreamNotFound):  # its topic was removed meanwhile
                name = self._catalogue.name_of(stream.stream)
                if asked.choice.may_be_in(name, ordered=group.ordered):
                    lanes.append(Lane(name.topic, asked.level, stream.queues[asked.level - 1]))
        return sorted(lanes, key=lambda lane: lane.queue.stream)

    async def _walk(
        self,
        lanes: list[Lane],
        token: str,
        look: EntryLook,
        of: Look[Found],
        key: bytes | None = None,
    ) -> AsyncGenerator[tuple[str, Found | None], None]:
        """Read the queues from a place on, in pieces: yields the next place and the entries.

        After the last piece there is no next place.
        """
        begin, at = _place(token)
        left = [lane for lane in lanes if lane.queue.stream >= begin]
        for number, lane in enumerate(left):
            start = at if lane.queue.stream == begin else 0
            behind = left[number + 1 :]
            rest = _token(behind[0].queue.stream, 0) if behind else ""
            async with aclosing(look.pieces(lane, of, start, key)) as pieces:
                async for end, found in pieces:
                    more = look.first(lane.queue, end) is not None
                    yield _token(lane.queue.stream, end) if more else rest, found
            if look.budget.spent:
                return

    async def _last_first(self, lanes: list[Lane]) -> list[tuple[int, Lane]]:
        """The queues with anything in them and when that came, the last one first."""
        found: list[tuple[int, Lane]] = []
        for lane in lanes:
            end = self._log.span(lane.queue.stream)[1]
            if end > lane.queue.progress.floor:
                last_us = await self._log.time_at(lane.queue.stream, end - 1)
                found.append((last_us or 0, lane))
        return sorted(found, key=lambda each: -each[0])

    def _total(self, lanes: list[Lane]) -> int:
        total = 0
        for lane in lanes:
            with suppress(StreamNotFound):
                queue = lane.queue
                span = self._log.span(queue.stream)
                total += lag_of(queue.stream, queue.progress, span, self._log)[0]
        return total


class _Page:
    """The entries of one answer."""

    def __init__(self, count_max: int, bytes_max: int, *, whole: bool) -> None:
        self.entries: list[QueueEntry] = []
        self._count_max = count_max
        self._bytes_left = bytes_max
        self._whole = whole

    def take(self, found: Iterable[QueueEntry]) -> QueueEntry | None:
        """Take what there is room for; returns the first entry that did not fit."""
        for each in found:
            size = self._size(each)
            if len(self.entries) >= self._count_max or (self.entries and size > self._bytes_left):
                return each
            self._bytes_left -= size
            self.entries.append(each)
        return None

    def _size(self, entry: QueueEntry) -> int:
        size = len(entry.subject) + len(entry.key or b"") + len(entry.error)
        if self._whole:
            size += len(entry.payload)
            size += sum(len(name) + len(value) for name, value in entry.headers)
        return size


def _tail(waiting: Ranges, count: int) -> int:
    """The first of the last ``count`` offsets."""
    for start, end in reversed(waiting):
        if end - start >= count:
            return end - count
        count -= end - start
    return waiting[0][0] if waiting else 0


def _token(stream: StreamId, offset: int) -> str:
    return f"{stream.storage_topic_id}/{stream.partition}/{offset}"


def _place(token: str) -> tuple[StreamId, int]:
    if not token:
        return StreamId(0, 0), 0
    parts = token.split("/")
    if len(parts) != 3 or not all(part.isdecimal() and len(part) < 20 for part in parts):
        raise IllegalArgument(argument="page_token", rule="it is that of an answer")
    storage_topic_id, partition, offset = map(int, parts)
    return StreamId(storage_topic_id, partition), offset
