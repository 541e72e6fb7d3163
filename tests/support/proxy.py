"""A proxy between clients and a daemon, which delays, half-closes, resets and cuts connections.

It passes bytes on unread, so TLS works too. Invariant: what one side sent before something happens
to the other side still arrives, as late as everything else. Later connections are let through.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

CHUNK_BYTES = 64 << 10
RESETS_AT_CLOSE = struct.pack("ii", 1, 0)
"""For SO_LINGER: close at once, with a reset for the other end."""


class Proxy:
    """Built by `proxy_to`."""

    def __init__(self, port: int, tasks: asyncio.TaskGroup) -> None:
        self.port = 0
        self.delay_s = 0.0
        """The delay of what the daemon sends."""
        self._daemon = port
        self._tasks = tasks
        self._ends: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        """For each connection, the sockets to the client and to the daemon."""
        self._carrying: list[asyncio.Task[None]] = []
        self._server: asyncio.Server

    async def start(self) -> None:
        """Let clients come."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def reset_the_daemons_side(self) -> None:
        """Reset the daemon's side; the client notices nothing, as long as it sends nothing."""
        for _, to_daemon in self._ends:
            tcp: socket.socket = to_daemon.get_extra_info("socket")
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS_AT_CLOSE)
            to_daemon.transport.abort()

    def halve(self) -> None:
        """Half-close the daemon's side, as if the client had ended its sending; the client notices
        nothing."""
        for _, to_daemon in self._ends:
            to_daemon.write_eof()

    def cut(self) -> None:
        """End both sides of each connection."""
        for ends in self._ends:
            for end in ends:
                end.transport.abort()

    def forget(self) -> None:
        """Forget the present connections; later ones are carried as usual."""
        self.cut()
        self._ends.clear()

    async def end(self) -> None:
        """Let nobody through any more."""
        self._server.close()
        self.cut()
        for carrying in self._carrying:
            carrying.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_daemon, to_daemon = await asyncio.open_connection("127.0.0.1", self._daemon)
        self._ends.append((writer, to_daemon))
        for work, name in (
            (self._ask(reader, to_daemon), "requests"),
            (self._answer(from_daemon, writer), "answers"),
        ):
            self._carrying.append(self._tasks.create_task(work, name=name))

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK_BYTES):
                if not writer.transport.is_closing() and not writer.transport._eof:  # type: ignore[attr-defined]
                    writer.write(data)
                    await writer.drain()
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Data in flight is bounded by what the daemon sends ahead, which is the credit of its
        # clients.
        late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def hand_over() -> None:
            with suppress(ConnectionError):
                while True:
                    due_s, data = await late.get()
                    await asyncio.sleep(due_s - loop.time())
                    writer.write(data)
                    await writer.drain()

        self._carrying.append(self._tasks.create_task(hand_over(), name="late answers"))
        with suppress(ConnectionError):
            # The end of the daemon's side is not passed on, so the client notices nothing.
            while data := await reader.read(CHUNK_BYTES):
                late.put_nowait((loop.time() + self.delay_s, data))


@asynccontextmanager
async def proxy_to(endpoint: str) -> AsyncIterator[Proxy]:
    """A proxy to ``dss://HOST:PORT`` of a daemon on this host."""
    async with asyncio.TaskGroup() as tasks:
        proxy = Proxy(int(endpoint.rpartition(":")[2]), tasks)
        await proxy.start()
        try:
            yield proxy
        finally:
            await proxy.end()
