"""All sessions of the daemon: opened, resumed, taken over, expired.

A session is a row; while its client is connected there is a `Session` beside it. The newest
connection of a client id wins: it ends the one before, whose epoch is then too low to write. If
another client uses the client id, the newcomer is let in once the other one has said how far it
handed out, or cannot hand out any more.

Invariant: at most one connection per client id is served, and operations on one client id run one
after the other. Nothing is lent to a client while an older one of its id may still hand out. Expiry
is measured on the monotonic clock, so a jump of the wall clock ends no session. Only the stored
wall time survives a restart of the daemon, so each session then gets at least the grace period.
"""

import asyncio
import heapq
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from itertools import islice
from secrets import token_bytes
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary

from dss_core.errors import (
    DiskFull,
    DssError,
    SessionClosed,
    SessionNotFound,
    Stopping,
)
from dss_core.filters import check_name
from dss_core.ids import StreamId
from dss_core.limits import (
    CREDIT_BYTES,
    CREDIT_RECORDS,
    LEASE_MS,
)
from dssd.clock import Clock
from dssd.events.teller import Teller, Unheard
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.limits import CLOSE_DRAIN_S, FULL_DISK_RETRY_S
from dssd.log.port import Log
from dssd.machines.deadlines import Deadlines
from dssd.sessions import session_rows
from dssd.sessions.admission import SESSION_ID_BYTES, check_opening, check_stored
from dssd.sessions.adoption import Adoption, adopt, left_out
from dssd.sessions.client_items import FEATURES, Opened, Opening
from dssd.sessions.deliveries import CreditCounts, Deliveries, credits_of
from dssd.sessions.kept import GRACE_MS, KeptSession, kept_ms
from dssd.sessions.limits import (
    CLOSED_ROWS_MAX,
    DISCARDED_AT_ONCE_MAX,
    DISCARDS_MAX,
    GIVES_WAY_AFTER_MS,
    SESSIONS_GIVE_WAY_AT_ONCE,
)
from dssd.sessions.listing import Connected, HeldRecord, SessionCounts, SessionView, views_of
from dssd.sessions.lost_clients import LostClients
from dssd.sessions.owned_rows import discard, discard_orphans, taken_up
from dssd.sessions.room import SessionRoom
from dssd.sessions.session import Session
from dssd.sessions.session_parts import Services
from dssd.store.paging import scan_all
from dssd.store.port import Store, VersionIs
from dssd.store.rows import GroupRow, SessionRow
from dssd.store.uninterrupted import finished
from dssd.topics.catalogue import Catalogue

SESSION_DRAIN_S = 2.0
"""When the daemon stops, clients have this long to say how far they handed out."""


