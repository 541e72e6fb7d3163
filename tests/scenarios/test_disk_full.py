"""A disk that is full, and a disk that fails, under a real daemon."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio
import pytest

import dss_client
from dss_api.v1 import log_pb2, topics_pb2
from dss_core.errors import ExitCode
from dss_sim import strace
from support.daemon_process import DaemonProcess, running
from support.prerequisites import MOUNT, leave_out
from support.raw_stubs import Stubs, condition, connected, produced
from support.raw_topic import Found, RawTopic
from support.small_disk import CannotMount, fill, mounted

traceable = pytest.mark.needs_strace

DISK_BYTES = 48 << 20
PAYLOAD = bytes(100_000)
"""More than the last pages of the files have left."""

PATIENCE_S = 10.0
FAIL_S_MAX = 2.0
"""From the failure to the end of the process; strace slows it down."""


@pytest.fixture
def small_disk(directory: Path) -> Iterator[Path]:
    """A file system with little room. Skips where none may be mounted."""
    try:
        with mounted(directory / "disk", DISK_BYTES) as disk:
            yield disk
    except CannotMount as why:
        leave_out(MOUNT, str(why))


@asynccontextmanager
async def served(data: Path, directory: Path) -> AsyncIterator[tuple[DaemonProcess, Stubs]]:
    """A daemon, and stubs of it; killed at the end."""
    listen = f"unix:{directory}/s"
    async with (
        running("--data-dir", str(data), "--listen", listen) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        yield daemon, stubs


async def refusals(stubs: Stubs, topic: RawTopic, frame: bytes) -> list[str]:
    answers = await produced(stubs, topic.name, topic.topic_epoch, frame)
    return [condition(refusal.error).code for refusal in answers.refusals]


async def test_a_full_disk_refuses_publishes_and_serves_reads_and_acks_until_there_is_room(
    small_disk: Path, directory: Path
) -> None:
    payloads = [b"%d" % at for at in range(100)]
    stored = dict(enumerate(payloads))
    async with (
        served(small_disk / "data", directory) as (daemon, stubs),
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe("$share/team/orders/#", start="earliest") as subscription,
    ):
        topic = await RawTopic.created(stubs, "orders")
        assert await topic.put(stubs, *payloads) == list(stored)
        records = aiter(subscription)
        await (await anext(records)).ack(sync=True)

        filler = fill(small_disk)
        refused = topic.frame(PAYLOAD)
        for _ in range(3):
            assert await refusals(stubs, topic, refused) == ["DSS3001"]
        assert await topic.read(stubs) == Found(stored)
        for expected in range(1, 100):
            async with asyncio.timeout(PATIENCE_S):
                record = await anext(records)
                assert record.offset == expected
                await record.ack(sync=expected % 10 == 0)
        await subscription.drain()
        assert (await client.groups.describe("team")).group.lag == 0

        async with asyncio.timeout(PATIENCE_S):
            async for event in client.events.watch(after=0):
                if event.code == "disk.full":
                    break
        filler.unlink()
        (ack,) = await topic.send(stubs, refused)
        assert (ack.base_offset, ack.repeated) == (100, False)
        stored[100] = PAYLOAD
        assert await topic.read(stubs) == Found(stored)
        assert daemon.process.returncode is None
    async with served(small_disk / "data", directory) as (_, stubs):
        assert await topic.read(stubs) == Found(stored)
        assert await topic.put(stubs, b"next") == [101]


@pytest.mark.parametrize("ending", ["stop", "kill"])
async def test_a_daemon_ends_and_starts_while_its_disk_is_full_and_loses_nothing(
    small_disk: Path, directory: Path, ending: str
) -> None:
    async with served(small_disk / "data", directory) as (daemon, stubs):
        topic = await RawTopic.created(stubs, "orders")
        assert await topic.put(stubs, b"0", b"1") == [0, 1]
        filler = fill(small_disk)
        if ending == "stop":
            assert await daemon.stop() == ExitCode.OK, daemon.said
    async with served(small_disk / "data", directory) as (daemon, stubs):
        assert await topic.read(stubs) == Found({0: b"0", 1: b"1"})
        filler.unlink()
        assert await topic.put(stubs, b"2") == [2]


@traceable
@pytest.mark.parametrize("calls", ["pwritev,pwritev2", "fdatasync"])
async def test_a_log_that_cannot_be_written_ends_the_daemon_and_nothing_is_acked_after(
    directory: Path, calls: str
) -> None:
    async with served(directory / "data", directory) as (daemon, stubs):
        topic = await RawTopic.created(stubs, "orders")
        assert await topic.put(stubs, b"0") == [0]
        produce = stubs.log.Produce()
        failing = f"{calls}:error=EIO"
        async with strace.attached(daemon.process.pid, calls, inject=failing) as trace:
            request = log_pb2.ProduceRequest(
                topic=topic.name,
                topic_epoch=topic.topic_epoch,
                frames=[topic.frame(b"%d" % at) for at in range(1, 10)],
            )
            await produce.write(request)
            await trace.until("EIO")
            began = time.monotonic()
            assert await daemon.wait() == ExitCode.IO_ERROR
            assert time.monotonic() - began < FAIL_S_MAX
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await produce.read()
        assert ended.value.code() == grpc.StatusCode.UNAVAILABLE
        assert "DSS5007" in daemon.said
        assert "Traceback" not in daemon.said
    async with served(directory / "data", directory) as (daemon, stubs):
        found = (await topic.read(stubs)).records
        assert found == {at: b"%d" % at for at in range(len(found))}
        assert await RawTopic(topic.name, topic.topic_epoch).put(stubs, b"x") == [len(found)]


@traceable
async def test_a_store_that_cannot_be_synced_ends_the_daemon(directory: Path) -> None:
    async with served(directory / "data", directory) as (daemon, stubs):
        await RawTopic.created(stubs, "orders")
        failing = "fdatasync:error=EIO"
        async with strace.attached(daemon.process.pid, "fdatasync", inject=failing):
            request = topics_pb2.CreateTopicRequest(name="never", partitions=1)
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await stubs.topics.Create(request)
            assert await daemon.wait() == ExitCode.IO_ERROR
        assert ended.value.code() == grpc.StatusCode.UNAVAILABLE
        assert "DSS5007" in daemon.said
    async with served(directory / "data", directory) as (_, stubs):
        await RawTopic.created(stubs, "another")
