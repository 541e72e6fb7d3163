"""kill -9 between the sync of a frame and its reply: sent again, it is where it was.

strace holds the daemon's writer thread right after the sync, so that no reply can leave.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio
import pytest

from dss_api.v1 import log_pb2
from dss_sim import strace
from dssd.limits import SEGMENT_BYTES_MAX
from support.daemon_process import DaemonProcess, running
from support.raw_stubs import Stubs, connected
from support.raw_topic import RawTopic

pytestmark = pytest.mark.needs_strace

HOLD_US = 60_000_000
"""Longer than any test; the kill ends it."""

FILLER = [bytes(1_000_000)] * 4
FILLER_FRAMES = 8


@asynccontextmanager
async def served(directory: Path) -> AsyncIterator[tuple[DaemonProcess, Stubs]]:
    """A daemon, and stubs of it; killed at the end."""
    async with (
        running("--data-dir", str(directory)) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        yield daemon, stubs


async def kill_between_sync_and_reply(
    daemon: DaemonProcess, stubs: Stubs, topic: RawTopic, frame: bytes, directory: Path
) -> None:
    """The frame is durable in the newest segment, and nobody was told."""
    held = f"fdatasync:delay_exit={HOLD_US}"
    # The file before it may still be sealed, which syncs other files.
    newest = directory / "log" / max(segments(directory))
    pid = daemon.process.pid
    async with strace.attached(pid, "fdatasync", inject=held, path=newest) as trace:
        call = stubs.log.Produce()
        request = log_pb2.ProduceRequest(
            topic=topic.name, topic_epoch=topic.topic_epoch, frames=[frame]
        )
        await call.write(request)
        await trace.until("= 0 (DELAYED)")
        daemon.process.kill()
        trace.abandon()
        await daemon.wait()
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await call.read()
    assert ended.value.code() == grpc.StatusCode.UNAVAILABLE


async def roll(stubs: Stubs, directory: Path, topic: RawTopic) -> int:
    """Have another producer publish until there is one more segment; how many records."""
    other = RawTopic(topic.name, topic.topic_epoch)
    before = segments(directory)
    frames = 0
    while not segments(directory) - before:
        assert frames * sum(map(len, FILLER)) < 2 * SEGMENT_BYTES_MAX
        frames += await other.pour(stubs, (other.frame(*FILLER) for _ in range(FILLER_FRAMES)))
    return frames * len(FILLER)


def segments(directory: Path) -> set[str]:
    return {path.name for path in (directory / "log").glob("*.seg")}


async def test_a_frame_without_a_reply_gets_the_same_offset_from_the_next_daemon(
    directory: Path,
) -> None:
    async with served(directory) as (daemon, stubs):
        topic = await RawTopic.created(stubs, "orders")
        assert await topic.put(stubs, b"0", b"1") == [0, 1]
        sent = topic.frame(b"2", b"3")
        await kill_between_sync_and_reply(daemon, stubs, topic, sent, directory)
    async with served(directory) as (_, stubs):
        stored = {0: b"0", 1: b"1", 2: b"2", 3: b"3"}
        assert (await topic.read(stubs)).records == stored
        for _ in range(2):
            (ack,) = await topic.send(stubs, sent)
            assert (ack.base_offset, ack.records, ack.repeated) == (2, 2, True)
        assert (await topic.read(stubs)).records == stored
        assert await topic.put(stubs, b"4") == [4]


async def test_a_frame_without_a_reply_keeps_its_offset_across_segment_rolls(
    directory: Path,
) -> None:
    async with served(directory) as (daemon, stubs):
        topic = await RawTopic.created(stubs, "orders")
        filled = await roll(stubs, directory, topic)
        sent = topic.frame(b"first of its segment or nearly")
        await kill_between_sync_and_reply(daemon, stubs, topic, sent, directory)
    async with served(directory) as (_, stubs):
        # The producer is forgotten by no roll, and by no crash after it.
        filled_again = await roll(stubs, directory, topic)
    async with served(directory) as (_, stubs):
        (ack,) = await topic.send(stubs, sent)
        assert (ack.base_offset, ack.records, ack.repeated) == (filled, 1, True)
        assert await topic.put(stubs, b"next") == [filled + 1 + filled_again]
