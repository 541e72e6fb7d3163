"""The declared groups: answers from memory, changes through the store.

A group is (name, filter). The first subscription declares a shared group; an operator declares a
queue; a private subscription is an exclusive group, named after its session. Removing a group
leaves a tombstone, so that returning members do not declare it again.

Invariant: memory equals the committed rows. A name row says which group owns (name, filter); its
precondition lets only one of two concurrent declarations win. This module must not know leaders:
the registry watches it.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NoReturn

from dss_core.errors import (
    DiskFull,
    GroupAmbiguous,
    GroupDestroyed,
    GroupNotFound,
    IllegalArgument,
    QueueNotDeclared,
)
from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dssd.clock import Clock
from dssd.leaders.bans import collect_ended_bans
from dssd.leaders.declarations import (
    EXCLUSIVE,
    NOTHING_SAID,
    PASS,
    AskedRetries,
    Beside,
    GroupRequest,
    asked_by_session,
    check_as_asked,
    check_keeping,
    check_kind,
    check_settings,
    check_start,
    kind_asked,
    nothing_beside,
)
from dssd.leaders.group_start import resolved_start
from dssd.leaders.join_gate import JoinGate
from dssd.leaders.lanes import has_queues
from dssd.leaders.ordering import OrderedReaders, topic_in_order
from dssd.leaders.slices import check_shard_count, new_span
from dssd.leaders.takeover import BORROW
from dssd.limits import ACK_WAIT_MS
from dssd.listeners import Listeners
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.machines.start_point import Now, StartPoint, start_text
from dssd.store.keys import key_of
from dssd.store.paging import scan_all
from dssd.store.port import (
    Absent,
    Delete,
    Exists,
    Precondition,
    PreconditionFailed,
    Put,
    Store,
    VersionIs,
    Write,
)
from dssd.store.rows import (
    BanRow,
    GrantRow,
    GroupNameRow,
    GroupRow,
    LeaderRow,
    PendingMoveRow,
    ProgressRow,
    StreamSetRow,
)
from dssd.store.uninterrupted import finished
from dssd.topics.catalogue import Catalogue
from dssd.topics.internal import refuse_internal

TOMBSTONE_MS = 7 * 24 * 3_600 * 1_000
TOMBSTONE_SWEEP_S = 24 * 3_600.0
"""How long a removed group is remembered, so that members that come back learn of it; up to one
sweep longer."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The group of a subscription, and whether this use declared it."""

    group: GroupRow
    declared: bool


