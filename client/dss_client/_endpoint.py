"""Where the daemon listens: an argument, the environment, or the default socket.

Invariant: what `resolve` returns can be given to gRPC as it is.
"""

import os
from pathlib import Path
from typing import NamedTuple

from dss_core.default_paths import OPERATORS_SOCKET_NAME, default_socket
from dss_core.errors import IllegalArgument, SocketPathTooLong
from dss_core.limits import UNIX_SOCKET_PATH_BYTES_MAX

ENDPOINT_VARIABLE = "DSSCTL_ENDPOINT"

TLS_SCHEME = "dss://"
FORMS = "write unix:PATH, HOST:PORT, or dss://HOST:PORT for TLS"


class Endpoint(NamedTuple):
    """One daemon's address."""

    target: str
    """As gRPC wants it."""
    text: str
    """As people write it."""
    tls: bool = False


def resolve(endpoint: str | None) -> Endpoint:
    """The endpoint given, else that of the environment, else the default socket.

    ``dss://HOST:PORT`` is reached over TLS.

    Raises:
        SocketPathTooLong: no socket can have this path.
        IllegalConfig: there is neither an endpoint nor a home directory.
        IllegalArgument: it is none of ``unix:PATH``, ``HOST:PORT`` and ``dss://HOST:PORT``.
    """
    text = endpoint or os.environ.get(ENDPOINT_VARIABLE) or f"unix:{default_socket()}"
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
