"""Keeps joins of a group apart from its removal for lack of use.

Invariant: between the check whether a group is used and its removal, no session joins it.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from dss_core.errors import GroupInUse
from dss_core.filters import SubscriptionFilter

GroupKey = tuple[str, str]
"""Name and filter."""


class JoinGate:
    """The gate of all groups, by name and filter."""

    def __init__(self) -> None:
        self._joining: Counter[GroupKey] = Counter()
        self._ends: dict[GroupKey, asyncio.Event] = {}
        """By group that may be removed: done once it is, or stays."""

    @contextmanager
    def joining(self, parsed: SubscriptionFilter) -> Iterator[None]:
        """A session subscribes: until its subscription is written, the group is in use."""
        key = parsed.group or "", parsed.filter.text
        self._joining[key] += 1
        try:
            yield
        finally:
            self._joining.subtract([key])
            if not self._joining[key]:
                del self._joining[key]

    @contextmanager
    def ending(self, key: GroupKey) -> Iterator[None]:
        """Make joins of the group wait until it is removed or stays.

        Raises:
            GroupInUse: a session is just subscribing, or another removal is under way.
        """
        if self._joining[key] or key in self._ends:
            raise GroupInUse(group="@".join(key))
        settled = self._ends[key] = asyncio.Event()
        try:
            yield
        finally:
            del self._ends[key]
            settled.set()

    async def settled(self, key: GroupKey) -> None:
        """Wait until the group is removed or stays."""
        while (settled := self._ends.get(key)) is not None:
            await settled.wait()
