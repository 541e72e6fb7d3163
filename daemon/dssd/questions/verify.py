"""`Groups.Verify`: checks that the outcomes of a group's records add up to what was appended.

Of each stream, of the offsets since the group began in it::

    appended = acked + filtered + lost + damaged + moved + retried      counted with each commit
             + out + waiting + gone                                     not done yet

Retried records went to a queue, which is checked too. Each entry of a queue is of one attempt::

    appended = acked + lost + damaged + moved                 done
             + retried                                        moved on: failed again, dead, redriven
             + waiting                                        not done yet

Counts and progress come from the same reports and are committed together, so what progress covers
beyond the counts is where the group began. That is known if it began at the first offset or at a
given one; otherwise it lies within bounds. A scan reads what the log still has and recounts:
finished records that match the filter must have counted as acked, the others as filtered.
Invariant: a scan is paced, and there is one at a time; it changes nothing.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple

from dss_core.errors import Overloaded, StreamNotFound, StreamNotRead
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId, StreamName
from dss_core.lane import DEAD, RETRY
from dss_core.limits import RESTORE_OFFSETS_RAISED
from dss_core.progress import Progress, Ranges, complement, normalised, without
from dssd.leaders.groups import Groups
from dssd.leaders.lag import StreamSurvey, selects_whole
from dssd.leaders.registry import Registry
from dssd.log.port import Chunk, Log
from dssd.machines.fate import Counts
from dssd.machines.leader.events import StreamView
from dssd.machines.queues import QueueState
from dssd.questions.reasons import began_at
from dssd.sessions.sessions import Sessions
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue, Topic

LEVEL_WORDS = {RETRY: "retry queue", DEAD: "dead letters"}

SCAN_CHUNK_BYTES_MAX = 1 << 18
"""One read of a scan, so that it holds the disk and the loop only shortly."""

SCAN_BYTES_A_SECOND = 64 << 20
"""The fastest that a scan reads. It also works no more than half of the time: producers and
consumers come first, and a gigabyte takes some twenty seconds."""

SCANS_MAX = 1
"""How many scans run at a time: a second one would double what the first may disturb."""

SCAN_TOLD_EVERY_S = 0.25
"""How often a scan tells how far it is: fast enough for a person."""


class Scanned(NamedTuple):
    """The finished records that a scan found, from where the group or the log begins."""

    matching: int = 0
    """Records that the filter matches."""
    filtered: int = 0
    missing: int = 0
    """Offsets that are damaged now, or gone."""

    def plus(self, other: "Scanned") -> "Scanned":
        """The sum of both."""
        return Scanned(*map(sum, zip(self, other, strict=True)))


class QueueSums(NamedTuple):
    """One queue of a stream."""

    level: int
    end: int
    """Entries that it ever got."""
    counts: Counts
    waiting: int
    uncounted: int
    """As in `StreamSums`."""


@dataclass(frozen=True, slots=True)
class StreamSums:
    """One stream of the group."""

    stream: StreamName
    began: int
    """The first offset that is counted."""
    end: int
    counts: Counts
    out: int
    """Sent to a client and not settled."""
    waiting: int
    gone: int
    """Taken by retention, but not yet counted as lost, because the group has not reached it."""
    uncounted: int
    """Finished but not counted; negative: counted, not finished."""
    problem: str
    """Why it does not add up, as a sentence; empty where it does."""
    scanned: Scanned | None = None
    queues: tuple[QueueSums, ...] = ()

    @property
    def appended(self) -> int:
        """Offsets since the group began, without the gaps that restores from backups left."""
        return (self.end - self.began) % RESTORE_OFFSETS_RAISED


class ScanProgress(NamedTuple):
    """How far a scan of all streams is, in offsets."""

    done: int
    of: int


class VerifyQuestions:
    """Answers them."""

    def __init__(
        self,
        groups: Groups,
        registry: Registry,
        catalogue: Catalogue,
        log: Log,
        sessions: Sessions,
    ) -> None:
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue
        self._log = log
        self._sessions = sessions
        self._scans = 0

    async def ask(
        self, group_text: str, streams: Sequence[str] = (), *, scan: bool = False
    ) -> AsyncGenerator[StreamSums | ScanProgress, None]:
        """The sums of each stream, of all where none is named; of a scan also how far it is.

        Raises:
            GroupNotFound, GroupAmbiguous: there is no such group.
            StreamNotRead: the group does not read one of the streams.
            LogUnreadable: a scan met what cannot be read.
            Overloaded: there is a scan already.
        """
        group = self._groups.find(group_text)
        survey = await self._registry.survey(group)
        by_name = {str(stream.name): stream for stream in survey.streams}
        for wanted in streams:
            if wanted not in by_name:
                raise StreamNotRead(group=group_text, stream=wanted)
        chosen = [by_name[name] for name in streams or by_name]
        if not scan:
            for stream in chosen:
                yield self._sums(group, stream.name, stream.view)
            return
        if self._scans >= SCANS_MAX:
            raise Overloaded(what="The number of scans", limit=SCANS_MAX)
        self._scans += 1
        try:
            async with aclosing(self._scan(group, chosen)) as answers:
                async for answer in answers:
                    yield answer
        finally:
            self._scans -= 1

    # Counts

    def _sums(self, group: GroupRow, name: StreamName, view: StreamView) -> StreamSums:
        bounds = self._log.bounds(view.stream)
        low, high = self._beginning(group, name, bounds.start, bounds.end)
        counted_from = began_at(view)
        began = min(max(counted_from, low), high)
        uncounted = counted_from - began
        open_ = complement(view.progress.ranges, view.progress.floor, bounds.end)
        undone = sum(end - start for start, end in open_)
        gone = sum(max(0, min(end, bounds.start) - start) for start, end in open_)
        out = min(self._out(group, view), undone - gone)
        queues = tuple(map(self._queue_sums, (RETRY, DEAD), view.queues))
        problem = _problem(uncounted)
        for each in queues:
            problem = problem or _problem(each.uncounted, f" in the {LEVEL_WORDS[each.level]}")
        return StreamSums(
            name,
            began,
            bounds.end,
            view.fate.counts.without_restores(),
            out,
            (undone - gone - out) % RESTORE_OFFSETS_RAISED,
            gone,
            uncounted,
            problem,
            queues=queues,
        )

    def _queue_sums(self, level: int, queue: QueueState) -> QueueSums:
        end, progress = self._log.bounds(queue.stream).end, queue.progress
        open_ = complement(progress.ranges, progress.floor, end)
        waiting = sum(high - low for low, high in open_)
        counts = queue.fate.counts
        return QueueSums(level, end, counts, waiting, end - waiting - sum(counts))

    def _beginning(
        self, group: GroupRow, name: StreamName, kept_from: int, end: int
    ) -> tuple[int, int]:
        """The lowest and the highest offset at which the group may have begun in the stream."""
        topic = self._catalogue.get(name.topic)
        if not _had_begun(topic, name.ordinal, group):
            return 0, 0
        if group.start == "earliest":
            return 0, kept_from
        # A start offset lies in the storage topic that took records then, after all older ones.
        if group.start.startswith("=") and not _had_begun(topic, name.ordinal + 1, group):
            return 0, int(group.start[1:])
        return 0, end

    def _out(self, group: GroupRow, view: StreamView) -> int:
        if not view.client_id:
            return 0
        floor = view.progress.floor
        held = self._sessions.held(view.client_id, group.group_id, view.stream, floor)
        return 0 if held is None else held.standing.out

    # A scan

    async def _scan(
        self, group: GroupRow, chosen: Sequence[StreamSurvey]
    ) -> AsyncGenerator[StreamSums | ScanProgress, None]:
        of = sum(max(0, each.end - self._log.bounds(each.view.stream).start) for each in chosen)
        done = 0
        told_s = perf_counter()
        for each in chosen:
            # The sums must be of the moment when the stream's own scan begins.
            view = await self._registry.stream(group, each.view.stream)
            try:
                sums = self._sums(group, each.name, view)
                found = Scanned()
                start = max(sums.began, self._log.bounds(view.stream).start)
                async for upto, part in self._scanned(group, view, start, sums.end):
                    found = found.plus(part)
                    if perf_counter() >= told_s + SCAN_TOLD_EVERY_S:
                        told_s = perf_counter()
                        yield ScanProgress(min(of, done + upto - start), of)
                done += each.end - start
                yield self._compared(replace(sums, scanned=found), view)
            except StreamNotFound:  # its topic was removed meanwhile
                continue

    async def _scanned(
        self, group: GroupRow, view: StreamView, start: int, end: int
    ) -> AsyncGenerator[tuple[int, Scanned], None]:
        wanted = TopicFilter.parse(group.filter)
        whole = selects_whole(wanted, self._catalogue.topic_of(view.stream))
        at = start
        while at < end:
            began_s = perf_counter()
            chunk = await self._read(view.stream, at, None if whole else wanted)
            if chunk.next <= at:
                break
            upto = min(chunk.next, end)
            yield upto, _found(chunk, at, upto, view.progress)
            at = upto
            # Never more than half of the time, nor more than the disk can spare.
            spent_s = perf_counter() - began_s
            await asyncio.sleep(max(spent_s, len(chunk.frames) / SCAN_BYTES_A_SECOND))

    async def _read(self, stream: StreamId, at: int, matching: TopicFilter | None) -> Chunk:
        return await self._log.read(stream, at, bytes_max=SCAN_CHUNK_BYTES_MAX, matching=matching)

    def _compared(self, sums: StreamSums, view: StreamView) -> StreamSums:
        """Check that what the scan found was counted so; moved or trimmed records were not."""
        found = sums.scanned
        assert found is not None
        trimmed = self._log.bounds(view.stream).start > sums.began
        if sums.problem or view.cursor_generation or trimmed:
            return sums
        counts, problem = sums.counts, ""
        # Records that are damaged or gone now may have counted as any kind before.
        taken = counts.acked + counts.retried
        if not found.matching <= taken <= found.matching + found.missing:
            kinds = "acked or retried" if counts.retried else "acked"
            problem = f"{taken:,} are counted as {kinds}, and {found.matching:,} were found."
        elif not found.filtered <= counts.filtered <= found.filtered + found.missing:
            told = f"{counts.filtered:,} are counted as filtered"
            problem = f"{told}, and {found.filtered:,} were found."
        return replace(sums, problem=problem)


def _had_begun(topic: Topic, ordinal: int, group: GroupRow) -> bool:
    """Whether a storage topic may have had records when the group was declared.

    It compares ids, which rise in order of creation, because a clock that was set back would give
    false problems.
    """
    part = topic.part(ordinal)
    if part is None or ordinal > topic.produce_ordinal:
        return False
    return part.storage_topic_id < group.group_id


def _problem(uncounted: int, where: str = "") -> str:
    if uncounted > 0:
        return f"{uncounted:,} offsets{where} are done, but not counted."
    if uncounted < 0:
        return f"{-uncounted:,} more{where} are counted than are done."
    return ""


def _found(chunk: Chunk, start: int, end: int, progress: Progress) -> Scanned:
    """The finished offsets of the chunk, by kind."""
    missing = normalised((*chunk.damaged, *chunk.lost))
    matching = complement(chunk.mask, chunk.base, chunk.base + chunk.records)
    filtered = without(without(((start, end),), missing), matching)
    return Scanned(*(_done(each, start, end, progress) for each in (matching, filtered, missing)))


def _done(ranges: Ranges, start: int, end: int, progress: Progress) -> int:
    within = ((max(low, start), min(high, end)) for low, high in ranges)
    return sum(progress.acked_in(low, high) for low, high in within if low < high)
