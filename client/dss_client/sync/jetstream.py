"""The JetStream facade for threads: what `dss_client.jetstream` does, waited for.

Invariant: each method is that of the class of the same name there, awaited in the loop. A message
is settled by a call into the loop, so this is for scripts. There is no callback: a thread iterates.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dss_client import jetstream
from dss_client.jetstream.config import ConsumerConfig, ConsumerInfo, PubAck, StreamInfo
from dss_client.jetstream.message import Metadata
from dss_core.errors import JetStreamMisuse

if TYPE_CHECKING:
    from dss_client.sync._portal import Portal

Pushed = jetstream.PushSubscription | jetstream.OrderedSubscription


class Msg:
    """A message that was handed out."""

    __slots__ = ("_portal", "_twin")

    def __init__(self, portal: "Portal", twin: jetstream.Msg) -> None:
        self._portal = portal
        self._twin = twin

    @property
    def subject(self) -> str:
        """The subject."""
        return self._twin.subject

    @property
    def data(self) -> bytes:
        """The payload."""
        return self._twin.data

    @property
    def headers(self) -> dict[str, str] | None:
        """Further facts."""
        return self._twin.headers

    @property
    def reply(self) -> str:
        """The acknowledgement subject, for tools that read it."""
        return self._twin.reply

    @property
    def metadata(self) -> Metadata:
        """Its metadata."""
        return self._twin.metadata

    @property
    def is_acked(self) -> bool:
        """Whether it was acknowledged, refused or terminated."""
        return self._portal.call(lambda: self._twin.is_acked)

    def ack(self) -> None:
        """Acknowledge it."""
        self._portal.call(self._twin.ack)

    def ack_sync(self, timeout: float = 1.0) -> "Msg":
        """Acknowledge it, and wait until that is durable."""
        self._portal.run(self._twin.ack_sync(timeout))
        return self

    def nak(self, delay: float | None = None) -> None:
        """Refuse it: it comes again after so many seconds, or at once."""
        self._portal.run(self._twin.nak(delay))

    def term(self, reason: str | None = None) -> None:
        """Never deliver it again."""
        self._portal.run(self._twin.term(reason))

    def in_progress(self) -> None:
        """Work on it goes on: its ack wait begins anew."""
        self._portal.run(self._twin.in_progress())


class PushSubscription:
    """Messages as they come; of an ordered consumer too."""

    def __init__(self, portal: "Portal", twin: Pushed) -> None:
        self._portal = portal
        self._twin = twin

    @property
    def messages(self) -> Iterator[Msg]:
        """Messages, one by one, until the subscription ends."""
        for message in self._portal.iterate(self._twin.messages):
            yield Msg(self._portal, message)

    def next_msg(self, timeout: float | None = 1.0) -> Msg:
        """The next message; raises TimeoutError where none comes in time."""
        return Msg(self._portal, self._portal.run(self._twin.next_msg(timeout)))

    def consumer_info(self) -> ConsumerInfo:
        """The consumer as it is now."""
        return self._portal.run(self._twin.consumer_info())

    def unsubscribe(self) -> None:
        """Leave; delete the consumer if this made it and nobody else uses it."""
        self._portal.run(self._twin.unsubscribe())


class PullSubscription:
    """Messages as they are fetched."""

    def __init__(self, portal: "Portal", twin: jetstream.PullSubscription) -> None:
        self._portal = portal
        self._twin = twin

    def fetch(
        self,
        batch: int = 1,
        timeout: float | None = 5.0,
        heartbeat: float | None = None,
        *,
        no_wait: bool = False,
        max_bytes: int | None = None,
    ) -> list[Msg]:
        """Up to so many messages, as `dss_client.jetstream.PullSubscription.fetch`."""
        work = self._twin.fetch(batch, timeout, heartbeat, no_wait=no_wait, max_bytes=max_bytes)
        return [Msg(self._portal, each) for each in self._portal.run(work)]

    def consumer_info(self) -> ConsumerInfo:
        """The consumer as it is now."""
        return self._portal.run(self._twin.consumer_info())

    def unsubscribe(self) -> None:
        """Leave; delete the consumer if this made it and nobody else uses it."""
        self._portal.run(self._twin.unsubscribe())


class JetStream:
    """Made by `Client.jetstream`."""

    def __init__(self, portal: "Portal", twin: jetstream.JetStream) -> None:
        self._portal = portal
        self._twin = twin

    def find_stream_name_by_subject(self, subject: str) -> str:
        """The one stream that the subject meets."""
        return self._portal.run(self._twin.find_stream_name_by_subject(subject))

    def add_stream(
        self,
        name: str,
        subjects: list[str],
        *,
        partitions: int = 1,
        max_age: float | None = None,
        **fields: Any,  # noqa: ANN401 - as those of a stream of JetStream
    ) -> StreamInfo:
        """Make a topic for the subjects, as `dss_client.jetstream.JetStream.add_stream`."""
        made = self._twin.add_stream(
            name, subjects, partitions=partitions, max_age=max_age, **fields
        )
        return self._portal.run(made)

    def stream_info(self, name: str) -> StreamInfo:
        """The stream with its state."""
        return self._portal.run(self._twin.stream_info(name))

    def consumer_info(self, stream: str, consumer: str) -> ConsumerInfo:
        """The consumer with its state."""
        return self._portal.run(self._twin.consumer_info(stream, consumer))

    def add_consumer(
        self,
        stream: str,
        config: ConsumerConfig | None = None,
        **fields: Any,  # noqa: ANN401 - as those of the config
    ) -> ConsumerInfo:
        """Make a consumer, or accept one with these settings."""
        return self._portal.run(self._twin.add_consumer(stream, config, **fields))

    def delete_consumer(self, stream: str, consumer: str) -> bool:
        """Delete a consumer, whoever uses it."""
        return self._portal.run(self._twin.delete_consumer(stream, consumer))

    def publish(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float | None = None,
        stream: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> PubAck:
        """Store a message; those of one subject stay in order."""
        work = self._twin.publish(subject, payload, timeout, stream, headers)
        return self._portal.run(work)

    def subscribe(
        self,
        subject: str = "",
        queue: str | None = None,
        **given: Any,  # noqa: ANN401 - as those there
    ) -> PushSubscription:
        """Subscribe, as `dss_client.jetstream.JetStream.subscribe`, and iterate.

        Raises:
            JetStreamMisuse: a callback was given.
        """
        if given.get("cb") is not None:
            raise JetStreamMisuse(rule="a thread iterates over messages, and has no callback")
        twin = self._portal.run(self._twin.subscribe(subject, queue, **given))
        return PushSubscription(self._portal, twin)

    def pull_subscribe(
        self,
        subject: str = "",
        durable: str | None = None,
        **given: Any,  # noqa: ANN401 - as those there
    ) -> PullSubscription:
        """Pull from a consumer, as `dss_client.jetstream.JetStream.pull_subscribe`."""
        twin = self._portal.run(self._twin.pull_subscribe(subject, durable, **given))
        return PullSubscription(self._portal, twin)

    def subscribe_bind(
        self, stream: str, config: ConsumerConfig, consumer: str
    ) -> PushSubscription:
        """Subscribe to an existing consumer, and iterate."""
        twin = self._portal.run(self._twin.subscribe_bind(stream, config, consumer))
        return PushSubscription(self._portal, twin)

    def pull_subscribe_bind(
        self, consumer: str | None = None, stream: str | None = None
    ) -> PullSubscription:
        """Pull from an existing consumer."""
        twin = self._portal.run(self._twin.pull_subscribe_bind(consumer, stream))
        return PullSubscription(self._portal, twin)
