"""The gRPC channel to an endpoint, with the credentials of the caller.

gRPC's own call credentials cost a thread for each call, so the token is put into the metadata of
each call here. And a gRPC channel keeps the certificates that it was made with, so a new channel is
made when their files changed. Invariant: a token is read when a call begins, and kept only by that
call; files that cannot be used leave the channel as it is.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

import grpc
import grpc.aio

from dss_client._credentials import Credentials, TokenFile, read_file
from dss_client._endpoint import Endpoint
from dss_client._ways import Ways
from dss_core.errors import IllegalConfig

KEEPALIVE: tuple[tuple[str, int], ...] = (
    ("grpc.keepalive_time_ms", 4_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    # Of the pings that measure the round trip: while one is unanswered, no other is sent.
    ("grpc.http2.ping_timeout_ms", 4_000),
    ("grpc.http2.max_pings_without_data", 0),
)
"""Over a network: a host that vanished ends its calls within 8 s. A daemon allows a ping in 1 s."""

CHANNELS_MAX = 2
"""How many channels are open: calls of an older one go on until files change, or a way is lost,
once more."""

Options = tuple[tuple[str, int | str], ...]


def channel_to(
    endpoint: Endpoint, credentials: Credentials, options: Options, ways: Ways
) -> grpc.aio.Channel:
    """The channel, by the way that is used now; nothing is dialled before its first call.

    Raises:
        IllegalConfig: a file cannot be read, or is not what it is to be.
    """
    if not any(credentials) and not endpoint.tls and not endpoint.others:
        return _made(endpoint, credentials, options)
    return cast("grpc.aio.Channel", _ShowingChannel(endpoint, credentials, options, ways))


def _made(endpoint: Endpoint, credentials: Credentials, options: Options) -> grpc.aio.Channel:
    if not endpoint.is_local:
        options = (*options, *KEEPALIVE)
    if not endpoint.tls:
        return grpc.aio.insecure_channel(endpoint.target, options=options)
    secured = _channel_credentials(credentials)
    return grpc.aio.secure_channel(endpoint.target, secured, options=options)


def way_of(channel: grpc.aio.Channel, call: object) -> int:
    """The number of the way that a call of a channel takes."""
    return channel.way_of(call) if isinstance(channel, _ShowingChannel) else 0


def _channel_credentials(credentials: Credentials) -> grpc.ChannelCredentials:
    ca, cert, key, _ = credentials
    roots = None if ca is None else read_file(ca, "authority")
    if roots is not None and b"-----BEGIN " not in roots:
        raise IllegalConfig(source=ca, reason="it is not in PEM")
    if cert is None or key is None:
        return grpc.ssl_channel_credentials(roots)
    private, chain = read_file(key, "key"), read_file(cert, "certificate")
    try:
        # A key with a password would be asked for at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as wrong:
        reason = f"it is no certificate in PEM that {key} belongs to"
        raise IllegalConfig(source=cert, reason=reason) from wrong
    return grpc.ssl_channel_credentials(roots, private, chain)


class _ShowingChannel:
    """A channel whose calls carry a token, with the current certificates."""

    def __init__(
        self, endpoint: Endpoint, credentials: Credentials, options: Options, ways: Ways
    ) -> None:
        self._endpoints = endpoint.ways
        self._ways = ways
        self._credentials = credentials
        self._options = options
        self._paths = [path for path in credentials[:3] if path is not None]
        self._stamps = [_stamp(path) for path in self._paths]
        self._way = ways.now
        self._channels = [self._make()]
        """The channels, the newest last."""
        self._closing: set[asyncio.Task[None]] = set()
        self._begun: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        """The ways of calls that run."""
        file = credentials.token_file
        self._token = None if file is None else TokenFile(file)
        if self._token is not None:
            self._token.token()  # a fault of the file is raised before anything is dialled

    async def close(self, grace: float | None = None) -> None:
        """Close the channels, as a channel of gRPC closes."""
        for channel in self._channels:
            await channel.close(grace)

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        """`unary_unary` and its like, which make the callable of a method."""

        def made(*arguments: object, **options: object) -> Callable[..., Any]:
            of: grpc.aio.Channel | None = None
            call: Callable[..., Any]

            def begin(*sent: object, **how: object) -> object:
                nonlocal of, call
                channel = self._now()
                if channel is not of:
                    of, call = channel, getattr(channel, kind)(*arguments, **options)
                begun: object = call(*sent, metadata=self._metadata(), **how)
                self._begun[begun] = self._way
                return begun

            return begin

        return made

    def way_of(self, call: object) -> int:
        """The number of the way that a call takes."""
        return self._begun.get(call, self._way)

    def _metadata(self) -> tuple[tuple[str, str], ...] | None:
        if self._token is None:
            return None
        return (("authorization", f"Bearer {self._token.token()}"),)

    def _make(self) -> grpc.aio.Channel:
        return _made(self._endpoints[self._ways.now], self._credentials, self._options)

    def _now(self) -> grpc.aio.Channel:
        """The channel for a call that begins."""
        stamps, way = [_stamp(path) for path in self._paths], self._ways.now
        if stamps != self._stamps or way != self._way:
            with suppress(IllegalConfig):  # somebody writes them: the next call looks again
                self._channels.append(self._make())
                self._stamps, self._way = stamps, way
                self._close_oldest()
        return self._channels[-1]

    def _close_oldest(self) -> None:
        if len(self._channels) > CHANNELS_MAX:
            closing = asyncio.ensure_future(self._channels.pop(0).close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
