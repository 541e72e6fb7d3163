"""Runs the reports of the writer thread on the event loop: in order, a turn at a time.

One group commit may touch every stream of a topic, and showing all of them at once would block the
loop. So a report is a series of small steps. When its turn is over, the rest waits for the loop's
next round, and so do all later reports.

Invariant: a report starts after the last step of the one before. After a step that raised, which is
a programmer's error, no report runs. This module must not know what a report does.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter

from dssd.limits import LOOP_TURN_S

Report = Iterator[None]
"""Does a small step for each item."""


class LoopReports:
    """Runs on the event loop. ``failed`` is called with the error of a step that raised."""

    __slots__ = ("_failed", "_loop", "_waiting")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, failed: Callable[[BaseException], None]
    ) -> None:
        self._loop = loop
        self._failed = failed
        self._waiting: deque[Report] = deque()
        """The first one is in progress. Bounded by the queue of the writer."""

    def take(self, report: Report) -> None:
        """Run a report, at once if no other one is in progress."""
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
