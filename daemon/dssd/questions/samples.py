"""The sampler: notes the growth of streams and the progress of groups every few seconds.

It reads ends from the log and progress from live leaders; a group without a leader acknowledges
nothing. For a stream or group that is new since the last look, all records count; for one that
existed at the first look, only later records count. Invariant: what it keeps of a group or a stream
goes with it, and a look holds the loop for short turns only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dss_core.errors import StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.limits import RESTORE_OFFSETS_RAISED
from dss_core.progress import Progress
from dssd.clock import Clock
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.questions.rates import NO_RATES, Age, EndSamples, RateMeter, Rates
from dssd.topics.catalogue import Catalogue


@dataclass(slots=True)
class _Growing:
    """A stream of the log."""

    ends: EndSamples
    arrivals: RateMeter


@dataclass(slots=True)
class _Consumed:
    """A stream of a group with a leader."""

    progress: Progress
    moved_ms: int
    acks: RateMeter


@dataclass(slots=True)
class _GroupAcks:
    """A group, also while it has no leader."""

    meter: RateMeter
    done: int | None
    """Its finished records at the last look, since it began; None: it had no leader yet."""


class Movement(NamedTuple):
    """The movement of a group in a stream."""

    still_ms: int | None
    """Time without progress; None: sampled less than twice."""
    arrivals: Rates
    acks: Rates


class Sampler:
    """Asked by calls, between one look and the next."""

    def __init__(
        self, groups: Groups, registry: Registry, catalogue: Catalogue, log: Log, clock: Clock
    ) -> None:
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue
        self._log = log
        self._clock = clock
        self._streams: dict[StreamId, _Growing] = {}
        self._consumed: dict[int, dict[StreamId, _Consumed]] = {}
        self._topics: dict[int, RateMeter] = {}
        self._groups_acks: dict[int, _GroupAcks] = {}
        self._looked_ms = 0
        self._read_by: dict[int, tuple[int, ...]] = {}
        """Topics that a group reads, until a topic comes or goes."""
        catalogue.watch(lambda _topic, _removed: self._read_by.clear())
        groups.watch_removed(lambda group: self._forget(group.group_id))

    async def look(self) -> None:
        """Look at every stream and every group with a leader once."""
        turn = LoopTurn()
        now_ms, last_ms = self._clock.now_ms(), self._looked_ms
        await self._look_at_streams(turn, now_ms)
        self._looked_ms = now_ms
        await self._look_at_groups(turn, now_ms, last_ms)

    async def _look_at_groups(self, turn: LoopTurn, now_ms: int, last_ms: int) -> None:
        known: dict[int, dict[StreamId, _Consumed]] = {}
        acks: dict[int, _GroupAcks] = {}
        for group in self._groups.groups():
            await turn.give_way()
            group_id = group.group_id
            own = self._groups_acks.get(group_id)
            if own is None:
                own = _GroupAcks(RateMeter(last_ms or now_ms), 0 if last_ms else None)
            acks[group_id] = own
            progress = self._registry.live_progress(group_id)
            if progress:
                known[group_id] = self._consumed_by(group_id, own, progress, now_ms, last_ms)
        self._consumed, self._groups_acks = known, acks

    def _consumed_by(
        self,
        group_id: int,
        own: _GroupAcks,
        progress: dict[StreamId, Progress],
        now_ms: int,
        last_ms: int,
    ) -> dict[StreamId, _Consumed]:
        before = self._consumed.get(group_id, {})
        is_new = own.done == 0 or bool(before)
        counts = self._counts(group_id) if progress.keys() - before.keys() else {}
        known, more = _consumed(before, progress, counts if is_new else {}, now_ms, last_ms)
        if not is_new:
            # It had no leader: it did nothing meanwhile, but perhaps something since.
            done = sum(counts.values())
            more, own.done = 0 if own.done is None else done - own.done, done
        else:
            own.done = (own.done or 0) + more
        if more > 0:
            own.meter.add(more, now_ms, last_ms)
        return known

    def _counts(self, group_id: int) -> dict[StreamId, int]:
        """The finished records of a live group since it began, by stream."""
        glance = self._registry.glance(group_id)
        streams = glance.streams if glance else ()
        return {each.stream: sum(each.fate.counts.without_restores()) for each in streams}

    async def _look_at_streams(self, turn: LoopTurn, now_ms: int) -> None:
        known: dict[StreamId, _Growing] = {}
        topics: dict[int, RateMeter] = {}
        for topic in self._catalogue.topics():
            came = 0
            for stream in topic.streams():
                await turn.give_way()
                try:
                    end = self._log.span(stream)[1]
                except StreamNotFound:  # its topic was removed meanwhile
                    continue
                growing = self._streams.get(stream)
                if growing is None:
                    # One that was made since the last look was empty then.
                    began_ms, began = (self._looked_ms, 0) if self._looked_ms else (now_ms, end)
                    growing = _Growing(EndSamples(began, began_ms), RateMeter(began_ms))
                if end > growing.ends.end:
                    more = end - growing.ends.end
                    came += more
                    growing.arrivals.add(more, now_ms, self._looked_ms)
                    growing.ends.note(end, self._looked_ms, now_ms)
                known[stream] = growing
            meter = self._topics.get(topic.topic_id) or RateMeter(self._looked_ms or now_ms)
            topics[topic.topic_id] = meter
            if came:
                meter.add(came, now_ms, self._looked_ms)
        self._streams, self._topics = known, topics

    def rates_of(self, group_id: int, wanted: TopicFilter) -> tuple[Rates, Rates]:
        """The rates of arrivals in the topics that a group's filter meets, and of finished
        records."""
        now_ms = self._clock.now_ms()
        arrivals = NO_RATES
        for topic_id in self._topics_of(group_id, wanted):
            meter = self._topics.get(topic_id)
            if meter is not None:
                arrivals = arrivals.plus(meter.rates(now_ms))
        acks = self._groups_acks.get(group_id)
        return arrivals, NO_RATES if acks is None else acks.meter.rates(now_ms)

    def _topics_of(self, group_id: int, wanted: TopicFilter) -> tuple[int, ...]:
        known = self._read_by.get(group_id)
        if known is None:
            known = tuple(topic.topic_id for topic in self._catalogue.meeting(wanted))
            if self._groups.has(group_id):
                self._read_by[group_id] = known
        return known

    def _forget(self, group_id: int) -> None:
        self._read_by.pop(group_id, None)

    def age_of(self, stream: StreamId, offset: int) -> Age | None:
        """How long ago the record at an offset came; None where nobody has looked."""
        growing = self._streams.get(stream)
        if growing is None:
            return None
        return growing.ends.age_of(offset, self._looked_ms, self._clock.now_ms())

    def still(self, group_id: int, after_ms: int) -> Iterator[StreamId]:
        """The streams in which a group made no progress for so long."""
        since_ms = self._clock.now_ms() - after_ms
        consumed = self._consumed.get(group_id, {})
        return (stream for stream, each in consumed.items() if each.moved_ms <= since_ms)

    def still_ms(self, group_id: int, stream: StreamId) -> int | None:
        """How long a group has made no progress in a stream; None: sampled less than twice."""
        consumed = self._consumed.get(group_id, {}).get(stream)
        return None if consumed is None else self._clock.now_ms() - consumed.moved_ms

    def movement(self, group_id: int, stream: StreamId) -> Movement:
        """How the group goes on in a stream."""
        now_ms = self._clock.now_ms()
        growing = self._streams.get(stream)
        consumed = self._consumed.get(group_id, {}).get(stream)
        return Movement(
            self.still_ms(group_id, stream),
            NO_RATES if growing is None else growing.arrivals.rates(now_ms),
            NO_RATES if consumed is None else consumed.acks.rates(now_ms),
        )


def _consumed(
    before: dict[StreamId, _Consumed],
    progress: dict[StreamId, Progress],
    begun: dict[StreamId, int],
    now_ms: int,
    last_ms: int,
) -> tuple[dict[StreamId, _Consumed], int]:
    """The streams of a group, and how many more records it has finished in all.

    For streams that began since the last look, ``begun`` has the number of finished records.
    """
    known: dict[StreamId, _Consumed] = {}
    more = 0
    for stream, own in progress.items():
        consumed = before.get(stream)
        if consumed is None:
            done = begun.get(stream, 0)
            consumed = _Consumed(own, now_ms, RateMeter(last_ms if done else now_ms))
            consumed.acks.add(done, now_ms, last_ms)
            more += max(0, done)
        elif consumed.progress is not own:
            done = _done(own) - _done(consumed.progress)
            done = done % RESTORE_OFFSETS_RAISED if done > 0 else done
            consumed.progress = own
            if done:
                # A rewind moves it as well; what is acknowledged again counts again.
                consumed.moved_ms = now_ms
                consumed.acks.add(done, now_ms, last_ms)
                more += max(0, done)
        known[stream] = consumed
    return known, more


def _done(progress: Progress) -> int:
    return progress.floor + progress.acked_above_floor()
