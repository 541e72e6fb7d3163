"""An awaitable that is done already.

Awaiting a coroutine costs its making, its frame and its end, more than the rest of an ack. A
generator that has ended costs none of these, and may be awaited again and again, by all threads.
"""

from collections import deque
from collections.abc import Awaitable, Generator, Iterator
from types import coroutine
from typing import cast


@coroutine
def _nothing() -> Generator[None, None, None]:
    return
    yield


DONE: Awaitable[None] = _nothing()
"""Awaiting it returns at once."""

deque(cast("Iterator[None]", DONE), maxlen=0)  # to its end
