"""A connection between a client and a daemon that a test can hold, release and cut.

Invariant: a cut loses what was held; while the line is down nothing comes through.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

CHUNK_BYTES = 64 << 10


class Line:
    """Built by `line_to`."""

    def __init__(self, path: Path, daemon: Path, tasks: asyncio.TaskGroup) -> None:
        self.endpoint = f"unix:{path}"
        self.requests, self.answers = asyncio.Event(), asyncio.Event()
        """Set while requests go through."""
        self.holds_requests = asyncio.Event()
        """A request arrived that is being held."""
        self._path = path
        self._daemon = daemon
        self._tasks = tasks
        self._server: asyncio.Server
        self._ends: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        """Let clients connect, and everything go through."""
        self.requests.set()
        self.answers.set()
        self._server = await asyncio.start_unix_server(self._connected, self._path)

    def cut(self) -> None:
        """End every connection; until the next start nobody can connect."""
        self._server.close()
        self._path.unlink()
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()
        self.requests.set()
        self.answers.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_daemon, to_daemon = await asyncio.open_unix_connection(self._daemon)
        self._ends += [writer, to_daemon]
        held = self.holds_requests
        self._tasks.create_task(_carry(reader, to_daemon, self.requests, held), name="requests")
        answers = _carry(from_daemon, writer, self.answers, asyncio.Event())
        self._tasks.create_task(answers, name="answers")


async def _carry(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    goes: asyncio.Event,
    held: asyncio.Event,
) -> None:
    try:
        while data := await reader.read(CHUNK_BYTES):
            if not goes.is_set():
                held.set()
                await goes.wait()
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        return
    finally:
        writer.close()


@asynccontextmanager
async def line_to(daemon: Path, path: Path) -> AsyncIterator[Line]:
    """A line to the socket of a daemon; clients connect to a path."""
    async with asyncio.TaskGroup() as tasks:
        line = Line(path, daemon, tasks)
        await line.start()
        yield line
        line.cut()
