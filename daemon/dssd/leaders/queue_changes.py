"""Gives a group queues, takes them away, or changes their rule: the row, and the topics that hold
the queues.

The row is changed while nobody holds a stream of the group. Invariant: queues are made before the
row says that there are some, and removed after it says that there are none; queues that a crash
leaves without such a row are collected (`Groups.collect_lost_queues`). This module must not know
how streams are taken back, nor whether queues are empty.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dss_core.errors import DiskFull, GroupDestroyed, GroupNotFound, TopicNotFound
from dss_core.filters import TopicFilter
from dssd.leaders.groups import Groups
from dssd.leaders.lanes import has_queues
from dssd.store.paging import scan_all
from dssd.store.port import Precondition, PreconditionFailed, Put, Store, VersionIs, Write
from dssd.store.rows import GroupRow, ProgressRow
from dssd.store.uninterrupted import finished
from dssd.topics.catalogue import Catalogue


class QueueChanges:
    """Changes the queues of all groups."""

    def __init__(self, store: Store, groups: Groups, catalogue: Catalogue) -> None:
        self._store = store
        self._groups = groups
        self._catalogue = catalogue

    async def make(self, group: GroupRow) -> None:
        """Make the queues of a group that is to have some.

        Raises:
            DiskFull: they need room.
        """
        for topic in self._catalogue.meeting(TopicFilter.parse(group.filter)):
            with suppress(GroupNotFound, TopicNotFound):
                await self._catalogue.make_queues(group.group_id, topic)

    async def remove(self, group_id: int) -> None:
        """Remove the queues of a group whose row has none, or that is gone."""
        with suppress(DiskFull):  # `keep` or the next start finds them
            await self._catalogue.remove_queues(group_id)

    async def change(
        self, group_id: int, fields: Mapping[str, Any], still_held: Precondition
    ) -> None:
        """Change the queues in the group's row, while nobody holds a stream of the group.

        A group that gets queues counts attempts anew; the same commit forgets earlier failures.

        Raises:
            GroupDestroyed: it was removed.
            PreconditionFailed: somebody may hold a stream by now.
        """
        work = self._change(group_id, fields, still_held)
        await finished(work, name=f"change the queues of group {group_id}")

    async def _change(
        self, group_id: int, fields: Mapping[str, Any], still_held: Precondition
    ) -> None:
        while True:
            found = await self._store.read(GroupRow, (group_id,))
            if found is None:
                raise GroupDestroyed(group=self._groups.get(group_id).name)
            row = replace(found.row, **fields, revision=found.row.revision + 1)
            writes: list[Write] = [Put(row)]
            if has_queues(row) and not has_queues(found.row):
                writes += await self._begun_anew(group_id)
            unchanged = VersionIs(GroupRow, (group_id,), found.version)
            try:
                await self._store.commit(writes, [still_held, unchanged])
            except PreconditionFailed as failed:
                if failed.precondition != unchanged:
                    raise
                continue
            self._groups.note_changed(row)
            return

    async def _begun_anew(self, group_id: int) -> list[Write]:
        rows = [found.row for found in await scan_all(self._store, ProgressRow, (group_id,))]
        has = self._catalogue.has_storage_topic
        anew = [
            (row, replace(row, attempts=b"", failures=b"", rests=b"", rest_delays=b""))
            for row in rows
            if has(row.storage_topic_id)
        ]
        return [Put(after) for before, after in anew if after != before]
