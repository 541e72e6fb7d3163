"""A real NATS server with JetStream, and the workflow's port to it: the reference for the facade.

Invariant: the server listens only on the loopback, keeps its data in a directory of its own, and
ends with the block that started it, or with this process.
"""

import asyncio
import json
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import APIError, NotFoundError

from dss_client.jetstream.calls import SubscribeCall
from dss_client.jetstream.config import ConsumerConfig, ConsumerInfo, SequenceInfo
from dss_client.jetstream.workflow import (
    Attach,
    Bound,
    Create,
    Discard,
    Listen,
    LookUp,
    carried_out,
    workflow,
)

START_S_MAX = 20.0
EXISTS = {10013, 10105, 10148}
"""The server's answer if a consumer of the name exists."""

SECONDS = ("ack_wait", "idle_heartbeat", "inactive_threshold", "max_expires")
NS = 1_000_000_000


class NatsServer:
    """A server that may be killed, frozen and started again. Built by `mortal_nats_server`."""

    def __init__(self, home: Path) -> None:
        self.address = ""
        self._home = home
        self._process: asyncio.subprocess.Process
        self._said: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin a life; the server listens when this returns."""
        binary = Path(sys.executable).parent / "nats-server"
        port = self.address.rpartition(":")[2] or "-1"
        self._process = await asyncio.create_subprocess_exec(
            str(binary), "-js", "-sd", str(self._home), "-a", "127.0.0.1", "-p", port,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        async with asyncio.timeout(START_S_MAX):
            self.address = await _listening(self._process)
        self._said = asyncio.create_task(_read_on(self._process), name="stderr of nats-server")

    async def kill(self) -> None:
        """SIGKILL."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        if self._said is not None:
            await self._said

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """SIGSTOP, and SIGCONT at the end."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    async def revive(self) -> None:
        """SIGKILL, and the next life."""
        await self.kill()
        await self.start()


@asynccontextmanager
async def mortal_nats_server() -> AsyncIterator[NatsServer]:
    """A server that ends with the block."""
    home = Path(tempfile.mkdtemp(prefix="dss-nats-"))
    server = NatsServer(home)
    try:
        await server.start()
        yield server
    finally:
        await server.kill()
        shutil.rmtree(home, ignore_errors=True)


@asynccontextmanager
async def nats_server() -> AsyncIterator[str]:
    """The address of a server that ends with the block."""
    async with mortal_nats_server() as server:
        yield server.address


async def _listening(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    address, lines = "", []
    async for raw in process.stderr:
        lines.append(raw.decode())
        if found := re.search(r"Listening for client connections on (\S+)", lines[-1]):
            address = found[1]
        if "Server is ready" in lines[-1]:
            return f"nats://{address}"
    raise AssertionError("".join(lines))


async def _read_on(process: asyncio.subprocess.Process) -> None:
    """Read its output, so that it is never blocked by a full pipe."""
    assert process.stderr is not None
    async for _ in process.stderr:
        pass


def to_server(config: ConsumerConfig) -> dict[str, Any]:
    """A configuration in the server's terms."""
    said = config.to_json()
    for name in SECONDS:
        if name in said:
            said[name] = int(said[name] * NS)
    if "backoff" in said:
        said["backoff"] = [int(step * NS) for step in said["backoff"]]
    defaults = {"deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant"}
    return defaults | said


def from_server(said: dict[str, Any]) -> ConsumerConfig:
    """The configuration that the server reports."""
    told = dict(said)
    for name in SECONDS:
        if name in told:
            told[name] = told[name] / NS
    if "backoff" in told:
        told["backoff"] = [step / NS for step in told["backoff"]]
    told.pop("metadata", None)  # the server's own facts on its version
    return ConsumerConfig.from_json(told)


@dataclass
class Answer:
    """An answer of the server's API."""

    body: dict[str, Any]

    @property
    def err_code(self) -> int:
        """0 where it is no error."""
        return int(self.body.get("error", {}).get("err_code", 0))


