"""Looks at the sockets of the process leave everything else of it alone."""

import fcntl
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from dssd.addresses import UnixAddress
from dssd.events.model import unheard
from dssd.rpc.connection_bounds import PEER_CONNECTIONS_MIN, Connections
from dssd.rpc.slow_consumers import SlowConsumerWatch
from dssd.rpc.sockets import borrowed, pinned, socket_inode
from dssd.rpc.unix_peers import UnixPeers
from support.file_locks import locks_on


@pytest.fixture
def address() -> Iterator[UnixAddress]:
    """Of a listener, with one connection to it."""
    with tempfile.TemporaryDirectory(prefix="dss-") as directory, socket.socket(1) as listening:
        path = Path(directory) / "s"
        listening.bind(str(path))
        listening.listen()
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(path))
            own, _ = listening.accept()
            with own:
                yield UnixAddress(path)


def of_a_stranger(address: UnixAddress) -> Awaitable[object]:
    return UnixPeers([address]).find(1 << 30)


def of_connections(address: UnixAddress) -> Awaitable[object]:
    connections = Connections(unheard, 4 * PEER_CONNECTIONS_MIN)
    connections.listens_at([address])
    return connections.look()


def of_slow_consumers(address: UnixAddress) -> Awaitable[object]:
    return SlowConsumerWatch([address], unheard).look()


@pytest.mark.parametrize("look", [of_a_stranger, of_connections, of_slow_consumers])
async def test_a_look_at_the_sockets_drops_no_lock_of_a_file(
    address: UnixAddress, tmp_path: Path, look: Callable[[UnixAddress], Awaitable[object]]
) -> None:
    path = tmp_path / "store"
    with path.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = locks_on(path)
        await look(address)
        assert held
        assert locks_on(path) == held


def test_a_socket_that_was_borrowed_stays_open() -> None:
    one, other = socket.socketpair()
    with one, other:
        with borrowed(one.fileno()) as asked:
            assert asked.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
        one.send(b"x")
        assert other.recv(1) == b"x"


def test_a_number_that_stands_for_another_socket_is_not_taken_for_the_first() -> None:
    one, other = socket.socketpair()
    with one, other:
        inode = socket_inode(other.fileno())
        assert inode is not None
        with pytest.raises(OSError, match="non-socket"), pinned(one.fileno(), inode):
            pass
        with pinned(other.fileno(), inode) as connection:
            connection.shutdown(socket.SHUT_RDWR)
        assert one.recv(1) == b""
