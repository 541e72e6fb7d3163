"""`Groups.Why`: the state of a record in a group, and why it is not delivered.

For an offset it checks the group's progress, then the holder's delivery window, then why there is
no holder. For a key it finds the unfinished records of the key, oldest first, and answers each like
an offset. Invariant: it starts no leader and changes nothing; a search for a key is bounded, and
the answer says where it ended.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dss_core.answers import Reason
from dss_core.errors import KeyNotFound, LogUnreadable, OffsetNotWritten, StreamNotRead
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId, StreamName
from dss_core.lane import DEAD
from dss_core.progress import complement
from dss_core.routing import key_hash, partition_of
from dssd.clock import Clock
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.machines.leader.events import StreamView
from dssd.questions import reasons
from dssd.questions.answers import FoundRecord, RecordAnswer, StreamLooked, WhyAnswer
from dssd.questions.key_reasons import KeyHeld, behind_first, key_held, of_entry, of_record
from dssd.questions.queued_reasons import perhaps_queued, record_of
from dssd.questions.queues import QueueQuestions
from dssd.questions.reasons import Now, RecordAsked
from dssd.questions.record_look import Budget, Gap, KeyFound, record_at, records_of_key
from dssd.queues.looking import QueueEntry
from dssd.sessions.sessions import Sessions
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue

LOOK_BACK_RECORDS_MAX = 65_536
"""How far below the floor to search for the newest finished record of a key without unfinished
ones: a caller who waits for a record has no interest in older ones."""

KEY_RECORDS_MAX = 10
"""How many open records of a key one answer has, the oldest: they come one after the other."""

KEY_STREAMS_MAX = 64
"""How many streams one search for a key reads: one for each storage topic that may hold it."""


@dataclass(frozen=True, slots=True)
class KeyAsked:
    """A key, and where to look for it."""

    key: bytes
    topic: str = ""
    """Only there; empty: in all that the group reads."""
    stream: str = ""
    """Only there."""
    start: int | None = None
    """From there on; None: from the group's floor."""


