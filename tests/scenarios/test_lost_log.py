"""A disk that did not keep what it synced, or a file that somebody removed: what a user meets then.

The store remembers more than the log has, or the log more than the store.
"""

import asyncio
from pathlib import Path

import pytest

import dss_client
from dss_client import Client
from dss_core.errors import ExitCode
from support.daemon_process import DaemonEnded, running, short_directory

GROUP = "$share/billing/orders/#"
RECORDS = 20


async def consumed(client: Client, count: int) -> list[bytes]:
    found = []
    async with client.subscribe(GROUP, start="earliest") as subscription:
        async for record in subscription:
            found.append(record.payload)
            await record.ack(sync=len(found) == count)
            if len(found) == count:
                return found
    raise AssertionError("a subscription has no end")


async def filled(home: Path) -> None:
    """A daemon that is killed; a group has read all that was stored."""
    async with (
        running("--data-dir", str(home)) as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await client.topics.create("orders", partitions=2)
        async with client.producer("orders") as producer:
            for number in range(RECORDS):
                await producer.send(b"old", key=str(number).encode())
        await consumed(client, RECORDS)


async def test_a_group_gets_new_records_though_those_that_it_had_read_are_gone() -> None:
    with short_directory() as home:
        await filled(home)
        for path in (home / "log").glob("*.seg"):
            path.unlink()
        async with (
            running("--data-dir", str(home)) as daemon,
            dss_client.connect(endpoint=daemon.endpoint) as client,
            asyncio.timeout(60),
        ):
            async with client.producer("orders") as producer:
                for number in range(RECORDS):
                    await producer.send(b"new", key=str(number).encode())
            assert await consumed(client, RECORDS) == [b"new"] * RECORDS
            assert "[stream.short]: orders/0/0: The log ends at 0, and groups had" in daemon.said


async def test_a_daemon_whose_store_is_gone_does_not_begin_anew_beside_its_log() -> None:
    with short_directory() as home:
        await filled(home)
        for path in home.glob("store.sqlite*"):
            path.unlink()
        before = {path: path.read_bytes() for path in (home / "log").iterdir()}
        with pytest.raises(DaemonEnded) as ended:
            async with running("--data-dir", str(home)):
                pass
        assert ended.value.exit_code == ExitCode.IO_ERROR
        assert "[DSS4002]" in ended.value.said
        assert {path: path.read_bytes() for path in (home / "log").iterdir()} == before


async def test_a_daemon_does_not_start_on_a_store_that_is_older_than_its_log() -> None:
    with short_directory() as home:
        async with running("--data-dir", str(home)) as daemon:
            await daemon.stop()
        backup = (home / "store.sqlite").read_bytes()
        await filled(home)
        for path in home.glob("store.sqlite-*"):
            path.unlink()
        (home / "store.sqlite").write_bytes(backup)
        [segment] = (home / "log").glob("*.seg")
        before = {path: path.read_bytes() for path in (home / "log").iterdir()}
        with pytest.raises(DaemonEnded, match=f"DSS4003.*{segment.name}|{segment.name}.*DSS4003"):
            async with running("--data-dir", str(home)):
                pass
        assert {path: path.read_bytes() for path in (home / "log").iterdir()} == before
        segment.rename(home / segment.name)
        async with running("--data-dir", str(home)) as daemon:
            assert daemon.endpoints
