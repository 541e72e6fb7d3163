"""Calls that are open: how many a peer has, and how long it may let the daemon wait."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from dss_api.v1 import log_pb2, log_pb2_grpc
from dss_core.errors import Overloaded, TimedOut
from dssd import heap
from dssd.addresses import UnixAddress
from dssd.events.kinds import PEER_REFUSED
from dssd.events.model import Event
from dssd.rpc import arrivals, calls
from dssd.rpc.arrivals import ArrivalWatch
from dssd.rpc.calls import PEER_CALLS_MIN, UNNAMED, Calls
from dssd.rpc.server import RpcServer
from dssd.rpc.unix_peers import Process
from support.audits import unaudited
from support.raw_http2 import HEADERS, RawPeer, message_head
from support.raw_stubs import condition_of

Context = grpc.aio.ServicerContext[Any, Any]
Call = grpc.aio.StreamStreamCall[log_pb2.ProduceRequest, log_pb2.ProduceReply]

CALLS_MAX = 24
PRODUCE = "/dss_api.v1.Log/Produce"
PUBLISH = "/dss_api.v1.Log/Publish"
MIB = 1 << 20

FEW = Process(7, 7, "few", "few")
"""A peer that has few calls."""


class Servicer(log_pb2_grpc.LogServicer):
    """Answers each request."""

    async def Publish(
        self, request: log_pb2.PublishRequest, context: Context
    ) -> log_pb2.PublishReply:
        return log_pb2.PublishReply()

    async def Produce(
        self, request_iterator: AsyncIterator[log_pb2.ProduceRequest], context: Context
    ) -> AsyncIterator[log_pb2.ProduceReply]:
        async for _ in request_iterator:
            yield log_pb2.ProduceReply()


class Served:
    """A server, its calls, and what it told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.told: list[Event] = []
        self.calls = Calls(CALLS_MAX, self.told.append, {FEW.pid: FEW}.get)
        self.server = RpcServer(
            [
                lambda own: log_pb2_grpc.add_LogServicer_to_server(
                    Servicer(),  # type: ignore[abstract] # the others are not called
                    own,
                )
            ],
            self._crash,
            unaudited(),
            self.calls,
        )

    @staticmethod
    def _crash(error: BaseException) -> None:
        raise AssertionError from error

    async def until_open(self, count: int) -> None:
        while self.calls.held.get(UNNAMED, 0) != count:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.001)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dss-") as directory:
        yield Path(directory)


@pytest.fixture
async def served(folder: Path) -> AsyncIterator[Served]:
    made = Served(folder / "s")
    made.server.bind([UnixAddress(made.path)])
    await made.server.start()
    async with asyncio.timeout(60):
        yield made
    await made.server.stop(None)


@pytest.fixture
async def stub(served: Served) -> AsyncIterator[log_pb2_grpc.LogStub]:
    async with grpc.aio.insecure_channel(f"unix:{served.path}") as channel:
        yield log_pb2_grpc.LogStub(channel)


@pytest.mark.parametrize("method", [PRODUCE, PUBLISH])
async def test_a_call_whose_first_message_stays_away_is_ended(
    method: str, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "FIRST_MESSAGE_S", 0.05)

    def half() -> None:
        with RawPeer(served.path) as peer:
            peer.greet()
            stream = peer.call(method)
            peer.data(stream, message_head(MIB) + b"half")
            peer.heard(HEADERS, stream)

    await asyncio.to_thread(half)
    await served.until_open(0)


async def test_who_sends_no_first_message_is_told_so(
    stub: log_pb2_grpc.LogStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "FIRST_MESSAGE_S", 0.05)
    call = stub.Produce()
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await call.read()
    assert condition_of(ended.value).code == TimedOut.code