class Groups:
    """Built by `open`; lives as long as the daemon."""

    def __init__(self, store: Store, catalogue: Catalogue, log: Log, clock: Clock) -> None:
        self._store = store
        self._catalogue = catalogue
        self._log = log
        self._clock = clock
        self._by_id: dict[int, GroupRow] = {}
        self._by_name: dict[str, dict[str, GroupRow]] = {}
        """By name, then by filter."""
        self._owned: dict[bytes, dict[int, GroupRow]] = {}
        """Exclusive groups, by the session that owns them."""
        self._tombstones: dict[tuple[str, str], GroupNameRow] = {}
        self._destroyed: dict[int, GroupNameRow] = {}
        self.gate = JoinGate()
        self._removals: Listeners[GroupRow] = Listeners()
        self._changes: Listeners[GroupRow] = Listeners()

    @classmethod
    async def open(cls, store: Store, catalogue: Catalogue, log: Log, clock: Clock) -> "Groups":
        """Read groups and tombstones from the store; delete old tombstones and lost queues."""
        groups = cls(store, catalogue, log, clock)
        catalogue.guard(OrderedReaders(groups.groups))
        for found in await scan_all(store, GroupRow):
            groups._enter(found.row)
        for name in await scan_all(store, GroupNameRow):
            if name.row.destroyed_at_ms is not None:
                groups._bury(name.row)
        await groups.collect_tombstones()
        await groups.collect_lost_queues()
        return groups

    async def collect_tombstones(self) -> None:
        """Remove the tombstones that are older than `TOMBSTONE_MS`."""
        oldest_ms = self._clock.wall_ms() - TOMBSTONE_MS
        for group_id, name in list(self._destroyed.items()):
            if name.destroyed_at_ms is None or name.destroyed_at_ms >= oldest_ms:
                continue
            if self._tombstones.get((name.name, name.filter)) is name:
                work = self._unearth(name)
                await finished(work, name=f"collect the tombstone of {name.name}")
            del self._destroyed[group_id]

    async def collect_lost_queues(self) -> None:
        """Remove queues that no group has any more: a full disk or a kill may have left some."""
        await self._catalogue.remove_lost_queues(self._has_queues)

    def _has_queues(self, group_id: int) -> bool:
        group = self._by_id.get(group_id)
        return group is not None and has_queues(group)

    async def keep(self) -> NoReturn:
        """Collect old tombstones and lost queues periodically, until cancelled."""
        while True:
            await asyncio.sleep(TOMBSTONE_SWEEP_S)
            with suppress(DiskFull):  # the next time will do
                await self.collect_tombstones()
                await self.collect_lost_queues()
                await collect_ended_bans(self._store, self._clock.wall_ms())

    async def _unearth(self, name: GroupNameRow) -> None:
        key = key_of(name)
        stored = await self._store.read(GroupNameRow, key)
        if stored is not None and stored.row == name:
            with suppress(PreconditionFailed):  # it was declared again meanwhile
                await self._store.commit(
                    [Delete(GroupNameRow, key)], [VersionIs(GroupNameRow, key, stored.version)]
                )
        if self._tombstones.get((name.name, name.filter)) is name:
            self._unbury((name.name, name.filter))

    def groups(self) -> tuple[GroupRow, ...]:
        """All groups, by id."""
        return tuple(self._by_id[group_id] for group_id in sorted(self._by_id))

    def owned(self, session_id: bytes) -> tuple[GroupRow, ...]:
        """The exclusive groups of a session."""
        return tuple(self._owned.get(session_id, {}).values())

    def get(self, group_id: int) -> GroupRow:
        """The group of that id.

        Raises:
            GroupDestroyed: it was removed.
            GroupNotFound: there is none.
        """
        group = self._by_id.get(group_id)
        if group is not None:
            return group
        if group_id in self._destroyed:
            raise GroupDestroyed(group=self._destroyed[group_id].name)
        raise GroupNotFound(group=group_id)

    def has(self, group_id: int) -> bool:
        """Whether there is a group of that id."""
        return group_id in self._by_id

    def find(self, text: str) -> GroupRow:
        """The group that an operator names: NAME, NAME@FILTER, ``$share/NAME/FILTER``.

        Raises:
            GroupNotFound: there is none.
            GroupOfAnotherKind: it is a queue and was written ``$share``, or the other way round.
            GroupAmbiguous: several have the name.
            IllegalName, IllegalFilter, QueueWithoutGroup: the text is none of these.
        """
        if text.startswith("$"):
            parsed = SubscriptionFilter.parse(text)
            found = self._by_name.get(parsed.group or "", {}).get(parsed.filter.text)
            if found is not None:
                check_kind(found, kind_asked(parsed))
            candidates = [found] if found else []
        else:
            name, at, filter_text = text.partition("@")
            named = self._by_name.get(name, {})
            candidates = [row for own, row in named.items() if not at or own == filter_text]
        if not candidates:
            raise GroupNotFound(group=text)
        if len(candidates) > 1:
            written = ", ".join(sorted(row.full_name for row in candidates))
            raise GroupAmbiguous(group=text, candidates=written)
        return candidates[0]

    async def declare(
        self,
        parsed: SubscriptionFilter,
        *,
        start: StartPoint | None = None,
        ack_wait_ms: int | None = None,
        if_not_exists: bool = False,
        protocol: str | None = None,
        on_damage: str | None = None,
        retries: AskedRetries = NOTHING_SAID,
        metadata: str = "",
        unused_ms: int = 0,
    ) -> GroupRow:
        """Declare a group as operators do; a tombstone of its name goes.

        Raises:
            GroupOfAnotherKind: it is there, and one of them is a queue.
            GroupExists: it is there, and that was not accepted.
            GroupExistsOtherwise: its protocol, or what it does at damage or with records that fail,
                is another.
            StartConflict: it is there with another start.
            IllegalArgument, OffsetOutOfRange: the start or a setting does not fit.
            OrderNeedsOneTopic: it cannot be ordered.
        """
        if parsed.group is None:
            raise IllegalArgument(argument="filter", rule="write $share/GROUP/FILTER")
        kind = kind_asked(parsed)
        asked = GroupRequest(
            parsed.group,
            parsed.filter,
            kind,
            start,
            ack_wait_ms,
            protocol=protocol,
            on_damage=on_damage,
            retries=retries,
            metadata=metadata,
            unused_ms=unused_ms,
        )
        known = self._existing(asked)
        if known is None:
            joined = await self._declare(asked, over_tombstone=True)
            if joined.declared:
                return joined.group
            known = joined.group
        check_kind(known, kind)
        check_as_asked(known, asked, accepted=if_not_exists)
        check_start(known, start)
        return known

    async def join(
        self,
        parsed: SubscriptionFilter,
        *,
        start: StartPoint | None,
        ack_wait_ms: int | None,
        session_id: bytes,
        subscription: int,
        fence: Precondition | None = None,
        beside: Beside = nothing_beside,
    ) -> Joined:
        """The group of a subscription; the first use declares a shared one.

        A plain filter gives an exclusive group that the session owns. Nothing is declared unless
        the fence holds; a new group is written in one commit with the rows of ``beside``.

        Raises:
            PreconditionFailed: the fence does not hold.
            GroupDestroyed: it was removed, and nobody declared it again.
            QueueNotDeclared: queues are declared by operators.
            GroupOfAnotherKind: it is there, and one of them is a queue.
            StartConflict: it is there with another start.
            IllegalArgument, OffsetOutOfRange: the start or the ack wait does not fit.
        """
        asked = asked_by_session(parsed, start, ack_wait_ms, session_id, subscription)
        asked = replace(asked, fence=fence, beside=beside)
        await self.gate.settled(asked.key)
        existing = self._existing(asked)
        if parsed.queue and existing is None:
            self._refuse_tombstone(asked)
            raise QueueNotDeclared(group=asked.name, filter=asked.filter.text)
        if existing is not None:
            joined = Joined(existing, declared=False)
        else:
            joined = await self._declare(asked, over_tombstone=False)
        if not joined.declared:
            check_kind(joined.group, asked.kind)
            check_start(joined.group, start)
        return joined

    async def remove(
        self, group_id: int, *, beside: Sequence[Write] = (), fence: Precondition | None = None
    ) -> None:
        """Remove a group with its rows; a shared one or a queue leaves a tombstone.

        One commit removes it and writes ``beside``; neither happens unless the fence holds.

        Raises:
            GroupDestroyed, GroupNotFound: there is no such group any more, or never was.
            PreconditionFailed: the fence does not hold.
        """
        work = self._remove(self.get(group_id), beside, fence)
        await finished(work, name=f"remove group {group_id}")

    def note_changed(self, row: GroupRow) -> None:
        """A commit changed the group; a concurrent removal wins."""
        if row.group_id in self._by_id:
            self._enter(row)
            self._changes.tell(row)

    def as_it_is(self, group: GroupRow) -> GroupRow:
        """The group as it is now, or was before it was removed."""
        return self._by_id.get(group.group_id, group)

    def watch_changed(self, changed: Callable[[GroupRow], None]) -> Callable[[], None]:
        """Call ``changed`` with a group after each change of its row; returns how to stop."""
        return self._changes.add(changed)

    def watch_removed(self, removed: Callable[[GroupRow], None]) -> Callable[[], None]:
        """Call ``removed`` after each removal; returns how to stop."""
        return self._removals.add(removed)

    def _existing(self, asked: GroupRequest) -> GroupRow | None:
        return self._by_name.get(asked.name, {}).get(asked.filter.text)

    def _refuse_tombstone(self, asked: GroupRequest) -> None:
        tombstone = self._tombstones.get(asked.key)
        if tombstone is not None:
            self._refuse(tombstone)

    def _refuse(self, tombstone: GroupNameRow) -> None:
        if tombstone.destroyed_at_ms is None:
            return
        if tombstone.destroyed_at_ms >= self._clock.wall_ms() - TOMBSTONE_MS:
            raise GroupDestroyed(group=tombstone.name)

    async def _declare(self, asked: GroupRequest, *, over_tombstone: bool) -> Joined:
        """Make the group; if another declaration made it meanwhile, that group is returned."""
        if not over_tombstone:
            self._refuse_tombstone(asked)
        refuse_internal(asked.filter.text)
        ack_wait_ms = ACK_WAIT_MS if asked.ack_wait_ms is None else asked.ack_wait_ms
        on_damage = asked.on_damage or PASS
        check_settings(ack_wait_ms, on_damage)
        check_keeping(asked)
        retries = asked.retries.of_new_group().columns()
        group_id = await self._store.next_id()
        row = GroupRow(
            group_id=group_id,
            name=asked.name,
            filter=asked.filter.text,
            kind=asked.kind,
            start=start_text(asked.start or Now()),
            session_id=asked.session_id,
            ack_wait_ms=ack_wait_ms,
            created_at_ms=self._clock.wall_ms(),
            cursor_generation=0,
            protocol=asked.protocol or BORROW,
            on_damage=on_damage,
            metadata=asked.metadata,
            unused_ms=asked.unused_ms,
            **retries,
        )
        work = self._commit_new(asked, row, over_tombstone=over_tombstone)
        return await finished(work, name=f"declare group {asked.name}")

    async def _commit_new(
        self, asked: GroupRequest, row: GroupRow, *, over_tombstone: bool
    ) -> Joined:
        if not row.ordered:
            return await self._commit_started(asked, row, over_tombstone=over_tombstone)
        async with self._catalogue.unchanging():
            topic_in_order(row, self._catalogue)
            return await self._commit_started(asked, row, over_tombstone=over_tombstone)

    async def _commit_started(
        self, asked: GroupRequest, row: GroupRow, *, over_tombstone: bool
    ) -> Joined:
        tombstone = await self._store.read(GroupNameRow, asked.key)
        if tombstone is not None and tombstone.row.destroyed_at_ms is None:
            return await self._made_meanwhile(asked)
        if tombstone is not None and not over_tombstone:
            # It may have been removed since the tombstones in memory were asked.
            self._refuse(tombstone.row)
        if tombstone is not None:
            # Plans for the removed group must not fit: this revision is above all of its revisions.
            row = replace(row, revision=row.group_id)
        starts = await resolved_start(
            asked.start or Now(), asked.filter, self._catalogue, self._log
        )
        if row.ordered:
            topic = topic_in_order(row, self._catalogue)
            if asked.retries.shards is not None:
                span = new_span(topic, starts)
                check_shard_count(row, asked.retries.shards, span, is_new=True)
        writes: list[Write] = [
            Put(row),
            Put(GroupNameRow(row.name, row.filter, row.group_id, destroyed_at_ms=None)),
        ]
        turn = LoopTurn()
        first: list[ProgressRow] = []
        for stream, offset in starts.items():
            await turn.give_way()
            first.append(_first_progress(row.group_id, stream, offset))
        # A topic may have been removed meanwhile: nothing would delete its rows with it.
        has = self._catalogue.has_storage_topic
        writes += [Put(progress) for progress in first if has(progress.storage_topic_id)]
        holds: Precondition = Absent(GroupNameRow, asked.key)
        if tombstone is not None:
            holds = VersionIs(GroupNameRow, asked.key, tombstone.version)
        fences = [] if asked.fence is None else [asked.fence]
        try:
            await self._store.commit([*writes, *asked.beside(row)], [*fences, holds])
        except PreconditionFailed as failed:
            if failed.precondition in fences:
                raise
            return await self._made_meanwhile(asked)
        self._unbury(asked.key)
        self._enter(row)
        return Joined(row, declared=True)

    async def _made_meanwhile(self, asked: GroupRequest) -> Joined:
        """The group that a concurrent declaration made, even if it was removed again."""
        name = await self._store.read(GroupNameRow, asked.key)
        if name is None or name.row.destroyed_at_ms is not None:
            raise GroupDestroyed(group=asked.name)
        group = await self._store.read(GroupRow, (name.row.group_id,))
        if group is None:
            raise GroupDestroyed(group=asked.name)
        return Joined(group.row, declared=False)

    async def _remove(
        self, group: GroupRow, beside: Sequence[Write], fence: Precondition | None
    ) -> None:
        writes: list[Write] = [
            *beside,
            Delete(GroupRow, (group.group_id,)),
            Delete(LeaderRow, (group.group_id,)),
            *await self._stream_deletes(group.group_id),
        ]
        name = GroupNameRow(group.name, group.filter, group.group_id, self._clock.wall_ms())
        if group.kind == EXCLUSIVE:
            writes.append(Delete(GroupNameRow, key_of(name)))
        else:
            writes.append(Put(name))
        fences = [] if fence is None else [fence]
        try:
            await self._store.commit(writes, [*fences, Exists(GroupRow, (group.group_id,))])
        except PreconditionFailed as failed:
            if failed.precondition in fences:
                raise
            raise GroupDestroyed(group=group.name) from failed
        self._leave(group)
        if group.kind != EXCLUSIVE:
            self._bury(name)
        self._removals.tell(group)
        # The leader's row is gone, so it writes no more; but it may have written until then.
        late = await self._stream_deletes(group.group_id)
        if late:
            await self._store.commit(late)
        with suppress(DiskFull):  # `keep` or the next start finds them
            await self._catalogue.remove_queues(group.group_id)

    async def _stream_deletes(self, group_id: int) -> list[Write]:
        writes: list[Write] = []
        turn = LoopTurn()
        for kind in (GrantRow, ProgressRow, StreamSetRow, PendingMoveRow, BanRow):
            for found in await scan_all(self._store, kind, (group_id,)):
                await turn.give_way()
                writes.append(Delete(kind, key_of(found.row)))
        return writes

    def _enter(self, row: GroupRow) -> None:
        self._by_id[row.group_id] = row
        self._by_name.setdefault(row.name, {})[row.filter] = row
        if row.session_id is not None:
            self._owned.setdefault(row.session_id, {})[row.group_id] = row

    def _leave(self, row: GroupRow) -> None:
        del self._by_id[row.group_id]
        named = self._by_name[row.name]
        del named[row.filter]
        if not named:
            del self._by_name[row.name]
        if row.session_id is not None:
            owned = self._owned[row.session_id]
            del owned[row.group_id]
            if not owned:
                del self._owned[row.session_id]

    def _bury(self, name: GroupNameRow) -> None:
        self._tombstones[name.name, name.filter] = name
        self._destroyed[name.group_id] = name

    def _unbury(self, key: tuple[str, str]) -> None:
        # The old id stays destroyed: members of the removed group must not join the new one under
        # a grant epoch of the old one.
        self._tombstones.pop(key, None)


def _first_progress(group_id: int, stream: StreamId, offset: int) -> ProgressRow:
    return ProgressRow(
        group_id=group_id,
        storage_topic_id=stream.storage_topic_id,
        partition=stream.partition,
        floor=offset,
        ranges=b"",
        frontier=offset,
        attempts=b"",
        finished=False,
        cursor_generation=0,
    )
