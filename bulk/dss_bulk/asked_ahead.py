"""Items of an async generator, each asked for while the one before is still worked on.

So nobody waits for the two milliseconds of an answer. Invariant: the same items in the same order,
and an error after all items that came before it. Two requests never run at once.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class AskedAhead(Generic[T]):
    """Asks for the first item at once; close it, for example with `aclosing`."""

    def __init__(self, items: AsyncGenerator[T, None]) -> None:
        self._items = items
        self._asked = self._ask()

    def __aiter__(self) -> AsyncIterator[T]:
        """Itself."""
        return self

    async def __anext__(self) -> T:
        """The next item."""
        found = await self._asked
        if not found:
            raise StopAsyncIteration
        self._asked = self._ask()
        return found[0]

    async def aclose(self) -> None:
        """Ask for nothing more, and drop items that were not taken."""
        self._asked.cancel()
        await asyncio.gather(self._asked, return_exceptions=True)
        await self._items.aclose()

    def _ask(self) -> "asyncio.Task[tuple[T, ...]]":
        return asyncio.create_task(self._next(), name="asked ahead")

    async def _next(self) -> tuple[T, ...]:
        """The next item, or nothing: a task cannot raise that there is none."""
        async for item in self._items:
            return (item,)
        return ()
