"""The guard in front of a real server: how calls end, and what the daemon hears of it."""

import asyncio
import errno
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from dss_api.v1 import log_pb2, log_pb2_grpc, types_pb2
from dss_core.errors import TopicNotFound
from dssd.addresses import UnixAddress
from dssd.rpc.errors import ERROR_METADATA_KEY
from dssd.rpc.server import RpcServer
from support.audits import unaudited, uncounted
from support.raw_http2 import RawPeer, message_head

Context = grpc.aio.ServicerContext[Any, Any]


class Servicer(log_pb2_grpc.LogServicer):
    """Does as it was told."""

    def __init__(self, act: Callable[[], Awaitable[None]]) -> None:
        self._act = act
        self.closed = asyncio.Event()

    async def Publish(
        self, request: log_pb2.PublishRequest, context: Context
    ) -> log_pb2.PublishReply:
        await self._act()
        return log_pb2.PublishReply()

    async def Read(
        self, request: log_pb2.ReadRequest, context: Context
    ) -> AsyncIterator[log_pb2.ReadReply]:
        try:
            yield log_pb2.ReadReply(streams=["a/0/0"])
            await self._act()
            while True:
                yield log_pb2.ReadReply(frames=bytes(100_000))
        finally:
            self.closed.set()

    async def Runs(self, request: log_pb2.RunsRequest, context: Context) -> log_pb2.RunsReply:
        return log_pb2.RunsReply()

    async def Produce(
        self, request_iterator: AsyncIterator[log_pb2.ProduceRequest], context: Context
    ) -> AsyncIterator[log_pb2.ProduceReply]:
        async for request in request_iterator:
            yield log_pb2.ProduceReply(acks=[log_pb2.ProduceAck(sequence=len(request.frames))])


class Flood(Servicer):
    """Answers without end while it does as it was told, as a session does."""

    async def Produce(  # type: ignore[override] # the guard takes both kinds
        self, request_iterator: AsyncIterator[log_pb2.ProduceRequest], context: Context
    ) -> None:
        async def answer() -> None:
            while True:
                await context.write(log_pb2.ProduceReply(acks=[log_pb2.ProduceAck()] * 50_000))

        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(answer())
                tasks.create_task(self._act())  # type: ignore[arg-type]
        finally:
            self.closed.set()


class Served:
    """A server with one servicer, and what crashed in it."""

    def __init__(self, path: Path, stub: log_pb2_grpc.LogStub, servicer: Servicer) -> None:
        self.path = path
        self.stub = stub
        self.servicer = servicer
        self.crashes: list[BaseException] = []


@asynccontextmanager
async def serving(
    act: Callable[[], Awaitable[None]], kind: type[Servicer] = Servicer
) -> AsyncIterator[Served]:
    servicer = kind(act)
    crashes: list[BaseException] = []
    server = RpcServer(
        [lambda own: log_pb2_grpc.add_LogServicer_to_server(servicer, own)],
        crashes.append,
        unaudited(),
        uncounted(),
    )
    with tempfile.TemporaryDirectory(prefix="dss-") as directory:
        address = UnixAddress(Path(directory) / "s")
        server.bind([address])
        await server.start()
        async with grpc.aio.insecure_channel(address.target) as channel:
            served = Served(address.path, log_pb2_grpc.LogStub(channel), servicer)
            served.crashes = crashes
            yield served
        await server.stop(None)


async def nothing() -> None:
    """Go on."""


async def refuse() -> None:
    raise TopicNotFound(topic="x" * 2_000)


async def blunder() -> None:
    raise ZeroDivisionError("a programmer's error")


def packed(error: grpc.aio.AioRpcError) -> types_pb2.Error:
    metadata = dict(error.trailing_metadata() or ())
    return types_pb2.Error.FromString(metadata[ERROR_METADATA_KEY])


