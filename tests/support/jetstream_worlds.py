"""The same calls to JetStream on both sides: the facade over DSS, and a real NATS server.

What is compared is told in words that mean the same on both: the code of the refusal, or what was
bound and whether it was made.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from nats.js.errors import APIError

import dss_client
from dss_client.jetstream import (
    ConsumerConfig,
    ConsumerInfo,
    JetStream,
    PullSubscription,
    PushSubscription,
)
from dss_client.jetstream.calls import SubscribeCall
from dss_core.errors import ConsumerNotFound, DssError
from support.daemon_process import running, short_directory
from support.nats_oracle import NatsJetStream, NatsSubscription, nats_client, nats_server

STREAM = "ORDERS"
SOON_S = 20.0
LOOK_AGAIN_S = 0.02
INBOXES = iter(range(1_000_000))


def a_call(subject: str = "", **given: Any) -> SubscribeCall:  # noqa: ANN401
    """A call, with fresh names where it needs some."""
    config = ConsumerConfig(**given.pop("config", {}))
    number = next(INBOXES)
    name, inbox = f"fresh{number}", f"_INBOX.fresh{number}"
    return SubscribeCall(
        subject=subject, config=config, fresh_name=name, fresh_inbox=inbox, **given
    )


class World(Protocol):
    """Where a script of calls runs."""

    name: str

    async def subscribe(self, call: SubscribeCall) -> Any: ...  # noqa: ANN401
    async def publish(self, subject: str, payload: bytes) -> int: ...
    async def consumers(self) -> set[str]: ...
    async def info(self, name: str) -> ConsumerInfo | None: ...
    async def make(self, config: ConsumerConfig) -> None: ...
    async def forget(self, name: str) -> None: ...


@dataclass
class DssWorld:
    """The facade."""

    js: JetStream
    client: dss_client.Client
    endpoint: str
    name: str = "dss"

    async def subscribe(self, call: SubscribeCall) -> Any:  # noqa: ANN401
        given: dict[str, Any] = {
            "stream": call.stream or None, "durable": call.durable or None,
            "config": call.config, "consumer": call.consumer, "skip_lookup": call.skip_lookup,
        }  # fmt: skip
        if call.pull:
            if call.queue:  # it has no argument for one
                given["config"] = replace(call.config, deliver_group=call.queue)
            return await self.js.pull_subscribe(call.subject, **given)
        return await self.js.subscribe(call.subject, call.queue or None, **given)

    async def publish(self, subject: str, payload: bytes) -> int:
        seq = (await self.js.publish(subject, payload)).seq
        assert seq is not None
        return seq

    async def consumers(self) -> set[str]:
        return {each.name for each in await self.client.groups.list()}

    async def info(self, name: str) -> ConsumerInfo | None:
        try:
            return await self.js.consumer_info(STREAM, name)
        except ConsumerNotFound:
            return None

    async def make(self, config: ConsumerConfig) -> None:
        await self.js.add_consumer(STREAM, config)

    async def forget(self, name: str) -> None:
        await self.js.delete_consumer(STREAM, name)


@dataclass
class NatsWorld:
    """The same workflow on a real server."""

    js: NatsJetStream
    name: str = "nats"

    async def subscribe(self, call: SubscribeCall) -> Any:  # noqa: ANN401
        subscription = await self.js.subscribe(call)
        if not call.pull:
            # The server notices interest a little after it has taken the subscription.
            await until(partial(_is_bound, subscription))
        return subscription

    async def publish(self, subject: str, payload: bytes) -> int:
        return int((await self.js.publish(subject, payload)).seq)

    async def consumers(self) -> set[str]:
        return await self.js.consumers(STREAM)

    async def info(self, name: str) -> ConsumerInfo | None:
        return await self.js.consumer_info(STREAM, name)

    async def make(self, config: ConsumerConfig) -> None:
        from dss_client.jetstream.workflow import Create

        name = config.durable_name or config.name
        made = await self.js.port().create(Create(STREAM, config_named(config, name)))
        assert made is not None

    async def forget(self, name: str) -> None:
        await self.js.delete_consumer(STREAM, name)


async def _is_bound(subscription: NatsSubscription) -> bool:
    return (await subscription.consumer_info()).push_bound


def config_named(config: ConsumerConfig, name: str | None) -> ConsumerConfig:
    """With the name that the server wants beside the durable one."""
    return ConsumerConfig(**(config.said() | {"name": name}))


@asynccontextmanager
async def dss_world() -> AsyncIterator[DssWorld]:
    """A daemon of its own, with the stream."""
    with short_directory() as home:
        endpoint = f"unix:{home / 'd.sock'}"
        listens = ("--data-dir", str(home / "data"), "--listen", endpoint)
        async with running(*listens), dss_client.connect("one", endpoint=endpoint) as client:
            js = client.jetstream()
            await js.add_stream(STREAM, ["orders.>"])
            yield DssWorld(js, client, endpoint)


@asynccontextmanager
async def dss_world_on(endpoint: str) -> AsyncIterator[DssWorld]:
    """A daemon that is there already, with the stream, of which nothing is left behind."""
    async with dss_client.connect("one", endpoint=endpoint) as client:
        js = client.jetstream()
        await js.add_stream(STREAM, ["orders.>"])
        yield DssWorld(js, client, endpoint)
    async with dss_client.connect("one", endpoint=endpoint) as client:
        for group in await client.groups.list():
            await client.groups.remove(f"{group.name}@{group.filter}")
        for each in await client.topics.list():
            await client.topics.remove(each.topic.name, force=True)


@asynccontextmanager
async def nats_world() -> AsyncIterator[NatsWorld]:
    """A server of its own, with the stream."""
    async with nats_server() as address, nats_client(address) as js:
        await js.add_stream(STREAM, ["orders.>"])
        yield NatsWorld(js)


async def outcome(work: Awaitable[Any]) -> str:
    """What became of a call, as both sides may say it."""
    try:
        made = await work
    except DssError as error:
        return error.code
    except APIError as error:
        return f"refused by the server: {error.err_code}"
    except TimeoutError:
        return "timeout"
    return "done" if made is None else "subscribed"


async def taken(subscription: Any, count: int, timeout: float = 2.0) -> list[bytes]:  # noqa: ANN401, ASYNC109
    """So many messages, each acknowledged."""
    found = []
    for _ in range(count):
        message = await subscription.next_msg(timeout=timeout)
        found.append(message.data)
        await message.ack()
    return found


async def nothing_comes(subscription: Any) -> bool:  # noqa: ANN401
    """Whether a moment passes without a message."""
    try:
        async with asyncio.timeout(5):
            await subscription.next_msg(timeout=0.3)
    except TimeoutError:
        return True
    return False


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again until it holds, as what others do is told by nobody."""
    async with asyncio.timeout(SOON_S):
        while not await holds():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(LOOK_AGAIN_S)


async def here(subscription: PushSubscription | PullSubscription, count: int) -> None:
    """Wait until so many messages have come and are not handed out."""

    async def came() -> bool:
        return subscription._pieces.here >= count

    await until(came)
