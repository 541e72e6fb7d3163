"""How a client authenticates itself and the daemon: files, by their paths.

Invariant: the text of a token stays in its file and in the calls that carry it, and it leaves this
process only over TLS, a unix socket or loopback; that is checked before anything is dialled.
"""

import ipaddress
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dss_client._endpoint import Endpoint
from dss_core.endpoints import CREDENTIAL_VARIABLES as VARIABLES
from dss_core.errors import IllegalArgument, IllegalConfig

FILE_BYTES_MAX = 1 << 20
TOKEN_BYTES_MAX = 512
"""A token has 47 bytes; a longer file is something else."""

TOKEN_PREFIX = "dss_"
TOKEN_BYTES_MIN = 40
"""A text that begins so and has this length is a token, and no path."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Credentials(NamedTuple):
    """The files of one client; all that are not there are None."""

    ca: Path | None = None
    """The authorities whose signature on the daemon's certificate it trusts; None: those of
    gRPC."""
    cert: Path | None = None
    key: Path | None = None
    token_file: Path | None = None


def credentials_of(
    endpoint: Endpoint,
    *,
    ca: str | os.PathLike[str] | None = None,
    cert: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    token_file: str | os.PathLike[str] | None = None,
) -> Credentials:
    """The credentials for an endpoint: from arguments, else from the environment, if they fit.

    Raises:
        IllegalArgument: they do not fit to the endpoint, or not to each other.
    """
    given = {"ca": ca, "cert": cert, "key": key, "token_file": token_file}
    if _is_a_token(token_file):
        raise IllegalArgument(argument="token_file", rule="the path of a file, not the token")
    said = {name: _path(value) for name, value in given.items()}
    _require_tls(endpoint, said)
    has_tls = any(each.tls for each in endpoint.ways)
    for name, variable in VARIABLES.items():
        is_remote = not all(each.is_local for each in endpoint.ways)
        carries = is_remote and may_carry_a_token(endpoint)
        fits = carries if name == "token_file" else has_tls
        if said[name] is None and fits:
            said[name] = _path(os.environ.get(variable))
    if (said["cert"] is None) != (said["key"] is None):
        raise IllegalArgument(argument="cert", rule="a certificate and its key go together")
    if said["token_file"] is not None and not may_carry_a_token(endpoint):
        bare = next(each.target for each in endpoint.ways if not _is_private(each))
        rule = f"a token goes over TLS, a unix socket or loopback only: dss://{bare}"
        raise IllegalArgument(argument=f"endpoint {endpoint.text}", rule=rule)
    return Credentials(**said)


def may_carry_a_token(endpoint: Endpoint) -> bool:
    """Whether nobody else can read what is sent by any way to the endpoint."""
    return all(map(_is_private, endpoint.ways))


def _is_private(endpoint: Endpoint) -> bool:
    return endpoint.tls or endpoint.is_local or _is_loopback(endpoint.target)


def read_file(path: Path, what: str) -> bytes:
    """The bytes of a file.

    Raises:
        IllegalConfig: it cannot be read, or is too large for what it is to be.
    """
    try:
        with path.open("rb") as file:
            found = file.read(FILE_BYTES_MAX + 1)
    except OSError as failed:
        raise IllegalConfig(source=f"{what} {path}", reason=failed.strerror) from failed
    if not found or len(found) > FILE_BYTES_MAX:
        raise IllegalConfig(source=f"{what} {path}", reason="it is empty, or no such file")
    return found


NOTHING_TO_SHOW = Credentials()


class TokenFile:
    """A token, read again when its file changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._token = ""

    def token(self) -> str:
        """The token as it is now.

        Raises:
            IllegalConfig: it cannot be read, others may read it, or it is none.
        """
        try:
            found = self._path.stat()
        except OSError as failed:
            raise self._wrong(failed.strerror) from failed
        stamp = found.st_ino, found.st_mtime_ns, found.st_size
        if stamp != self._stamp:
            if found.st_mode & _OTHERS:
                raise self._wrong(f"others may read it: chmod 600 {self._path}")
            self._token = self._read()
            self._stamp = stamp
        return self._token

    def _read(self) -> str:
        text = read_file(self._path, "token file").strip()
        is_one = text.isascii() and text.decode().isprintable() and b" " not in text
        if not text or len(text) > TOKEN_BYTES_MAX or not is_one:
            raise self._wrong("it holds one token, in one line, and nothing else")
        return text.decode()

    def _wrong(self, reason: str | None) -> IllegalConfig:
        return IllegalConfig(source=f"token file {self._path}", reason=reason)


def _path(text: str | os.PathLike[str] | None) -> Path | None:
    return Path(text).expanduser().absolute() if text else None


def _is_a_token(token_file: str | os.PathLike[str] | None) -> bool:
    """Whether the argument is the token itself, instead of a path. It must not be repeated then."""
    text = os.fspath(token_file) if token_file else ""
    return text.startswith(TOKEN_PREFIX) and len(text) >= TOKEN_BYTES_MIN and "/" not in text


def _require_tls(endpoint: Endpoint, said: Mapping[str, Path | None]) -> None:
    if any(each.tls for each in endpoint.ways):
        return
    for name in ("ca", "cert", "key"):
        if said[name] is not None:
            rule = "it is for an endpoint with TLS: dss://HOST:PORT"
            raise IllegalArgument(argument=name, rule=rule)


def _is_loopback(target: str) -> bool:
    host = target.rpartition(":")[0].removeprefix("[").removesuffix("]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
