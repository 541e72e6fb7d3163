"""Writes events to the store, in the order in which they were told; one task, one commit at a time.

Events without a waiting caller share a commit after a rest. An event with a waiting caller is
written at once, with all before it. Invariant: numbers are dense and rise; an event gets its number
when it is durable, and its draft goes in that commit. If the store refuses, waiting callers get the
error and noted events keep waiting, in order. If too many wait, the oldest without a draft is
dropped, and an event counts the dropped ones.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from dss_core.errors import DssError, Stopping
from dssd.clock import Clock
from dssd.events.columns import row_of
from dssd.events.folding import Entry, Folds
from dssd.events.kinds import EVENTS_DROPPED
from dssd.events.limits import EVENTS_TRIM_ROWS
from dssd.events.model import Event, KeptEvent
from dssd.events.trimming import too_many, trim
from dssd.store.port import Delete, Put, Store, Write
from dssd.store.rows import EventRow

EVENTS_AGE_MS = 30 * 24 * 3_600 * 1_000
"""Operators look back a month at most; older events are removed."""

EVENTS_BATCH_MAX = 255
"""Events in one commit, and one more that counts those that were dropped."""

EVENTS_TRIM_EVERY_S = 3_600.0
"""How often events are looked through for old ones: an hour more or less of a month."""

EVENTS_WAITING_MAX = 1_000
"""Waiting events without a waiting caller; beyond this the oldest are dropped."""

EVENTS_REST_S = 1.0
"""Between two commits of events that nobody waits for: a storm costs one small commit a second."""

EVENTS_RETRY_S = 5.0
"""Retry interval after the store refused and no caller waits: a full disk takes longer to clear."""


_LOG = logging.getLogger(__name__)

Answer = asyncio.Future[int]
"""A caller's future: the number of its event, once durable."""


class _Taken(NamedTuple):
    """What a commit takes from an entry, to be given back where it fails."""

    unsaved: int
    waiting: list[Answer]
    drafts: list[int]