@dataclass
class NatsPort:
    """The workflow's port to a NATS server."""

    client: Client
    context: JetStreamContext
    subscription: Any = None
    created: list[tuple[str, str]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """The requests to the server, in order."""

    async def ask(self, subject: str, body: dict[str, Any]) -> Answer:
        """Send a request to the server's API."""
        self.asked.append(subject)
        reply = await self.client.request(f"$JS.API.{subject}", json.dumps(body).encode())
        return Answer(json.loads(reply.data))

    async def find_streams(self, subject: str) -> tuple[str, ...]:
        answer = await self.ask("STREAM.NAMES", {"subject": subject})
        return tuple(answer.body.get("streams") or ())

    async def look_up(self, request: LookUp) -> ConsumerInfo | None:
        answer = await self.ask(f"CONSUMER.INFO.{request.stream}.{request.name}", {})
        return None if answer.err_code == 10014 else info_from(answer.body)

    async def listen(self, request: Listen) -> None:
        assert request.config.deliver_subject is not None
        self.subscription = await self.client.subscribe(
            request.config.deliver_subject, queue=request.config.deliver_group or ""
        )
        await self.client.flush()

    async def create(self, request: Create) -> ConsumerInfo | None:
        body = {"stream_name": request.stream, "config": to_server(request.config)}
        name = request.config.name
        answer = await self.ask(
            f"CONSUMER.CREATE.{request.stream}.{name}", {**body, "action": "create"}
        )
        if answer.err_code in EXISTS:
            return None
        if answer.err_code:
            raise APIError.from_error(answer.body["error"])
        return info_from(answer.body)

    async def attach(self, request: Attach) -> bool:
        info = request.info
        if request.call.pull:
            self.subscription = await self.context.pull_subscribe_bind(
                consumer=info.name, stream=info.stream_name
            )
        elif self.subscription is None:
            await self.listen(Listen(info.config))
        return True

    async def withdraw(self) -> None:
        if self.subscription is not None:
            await self.subscription.unsubscribe()
            self.subscription = None

    async def discard(self, request: Discard) -> None:
        with suppress(NotFoundError):
            await self.context.delete_consumer(request.info.stream_name, request.info.name)


def info_from(body: dict[str, Any]) -> ConsumerInfo:
    """What the server reports about a consumer."""
    floor = body["ack_floor"]
    return ConsumerInfo(
        body["name"],
        body["stream_name"],
        from_server(body["config"]),
        datetime.fromisoformat(body["created"]),
        push_bound=bool(body.get("push_bound")),
        ack_floor=SequenceInfo(floor["consumer_seq"], floor["stream_seq"]),
        num_ack_pending=body["num_ack_pending"],
        num_pending=body["num_pending"],
        num_redelivered=body["num_redelivered"],
    )


@dataclass
class NatsSubscription:
    """A subscription that the workflow made over NATS, with the facade's methods."""

    port: NatsPort
    bound: Bound
    is_over: bool = False

    async def next_msg(self, timeout: float = 1.0) -> Any:  # noqa: ANN401, ASYNC109
        return await self.port.subscription.next_msg(timeout)

    async def fetch(self, batch: int = 1, timeout: float = 5.0, **_: Any) -> list[Any]:  # noqa: ANN401, ASYNC109
        found: list[Any] = await self.port.subscription.fetch(batch, timeout)
        return found

    async def consumer_info(self) -> ConsumerInfo:
        info = self.bound.info
        found = await self.port.look_up(LookUp(info.stream_name, info.name, pull=False))
        assert found is not None
        return found

    async def unsubscribe(self) -> None:
        await self.port.withdraw()
        if self.bound.created:
            await self.port.discard(Discard(self.bound.info))


class NatsJetStream:
    """The facade's methods, by the same workflow, on a NATS server."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.context = client.jetstream()

    def port(self) -> NatsPort:
        return NatsPort(self.client, self.context)

    async def add_stream(self, name: str, subjects: list[str]) -> None:
        await self.context.add_stream(name=name, subjects=subjects)

    async def publish(self, subject: str, payload: bytes = b"", **given: Any) -> Any:  # noqa: ANN401
        return await self.context.publish(subject, payload, **given)

    async def consumer_info(self, stream: str, name: str) -> ConsumerInfo | None:
        return await self.port().look_up(LookUp(stream, name, pull=False))

    async def consumers(self, stream: str) -> set[str]:
        return {each.name for each in await self.context.consumers_info(stream)}

    async def delete_consumer(self, stream: str, name: str) -> bool:
        return await self.context.delete_consumer(stream, name)

    async def subscribe(self, call: SubscribeCall) -> NatsSubscription:
        port = self.port()
        return NatsSubscription(port, await carried_out(workflow(call), port))


@asynccontextmanager
async def nats_client(address: str) -> AsyncIterator[NatsJetStream]:
    """A client of the server; a missed answer is an error, not a wait."""
    client = await nats.connect(address, allow_reconnect=False)
    try:
        yield NatsJetStream(client)
    finally:
        await client.close()
