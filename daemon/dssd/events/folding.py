"""Folds repeated events into kept ones, so that a storm becomes one event with a count.

Invariant: an event that is kept once is never counted again, and one that is kept each time never
joins another. It remembers a bounded number of events, the newest. No I/O and no clock.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

from dssd.events.model import Event, KeptEvent, Repeats

if TYPE_CHECKING:
    from asyncio import Future

EVENT_REPEAT_MS = 10_000
"""The same event within this time of its last time is counted and not kept again."""

EVENT_FOLD_MS_MAX = 3_600 * 1_000
"""An event that keeps repeating is kept as a new one after this time, so that watchers hear of it
every hour."""

EVENT_FOLDS_MAX = 1_024
"""Events whose repetitions are recognised, the newest; each is held in memory."""

EVENT_RANGES_MAX = 4_096
"""Events that are kept once and known to be kept, the newest."""


E = TypeVar("E")
Identity = tuple[str, ...]


class Entry:
    """One event that is stored, or waits to be."""

    __slots__ = (
        "at_ms", "began_ms", "drafts", "event", "last_at_ms", "noted", "number", "queued",
        "seen_ms", "times", "unsaved", "waiting",
    )  # fmt: skip

    def __init__(self, event: Event, wall_ms: int, now_ms: int) -> None:
        self.event = event
        self.at_ms = self.last_at_ms = wall_ms
        self.began_ms = self.seen_ms = now_ms
        self.times = 1
        self.number = 0
        """0 until it is in the store."""
        self.unsaved = 1
        """Repetitions that the store does not have yet."""
        self.noted = False
        """If the store refuses it, it keeps waiting."""
        self.queued = False
        self.drafts: list[int] = []
        """The draft to delete in the commit that keeps it."""
        self.waiting: list[Future[int]] = []
        """The callers that wait until it is durable."""

    def repeat(self, event: Event, wall_ms: int, now_ms: int) -> None:
        """Count a repetition, perhaps with other figures."""
        self.event = event
        self.last_at_ms, self.seen_ms = wall_ms, now_ms
        self.times += 1
        self.unsaved += 1

    def kept(self, number: int) -> KeptEvent:
        """As the store keeps it under the number."""
        event = self.event
        return KeptEvent(
            number=number,
            at_ms=self.at_ms,
            code=event.kind.code,
            severity=event.kind.severity,
            subject=event.subject,
            sentence=event.sentence,
            fields=event.fields,
            times=self.times,
            last_at_ms=self.last_at_ms,
        )


class Folds:
    """The entries that an event may belong to."""

    def __init__(self) -> None:
        self._recent: OrderedDict[Identity, Entry] = OrderedDict()
        self._once: OrderedDict[Identity, Entry | int] = OrderedDict()
        """An entry, or the number under which the store keeps it."""

    def remember(self, identity: Identity, number: int) -> None:
        """The store keeps an event that is kept once."""
        _put(self._once, identity, number, EVENT_RANGES_MAX)

    def find(self, event: Event, now_ms: int) -> Entry | int | None:
        """The entry that the event repeats, or the number of the stored event."""
        match event.kind.repeats:
            case Repeats.KEPT:
                return None
            case Repeats.ONCE:
                return self._once.get(event.identity)
            case Repeats.FOLDED:
                entry = self._recent.get(event.identity)
                return entry if entry is not None and _is_recent(entry, now_ms) else None

    def add(self, entry: Entry) -> None:
        """An entry that events may belong to from now on."""
        match entry.event.kind.repeats:
            case Repeats.ONCE:
                _put(self._once, entry.event.identity, entry, EVENT_RANGES_MAX)
            case Repeats.FOLDED:
                _put(self._recent, entry.event.identity, entry, EVENT_FOLDS_MAX)
            case Repeats.KEPT:
                pass

    def forget(self, entry: Entry) -> None:
        """The entry is not kept."""
        identity = entry.event.identity
        if self._once.get(identity) is entry:
            del self._once[identity]
        if self._recent.get(identity) is entry:
            del self._recent[identity]

    def saved(self, entry: Entry) -> None:
        """The entry is in the store."""
        identity = entry.event.identity
        if self._once.get(identity) is entry:
            self._once[identity] = entry.number

    def forget_removed(self, number: int) -> None:
        """Forget the events up to the number: a repetition of one is kept as a new event."""
        gone = [entry for entry in self._recent.values() if 0 < entry.number <= number]
        for entry in gone:
            self.forget(entry)


def _is_recent(entry: Entry, now_ms: int) -> bool:
    return now_ms < entry.seen_ms + EVENT_REPEAT_MS and now_ms < entry.began_ms + EVENT_FOLD_MS_MAX


def _put(entries: OrderedDict[Identity, E], identity: Identity, entry: E, most: int) -> None:
    entries[identity] = entry
    entries.move_to_end(identity)
    if len(entries) > most:
        entries.popitem(last=False)