async def test_a_later_message_may_take_longer(
    stub: log_pb2_grpc.LogStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "FIRST_MESSAGE_S", 1.0)
    call = stub.Produce()
    await call.write(log_pb2.ProduceRequest())
    await call.read()
    with pytest.raises(grpc.aio.AioRpcError):
        await stub.Produce().read()  # it began later, and its first message stays away
    await call.write(log_pb2.ProduceRequest())
    assert await call.read() is not grpc.aio.EOF
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF


async def test_a_peer_gets_no_more_calls_than_are_left_free(
    served: Served, stub: log_pb2_grpc.LogStub
) -> None:
    opened = [stub.Produce() for _ in range(CALLS_MAX // 2)]
    await served.until_open(CALLS_MAX // 2)
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await stub.Publish(log_pb2.PublishRequest())
    assert condition_of(ended.value).code == Overloaded.code
    assert served.told[0].kind is PEER_REFUSED
    opened[0].cancel()
    await served.until_open(CALLS_MAX // 2 - 1)
    await stub.Publish(log_pb2.PublishRequest())


async def test_when_memory_is_short_half_messages_give_it_back(
    served: Served, stub: log_pb2_grpc.LogStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "ARRIVAL_BYTES_MAX", 2 * MIB)
    monkeypatch.setattr(arrivals, "HEAP_BOUNDED_BYTES", 8 * MIB)
    monkeypatch.setattr(arrivals, "CALL_HEAP_BYTES", 0)
    monkeypatch.setattr(calls, "ARRIVAL_QUIET_S", 0.0)
    watch = ArrivalWatch([served.calls], [], served.told.append, lambda: 0)
    with RawPeer(served.path) as peer:

        def halves() -> None:
            peer.greet()
            for _ in range(8):
                stream = peer.call(PRODUCE)
                peer.data(stream, message_head(0) + message_head(4 * MIB) + bytes(4 * MIB - 1))

        await asyncio.to_thread(halves)
        young = stub.Produce()
        await young.write(log_pb2.ProduceRequest())
        await young.read()
        # What the peer has sent arrives piece by piece.
        while not await watch.look():  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.001)
        ended = int(served.told[-1].fields["ended"])
        assert ended < 8
        await served.until_open(9 - ended)
        await young.write(log_pb2.ProduceRequest())
        assert await young.read() is not grpc.aio.EOF
        await young.done_writing()
        found = heap.figures()
        assert found is not None
        assert found.in_use_bytes <= watch.allowed_bytes()


async def test_whoever_said_something_lately_is_left_alone_when_memory_is_short(
    served: Served, stub: log_pb2_grpc.LogStub
) -> None:
    call = stub.Produce()
    await call.write(log_pb2.ProduceRequest())
    await call.read()
    assert served.calls.end_waits(1) == {}


async def test_who_has_few_calls_is_left_alone_as_long_as_the_others_may_hold_the_excess(
    served: Served, stub: log_pb2_grpc.LogStub
) -> None:
    named = [("grpc.primary_user_agent", f"few pid/{FEW.pid}")]
    async with grpc.aio.insecure_channel(f"unix:{served.path}", options=named) as channel:
        few = await waiting(log_pb2_grpc.LogStub(channel))
        [own] = served.calls.open_calls()
        many = [await waiting(stub) for _ in range(PEER_CALLS_MIN + 1)]
        while any(  # noqa: ASYNC110 - nobody is told
            call.quiet_since is None for call in served.calls.open_calls()
        ):
            await asyncio.sleep(0.001)
        assert own.quiet_since is not None
        own.quiet_since -= 60  # The others have waited for less than a moment.
        assert served.calls.end_waits(PEER_CALLS_MIN + 1) == {}
        assert served.calls.end_waits(PEER_CALLS_MIN + 2) == {FEW: 1}
        few.cancel()
        for call in many:
            call.cancel()


async def waiting(stub: log_pb2_grpc.LogStub) -> Call:
    """A call that the daemon has answered, and waits for more of."""
    call = stub.Produce()
    await call.write(log_pb2.ProduceRequest())
    await call.read()
    return call
