"""Which records of an ordered subscription may go to the program: the rule, and nothing else.

A key is *busy* while there is a reason: the program has an unsettled record of it, a handler has
one, or one was refused and the daemon has not said yet where the records behind it went. A record
of a busy key is *held back*, and so are all later ones of the key, in order. Records without a key
wait for nothing; those that were put back come first again.

Invariant: of the held records, the first of each key that is not busy is ready, and no other.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from dss_core.progress import Ranges, total

Item = TypeVar("Item")


OUT, HANDLED, REFUSED = range(3)
"""The reasons why a key is busy: the program has a record of it, unsettled; a handler of a run has
one, until it returns, even if the record was settled before; or one was refused, and the daemon has
not said where its followers went."""


class Held(NamedTuple, Generic[Item]):
    """A record that is held back."""

    source: Hashable
    at: int
    item: Item


_NONE: Mapping[int, bytes] = MappingProxyType({})


class KeyOrder(Generic[Item]):
    """The keys of one subscription."""

    __slots__ = ("_held_at", "_reasons", "busy", "loose", "queues", "ready")

    def __init__(self) -> None:
        self.busy: dict[bytes, int] = {}
        """How many reasons each busy key has."""
        self.queues: dict[bytes, deque[Held[Item]]] = {}
        """The held records of each key."""
        self.ready: dict[bytes, None] = {}
        """Keys with a record that may go, in the order in which they became ready."""
        self.loose: deque[Held[Item]] = deque()
        """Records without a key that were put back."""
        self._reasons: tuple[dict[Hashable, dict[int, bytes]], ...] = ({}, {}, {})
        """By reason and source: the offsets and their keys."""
        self._held_at: dict[Hashable, dict[int, bytes]] = {}

    @property
    def is_quiet(self) -> bool:
        """Whether every record that comes may go."""
        return not (self.busy or self.queues or self.loose)

    @property
    def held(self) -> int:
        """How many records are held back."""
        return len(self.loose) + sum(map(len, self._held_at.values()))

    def may_go(self, key: bytes) -> bool:
        """Whether a record of the key that comes now may go."""
        return key not in self.busy and key not in self.queues

    # Reasons why a key is busy.

    def occupy(self, why: int, key: bytes, source: Hashable, at: int) -> None:
        """The key is busy because of a record."""
        own = self._reasons[why].get(source)
        if own is None:
            own = self._reasons[why][source] = {}
        if at not in own:
            own[at] = key
            self.busy[key] = self.busy.get(key, 0) + 1
            if self.ready:
                self.ready.pop(key, None)

    def release(self, why: int, source: Hashable, at: int) -> None:
        """End a reason, if there was one."""
        own = self._reasons[why].get(source)
        if own is None or (key := own.pop(at, None)) is None:
            return
        if not own:
            del self._reasons[why][source]
        if self.busy[key] > 1:
            self.busy[key] -= 1
            return
        del self.busy[key]
        if key in self.queues:
            self.ready[key] = None

    def release_all(self, why: int, source: Hashable) -> None:
        """End all reasons of this kind from the source."""
        for at in [*self.offsets(why, source)]:
            self.release(why, source, at)

    def release_among(self, why: int, source: Hashable, ranges: Ranges) -> None:
        """End the reasons of this kind from records in these ranges."""
        for at in _among(self.offsets(why, source), ranges):
            self.release(why, source, at)

    def offsets(self, why: int, source: Hashable) -> Mapping[int, bytes]:
        """The records of a source that are reasons of this kind, and their keys."""
        return self._reasons[why].get(source, _NONE)

    # Records that are held back.

    def hold(self, key: bytes, source: Hashable, at: int, item: Item) -> None:
        """Hold a record back, behind all held ones of its key."""
        self._queue(key, source, at).append(Held(source, at, item))

    def hold_first(self, key: bytes | None, source: Hashable, at: int, item: Item) -> None:
        """Put back a record that was not handed out, before all held ones of its key."""
        if key is None:
            self.loose.appendleft(Held(source, at, item))
        else:
            self._queue(key, source, at).appendleft(Held(source, at, item))

    def _queue(self, key: bytes, source: Hashable, at: int) -> deque[Held[Item]]:
        self._held_at.setdefault(source, {})[at] = key
        queue = self.queues.get(key)
        if queue is None:
            queue = self.queues[key] = deque()
            if key not in self.busy:
                self.ready[key] = None
        return queue

    def next(self, fits: Callable[[Item], bool] | None = None) -> tuple[bytes | None, Item] | None:
        """Take the next record that may go, with its key; with ``fits``, only one that fits.

        This does not make its key busy: the caller does.
        """
        if self.loose and (fits is None or fits(self.loose[0].item)):
            return None, self.loose.popleft().item
        for key in self.ready:
            held = self.queues[key][0]
            if fits is None or fits(held.item):
                self.queues[key].popleft()
                self._forget(key, [held])
                return key, held.item
        return None

    def first_ready(self) -> Item | None:
        """The next record that may go, without taking it."""
        if self.loose:
            return self.loose[0].item
        key = next(iter(self.ready), None)
        return None if key is None else self.queues[key][0].item

    def _forget(self, key: bytes, gone: "list[Held[Item]]") -> None:
        """These records are no longer held back."""
        for source, at, _ in gone:
            own = self._held_at[source]
            own.pop(at, None)
            if not own:
                del self._held_at[source]
        if not self.queues[key]:
            del self.queues[key]
            self.ready.pop(key, None)

    def drop(self, source: Hashable, ranges: Ranges) -> None:
        """Drop the records in these ranges that are held back."""
        held_at = self._held_at.get(source, _NONE)
        offsets = _among(held_at, ranges)
        self._drop(source, {held_at[at] for at in offsets}, set(offsets))
        loose = {each.at: b"" for each in self.loose if each.source == source}
        self._drop_loose(source, set(_among(loose, ranges)))

    def drop_all(self, source: Hashable) -> None:
        """Drop the records of this source."""
        held_at = self._held_at.get(source, _NONE)
        self._drop(source, {*held_at.values()}, {*held_at})
        self._drop_loose(source, {each.at for each in self.loose})

    def _drop(self, source: Hashable, keys: set[bytes], offsets: set[int]) -> None:
        for key in keys:
            queue = self.queues[key]
            gone = [each for each in queue if each.source == source and each.at in offsets]
            kept = (each for each in queue if not (each.source == source and each.at in offsets))
            self.queues[key] = deque(kept)
            self._forget(key, gone)

    def _drop_loose(self, source: Hashable, offsets: set[int]) -> None:
        if offsets:
            kept = (each for each in self.loose if each.source != source or each.at not in offsets)
            self.loose = deque(kept)

    def clear_held(self) -> None:
        """Forget all held records: nothing more is handed out."""
        self.ready.clear()
        self.loose.clear()
        self.queues.clear()
        self._held_at.clear()


def _among(offsets: Mapping[int, bytes], ranges: Ranges) -> list[int]:
    """The offsets in the ranges, which are normalised, found in the shorter way."""
    if not offsets:
        return []
    if total(ranges) <= len(offsets):
        return [at for part in ranges for at in range(*part) if at in offsets]
    return [at for at in offsets if _covered(ranges, at)]


def _covered(ranges: Ranges, at: int) -> bool:
    index = bisect_right(ranges, (at, _BEYOND)) - 1
    return index >= 0 and ranges[index][0] <= at < ranges[index][1]


_BEYOND = 1 << 64
