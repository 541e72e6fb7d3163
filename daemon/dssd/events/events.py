"""The events of a daemon: told by its parts, kept in the store, read by operators.

A part that needs a durable event awaits `Events.tell`, or commits its `Events.draft` together with
the change that it reports; any other part uses `Events.note`.

Invariant: events become readable in the order of their numbers, so a reader that continues after
the last number it has seen misses none. A store that refuses an event stops nothing. A reader has
no queue here: it reads the store by number, and is woken when there is more.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from types import TracebackType
from typing import Self

from dss_core.errors import Stopping
from dssd.clock import Clock
from dssd.events.columns import drafted, kept_in
from dssd.events.folding import Entry, Folds
from dssd.events.kinds import KINDS
from dssd.events.limits import EVENTS_LISTED_MAX, EVENTS_MAX, EVENTS_PAGE_ROWS
from dssd.events.model import Event, KeptEvent, Repeats, Severity, once_identity
from dssd.events.selection import EventSelection, Page, first_after, last_of
from dssd.events.writer import EventWriter
from dssd.store.paging import scan_all
from dssd.store.port import Store
from dssd.store.rows import EventRow

_LOG = logging.getLogger(__name__)

_LEVELS = {
    Severity.INFO: logging.INFO,
    Severity.WARNING: logging.WARNING,
    Severity.ERROR: logging.ERROR,
}
_KINDS = {kind.code: kind for kind in KINDS}
_ONCE = {kind.code for kind in KINDS if kind.repeats is Repeats.ONCE}


class Events:
    """Built by `open`; writes between entering and leaving it."""

    def __init__(self, store: Store, clock: Clock, rows: Sequence[EventRow]) -> None:
        self._store = store
        self._clock = clock
        drafts = [row for row in rows if row.number < 0]
        rows = rows[len(drafts) :]  # they come by number
        self._folds = Folds()
        for kept in (kept_in(row) for row in rows if row.code in _ONCE):
            identity = once_identity(kept.code, kept.subject, kept.fields)
            self._folds.remember(identity, kept.number)
        self._writer = EventWriter(
            store,
            clock,
            self._folds,
            self._wake_readers,
            last_number=rows[-1].number if rows else 0,
            count=len(rows),
        )
        self.newest_at_open_ms = rows[-1].at_ms if rows else 0
        """Wall-clock time of the newest event that the store had at the start."""
        worst = Severity.ERROR.word
        self._errors_at_ms = deque(
            (row.at_ms for row in rows if row.severity == worst), maxlen=EVENTS_MAX
        )
        self._last_errors: dict[str, tuple[int, str]] = {}
        for row in rows:
            if row.severity == worst:
                self._note_error(row.subject, row.last_at_ms, row.sentence)
        self._grown = asyncio.Event()
        """Set, and made anew, when there is more to read."""
        self._stopping = False
        self._tasks = asyncio.TaskGroup()
        self._last_draft = drafts[0].number if drafts else 0
        for row in reversed(drafts):
            self._tell_left(row)

    @classmethod
    async def open(cls, store: Store, clock: Clock) -> Self:
        """The events that the store keeps.

        Raises:
            DssError: the store cannot be read.
        """
        found = await scan_all(store, EventRow, page_rows=EVENTS_PAGE_ROWS)
        return cls(store, clock, [each.row for each in found])

    async def __aenter__(self) -> Self:
        """Begin to write."""
        await self._tasks.__aenter__()
        self._tasks.create_task(self._writer.run(), name="keep events")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write what waits, once, and stop; `stop` first if that was not done."""
        self.stop()
        self._writer.stop()
        await self._tasks.__aexit__(kind, error, trace)

    @property
    def last_number(self) -> int:
        """The number of the newest event; 0 where there never was one."""
        return self._writer.last_number

    def errors_since(self, at_ms: int) -> int:
        """How many events of the worst severity first occurred since a wall-clock time."""
        return sum(each >= at_ms for each in self._errors_at_ms)

    def error_of(self, subject: str, since_ms: int) -> str:
        """The sentence of the newest event of the worst severity about exactly this subject; or
        empty."""
        at_ms, sentence = self._last_errors.get(subject, (0, ""))
        return sentence if at_ms >= since_ms else ""

    def _note_error(self, subject: str, at_ms: int, sentence: str) -> None:
        self._last_errors.pop(subject, None)
        self._last_errors[subject] = at_ms, sentence
        if len(self._last_errors) > EVENTS_MAX:
            del self._last_errors[next(iter(self._last_errors))]

    def stop(self) -> None:
        """End every `watch`. Events are still kept until this context ends."""
        self._stopping = True
        self._wake_readers()

    async def tell(self, event: Event) -> int:
        """Keep the event; returns its number once it is durable.

        Raises:
            DiskFull, DiskFailed, Stopping: it is not kept.
        """
        taken = self._taken(event)
        return taken if isinstance(taken, int) else await self._writer.put_urgent(taken)

    def note(self, event: Event, draft: EventRow | None = None) -> None:
        """Keep the event soon, instead of its draft.

        Where too many wait, the oldest without a draft is dropped and counted.
        """
        taken = self._taken(event)
        if isinstance(taken, Entry):
            taken.noted = True
            if draft is not None:
                taken.drafts.append(draft.number)
            self._writer.put(taken)

    def draft(self, event: Event, again: EventRow | None = None) -> EventRow:
        """A row to commit with the change that the event reports; ``again``: the draft that it
        replaces.

        If this daemon ends before it notes the event, the next one tells it from this draft.
        """
        assert event.kind.repeats is not Repeats.ONCE, "one that is known leaves its draft behind"
        if again is None:
            self._last_draft -= 1
        number = again.number if again else self._last_draft
        return drafted(event, number, self._clock.wall_ms())

    def _tell_left(self, draft: EventRow) -> None:
        """Tell the drafts that the previous daemon left."""
        kind = _KINDS.get(draft.code)
        if kind is None:
            return  # A newer version told it.
        kept = kept_in(draft)
        event = Event(kind, kept.subject, kept.sentence, kept.fields)
        entry = Entry(event, kept.at_ms, self._clock.now_ms())
        entry.noted, entry.drafts = True, [draft.number]
        self._writer.put(entry)

    async def first_after(self, selection: EventSelection, after: int, limit: int) -> Page:
        """The first wanted events after a number, at most so many.

        Raises:
            DssError: the store cannot be read.
        """
        await self._writer.settle()
        return await first_after(self._store, selection, after, limit)

    async def last_of(
        self, selection: EventSelection, up_to: int, limit: int
    ) -> tuple[KeptEvent, ...]:
        """The last wanted events up to a number, at most so many, the oldest of them first.

        Raises:
            DssError: the store cannot be read.
        """
        await self._writer.settle()
        return await last_of(self._store, selection, min(up_to, self.last_number), limit)

    async def watch(self, selection: EventSelection, after: int) -> AsyncGenerator[KeptEvent, None]:
        """The wanted events after a number, and those that come, until the daemon stops.

        An event that repeats comes once, as it stands when it is read.

        Raises:
            Stopping: the daemon stops.
            DssError: the store cannot be read.
        """
        while not self._stopping:
            grown = self._grown  # taken before the read: what comes meanwhile sets it
            page = await first_after(self._store, selection, after, EVENTS_LISTED_MAX)
            for event in page.events:
                yield event
            after = page.last
            if page.is_whole:
                await grown.wait()
        raise Stopping

    def _taken(self, event: Event) -> Entry | int:
        """The entry that takes the event, or the number of the kept event that counts it."""
        now_ms, wall_ms = self._clock.now_ms(), self._clock.wall_ms()
        found = self._folds.find(event, now_ms)
        if found is None:
            about = f"{event.subject}: " if event.subject else ""
            said = _on_one_line(f"{about}{event.sentence}")
            _LOG.log(
                _LEVELS[event.kind.severity],
                "%s",
                said,
                extra={
                    "event": event.kind.code,
                    "fields": {"subject": event.subject, **event.fields},
                },
            )
            if event.kind.severity is Severity.ERROR:
                self._errors_at_ms.append(wall_ms)
            found = Entry(event, wall_ms, now_ms)
            self._folds.add(found)
        elif isinstance(found, Entry) and event.kind.repeats is Repeats.FOLDED:
            found.repeat(event, wall_ms, now_ms)
        if event.kind.severity is Severity.ERROR and isinstance(found, Entry):
            self._note_error(event.subject, wall_ms, event.sentence)
        return found

    def _wake_readers(self) -> None:
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()


def _on_one_line(text: str) -> str:
    """The text without control characters: names in it come from clients."""
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)
