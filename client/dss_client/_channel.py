"""The gRPC channel to an endpoint, with what shows who calls.

gRPC's own call credentials cost a thread a call, so a token is put into the metadata of each call
here. Invariant: a token is read when a call begins, and kept by nothing but that call.
"""

from collections.abc import Callable
from typing import Any, cast

import grpc
import grpc.aio

from dss_client._credentials import Credentials, TokenFile, read_file
from dss_client._endpoint import Endpoint
from dss_core.errors import IllegalConfig

KEEPALIVE: tuple[tuple[str, int], ...] = (
    ("grpc.keepalive_time_ms", 4_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.http2.max_pings_without_data", 0),
)
"""Over a network: a host that vanished ends its calls within 8 s. A daemon allows a ping in 1 s."""

Options = tuple[tuple[str, int | str], ...]


def channel_to(endpoint: Endpoint, credentials: Credentials, options: Options) -> grpc.aio.Channel:
    """The channel; nothing is dialled before its first call.

    Raises:
        IllegalConfig: a file cannot be read, or is not what it is to be.
    """
    if not endpoint.target.startswith("unix:"):
        options = (*options, *KEEPALIVE)
    if endpoint.tls:
        secured = _channel_credentials(credentials)
        channel = grpc.aio.secure_channel(endpoint.target, secured, options=options)
    else:
        channel = grpc.aio.insecure_channel(endpoint.target, options=options)
    if credentials.token_file is None:
        return channel
    file = TokenFile(credentials.token_file)
    file.token()  # what is wrong with it is told before anything is dialled
    return cast("grpc.aio.Channel", _TokenChannel(channel, file))


def _channel_credentials(credentials: Credentials) -> grpc.ChannelCredentials:
    ca, cert, key, _ = credentials
    chain = None if cert is None else read_file(cert, "certificate")
    private = None if key is None else read_file(key, "key")
    roots = None if ca is None else read_file(ca, "authority")
    for path, found in ((ca, roots), (cert, chain), (key, private)):
        if found is not None and b"-----BEGIN " not in found:
            raise IllegalConfig(source=path, reason="it is not in PEM")
    return grpc.ssl_channel_credentials(roots, private, chain)


class _TokenChannel:
    """A channel whose calls carry a token."""

    def __init__(self, channel: grpc.aio.Channel, file: TokenFile) -> None:
        self._channel = channel
        self._file = file

    async def close(self, grace: float | None = None) -> None:
        """As of the channel."""
        await self._channel.close(grace)

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        """`unary_unary` and its like, which make what calls a method."""
        make = getattr(self._channel, kind)

        def made(*arguments: object, **options: object) -> Callable[..., Any]:
            call = make(*arguments, **options)

            def with_token(*arguments: object, **options: object) -> object:
                bearer = f"Bearer {self._file.token()}"
                return call(*arguments, metadata=(("authorization", bearer),), **options)

            return with_token

        return made
