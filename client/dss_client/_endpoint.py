"""Where the daemon listens: an argument, the environment, or the default socket.

Invariant: what `resolve` returns can be given to gRPC as it is.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dss_core.default_paths import OPERATORS_SOCKET_NAME, default_socket
from dss_core.endpoints import endpoint_texts
from dss_core.errors import IllegalArgument, SocketPathTooLong
from dss_core.limits import UNIX_SOCKET_PATH_BYTES_MAX

ENDPOINT_VARIABLE = "DSSCTL_ENDPOINT"

TLS_SCHEME = "dss://"
FORMS = "write unix:PATH, HOST:PORT, or dss://HOST:PORT for TLS"

ENDPOINTS_MAX = 8
"""Limit of addresses of one daemon: each is tried before a call fails."""


class Endpoint(NamedTuple):
    """One daemon's address."""

    target: str
    """The address as gRPC wants it."""
    text: str
    """The address as people write it."""
    tls: bool = False
    others: "tuple[Endpoint, ...]" = ()
    """Other addresses of the same daemon, in the order in which they are tried."""

    @property
    def is_local(self) -> bool:
        """Whether it is a socket of this host."""
        return self.target.startswith("unix:")

    @property
    def ways(self) -> "tuple[Endpoint, ...]":
        """The endpoint and its other addresses."""
        return (self, *self.others)


def resolve(endpoint: str | Sequence[str] | None) -> Endpoint:
    """The endpoint given, else that of the environment, else the default socket.

    ``dss://HOST:PORT`` is reached over TLS. Several, of one daemon, are tried in turn.

    Raises:
        SocketPathTooLong: no socket can have this path.
        IllegalConfig: there is neither an endpoint nor a home directory.
        IllegalArgument: it is none of ``unix:PATH``, ``HOST:PORT`` and ``dss://HOST:PORT``.
    """
    given = endpoint if isinstance(endpoint, str) else ",".join(endpoint or ())
    text = given or os.environ.get(ENDPOINT_VARIABLE) or f"unix:{default_socket()}"
    first, *others = map(_resolved, endpoint_texts(text))
    if len(others) >= ENDPOINTS_MAX:
        raise IllegalArgument(argument=f"endpoint {text}", rule=f"at most {ENDPOINTS_MAX}")
    return first._replace(text=text, others=tuple(others))


def _resolved(text: str) -> Endpoint:
    if text.startswith("unix:"):
        return Endpoint(f"unix:{_socket_path(text)}", text)
    target = text.removeprefix(TLS_SCHEME)
    host, colon, port = target.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise IllegalArgument(argument=f"endpoint {text}", rule=FORMS)
    if "/" in host:
        raise IllegalArgument(argument=f"endpoint {text}", rule=FORMS)
    return Endpoint(target, text, target != text)


def operators_endpoint(endpoint: str | None = None) -> str | None:
    """Where the daemon of this endpoint serves operators alone; None where no such socket is.

    Raises:
        SocketPathTooLong, IllegalArgument: as of `resolve`.
    """
    target = resolve(endpoint).target
    if not target.startswith("unix:"):
        return None
    path = _socket_path(target).with_name(OPERATORS_SOCKET_NAME)
    return f"unix:{path}" if path.is_socket() else None


def _socket_path(text: str) -> Path:
    path = Path(text.removeprefix("unix:").removeprefix("//")).expanduser()
    if path == Path():
        raise IllegalArgument(argument=f"endpoint {text}", rule=FORMS)
    absolute = path.absolute()
    try:
        length = len(str(absolute).encode())
    except UnicodeEncodeError as broken:
        raise IllegalArgument(argument=f"endpoint {text!r}", rule="a path is UTF-8") from broken
    if length > UNIX_SOCKET_PATH_BYTES_MAX:
        raise SocketPathTooLong(path=absolute, length=length, limit=UNIX_SOCKET_PATH_BYTES_MAX)
    return absolute
