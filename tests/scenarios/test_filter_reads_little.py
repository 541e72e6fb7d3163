"""A filter without a match passes over a gibibyte without reading it."""

from collections.abc import Iterator
from pathlib import Path

from dss_api.v1 import log_pb2
from support.daemon_process import running, short_directory
from support.proof_share import share
from support.raw_stubs import connected
from support.raw_topic import RawTopic

PARTITIONS = 4
PAYLOADS = [bytes(4_000)] * 32
"""A frame of the usual size, 128 KB."""
LOG_BYTES = share(1 << 26, 1 << 30)
SHARE_MAX = 0.05


def frames(topic: RawTopic) -> Iterator[bytes]:
    """Frames until the log is full enough."""
    made = number = 0
    while made < LOG_BYTES:
        frame = topic.frame(*PAYLOADS, partition=number % PARTITIONS, subject="flights/EWR/UA")
        made += len(frame)
        number += 1
        yield frame


def bytes_read_by(pid: int) -> int:
    """What a process has read from files, out of the page cache or not."""
    counters = Path(f"/proc/{pid}/io").read_text()
    return int(dict(line.split(": ") for line in counters.splitlines())["rchar"])


async def test_a_filter_without_a_match_sends_no_frame_and_reads_under_five_percent() -> None:
    with short_directory() as directory:
        async with (
            running("--data-dir", str(directory)) as daemon,
            connected(daemon.endpoint) as stubs,
        ):
            topic = await RawTopic.created(stubs, "flights", PARTITIONS)
            await topic.pour(stubs, frames(topic))
            assert await daemon.stop() == 0
        # A new daemon has nothing in memory.
        async with (
            running("--data-dir", str(directory)) as daemon,
            connected(daemon.endpoint) as stubs,
        ):
            before = bytes_read_by(daemon.process.pid)
            request = log_pb2.ReadRequest(filter="flights/+/DL")
            replies = [reply async for reply in stubs.log.Read(request)]
            read = bytes_read_by(daemon.process.pid) - before
            assert [len(reply.streams) for reply in replies] == [PARTITIONS]
            assert not any(reply.frames for reply in replies)
            assert 0 < read < SHARE_MAX * LOG_BYTES
            one = log_pb2.ReadRequest(filter="flights/+/UA", records_max=1)
            assert any([reply.frames async for reply in stubs.log.Read(one)])
