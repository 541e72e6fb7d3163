"""Notices that an event loop was held: its process stood still, or something computed in it.

One watch for all connections of a loop; it looks at the clock every now and then, and whenever it
is asked. Invariant: after the loop was held for `LOOP_HELD_S`, `held_until` says so before anything
else of the loop can have waited for its I/O. It knows nothing of connections.
"""

import asyncio
from time import monotonic
from weakref import WeakKeyDictionary

from dss_client.limits import LOOP_LOOK_S

LOOP_HELD_S = 0.1
"""Where the loop was held for so long, its process may have stood still, and the daemon may have
noticed a loss of the connection that nobody here could: hand-out waits for a ping. A loop that does
its work in pieces is never held so long."""


class LoopWatch:
    """The watch of one loop; only its own thread uses it."""

    def __init__(self) -> None:
        self._users = 0
        self._is_ticking = False
        self._looked_at = 0.0
        self._held_until = 0.0

    def begin(self) -> None:
        """Somebody wants to know, from now on."""
        self._users += 1
        if not self._is_ticking:
            self._is_ticking = True
            self._looked_at = monotonic()
            self._tick()

    def end(self) -> None:
        """One of them does not any more."""
        self._users -= 1

    def held_until(self) -> float:
        """When the loop was last found to have been held; 0 where it never was."""
        now = monotonic()
        if now - self._looked_at > LOOP_HELD_S:
            self._held_until = now
        self._looked_at = now
        return self._held_until

    def _tick(self) -> None:
        self._is_ticking = self._users > 0
        if self._is_ticking:
            self.held_until()
            asyncio.get_running_loop().call_later(LOOP_LOOK_S, self._tick)


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopWatch] = WeakKeyDictionary()


def watch_of_loop() -> LoopWatch:
    """That of the running loop."""
    loop = asyncio.get_running_loop()
    watch = _watches.get(loop)
    if watch is None:
        watch = _watches[loop] = LoopWatch()
    return watch
