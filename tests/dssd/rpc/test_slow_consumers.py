"""A connection whose peer takes nothing is cut; nobody else's is."""

import fcntl
import os
import select
import socket
import tempfile
import termios
from array import array
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from dssd.addresses import Address, TcpAddress, UnixAddress
from dssd.events.kinds import CONSUMER_SLOW
from dssd.events.model import Event, unheard
from dssd.rpc.slow_consumers import CLOG_LOOKS_MAX, SlowConsumerWatch

SETTLED_S = 0.05
"""A kernel that is busy moves what was written within that time."""
Listening = Callable[[], AbstractContextManager[tuple[socket.socket, Address]]]


@contextmanager
def on_a_unix_socket() -> Iterator[tuple[socket.socket, Address]]:
    """A listener, and its address."""
    with (
        tempfile.TemporaryDirectory(prefix="dss-") as directory,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        path = Path(directory) / "s"
        listener.bind(str(path))
        listener.listen()
        yield listener, UnixAddress(path)


@contextmanager
def on_a_port() -> Iterator[tuple[socket.socket, Address]]:
    """The same on TCP."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener, TcpAddress(*listener.getsockname())


@contextmanager
def connection(listener: socket.socket) -> Iterator[tuple[socket.socket, socket.socket]]:
    """The daemon's end, and the peer's."""
    with socket.socket(listener.family) as peer:
        peer.connect(listener.getsockname())
        own, _ = listener.accept()
        with own:
            own.setblocking(False)
            yield own, peer


def fill(own: socket.socket) -> None:
    """Write until the socket takes no more, also once the kernel has brought it to the peer."""
    while select.select([], [own], [], SETTLED_S)[1]:
        with suppress(BlockingIOError):
            while True:
                own.send(bytes(1_000))


def unread_bytes(own: socket.socket) -> int:
    """What the peer has not taken."""
    found = array("i", [0])
    fcntl.ioctl(own, termios.TIOCOUTQ, found)
    return found[0]


def is_cut(own: socket.socket) -> bool:
    """Whether the daemon's end finds that nothing will come any more."""
    try:
        return own.recv(1) == b""
    except BlockingIOError:
        return False


@pytest.mark.parametrize("listening", [on_a_unix_socket, on_a_port])
async def test_a_peer_that_reads_nothing_is_cut_at_the_last_look(listening: Listening) -> None:
    with listening() as (listener, address), connection(listener) as (own, peer):
        fill(own)
        looks, unread = 0, -1
        while not is_cut(own):
            # The kernel of a busy machine may still bring some to the peer: that begins anew.
            if unread != (unread := unread_bytes(own)):
                watch, looks = SlowConsumerWatch([address], unheard), 0
            await watch.look()
            looks += 1
        assert looks == CLOG_LOOKS_MAX
        while peer.recv(1 << 20):
            continue
        await watch.look()


@pytest.mark.parametrize("listening", [on_a_unix_socket, on_a_port])
async def test_a_cut_is_told_once_with_the_peer_and_what_it_left(listening: Listening) -> None:
    told: list[Event] = []
    with listening() as (listener, address), connection(listener) as (own, peer):
        watch = SlowConsumerWatch([address], told.append)
        fill(own)
        while not told:
            await watch.look()
        [event] = told
        name = peer.getsockname()
        assert event.kind is CONSUMER_SLOW
        assert event.subject == (f"{name[0]}:{name[1]}" if name else f"process {os.getpid()}")
        assert int(event.fields["unread_bytes"]) > 0
        assert event.fields["unread_bytes"] in event.sentence


async def test_a_peer_that_reads_some_is_not_cut() -> None:
    with on_a_unix_socket() as (listener, address), connection(listener) as (own, peer):
        watch = SlowConsumerWatch([address], unheard)
        fill(own)
        for _ in range(3 * CLOG_LOOKS_MAX):
            await watch.look()
            peer.recv(1_000)
        assert not is_cut(own)


async def test_the_looks_are_counted_anew_once_the_peer_has_read_some() -> None:
    with on_a_unix_socket() as (listener, address), connection(listener) as (own, peer):
        watch = SlowConsumerWatch([address], unheard)
        fill(own)
        for _ in range(2):
            for _ in range(CLOG_LOOKS_MAX - 1):
                await watch.look()
            peer.recv(1_000)
        assert not is_cut(own)


async def test_a_peer_without_unread_bytes_is_not_cut() -> None:
    with on_a_unix_socket() as (listener, address), connection(listener) as (own, _):
        watch = SlowConsumerWatch([address], unheard)
        for _ in range(3 * CLOG_LOOKS_MAX):
            await watch.look()
        assert not is_cut(own)


async def test_a_full_socket_that_does_not_belong_to_the_daemon_is_left_alone() -> None:
    with on_a_unix_socket() as (_, address), on_a_unix_socket() as (other, _):
        watch = SlowConsumerWatch([address], unheard)
        own, peer = socket.socketpair()
        with own, peer, connection(other) as (elsewhere, _):
            for each in (own, elsewhere):
                each.setblocking(False)
                fill(each)
            for _ in range(3 * CLOG_LOOKS_MAX):
                await watch.look()
            assert not is_cut(own)
            assert not is_cut(elsewhere)


async def test_without_a_free_descriptor_it_looks_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with on_a_unix_socket() as (listener, address), connection(listener) as (own, _):
        watch = SlowConsumerWatch([address], unheard)
        fill(own)
        for _ in range(CLOG_LOOKS_MAX - 1):
            await watch.look()
        with monkeypatch.context() as short:
            short.setattr("dssd.rpc.sockets.DESCRIPTORS", Path("/nowhere"))
            await watch.look()
        assert not is_cut(own)
        await watch.look()
        assert is_cut(own)
