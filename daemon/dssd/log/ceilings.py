"""Up to where the offsets of streams may have been given, whatever a loss of power leaves.

A frame of durability ``os`` is answered, read and acknowledged before it is durable. Should it be
lost, its offsets must not be given to other records: groups have consumed them. So a stream that
takes such frames has a *ceiling* in the store, raised ahead of use::

         durable             may be lost            not given
    ├────────────────────┼─────────────────────┼───────────────────┤
                       synced                 end               ceiling

After a stop in order the ceiling is the end. After anything else the stream goes on at its ceiling,
and what is missing below is its *gap*: offsets that nobody was given, or whose records are lost.

Invariant: of each offset that was reported, the ceiling in the store lies above it, or its frame
is durable. Pure; lives on the event loop, and must not know store or writer.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dssd.limits import CEILING_AHEAD_MAX, CEILING_AHEAD_MIN, CEILING_LASTS_S


@dataclass(slots=True, eq=False)
class _Ceiling:
    """One stream's."""

    stored: int
    """As the store has it; 0 where it has none."""
    ahead: int = CEILING_AHEAD_MIN
    """How far above the end it is raised, in offsets."""
    raised_s: float = -math.inf
    """When that was done last."""


class Ceilings:
    """Those of one storage topic, by partition."""

    __slots__ = ("_ceilings", "_low", "raising")

    def __init__(self, stored: Mapping[int, int]) -> None:
        self._ceilings = {partition: _Ceiling(at) for partition, at in stored.items()}
        self._low: set[int] = set()
        self.raising = False
        """Whether somebody is about to raise them."""

    def __contains__(self, partition: int) -> bool:
        """Whether the stream takes frames that may be lost."""
        return partition in self._ceilings

    def __iter__(self) -> Iterator[int]:
        """The partitions of those streams."""
        return iter(self._ceilings)

    def is_low(self, partition: int, end: int) -> bool:
        """Whether a ceiling is to be raised, now that frames that may be lost end there."""
        ceiling = self._ceilings.get(partition)
        if ceiling is None:
            ceiling = self._ceilings[partition] = _Ceiling(0)
        if end + ceiling.ahead // 2 <= ceiling.stored:
            return False
        self._low.add(partition)
        return True

    def raised(self, ends: Sequence[int], now_s: float) -> dict[int, int]:
        """What to store for the streams whose ceilings are low; then tell it by `store`.

        ``ends`` are those of all streams. One that is raised again soon is raised further.
        """
        found: dict[int, int] = {}
        for partition in self._low:
            ceiling = self._ceilings[partition]
            if now_s - ceiling.raised_s < CEILING_LASTS_S:
                ceiling.ahead = min(CEILING_AHEAD_MAX, ceiling.ahead * 2)
            else:
                ceiling.ahead = max(CEILING_AHEAD_MIN, ceiling.ahead // 2)
            ceiling.raised_s = now_s
            found[partition] = max(ceiling.stored, ends[partition] + ceiling.ahead)
        self._low.clear()
        return found

    def lowered(self, ends: Sequence[int]) -> dict[int, int]:
        """What to store once all frames up to the ends are durable, and no more can come."""
        return {
            partition: ends[partition]
            for partition, ceiling in self._ceilings.items()
            if ceiling.stored != ends[partition]
        }

    def store(self, stored: Mapping[int, int]) -> None:
        """Know that the store has these."""
        for partition, at in stored.items():
            self._ceilings[partition].stored = at
