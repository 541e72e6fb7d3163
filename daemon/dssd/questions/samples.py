"""The sampler: how streams grow and groups go on, noted every few seconds.

It reads ends from the log and progress from live leaders, and asks nobody for anything: a group
without a leader acknowledges nothing. Invariant: what it keeps of a group or a stream goes with it,
and a look holds the loop for short turns only.
"""

import asyncio
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from dss_core.errors import StreamNotFound
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.clock import Clock
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.questions.limits import SAMPLE_EVERY_S
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


class Movement(NamedTuple):
    """How a group goes on in a stream."""

    still_ms: int | None
    """For how long it was done with nothing more; None: nobody has looked twice."""
    arrivals: Rates
    acks: Rates
    lag_age: Age | None
    """How long ago the record at the floor came; None: there is none, or nobody has looked."""


class Sampler:
    """Runs as one task; asked by calls in between."""

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
        self._looked_ms = 0

    async def run(self) -> NoReturn:
        """Look again and again."""
        while True:
            await self.look()
            await asyncio.sleep(SAMPLE_EVERY_S)

    async def look(self) -> None:
        """Look at every stream and every group with a leader once."""
        turn = LoopTurn()
        now_ms = self._clock.now_ms()
        await self._look_at_streams(turn, now_ms)
        self._looked_ms = now_ms
        known: dict[int, dict[StreamId, _Consumed]] = {}
        for group in self._groups.groups():
            await turn.give_way()
            progress = self._registry.live_progress(group.group_id)
            if progress:
                before = self._consumed.get(group.group_id, {})
                known[group.group_id] = _consumed(before, progress, self._clock.now_ms())
        self._consumed = known

    async def _look_at_streams(self, turn: LoopTurn, now_ms: int) -> None:
        known: dict[StreamId, _Growing] = {}
        for topic in self._catalogue.topics():
            for stream in topic.streams():
                await turn.give_way()
                try:
                    end = self._log.bounds(stream).end
                except StreamNotFound:  # its topic was removed meanwhile
                    continue
                growing = self._streams.get(stream)
                if growing is None:
                    growing = _Growing(EndSamples(end, now_ms), RateMeter(now_ms))
                elif end > growing.ends.end:
                    growing.arrivals.add(end - growing.ends.end, now_ms)
                    growing.ends.note(end, self._looked_ms, now_ms)
                known[stream] = growing
        self._streams = known

    def movement(self, group_id: int, stream: StreamId, floor: int, end: int) -> Movement:
        """How the group goes on in a stream whose floor and end are these now."""
        now_ms = self._clock.now_ms()
        growing = self._streams.get(stream)
        consumed = self._consumed.get(group_id, {}).get(stream)
        age = None
        if growing is not None and floor < end:
            age = growing.ends.age_of(floor, now_ms)
        return Movement(
            None if consumed is None else now_ms - consumed.moved_ms,
            NO_RATES if growing is None else growing.arrivals.rates(now_ms),
            NO_RATES if consumed is None else consumed.acks.rates(now_ms),
            age,
        )


def _consumed(
    before: dict[StreamId, _Consumed], progress: dict[StreamId, Progress], now_ms: int
) -> dict[StreamId, _Consumed]:
    known: dict[StreamId, _Consumed] = {}
    for stream, own in progress.items():
        consumed = before.get(stream)
        if consumed is None:
            consumed = _Consumed(own, now_ms, RateMeter(now_ms))
        elif consumed.progress is not own:
            done = _done(own) - _done(consumed.progress)
            consumed.progress = own
            if done:
                # A rewind moves it as well; what is acknowledged again counts again.
                consumed.moved_ms = now_ms
                consumed.acks.add(done, now_ms)
        known[stream] = consumed
    return known


def _done(progress: Progress) -> int:
    return progress.floor + progress.acked_above_floor()
