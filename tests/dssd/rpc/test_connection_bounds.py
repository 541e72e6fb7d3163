"""Who is connected, and what a peer loses that has too many connections."""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from dss_sim.sessions.timeline import Timeline, VirtualLoop
from dssd.addresses import Address, TcpAddress, UnixAddress
from dssd.events.kinds import PEER_REFUSED
from dssd.events.model import Event, Note, unheard
from dssd.rpc.connection_bounds import (
    CONNECTIONS_LOOK_AGAIN_S,
    PEER_CONNECTIONS_MIN,
    Connections,
    place_of,
)
from dssd.rpc.unix_peers import Process

MOST = 2 * PEER_CONNECTIONS_MIN + 4
ROUNDS = 10


class Listener:
    """A listening socket, and both ends of each connection to it."""

    def __init__(self, listening: socket.socket, stack: ExitStack) -> None:
        self.listening = stack.enter_context(listening)
        self.stack = stack
        self.own: list[socket.socket] = []

    def connect(self, count: int) -> None:
        for _ in range(count):
            peer = self.stack.enter_context(socket.socket(self.listening.family))
            peer.connect(self.listening.getsockname())
            own = self.stack.enter_context(self.listening.accept()[0])
            own.setblocking(False)
            self.own.append(own)

    def cut(self) -> list[bool]:
        return [is_cut(own) for own in self.own]


def is_cut(own: socket.socket) -> bool:
    try:
        return own.recv(1) == b""
    except BlockingIOError:
        return False


@pytest.fixture
def listener() -> Iterator[Listener]:
    with tempfile.TemporaryDirectory(prefix="dss-") as directory, ExitStack() as stack:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(Path(directory) / "s"))
        listening.listen(100)
        yield Listener(listening, stack)


def address(listener: Listener) -> UnixAddress:
    return UnixAddress(Path(listener.listening.getsockname()))


def watching(where: Address, note: Note) -> Connections:
    connections = Connections(note, MOST)
    connections.listens_at([where])
    return connections


async def test_a_process_is_known_by_what_the_kernel_says(listener: Listener) -> None:
    connections = watching(address(listener), unheard)
    listener.connect(3)
    assert not await connections.look()
    ((peer, count),) = connections.held.items()
    assert isinstance(peer, Process)
    assert (peer.pid, peer.uid, count) == (os.getpid(), os.getuid(), 3)
    assert connections.process(os.getpid()) == peer
    assert not any(listener.cut())


async def test_a_peer_on_tcp_is_known_by_its_address() -> None:
    with ExitStack() as stack:
        listener = Listener(socket.create_server(("127.0.0.1", 0)), stack)
        port = listener.listening.getsockname()[1]
        connections = watching(TcpAddress("127.0.0.1", port), unheard)
        listener.connect(2)
        await connections.look()
        assert dict(connections.held) == {"127.0.0.1": 2}


async def test_behind_one_address_only_who_has_too_many_loses_some() -> None:
    with ExitStack() as stack:
        listener = Listener(socket.create_server(("127.0.0.1", 0)), stack)
        port = listener.listening.getsockname()[1]
        named: dict[str, str] = {}
        connections = Connections(unheard, MOST, lambda: named)
        connections.listens_at([TcpAddress("127.0.0.1", port)])
        listener.connect(MOST - 1)
        few = [place_of(*own.getpeername()) for own in listener.own[:3]]
        named |= dict.fromkeys(few, "token:few")
        assert await connections.look(), "all share an address"
        assert connections.held == {"token:few": 3, "127.0.0.1": MOST - 4}
        assert listener.cut()[:3] == [False] * 3
        named.clear()
        await connections.look()
        assert connections.held["token:few"] == 3, "a connection stays who said so"


async def test_a_peer_with_more_than_is_left_free_loses_its_newest(listener: Listener) -> None:
    told: list[Event] = []
    connections = watching(address(listener), told.append)
    listener.connect(2)
    await connections.look()
    listener.connect(MOST - 2)
    assert await connections.look()
    cut = listener.cut()
    assert cut == [False] * (MOST // 2) + [True] * (MOST - MOST // 2)
    (event,) = told
    assert event.kind is PEER_REFUSED
    assert event.fields == {"connections": str(MOST), "cut": str(MOST - MOST // 2)}
    assert f"pid {os.getpid()}" in event.subject


def test_who_comes_back_at_once_is_cut_again_soon(listener: Listener) -> None:
    timeline = Timeline()
    loop = VirtualLoop(timeline)  # type: ignore[abstract] # files and sockets are not asked for
    cut_at_s: list[float] = []
    connections = watching(address(listener), lambda _: cut_at_s.append(loop.time()))
    listener.connect(MOST)
    looking = loop.create_task(connections.run())
    # Those of a peer that are cut still count while their descriptors are open, as those do with
    # which it comes back.
    while len(cut_at_s) < ROUNDS:
        timeline.step()
    rests_s = [later - sooner for sooner, later in pairwise(cut_at_s)]
    # A machine that stands still makes single looks long, and so the rests behind them.
    assert median(rests_s) == pytest.approx(CONNECTIONS_LOOK_AGAIN_S, rel=0.1)
    looking.cancel()
    timeline.step()


async def test_other_sockets_of_the_process_are_left_alone(listener: Listener) -> None:
    with tempfile.TemporaryDirectory(prefix="dss-") as elsewhere:
        connections = watching(UnixAddress(Path(elsewhere) / "s"), unheard)
        listener.connect(MOST)
        assert not await connections.look()
        assert not connections.held
        assert not any(listener.cut())
