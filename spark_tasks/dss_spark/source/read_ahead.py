"""Items that an event loop reads ahead for a thread that cannot await, up to a bound.

Spark's workers are plain functions. A loop in a thread beside one reads on while Spark consumes
items. Invariant: leaving the block ends the reading; an error of the reading is raised where its
next item would come.
"""

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Generic, TypeVar

BATCHES_AHEAD = 4
"""How much is read ahead of Spark: the next answer is under way while a batch is passed on, and
memory stays flat however large a slice is."""

JOIN_S = 30.0
"""How long a task waits for its reading to end once nobody takes its batches."""


Item = TypeVar("Item")


class ReadAhead(Generic[Item]):
    """Use it as ``with ReadAhead(items) as read: for item in read``."""

    def __init__(self, items: AsyncGenerator[Item, None]) -> None:
        self._items = items
        self._came: queue.SimpleQueue[Item | BaseException | None] = queue.SimpleQueue()
        """Items, then the error that ended them, or None."""
        self._room = asyncio.Semaphore(BATCHES_AHEAD)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="dss reading", daemon=True)
        self._reading: asyncio.Task[None]

    def __enter__(self) -> Iterator[Item]:
        """Begin to read."""
        self._reading = self._loop.create_task(self._read(), name="dss reading")
        self._thread.start()
        return self._taken()

    def __exit__(self, *_: object) -> None:
        """End the reading."""
        self._loop.call_soon_threadsafe(self._reading.cancel)
        self._thread.join(JOIN_S)
        if not self._thread.is_alive():
            self._loop.close()

    def _taken(self) -> Iterator[Item]:
        while (item := self._came.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            self._loop.call_soon_threadsafe(self._room.release)
            yield item

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._reading)
            self._came.put(None)
        except BaseException as error:  # noqa: BLE001 - raised in the thread that takes the items
            self._came.put(error)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())

    async def _read(self) -> None:
        async with aclosing(self._items) as items:
            async for item in items:
                await self._room.acquire()
                self._came.put(item)
