"""Runs the log in one thread: work that it hands to threads runs on the event loop instead.

Such a job begins a random number of rounds of the loop after it was handed over, and runs to its
end. So the order of everything follows from the random generator alone. This cannot show a thread
that overtakes another between two system calls of one job.

Invariant: no thread is started, and no clock is read.
"""

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty
from random import Random
from typing import Any, TypeVar, TypeVarTuple

from dssd import loop_yield
from dssd.limits import LOOP_TURN_S
from dssd.log.write import loop_reports, writer_thread

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ROUNDS_MAX = 5
"""How many rounds of the loop a thread's job may wait."""
QUIET_ROUNDS = 200
"""More than the longest chain of jobs that follows from one act."""
TURN_ENDS = 0.02
"""How often a look at the clock finds that a turn is over."""


class Died(SystemExit):
    """The process is gone. Only the end of the loop catches this."""


class NothingWaits(BaseException):
    """The writer would have to wait: its turn is over."""


class Stuck(Exception):
    """Everything waits for something, and nothing is under way."""


class _Selector(selectors.SelectSelector):
    """Nothing else wakes the loop: where it would wait for a timer, it moves time to that timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """No events ever come in.

        Raises:
            Stuck: there is no timer either.
        """
        if timeout is None:
            raise Stuck
        self.now_s += max(timeout, 0.0)
        return []


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop that does the work of threads itself, in virtual time."""

    def __init__(self, chance: Random) -> None:
        self._timers = _Selector()
        super().__init__(self._timers)
        self.chance = chance
        self.unhandled: list[BaseException] = []
        self.set_exception_handler(self._note)

    def _note(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException) and not isinstance(error, Died):
            self.unhandled.append(error)

    def time(self) -> float:
        """Virtual time in seconds; it passes when nothing else is left to do."""
        return self._timers.now_s

    def _write_to_self(self) -> None:
        """Do nothing: no other thread has to wake the loop."""

    def later(self, work: Callable[[], object]) -> None:
        """Call it after some rounds."""
        self._wait(self.chance.randrange(ROUNDS_MAX), work)

    def _wait(self, rounds: int, work: Callable[[], object]) -> None:
        if rounds:
            self.call_soon(self._wait, rounds - 1, work)
        else:
            self.call_soon(work)

    async def quiet(self) -> None:
        """Let others run until nothing that was begun can still be waiting."""
        for _ in range(QUIET_ROUNDS):
            await asyncio.sleep(0)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run it in a later round."""
        future: asyncio.Future[T] = self.create_future()
        self.later(partial(_run, future, partial(func, *args)))
        return future

    async def some_rounds(self) -> None:
        """Let others run for a while."""
        for _ in range(self.chance.randrange(ROUNDS_MAX)):
            await asyncio.sleep(0)

    def perf_counter(self) -> float:
        """A clock that stands still, except that now and then a whole turn passes."""
        return LOOP_TURN_S if self.chance.random() < TURN_ENDS else 0.0


def _run(future: asyncio.Future[T], job: Callable[[], T]) -> None:
    if future.cancelled():
        return
    try:
        result = job()
    except Exception as error:  # noqa: BLE001 - what a job raises belongs to whoever waits for it
        if not future.done():
            future.set_exception(error)
        return
    if not future.done():
        future.set_result(result)


class _WriterTurns:
    """Thread and queue of the writer: each item that comes gives it a turn."""

    def __init__(self, loop: SteppedLoop) -> None:
        self._loop = loop
        self._items: deque[Any] = deque()
        self._work: Callable[[], object] | None = None

    # As a thread

    def thread(self, *, target: Callable[[], object], name: str, daemon: bool) -> "_WriterTurns":
        """Stands in for `threading.Thread`."""
        assert daemon, f"{name} must not hold up the end of the process"
        self._work = target
        return self

    def start(self) -> None:
        """Do nothing: turns begin when items come."""

    def join(self) -> None:
        """Let it run to its end."""
        while self._items:
            self._turn()

    def _turn(self) -> None:
        assert self._work is not None
        if self._items:
            try:
                self._work()
            except NothingWaits:
                return

    # As a queue

    def queue(self) -> "_WriterTurns":
        """Stands in for `queue.SimpleQueue`."""
        return self

    def put(self, item: object) -> None:
        """Add an item, and with it a turn."""
        self._items.append(item)
        self._loop.later(self._turn)

    def get(self) -> object:
        """The next item.

        Raises:
            NothingWaits: there is none.
        """
        if not self._items:
            raise NothingWaits
        return self._items.popleft()

    def get_nowait(self) -> object:
        """The next item.

        Raises:
            Empty: there is none.
        """
        if not self._items:
            raise Empty
        return self._items.popleft()


class _Threading:
    """Stands in for the module `threading`, for the writer."""

    def __init__(self, turns_of_writer: _WriterTurns) -> None:
        self.Thread = turns_of_writer.thread


@contextmanager
def swapped(owner: object, **others: object) -> Iterator[None]:
    """Replace attributes of a module while the block runs."""
    own = {name: getattr(owner, name) for name in others}
    try:
        for name, other in others.items():
            setattr(owner, name, other)
        yield
    finally:
        for name, value in own.items():
            setattr(owner, name, value)


@contextmanager
def one_thread(chance: Random) -> Iterator[SteppedLoop]:
    """A loop; a log that is made in the block has no threads. Tasks that still run at the end are
    cancelled."""
    loop = SteppedLoop(chance)
    turns_of_writer = _WriterTurns(loop)
    with (
        swapped(
            writer_thread, threading=_Threading(turns_of_writer), SimpleQueue=turns_of_writer.queue
        ),
        swapped(loop_reports, perf_counter=loop.perf_counter),
        swapped(loop_yield, perf_counter=loop.perf_counter),
    ):
        try:
            yield loop
        finally:
            _end(loop)


def _end(loop: SteppedLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    while not all(task.done() for task in left):
        loop.call_soon(loop.stop)
        # A task that died with the process raises that again to whoever runs the loop.
        with suppress(Died):
            loop.run_forever()
    loop.close()
