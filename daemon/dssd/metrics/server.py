"""The port for Prometheus: a thread that serves one request after the other.

    Prometheus ──▶ metrics thread ── asks ──▶ event loop: looks at the parts
               ◀── writes it out  ◀─ values ─┘

Invariant: the event loop only collects values; the thread reads requests and writes text. A
connection can delay other scrapes, but nothing else. After `run` nothing is served.
"""

import asyncio
import concurrent.futures
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from socketserver import TCPServer
from typing import Any, NoReturn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from dss_core.errors import AddressInUse, InternalError
from dssd.addresses import TcpAddress
from dssd.events.model import Note
from dssd.metrics.readings import Readings
from dssd.metrics.table import TABLE
from dssd.supervision.containment import contain

POLL_S = 0.2
"""How soon the server's thread notices that it is to end."""


SCRAPE_S_MAX = 5.0
"""How long a scrape waits for the event loop: half of the time after which Prometheus gives up."""

REQUEST_S_MAX = 5.0
"""How long a request may take to arrive: one connection is served at a time."""

SCRAPES_WAITING_MAX = 16
"""Connections that the kernel keeps until they are served; Prometheus has one."""


METRICS_PATH = "/metrics"

_PAGE = (
    "<!doctype html><title>dssd</title><h1>dssd</h1>"
    f'<p>Metrics for Prometheus are at <a href="{METRICS_PATH}">{METRICS_PATH}</a>.</p>\n'
).encode()

Answer = concurrent.futures.Future[Readings]


class MetricsServer:
    """Built on the event loop. `bind`, then `run` as a task until it is cancelled."""

    def __init__(self, collect: Callable[[], Awaitable[Readings]], note: Note) -> None:
        self._collect = collect
        self._note = note
        self._loop = asyncio.get_running_loop()
        self._asked: asyncio.Queue[Answer] = asyncio.Queue()
        """Bounded by the one thread that asks, and gives up."""
        self._closed = False
        registry = CollectorRegistry()
        registry.register(_Values(self._ask))
        ProcessCollector(registry=registry)
        self._app = make_wsgi_app(registry)
        self._server: _Server | None = None

    def bind(self, address: TcpAddress) -> TcpAddress:
        """Take the address; returns it with the port that was chosen for port 0.

        Raises:
            AddressInUse: another process listens there, or it is not allowed.
        """
        try:
            self._server = _Server(address)
        except OSError as error:
            raise AddressInUse(address=address, reason=error.strerror) from error
        self._server.set_app(self._served)
        return TcpAddress(address.host, int(self._server.server_address[1]))

    async def run(self) -> NoReturn:
        """Answer scrapes."""
        server = self._server
        assert server is not None, "it was bound"
        threading.Thread(
            target=server.serve_forever, args=(POLL_S,), name="metrics", daemon=True
        ).start()
        try:
            while True:
                answer = await self._asked.get()
                if answer.cancelled():
                    continue
                with suppress(concurrent.futures.InvalidStateError):  # nobody waits any more
                    try:
                        answer.set_result(await self._collect())
                    except concurrent.futures.InvalidStateError:
                        raise
                    except Exception as error:  # noqa: BLE001 - it ends one scrape
                        answer.set_exception(contain("metrics", error, self._note))
        finally:
            self._closed = True
            await asyncio.to_thread(server.shutdown)
            server.server_close()

    # From here on: the metrics thread.

    def _ask(self) -> Readings:
        answer = Answer()
        self._loop.call_soon_threadsafe(self._asked.put_nowait, answer)
        left_s = SCRAPE_S_MAX
        while not self._closed and left_s > 0:
            with suppress(TimeoutError):
                return answer.result(POLL_S)
            left_s -= POLL_S
        answer.cancel()
        raise _NoAnswer

    def _served(self, environ: dict[str, object], start: Callable[..., object]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != METRICS_PATH:
            return _elsewhere(environ["PATH_INFO"], start)
        try:
            served: Iterable[bytes] = self._app(environ, start)
        except _NoAnswer:
            start("503 Service Unavailable", [("Content-Type", "text/plain")])
            return [b"the event loop of the daemon did not answer in time\n"]
        except InternalError as failed:
            start("500 Internal Server Error", [("Content-Type", "text/plain")])
            return [f"{failed.message}\n".encode()]
        return served


def _elsewhere(path: object, start: Callable[..., object]) -> Iterable[bytes]:
    """The page for browsers and for other paths, with a link to the metrics."""
    status = "200 OK" if path == "/" else "404 Not Found"
    start(status, [("Content-Type", "text/html; charset=utf-8")])
    return [_PAGE]


class _NoAnswer(Exception):
    """The loop is late, or the daemon ends."""


class _Values(Collector):
    """What the library asks for."""

    def __init__(self, ask: Callable[[], Readings]) -> None:
        self._ask = ask

    def describe(self) -> Iterable[Metric]:
        """Every metric, without values: asked where nothing runs yet."""
        return [spec.family() for spec in TABLE]

    def collect(self) -> Iterable[Metric]:
        """Every metric, as it is now."""
        return self._ask().families()


class _Handler(WSGIRequestHandler):
    """Says nothing of requests, and waits for none without end."""

    timeout = REQUEST_S_MAX

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class _Server(WSGIServer):
    """Listens once it is built."""

    request_queue_size = SCRAPES_WAITING_MAX
    allow_reuse_port = False

    def __init__(self, address: TcpAddress) -> None:
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        super().__init__((address.host, address.port), _Handler)

    def server_bind(self) -> None:
        """Bind without looking up the name of the host, which may take seconds."""
        TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as it is called
        """Ignore a peer that went away or was too slow; log any other error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