class WhyQuestions:
    """Answers them."""

    def __init__(
        self,
        groups: Groups,
        registry: Registry,
        catalogue: Catalogue,
        log: Log,
        sessions: Sessions,
        clock: Clock,
        kind_of: Callable[[int], str],
        queues: QueueQuestions,
    ) -> None:
        self._kind_of = kind_of
        self._queues = queues
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue
        self._log = log
        self._sessions = sessions
        self._clock = clock

    async def of_offset(self, group_text: str, stream_text: str, offset: int) -> WhyAnswer:
        """Where the record at an offset stands.

        Raises:
            GroupNotFound, GroupAmbiguous, IllegalName, StreamNotFound: there is no such thing.
            StreamNotRead: the group does not read the stream.
            OffsetNotWritten: the stream ends before it.
        """
        group = self._groups.find(group_text)
        name = StreamName.parse(stream_text)
        stream = self._stream_read(group, name)
        end = self._log.bounds(stream).end
        if offset >= end:
            last = reasons.RecordAsked(group, stream_text, max(end, 1) - 1)
            command = last.why(last.offset) if end else f"dssctl topics describe {name.topic}"
            raise OffsetNotWritten(stream=stream_text, end=end, offset=offset, command=command)
        view = await self._registry.stream(group, stream)
        return WhyAnswer((await self._answer(group, name, view, offset),))

    async def at_floor(self, group: GroupRow, name: StreamName, view: StreamView) -> Reason:
        """Why the first unfinished record is not delivered; a record in flight needs no read."""
        floor = view.progress.floor
        if view.client_id:
            held = self._sessions.held(view.client_id, group.group_id, view.stream, floor)
            now = self._now()
            asked = RecordAsked(group, str(name), floor)
            reason = held and reasons.out(asked, view.client_id, held.standing, now)
            if reason:
                return reason
        return (await self._answer(group, name, view, floor)).reason

    async def of_key(self, group_text: str, asked: KeyAsked) -> WhyAnswer:
        """Where the records of a key stand: the oldest that are not done, else the newest done.

        Raises:
            GroupNotFound, GroupAmbiguous, IllegalName, TopicNotFound, StreamNotFound: there is no
                such thing.
            StreamNotRead: the group does not read the stream.
            KeyNotFound: no record of it is kept.
        """
        group = self._groups.find(group_text)
        look = _KeyLook(asked.key, Budget())
        streams = self._streams_of_key(group, asked)
        views = {stream: await self._registry.stream(group, stream) for stream in streams.values()}
        for name, stream in streams.items():
            await self._look_on(look, name, views[stream], asked.start)
            if asked.start is None:
                await self._look_in_queues(look, name, views[stream])
            elif group.ordered:
                look.of_key[name] = await self._queues.in_lane(
                    views[stream], name, look.budget, look.is_of_key, asked.key
                )
        if not look.open and not look.queued:
            for name, stream in streams.items():
                await self._look_back(look, name, views[stream])
        if look.found_nothing and look.is_complete and asked.start is None:
            raise KeyNotFound(
                group=group_text, key=shlex.quote(asked.key.decode(errors="backslashreplace"))
            )
        held = {name: _held(group, views[streams[name]], of) for name, of in look.of_key.items()}
        records = [
            self._answer_queued(
                RecordAsked(group, str(each.stream), each.entry.origin_offset),
                each.stream,
                views[streams[each.stream]] if each.stream in streams else view,
                each,
                held.get(name),
            )
            for name, view, each in look.queued
        ]
        first: dict[StreamName, RecordAnswer] = {}
        for name, found in look.chosen:
            view = views[streams[name]]
            answer = await self._answer(
                group, name, view, found.offset, found.record, held.get(name)
            )
            before = first.setdefault(name, answer)
            records.append(_behind_first(group, answer, before))
        return WhyAnswer(tuple(records), tuple(look.looked), _how_to_go_on(group, asked, look))

    def _stream_read(self, group: GroupRow, name: StreamName) -> StreamId:
        stream = self._catalogue.id_of(name)
        if not self._catalogue.get(name.topic).meets(TopicFilter.parse(group.filter)):
            raise StreamNotRead(group=group.name, stream=str(name))
        return stream

    # One record

    async def _answer(
        self,
        group: GroupRow,
        name: StreamName,
        view: StreamView,
        offset: int,
        record: FoundRecord | None = None,
        held: KeyHeld | None = None,
    ) -> RecordAnswer:
        asked = RecordAsked(group, str(name), offset)
        bounds = self._log.bounds(view.stream)
        is_of_key = record is not None
        kind = "kept" if record else None
        if record is None and offset >= bounds.start:
            record, kind = await self._in_log(view.stream, offset)
        if record is not None and not TopicFilter.parse(group.filter).matches(record.subject):
            kind = "filtered"
        reason = self._reason(asked, view, kind, bounds.start)
        if view.progress.is_acked(offset) and kind != "filtered":
            budget = Budget()
            for lane, there in await self._lanes_of(group, name, view, record):
                found = await self._queues.in_lane(
                    there, lane, budget, lambda each: each.is_of(name, offset)
                )
                if found:
                    held = held or await self._key_held(group, lane, there, found[-1].key)
                    return self._answer_queued(asked, name, view, found[-1], held)
            reason = perhaps_queued(reason) if budget.spent else reason
        elif record is not None:
            if not is_of_key:
                held = await self._key_held(group, name, view, record.key)
            reason = of_record(asked, reason, held, self._now())
        return self._answer_with(asked, name, view, reason, record)

    async def _lanes_of(
        self, group: GroupRow, name: StreamName, view: StreamView, record: FoundRecord | None
    ) -> list[tuple[StreamName, StreamView]]:
        """The lanes in whose queues a record may be: that of its stream, and in an ordered group
        those of its key in later storage topics."""
        lanes = [(name, view)]
        if not group.ordered:
            return lanes
        topic = self._catalogue.get(name.topic)
        hashed = None if record is None or record.key is None else key_hash(record.key)
        for part in topic.storage_topics:
            own: Sequence[int] = range(part.partitions)
            if hashed is not None:
                own = [partition_of(topic.router, hashed, part.partitions, part.factor)]
            for partition in own if part.ordinal > name.ordinal else ():
                stream = StreamId(part.storage_topic_id, partition)
                later = StreamName(topic.name, part.ordinal, partition)
                lanes.append((later, await self._registry.stream(group, stream)))
        return lanes

    async def _key_held(
        self, group: GroupRow, name: StreamName, view: StreamView, key: bytes | None
    ) -> KeyHeld | None:
        """The entries of a key in the queues, if they block others of the key."""
        if key is None or not group.ordered:
            return None
        found = await self._queues.in_lane(view, name, Budget(), lambda each: each.key == key, key)
        return _held(group, view, found)

    def _answer_queued(
        self,
        asked: RecordAsked,
        name: StreamName,
        view: StreamView,
        found: QueueEntry,
        held: KeyHeld | None,
    ) -> RecordAnswer:
        reason = of_entry(asked, found, held, self._now())
        return self._answer_with(asked, name, view, reason, record_of(found))

    def _now(self) -> Now:
        return Now(self._clock.wall_ms(), self._clock.now_ms())

    def _answer_with(
        self,
        asked: RecordAsked,
        name: StreamName,
        view: StreamView,
        reason: Reason,
        record: FoundRecord | None,
    ) -> RecordAnswer:
        bounds = self._log.bounds(view.stream)
        floor = max(view.progress.floor, bounds.start)
        ahead = self._ahead(view, bounds.start, asked.offset)
        return RecordAnswer(name, asked.offset, reason, record, floor, bounds.end, ahead)

    async def _in_log(self, stream: StreamId, offset: int) -> tuple[FoundRecord | None, str]:
        try:
            found = await record_at(self._log, stream, offset)
        except LogUnreadable:
            return None, "unreadable"
        if isinstance(found, Gap):
            return None, "damaged" if found.damaged else "lost"
        return found, "kept"

    def _ahead(self, view: StreamView, kept_from: int, offset: int) -> int:
        open_before = complement(view.progress.ranges, max(view.progress.floor, kept_from), offset)
        return sum(self._log.count(view.stream, start, end)[0] for start, end in open_before)

    def _reason(
        self, asked: RecordAsked, view: StreamView, kind: str | None, kept_from: int
    ) -> Reason:
        if view.progress.is_acked(asked.offset):
            moved_by = self._kind_of(view.cursor_generation)
            return reasons.done(asked, view, kind, kept_from, moved_by)
        if kind is None:
            return reasons.gone(kept_from, StreamName.parse(asked.stream).topic)
        passed_by = reasons.not_wanted(kind, asked)
        return passed_by or self._not_done(asked, view, kept_from)

    def _not_done(self, asked: RecordAsked, view: StreamView, kept_from: int) -> Reason:
        now, held = self._now(), None
        group_id = asked.group.group_id
        if view.client_id:
            held = self._sessions.held(view.client_id, group_id, view.stream, asked.offset)
        if held is not None:
            # The holder may have settled it since the leader heard of it last.
            ahead = self._ahead(view, kept_from, asked.offset)
            return reasons.held(asked, view.client_id, held, ahead, now)
        waits_for = [str(self._catalogue.name_of(each)) for each in view.waits_for]
        live = self._registry.snapshot(group_id)
        not_lent = reasons.not_lent(asked, view, live, now, waits_for)
        return not_lent or reasons.holder_gone(asked, view)

    # A key

    def _streams_of_key(self, group: GroupRow, asked: KeyAsked) -> dict[StreamName, StreamId]:
        if asked.stream:
            name = StreamName.parse(asked.stream)
            return {name: self._stream_read(group, name)}
        topics = self._catalogue.meeting(TopicFilter.parse(group.filter))
        if asked.topic:
            wanted = self._catalogue.get(asked.topic)
            if wanted not in topics:
                raise StreamNotRead(group=group.name, stream=f"{asked.topic}/#")
            topics = (wanted,)
        hashed = key_hash(asked.key)
        streams: dict[StreamName, StreamId] = {}
        for topic in topics:
            for part in topic.storage_topics:
                partition = partition_of(topic.router, hashed, part.partitions, part.factor)
                name = StreamName(topic.name, part.ordinal, partition)
                streams[name] = StreamId(part.storage_topic_id, partition)
        return dict(list(streams.items())[:KEY_STREAMS_MAX])

    async def _look_on(
        self, look: "_KeyLook", name: StreamName, view: StreamView, start: int | None
    ) -> None:
        """From the floor on, or from where the caller wants."""
        bounds = self._log.bounds(view.stream)
        first = max(view.progress.floor if start is None else start, bounds.start)
        at = min(first, bounds.end)
        if len(look.open) < KEY_RECORDS_MAX:
            reading = records_of_key(
                self._log, view.stream, look.key, first, bounds.end, look.budget
            )
            async for at, found in reading:
                at = look.take(name, view, at, found)
                if len(look.open) >= KEY_RECORDS_MAX:
                    break
        look.looked.append(StreamLooked(name, min(first, bounds.end), at, bounds.end))

    async def _look_in_queues(self, look: "_KeyLook", name: StreamName, view: StreamView) -> None:
        """The entries of the key in retry queues and among dead letters."""
        found = await self._queues.in_lane(view, name, look.budget, look.is_of_key, look.key)
        look.take_queued(name, view, found)
        look.missed_queues = look.missed_queues or (bool(view.queues) and look.budget.spent)

    async def _look_back(self, look: "_KeyLook", name: StreamName, view: StreamView) -> None:
        """Search below the floor, within the bound."""
        bounds = self._log.bounds(view.stream)
        floor = min(max(view.progress.floor, bounds.start), bounds.end)
        first = max(bounds.start, floor - LOOK_BACK_RECORDS_MAX)
        at = first
        reading = records_of_key(self._log, view.stream, look.key, first, floor, look.budget)
        async for at, found in reading:
            look.take(name, view, at, found)
        look.went_back(first == bounds.start and at >= floor)


