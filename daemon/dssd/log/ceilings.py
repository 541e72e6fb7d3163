"""Ceilings: bounds of the offsets that were assigned, which hold after a loss of power too.

A frame of durability ``os`` is answered, read and acknowledged before it is durable. If it is lost,
its offsets must not be assigned to other records, because groups may have consumed them. So a
stream that takes such frames has a *ceiling* in the store, raised ahead of use::

         durable             may be lost            unassigned
    ├────────────────────┼─────────────────────┼───────────────────┤
                       synced                 end               ceiling

After a clean stop the ceiling is the end. After any other stop the stream continues at its ceiling.
The offsets that are missing below it are its *gap*: they were never assigned, or their records are
lost.

Invariant: an offset is reported only if its frame is durable or the ceiling in the store lies above
it. Pure; used on the event loop; must not know store or writer.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dssd.limits import CEILING_AHEAD_MAX, CEILING_AHEAD_MIN

CEILING_LASTS_S = 1.0
"""A ceiling that has to be raised again before this time is raised twice as far: a busy topic
commits its ceilings about once a second."""


@dataclass(slots=True, eq=False)
class _Ceiling:
    """The ceiling of one stream."""

    stored: int
    """The ceiling in the store; 0 if there is none."""
    ahead: int = CEILING_AHEAD_MIN
    """How many offsets above the end it is raised."""
    raised_s: float = -math.inf
    """When it was raised last."""


class Ceilings:
    """The ceilings of one storage topic, by partition."""

    __slots__ = ("_ceilings", "_low", "raising")

    def __init__(self, stored: Mapping[int, int]) -> None:
        self._ceilings = {partition: _Ceiling(at) for partition, at in stored.items()}
        self._low: set[int] = set()
        self.raising = False
        """Whether a job to raise them is pending."""

    def __contains__(self, partition: int) -> bool:
        """Whether the stream takes frames that may be lost."""
        return partition in self._ceilings

    def __iter__(self) -> Iterator[int]:
        """The partitions of those streams."""
        return iter(self._ceilings)

    def is_low(self, partition: int, end: int) -> bool:
        """Whether the ceiling must be raised, now that frames that may be lost reach ``end``."""
        ceiling = self._ceilings.get(partition)
        if ceiling is None:
            ceiling = self._ceilings[partition] = _Ceiling(0)
        if end + ceiling.ahead // 2 <= ceiling.stored:
            return False
        self._low.add(partition)
        return True

    def raised(self, ends: Sequence[int], now_s: float) -> dict[int, int]:
        """The new ceilings of the streams whose ceilings are low; once committed, call `store`.

        ``ends`` are those of all streams. A ceiling that is raised again soon is raised further.
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
        """The ceilings to store at a clean stop, where all frames up to ``ends`` are durable."""
        return {
            partition: ends[partition]
            for partition, ceiling in self._ceilings.items()
            if ceiling.stored != ends[partition]
        }

    def store(self, stored: Mapping[int, int]) -> None:
        """Note that the store has these ceilings."""
        for partition, at in stored.items():
            self._ceilings[partition].stored = at
