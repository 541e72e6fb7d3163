"""All sessions of the daemon: opened, resumed, taken over, expired.

A session is a row; while its client is connected there is a `Session` beside it. The newest
connection of a client id wins: it ends the one before, whose epoch is then too low to write. A
client that comes to a client id which another one uses is let in once that one has said how far it
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
from dataclasses import dataclass, replace
from itertools import islice
from secrets import token_bytes
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary

from dss_core.errors import (
    DiskFull,
    DssError,
    Overloaded,
    SessionClosed,
    SessionNotFound,
    SessionTakenOver,
    Stopping,
)
from dss_core.filters import check_name
from dss_core.ids import StreamId
from dss_core.limits import (
    CREDIT_BYTES,
    CREDIT_RECORDS,
    LEASE_MS,
    SESSION_GRACE_S,
)
from dssd.clock import Clock
from dssd.events.model import Teller, Unheard
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.limits import (
    CLOSED_ROWS_MAX,
    FULL_DISK_RETRY_S,
    SESSION_DRAIN_S,
    SESSIONS_MAX,
    TAKEOVER_DRAIN_S,
)
from dssd.log.port import Log
from dssd.machines.deadlines import Deadlines
from dssd.sessions.admission import SESSION_ID_BYTES, check_opening, check_stored
from dssd.sessions.client_items import Opened, Opening
from dssd.sessions.listing import Connected, HeldRecord, SessionView, views_of
from dssd.sessions.owned_rows import discard, discard_orphans, taken_up
from dssd.sessions.session import Session
from dssd.sessions.session_parts import Services
from dssd.store.paging import scan_all
from dssd.store.port import (
    Absent,
    Delete,
    Precondition,
    PreconditionFailed,
    Put,
    Store,
    VersionIs,
)
from dssd.store.rows import GroupRow, SessionRow
from dssd.store.uninterrupted import finished
from dssd.topics.catalogue import Catalogue

GRACE_MS = SESSION_GRACE_S * 1_000


@dataclass(frozen=True, slots=True)
class SessionCounts:
    """For people."""

    connected: int
    detached: int
    subscriptions: int


@dataclass(slots=True, eq=False)
class _Known:
    row: SessionRow
    version: int
    connection: Session | None
    expires_at_ms: int | None
    """Monotonic; None while it is connected."""
    connected: Connected | None = None
    """The facts of the connection, for people."""


class Sessions:
    """Owns every session; run it as an async context manager around the server."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[str, _Known] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._stopping = False
        self._changed = asyncio.Event()
        """A connection closed: there is a row to write and an expiry to keep."""
        self._closed: dict[str, _Known] = {}
        """Disconnected, and the row does not say so yet."""
        self._coming: set[str] = set()
        """Client ids whose first session is being opened."""
        self._over: dict[bytes, None] = {}
        """Ids of removed sessions that still own rows."""
        self._expiries: Deadlines[str] = Deadlines()
        """When to look at which session; `_Known.expires_at_ms` says whether it is over."""
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
        services = Services(
            store, catalogue, log, groups, registry, clock, random_bytes, events or Unheard()
        )
        sessions = cls(services)
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
        async with asyncio.TaskGroup() as tasks:
            for session in self._connections():
                name = f"drain {session.client_id}"
                tasks.create_task(session.drain(SESSION_DRAIN_S, charges=False), name=name)
        self._end_all()
        # A session whose row was not written counts as disconnected when the daemon starts.
        with suppress(DiskFull):
            await self._write_closed()

    @property
    def held_bytes(self) -> int:
        """What lies here for the clients of all sessions."""
        return self._services.budget.held_bytes

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
            Overloaded, IllegalName, IllegalArgument, PermissionDenied: nothing was changed.
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
                self._make_room(client_id)
            before = None if known is None else known.connection
            work = self._attach(client_id, opening, known)
            try:
                return await finished(work, name=f"attach {client_id}")
            except asyncio.CancelledError:
                # The client is gone, and nobody runs the connection that it opened.
                made = self._known.get(client_id)
                if made is not None and made.connection not in (None, before):
                    self.detach(made.connection)
                raise
            finally:
                self._coming.discard(client_id)

    async def listed(self, after: str, most: int) -> list[SessionView]:
        """The first sessions behind a client id, at most so many, by client id."""
        wanted = heapq.nsmallest(most, (each for each in self._known if each > after))
        return await self._views([self._known[client_id] for client_id in wanted])

    async def find(self, client_id: str) -> SessionView:
        """The session of a client.

        Raises:
            SessionNotFound: it has none.
        """
        known = self._known.get(client_id)
        if known is None:
            raise SessionNotFound(client_id=client_id)
        return (await self._views([known]))[0]

    def held(
        self, client_id: str, group_id: int, stream: StreamId, offset: int
    ) -> HeldRecord | None:
        """Where an offset stands with a client; None where it is not connected, or has it not."""
        known = self._known.get(client_id)
        if known is None or known.connection is None:
            return None
        return known.connection.held(group_id, stream, offset)

    async def _views(self, known: Sequence[_Known]) -> list[SessionView]:
        sessions = [(each.row, each.connected) for each in known]
        return await views_of(self._services.store, self._services.groups, sessions)

    async def close(self, client_id: str, session_id: bytes) -> None:
        """End a session for good: its client is told, and what it owns alone goes.

        Does nothing where the client has another session, or none.

        Raises:
            DiskFull: nothing was changed.
        """
        async with self._locks.setdefault(client_id, asyncio.Lock()):
            known = self._known.get(client_id)
            if known is not None and known.row.session_id == session_id:
                closing = self._forget(known, SessionClosed(client_id=client_id))
                await finished(closing, name=f"close {client_id}")

    async def discard_expired(self) -> None:
        """Discard the sessions whose expiry has passed."""
        due = self._expiries.due(self._services.clock.now_ms())
        try:
            while due:
                await self._expire(due[0])
                del due[0]
        finally:
            for client_id in due:
                self._await_expiry(client_id)

    def detach(self, session: Session) -> None:
        """The client is gone: end the connection; the session waits for its expiry."""
        session.end()
        known = self._known.get(session.client_id)
        if known is None or known.connection is not session:
            return
        known.connection = known.connected = None
        known.row = replace(known.row, disconnected_at_ms=self._services.clock.wall_ms())
        known.expires_at_ms = self._services.clock.now_ms() + _stay_ms(known.row)
        self._await_expiry(session.client_id)
        self._closed[session.client_id] = known
        self._changed.set()

    def _group_changed(self, group: GroupRow) -> None:
        for session in self._connections():
            session.edit(group)

    # Opening

    def _make_room(self, client_id: str) -> None:
        if len(self._known) + len(self._coming) >= SESSIONS_MAX:
            raise Overloaded(what="The number of sessions", limit=SESSIONS_MAX)
        self._coming.add(client_id)

    async def _attach(self, client_id: str, opening: Opening, known: _Known | None) -> Session:
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
        version = await self._put(row, None if known is None else known.version)
        if known is not None:
            # Not before the commit: if the disk is full, the new connection fails and this stays.
            await _end_older(known.connection, opening)
        opened = self._opened(row, opening, present=resume)
        fence = VersionIs(SessionRow, (client_id,), version)
        session = Session(opened, self._services, fence)
        self._coming.discard(client_id)
        connected = Connected(self._services.clock.wall_ms(), opening.peer)
        self._known[client_id] = _Known(row, version, session, None, connected)
        self._closed.pop(client_id, None)
        self._expiries.clear(client_id)
        try:
            if resume:
                await self._resume(session)
            elif known is not None:
                await self._discard(known.row.session_id)
        except BaseException:
            self.detach(session)
            raise
        if self._stopping:
            # It came too late to be ended with all others.
            self.detach(session)
            raise Stopping
        return session

    async def _put(self, row: SessionRow, known: int | None) -> int:
        """Write a session's row, whose version is known to memory; returns the new version."""
        try:
            [version] = await self._services.store.commit([Put(row)], [_unchanged(row, known)])
        except PreconditionFailed:
            # Only this object writes these rows, one client id at a time: memory is behind,
            # because a commit was not answered although it was made.
            stored = await self._services.store.read(SessionRow, (row.client_id,))
            unchanged = _unchanged(row, None if stored is None else stored.version)
            [version] = await self._services.store.commit([Put(row)], [unchanged])
        return version

    def _opened(self, row: SessionRow, opening: Opening, *, present: bool) -> Opened:
        records, size = opening.credit_records, opening.credit_bytes
        return Opened(
            client_id=row.client_id,
            session_id=row.session_id,
            session_epoch=row.session_epoch,
            session_present=present,
            lease_ms=LEASE_MS,
            credit_records=CREDIT_RECORDS if records is None else min(records, CREDIT_RECORDS),
            credit_bytes=CREDIT_BYTES if size is None else min(size, CREDIT_BYTES),
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

    async def _keep(self) -> None:
        """Write the rows of disconnected sessions, and discard expired ones."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._next_expiry_s()):
                    await self._changed.wait()
            self._changed.clear()
            try:
                await self._write_closed()
                await self.discard_expired()
                await self._discard_left()
            except DiskFull:
                # Nothing is lost: it is tried again until the disk has room.
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
        while self._closed:
            # Locks are always taken in one order, so that there is no deadlock.
            chosen = sorted(islice(self._closed, CLOSED_ROWS_MAX))
            async with AsyncExitStack() as locks:
                for client_id in chosen:
                    lock = self._locks.setdefault(client_id, asyncio.Lock())
                    await locks.enter_async_context(lock)
                closed = [self._closed[each] for each in chosen if each in self._closed]
                await self._write_down(closed)
                for known in closed:
                    self._closed.pop(known.row.client_id, None)

    async def _write_down(self, closed: list[_Known]) -> None:
        """Write the rows in one commit, or, where memory was behind, one by one."""
        if not closed:
            return
        writes = [Put(known.row) for known in closed]
        unchanged = [_unchanged(known.row, known.version) for known in closed]
        try:
            versions = await self._services.store.commit(writes, unchanged)
        except PreconditionFailed:
            versions = [await self._put(known.row, known.version) for known in closed]
        for known, version in zip(closed, versions, strict=True):
            known.version = version

    async def _expire(self, client_id: str) -> None:
        async with self._locks.setdefault(client_id, asyncio.Lock()):
            known = self._known.get(client_id)
            now_ms = self._services.clock.now_ms()
            if known is None or known.expires_at_ms is None or known.expires_at_ms > now_ms:
                return
            await self._forget(known)

    async def _forget(self, known: _Known, error: DssError | None = None) -> None:
        client_id = known.row.client_id
        # Its row goes first: without it nobody resumes a session that has lost a part.
        await self._services.store.commit([Delete(SessionRow, (client_id,))])
        if known.connection is not None:
            known.connection.end(error)
        self._closed.pop(client_id, None)
        self._expiries.clear(client_id)
        del self._known[client_id]
        await self._discard(known.row.session_id)

    async def _discard(self, session_id: bytes) -> None:
        """Remove the rows of a removed session; on a full disk the keeper does it later."""
        self._over[session_id] = None
        try:
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
        for found in await scan_all(self._services.store, SessionRow):
            await self._load_one(found.row, found.version)
        live = {known.row.session_id for known in self._known.values()}
        await discard_orphans(self._services, live)

    async def _load_one(self, row: SessionRow, version: int) -> None:
        wall_ms, now_ms = self._services.clock.wall_ms(), self._services.clock.now_ms()
        if row.disconnected_at_ms is None:
            row = replace(row, disconnected_at_ms=wall_ms)
            fence = VersionIs(SessionRow, (row.client_id,), version)
            version = (await self._services.store.commit([Put(row)], [fence]))[0]
        gone_ms = max(0, wall_ms - (row.disconnected_at_ms or wall_ms))
        stay_ms = max(GRACE_MS, _stay_ms(row) - gone_ms)
        self._known[row.client_id] = _Known(row, version, None, now_ms + stay_ms)
        self._await_expiry(row.client_id)


async def _end_older(older: Session | None, opening: Opening) -> None:
    """End the connection of before, once its client hands out no more."""
    if older is None:
        return
    if not opening.session_id:
        await older.drain(TAKEOVER_DRAIN_S, charges=True)
    # Else the same client is back, and has dropped what came on that connection.
    older.end(SessionTakenOver(client_id=older.client_id))


def _stay_ms(row: SessionRow) -> int:
    return max(row.expiry_ms, GRACE_MS)


def _unchanged(row: SessionRow, version: int | None) -> Precondition:
    key = (row.client_id,)
    return Absent(SessionRow, key) if version is None else VersionIs(SessionRow, key, version)
