"""The names of nats-py over the facade, so that nats-py's own tests run against a daemon.

A pytest plugin: it replaces `nats.connect`, `nats.aio.client.Client` and `nats.aio.msg.Msg` by
those here, and gives `tests.utils` the daemon as its server. Invariant: it only renames, and
unpacks arguments; whatever a test looks at comes from the facade. Errors of DSS become the
corresponding ones of nats-py; nothing is retried, counted or skipped.
"""

import asyncio
import inspect
import shutil
import sys
import tempfile
import unittest
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import nats
import nats.aio.client
import nats.aio.msg
from nats.errors import BadSubscriptionError, MsgAlreadyAckdError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js import errors as js_errors

import dss_client
from dss_client.jetstream import AckSubject, ConsumerConfig
from dss_core.errors import (
    ConsumerIsBound,
    ConsumerNotActive,
    ConsumerNotFound,
    ConsumerWithoutQueue,
    DssError,
    JetStreamMisuse,
    MessageSettled,
    NoMatchingStream,
    SubscriptionOver,
    TopicNotFound,
)
from support.served_daemon import wait_until_it_listens
from support.started_program import ProgramProcess

TEST_S_MAX = 60
"""The timeout of every test here: how fast they are is measured elsewhere."""

RULES = {
    "flow control needs heartbeats": "consumer with flow control also needs heartbeats",
    "heartbeat is less than half of the timeout": "Bad Request - heartbeat value too large",
}
"""The NATS server's wording where the facade says this."""


class Server:
    """A daemon that is stopped and started at one address, as nats-py's tests do with a server."""

    endpoint = ""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="dss-nats-py-", dir="/tmp"))
        Server.endpoint = f"unix:{self._folder}/s"
        self._process: ProgramProcess

    def start(self) -> None:
        log = self._folder / "log"
        given = ("--data-dir", f"{self._folder}/d", "--listen", self.endpoint)
        with log.open("wb") as output:
            serve = ("-m", "dssd", "serve", *given)
            self._process = ProgramProcess(serve, stdout=output, stderr=output)
        wait_until_it_listens(self._process, log)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)

    def forget(self) -> None:
        shutil.rmtree(self._folder)


class SingleJetStreamServerTestCase(unittest.TestCase):
    def setUp(self) -> None:
        self.server_pool = [Server()]
        self.server_pool[0].start()

    def tearDown(self) -> None:
        self.server_pool[0].stop()
        self.server_pool[0].forget()


def _test_of(seconds: float) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @wraps(test)
        def wrapper(case: unittest.TestCase) -> None:
            async def run() -> None:
                async with asyncio.timeout(seconds):
                    await test(case)

            asyncio.run(run())

        return wrapper

    return decorate


@contextmanager
def renamed(*, with_heartbeats: bool = False) -> Iterator[None]:
    """Raise errors of DSS as those of nats-py."""
    try:
        yield
    except TimeoutError as error:
        raise (js_errors.FetchTimeoutError if with_heartbeats else NatsTimeoutError)() from error
    except DssError as error:
        raise _theirs(error) from error


def _not_found(error: DssError) -> Exception:
    return js_errors.NotFoundError(code=404, description=str(error))


def _bound(_: DssError) -> Exception:
    return js_errors.Error("consumer is already bound to a subscription")


def _no_queue(error: DssError) -> Exception:
    queue, name = error.fields["queue"], error.fields["consumer"]
    return js_errors.Error(f"cannot create queue subscription '{queue}' to consumer '{name}'")


def _misuse(error: DssError) -> Exception:
    rule = error.fields["rule"]
    return js_errors.BadRequestError(code=400, description=RULES.get(rule, rule))


THEIRS: dict[type[DssError], Callable[[DssError], Exception]] = {
    NoMatchingStream: _not_found,
    ConsumerNotFound: _not_found,
    TopicNotFound: _not_found,
    ConsumerIsBound: _bound,
    ConsumerWithoutQueue: _no_queue,
    SubscriptionOver: lambda _: BadSubscriptionError(),
    ConsumerNotActive: lambda _: js_errors.FetchTimeoutError(),
    MessageSettled: lambda error: MsgAlreadyAckdError(error.fields["subject"]),
    JetStreamMisuse: _misuse,
}


def _theirs(error: DssError) -> Exception:
    if (made := THEIRS.get(type(error))) is not None:
        return made(error)
    return js_errors.APIError(description=str(error))


class Renamed:
    """An object of the facade whose errors are nats-py's."""

    def __init__(self, twin: Any) -> None:  # noqa: ANN401
        self._twin = twin

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        value = getattr(self._twin, name)
        if not inspect.iscoroutinefunction(value):
            return value

        async def call(*args: Any, **given: Any) -> Any:  # noqa: ANN401
            with renamed():
                return await value(*args, **given)

        return call


class Message(Renamed):
    async def ack(self) -> None:
        with renamed():
            await self._twin.ack()


class Subscription(Renamed):
    async def next_msg(self, timeout: float = 1.0) -> Message:  # noqa: ASYNC109
        with renamed():
            return Message(await self._twin.next_msg(timeout))

    async def fetch(self, batch: int = 1, timeout: float | None = 5, **given: Any) -> list[Message]:  # noqa: ANN401, ASYNC109
        with renamed(with_heartbeats="heartbeat" in given):
            return [Message(each) for each in await self._twin.fetch(batch, timeout, **given)]

    @property
    async def messages(self) -> AsyncIterator[Message]:
        async for each in self._twin.messages:
            yield Message(each)


