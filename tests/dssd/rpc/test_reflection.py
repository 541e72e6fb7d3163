"""What tools like grpcurl find out of a daemon."""

from collections.abc import Awaitable, Callable

import grpc.aio
import pytest
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

from dssd.rpc.server import SERVICES
from support.daemon_process import running

Asking = Callable[[reflection_pb2.ServerReflectionRequest], Awaitable[bytes]]


async def services_told(target: str) -> set[str]:
    """What a tool finds out by asking."""
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    async with grpc.aio.insecure_channel(target) as channel:
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([asked]))
        reply = await call.read()
        return {service.name for service in reply.list_services_response.service}


async def test_tools_may_ask_what_is_served_where_that_is_wanted() -> None:
    async with running("--dev", "--reflection") as daemon:
        told = await services_told(daemon.endpoint)
    assert {*SERVICES, "grpc.health.v1.Health"} < told


async def test_tools_may_not_ask_otherwise() -> None:
    method = f"/{reflection.SERVICE_NAME}/ServerReflectionInfo"
    async with running("--dev") as daemon, grpc.aio.insecure_channel(daemon.endpoint) as channel:
        # The refusal may overtake the first message of a stream; one message goes with the call.
        asking: Asking = channel.unary_unary(method, _as_bytes)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await asking(reflection_pb2.ServerReflectionRequest(list_services=""))
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


def _as_bytes(asked: reflection_pb2.ServerReflectionRequest) -> bytes:
    return bytes(asked.SerializeToString())
