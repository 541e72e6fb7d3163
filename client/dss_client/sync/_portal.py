"""The one event loop behind every synchronous client of this process, in a thread of its own.

It begins with the first client and ends with the process, after it has closed the clients that are
still open. Invariants: what belongs to the loop is touched only in its thread, through a `Portal`;
a call from another thread waits for its end, and ends early only together with what it awaits. A
`fork` leaves the thread behind: in the child, everything that was opened before is refused with a
reason.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from dss_client._forks import the_forks
from dss_core.errors import ProcessEnds, WouldWaitForItself

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

CLOSE_AT_EXIT_S = 5.0
"""How long the process waits for the loop's thread to end, once its clients are closed."""

SIGNAL_LOOK_S = 0.5
"""How often a waiting thread checks for signals: otherwise it would notice a signal that came just
before the wait only together with the answer."""


Answer = TypeVar("Answer")
Given = ParamSpec("Given")


class Portal:
    """The way into the loop. There is one a process; `portal` gives it."""

    def __init__(self) -> None:
        self._ended = False
        self._closers: dict[object, Callable[[], None]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="dss loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Await something in the loop, and wait for it here; Ctrl-C cancels it.

        Raises:
            OpenedBeforeFork: the loop belongs to the process that this one was forked from.
            WouldWaitForItself: this is the loop's own thread, as in `on_grant`.
            ProcessEnds: it does, and has closed all clients.
        """
        try:
            self.check()
        except BaseException:
            work.close()
            raise
        return _waited(asyncio.run_coroutine_threadsafe(_carried(work), self._loop))

    def run_to_end(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """The same, but Ctrl-C is raised only once what it cancels has ended."""
        try:
            self.check()
        except BaseException:
            work.close()
            raise
        begun: list[asyncio.Task[Answer]] = []
        ended = threading.Event()

        def begin() -> None:
            begun.append(self._loop.create_task(_carried(work)))
            begun[0].add_done_callback(lambda _: ended.set())

        self._loop.call_soon_threadsafe(begin)
        try:
            while not ended.wait(SIGNAL_LOOK_S):
                pass
        except BaseException:
            self._loop.call_soon_threadsafe(lambda: begun[0].cancel())
            ended.wait()
            raise
        return _unwrapped(begun[0].result)

    def call(
        self, function: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs
    ) -> Answer:
        """Call a function in the loop's thread; raises as `run` does."""
        self.check()
        future: Future[Answer] = Future()
        self._loop.call_soon_threadsafe(_answer, future, partial(function, *args, **kwargs))
        return _waited(future)

    def soon(self, function: Callable[[], None]) -> None:
        """Have a function called in the loop's thread, without waiting for it.

        Raises:
            OpenedBeforeFork: the loop belongs to the process that this one was forked from.
        """
        self.check_process()
        self._loop.call_soon_threadsafe(function)

    def later(self, delay_s: float, function: Callable[[], None]) -> None:
        """Have a function called after a while; in the loop's thread only."""
        self._loop.call_later(delay_s, function)

    def begin(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """Begin a task; in the loop's thread only."""
        return self._loop.create_task(work, name=name)

    def iterate(self, items: "AsyncGenerator[Answer, None]") -> Iterator[Answer]:
        """Items one by one, each awaited in the loop."""
        try:
            while (item := self.run(_next_of(items))) is not _END:
                yield cast("Answer", item)
        finally:
            # The iterator may be thrown away late, when the loop has ended.
            if not (the_forks.is_child or self._ended):
                self.run(items.aclose())

    def check(self) -> None:
        """Check that a wait for the loop would end; raises as `run` does."""
        self.check_process()
        if self._ended:
            raise ProcessEnds
        if threading.current_thread() is self._thread:
            raise WouldWaitForItself

    def check_process(self) -> None:
        """Check that the loop runs in this process; raises as `soon` does."""
        the_forks.refuse()

    def opened(self, client: object, close: Callable[[], None]) -> None:
        """A client is open, and is to be closed at the end of the process."""
        self._closers[client] = close

    def closed(self, client: object) -> None:
        """The client is closed."""
        self._closers.pop(client, None)

    def end(self) -> None:
        """Close the open clients; nothing can be called after that."""
        for close in list(self._closers.values()):
            # There is nobody left to be told.
            with suppress(Exception):
                close()
        self._ended = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_AT_EXIT_S)

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


class _EndsProgram(Exception):
    """Carries an exception that ends a program, its argument, into the calling thread."""


async def _carried(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Await it; what ends a program would end the loop of all clients if a task raised it."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        raise _EndsProgram(error) from error


def _waited(future: "Future[Answer]") -> Answer:
    return _unwrapped(partial(_result, future))


def _unwrapped(result: Callable[[], Answer]) -> Answer:
    try:
        return result()
    except _EndsProgram as carried:
        [error] = carried.args
        raise error from None


def _result(future: "Future[Answer]") -> Answer:
    try:
        while True:
            try:
                return future.result(SIGNAL_LOOK_S)
            except TimeoutError:
                if future.done():  # that of the work itself
                    return future.result()
    except BaseException:
        # Of the work itself, it is done already.
        future.cancel()
        raise


def _answer(future: "Future[Answer]", function: Callable[[], Answer]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        answer = function()
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that called
        future.set_exception(error)
    else:
        future.set_result(answer)


async def _next_of(items: "AsyncGenerator[Answer, None]") -> "Answer | object":
    return await anext(items, _END)


_END = object()
_lock = threading.Lock()
_portal: Portal | None = None


def portal() -> Portal:
    """The portal of this process, made by the first call.

    Raises:
        OpenedBeforeFork: a client was opened before this process was forked: gRPC cannot be used.
    """
    global _portal
    with _lock:
        the_forks.opening()
        if _portal is None:
            _portal = Portal()
            atexit.register(partial(_end, _portal))
        return _portal


def _end(ended: Portal) -> None:
    if not the_forks.is_child:
        ended.end()


def _left_behind() -> None:
    """Replace the lock in the child of a fork, where the thread is missing."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_left_behind)
