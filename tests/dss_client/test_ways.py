"""Several endpoints of one daemon, of which some do not answer."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import dss_client
from dss_client._credentials import credentials_of
from dss_client._endpoint import resolve
from dss_client._ways import Ways
from dss_core.errors import IllegalArgument, Unreachable
from support.revived_daemon import RevivedDaemon, revived


@pytest.fixture
async def daemon() -> AsyncIterator[RevivedDaemon]:
    async with revived() as daemon:
        yield daemon


@pytest.fixture
def nobody() -> str:
    """Where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize("patient", [True, False])
async def test_the_first_that_answers_is_used_by_every_kind_of_call(
    daemon: RevivedDaemon, nobody: str, patient: bool
) -> None:
    ways = [nobody, "unix:/nowhere/at/all", daemon.endpoint]
    async with dss_client.connect(endpoint=ways, patient=patient) as client:
        await client.topics.create("t", partitions=1)
    for begins in (_publishes, _subscribes, _reads):
        async with dss_client.connect(endpoint=ways, patient=patient) as client:
            await begins(client)


async def _publishes(client: dss_client.Client) -> None:
    async with client.producer("t") as producer:
        await producer.send(b"x")


async def _subscribes(client: dss_client.Client) -> None:
    async with client.subscribe("$share/g/t/#", start="earliest") as records:
        assert (await anext(aiter(records))).payload == b"x"


async def _reads(client: dss_client.Client) -> None:
    assert [each.payload async for each in client.read("t/#")] == [b"x"]


async def test_where_none_answers_all_are_named(nobody: str) -> None:
    endpoint = f"{nobody},unix:/nowhere/at/all"
    async with dss_client.connect(endpoint=endpoint) as client:
        for _ in range(2):
            with pytest.raises(Unreachable) as failed:
                await client.topics.list()
            assert endpoint in failed.value.message


async def test_who_loses_one_way_goes_on_by_another(daemon: RevivedDaemon, nobody: str) -> None:
    async with dss_client.connect(endpoint=[daemon.endpoint, nobody]) as client:
        await client.topics.create("t", partitions=1)
        await daemon.revive()
        assert await client.topics.list()


def test_what_was_lost_together_moves_on_once() -> None:
    ways = Ways(3)
    for _ in range(4):
        ways.lost(0)
    assert ways.now == 1
    assert ways.is_another_left()
    ways.lost(1)
    ways.lost(2)
    assert ways.now == 0
    assert not ways.is_another_left()


def test_a_token_goes_by_no_way_that_others_read(tmp_path: Path) -> None:
    for bare in ("a.example:1", "dss://a.example:1,b.example:2", "unix:/d,b.example:2"):
        with pytest.raises(IllegalArgument, match="TLS"):
            credentials_of(resolve(bare), token_file=tmp_path / "t")
    for fine in ("dss://a.example:1,unix:/d", "127.0.0.1:1,localhost:2,[::1]:3"):
        assert credentials_of(resolve(fine), token_file=tmp_path / "t").token_file
