"""Gathers entries that move from a lane to the queues of other lanes, and appends many at a time.

Invariants: the gathered entries are bounded; an append belongs to the lane that names it, so a
later takeover of that lane waits for it. This module must not know what an entry is for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from dss_core.errors import DssError, GrantNotHeld, StreamNotFound
from dss_core.ids import StreamId
from dssd.log.port import Append, Appended
from dssd.loop_yield import LoopTurn
from dssd.queues.entries import FRAME_ENTRIES_MAX, NewEntry, frames_of
from dssd.queues.moving import MOVE_GATHERED_BYTES, Parts

GATHERED_ENTRIES_MAX = 8 * FRAME_ENTRIES_MAX
"""How many entries are gathered for one append: so many small ones take some milliseconds of making
frames, in turns, and share one sync."""


AGAIN_S = 1.0
AGAIN_S_MAX = 30.0
"""The pause after a failure, before all begins anew; it doubles each time."""


class TryAgain(Exception):
    """Something could not be read or appended now."""


Done = TypeVar("Done")


async def until_done(
    parts: Parts, lane: tuple[StreamId, int], attempt: Callable[[], Awaitable[Done]]
) -> Done | None:
    """Take the lane over, by its retry queue and an epoch, and try until it is done; None: somebody
    with a later epoch took it over."""
    rest_s = AGAIN_S
    while await parts.writers.take_over(*lane):
        try:
            return await attempt()
        except GrantNotHeld:
            return None
        except TryAgain:
            await asyncio.sleep(rest_s)
            rest_s = min(2 * rest_s, AGAIN_S_MAX)
    return None


class Gathering:
    """The entries that are gathered for the queues of some lanes."""

    def __init__(
        self, to: Sequence[tuple[StreamId, StreamId]], parts: Parts, lane: tuple[StreamId, int]
    ) -> None:
        """``to`` has the two queues of each lane; ``lane`` is the retry queue and the epoch under
        which the appends are made."""
        self._to = to
        self._parts = parts
        self._lane = lane
        self._gathered: list[tuple[int, NewEntry]] = []
        self._bytes = 0
        self._turn = LoopTurn()

    async def add(self, to: int, entry: NewEntry) -> None:
        """Add an entry for the lane of this number.

        Raises:
            TryAgain: something could not be appended.
            GrantNotHeld: the lane was taken over.
            StreamNotFound: a queue was removed.
        """
        self._gathered.append((to, entry))
        self._bytes += entry.size
        full = len(self._gathered) >= GATHERED_ENTRIES_MAX
        if full or self._bytes >= MOVE_GATHERED_BYTES:
            await self.append()

    async def append(self) -> None:
        """Append all gathered entries; they are durable on return.

        Raises:
            TryAgain, GrantNotHeld, StreamNotFound: as in `add`.
        """
        gathered, self._gathered, self._bytes = self._gathered, [], 0
        by_queue: dict[StreamId, list[NewEntry]] = {}
        for to, entry in gathered:
            by_queue.setdefault(self._to[to][entry.piece.to - 1], []).append(entry)
        appends: list[Append] = []
        for stream, entries in by_queue.items():
            for frame, _ in frames_of(entries, stream.partition):
                await self._turn.give_way()
                # The epoch of an append to a topic is the id of its storage topic.
                appends.append(Append(stream, frame, stream.storage_topic_id))
        if not appends:
            return
        for result in await self._parts.writers.append(*self._lane, appends):
            if not isinstance(result, Appended):
                raise _reason(result)


def _reason(failed: BaseException) -> BaseException:
    """The exception to raise: `TryAgain`, or one that is final."""
    if isinstance(failed, GrantNotHeld | StreamNotFound) or not isinstance(failed, DssError):
        return failed
    return TryAgain()
