"""Clients that take without giving: ``hostile.py KIND SOCKET COUNT``, until it is killed.

Each kind goes on as a stubborn one would: what the daemon cuts or refuses is tried again at once.
Prints one line when it has begun.
"""

import asyncio
import contextlib
import itertools
import os
import resource
import selectors
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc.aio

import dss_client
from dss_api.v1 import sessions_pb2, sessions_pb2_grpc, types_pb2
from dss_core.errors import DssError
from dss_core.frame import spans_of
from dss_core.progress import complement, normalised
from support.raw_http2 import PREFACE, SETTINGS, RawPeer, frame, message_head

PRODUCE = "/dss_api.v1.Log/Produce"
HALF_CALLS = 16
HALF_BYTES = 3 << 20
MESSAGE_BYTES = 4 << 20
AGAIN_S = 0.02
NAKS = 2_000
"""Refusals in a message."""
PING_S = 1.5
Attached = grpc.aio.StreamStreamCall[sessions_pb2.SessionUp, sessions_pb2.SessionDown]
BOUNDS = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 5 << 20))


def idle(path: Path, count: int) -> None:
    """Hold so many connections without a call, answer pings, and come back when cut."""
    with selectors.DefaultSelector() as selector:
        while True:
            for _ in range(min(64, count - len(selector.get_map()))):
                with contextlib.suppress(OSError):
                    peer = RawPeer(path)
                    peer.send(PREFACE + frame(SETTINGS, 0, 0, b""))
                    selector.register(peer.socket, selectors.EVENT_READ, peer)
            for key, _ in selector.select(0 if len(selector.get_map()) < count else 1):
                try:
                    key.data.take_frame()
                except OSError:
                    selector.unregister(key.fileobj)
                    key.data.socket.close()


def halves(path: Path, count: int) -> None:
    """Leave half of the largest message in many calls, over so many connections."""

    def connection() -> None:
        while True:
            with contextlib.suppress(OSError), RawPeer(path) as peer:
                peer.greet()
                for _ in range(HALF_CALLS):
                    stream = peer.call(PRODUCE)
                    peer.data(stream, message_head(0) + message_head(MESSAGE_BYTES))
                    peer.data(stream, bytes(HALF_BYTES))
                while True:
                    peer.take_frame()

    _in_threads(connection, count)


def garbage(path: Path, count: int) -> None:
    """Send what is no HTTP/2, or begins like it and goes wrong."""

    def connection() -> None:
        for turn in range(1 << 62):
            with contextlib.suppress(OSError), RawPeer(path) as peer:
                peer.send((b"", PREFACE)[turn % 2] + os.urandom(4_096))
                peer.is_cut(1)
            threading.Event().wait(AGAIN_S)

    _in_threads(connection, count)


def _in_threads(connection: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=connection) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def never_read(path: Path, number: int) -> None:
    """Subscribe with the largest credit, and read nothing."""
    async with grpc.aio.insecure_channel(f"unix:{path}", options=BOUNDS) as channel:
        call = sessions_pb2_grpc.SessionsStub(channel).Attach()
        await attach(call, f"never-{number}")
        await call.wait_for_connection()
        await call.code()


async def naks(path: Path, number: int) -> None:
    """Refuse every record at once, each by itself and no two for as long, to get it again.

    Not through the client library, which says at once what it refuses together.
    """
    async with grpc.aio.insecure_channel(f"unix:{path}", options=BOUNDS) as channel:
        call = sessions_pb2_grpc.SessionsStub(channel).Attach()
        await attach(call, f"naks-{number}")
        pinging = asyncio.create_task(pings(call), name="pings")
        try:
            async for item in call:
                if item.WhichOneof("item") == "deliver":
                    for settle in refusals(item.deliver):
                        batch = sessions_pb2.SettleBatch(settles=[settle])
                        await call.write(sessions_pb2.SessionUp(settle=batch))
        finally:
            pinging.cancel()


def refusals(deliver: sessions_pb2.Deliver) -> Iterator[sessions_pb2.Settle]:
    """All that was delivered, refused."""
    _, bases = spans_of(deliver.frames)
    mask = normalised((each.start, each.end) for each in deliver.mask)
    ranges = complement(mask, bases[0], bases[-1])
    handed_out = [types_pb2.Range(start=low, end=high) for low, high in ranges]
    yield sessions_pb2.Settle(grant=deliver.grant, frontier=ranges[-1][1], handed_out=handed_out)
    offsets = [at for low, high in ranges for at in range(low, high)]
    for first in range(0, len(offsets), NAKS):
        refused = offsets[first : first + NAKS]
        each = [sessions_pb2.Nak(start=at, end=at + 1, delay_ms=at & 1) for at in refused]
        yield sessions_pb2.Settle(grant=deliver.grant, naks=each)


async def pings(call: Attached) -> None:
    for token in itertools.count(1):
        await asyncio.sleep(PING_S)
        await call.write(sessions_pb2.SessionUp(ping=sessions_pb2.Ping(token=token)))


async def attach(call: Attached, name: str) -> None:
    """Open a session and subscribe for a group of its own."""
    up = sessions_pb2.SessionUp
    await call.write(up(open=sessions_pb2.Open(client_id=name)))
    start = types_pb2.Start(earliest=True)
    filter_ = f"$share/{name}/bench/#"
    await call.write(
        up(subscribe=sessions_pb2.Subscribe(subscription=1, filter=filter_, start=start))
    )


async def loops(path: Path, number: int) -> None:
    """Open a session, subscribe, leave."""
    async with (
        dss_client.connect(endpoint=f"unix:{path}") as client,
        client.subscribe(f"$share/loops-{number % 4}/bench/#"),
    ):
        await asyncio.sleep(AGAIN_S)


async def _again(kind: str, path: Path, number: int) -> None:
    while True:
        with contextlib.suppress(DssError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await ASYNC_KINDS[kind](path, number)
        await asyncio.sleep(AGAIN_S)


async def _all_of(kind: str, path: Path, count: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(_again(kind, path, number), name=f"{kind} {number}")


KINDS = {"idle": idle, "halves": halves, "garbage": garbage}
ASYNC_KINDS = {"never-read": never_read, "naks": naks, "loops": loops}


def main(kind: str, path: Path, count: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print("ready", flush=True)
    if kind in KINDS:
        KINDS[kind](path, count)
    else:
        asyncio.run(_all_of(kind, path, count))


main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
