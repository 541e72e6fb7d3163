"""The index of keys of an ordered lane: what of each key waits, where, and in which order.

::

            waits                     waits                        waits
    key ─► origin 17: dead letters ─► origin 40: dead letters ─► origin 52: the stream ...
           └─ the head: nothing behind it goes before it is settled

A key is *held* while anything of it waits: a record that failed, in whichever queue; one that must
not pass it, a *follower*; or one that was sent before the key was held and is with the client
still. Of what waits the record of least origin is the *head*. Three rules are all of the order:

- what is met of a held key is not sent, but waits too;
- only a head goes out, and only from the retry queue;
- a follower goes where its key waits: to the dead letters where the head is there.

So of each key records go in the order of their origins, one at a time, whatever becomes of them in
between. Keys are hashes: two keys of one hash wait for each other, which costs time and no order.
One origin may wait twice, where an operator reopened what is dead. Invariant: a place, a level and
an offset there, waits once at most. This module does not know time, clients or moves.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import compress, count, islice
from typing import NamedTuple

from dss_core.lane import DEAD, LEVELS_MAX, MAIN, RETRY


class Waiting(NamedTuple):
    """A record that waits, in the order in which those of its key go."""

    origin: int
    """Its offset in the stream; below 0 of one that was in an earlier storage topic."""
    level: int
    offset: int
    """Where it is: the place."""
    key: int
    due_ms: int = 0
    """By the wall clock; of the retry queue."""
    attempt: int = 0
    """How often it failed; of the retry queue."""


class KeyIndex:
    """Of one lane."""

    __slots__ = ("_of_keys", "_places", "in_main", "version")

    def __init__(self) -> None:
        self._of_keys: dict[int, list[Waiting]] = {}
        self._places: tuple[dict[int, Waiting], ...] = tuple({} for _ in range(LEVELS_MAX))
        """By level, by offset."""
        self.in_main = self._places[MAIN]
        """Those that wait in the stream, by their offset there."""
        self.version = 0
        """Rises when a key is held that was not."""

    def __len__(self) -> int:
        """How many records wait."""
        return sum(map(len, self._places))

    def __contains__(self, key: int) -> bool:
        """Whether the key is held."""
        return key in self._of_keys

    def held_among(self, keys: Sequence[int]) -> Sequence[int]:
        """Which of these keys are held: their places in the sequence."""
        # Nothing is said of a key by itself: of most chunks no key is held, and that takes a tenth
        # of what a look at each in Python would.
        held = self._of_keys
        if held.keys().isdisjoint(keys):
            return ()
        return [*compress(count(), map(held.__contains__, keys))]

    def keys(self) -> list[int]:
        """Those that are held."""
        return list(self._of_keys)

    def add(self, waiting: Waiting) -> bool:
        """It waits from now on; whether its key was not held before."""
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
        """The same of records of the stream, ascending, at half of what one by one would cost."""
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
        """What is there waits no longer; None where nothing was known to."""
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
        """What waits there, if anything is known to."""
        return self._places[level].get(offset)

    def head(self, key: int) -> Waiting | None:
        """What goes first of a key; None: it is not held."""
        of_key = self._of_keys.get(key)
        return None if of_key is None else of_key[0]

    def waiting(self, key: int) -> Sequence[Waiting]:
        """What waits of a key, in the order in which it goes."""
        return self._of_keys.get(key, ())

    def is_dead(self, key: int) -> bool:
        """Whether the head of a key is among the dead letters: nothing of it goes."""
        head = self.head(key)
        return head is not None and head.level == DEAD

    def due(self, key: int) -> Waiting | None:
        """What may go of a key, at its time: its head, where that is in the retry queue."""
        head = self.head(key)
        return head if head is not None and head.level == RETRY else None

    def stranded(self, key: int, after: Waiting | None = None) -> Iterator[Waiting]:
        """Of a key whose head is dead, what waits in the retry queue nevertheless; of that, what
        goes after one that waits there or did."""
        if self.is_dead(key):
            of_key = self._of_keys[key]
            first = 0 if after is None else bisect_right(of_key, after)
            yield from (each for each in islice(of_key, first, None) if each.level == RETRY)