async def test_a_condition_ends_a_unary_call_with_its_status_and_itself() -> None:
    async with serving(refuse) as served:
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await served.stub.Publish(log_pb2.PublishRequest())
    assert ended.value.code() == grpc.StatusCode.NOT_FOUND
    error = packed(ended.value)
    assert (error.code, error.definite) == ("DSS2001", True)
    assert error.fields["topic"].startswith("xxx")
    assert len(error.fields["topic"].encode()) == 512
    assert error.hint
    assert served.crashes == []


async def test_a_condition_ends_a_stream_after_what_was_sent() -> None:
    async with serving(refuse) as served:
        replies = aiter(served.stub.Read(log_pb2.ReadRequest()))
        assert list((await anext(replies)).streams) == ["a/0/0"]
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await anext(replies)
    assert packed(ended.value).code == "DSS2001"
    assert served.crashes == []


async def publish(stub: log_pb2_grpc.LogStub) -> None:
    await stub.Publish(log_pb2.PublishRequest())


async def read_all(stub: log_pb2_grpc.LogStub) -> None:
    async for _ in stub.Read(log_pb2.ReadRequest()):
        pass


async def find_no_descriptor() -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


async def fail_otherwise() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def refuse_at_length() -> None:
    raise TopicNotFound(topic="\N{SNOWMAN}\N{SNAKE}" * 2_000)


async def test_a_long_condition_in_any_script_reaches_the_caller() -> None:
    async with serving(refuse_at_length) as served:
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await served.stub.Publish(log_pb2.PublishRequest())
    error = packed(ended.value)
    assert error.code == "DSS2001"
    assert 500 < len(error.fields["topic"].encode()) <= 512


async def test_a_call_for_which_no_descriptor_is_left_is_refused_and_nothing_else() -> None:
    async with serving(find_no_descriptor) as served:
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await served.stub.Publish(log_pb2.PublishRequest())
    assert ended.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert packed(ended.value).code == "DSS3002"
    assert served.crashes == []


async def test_any_other_error_of_the_system_is_told_to_the_daemon() -> None:
    async with serving(fail_otherwise) as served:
        with pytest.raises(grpc.aio.AioRpcError):
            await served.stub.Publish(log_pb2.PublishRequest())
    assert [type(crash) for crash in served.crashes] == [OSError]


CALLS = {"Publish": publish, "Read": read_all}


@pytest.mark.parametrize("method", CALLS)
async def test_a_programmers_error_is_told_to_the_daemon(method: str) -> None:
    async with serving(blunder) as served:
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await CALLS[method](served.stub)
    assert ended.value.code() == grpc.StatusCode.UNKNOWN
    assert [type(crash) for crash in served.crashes] == [ZeroDivisionError]


async def test_a_client_that_goes_away_closes_the_answer_and_crashes_nothing() -> None:
    async with serving(nothing) as served:
        call = served.stub.Read(log_pb2.ReadRequest())
        await call.read()
        call.cancel()
        async with asyncio.timeout(60):
            await served.servicer.closed.wait()
    assert served.crashes == []


async def test_both_directions_of_a_stream_pass_the_guard() -> None:
    async with serving(nothing) as served:
        call = served.stub.Produce()
        replies = aiter(call)
        for frames in (1, 2):
            await call.write(log_pb2.ProduceRequest(frames=[b"x"] * frames))
            reply = await anext(replies)
            assert reply.acks[0].sequence == frames
        await call.done_writing()
        assert [reply async for reply in replies] == []
    assert served.crashes == []


async def test_who_reads_nothing_and_is_ended_costs_no_traceback_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(refuse_once_stuck, Flood) as served:
        with RawPeer(served.path) as peer:

            def begin() -> None:
                peer.greet()
                peer.data(peer.call("/dss_api.v1.Log/Produce"), message_head(0))

            await asyncio.to_thread(begin)
            await served.servicer.closed.wait()
        # It was ended by then; another call behind it shows that gRPC has logged what it would.
        with pytest.raises(grpc.aio.AioRpcError):
            await served.stub.Publish(log_pb2.PublishRequest())
        assert not served.crashes
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def refuse_once_stuck() -> None:
    """Refuse when the loop has nothing to do: what is written is on its way by then."""
    for _ in range(100):
        await asyncio.sleep(0)
    await refuse()
