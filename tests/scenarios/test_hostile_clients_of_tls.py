"""Clients from elsewhere that take without giving: handshakes that stand still, logins without end,
metadata without measure. Whoever has a token works meanwhile.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest
import pytest_asyncio

import dss_client
from dss_api.v1 import daemon_pb2, daemon_pb2_grpc
from dss_client.access import Permission
from dss_core.limits import METADATA_BYTES_MAX
from dssd.rpc.limits import HANDSHAKE_TIMEOUT_MS
from support.certificates import Authority
from support.daemon_process import running, short_directory
from support.proof_share import only_in_proof

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),  # one daemon for all
    pytest.mark.slow("ten thousand logins, and timeouts of handshakes"),
    only_in_proof,
]

STANDING_STILL = 400
LOGINS, LOGINS_AT_ONCE = 10_000, 100
EVENTS_OF_LOGINS_MAX = 20
"""What is told of ten thousand refused logins: each ends no other event that is kept."""
ANSWERS_WITHIN_S = 10.0
"""On a machine that does other things."""
PATIENCE_S = 120.0
CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303")
"""How one begins; the rest does not come."""


class Site:
    def __init__(self, local: str, remote: str, ca: Path, token: Path) -> None:
        self.local = local
        self.remote = remote
        self.ca = ca
        self.token = token

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.remote.removeprefix("dss://").rpartition(":")
        return host, int(port)

    async def works(self) -> None:
        """Somebody with a token comes in and is answered."""
        async with (
            asyncio.timeout(ANSWERS_WITHIN_S),
            dss_client.connect(endpoint=self.remote, ca=self.ca, token_file=self.token) as client,
        ):
            assert await client.topics.list() is not None


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Site]:
    authority = Authority(folder)
    pair = authority.signed("localhost", "DNS:localhost", "IP:127.0.0.1")
    with short_directory() as short:
        arguments = (
            "--data-dir", f"{short}/data", "--listen", f"unix:{short}/s",
            "--listen", "127.0.0.1:0,tls,clients=tokens",
            "--tls-cert", str(pair.cert), "--tls-key", str(pair.key),
        )  # fmt: skip
        async with running(*arguments) as daemon:
            local, remote = daemon.endpoints
            async with dss_client.connect(endpoint=local) as admin:
                made = await admin.access.add_token("ada", [Permission("read", ("#",), ("*",))])
            token = folder / "ada.token"
            token.touch(0o600)
            token.write_text(made.token)
            yield Site(local, f"dss://{remote.removeprefix('dss://')}", authority.cert, token)
            assert await daemon.stop() == 0
            assert "Traceback" not in daemon.said


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with opened(tmp_path_factory.mktemp("tls")) as made:
        yield made


@contextmanager
def connections(address: tuple[str, int], count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        made = (socket.create_connection(address, timeout=PATIENCE_S) for _ in range(count))
        yield list(map(stack.enter_context, made))


def closed_within(held: list[socket.socket]) -> float:
    """How long it takes until the other side has ended all of them."""
    began = time.monotonic()
    for each in held:
        try:
            while each.recv(4_096):
                pass
        except OSError:
            continue
    return time.monotonic() - began


@pytest.mark.parametrize("said", [b"", CLIENT_HELLO], ids=["nothing", "half a hello"])
async def test_handshakes_that_stand_still_are_ended_and_hold_up_nobody(
    site: Site, said: bytes
) -> None:
    with connections(site.address, STANDING_STILL) as held:
        for each in held:
            each.sendall(said)
        await site.works()
        took_s = await asyncio.to_thread(closed_within, held)
    assert took_s < HANDSHAKE_TIMEOUT_MS / 1_000 + ANSWERS_WITHIN_S


async def test_who_shakes_hands_and_then_says_nothing_is_ended(site: Site) -> None:
    context = ssl.create_default_context(cafile=str(site.ca))
    context.set_alpn_protocols(["h2"])

    def shaken(each: socket.socket) -> socket.socket:
        return context.wrap_socket(each, server_hostname="localhost")

    with connections(site.address, 20) as held:
        inner = [await asyncio.to_thread(shaken, each) for each in held]
        await site.works()
        took_s = await asyncio.to_thread(closed_within, list(inner))
        for each in inner:
            each.close()
    assert took_s < HANDSHAKE_TIMEOUT_MS / 1_000 + ANSWERS_WITHIN_S


@asynccontextmanager
async def stub(site: Site) -> AsyncIterator[daemon_pb2_grpc.DaemonStub]:
    credentials = grpc.ssl_channel_credentials(site.ca.read_bytes())
    host, port = site.address
    async with grpc.aio.secure_channel(f"{host}:{port}", credentials) as channel:
        yield daemon_pb2_grpc.DaemonStub(channel)


async def refusal(
    asked: daemon_pb2_grpc.DaemonStub, *metadata: tuple[str, str | bytes]
) -> grpc.StatusCode:
    try:
        await asked.Status(daemon_pb2.DaemonStatusRequest(), metadata=metadata, timeout=PATIENCE_S)
    except grpc.aio.AioRpcError as refused:
        return refused.code()
    return grpc.StatusCode.OK


async def test_ten_thousand_logins_with_wrong_tokens_are_refused_and_told_few_times(
    site: Site,
) -> None:
    async with stub(site) as asked:

        async def refused(first: int) -> set[grpc.StatusCode]:
            return {
                await refusal(asked, ("authorization", f"Bearer dss_{number:043d}"))
                for number in range(first, LOGINS, LOGINS_AT_ONCE)
            }

        guessing = asyncio.gather(*map(refused, range(LOGINS_AT_ONCE)))
        async with asyncio.timeout(PATIENCE_S):
            while not guessing.done():
                await site.works()
            codes = set().union(*await guessing)
    assert codes == {grpc.StatusCode.UNAUTHENTICATED}
    async with dss_client.connect(endpoint=site.local) as admin:
        page = await admin.events.list()
        told = [each for each in page.events if each.code == "login.refused"]
    assert 1 <= len(told) <= EVENTS_OF_LOGINS_MAX


async def test_metadata_without_measure_ends_its_call_alone(site: Site) -> None:
    refused = {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAUTHENTICATED}
    ended = refused | {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL}
    async with stub(site) as asked:
        for size in (METADATA_BYTES_MAX - 500, 4 * METADATA_BYTES_MAX, 1 << 20):
            token = "Bearer dss_" + "x" * size
            assert await refusal(asked, ("authorization", token)) in ended, size
        many = [(f"x-{number}", "y" * 50) for number in range(2_000)]
        assert await refusal(asked, *many) in ended
        for odd in (("authorization", "Bearer "), ("authorization", "Basic x"), ("a-bin", b"\xff")):
            assert await refusal(asked, odd) in refused
        own = ("authorization", f"Bearer {site.token.read_text()}")
        assert await refusal(asked, own) is grpc.StatusCode.OK
        twice = (("authorization", "Bearer dss_wrong"), own)
        assert await refusal(asked, *twice) in refused, "the first one counts"
    await site.works()