class Sessions:
    """Owns every session; run it as an async context manager around the server."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[str, KeptSession] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._stopping = False
        self._changed = asyncio.Event()
        """Set when a connection closes: its row is to be written, and its expiry kept."""
        self._closed: dict[str, KeptSession] = {}
        """Disconnected sessions whose rows do not say so yet."""
        self._room = SessionRoom()
        self._over: dict[bytes, None] = {}
        """Ids of removed sessions that still own rows."""
        self._expiries: Deadlines[str] = Deadlines()
        """When to check which session; `KeptSession.expires_at_ms` says whether it has expired."""
        self._lost = LostClients()
        self._tasks = asyncio.TaskGroup()
        self._keeper: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        store: Store,
        catalogue: Catalogue,
        log: Log,
        groups: Groups,
        registry: Registry,
        clock: Clock,
        *,
        random_bytes: Callable[[int], bytes] = token_bytes,
        events: Teller | None = None,
    ) -> "Sessions":
        """Load the sessions that the store has."""
        parts = store, catalogue, log, groups, registry, clock, registry.writers
        sessions = cls(Services(*parts, random_bytes, events or Unheard()))
        await sessions._load()
        return sessions

    async def __aenter__(self) -> Self:
        """Start its tasks."""
        await self._tasks.__aenter__()
        self._stop_watching = self._services.groups.watch_changed(self._group_changed)
        self._keeper = self._tasks.create_task(self._keep(), name="session keeper")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop as `stop` does, end its tasks."""
        self._stop_watching()
        if error is None:
            await self.stop()
        else:
            self._end_all()
        if self._keeper is not None:
            self._keeper.cancel()
        await self._tasks.__aexit__(kind, error, trace)

    async def stop(self) -> None:
        """End every connection with final reports and a Stopping item; refuse new ones.

        Call it before the server stops: the calls end by themselves.
        """
        self._stopping = True
        self._services.registry.note_sessions_ending()
        async with asyncio.TaskGroup() as tasks:
            for session in self._connections():
                name = f"drain {session.client_id}"
                tasks.create_task(session.drain(SESSION_DRAIN_S, charges=False), name=name)
        self._end_all()
        # A session whose row was not written counts as disconnected when the daemon starts.
        with suppress(DiskFull):
            while self._closed:
                await self._write_closed()

    @property
    def held_bytes(self) -> int:
        """The bytes that wait for the clients of all sessions."""
        return self._services.budget.held_bytes

    @property
    def deliveries(self) -> Deliveries:
        """Counts of deliveries to clients."""
        return self._services.deliveries

    async def credits(self) -> CreditCounts:
        """The credit of all connected clients together."""
        return await credits_of(session.credit for session in self._connections())

    def counts(self) -> SessionCounts:
        """How many sessions there are."""
        connected = self._connections()
        return SessionCounts(
            connected=len(connected),
            detached=len(self._known) - len(connected),
            subscriptions=sum(session.subscriptions for session in connected),
        )

    async def attach(self, opening: Opening) -> Session:
        """Connect a client to its session, which is made, resumed or taken over.

        Raises:
            IllegalName, IllegalArgument, SessionOfAnother: nothing was changed.
            TooManySessions: there is no room for its first session.
            Stopping: the client is to come back when the daemon has started again.
            SessionNotFound: the session to resume has expired.
            SessionTakenOver: the session to resume was discarded by another client of that name.
        """
        client_id = opening.client_id or f"client-{self._services.random_bytes(8).hex()}"
        check_name(client_id)
        check_opening(opening)
        lock = self._locks.setdefault(client_id, asyncio.Lock())
        async with lock:
            if self._stopping:
                raise Stopping
            known = self._known.get(client_id)
            check_stored(client_id, None if known is None else known.row, opening)
            if known is None:
                await self._make_room(opening.principal)
            before = None if known is None else known.connection
            work = self._attach(client_id, opening, known)
            try:
                return await finished(work, name=f"attach {client_id}")
            except asyncio.CancelledError:
                # The client is gone, so nobody would run the connection that it opened.
                made = self._known.get(client_id)
                if made is not None and made.connection not in (None, before):
                    self.detach(made.connection)
                raise
            finally:
                if client_id not in self._known:
                    self._room.remove(client_id, opening.principal)

    async def listed(self, after: str, most: int) -> list[SessionView]:
        """At most so many sessions, by client id, after the given one."""
        wanted = heapq.nsmallest(most, (each for each in self._known if each > after))
        return await self._views([self._known[client_id] for client_id in wanted])

    async def find(self, client_id: str) -> SessionView:
        """The session of a client.

        Raises:
            SessionNotFound: it has none.
        """
        self.row(client_id)
        return (await self._views([self._known[client_id]]))[0]

    def rows(self) -> list[SessionRow]:
        """The rows of all sessions."""
        return [each.row for each in self._known.values()]

    def row(self, client_id: str) -> tuple[SessionRow, bool]:
        """The row of a client's session, and whether it is connected.

        Raises:
            SessionNotFound: it has none.
        """
        known = self._known.get(client_id)
        if known is None:
            raise SessionNotFound(client_id=client_id)
        return known.row, known.connection is not None

    async def adopt(self, adoptions: Sequence[Adoption]) -> list[str]:
        """Give sessions other owners; returns the clients whose sessions were not as planned.

        Raises:
            TooManySessions, DiskFull: nothing was changed.
        """
        clients = [each.client_id for each in adoptions]
        async with AsyncExitStack() as locks:
            await self._lock(locks, clients)
            kept = [self._known.get(each) for each in clients]
            giving = adopt(self._services.store, self._room, adoptions, kept)
            await finished(giving, name="sessions that are adopted")
            return left_out(adoptions, kept)

    def held(self, client_id: str, group_id: int, of: StreamId, offset: int) -> HeldRecord | None:
        """The state of an offset at a client; None: it is not connected, or does not hold it."""
        connection = self._known[client_id].connection if client_id in self._known else None
        return None if connection is None else connection.held(group_id, of, offset)

    async def _views(self, known: Sequence[KeptSession]) -> list[SessionView]:
        sessions = [(each.row, each.connected) for each in known]
        return await views_of(self._services.store, self._services.groups, sessions)

    async def close(self, client_id: str, session_id: bytes) -> None:
        """End a session for good: tell its client, and remove all that it alone owns.

        Does nothing where the client has another session, or none.

        Raises:
            DiskFull: nothing was changed.
        """
        async with self._locks.setdefault(client_id, asyncio.Lock()):
            known = self._known.get(client_id)
            if known is not None and known.row.session_id == session_id:
                closing = self._forget([known], SessionClosed(client_id=client_id))
                await finished(closing, name=f"close {client_id}")

    async def discard_expired(self) -> None:
        """Discard the sessions whose expiry has passed."""
        due = self._expiries.due(self._services.clock.now_ms())
        try:
            while due:
                await self._expire(due[:DISCARDED_AT_ONCE_MAX])
                del due[:DISCARDED_AT_ONCE_MAX]
        finally:
            for client_id in due:
                self._await_expiry(client_id)

    def detach(self, session: Session) -> None:
        """The client is gone: end the connection; the session waits for its expiry."""
        self._lost.lose(session)
        known = self._known.get(session.client_id)
        if known is None or known.connection is not session:
            return
        known.connection = known.connected = None
        known.row = replace(known.row, disconnected_at_ms=self._services.clock.wall_ms())
        known.expires_at_ms = self._services.clock.now_ms() + kept_ms(known.row)
        self._await_expiry(session.client_id)
        self._may_give_way(known, self._services.clock.now_ms())
        self._closed[session.client_id] = known
        self._changed.set()

    def _group_changed(self, group: GroupRow) -> None:
        for session in self._connections():
            session.edit(group)

    # Opening

    async def _make_room(self, principal: str) -> None:
        """Make sure that there is room for one more session; others give way if need be.

        Raises:
            TooManySessions: none of them can.
        """
        while (refused := self._room.refusal(principal)) is not None:
            if not await self._give_way(principal):
                raise refused
        self._room.add(principal)

    async def _give_way(self, principal: str) -> bool:
        """Discard some abandoned sessions; returns whether there were any."""
        before_ms = self._services.clock.now_ms() - GIVES_WAY_AFTER_MS
        async with AsyncExitStack() as locks:
            going: list[KeptSession] = []
            for client_id in self._room.giving_way(principal, before_ms):
                known = self._known[client_id]
                lock = self._locks.setdefault(client_id, asyncio.Lock())
                # Do not wait for locks: their holders may wait for a lock that is held here.
                if lock.locked() or self._services.groups.owned(known.row.session_id):
                    continue
                await locks.enter_async_context(lock)
                going.append(known)
                if len(going) >= SESSIONS_GIVE_WAY_AT_ONCE:
                    break
            if going:
                await finished(self._forget(going), name="sessions that give way")
        return bool(going)

    def _may_give_way(self, known: KeptSession, left_ms: int) -> None:
        row = known.row
        if not self._services.groups.owned(row.session_id):
            self._room.may_give_way(row.client_id, row.principal, left_ms)

    async def _attach(self, client_id: str, opening: Opening, known: KeptSession | None) -> Session:
        resume = known is not None and (bool(opening.session_id) or not opening.clean_start)
        row = SessionRow(
            client_id=client_id,
            session_id=known.row.session_id
            if known is not None and resume
            else self._services.random_bytes(SESSION_ID_BYTES),
            session_epoch=known.row.session_epoch + 1 if known is not None else 1,
            expiry_ms=opening.expiry_s * 1_000,
            disconnected_at_ms=None,
            principal=opening.principal,
        )
        stored = None if known is None else known.version
        version = await session_rows.put(self._services.store, row, stored)
        # Not before the commit: if the disk is full, the new connection fails and this stays.
        older = None if known is None else known.connection
        await self._lost.make_way(older, client_id, opening)
        opened = self._opened(row, opening, present=resume)
        fence = VersionIs(SessionRow, (client_id,), version)
        session = Session(opened, opening, self._services, fence)
        self._room.stays(client_id, row.principal)
        connected = Connected(self._services.clock.wall_ms(), opening.peer)
        self._known[client_id] = KeptSession(row, version, session, None, connected)
        self._closed.pop(client_id, None)
        self._expiries.clear(client_id)
        try:
            if resume:
                await self._resume(session)
            elif known is not None:
                await self._discard([known.row.session_id])
        except BaseException:
            self.detach(session)
            raise
        if self._stopping:
            # It came too late to be ended together with the others.
            self.detach(session)
            raise Stopping
        return session

    def _opened(self, row: SessionRow, opening: Opening, *, present: bool) -> Opened:
        records, size = opening.credit_records, opening.credit_bytes
        known = row.client_id, row.session_id, row.session_epoch
        return Opened(
            *known,
            session_present=present,
            lease_ms=LEASE_MS,
            credit_records=CREDIT_RECORDS if records is None else min(records, CREDIT_RECORDS),
            credit_bytes=CREDIT_BYTES if size is None else min(size, CREDIT_BYTES),
            features=tuple(sorted(FEATURES & opening.features)),
            incarnation=self._services.catalogue.incarnation,
        )

    async def _resume(self, session: Session) -> None:
        there, lost = await taken_up(self._services, session.session_id)
        for subscription, error in lost:
            session.refuse(error, subscription=subscription, final=True)
        session.resume(there)

    # Ending

    def _connections(self) -> list[Session]:
        return [known.connection for known in self._known.values() if known.connection is not None]

    def _end_all(self) -> None:
        for session in self._connections():
            session.end(Stopping())
            self.detach(session)
        self._lost.end_all()

    async def _keep(self) -> None:
        """Write the rows of disconnected sessions, and discard expired ones.

        Both in turns: a flood of disconnections does not hold up the removal of expired sessions.
        """
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._next_expiry_s()):
                    await self._changed.wait()
            self._changed.clear()
            try:
                await self.discard_expired()
                await self._write_closed()
                await self._discard_left()
            except DiskFull:
                # The row is written once the disk has room.
                await asyncio.sleep(FULL_DISK_RETRY_S)
                self._changed.set()

    def _next_expiry_s(self) -> float | None:
        at_ms = self._expiries.next_ms()
        if at_ms is None:
            return None
        return max(0, at_ms - self._services.clock.now_ms()) / 1_000

    def _await_expiry(self, client_id: str) -> None:
        known = self._known.get(client_id)
        if known is not None and known.expires_at_ms is not None:
            self._expiries.set(client_id, known.expires_at_ms)

    async def _write_closed(self) -> None:
        """Write the rows of some closed sessions; the keeper comes back for the others."""
        chosen = list(islice(self._closed, CLOSED_ROWS_MAX))
        async with AsyncExitStack() as locks:
            await self._lock(locks, chosen)
            closed = [self._closed[each] for each in chosen if each in self._closed]
            await self._write_down(closed)
            for known in closed:
                self._closed.pop(known.row.client_id, None)
        if self._closed:
            self._changed.set()

    async def _write_down(self, closed: list[KeptSession]) -> None:
        rows = [(known.row, known.version) for known in closed]
        versions = await session_rows.put_all(self._services.store, rows)
        for known, version in zip(closed, versions, strict=True):
            known.version = version

    async def _lock(self, locks: AsyncExitStack, client_ids: Sequence[str]) -> None:
        """Hold the locks of all, always taken in one order, so that there is no deadlock."""
        for client_id in sorted(client_ids):
            lock = self._locks.setdefault(client_id, asyncio.Lock())
            await locks.enter_async_context(lock)

    async def _expire(self, client_ids: Sequence[str]) -> None:
        async with AsyncExitStack() as locks:
            await self._lock(locks, client_ids)
            now_ms = self._services.clock.now_ms()
            going = [self._known[each] for each in client_ids if each in self._known]
            over = [each for each in going if each.is_over(now_ms)]
            if over:
                await self._forget(over)

    async def _forget(self, going: Sequence[KeptSession], error: DssError | None = None) -> None:
        # Their rows go first: a session without its row cannot be resumed half removed.
        client_ids = [known.row.client_id for known in going]
        await session_rows.delete_all(self._services.store, client_ids)
        for known in going:
            client_id = known.row.client_id
            connection = known.connection
            if connection is not None:
                # The client did not vanish, so its unsettled records are not charged.
                await connection.drain(CLOSE_DRAIN_S, charges=False)
                connection.end(error, is_silent=True)
            self._closed.pop(client_id, None)
            self._expiries.clear(client_id)
            del self._known[client_id]
            self._room.remove(client_id, known.row.principal)
        await self._discard([known.row.session_id for known in going])

    async def _discard(self, session_ids: Sequence[bytes]) -> None:
        """Remove the rows of removed sessions; on a full disk the keeper does it later."""
        self._over.update(dict.fromkeys(session_ids))
        turns = asyncio.Semaphore(DISCARDS_MAX)
        async with asyncio.TaskGroup() as tasks:
            for session_id in session_ids:
                name = f"discard {session_id.hex()}"
                tasks.create_task(self._discard_one(session_id, turns), name=name)

    async def _discard_one(self, session_id: bytes, turns: asyncio.Semaphore) -> None:
        try:
            async with turns:
                await discard(self._services, session_id)
        except DiskFull:
            self._changed.set()
        else:
            self._over.pop(session_id, None)

    async def _discard_left(self) -> None:
        for session_id in list(self._over):
            await discard(self._services, session_id)
            self._over.pop(session_id, None)

    # Starting

    async def _load(self) -> None:
        found = await scan_all(self._services.store, SessionRow)
        wall_ms = self._services.clock.wall_ms()
        stored = [(each.row, each.version) for each in found]
        gone = await session_rows.written_off(self._services.store, stored, wall_ms)
        by_age = sorted(gone, key=lambda each: each[0].disconnected_at_ms or wall_ms)
        for row, version in by_age:
            self._load_one(row, version, wall_ms)
        live = {known.row.session_id for known in self._known.values()}
        await discard_orphans(self._services, live)

    def _load_one(self, row: SessionRow, version: int, wall_ms: int) -> None:
        now_ms = self._services.clock.now_ms()
        gone_ms = max(0, wall_ms - (row.disconnected_at_ms or wall_ms))
        stay_ms = max(GRACE_MS, kept_ms(row) - gone_ms)
        known = self._known[row.client_id] = KeptSession(row, version, None, now_ms + stay_ms)
        self._await_expiry(row.client_id)
        self._room.add(row.principal)
        # The client may be coming back: the session has the grace, as after a disconnection now.
        self._may_give_way(known, now_ms)
