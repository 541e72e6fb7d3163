"""Tells listeners what was committed.

Invariant: a listener sees every change of its kind from its creation on, in commit order, or an
exception; it never sees a gap. This module must not know what rows mean or where they are kept.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from weakref import WeakValueDictionary

from dssd.store.port import Change
from dssd.store.rows import Row

STORE_CHANGES_WAITING_MAX = 65_536
"""How many changes may wait for one listener; twice the largest commit of progress."""


class ListenerFellBehind(AssertionError):
    """A listener left too many changes waiting: its loop takes too long per change."""

    def __init__(self, kind: type[Row]) -> None:
        super().__init__(
            f"a listener of {kind.__name__} left {STORE_CHANGES_WAITING_MAX} changes waiting"
        )
        self.kind = kind


class CommitListener:
    """The changes of one kind, for one consumer. Dropping it ends it."""

    def __init__(self, kind: type[Row]) -> None:
        self.kind = kind
        self._changes: deque[Change] = deque()
        self._arrived: asyncio.Future[None] | None = None
        self._end: BaseException | None = None

    def __aiter__(self) -> "CommitListener":
        """Itself: it is consumed once."""
        return self

    async def __anext__(self) -> Change:
        """The next change.

        Raises:
            StopAsyncIteration: the store was closed.
            ListenerFellBehind: changes were lost to this listener.
            DssError: the store failed.
        """
        while not self._changes:
            if self._end is not None:
                raise self._end
            assert self._arrived is None, "it has one consumer"
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
            self.end(ListenerFellBehind(self.kind))
            return
        self._changes.append(change)
        self._wake()

    def end(self, reason: BaseException) -> None:
        """End it: ``reason`` is raised after the waiting changes were taken."""
        self._end = self._end or reason
        self._wake()

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)


class CommitListeners:
    """All of a store. Held weakly, so one ends when its consumer drops it."""

    def __init__(self) -> None:
        # By number, not a set: listeners are told in the order in which they came.
        self._listeners: dict[type[Row], WeakValueDictionary[int, CommitListener]] = {}
        self._made = 0
        self._end: BaseException | None = None

    def watch(self, kind: type[Row]) -> CommitListener:
        """A listener to the kind, from now on."""
        listener = CommitListener(kind)
        self._made += 1
        self._listeners.setdefault(kind, WeakValueDictionary())[self._made] = listener
        if self._end is not None:
            listener.end(self._end)
        return listener

    def wanted(self, kind: type[Row]) -> bool:
        """Whether anybody listens to the kind."""
        return bool(self._listeners.get(kind))

    def publish(self, changes: Sequence[Change]) -> None:
        """Tell the listeners of each change's kind."""
        for change in changes:
            for listener in list(self._listeners.get(change.kind, {}).values()):
                listener.offer(change)

    def close(self, failure: Exception | None = None) -> None:
        """End all: normally, or with the failure of the store."""
        self._end = self._end or failure or StopAsyncIteration()
        for listeners in self._listeners.values():
            for listener in list(listeners.values()):
                listener.end(self._end)
