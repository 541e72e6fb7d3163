"""What a program of JetStream calls: streams, consumers, publishing and subscribing.

Invariant: every call that subscribes goes through the one workflow; nothing is made before it has
said so.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Generator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from dss_client.jetstream._consumers import (
    Consumers,
    one_stream_in,
    one_stream_of,
    refuse_unoffered,
    refuse_unoffered_stream,
    start_of,
)
from dss_client.jetstream._pieces import Pieces
from dss_client.jetstream._port import DssPort
from dss_client.jetstream._subjects import check_token, slashed
from dss_client.jetstream.calls import (
    ORDERED_ACK_WAIT_S,
    ORDERED_HEARTBEAT_S,
    SubscribeCall,
    broken_config,
    checked,
)
from dss_client.jetstream.config import (
    AckPolicy,
    ConsumerConfig,
    ConsumerInfo,
    PubAck,
    StreamInfo,
    differences,
    with_defaults,
)
from dss_client.jetstream.message import refuse_reserved
from dss_client.jetstream.ordered import OrderedSubscription
from dss_client.jetstream.subscriptions import (
    JetStreamSubscription,
    PullSubscription,
    PushSubscription,
)
from dss_client.jetstream.workflow import Bound, carried_out, only_stream, workflow
from dss_client.producer import Delivery, Producer
from dss_client.reader import Reader, read_request
from dss_core.errors import (
    ConfigDiffers,
    ConsumerNotFound,
    DssError,
    GroupDestroyed,
    JetStreamMisuse,
    NoMatchingStream,
)

if TYPE_CHECKING:
    from dss_client._connection import Connection
    from dss_client._task_spawner import Spawn
    from dss_client.jetstream._callbacks import Callback, ErrorCallback
    from dss_client.session import Session

Noted = TypeVar("Noted", PushSubscription, PullSubscription, OrderedSubscription)

NAME_BYTES = 11
"""Of the random name of an ephemeral consumer, in 22 digits as those of JetStream."""

KNOWN_SUBJECTS_MAX = 4_096
"""Subjects whose stream is remembered, so that it is asked for once: some 500 KiB."""


class JetStream:
    """Made by `Client.jetstream`."""

    def __init__(
        self,
        connection: "Connection",
        session: "Callable[[], Awaitable[Session]]",
        spawn: "Spawn",
        client_id: str,
        *,
        error_cb: "ErrorCallback | None" = None,
        strict_acks: bool = False,
    ) -> None:
        self._connection = connection
        self._session = session
        self._spawn = spawn
        self._client_id = client_id
        self._error_cb = error_cb
        self._strict_acks = strict_acks
        self._consumers = Consumers(connection, client_id)
        self._held: set[tuple[str, str]] = set()
        """Consumers for one subscription that are bound here, by stream and name."""
        self._subscriptions: list[JetStreamSubscription | OrderedSubscription] = []
        self._producers: dict[str, Producer] = {}
        self._producing = AsyncExitStack()
        self._streams: dict[str, tuple[str, str, str]] = {}
        self._learning = asyncio.Lock()
        """Lets a thousand concurrent publishes ask once, and share one producer."""

    # Streams and consumers.

    async def find_stream_name_by_subject(self, subject: str) -> str:
        """The one stream that the subject meets.

        Raises:
            NoMatchingStream: none does, or several do.
        """
        return only_stream(subject, await self._consumers.find_streams(subject))

    async def add_stream(
        self,
        name: str,
        subjects: list[str],
        *,
        partitions: int = 1,
        max_age: float | None = None,
        **fields: Any,  # noqa: ANN401 - as those of a stream of JetStream
    ) -> StreamInfo:
        """Make a topic for the subjects; one partition gives it one order and one sequence.

        Args:
            name: of the topic.
            subjects: that it owns.
            partitions: how many.
            max_age: seconds that a message is kept for at least.
            fields: settings that every topic has, such as ``storage="file"``.

        Raises:
            NotOffered: no topic has such a setting.
        """
        check_token("stream", name)
        refuse_unoffered_stream(fields)
        return await self._consumers.add_stream(name, subjects, partitions, max_age)

    async def stream_info(self, name: str) -> StreamInfo:
        """The stream with its state."""
        return await self._consumers.stream_info(name)

    async def consumer_info(self, stream: str, consumer: str) -> ConsumerInfo:
        """The consumer with its state.

        Raises:
            ConsumerNotFound: there is none.
        """
        return await self._consumers.info(stream, consumer)

    async def add_consumer(
        self,
        stream: str,
        config: ConsumerConfig | None = None,
        **fields: Any,  # noqa: ANN401 - as those of the config
    ) -> ConsumerInfo:
        """Make a consumer, or accept one with these settings; without a deliver subject, to pull
        from.

        Raises:
            ConfigDiffers: there is one of the name that is not as it is wanted.
            JetStreamMisuse, NotOffered: no consumer can be like that.
        """
        asked = replace(config or ConsumerConfig(), **fields)
        for broken in broken_config(asked, pull=asked.is_pull):
            raise JetStreamMisuse(rule=broken)
        name = asked.durable_name or asked.name or secrets.token_hex(NAME_BYTES)
        check_token("consumer", name)
        made = await self._consumers.create(stream, replace(asked, name=name))
        if made is not None:
            return made
        found = await self._consumers.look_up(stream, name, pull=asked.is_pull)
        if found is None:
            raise ConsumerNotFound(consumer=name, stream=stream)
        said = [*differences(asked, found.config)]
        if asked.filter_subject and asked.filter_subject != found.config.filter_subject:
            said.append(f"filter_subject is {found.config.filter_subject}")
        if asked.is_pull != found.config.is_pull:
            said.append("one is push based and the other is not")
        if said:
            raise ConfigDiffers(consumer=name, differences="; ".join(said))
        return found

    async def delete_consumer(self, stream: str, consumer: str) -> bool:
        """Delete a consumer, whoever uses it."""
        return await self._consumers.delete(stream, consumer)

    # Publishing.

    async def publish(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float | None = None,  # noqa: ASYNC109 - as JetStream has it
        stream: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> PubAck:
        """Store a message; those of one subject stay in order.

        Raises:
            NoMatchingStream: no stream has the subject, or not the one that is named.
            TimeoutError: nobody knows whether it was stored.
            NotOffered: a header asks a JetStream server for something.
        """
        async with asyncio.timeout(timeout):
            return await (
                await self.publish_async(subject, payload, stream=stream, headers=headers)
            )

    async def publish_async(
        self,
        subject: str,
        payload: bytes = b"",
        stream: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> "PubAckFuture":
        """Hand over a message; await the result to learn where it was stored."""
        name, path, one = self._streams.get(subject) or await self._learn(subject)
        if stream is not None and stream != name:
            raise NoMatchingStream(subject=subject, found=f"it is of {name}, not of {stream}")
        if headers:
            refuse_reserved(headers)
        producer = self._producers.get(name) or await self._produce(name)
        try:
            delivery = await producer.enqueue(
                payload, key=path.encode(), subject=path, headers=headers
            )
        except DssError:
            self._streams.pop(subject, None)  # the stream may be another by now
            raise
        return PubAckFuture(delivery, name, one)

    async def _learn(self, subject: str) -> tuple[str, str, str]:
        """The stream, the subject as the log has it, and the stream of the log if it is one."""
        path = slashed(subject, wildcards=False)
        async with self._learning:
            if (known := self._streams.get(subject)) is not None:
                return known
            name = await self.find_stream_name_by_subject(subject)
            topic = await self._consumers.topic(name)
            if len(self._streams) >= KNOWN_SUBJECTS_MAX:
                self._streams.clear()
            known = self._streams[subject] = name, path, one_stream_in(topic) or ""
        return known

    async def _produce(self, name: str) -> Producer:
        async with self._learning:
            if (known := self._producers.get(name)) is not None:
                return known
            producer = Producer(self._connection, name, spawn=self._spawn)
            await self._producing.enter_async_context(producer)
            self._producers[name] = producer
        return producer

    # Subscribing.

    async def subscribe(
        self,
        subject: str = "",
        queue: str | None = None,
        cb: "Callback | None" = None,
        durable: str | None = None,
        stream: str | None = None,
        config: ConsumerConfig | None = None,
        manual_ack: bool = False,
        ordered_consumer: bool = False,
        idle_heartbeat: float | None = None,
        flow_control: bool = False,
        *,
        consumer: str | None = None,
        skip_lookup: bool = False,
        pending_msgs_limit: int | None = None,
        pending_bytes_limit: int | None = None,
        **fields: Any,  # noqa: ANN401 - as those of the config
    ) -> "PushSubscription | OrderedSubscription":
        """Subscribe, and make the consumer where none is named or it is not there yet.

        Args:
            subject: of the messages; may be left out where a stream is named.
            queue: share the consumer of this name with others.
            cb: called with each message, which is acknowledged once it returns.
            durable: the name of the consumer.
            stream: the stream; found by the subject where it is left out.
            config: the configuration of the consumer.
            manual_ack: the callback acknowledges by itself.
            ordered_consumer: each message once and in order, without a consumer in the daemon.
            idle_heartbeat: seconds; three of them without a sign of life are told to ``error_cb``.
            flow_control: accepted; a client is never sent more than its credit in any case.
            consumer: bind to this one, and never make it.
            skip_lookup: bind or make without looking first.
            pending_msgs_limit: accepted, as flow control is: nothing is dropped here.
            pending_bytes_limit: the same.
            fields: further fields of that configuration.

        Raises:
            JetStreamMisuse, NotOffered, NoMatchingStream, ConsumerNotFound, ConsumerIsBound,
            SubjectMismatch, ConsumerIsPull, ConsumerWithoutQueue, ConsumerHasQueue,
            ConsumerHasOtherQueue, ConfigDiffers: as each of them says.
        """
        if cb is not None and not callable(cb):
            raise JetStreamMisuse(rule="the callback is not callable")
        said = {"idle_heartbeat": idle_heartbeat, "flow_control": flow_control or None} | fields
        call = self._call(
            subject, stream, config, said,
            queue=queue or "", durable=durable or "", consumer=consumer,
            ordered=ordered_consumer, skip_lookup=skip_lookup,
        )  # fmt: skip
        if call.ordered:
            return await self._subscribe_in_order(checked(call), cb)
        bound, pieces = await self._bound(call)
        subscription = PushSubscription(
            self._consumers, pieces, bound.info, created=bound.created, error_cb=self._error_cb
        )
        subscription.begin(self._spawn, cb, auto_ack=not manual_ack)
        return self._noted(subscription)

    async def pull_subscribe(
        self,
        subject: str = "",
        durable: str | None = None,
        stream: str | None = None,
        config: ConsumerConfig | None = None,
        *,
        consumer: str | None = None,
        skip_lookup: bool = False,
        pending_msgs_limit: int | None = None,
        pending_bytes_limit: int | None = None,
        **fields: Any,  # noqa: ANN401 - as those of the config
    ) -> PullSubscription:
        """Pull from a consumer, and make it where none is named or it is not there yet.

        The arguments are those of `subscribe`.

        Raises:
            JetStreamMisuse, NotOffered, NoMatchingStream, ConsumerNotFound, SubjectMismatch,
            ConsumerIsPush, ConfigDiffers: as each of them says.
        """
        call = self._call(
            subject, stream, config, fields,
            durable=durable or "", consumer=consumer, skip_lookup=skip_lookup, pull=True,
        )  # fmt: skip
        bound, pieces = await self._bound(call)
        created = bound.created
        return self._noted(PullSubscription(self._consumers, pieces, bound.info, created=created))

    async def subscribe_bind(
        self,
        stream: str,
        config: ConsumerConfig,
        consumer: str,
        cb: "Callback | None" = None,
        manual_ack: bool = False,
        ordered_consumer: bool = False,
        pending_msgs_limit: int | None = None,
        pending_bytes_limit: int | None = None,
    ) -> "PushSubscription | OrderedSubscription":
        """Subscribe to an existing consumer, as `subscribe` does; it is never made.

        Raises:
            ConsumerNotFound: it is not there.
            DssError: as `subscribe` does.
        """
        return await self.subscribe(
            "", config.deliver_group, cb, None, stream, config, manual_ack, ordered_consumer,
            consumer=consumer,
        )  # fmt: skip

    async def pull_subscribe_bind(
        self,
        consumer: str | None = None,
        stream: str | None = None,
        *,
        name: str | None = None,
        durable: str | None = None,
        pending_msgs_limit: int | None = None,
        pending_bytes_limit: int | None = None,
    ) -> PullSubscription:
        """Pull from an existing consumer, as `pull_subscribe` does; it is never made.

        Raises:
            ConsumerNotFound: it is not there.
            DssError: as `pull_subscribe` does.
        """
        named = consumer or name or durable or ""
        return await self.pull_subscribe("", None, stream, consumer=named)

    def _noted(self, subscription: "Noted") -> "Noted":
        """It is left with the client; those that have ended are forgotten."""
        self._subscriptions = [each for each in self._subscriptions if not each.is_over]
        self._subscriptions.append(subscription)
        return subscription

    def _call(
        self,
        subject: str,
        stream: str | None,
        config: ConsumerConfig | None,
        fields: dict[str, Any],
        **given: Any,  # noqa: ANN401 - as those of the call
    ) -> SubscribeCall:
        said = {name: value for name, value in fields.items() if value is not None}
        return SubscribeCall(
            subject=subject,
            stream=stream or "",
            config=replace(config or ConsumerConfig(), **said),
            fresh_name=secrets.token_hex(NAME_BYTES),
            fresh_inbox=f"_INBOX.{secrets.token_hex(NAME_BYTES)}",
            **given,
        )

    async def _bound(self, call: SubscribeCall) -> tuple[Bound, Pieces]:
        refuse_unoffered(call.config)
        try:
            return await self._bound_once(call)
        except GroupDestroyed:
            # It was found, and removed before it was joined: by now it is not there.
            return await self._bound_once(call)

    async def _bound_once(self, call: SubscribeCall) -> tuple[Bound, Pieces]:
        port = DssPort(
            self._consumers, self._session, self._client_id, self._held, self._strict_acks
        )
        bound = await carried_out(workflow(call), port)
        return bound, port.attached

    async def _subscribe_in_order(
        self, call: SubscribeCall, cb: "Callback | None"
    ) -> OrderedSubscription:
        config = replace(
            call.creates(),
            ack_policy=AckPolicy.NONE, max_deliver=1, ack_wait=ORDERED_ACK_WAIT_S, num_replicas=1,
            mem_storage=True, flow_control=True,
            idle_heartbeat=call.config.idle_heartbeat or ORDERED_HEARTBEAT_S,
        )  # fmt: skip
        subscription = await self._ordered(call, config)
        subscription.begin(self._spawn, cb, self._error_cb)
        return self._noted(subscription)

    async def _ordered(self, call: SubscribeCall, config: ConsumerConfig) -> OrderedSubscription:
        from datetime import UTC, datetime

        refuse_unoffered(config)
        stream = call.stream or await self.find_stream_name_by_subject(call.subject)
        topic = await self._consumers.topic(stream)
        filter = slashed(call.subject, wildcards=True) if call.subject else None
        request = read_request(
            filter,
            start=start_of(config, topic),
            end=None,
            follow=True,
            stream=one_stream_of(topic, "an ordered consumer"),
            records_max=None,
        )
        info = ConsumerInfo(
            config.name or "", stream, with_defaults(config), datetime.now(UTC), push_bound=True
        )
        return OrderedSubscription(
            Reader(self._connection, request),
            info,
            self._consumers,
            takes_all=filter is None or topic.patterns == (filter,),
        )

    async def drain(self) -> None:
        """Drain every subscription."""
        for each in [*self._subscriptions]:
            if not each.is_over:
                await each.drain()

    async def close(self) -> None:
        """Leave every subscription, store what was published; the client ends."""
        for each in self._subscriptions:
            await each.leave()
        await self._producing.aclose()


class PubAckFuture:
    """Where a message will be stored; await it for its `PubAck`."""

    __slots__ = ("_delivery", "_one", "_stream")

    def __init__(self, delivery: Delivery, stream: str, one: str) -> None:
        self._delivery = delivery
        self._stream = stream
        self._one = one
        """The stream of the log that is all of it; its offsets are a sequence."""

    def done(self) -> bool:
        """Whether it is stored, or has failed."""
        return self._delivery.done()

    def __await__(self) -> Generator[Any, None, PubAck]:
        """Wait until it is stored."""
        ack = yield from self._delivery.__await__()
        return PubAck(self._stream, ack.offset + 1 if ack.stream == self._one else None)
