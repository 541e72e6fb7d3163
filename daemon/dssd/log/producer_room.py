"""Bounds the number of remembered producers, and decides whose are forgotten to make room.

An owner is a principal, named by a number that survives restarts. The *share* of an owner is the
set of its remembered producers in one storage topic. Where a share or all of them together are at
their bound, a newcomer takes the place of the producer that was silent for longest: of its own
share, or of the largest one if that is larger. Where none of these was silent for
`PRODUCER_KEPT_US`, the newcomer is refused::

    all together   ─ shares of many ─┤ reserve: only shares of few ├─ PRODUCERS_MAX

Invariant: a producer is forgotten for want of room only if this daemon saw it silent for
`PRODUCER_KEPT_US`, and only for a newcomer of its own share, or of a smaller one. All times are
monotonic, and given. Used by the writer thread alone, and by the start before that begins.
"""

from collections import deque
from typing import Protocol

import xxhash

from dss_core.errors import TooManyProducers
from dssd.log.limits import PRODUCERS_FEW, PRODUCERS_MAX, PRODUCERS_OWNER_MAX, PRODUCERS_RESERVE
from dssd.log.refused_firsts import RefusedFirsts

PRODUCER_KEPT_US = 10 * 60 * 1_000_000
"""A producer is never forgotten for want of room before it was silent for so long: longer than a
connection, a client or the network usually takes to come back and send again."""

PRODUCERS_FORGOTTEN_AT_ONCE = 256
"""At the total bound, the largest share gives up so many producers at once, so that the search for
them costs little."""


NOBODY = 0
"""The owner of frames whose caller is unknown, because only the log has them."""


def owner_of(principal: str) -> int:
    """The number of an owner."""
    return xxhash.xxh3_64_intdigest(principal.encode()) or 1


def most_in_all(own: int) -> int:
    """The total number of producers up to which a share of this size may add one."""
    return PRODUCERS_MAX if own < PRODUCERS_FEW else PRODUCERS_MAX - PRODUCERS_RESERVE


Key = tuple[int, bytes]
"""A partition and the id of a producer."""


class Forgets(Protocol):
    """The part that remembers the producers of a share."""

    def silent_longest(self, share: "OwnerShare") -> deque[tuple[int, Key]]:
        """The producers of a share that were silent for longest, in order, each with its last
        append."""

    def forget_if_silent(self, key: Key, since_us: int) -> bool:
        """Forget one, if it has not appended since then; returns whether it did."""


class OwnerShare:
    """The remembered producers of one owner in one storage topic."""

    __slots__ = ("count", "look_again_us", "owner", "remembers", "silent")

    def __init__(self, owner: int, remembers: Forgets) -> None:
        self.owner = owner
        self.remembers = remembers
        self.count = 0
        self.silent: deque[tuple[int, Key]] = deque()
        """The next producers to forget, in order. One that has appended since is skipped; a
        producer that is not listed has appended later than all of these."""
        self.look_again_us = 0
        """Before this time no producer of the share was silent for long enough."""

    def forget(self, now_us: int, started_us: int, most: int) -> int:
        """Forget at most ``most`` producers, the longest silent first; returns how many."""
        done = 0
        while done < most and now_us >= self.look_again_us:
            if not self.silent:
                self.silent = self.remembers.silent_longest(self)
            if not self.silent:
                break
            since_us, key = self.silent[0]
            self.look_again_us = max(since_us, started_us) + PRODUCER_KEPT_US
            if now_us < self.look_again_us:
                break
            self.silent.popleft()
            done += self.remembers.forget_if_silent(key, since_us)
        return done


class ProducerRoom:
    """The room that the storage topics of a log share."""

    def __init__(self, started_us: int = 0) -> None:
        self.count = 0
        """How many (partition, producer) are remembered."""
        self.shares: set[OwnerShare] = set()
        """The shares that have any producer."""
        self.started_us = started_us
        self.refused = RefusedFirsts()
        """Where producers that are not remembered have to begin."""
        self._full_until_us = 0

    def add(self, share: OwnerShare) -> None:
        """A share has one more producer."""
        share.count += 1
        self.count += 1
        if share.count == 1:
            self.shares.add(share)

    def take(self, share: OwnerShare) -> None:
        """A share has one less producer."""
        share.count -= 1
        self.count -= 1
        self._full_until_us = 0
        if not share.count:
            self.shares.discard(share)

    def make(self, share: OwnerShare, now_us: int) -> None:
        """Make room for one more producer of a share.

        Raises:
            TooManyProducers: there is no room, and no producer was silent long enough to be
            forgotten.
        """
        if share.count >= PRODUCERS_OWNER_MAX and not share.forget(now_us, self.started_us, 1):
            raise TooManyProducers(limit=PRODUCERS_OWNER_MAX)
        if self.count < most_in_all(share.count):
            return
        if now_us < self._full_until_us:
            raise TooManyProducers(limit=most_in_all(share.count))
        largest = max(self.shares, key=lambda each: each.count, default=share)
        giving = largest if largest.count > share.count else share
        if not giving.forget(now_us, self.started_us, PRODUCERS_FORGOTTEN_AT_ONCE):
            self._full_until_us = giving.look_again_us
            raise TooManyProducers(limit=most_in_all(share.count))
