"""The index of keys of an ordered lane: which records of a key wait, where, and in which order.

::

            waits                     waits                        waits
    key ─► origin 17: dead letters ─► origin 40: dead letters ─► origin 52: the stream ...
           └─ the head: nothing behind it goes before it is settled

A key is *held* while a record of it waits: a record that failed, in either queue; a *follower*,
which must not overtake it; or a record that was sent before the key was held, and is still with the
client. The waiting record with the lowest origin is the *head*. Three rules keep the order:

- a record of a held key that is read from the stream is not sent, but waits too;
- only a head is sent, and only from the retry queue;
- a follower is moved to where its key waits: to the dead letters if the head is there.

So the records of a key are sent in the order of their origins, one at a time, whatever becomes of
each. Keys are hashes: two keys of one hash wait for each other, which costs time but no order. One
origin may wait twice, if an operator reopened a dead record. Invariant: each pair of level and
offset waits at most once. This module does not know time, clients or moves.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import compress, count, islice
from typing import NamedTuple

from dss_core.lane import DEAD, LEVELS_MAX, MAIN, RETRY


class Waiting(NamedTuple):
    """A record that waits; sorts in the order in which records of a key are sent."""

    origin: int
    """Its offset in the stream; below 0 if it was in an earlier storage topic."""
    level: int
    offset: int
    """Where it is: the place."""
    key: int
    due_ms: int = 0
    """Due time by the wall clock; only in the retry queue."""
    attempt: int = 0
    """How often it failed; only in the retry queue."""


class KeyIndex:
    """The index of one lane."""

    __slots__ = ("_of_keys", "_places", "in_main", "version")

    def __init__(self) -> None:
        self._of_keys: dict[int, list[Waiting]] = {}
        self._places: tuple[dict[int, Waiting], ...] = tuple({} for _ in range(LEVELS_MAX))
        """By level, by offset."""
        self.in_main = self._places[MAIN]
        """The records that wait in the stream, by offset."""
        self.version = 0
        """Rises when a key is held that was not."""

    def __len__(self) -> int:
        """How many records wait."""
        return sum(map(len, self._places))

    def __contains__(self, key: int) -> bool:
        """Whether the key is held."""
        return key in self._of_keys

    def held_among(self, keys: Sequence[int]) -> Sequence[int]:
        """The positions in the sequence of the keys that are held."""
        # All keys at once: in most chunks no key is held, and this takes a tenth of the time of a
        # look at each in Python.
        held = self._of_keys
        if held.keys().isdisjoint(keys):
            return ()
        return [*compress(count(), map(held.__contains__, keys))]

    def keys(self) -> list[int]:
        """The keys that are held."""
        return list(self._of_keys)

    def add(self, waiting: Waiting) -> bool:
        """A record waits from now on; returns whether its key is newly held."""
        places = self._places[waiting.level]
        assert waiting.offset not in places, waiting
        places[waiting.offset] = waiting
        of_key = self._of_keys.get(waiting.key)
        if of_key is None:
            self._of_keys[waiting.key] = [waiting]
            self.version += 1
            return True
        if of_key[-1] < waiting:
            of_key.append(waiting)
        else:
            insort(of_key, waiting)
        return False

    def add_in_main(self, key: int, offsets: Sequence[int]) -> bool:
        """The same for records of the stream, ascending; costs half of adding them one by one."""
        made = [Waiting(at, MAIN, at, key) for at in offsets]
        self.in_main.update(zip(offsets, made, strict=True))
        of_key = self._of_keys.get(key)
        if of_key is None:
            self._of_keys[key] = made
            self.version += 1
            return True
        is_behind = of_key[-1] < made[0]
        of_key += made
        if not is_behind:
            of_key.sort()
        return False

    def remove(self, level: int, offset: int) -> Waiting | None:
        """Take out the record that waits there; None if none is known to."""
        waiting = self._places[level].pop(offset, None)
        if waiting is None:
            return None
        of_key = self._of_keys[waiting.key]
        if len(of_key) == 1:
            del self._of_keys[waiting.key]
        else:
            del of_key[bisect_left(of_key, waiting)]
        return waiting

    def at(self, level: int, offset: int) -> Waiting | None:
        """The record that waits there, if any is known to."""
        return self._places[level].get(offset)

    def head(self, key: int) -> Waiting | None:
        """The first record of a key to be sent; None: the key is not held."""
        of_key = self._of_keys.get(key)
        return None if of_key is None else of_key[0]

    def waiting(self, key: int) -> Sequence[Waiting]:
        """The waiting records of a key, in the order in which they are sent."""
        return self._of_keys.get(key, ())

    def is_dead(self, key: int) -> bool:
        """Whether the head of a key is among the dead letters: no record of the key is sent."""
        head = self.head(key)
        return head is not None and head.level == DEAD

    def due(self, key: int) -> Waiting | None:
        """The record of a key that may be sent at its time: its head, if in the retry queue."""
        head = self.head(key)
        return head if head is not None and head.level == RETRY else None

    def stranded(self, key: int, after: Waiting | None = None) -> Iterator[Waiting]:
        """Records of a key with a dead head that still wait in the retry queue; only those after
        ``after``, if given."""
        if self.is_dead(key):
            of_key = self._of_keys[key]
            first = 0 if after is None else bisect_right(of_key, after)
            yield from (each for each in islice(of_key, first, None) if each.level == RETRY)
