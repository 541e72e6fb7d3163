from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dss_client.testing import MemoryDaemon
from support.daemon_process import short_directory


@pytest.fixture
def socket() -> Iterator[Path]:
    """A path short enough for a socket."""
    with TemporaryDirectory(prefix="dss") as folder:
        yield Path(folder) / "d.sock"


@pytest.fixture
async def daemon(socket: Path) -> AsyncIterator[MemoryDaemon]:
    """A daemon in memory that listens."""
    async with MemoryDaemon(socket) as daemon:
        yield daemon


@pytest.fixture
async def home() -> AsyncIterator[Path]:
    """A data directory whose path is short."""
    with short_directory() as directory:
        yield directory
