"""The client: one daemon, one channel, at most one session, and whatever runs on them.

Invariant: every task of the library runs in the one task group of its client, so an unexpected
failure in it reaches the ``async with connect(...)`` block. The session and its machinery start
with the first subscription; administration never loads them.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dss_client._credentials import NOTHING_TO_SHOW, Credentials, credentials_of
from dss_client._endpoint import Endpoint, resolve
from dss_client._own_name import own_name
from dss_client._session_options import SessionOptions
from dss_client._start_point import Start
from dss_client.limits import PRODUCER_BUFFER_BYTES
from dss_core.errors import IllegalArgument
from dss_core.limits import SESSION_EXPIRY_S_MAX

if TYPE_CHECKING:
    from dss_client._connection import Connection
    from dss_client._subscription_options import GrantNotice
    from dss_client.access import Access
    from dss_client.backups import Backups
    from dss_client.daemon import Daemon
    from dss_client.events import Events
    from dss_client.groups import Grants, Groups
    from dss_client.jetstream._callbacks import ErrorCallback
    from dss_client.jetstream.context import JetStream
    from dss_client.job_values import SourceRange
    from dss_client.jobs import Jobs
    from dss_client.operations import Operations
    from dss_client.producer import Producer
    from dss_client.queues import Queues
    from dss_client.reader import Reader
    from dss_client.schedules import Schedules
    from dss_client.session import Session
    from dss_client.sessions import Sessions
    from dss_client.stored_runs import StoredRuns
    from dss_client.subscription import Subscription
    from dss_client.topics import Topics
    from dss_client.watch import WatchUpdate
    from dss_core.errors import StreamDamaged
    from dss_core.shards import Shard


FilePath = str | os.PathLike[str]

CREDIT_MAX = (1 << 32) - 1
"""What the wire can say; the daemon gives no more than its own default."""


def connect(
    client_id: str | None = None,
    clean_start: bool = True,
    session_expiry: int = 0,
    endpoint: "str | Sequence[str] | None" = None,
    *,
    credit_records: int | None = None,
    credit_bytes: int | None = None,
    patient: bool = True,
    ca: "FilePath | None" = None,
    cert: "FilePath | None" = None,
    key: "FilePath | None" = None,
    token_file: "FilePath | None" = None,
) -> "Client":
    """A client of the daemon at the endpoint; use it as ``async with connect() as client``.

    Args:
        client_id: names the session; where absent, it is made of user, host, process and program.
            Another client with this id is ended; this one waits until the other hands out no more
            records.
        clean_start: discard what an earlier session of this name left behind. Counts for the
            first connect only; after a lost connection the client resumes.
        session_expiry: seconds for which the daemon keeps the session of an absent client.
        endpoint: ``unix:PATH``, ``HOST:PORT``, or ``dss://HOST:PORT`` for TLS; else
            ``DSSCTL_ENDPOINT``, else the default socket. Several, of one daemon, with commas or as
            a list, are tried in turn.
        credit_records: how many records the daemon may send ahead; its own default where absent.
        credit_bytes: the same in bytes.
        patient: once the daemon has answered, calls wait while it is away. Else they raise
            `Unreachable` at once, as the first call does; what is under way reconnects anyway.
        ca: a file of the authorities that sign daemons' certificates, PEM; else ``DSSCTL_TLS_CA``,
            else those that gRPC has.
        cert: a file with this client's certificate; else ``DSSCTL_TLS_CERT``.
        key: the file of its key; else ``DSSCTL_TLS_KEY``.
        token_file: a file with this client's token, for its owner's eyes only; else
            ``DSSCTL_TOKEN_FILE``. It is read again when it changes.

    Raises:
        IllegalName, IllegalArgument, SocketPathTooLong: an argument breaks its rule.
    """
    if client_id is not None:
        from dss_core.filters import check_name

        check_name(client_id)
    if not 0 <= session_expiry <= SESSION_EXPIRY_S_MAX:
        raise IllegalArgument(
            argument=f"session_expiry {session_expiry}",
            rule=f"it is 0 to {SESSION_EXPIRY_S_MAX} seconds",
        )
    for argument, credit in (("credit_records", credit_records), ("credit_bytes", credit_bytes)):
        if credit is not None and not 1 <= credit <= CREDIT_MAX:
            raise IllegalArgument(argument=f"{argument} {credit}", rule=f"it is 1 to {CREDIT_MAX}")
    name = own_name() if client_id is None else client_id
    options = SessionOptions(name, clean_start, session_expiry, credit_records, credit_bytes)
    where = resolve(endpoint)
    files = credentials_of(where, ca=ca, cert=cert, key=key, token_file=token_file)
    return Client(where, options, files, patient=patient)


_PARTS = {
    "access": "access",
    "backups": "backups",
    "topics": "topics",
    "groups": "groups",
    "grants": "groups",
    "daemon": "daemon",
    "events": "events",
    "jobs": "jobs",
    "operations": "operations",
    "queues": "queues",
    "sessions": "sessions",
    "schedules": "schedules",
}
"""The module of each part of the administration. Their values take as long to make as gRPC to
load, so a program that only lists groups loads the others never."""


class Client:
    """One daemon, seen from here. Made by `connect`; open inside its ``async with`` block."""

    access: "Access"
    backups: "Backups"
    topics: "Topics"
    groups: "Groups"
    grants: "Grants"
    daemon: "Daemon"
    events: "Events"
    jobs: "Jobs"
    operations: "Operations"
    queues: "Queues"
    sessions: "Sessions"
    schedules: "Schedules"

    def __init__(
        self,
        endpoint: Endpoint,
        options: SessionOptions,
        credentials: Credentials = NOTHING_TO_SHOW,
        *,
        patient: bool = True,
    ) -> None:
        self.endpoint = endpoint.text
        self._endpoint = endpoint
        self._credentials = credentials
        self._options = options
        self._patient = patient
        self._tasks = asyncio.TaskGroup()
        self._connection: Connection
        self._session: Session | None = None
        self._closers: list[Callable[[], Coroutine[Any, Any, None]]] = []
        """Parts that were opened here and end before the session does."""

    async def __aenter__(self) -> Self:
        """Make the channel; nothing is sent before the first call."""
        # gRPC narrates on stderr (each GOAWAY of a stopping daemon) unless told not to.
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        # The import takes tens of milliseconds: programs that only need the types are spared.
        from dss_client._connection import Connection

        self._connection = Connection(self._endpoint, self._credentials, patient=self._patient)
        await self._tasks.__aenter__()
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """A part of the administration, made when it is first used."""
            if name not in _PARTS or "_connection" not in vars(self):
                kind = type(self).__name__
                raise AttributeError(f"{kind!r} object has no attribute {name!r}; is it open?")
            module = import_module(f"dss_client.{_PARTS[name]}")
            part = getattr(module, name.capitalize())(self._connection)
            setattr(self, name, part)
            return part

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Settle what the user acked, end the session and every task, close the channel."""
        try:
            async with AsyncExitStack() as closing:
                if self._session is not None:
                    closing.push_async_callback(self._session.close)
                for close in self._closers:
                    closing.push_async_callback(close)
        finally:
            # Only a cancellation concerns the task group; it would wrap any other exception.
            cancelled = error if isinstance(error, asyncio.CancelledError) else None
            try:
                kind = None if cancelled is None else type(cancelled)
                await self._tasks.__aexit__(kind, cancelled, trace)
            finally:
                await self._connection.close()

    @property
    def client_id(self) -> str:
        """The name of the session: as given, or made of who and where this is."""
        return self._options.client_id

    def producer(self, topic: str, *, buffer_bytes: int = PRODUCER_BUFFER_BYTES) -> "Producer":
        """A producer of the topic; use it as ``async with client.producer(...) as producer``.

        ``buffer_bytes`` bounds what it holds unacknowledged.
        """
        from dss_client.producer import Producer

        return Producer(self._connection, topic, spawn=self.spawn, buffer_bytes=buffer_bytes)

    def subscribe(
        self,
        filter: str,
        *,
        start: Start = None,
        ack_wait: float | None = None,
        on_grant: "Callable[[GrantNotice], None] | None" = None,
        on_revoke: "Callable[[GrantNotice], None] | None" = None,
        on_assigned: "Callable[[tuple[Shard, ...], int], None] | None" = None,
        on_lost: "Callable[[tuple[Shard, ...]], None] | None" = None,
    ) -> "Subscription":
        """A subscription; use it as ``async with client.subscribe(...) as subscription``.

        Args:
            filter: ``$share/GROUP/FILTER``, ``$queue/GROUP/FILTER``, or a plain filter.
            start: for a group that this use declares: ``"now"``, ``"earliest"``, a time, or the
                offset of a single stream.
            ack_wait: seconds after which an unacknowledged record is delivered again, for a group
                that this use declares.
            on_grant: called when a stream is lent to this subscription.
            on_revoke: called when it is taken back; unacknowledged records go to others.
            on_assigned: in a group with shards: called with shards and their epoch, before any of
                their records is handed out. From then on until ``on_lost`` no other member gets
                their records. Each later holder has a higher epoch.
            on_lost: called with shards after their last hand-out, once their records are settled
                or the time for that is over, and before another member gets them.

        Raises:
            IllegalFilter, QueueWithoutGroup, IllegalName, IllegalTime: an argument breaks its
                rule.
        """
        from dss_client._subscription_options import SubscriptionOptions
        from dss_client.subscription import Subscription

        options = SubscriptionOptions.of(
            filter,
            start=start,
            ack_wait=ack_wait,
            on_grant=on_grant,
            on_revoke=on_revoke,
            on_assigned=on_assigned,
            on_lost=on_lost,
        )
        return Subscription(self.opened_session, options)

    def read(
        self,
        filter: str | None = None,
        *,
        start: Start = None,
        end: Start = None,
        follow: bool = False,
        stream: str | None = None,
        records_max: int | None = None,
        on_damage: "Callable[[StreamDamaged], None] | None" = None,
        on_lost: "Callable[[str, int, int], None] | None" = None,
        progress: bool = False,
    ) -> "Reader":
        """Records of every topic that the filter meets, without a group and without acks.

        ``stream`` narrows it to one stream, ``orders/0/3``; then the filter may be left out.

        Use it as ``async for record in client.read(...)`` or over its ``batches()``. It begins at
        the earliest record, or at ``start``. It ends at the end that the log had at the call, after
        ``records_max`` records, or before ``end``: an append time, or an offset if one stream is
        read and not followed. With ``follow`` it does not end, and after a lost connection it
        goes on in each stream where it was.

        Damaged records are skipped and not counted. ``on_damage`` is called with each range of
        them at once, else a warning is logged; the first one is raised at the end. Offsets without
        a record (after retention, a kill or a loss of power) are skipped too, and ``on_lost`` is
        called with their stream, start and end.

        With ``progress`` a bar on stderr shows how far it is, in a notebook too.

        Raises:
            IllegalFilter, IllegalTime, IllegalArgument: an argument breaks its rule.
        """
        from dss_client.reader import Reader, read_request

        request = read_request(
            filter, start=start, end=end, follow=follow, stream=stream, records_max=records_max
        )
        return Reader(self._connection, request, on_damage, on_lost, progress=progress)

    def jetstream(
        self, *, error_cb: "ErrorCallback | None" = None, strict_acks: bool = False
    ) -> "JetStream":
        """The calls of NATS JetStream; `docs/jetstream.md` says what they do here.

        Args:
            error_cb: called with errors in the background, such as missed heartbeats.
            strict_acks: a second ack, nak or term of a message raises; else it is ignored.
        """
        from dss_client.jetstream.context import JetStream

        made = JetStream(
            self._connection,
            self.opened_session,
            self.spawn,
            self.client_id,
            error_cb=error_cb,
            strict_acks=strict_acks,
        )
        self._closers.append(made.close)
        return made

    def watch(
        self, *topics: str, groups: "Sequence[str]" = (), all: bool = False
    ) -> "AsyncGenerator[WatchUpdate, None]":
        """The current state, then each change, coalesced: an item at most four times a second.

        To mirror the daemon's state, drop everything at an update that is ``anew``, then put the
        items that ``changed`` and delete those that were ``removed``. A slow reader gets fewer
        updates, with the latest state of each item. Events are those from now on, each once.

        Args:
            topics: of ``groups``, ``members``, ``grants``, ``lags``, ``events``, ``operations``
                ``sessions``, ``schedules`` and ``jobs``; all where none is given.
            groups: only items of these groups, NAME or NAME@FILTER, which need not exist yet;
                items that belong to no group come too.
            all: private subscriptions too.

        Raises:
            IllegalArgument: there is no such topic.
            DssError: the daemon refuses, or was never there. A connection that is lost later is
                made again.
        """
        from dss_client.watch import watch

        return watch(self._connection, topics, groups, all=all)

    def read_entries(self, wanted: "SourceRange", dead_letters: str) -> "Reader":
        """A range of a group's dead letters of one stream, as entries of their queue.

        `topics.locate` gives the ranges. `queues.dead_letters` gives them in a form for people.
        """
        from dss_client.reader import Reader, read_request

        request = read_request(
            None,
            start=wanted.start,
            end=wanted.end,
            follow=False,
            stream=wanted.stream,
            records_max=None,
            dead_letters=dead_letters,
        )
        return Reader(self._connection, request)

    def stored_runs(
        self, wanted: "SourceRange", dead_letters: str = ""
    ) -> "AsyncGenerator[StoredRuns, None]":
        """Where the daemon keeps the records of a range; for readers that see its files.

        With a group, where it keeps that range of the dead letters of the stream.
        """
        from dss_client.stored_runs import stored_runs

        return stored_runs(self._connection, wanted, dead_letters)

    async def opened_session(self) -> "Session":
        """The session of this client, opened by the first call; for its subscriptions.

        Raises:
            ClientClosed: this client is closed.
        """
        self._connection.refuse_closed()
        from dss_client.session import Session

        if self._session is None or self._session.never_opened:
            self._session = Session(self._connection, self._options, spawn=self.spawn)
            self._session.start()
        return self._session

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """Begin a task of the client, which ends with it."""
        return self._tasks.create_task(work, name=name)
