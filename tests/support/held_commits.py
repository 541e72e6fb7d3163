"""Commits of a store that wait at a gate, so that a test decides what happens in between.

Invariant: commits reach the store in the order in which they came.
"""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from dssd.store.port import Precondition, Store, Write


class HeldCommits:
    """From now on the store's commits that contain such a write wait until they are released."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        store: Store,
        holds: Callable[[Write], bool] = lambda write: True,
        *,
        after: bool = False,
    ) -> None:
        self.reached = asyncio.Event()
        self.goes_on = asyncio.Event()
        self._holds = holds
        self._after = after
        """The commits take effect, but nobody is told yet."""
        self._usual = store.commit
        monkeypatch.setattr(store, "commit", self._commit)

    async def _commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        if not any(self._holds(write) for write in writes):
            return await self._usual(writes, preconditions)
        made = await self._usual(writes, preconditions) if self._after else None
        self.reached.set()
        await self.goes_on.wait()
        return await self._usual(writes, preconditions) if made is None else made
