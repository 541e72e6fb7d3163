"""Tells watchers what was committed.

Invariant: a watcher sees every change of its kind from its creation on, in commit order, or an
exception; it never sees a gap. This module must not know what rows mean or where they are kept.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from weakref import WeakValueDictionary

from dssd.store.port import Change
from dssd.store.rows import Row

STORE_CHANGES_WAITING_MAX = 65_536
"""Changes that one watcher has not taken yet; twice the largest commit of progress."""


class WatcherFellBehind(AssertionError):
    """A watcher left too many changes waiting: its loop takes too long per change."""

    def __init__(self, kind: type[Row]) -> None:
        super().__init__(
            f"a watcher of {kind.__name__} left {STORE_CHANGES_WAITING_MAX} changes waiting"
        )
        self.kind = kind


class Watch:
    """The changes of one kind, for one consumer. Dropping it ends the watch."""

    def __init__(self, kind: type[Row]) -> None:
        self.kind = kind
        self._changes: deque[Change] = deque()
        self._arrived: asyncio.Future[None] | None = None
        self._end: BaseException | None = None

    def __aiter__(self) -> "Watch":
        """Itself: a watch is consumed once."""
        return self

    async def __anext__(self) -> Change:
        """The next change.

        Raises:
            StopAsyncIteration: the store was closed.
            WatcherFellBehind: changes were lost to this watcher.
            DssError: the store failed.
        """
        while not self._changes:
            if self._end is not None:
                raise self._end
            assert self._arrived is None, "a watch has one consumer"
            self._arrived = asyncio.get_running_loop().create_future()
            try:
                await self._arrived
            finally:
                self._arrived = None
        return self._changes.popleft()

    def offer(self, change: Change) -> None:
        """Hand over one committed change."""
        if self._end is not None:
            return
        if len(self._changes) >= STORE_CHANGES_WAITING_MAX:
            self._changes.clear()
            self.end(WatcherFellBehind(self.kind))
            return
        self._changes.append(change)
        self._wake()

    def end(self, reason: BaseException) -> None:
        """End the watch: ``reason`` is raised after the waiting changes were taken."""
        self._end = self._end or reason
        self._wake()

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)


class Watchers:
    """All watches of a store. Held weakly, so a watch ends when its consumer drops it."""

    def __init__(self) -> None:
        # By number, not a set: watchers are told in the order in which they came.
        self._watches: dict[type[Row], WeakValueDictionary[int, Watch]] = {}
        self._made = 0
        self._end: BaseException | None = None

    def watch(self, kind: type[Row]) -> Watch:
        """A watch of the kind, from now on."""
        watch = Watch(kind)
        self._made += 1
        self._watches.setdefault(kind, WeakValueDictionary())[self._made] = watch
        if self._end is not None:
            watch.end(self._end)
        return watch

    def wanted(self, kind: type[Row]) -> bool:
        """Whether anybody watches the kind."""
        return bool(self._watches.get(kind))

    def publish(self, changes: Sequence[Change]) -> None:
        """Tell the watchers of each change's kind."""
        for change in changes:
            for watch in list(self._watches.get(change.kind, {}).values()):
                watch.offer(change)

    def close(self, failure: Exception | None = None) -> None:
        """End all watches: normally, or with the failure of the store."""
        self._end = self._end or failure or StopAsyncIteration()
        for watches in self._watches.values():
            for watch in list(watches.values()):
                watch.end(self._end)
