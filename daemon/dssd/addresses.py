"""Where the daemon listens: ``unix:PATH`` or ``HOST:PORT``.

Invariant: an address that was parsed may be bound without further thought: a unix path fits into
the kernel's bound, a TCP host is loopback.
"""

import errno
import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path

from dss_core.errors import AddressInUse, IllegalConfig, SocketPathTooLong
from dss_core.limits import UNIX_SOCKET_PATH_BYTES_MAX


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A unix socket."""

    path: Path

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
    """A TCP port on the loopback interface; port 0 lets the system choose."""

    host: str
    port: int

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
            # As servers do: else the end of an older connection would count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
            except OSError as error:
                # What else there may be is told by the server that listens there.
                if error.errno == errno.EADDRINUSE:
                    raise AddressInUse(address=self, reason=error.strerror) from error

    def __str__(self) -> str:
        """As people write it."""
        return self.target


Address = UnixAddress | TcpAddress


def parse_address(text: str, option: str = "listen") -> Address:
    """Read ``unix:PATH`` or ``HOST:PORT``; the option is named where it is wrong.

    Raises:
        SocketPathTooLong: a unix socket cannot have that path.
        IllegalConfig: another form, or a host beyond loopback.
    """
    if text.startswith("unix:"):
        return unix_address(Path(text.removeprefix("unix:")))
    host, colon, port = text.rpartition(":")
    if not (colon and port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65_536):
        raise IllegalConfig(source=f"{option} {text}", reason="write unix:PATH or HOST:PORT")
    host = host.removeprefix("[").removesuffix("]")
    if not _is_loopback(host):
        raise IllegalConfig(
            source=f"{option} {text}",
            reason="without TLS, TCP is allowed on loopback only, for example 127.0.0.1:7233",
        )
    return TcpAddress(host, int(port))


def unix_address(path: Path) -> UnixAddress:
    """The socket of that path, made absolute.

    Raises:
        SocketPathTooLong: a unix socket cannot have that path.
        IllegalConfig: the path is empty or has a character that no address can carry.
    """
    absolute = str(path.expanduser().absolute())
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
