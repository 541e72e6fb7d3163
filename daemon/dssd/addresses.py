"""Listening addresses: ``unix:PATH`` or ``HOST:PORT``, optionally followed by a policy.

Invariant: an address that was parsed may be bound without further thought: a unix path fits into
the kernel's bound, and a TCP host beyond loopback has TLS and a policy that says who is served.
"""

import errno
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from dss_core.default_paths import expanded
from dss_core.errors import AddressInUse, IllegalConfig, SocketPathTooLong
from dss_core.limits import UNIX_SOCKET_PATH_BYTES_MAX

BEYOND_LOOPBACK = (
    "without TLS and a policy, TCP is allowed on loopback only. Write {host}:{port},tls,"
    "clients=tokens with --tls-cert and --tls-key; or listen on 127.0.0.1:{port}, and reach that "
    "from another host by ssh -L {port}:127.0.0.1:{port} THIS-HOST"
)


class Clients(StrEnum):
    """Whom a listener serves."""

    ANYBODY = "anybody"
    """Who reaches it."""
    CERTS = "certs"
    """Who has a certificate of a known authority, and a name that is known."""
    TOKENS = "tokens"


class CertificateName(StrEnum):
    """Which field of a certificate names its client. It must have exactly one value."""

    CN = "cn"
    URI = "uri"


@dataclass(frozen=True, slots=True)
class Policy:
    """Which clients a listener admits, and how. Configuration decides this, never the presence of
    tokens."""

    tls: bool = False
    clients: Clients = Clients.ANYBODY
    names: CertificateName = CertificateName.CN


OPEN = Policy()

_TLS = "tls"
_RULES = frozenset({_TLS, "clients", "names"})


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A unix socket."""

    path: Path

    @property
    def policy(self) -> Policy:
        """Its directory says who reaches it."""
        return OPEN

    @property
    def target(self) -> str:
        """How gRPC names it."""
        return f"unix:{self.path}"

    def __str__(self) -> str:
        """As people write it."""
        return self.target

    def clear_stale(self) -> None:
        """Remove a socket that a dead process left. The caller holds the directory's lock.

        Raises:
            AddressInUse: a living process listens there, or something else has that name.
        """
        if not self.path.exists():
            return
        if not self.path.is_socket():
            raise AddressInUse(address=self, reason="there is a file of that name")
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.path))
            except ConnectionRefusedError:
                self.path.unlink()
                return
            except OSError as error:
                raise AddressInUse(address=self, reason=error.strerror) from error
        raise AddressInUse(address=self, reason="another process listens there")


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A TCP port; port 0 lets the system choose."""

    host: str
    port: int
    policy: Policy = OPEN

    @property
    def target(self) -> str:
        """How gRPC names it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def clear_stale(self) -> None:
        """Nothing is left of a dead process.

        Raises:
            AddressInUse: a living process listens there.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        with socket.socket(family) as probe:
            # As servers do: else a closing older connection would make the address look busy.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
            except OSError as error:
                # Any other error is left to the server, which reports it when it binds.
                if error.errno == errno.EADDRINUSE:
                    raise AddressInUse(address=self, reason=error.strerror) from error

    def __str__(self) -> str:
        """As clients write it."""
        return f"dss://{self.target}" if self.policy.tls else self.target


Address = UnixAddress | TcpAddress


def parse_address(text: str, option: str = "listen") -> Address:
    """Read ``unix:PATH`` or ``HOST:PORT``, maybe with a policy: ``,tls,clients=tokens``.

    Where it is wrong, the option is named.

    Raises:
        SocketPathTooLong: a unix socket cannot have that path.
        IllegalConfig: another form, or a host beyond loopback without TLS and a policy.
    """
    if text.startswith("unix:"):
        return unix_address(Path(text.removeprefix("unix:")))
    where, *rules = text.split(",")
    host, colon, port = where.rpartition(":")
    if not (colon and port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65_536):
        raise IllegalConfig(source=f"{option} {text}", reason="write unix:PATH or HOST:PORT")
    host = host.removeprefix("[").removesuffix("]")
    policy = _policy(rules, f"{option} {text}")
    if not policy.tls and not _is_loopback(host):
        reason = BEYOND_LOOPBACK.format(host=host, port=port)
        raise IllegalConfig(source=f"{option} {text}", reason=reason)
    return TcpAddress(host, int(port), policy)


def _policy(rules: Sequence[str], source: str) -> Policy:
    """What stands behind an address.

    Raises:
        IllegalConfig: it is no policy, or one that keeps nobody out.
    """
    try:
        said = _said(rules)
        clients = Clients(said.get("clients", Clients.ANYBODY))
        names = CertificateName(said.get("names", CertificateName.CN))
    except ValueError as wrong:
        reason = f"{wrong}; write HOST:PORT,tls,clients=tokens or HOST:PORT,tls,clients=certs"
        raise IllegalConfig(source=source, reason=reason) from wrong
    policy = Policy(_TLS in said, clients, names)
    if policy.tls and clients is Clients.ANYBODY:
        raise IllegalConfig(source=source, reason="say who is served: clients=certs or tokens")
    if clients is Clients.CERTS and not policy.tls:
        raise IllegalConfig(source=source, reason="certificates need TLS: write tls before them")
    if "names" in said and clients is not Clients.CERTS:
        raise IllegalConfig(source=source, reason="names= is for clients=certs")
    return policy


def _said(rules: Sequence[str]) -> dict[str, str]:
    said: dict[str, str] = {}
    for rule in rules:
        name, equals, value = rule.partition("=")
        if name in said or name not in _RULES or bool(equals) == (name == _TLS):
            raise ValueError(f"'{rule}' is not understood")
        said[name] = value
    return said


def unix_address(path: Path) -> UnixAddress:
    """The socket of that path, made absolute.

    Raises:
        SocketPathTooLong: a unix socket cannot have that path.
        IllegalConfig: the path is empty or has a character that no address can carry.
    """
    absolute = str(expanded(path).absolute())
    if not path.name or "\0" in absolute:
        raise IllegalConfig(source=f"listen unix:{path}", reason="it names no file")
    try:
        length = len(absolute.encode())
    except UnicodeEncodeError as broken:
        source = f"listen unix:{path}".encode(errors="backslashreplace").decode()
        raise IllegalConfig(source=source, reason="it is not UTF-8") from broken
    if length > UNIX_SOCKET_PATH_BYTES_MAX:
        raise SocketPathTooLong(path=absolute, length=length, limit=UNIX_SOCKET_PATH_BYTES_MAX)
    return UnixAddress(Path(absolute))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
