from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest

from dss_client.testing.memory_daemon import MemoryDaemon


@pytest.fixture
def socket() -> Iterator[Path]:
    """A path short enough for a socket."""
    with TemporaryDirectory(prefix="dss") as folder:
        yield Path(folder) / "d.sock"


@pytest.fixture
async def daemon(socket: Path) -> AsyncIterator[MemoryDaemon]:
    """A daemon in memory that listens."""
    # Abstract to a type checker alone: the generated bases refuse each call that it lacks.
    daemon: MemoryDaemon = cast(Any, MemoryDaemon)(socket)
    await daemon.start()
    yield daemon
    await daemon.cut()
