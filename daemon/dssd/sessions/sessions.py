"""All sessions of the daemon: opened, resumed, taken over, expired.

A session is a row; while its client is connected there is a `Session` beside it. The newest
connection of a client id wins: it ends the one before, whose epoch is then too low to write.

Invariant: at most one connection per client id is heard, and what is done to one client id is done
one after the other. Expiry is measured on the monotonic clock, so a jump of the wall clock ends
nothing; across a restart of the daemon only the stored wall time is left, and a grace is given.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from secrets import token_bytes, token_hex
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary

from dss_core.errors import (
    DssError,
    GroupNotFound,
    IllegalArgument,
    Overloaded,
    SessionNotFound,
    SessionTakenOver,
    Stopping,
)
from dss_core.filters import check_name
from dss_core.limits import (
    CREDIT_BYTES,
    CREDIT_RECORDS,
    LEASE_MS,
    SESSION_EXPIRY_S_MAX,
    SESSION_GRACE_S,
)
from dssd.clock import Clock
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.limits import SESSION_DRAIN_S, SESSIONS_MAX
from dssd.log.port import Log
from dssd.sessions.items import Opened, Opening
from dssd.sessions.services import Services
from dssd.sessions.session import EXCLUSIVE, Session
from dssd.store.port import Absent, Delete, Precondition, Put, Store, VersionIs, Write
from dssd.store.rows import GroupRow, SessionRow, SubscriptionRow
from dssd.topics.catalogue import Catalogue

SESSION_ID_BYTES = 16
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


class Sessions:
    """Owns every session; run it as an async context manager around the server."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[str, _Known] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._stopping = False
        self._changed = asyncio.Event()
        """A connection closed: there is a row to write and an expiry to keep."""
        self._closed: list[_Known] = []
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
    ) -> "Sessions":
        """Load what outlived the last daemon."""
        sessions = cls(Services(store, catalogue, log, groups, registry, clock))
        await sessions._load()
        return sessions

    async def __aenter__(self) -> Self:
        """Start its tasks."""
        await self._tasks.__aenter__()
        self._keeper = self._tasks.create_task(self._keep(), name="session keeper")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop as `stop` does, end its tasks."""
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
                tasks.create_task(session.drain(SESSION_DRAIN_S), name=name)
        self._end_all()
        await self._write_closed()

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
            Stopping, Overloaded, IllegalName, IllegalArgument: nothing was changed.
            SessionNotFound: the session to resume was discarded by another client of that name.
        """
        client_id = opening.client_id or f"client-{token_hex(8)}"
        check_name(client_id)
        _check(opening)
        lock = self._locks.setdefault(client_id, asyncio.Lock())
        async with lock:
            if self._stopping:
                raise Stopping
            known = self._known.get(client_id)
            if known is None and len(self._known) >= SESSIONS_MAX:
                raise Overloaded(what="The number of sessions", limit=SESSIONS_MAX)
            return await self._attach(client_id, opening, known)

    async def discard_expired(self) -> None:
        """Discard the sessions that waited for their client long enough."""
        now_ms = self._services.clock.now_ms()
        for client_id, known in list(self._known.items()):
            if known.expires_at_ms is not None and known.expires_at_ms <= now_ms:
                await self._expire(client_id)

    def detach(self, session: Session) -> None:
        """The client is gone: end the connection; the session waits for its expiry."""
        session.end()
        known = self._known.get(session.client_id)
        if known is None or known.connection is not session:
            return
        known.connection = None
        known.row = replace(known.row, disconnected_at_ms=self._services.clock.wall_ms())
        known.expires_at_ms = self._services.clock.now_ms() + _stay_ms(known.row)
        self._closed.append(known)
        self._changed.set()

    # Opening

    async def _attach(self, client_id: str, opening: Opening, known: _Known | None) -> Session:
        resume = known is not None and (bool(opening.session_id) or not opening.clean_start)
        if known is not None and opening.session_id not in (b"", known.row.session_id):
            raise SessionNotFound(client_id=client_id)
        if known is not None and known.connection is not None:
            known.connection.end(SessionTakenOver(client_id=client_id))
        if known is not None and not resume:
            await self._discard(known)
        row = SessionRow(
            client_id=client_id,
            session_id=known.row.session_id
            if known is not None and resume
            else token_bytes(SESSION_ID_BYTES),
            session_epoch=known.row.session_epoch + 1 if known is not None else 1,
            expiry_ms=opening.expiry_s * 1_000,
            disconnected_at_ms=None,
            principal=opening.principal,
        )
        version = await self._commit(row, known)
        opened = self._opened(row, opening, present=resume)
        fence = VersionIs(SessionRow, (client_id,), version)
        session = Session(opened, self._services, fence)
        self._known[client_id] = _Known(row, version, session, None)
        if resume:
            await self._resume(session)
        return session

    async def _commit(self, row: SessionRow, known: _Known | None) -> int:
        key = (row.client_id,)
        fence: Precondition = Absent(SessionRow, key)
        if known is not None:
            if known in self._closed:
                # Its row is about to be written again; this commit says all of it.
                self._closed.remove(known)
            fence = VersionIs(SessionRow, key, known.version)
        versions = await self._services.store.commit([Put(row)], [fence])
        return versions[0]

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
        found = await self._services.store.scan(SubscriptionRow, (session.session_id,))
        lost: list[Write] = []
        there: list[tuple[SubscriptionRow, GroupRow]] = []
        for versioned in found:
            row = versioned.row
            try:
                there.append((row, self._services.groups.get(row.group_id)))
            except DssError as error:
                session.refuse(error, subscription=row.subscription, final=True)
                lost.append(Delete(SubscriptionRow, (row.session_id, row.subscription)))
        if lost:
            await self._services.store.commit(lost)
        session.resume(there)

    # Ending

    def _connections(self) -> list[Session]:
        return [known.connection for known in self._known.values() if known.connection is not None]

    def _end_all(self) -> None:
        for session in self._connections():
            session.end(Stopping())
            self.detach(session)

    async def _keep(self) -> None:
        """Write down what disconnected, and discard what expired."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._next_expiry_s()):
                    await self._changed.wait()
            self._changed.clear()
            await self._write_closed()
            await self.discard_expired()

    def _next_expiry_s(self) -> float | None:
        times = [
            known.expires_at_ms for known in self._known.values() if known.expires_at_ms is not None
        ]
        if not times:
            return None
        return max(0, min(times) - self._services.clock.now_ms()) / 1_000

    async def _write_closed(self) -> None:
        while self._closed:
            client_id = self._closed[0].row.client_id
            async with self._locks.setdefault(client_id, asyncio.Lock()):
                await self._write_one_closed(client_id)

    async def _write_one_closed(self, client_id: str) -> None:
        for known in [each for each in self._closed if each.row.client_id == client_id]:
            self._closed.remove(known)
            if self._known.get(client_id) is not known or known.connection is not None:
                continue
            fence = VersionIs(SessionRow, (client_id,), known.version)
            versions = await self._services.store.commit([Put(known.row)], [fence])
            known.version = versions[0]

    async def _expire(self, client_id: str) -> None:
        async with self._locks.setdefault(client_id, asyncio.Lock()):
            known = self._known.get(client_id)
            now_ms = self._services.clock.now_ms()
            if known is None or known.expires_at_ms is None or known.expires_at_ms > now_ms:
                return
            await self._discard(known)
            await self._services.store.commit([Delete(SessionRow, (client_id,))])
            del self._known[client_id]

    async def _discard(self, known: _Known) -> None:
        """Remove what a session owns: its private groups and its subscriptions."""
        session_id = known.row.session_id
        for group in self._services.groups.groups():
            if group.kind == EXCLUSIVE and group.session_id == session_id:
                await self._remove_group(group.group_id)
        rows = await self._services.store.scan(SubscriptionRow, (session_id,))
        deletes: list[Write] = [
            Delete(SubscriptionRow, (session_id, each.row.subscription)) for each in rows
        ]
        if deletes:
            await self._services.store.commit(deletes)

    async def _remove_group(self, group_id: int) -> None:
        with suppress(GroupNotFound):
            await self._services.groups.remove(group_id)

    # Starting

    async def _load(self) -> None:
        after: tuple[str, ...] | None = None
        while page := await self._services.store.scan(SessionRow, after=after):
            for versioned in page:
                await self._load_one(versioned.row, versioned.version)
            after = (page[-1].row.client_id,)
        await self._remove_orphans()

    async def _load_one(self, row: SessionRow, version: int) -> None:
        wall_ms, now_ms = self._services.clock.wall_ms(), self._services.clock.now_ms()
        if row.disconnected_at_ms is None:
            row = replace(row, disconnected_at_ms=wall_ms)
            fence = VersionIs(SessionRow, (row.client_id,), version)
            version = (await self._services.store.commit([Put(row)], [fence]))[0]
        gone_ms = max(0, wall_ms - (row.disconnected_at_ms or wall_ms))
        stay_ms = max(GRACE_MS, _stay_ms(row) - gone_ms)
        self._known[row.client_id] = _Known(row, version, None, now_ms + stay_ms)

    async def _remove_orphans(self) -> None:
        """What a crash left behind: groups and subscriptions of sessions that are no more."""
        live = {known.row.session_id for known in self._known.values()}
        for group in self._services.groups.groups():
            if group.kind == EXCLUSIVE and group.session_id not in live:
                await self._remove_group(group.group_id)
        after: tuple[bytes | int, ...] | None = None
        while page := await self._services.store.scan(SubscriptionRow, after=after):
            last = page[-1].row
            after = (last.session_id, last.subscription)
            lost: list[Write] = [
                Delete(SubscriptionRow, (each.row.session_id, each.row.subscription))
                for each in page
                if each.row.session_id not in live
            ]
            if lost:
                await self._services.store.commit(lost)


def _stay_ms(row: SessionRow) -> int:
    return max(row.expiry_ms, GRACE_MS)


def _check(opening: Opening) -> None:
    if not 0 <= opening.expiry_s <= SESSION_EXPIRY_S_MAX:
        raise IllegalArgument(argument="session_expiry_s", rule=f"0 to {SESSION_EXPIRY_S_MAX}")
    if opening.session_id and len(opening.session_id) != SESSION_ID_BYTES:
        raise IllegalArgument(argument="session_id", rule=f"{SESSION_ID_BYTES} bytes")
    for name, credit in (
        ("credit_records", opening.credit_records),
        ("credit_bytes", opening.credit_bytes),
    ):
        if credit is not None and credit < 1:
            raise IllegalArgument(argument=name, rule="at least 1")