class _KeyLook:
    """The results of a search for a key."""

    def __init__(self, key: bytes, budget: Budget) -> None:
        self.key = key
        self.budget = budget
        self.open: list[tuple[StreamName, KeyFound]] = []
        self.queued: list[tuple[StreamName, StreamView, QueueEntry]] = []
        """Of each stream, the oldest records."""
        self.of_key: dict[StreamName, list[QueueEntry]] = {}
        """All that the queues of each stream have."""
        self.missed_queues = False
        """Not all entries of the queues were looked at."""
        self.newest_done: list[tuple[StreamName, KeyFound]] = []
        """At most one."""
        self.looked: list[StreamLooked] = []
        self._to_the_beginning = True

    def take(self, name: StreamName, view: StreamView, at: int, found: list[KeyFound]) -> int:
        """Sort the records found up to ``at``; returns where to continue, sooner once enough are
        open."""
        for each in found:
            if view.progress.is_acked(each.offset):
                newest = self.newest_done and self.newest_done[0][1].record.appended_at_us
                if not newest or each.record.appended_at_us >= newest:
                    self.newest_done = [(name, each)]
            else:
                self.open.append((name, each))
                if len(self.open) >= KEY_RECORDS_MAX:
                    return each.offset + 1
        return at

    def is_of_key(self, entry: QueueEntry) -> bool:
        """Whether an entry is of the key."""
        return entry.key == self.key

    def take_queued(self, name: StreamName, view: StreamView, found: list[QueueEntry]) -> None:
        """Take what failed, and waits or is dead."""
        found.sort(key=lambda each: each.origin)
        self.of_key[name] = found
        self.queued += [(name, view, each) for each in found[:KEY_RECORDS_MAX]]

    @property
    def chosen(self) -> list[tuple[StreamName, KeyFound]]:
        """The records to report, beside those in queues."""
        return self.open if self.open or self.queued else self.newest_done

    @property
    def found_nothing(self) -> bool:
        """Whether there is nothing to tell."""
        return not self.chosen and not self.queued

    def went_back(self, to_the_beginning: bool) -> None:
        """One stream was looked at below its floor."""
        self._to_the_beginning = self._to_the_beginning and to_the_beginning

    @property
    def is_complete(self) -> bool:
        """Whether all that is kept was looked at."""
        looked_at_all = not self.missed_queues and self._to_the_beginning
        return looked_at_all and all(each.end >= each.to for each in self.looked)


def _held(group: GroupRow, view: StreamView, of_key: list[QueueEntry]) -> KeyHeld | None:
    """What of a key waits in the queues of a stream."""
    redriven_by = view.queues[DEAD - 1].redriving if view.queues else 0
    return key_held(group, of_key, redriven_by)


def _behind_first(group: GroupRow, answer: RecordAnswer, first: RecordAnswer) -> RecordAnswer:
    """The answer on an open record; if an earlier open one of its key is the reason, it says so."""
    asked = RecordAsked(group, str(answer.stream), answer.offset)
    reason = behind_first(asked, answer.reason, first.offset, first.reason)
    return replace(answer, reason=reason)


def _how_to_go_on(group: GroupRow, asked: KeyAsked, look: _KeyLook) -> str:
    left = next((each for each in look.looked if each.end < each.to), None)
    if left is None and not look.missed_queues:
        return ""
    key = shlex.quote(asked.key.decode(errors="backslashreplace"))
    if left is None:
        return f"dssctl dlq ls {reasons.quoted(group)} --key {key}"
    where = f"--stream {left.stream} --offset {left.end}"
    return f"dssctl groups why {reasons.quoted(group)} --key {key} {where}"
