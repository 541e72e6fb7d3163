from pathlib import Path
from socket import create_server

import grpc
import grpc.aio
import pytest

from dss_api.v1 import topics_pb2
from dss_client._connection import Connection
from dss_client._endpoint import resolve
from dss_core.errors import (
    PASSING,
    CallUnknown,
    Overloaded,
    TimedOut,
    UnknownCondition,
    Unreachable,
)


def failed(status: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(status, nothing, nothing, details)


async def test_a_daemon_that_is_there_but_never_speaks_is_late_and_not_unreachable() -> None:
    # Its queue takes connections, and nobody takes them from there.
    mute = create_server(("127.0.0.1", 0))
    connection = Connection(resolve(f"127.0.0.1:{mute.getsockname()[1]}"))
    try:
        # Longer than the transport pauses between two attempts to connect.
        call = connection.topics.List(topics_pb2.ListTopicsRequest(), timeout=0.8)
        with pytest.raises(TimedOut):
            await connection.answer(call)
    finally:
        await connection.close()
        mute.close()


async def test_a_daemon_that_is_not_there_is_unreachable(socket: Path) -> None:
    connection = Connection(resolve(f"unix:{socket}"))
    try:
        call = connection.topics.List(topics_pb2.ListTopicsRequest(), timeout=60)
        with pytest.raises(Unreachable):
            await connection.answer(call)
    finally:
        await connection.close()


async def test_a_server_without_the_call_is_said_to_be_no_daemon(tmp_path: Path) -> None:
    server = grpc.aio.server()
    server.add_insecure_port(f"unix:{tmp_path}/s")
    await server.start()
    connection = Connection(resolve(f"unix:{tmp_path}/s"))
    with pytest.raises(CallUnknown, match="is no DSS daemon") as unknown:
        await connection.answer(connection.topics.List(topics_pb2.ListTopicsRequest()))
    assert (unknown.value.definite, unknown.value.exit_code) == (True, 3)
    await connection.close()
    await server.stop(None)


async def test_a_host_that_has_no_address_is_unreachable(socket: Path) -> None:
    connection = Connection(resolve(f"unix:{socket}"))
    for said in ("DNS resolution failed for a:1", "errors resolving a:1: Domain name not found"):
        away = connection.translated(failed(grpc.StatusCode.UNAVAILABLE, said))
        assert isinstance(away, Unreachable)
    await connection.close()


async def test_exhaustion_without_a_condition_of_ours_passes(socket: Path) -> None:
    connection = Connection(resolve(f"unix:{socket}"))
    exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
    passing = connection.translated(failed(exhausted, "Concurrent RPC limit exceeded!"))
    assert isinstance(passing, Overloaded)
    assert isinstance(passing, PASSING)
    lasting = connection.translated(failed(exhausted, "Received message larger than max (9 vs. 4)"))
    assert isinstance(lasting, UnknownCondition)
    await connection.close()
