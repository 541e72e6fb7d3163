"""The configuration and the state of JetStream's consumers, streams and messages.

Invariant: values only, with JetStream's names for their fields. A field that is None was not given,
and is never compared with that of a consumer.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from dss_core.errors import JetStreamMisuse

ACK_WAIT_S = 30.0
EPHEMERAL_S = 5.0
"""How long an unused ephemeral consumer stays where nothing else is said, as in JetStream."""

MAX_ACK_PENDING = 1_000
MAX_WAITING = 512
"""The default of a consumer, as a JetStream server reports it."""


class AckPolicy(StrEnum):
    """What has to be acknowledged."""

    NONE = "none"
    ALL = "all"
    EXPLICIT = "explicit"


class DeliverPolicy(StrEnum):
    """Where a consumer begins."""

    ALL = "all"
    LAST = "last"
    NEW = "new"
    BY_START_SEQUENCE = "by_start_sequence"
    BY_START_TIME = "by_start_time"
    LAST_PER_SUBJECT = "last_per_subject"


class ReplayPolicy(StrEnum):
    """The pace at which stored messages are replayed."""

    INSTANT = "instant"
    ORIGINAL = "original"


@dataclass(slots=True)
class ConsumerConfig:
    """The configuration of a consumer, wanted or present; spans are in seconds."""

    name: str | None = None
    durable_name: str | None = None
    description: str | None = None
    deliver_policy: DeliverPolicy | None = None
    opt_start_seq: int | None = None
    opt_start_time: datetime | None = None
    ack_policy: AckPolicy | None = None
    ack_wait: float | None = None
    max_deliver: int | None = None
    backoff: list[float] | None = None
    filter_subject: str | None = None
    filter_subjects: list[str] | None = None
    replay_policy: ReplayPolicy | None = None
    rate_limit_bps: int | None = None
    sample_freq: str | None = None
    max_waiting: int | None = None
    max_ack_pending: int | None = None
    flow_control: bool | None = None
    idle_heartbeat: float | None = None
    headers_only: bool | None = None
    max_batch: int | None = None
    max_expires: float | None = None
    max_bytes: int | None = None
    deliver_subject: str | None = None
    deliver_group: str | None = None
    inactive_threshold: float | None = None
    num_replicas: int | None = None
    mem_storage: bool | None = None
    metadata: dict[str, str] | None = None

    @property
    def is_pull(self) -> bool:
        """Whether it is pulled from rather than subscribed to."""
        return self.deliver_subject is None

    def said(self) -> dict[str, Any]:
        """The fields that were given, by name."""
        return {
            each.name: value
            for each in fields(self)
            if (value := getattr(self, each.name)) is not None
        }

    def to_json(self) -> dict[str, Any]:
        """The fields that were given, for the metadata of a group."""
        said = self.said()
        if self.opt_start_time is not None:
            said["opt_start_time"] = self.opt_start_time.astimezone(UTC).isoformat()
        return said

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> "ConsumerConfig":
        """Read what `to_json` gave; a field of a later version is ignored."""
        known = {each.name for each in fields(cls)}
        made = cls(**{name: value for name, value in said.items() if name in known})
        for name, kind in _ENUMS.items():
            if (value := getattr(made, name)) is not None:
                setattr(made, name, kind(value))
        if isinstance(made.opt_start_time, str):
            made.opt_start_time = datetime.fromisoformat(made.opt_start_time)
        return made


_ENUMS: dict[str, type[StrEnum]] = {
    "ack_policy": AckPolicy,
    "deliver_policy": DeliverPolicy,
    "replay_policy": ReplayPolicy,
}

_DEFAULTS: dict[str, Any] = {
    "deliver_policy": DeliverPolicy.ALL,
    "ack_policy": AckPolicy.EXPLICIT,
    "replay_policy": ReplayPolicy.INSTANT,
    "ack_wait": ACK_WAIT_S,
    "max_deliver": -1,
    "num_replicas": 1,
}
_ONE_WAY = ("flow_control", "mem_storage")
"""Fields whose default is off: only a request that they be on differs from off."""

_CHOSEN = ("name", "deliver_subject", "deliver_group", "filter_subject", "filter_subjects")
"""Fields that find the consumer, or that have a check of their own."""


def with_defaults(config: ConsumerConfig) -> ConsumerConfig:
    """Complete a configuration as a server would.

    Except for max_ack_pending: without it, the credit of the session bounds what is in flight.
    """
    said = config.said()
    defaults = dict(_DEFAULTS)
    if config.is_pull:
        defaults["max_waiting"] = MAX_WAITING
    if config.durable_name is None:
        defaults["inactive_threshold"] = EPHEMERAL_S
    if config.backoff:
        said["ack_wait"] = config.backoff[0]
    return ConsumerConfig(**(defaults | said))


def differences(asked: ConsumerConfig, has: ConsumerConfig) -> Iterator[str]:
    """The fields asked for that the consumer does not have, in words."""
    for name, wanted in asked.said().items():
        found = getattr(has, name)
        if name in _CHOSEN or (name in _ONE_WAY and not wanted):
            continue
        if name == "ack_wait" and has.backoff:
            continue  # the back-off has it, whatever was said
        if _comparable(name, wanted) != _comparable(name, found):
            yield f"{name} was asked to be {wanted!s}, and is {found!s}"


def _comparable(name: str, value: Any) -> Any:  # noqa: ANN401 - of any field
    if name == "max_deliver":
        return value or -1
    if name == "max_ack_pending":
        return value or MAX_ACK_PENDING
    if name == "num_replicas":
        return value or 1
    if name in ("rate_limit_bps", "max_batch", "max_bytes", "max_expires", "inactive_threshold"):
        return value or 0
    if name == "metadata" and isinstance(value, dict):
        # Metadata with this prefix is the server's own.
        return {key: text for key, text in value.items() if not key.startswith("_nats")}
    return value or None if name in ("headers_only", *_ONE_WAY) else value


def check_seconds(name: str, value: float | None) -> None:
    """Refuse a span that runs backwards.

    Raises:
        JetStreamMisuse: it is negative.
    """
    if value is not None and value < 0:
        raise JetStreamMisuse(rule=f"{name} {value} is negative")


@dataclass(frozen=True, slots=True)
class SequenceInfo:
    """A position, as a sequence of the consumer and of the stream."""

    consumer_seq: int | None
    """None: DSS counts no deliveries of a consumer."""
    stream_seq: int | None
    """None where the stream has several partitions."""


@dataclass(frozen=True, slots=True)
class ConsumerInfo:
    """A consumer with its state."""

    name: str
    stream_name: str
    config: ConsumerConfig
    created: datetime
    push_bound: bool
    """Somebody has subscribed to it."""
    ack_floor: SequenceInfo | None = None
    num_ack_pending: int | None = None
    num_pending: int | None = None
    num_redelivered: int | None = None
    delivered: SequenceInfo | None = None
    """None: nobody but the client knows how far it handed out."""
    group_id: int = field(default=0, compare=False)
    """The id of its group in DSS, which differs from a later group of the same name."""
    filter: str = field(default="", compare=False)
    """What its group reads, as DSS writes it."""


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """What a stream is."""

    name: str
    subjects: list[str]


@dataclass(frozen=True, slots=True)
class StreamState:
    """How much a stream holds."""

    messages: int
    bytes: int
    first_seq: int | None
    """This and the next: None where it has several partitions."""
    last_seq: int | None
    consumer_count: int


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A stream with its state."""

    config: StreamConfig
    state: StreamState
    created: datetime


@dataclass(frozen=True, slots=True)
class PubAck:
    """Where a message was stored."""

    stream: str
    seq: int | None
    """None where the stream has several partitions."""
    duplicate: bool = False


METADATA_VERSION = 1


def to_metadata(stream: str, config: ConsumerConfig, created_by: str) -> str:
    """What is kept with the group of a consumer."""
    kept = {"jetstream": METADATA_VERSION, "stream": stream, "created_by": created_by}
    return json.dumps(kept | {"config": config.to_json()}, separators=(",", ":"))


def from_metadata(text: str) -> tuple[str, ConsumerConfig] | None:
    """Stream and configuration; None where the group was not made by this facade.

    Whoever may make a group may write anything there.
    """
    try:
        kept = json.loads(text) if text else {}
        if kept.get("jetstream") != METADATA_VERSION:
            return None
        return str(kept["stream"]), ConsumerConfig.from_json(kept["config"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
