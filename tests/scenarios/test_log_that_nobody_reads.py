"""A daemon whose log nobody reads, or that was started without the standard streams."""

import asyncio
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dss_api.v1 import topics_pb2
from dssd.log_writer import STDERR
from support.daemon_process import short_directory
from support.proof_share import only_in_proof
from support.raw_stubs import connected

PIPE_BYTES = 4_096
PATIENCE_S = 30.0


def open_in(process: "subprocess.Popen[bytes]", descriptor: int) -> Path:
    """The file that a process has under a number."""
    return Path(f"/proc/{process.pid}/fd/{descriptor}").readlink()


@only_in_proof
@pytest.mark.parametrize("closed", [False, True], ids=["unread", "closed"])
async def test_a_daemon_serves_though_nobody_reads_its_stderr_or_it_has_none(
    closed: bool,
) -> None:
    with short_directory() as directory:
        end, stderr = os.pipe()
        fcntl.fcntl(stderr, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        socket = directory / "s"
        words = ["serve", "--data-dir", str(directory / "d"), "--listen", f"unix:{socket}"]
        # Not a ready interpreter: what it inherits is what this is about.
        daemon = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
            [sys.executable, "-m", "dssd", *words],
            stderr=stderr,
            preexec_fn=(lambda: os.closerange(0, STDERR + 1)) if closed else None,
        )
        os.close(stderr)
        try:
            async with asyncio.timeout(PATIENCE_S), connected(f"unix:{socket}") as stubs:
                for number in range(PIPE_BYTES // 100):
                    request = topics_pb2.CreateTopicRequest(name=f"t{number}", partitions=1)
                    await stubs.topics.Create(request, wait_for_ready=True)
            if closed:
                assert {open_in(daemon, each) for each in range(STDERR + 1)} == {Path(os.devnull)}
        finally:
            daemon.terminate()
            os.close(end)
            assert await asyncio.to_thread(daemon.wait, PATIENCE_S) == 0
