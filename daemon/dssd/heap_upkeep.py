"""Returns memory to the system that the heap took for a burst of work and kept.

glibc gives back only what is free at the end of its heap; a few blocks that stay hold all below
them. Invariant: pages are given back only after they were free at two looks in a row, so not
between two waves of one burst; the event loop never waits for this.
"""

import asyncio
import resource
from typing import NoReturn

from dssd import heap
from dssd.limits import HEAP_KEPT_BYTES

HEAP_LOOK_S = 10.0
"""How often the heap is examined. Returning memory takes a thread a quarter of a second for each
gigabyte, and an allocation may wait for some of that."""


class HeapUpkeep:
    """Looks at the heap of this process. Made once all else is open."""

    def __init__(self) -> None:
        self._page_bytes = resource.getpagesize()
        self._kept_bytes = self._resident_bytes()
        """Resident and not in use, after the last time; at first, all that there is."""
        self._idle_bytes = 0
        """The same at the last look."""

    async def run(self) -> NoReturn:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(HEAP_LOOK_S)
            await self.look()

    async def look(self) -> None:
        """Give back what was free at the last look and still is, if it is much."""
        if self._resident_bytes() <= self._kept_bytes + HEAP_KEPT_BYTES:
            self._idle_bytes = 0
            return
        before, self._idle_bytes = self._idle_bytes, await self._idle()
        if min(before, self._idle_bytes) > self._kept_bytes + HEAP_KEPT_BYTES:
            await asyncio.to_thread(heap.give_back)
            self._kept_bytes = self._idle_bytes = await self._idle()

    async def _idle(self) -> int:
        found = await asyncio.to_thread(heap.figures)
        return 0 if found is None else max(0, self._resident_bytes() - found.in_use_bytes)

    def _resident_bytes(self) -> int:
        return heap.resident_bytes(self._page_bytes)
