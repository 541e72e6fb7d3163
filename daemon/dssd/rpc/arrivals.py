"""Bounds the memory of all incoming messages together.

gRPC buffers a message until all of it has arrived, up to the largest size for each call, and does
not say how much it buffers. The heap shows it: the memory in use beyond what the daemon accounts
for. Above the bound the daemon ends as many calls as could hold the excess, counting each as a
message of the largest size.

Invariant: a call is ended only while the heap is over the bound, and only while it waits for a
message. If the C library does not report heap use, only the number of calls bounds it.
"""

import asyncio
import gc
import resource
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NoReturn

from dss_core.limits import MESSAGE_BYTES_MAX
from dssd import heap
from dssd.events.kinds import PEER_REFUSED
from dssd.events.model import Event, Note
from dssd.limits import APPEND_BYTES_IN_FLIGHT_MAX, TAIL_CACHE_BYTES_MAX, WRITER_QUEUE_BYTES_MAX
from dssd.rpc.calls import Calls
from dssd.rpc.connection_bounds import Connections
from dssd.rpc.limits import ARRIVAL_BYTES_MAX

HEAP_BOUNDED_BYTES = (
    TAIL_CACHE_BYTES_MAX + WRITER_QUEUE_BYTES_MAX + APPEND_BYTES_IN_FLIGHT_MAX + (64 << 20)
)
"""Heap that other bounds allow: caches and queues of log and store."""


ARRIVAL_LOOK_S = 1.0
"""How often the heap is examined: one peer can send a gigabyte in a second at most."""

ARRIVAL_REST_S = 3.0
"""The pause after ending calls: a busy daemon needs this long to finish them."""

ARRIVAL_COLLECT_SHARE = 0.02
"""Share of the event loop's time for garbage collection while the heap is over its bound: one
collection took 0.3 s at a gigabyte."""

CONNECTION_HEAP_BYTES = 64 << 10
"""Heap allowed for a connection (measured: 20 KiB for an idle one)."""

CALL_HEAP_BYTES = 128 << 10
"""Heap allowed for a call and its session, without messages."""


class ArrivalWatch:
    """Watches the heap for the calls of these servers. Made once all else is open."""

    def __init__(
        self,
        calls: Sequence[Calls],
        connections: Sequence[Connections],
        note: Note,
        known_bytes: Callable[[], int],
    ) -> None:
        self._calls = calls
        self._connections = connections
        self._note = note
        self._known_bytes = known_bytes
        """Heap that the daemon accounts for, beyond parts with a fixed bound."""
        begun = heap.figures()
        self._begun_bytes = 0 if begun is None else begun.in_use_bytes
        self._page_bytes = resource.getpagesize()
        self._has_ended = False
        """Whether calls were ended since the last garbage collection."""
        self._collect_again_s = 0.0

    async def run(self) -> NoReturn:
        """Look until cancelled."""
        while True:
            has_ended = await self.look()
            # Ended calls release their memory a little later.
            await asyncio.sleep(ARRIVAL_REST_S if has_ended else ARRIVAL_LOOK_S)

    async def look(self) -> bool:
        """End calls of the greediest peer until the heap fits its bound, if possible; returns
        whether any ended."""
        if heap.resident_bytes(self._page_bytes) <= self.allowed_bytes():
            return False
        if await self._excess_bytes() <= 0:
            return False
        if self._has_ended:
            self._collect()
        count = -(-await self._excess_bytes() // MESSAGE_BYTES_MAX)
        if count <= 0:
            return False
        has_ended = sum(self._end(calls, count) for calls in self._calls) > 0
        self._has_ended |= has_ended
        return has_ended

    def _collect(self) -> None:
        """Collect garbage: reference cycles may hold ended calls with their messages.

        A collection blocks the event loop, so it gets only a share of the loop's time.
        """
        began_s = perf_counter()
        if began_s >= self._collect_again_s:
            gc.collect()
            self._has_ended = False
            took_s = perf_counter() - began_s
            self._collect_again_s = began_s + took_s / ARRIVAL_COLLECT_SHARE

    async def _excess_bytes(self) -> int:
        found = await asyncio.to_thread(heap.figures)
        return 0 if found is None else found.in_use_bytes - self.allowed_bytes()

    def allowed_bytes(self) -> int:
        """The heap use that is allowed now."""
        calls = sum(sum(each.held.values()) for each in self._calls)
        fixed = self._begun_bytes + HEAP_BOUNDED_BYTES + ARRIVAL_BYTES_MAX
        connections = sum(sum(each.held.values()) for each in self._connections)
        entries = calls * CALL_HEAP_BYTES + connections * CONNECTION_HEAP_BYTES
        return fixed + entries + self._known_bytes()

    def _end(self, calls: Calls, count: int) -> int:
        ended = calls.end_waits(count)
        for peer, its_count in ended.items():
            sentence = (
                f"{its_count} of its calls were ended, which waited for the rest of a message: all "
                f"that is on its way may take {ARRIVAL_BYTES_MAX >> 20} MiB."
            )
            self._note(Event(PEER_REFUSED, str(peer), sentence, {"ended": str(its_count)}))
        return sum(ended.values())
