"""Data directories of real daemons, with several sealed segments, for tests to damage."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon_process import running, short_directory
from support.raw_stubs import connected
from support.raw_topic import RawTopic

SMALL = (str(Path(__file__).parents[2] / "scenarios" / "programs" / "small_daemon.py"),)
PAYLOAD = bytes(10_000)
FRAMES = 30
"""Several files of 32 KiB and more: a file takes frames until the next one is ready."""


def newest(data: Path) -> Path:
    """The file that takes frames now."""
    return max((data / "log").glob("*.seg"))


def is_half_full(path: Path) -> bool:
    """Whether it has two frames: no watermark is above them, and no next file is being made."""
    return 2 * len(PAYLOAD) < path.stat().st_size < 3 * len(PAYLOAD)


async def fill(directory: Path, data: Path, *, kill: bool) -> None:
    listen = ("--listen", f"unix:{directory}/s")
    async with running(
        "--data-dir", str(data), *listen, program=SMALL, from_nothing=True
    ) as daemon:
        async with connected(daemon.endpoint) as stubs:
            topic = await RawTopic.created(stubs, "orders", partitions=2)
            sent = 0
            while sent < FRAMES or not is_half_full(newest(data)):
                await topic.send(stubs, topic.frame(PAYLOAD, b"small"))
                sent += 1
        if not kill:
            assert await daemon.stop() == 0


@pytest.fixture(scope="module")
def built() -> Iterator[Path]:
    """A directory with a data directory that was left cleanly, and one that was not."""
    with short_directory() as directory:
        for name in ("stopped", "killed"):
            asyncio.run(fill(directory, directory / name, kill=name == "killed"))
            (directory / "s").unlink(missing_ok=True)
            assert len(list((directory / name / "log").glob("*.seg"))) >= 3
        yield directory


@pytest.fixture
def stopped(built: Path, tmp_path: Path) -> Path:
    """A data directory whose daemon was stopped."""
    return shutil.copytree(built / "stopped", tmp_path / "stopped")


@pytest.fixture
def killed(built: Path, tmp_path: Path) -> Path:
    """A data directory whose daemon was killed."""
    sockets = shutil.ignore_patterns("*.sock")
    return shutil.copytree(built / "killed", tmp_path / "killed", ignore=sockets)