class EventWriter:
    """``grown`` is called after each commit of events. ``last_number`` and ``count`` are of what
    the store keeps already.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        folds: Folds,
        grown: Callable[[], None],
        *,
        last_number: int,
        count: int,
    ) -> None:
        self.last_number = last_number
        """Of the newest event that is durable."""
        self._store = store
        self._clock = clock
        self._folds = folds
        self._grown = grown
        self._count = count
        self._queue: deque[Entry] = deque()
        self._dropped = 0
        """Dropped events that no event counts yet."""
        self._work = asyncio.Event()
        self._urgent = asyncio.Event()
        self._stopping = False
        self._ended = False
        self._look_for_old_ms = clock.now_ms()

    def put(self, entry: Entry) -> None:
        """Write it soon. Where too many wait, the oldest is dropped and counted."""
        self._enqueue(entry)
        while len(self._queue) > EVENTS_WAITING_MAX:
            if not self._drop_oldest():
                self._urgent.set()  # those with a draft pile up
                return

    def put_urgent(self, entry: Entry) -> Answer:
        """Write it now; the answer fails with what the store said.

        Raises:
            Stopping: nothing is written any more.
        """
        if self._ended:
            raise Stopping
        answer: Answer = asyncio.get_running_loop().create_future()
        entry.waiting.append(answer)
        self._enqueue(entry)
        self._urgent.set()
        return answer

    async def settle(self) -> None:
        """Write the events with drafts, so that their callers find them. The store may refuse."""
        entry = next((each for each in reversed(self._queue) if each.drafts), None)
        if entry is not None:
            with suppress(DssError):
                await self.put_urgent(entry)

    def stop(self) -> None:
        """Let `run` write what waits, once, and end."""
        self._stopping = True
        self._work.set()
        self._urgent.set()

    async def run(self) -> None:
        """Write until `stop`."""
        try:
            while True:
                stopping = self._stopping
                rest_s = await self._write_all()
                if stopping:
                    break
                if self._stopping:
                    continue  # Events that came while this wrote may have lost their signal.
                await _set_within(self._urgent, rest_s)
                await _set_within(self._work, EVENTS_TRIM_EVERY_S)
        finally:
            self._ended = True
            for entry in self._queue:
                _fail(entry.waiting, Stopping())
            if self._queue:
                _LOG.warning(
                    "%d events could not be kept", len(self._queue), extra={"event": "events.lost"}
                )

    def _enqueue(self, entry: Entry) -> None:
        if not entry.queued:
            entry.queued = True
            self._queue.append(entry)
        self._work.set()

    def _drop_oldest(self) -> bool:
        """Drop the oldest that nobody waits for, without a draft; False where there is none."""
        droppable = (each for each in self._queue if not each.waiting and not each.drafts)
        entry = next(droppable, None)
        if entry is None:
            return False
        self._queue.remove(entry)
        entry.queued = False
        self._dropped += entry.unsaved
        self._folds.forget(entry)
        return True

    async def _write_all(self) -> float:
        """Write all that waits; returns for how many seconds to rest."""
        self._urgent.clear()
        rest_s = 0.0
        try:
            while self._queue or self._dropped:
                await self._write_some()
                rest_s = EVENTS_REST_S
                if too_many(self._count):
                    await self._trim()
            self._work.clear()
            await self._trim_old()
        except DssError as error:
            _LOG.warning("events cannot be kept now: %s", error, extra={"event": "events.later"})
            return EVENTS_RETRY_S
        return rest_s

    async def _write_some(self) -> None:
        batch = [self._queue.popleft() for _ in range(min(len(self._queue), EVENTS_BATCH_MAX))]
        dropped = self._dropped
        if dropped:
            batch.append(self._entry_of_dropped(dropped))
        kept = self._numbered(batch)
        answers: list[_Taken] = []
        writes: list[Write] = [Put(row_of(each)) for each in kept]
        for entry in batch:
            answers.append(_Taken(entry.unsaved, entry.waiting, entry.drafts))
            writes += [Delete(EventRow, (draft,)) for draft in entry.drafts]
            entry.queued, entry.unsaved, entry.waiting, entry.drafts = False, 0, [], []
        try:
            await self._store.commit(writes)
        except DssError as error:
            self._put_back(batch, answers, error)
            raise
        self._dropped -= dropped
        for entry, each, taken in zip(batch, kept, answers, strict=True):
            self._count += entry.number == 0
            entry.number = each.number
            self.last_number = max(self.last_number, each.number)
            self._folds.saved(entry)
            _resolve(taken.waiting, each.number)
        self._grown()

    def _numbered(self, batch: list[Entry]) -> list[KeptEvent]:
        """The entries as the store will keep them: new ones get the next numbers."""
        kept: list[KeptEvent] = []
        number = self.last_number
        for entry in batch:
            number += entry.number == 0
            kept.append(entry.kept(entry.number or number))
        return kept

    def _put_back(self, batch: list[Entry], answers: "list[_Taken]", error: DssError) -> None:
        """Nothing was written: waiting callers get the error, and noted events return to the
        front."""
        for entry, taken in zip(reversed(batch), reversed(answers), strict=True):
            _fail(taken.waiting, error)
            entry.unsaved += taken.unsaved
            entry.drafts = [*taken.drafts, *entry.drafts]
            if entry.queued:
                continue  # it was told again meanwhile
            if entry.noted:
                entry.queued = True
                self._queue.appendleft(entry)
            else:
                self._folds.forget(entry)

    def _entry_of_dropped(self, dropped: int) -> Entry:
        event = Event(
            EVENTS_DROPPED,
            "events",
            f"{dropped} events are not kept: more came than could be written.",
            {"events": str(dropped)},
        )
        return Entry(event, self._clock.wall_ms(), self._clock.now_ms())

    async def _trim_old(self) -> None:
        """Remove what is too old, now and then."""
        if self._clock.now_ms() < self._look_for_old_ms:
            return
        while await self._trim() == EVENTS_TRIM_ROWS:
            continue
        self._look_for_old_ms = self._clock.now_ms() + int(EVENTS_TRIM_EVERY_S * 1_000)

    async def _trim(self) -> int:
        """Remove some of what is too much or too old; returns how many."""
        gone = await trim(
            self._store,
            count=self._count,
            newest=self.last_number,
            oldest_kept_ms=self._clock.wall_ms() - EVENTS_AGE_MS,
        )
        self._count -= len(gone)
        if gone:
            self._folds.forget_removed(gone[-1])
            for entry in self._queue:
                if entry.number <= gone[-1]:
                    entry.number = 0  # it is kept anew
        return len(gone)


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    """Wait until it is set, or the time is over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _resolve(waiting: list[Answer], number: int) -> None:
    for answer in waiting:
        if not answer.done():  # otherwise the caller was cancelled
            answer.set_result(number)


def _fail(waiting: list[Answer], error: DssError) -> None:
    for answer in waiting:
        if not answer.done():
            answer.set_exception(type(error)(**error.fields))
