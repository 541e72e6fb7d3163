"""What the writer thread reports, taken in on the event loop: in order, a turn at a time.

One group commit may touch every stream of a topic, and to show all of them in one go would hold
the loop. So a report is a row of small steps; where its turn is over, the rest waits for the
loop's next round, and so does whatever was reported after it.

Invariant: a report begins after the last step of the one before, and none does after one that
failed, which is a programmer's error. It must not know what it carries.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter

from dssd.limits import LOOP_TURN_S

Report = Iterator[None]
"""Does a small step whenever it is asked for the next item."""


class LoopReports:
    """Lives on the event loop. ``failed`` is told of a step that raised."""

    __slots__ = ("_failed", "_loop", "_waiting")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, failed: Callable[[BaseException], None]
    ) -> None:
        self._loop = loop
        self._failed = failed
        self._waiting: deque[Report] = deque()
        """The first one is under way. Bounded by what the log lets wait for the writer."""

    def take(self, report: Report) -> None:
        """Do the steps of a report, at once where no other one is under way."""
        self._waiting.append(report)
        if len(self._waiting) == 1:
            self._go_on()

    def _go_on(self) -> None:
        try:
            self._do_steps()
        except Exception as error:  # noqa: BLE001 - a callback's last frame: it ends the process
            self._failed(error)

    def _do_steps(self) -> None:
        until = perf_counter() + LOOP_TURN_S
        while self._waiting:
            for _ in self._waiting[0]:
                if perf_counter() >= until:
                    self._loop.call_soon(self._go_on)
                    return
            self._waiting.popleft()
