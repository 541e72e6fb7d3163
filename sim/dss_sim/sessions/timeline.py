"""Virtual time, and event loops on it: nothing waits for a clock, and nothing runs in parallel.

One queue has the steps of all loops and of the world itself, in the order in which asyncio would
take them; when nothing is ready, time jumps to the next timer. A step takes a little time, so a
timer may come due while other steps still wait, as on a busy loop.

Invariant: no real clock, no thread, no selector. An abandoned loop takes no further step, whatever
its tasks had begun; this is how a process dies here.
"""

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple
from unittest.mock import patch

STEP_US = 5
"""How long a step takes."""

CLOSES_MAX = 100
"""How many waits one task may have while it is being closed."""

Act = Callable[[], None]
T = TypeVar("T")
Args = TypeVarTuple("Args")


class Deadlock(Exception):
    """Nothing is ready, and no timer will ever come."""


class Timeline:
    """What happens next, in microseconds of true time."""

    def __init__(self) -> None:
        self.now_us = 0
        self.steps = 0
        self._ready: deque[asyncio.Handle | Act] = deque()
        self._timers: list[tuple[int, int, asyncio.Handle | Act]] = []
        self._asked = 0

    def soon(self, act: "asyncio.Handle | Act") -> None:
        """Call it after everything that is ready."""
        self._ready.append(act)

    def after(self, span_us: int, act: "asyncio.Handle | Act") -> None:
        """Call it after a span of time."""
        self._asked += 1
        heapq.heappush(self._timers, (self.now_us + max(span_us, 0), self._asked, act))

    def step(self) -> None:
        """Let the next thing happen.

        Raises:
            Deadlock: there is nothing left to happen.
        """
        if not self._ready:
            if not self._timers:
                raise Deadlock
            self.now_us = max(self.now_us, self._timers[0][0])
        self.now_us += STEP_US
        while self._timers and self._timers[0][0] <= self.now_us:
            self._ready.append(heapq.heappop(self._timers)[2])
        self.steps += 1
        act = self._ready.popleft()
        if isinstance(act, asyncio.Handle):
            _run(act)
        else:
            act()


def _run(handle: asyncio.Handle) -> None:
    loop = handle._loop  # type: ignore[attr-defined] # a handle knows its loop; the stub does not
    if handle.cancelled() or loop.abandoned or loop.keeps(handle):
        return
    events._set_running_loop(loop)
    try:
        handle._run()
    finally:
        events._set_running_loop(None)


def _close(coroutine: Coroutine[Any, Any, Any]) -> None:
    """End a coroutine where it waits; one that goes on to wait elsewhere is ended there too."""
    for _ in range(CLOSES_MAX):
        try:
            coroutine.close()
        except RuntimeError:
            continue
        except (Exception, BaseExceptionGroup):  # noqa: BLE001 - it matters to nobody any more
            return  # a TaskGroup that is closed while it waits raises a group of GeneratorExit
        return


class VirtualLoop(asyncio.AbstractEventLoop):
    """The loop of one life of a process."""

    def __init__(self, timeline: Timeline) -> None:
        self.abandoned = False
        self.complaints: list[dict[str, Any]] = []
        """Errors that no caller took, as asyncio gave them to the exception handler."""
        self._timeline = timeline
        self._left: list[asyncio.Task[Any]] = []
        self._kept: list[asyncio.Handle] | None = None
        """The timers that came due while the process stands still; None while it runs."""

    def abandon(self) -> None:
        """The process is gone: none of its tasks runs on."""
        self.abandoned = True
        self._left = self.pending()

    @property
    def stands_still(self) -> bool:
        """Whether the process is frozen."""
        return self._kept is not None

    def freeze(self) -> None:
        """Let the process stand still between two steps; its timers come due all the same."""
        self._kept = self._kept or []

    def thaw(self) -> None:
        """Let it continue, with all timers that came due."""
        kept, self._kept = self._kept or [], None
        for handle in kept:
            self._timeline.soon(handle)

    def keeps(self, handle: asyncio.Handle) -> bool:
        """Whether a step has to wait because the process stands still."""
        if self._kept is None:
            return False
        self._kept.append(handle)
        return True

    def pending(self) -> list[asyncio.Task[Any]]:
        """Tasks that are not done, by name."""
        return sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())

    def dispose(self) -> None:
        """Drop what an abandoned loop's tasks hold, without complaints about it."""
        self.abandoned = True
        events._set_running_loop(self)
        with patch("sys.unraisablehook", lambda unraisable: None):
            for task in self._left + self.pending():
                coroutine = task.get_coro()
                if isinstance(coroutine, Coroutine):
                    _close(coroutine)
            self._left.clear()
        events._set_running_loop(None)

    # The interface of asyncio loops

    def time(self) -> float:
        """Seconds of virtual time."""
        return self._timeline.now_us / 1e6

    def call_soon(
        self,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Call it after everything that is ready."""
        handle = asyncio.Handle(callback, args, self, context)
        if not self.abandoned:
            self._timeline.soon(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call it after some seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call it at a time."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if not self.abandoned:
            self._timeline.after(round(when * 1e6) - self._timeline.now_us, handle)
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Any,  # noqa: ANN401 - what a task may run, as the loop's own type says
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> "asyncio.Task[Any]":
        """A task of this loop."""
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep an error that no caller took, unless the life is over."""
        if not self.abandoned:
            self.complaints.append(context)

    def get_debug(self) -> bool:
        """Always False."""
        return False

    def is_running(self) -> bool:
        """True until it is abandoned."""
        return not self.abandoned

    def is_closed(self) -> bool:
        """True once it is abandoned."""
        return self.abandoned

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Ignored: the timer fires without effect."""
