"""A process that dies after a number of effects: commits of the store, and work that threads do.

Invariant: after the death no effect happens any more. Whether the effect on which it falls still
happens is drawn from the seed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from dssd.store.memory import MemoryStore
from dssd.store.port import Precondition, Write

T = TypeVar("T")


class Died(Exception):
    """The process is gone."""


class Death:
    """Counts effects; after ``after`` of them nothing happens any more."""

    def __init__(self, after: int | None, *, happens: bool) -> None:
        self._left = after
        self._happens = happens
        self.effects = 0
        self.dead = False

    def put_off(self) -> None:
        """Let the process live on."""
        self._left = None

    async def around(self, effect: Callable[[], Awaitable[T]]) -> T:
        """Let an effect happen, or die at it.

        Raises:
            Died: at this effect, or at an earlier one.
        """
        if self.dead:
            raise Died
        self.effects += 1
        if self._left is None or self.effects < self._left:
            return await effect()
        self.dead = True
        if self._happens:
            await effect()
        raise Died


class DyingStore(MemoryStore):
    """A store whose commits are effects. It outlives the processes that use it."""

    def __init__(self) -> None:
        super().__init__()
        self.death = Death(None, happens=True)

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        """See the port."""
        commit = super().commit
        return await self.death.around(lambda: commit(writes, preconditions))


@contextmanager
def threads_die(death: Death) -> Iterator[None]:
    """Work that is handed to threads in the block counts as an effect."""
    own = asyncio.to_thread

    async def dying(work: Callable[..., T], *args: object, **named: object) -> T:
        return await death.around(lambda: own(work, *args, **named))

    asyncio.to_thread = dying  # type: ignore[assignment] # for the time of the block
    try:
        yield
    finally:
        asyncio.to_thread = own
