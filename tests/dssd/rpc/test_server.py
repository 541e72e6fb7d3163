"""What the server does by itself: addresses, health, and the order of its life."""

import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dss_core.errors import AddressInUse
from dssd.addresses import TcpAddress, UnixAddress
from dssd.rpc.server import SERVICES, Capacity, RpcServer
from support.audits import unaudited, uncounted

Status = health_pb2.HealthCheckResponse


def server(connections_max: int = 100) -> RpcServer:
    def crash(error: BaseException) -> None:
        raise AssertionError from error

    return RpcServer([], crash, unaudited(), uncounted(), Capacity(connections_max))


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dss-") as directory:
        yield Path(directory) / "s"


async def health(target: str, service: str = "") -> int:
    async with grpc.aio.insecure_channel(target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        reply = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        return int(reply.status)


async def test_a_second_server_cannot_take_the_port_of_the_first() -> None:
    first, second = server(), server()
    (address,) = first.bind([TcpAddress("127.0.0.1", 0)])
    assert isinstance(address, TcpAddress)
    assert address.port > 0
    await first.start()
    with pytest.raises(AddressInUse):
        second.bind([address])
    await second.stop(None)
    await first.stop(None)


async def test_a_second_server_cannot_take_the_socket_of_the_first(path: Path) -> None:
    first, second = server(), server()
    first.bind([UnixAddress(path)])
    await first.start()
    await first.serving()
    with pytest.raises(AddressInUse):
        second.bind([UnixAddress(path)])
    await second.stop(None)
    assert await health(f"unix:{path}") == Status.SERVING
    await first.stop(None)


async def test_the_health_of_all_services_is_listed(path: Path) -> None:
    own = server()
    own.bind([UnixAddress(path)])
    await own.start()
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        listed = await health_pb2_grpc.HealthStub(channel).List(health_pb2.HealthListRequest())
    statuses = {name: each.status for name, each in listed.statuses.items()}
    assert statuses == dict.fromkeys(("", *SERVICES), Status.NOT_SERVING)
    await own.stop(None)


async def test_health_follows_the_life_of_the_daemon(path: Path) -> None:
    own = server()
    own.bind([UnixAddress(path)])
    await own.start()
    assert await health(f"unix:{path}") == Status.NOT_SERVING
    await own.serving()
    for service in ("", *SERVICES):
        assert await health(f"unix:{path}", service) == Status.SERVING
    await own.drain()
    assert await health(f"unix:{path}") == Status.NOT_SERVING
    await own.stop(None)


async def test_all_addresses_are_served(path: Path) -> None:
    own = server()
    addresses = own.bind([UnixAddress(path), TcpAddress("127.0.0.1", 0)])
    await own.start()
    await own.serving()
    for address in addresses:
        assert await health(address.target) == Status.SERVING
    await own.stop(None)


async def test_connections_beyond_the_bound_are_closed_and_the_others_go_on(path: Path) -> None:
    own = server(connections_max=2)
    own.bind([UnixAddress(path)])
    await own.start()
    options = (("grpc.use_local_subchannel_pool", 1),)
    async with AsyncExitStack() as stack:
        stubs = [
            health_pb2_grpc.HealthStub(
                await stack.enter_async_context(
                    grpc.aio.insecure_channel(f"unix:{path}", options=options)
                )
            )
            for _ in range(3)
        ]
        for stub in stubs[:2]:
            await stub.Check(health_pb2.HealthCheckRequest())
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await stubs[2].Check(health_pb2.HealthCheckRequest())
        assert ended.value.code() == grpc.StatusCode.UNAVAILABLE
        for stub in stubs[:2]:
            await stub.Check(health_pb2.HealthCheckRequest())
    await own.stop(None)
