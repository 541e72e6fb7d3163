"""Removes groups that nobody uses: on request, or when their expiry has passed.

A group is in use while a session has subscribed to it, even one without a connection. Invariant: no
group is removed from under a session. A session that joins during the check waits, and then finds
the group, or finds it removed.
"""

import asyncio
from contextlib import suppress
from typing import NoReturn

from dss_core.errors import DiskFull, GroupDestroyed, GroupInUse, GroupNotFound
from dssd.clock import Clock
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.store.paging import scan_all
from dssd.store.port import Store
from dssd.store.rows import GroupRow, SubscriptionRow

SWEEP_S = 1.0
"""The pause between checks for expired groups; they are removed at most so much later."""


class UnusedGroups:
    """Removes groups, and only those that no session has subscribed to."""

    def __init__(self, store: Store, groups: Groups, registry: Registry, clock: Clock) -> None:
        self._store = store
        self._groups = groups
        self._registry = registry
        self._clock = clock
        self._unused_since_ms: dict[int, int] = {}
        """By group with an expiry and no member: since when; a restart begins anew."""

    async def remove(self, group: GroupRow) -> None:
        """Remove the group unless somebody uses it.

        Raises:
            GroupInUse: somebody does.
            GroupNotFound, GroupDestroyed: it is gone already.
        """
        with self._groups.gate.ending((group.name, group.filter)):
            for found in await scan_all(self._store, SubscriptionRow):
                if found.row.group_id == group.group_id:
                    raise GroupInUse(group=group.full_name)
            await self._groups.remove(group.group_id)

    async def keep(self) -> NoReturn:
        """Remove expired groups periodically, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            with suppress(DiskFull):  # the next time will do
                await self.sweep()

    async def sweep(self) -> None:
        """Remove the groups that nobody has used for as long as their expiry."""
        now_ms = self._clock.now_ms()
        unused = [each for each in self._groups.groups() if self._has_no_member(each)]
        since = self._unused_since_ms
        self._unused_since_ms = {each.group_id: since.get(each.group_id, now_ms) for each in unused}
        for group in unused:
            if now_ms - self._unused_since_ms[group.group_id] >= group.unused_ms:
                await self._expire(group, now_ms)

    def _has_no_member(self, group: GroupRow) -> bool:
        if not group.unused_ms:
            return False
        glance = self._registry.glance(group.group_id)
        return glance is None or not glance.borrowers

    async def _expire(self, group: GroupRow, now_ms: int) -> None:
        try:
            await self.remove(group)
        except GroupInUse:
            self._unused_since_ms[group.group_id] = now_ms
        except (GroupNotFound, GroupDestroyed):
            pass  # somebody else was sooner
