"""The client for threads: one daemon, one channel, at most one session, in the loop of the process.

Invariant: a client is open from `connect` on, and closed by `Client.close`, by the end of its
``with`` block, or at the end of the process.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from dss_client import _client
from dss_client._client import FilePath
from dss_client._start_point import Start
from dss_client._subscription_options import GrantNotice, SubscriptionOptions
from dss_client.limits import PRODUCER_BUFFER_BYTES
from dss_client.sync._portal import portal
from dss_client.sync.administration import Administered
from dss_client.sync.producer import Producer
from dss_client.sync.reader import Reader
from dss_client.sync.subscription import Pieces, Subscription

if TYPE_CHECKING:
    from dss_client.jetstream._callbacks import ErrorCallback
    from dss_client.sync.jetstream import JetStream
    from dss_client.watch import WatchUpdate
    from dss_core.errors import StreamDamaged
    from dss_core.shards import Shard


def connect(
    client_id: str | None = None,
    clean_start: bool = True,
    session_expiry: int = 0,
    endpoint: str | Sequence[str] | None = None,
    *,
    credit_records: int | None = None,
    credit_bytes: int | None = None,
    patient: bool = True,
    ca: FilePath | None = None,
    cert: FilePath | None = None,
    key: FilePath | None = None,
    token_file: FilePath | None = None,
) -> "Client":
    """A client of the daemon at the endpoint; use it as ``with connect() as client``, or close it.

    The arguments are those of `dss_client.connect`.

    Raises:
        IllegalName, IllegalArgument, SocketPathTooLong: an argument breaks its rule.
        OpenedBeforeFork: a client was open when this process was forked.
    """
    client = _client.connect(
        client_id,
        clean_start,
        session_expiry,
        endpoint,
        credit_records=credit_records,
        credit_bytes=credit_bytes,
        patient=patient,
        ca=ca,
        cert=cert,
        key=key,
        token_file=token_file,
    )
    return Client(client)


class Client(Administered):
    """One daemon, seen from here. Made by `connect`."""

    def __init__(self, client: _client.Client) -> None:
        self.endpoint = client.endpoint
        self._client = client
        self._portal = portal()
        self._closing = asyncio.Event()
        self._keeper: asyncio.Task[None]
        self._portal.run(self._open())
        self._portal.opened(self, self.close)
        self._administer(self._portal, client)

    async def _open(self) -> None:
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._keeper = self._portal.begin(self._keep(opened), "dss client")
        await asyncio.wait([opened, self._keeper], return_when=asyncio.FIRST_COMPLETED)
        if self._keeper.done():
            self._keeper.result()

    async def _keep(self, opened: "asyncio.Future[None]") -> None:
        """Enter and leave the client in one task, as its task group demands."""
        async with self._client:
            opened.set_result(None)
            await self._closing.wait()

    def __enter__(self) -> Self:
        """It is open already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Settle what was acked, end the session, close the channel; a second time does nothing."""
        self._portal.run(self._close())
        self._portal.closed(self)

    async def _close(self) -> None:
        self._closing.set()
        # Not the task itself: a Ctrl-C here would cut it short.
        await asyncio.wait([self._keeper])
        self._keeper.result()

    @property
    def client_id(self) -> str:
        """The name of the session: as given, or made of who and where this is."""
        return self._client.client_id

    def producer(self, topic: str, *, buffer_bytes: int = PRODUCER_BUFFER_BYTES) -> Producer:
        """A producer of the topic; use it as ``with client.producer(...) as producer``.

        ``buffer_bytes`` bounds what it holds unacknowledged.
        """
        producer = self._client.producer(topic, buffer_bytes=buffer_bytes)
        return Producer(self._portal, producer, self._client.spawn, buffer_bytes)

    def subscribe(
        self,
        filter: str,
        *,
        start: Start = None,
        ack_wait: float | None = None,
        on_grant: Callable[[GrantNotice], None] | None = None,
        on_revoke: Callable[[GrantNotice], None] | None = None,
        on_assigned: "Callable[[tuple[Shard, ...], int], None] | None" = None,
        on_lost: "Callable[[tuple[Shard, ...]], None] | None" = None,
    ) -> Subscription:
        """A subscription; use it as ``with client.subscribe(...) as subscription``.

        The arguments are those of `dss_client.Client.subscribe`. ``on_grant`` and the other
        callbacks are called in the thread of the loop, where nothing of this client can be called.

        Raises:
            IllegalFilter, QueueWithoutGroup, IllegalName, IllegalTime: an argument breaks its
                rule.
        """
        options = SubscriptionOptions.of(
            filter,
            start=start,
            ack_wait=ack_wait,
            on_grant=on_grant,
            on_revoke=on_revoke,
            on_assigned=on_assigned,
            on_lost=on_lost,
        )
        return Subscription(self._portal, Pieces(self._client.opened_session, options))

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
    ) -> Reader:
        """Records of every topic that the filter meets, without a group and without acks.

        Use it as ``for record in client.read(...)`` or over its ``batches()``. The arguments are
        those of `dss_client.Client.read`.

        Raises:
            IllegalFilter, IllegalTime, IllegalArgument: an argument breaks its rule.
        """
        reader = self._client.read(
            filter,
            start=start,
            end=end,
            follow=follow,
            stream=stream,
            records_max=records_max,
            on_damage=on_damage,
            on_lost=on_lost,
            progress=progress,
        )
        return Reader(self._portal, reader)

    def jetstream(
        self, *, error_cb: "ErrorCallback | None" = None, strict_acks: bool = False
    ) -> "JetStream":
        """The calls that programs of NATS JetStream make, as `dss_client.Client.jetstream`.

        ``error_cb`` is awaited in the thread of the loop, where nothing of this client can be
        called.
        """
        from dss_client.sync.jetstream import JetStream

        twin = self._portal.call(self._client.jetstream, error_cb=error_cb, strict_acks=strict_acks)
        return JetStream(self._portal, twin)

    def watch(
        self, *topics: str, groups: Sequence[str] = (), all: bool = False
    ) -> "Iterator[WatchUpdate]":
        """How things are, then each change, coalesced: an item at most four times a second.

        The arguments are those of `dss_client.Client.watch`.

        Raises:
            IllegalArgument: there is no such topic.
            DssError: the daemon refuses, or was never there. A connection that is lost later is
                made again.
        """
        return self._portal.iterate(self._client.watch(*topics, groups=groups, all=all))
