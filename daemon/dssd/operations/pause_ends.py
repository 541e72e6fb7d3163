"""Resumes paused groups when their time has come.

The resume at the end of a pause is an operation of its own, by the daemon. The end is stored as
wall time, which may jump. So the remaining time is computed when the pause begins, or when the
daemon starts, and from then on measured on the monotonic clock, like the expiry of sessions.
Invariant: a pause is ended only while the group's row still has that end; a group that was resumed,
or whose pause got another end, is left alone. This module does not know what a resume does.
"""

import asyncio
from contextlib import suppress
from typing import NoReturn

from dss_core.changes import ResumeGroup
from dss_core.errors import DssError
from dss_core.times import text_of_ms
from dssd.clock import Clock
from dssd.leaders.groups import Groups
from dssd.machines.deadlines import Deadlines
from dssd.operations.operations import Caller, Operations
from dssd.operations.plans import subject_of
from dssd.store.port import Store
from dssd.store.rows import GroupRow

PAUSE_END_RETRY_MS = 1_000
"""The pause before another attempt to resume, after another operation ran on the group, or the disk
was full."""


BY_ITSELF = Caller("dssd", "the daemon itself")


class PauseEnds:
    """Run it as a task; it ends only by cancellation."""

    def __init__(self, store: Store, groups: Groups, operations: Operations, clock: Clock) -> None:
        self._store = store
        self._groups = groups
        self._operations = operations
        self._clock = clock
        self._ends: dict[int, int] = {}
        """When the pause of a group ends, by the wall clock, as it was stored."""
        self._due: Deadlines[int] = Deadlines()
        """The same on the monotonic clock, by group."""
        self._changed = asyncio.Event()

    async def run(self) -> NoReturn:
        """End pauses, one after the other, as they are due."""
        changes = self._store.watch(GroupRow)
        for group in self._groups.groups():
            self._note(group)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._end_due(), name="ends of pauses")
            async for change in changes:
                if isinstance(change.row, GroupRow):
                    self._note(change.row)
        raise AssertionError("the store was closed under its watchers")

    def _note(self, group: GroupRow) -> None:
        until_ms = group.paused_until_ms if group.paused else None
        if until_ms is None:
            if self._ends.pop(group.group_id, None) is not None:
                self._due.clear(group.group_id)
        elif self._ends.get(group.group_id) != until_ms:
            left_ms = max(0, until_ms - self._clock.wall_ms())
            self._ends[group.group_id] = until_ms
            self._due.set(group.group_id, self._clock.now_ms() + left_ms)
            self._changed.set()

    async def _end_due(self) -> NoReturn:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._next_s()):
                    await self._changed.wait()
            self._changed.clear()
            for group_id in self._due.due(self._clock.now_ms()):
                await self._end(group_id)

    def _next_s(self) -> float | None:
        at_ms = self._due.next_ms()
        return None if at_ms is None else max(0, at_ms - self._clock.now_ms()) / 1_000

    async def _end(self, group_id: int) -> None:
        until_ms = self._ends.get(group_id)
        if until_ms is None or not self._groups.has(group_id):
            self._ends.pop(group_id, None)
            return
        group = self._groups.get(group_id)
        with suppress(DssError):
            if group.paused_until_ms == until_ms:
                await self._operations.apply(
                    ResumeGroup(subject_of(group)),
                    caller=BY_ITSELF,
                    if_revision=group.revision,
                    reason=f"the pause was to end at {text_of_ms(until_ms)}",
                )
                return
        # Another operation runs, or overtook this one, or the disk is full: look again.
        self._due.set(group_id, self._clock.now_ms() + PAUSE_END_RETRY_MS)