def config_of(theirs: Any) -> ConsumerConfig | None:  # noqa: ANN401
    """A configuration, field by field."""
    if theirs is None or isinstance(theirs, ConsumerConfig):
        return theirs
    names = [each.name for each in fields(ConsumerConfig)]
    said = {name: value_of(getattr(theirs, name, None)) for name in names}
    return ConsumerConfig.from_json({name: each for name, each in said.items() if each is not None})


def value_of(value: Any) -> Any:  # noqa: ANN401
    return getattr(value, "value", value)


class JetStream(Renamed):
    async def add_stream(self, name: str, subjects: list[str], **_: Any) -> Any:  # noqa: ANN401
        with renamed():
            return await self._twin.add_stream(name, subjects)

    async def add_consumer(self, stream: str, config: Any = None, **given: Any) -> Any:  # noqa: ANN401
        said = {name: value_of(each) for name, each in given.items()}
        with renamed():
            return await self._twin.add_consumer(stream, config_of(config), **said)

    async def consumer_info(self, stream: str, name: str, timeout: float | None = None) -> Any:  # noqa: ANN401, ASYNC109
        with renamed():
            async with asyncio.timeout(timeout):
                return await self._twin.consumer_info(stream, name)

    async def publish(self, subject: str, payload: bytes = b"", **given: Any) -> Any:  # noqa: ANN401
        with renamed():
            return await self._twin.publish(subject, payload, **given)

    async def subscribe(self, subject: str, *args: Any, **given: Any) -> Subscription:  # noqa: ANN401
        return await self._subscribed(self._twin.subscribe, subject, *args, **given)

    async def subscribe_bind(self, **given: Any) -> Subscription:  # noqa: ANN401
        return await self._subscribed(self._twin.subscribe_bind, **given)

    async def pull_subscribe(self, subject: str, *args: Any, **given: Any) -> Subscription:  # noqa: ANN401
        return await self._subscribed(self._twin.pull_subscribe, subject, *args, **given)

    async def pull_subscribe_bind(self, *args: Any, **given: Any) -> Subscription:  # noqa: ANN401
        return await self._subscribed(self._twin.pull_subscribe_bind, *args, **given)

    async def _subscribed(self, call: Any, *args: Any, **given: Any) -> Subscription:  # noqa: ANN401
        if cb := given.get("cb"):

            async def with_message(message: Any) -> None:  # noqa: ANN401
                await cb(Message(message))

            given["cb"] = with_message
        if "config" in given:
            given["config"] = config_of(given["config"])
        with renamed():
            return Subscription(await call(*args, **given))


class Client:
    """`nats.aio.client.Client`, as far as the tests of subscriptions use it."""

    async def connect(self, error_cb: Any = None, **_: Any) -> None:  # noqa: ANN401
        self._error_cb = error_cb
        self._client = dss_client.connect(endpoint=Server.endpoint)
        await self._client.__aenter__()
        self._js = JetStream(
            self._client.jetstream(error_cb=self._tell if error_cb else None, strict_acks=True)
        )

    async def _tell(self, error: Exception) -> None:
        await self._error_cb(_theirs(error) if isinstance(error, DssError) else error)

    def jetstream(self, **_: Any) -> JetStream:  # noqa: ANN401
        return self._js

    jsm = jetstream

    @property
    def connected_server_version(self) -> Any:  # noqa: ANN401
        return SimpleNamespace(major=2, minor=14)

    def new_inbox(self) -> str:
        return "_INBOX.tests"

    async def publish(self, subject: str, payload: bytes = b"", **given: Any) -> None:  # noqa: ANN401
        await self._js.publish(subject, payload, **given)

    async def flush(self) -> None:
        """Return once everything that was published is stored."""

    async def close(self) -> None:
        await self._client.__aexit__(None, None, None)


async def connect(*_: Any, **given: Any) -> Client:  # noqa: ANN401
    client = Client()
    await client.connect(**given)
    return client


class Msg:
    """`nats.aio.msg.Msg`, of which only the reply subject is known."""

    def __init__(self, _: Client) -> None:
        self.reply = ""

    @property
    def metadata(self) -> Any:  # noqa: ANN401
        told = AckSubject.parse(self.reply)
        since = timedelta(microseconds=told.timestamp_ns // 1_000)
        return SimpleNamespace(
            domain=told.domain, stream=told.stream, consumer=told.consumer,
            num_delivered=told.num_delivered, num_pending=told.num_pending,
            sequence=SimpleNamespace(consumer=told.consumer_seq, stream=told.stream_seq),
            timestamp=datetime.fromtimestamp(0, UTC) + since,
        )  # fmt: skip


def pytest_configure() -> None:
    """Replace the names before anything imports the tests of nats-py."""
    nats.connect = connect  # type: ignore[assignment]
    nats.aio.client.Client = Client  # type: ignore[misc,assignment]
    nats.aio.msg.Msg = Msg  # type: ignore[misc,assignment]
    utils = ModuleType("tests.utils")
    utils.__dict__.update(
        SingleJetStreamServerTestCase=SingleJetStreamServerTestCase,
        SingleJetStreamServerLimitsTestCase=SingleJetStreamServerTestCase,
        async_test=_test_of(TEST_S_MAX),
        async_long_test=_test_of(TEST_S_MAX),
    )
    package = ModuleType("tests")
    package.__path__ = []
    sys.modules.update({"tests": package, "tests.utils": utils})
