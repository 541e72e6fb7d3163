"""A call to subscribe, and what of it is refused before anything is asked.

Invariant: pure. What passes `checked` contradicts neither itself nor the rules of JetStream; what
the stream and its consumers make of it is decided in `workflow`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from dss_client.jetstream._subjects import check_token, slashed
from dss_client.jetstream.config import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    check_seconds,
)
from dss_core.errors import JetStreamMisuse

HEARTBEAT_S_MIN = 0.1
"""The shortest interval of heartbeats of a push consumer, as in JetStream."""

ORDERED_ACK_WAIT_S = 22 * 3_600
ORDERED_HEARTBEAT_S = 5.0
"""The configuration reported for an ordered consumer; it acknowledges nothing."""

_SPANS = ("ack_wait", "idle_heartbeat", "inactive_threshold", "max_expires")
_OF_PULL = ("max_waiting", "max_batch", "max_bytes", "max_expires")


@dataclass(frozen=True, slots=True)
class SubscribeCall:
    """The arguments of a program's call."""

    subject: str = ""
    stream: str = ""
    queue: str = ""
    durable: str = ""
    consumer: str | None = None
    """The consumer to bind to; it is never made."""
    pull: bool = False
    ordered: bool = False
    skip_lookup: bool = False
    config: ConsumerConfig = field(default_factory=ConsumerConfig)
    fresh_name: str = ""
    """The random name of an ephemeral consumer that has none."""
    fresh_inbox: str = ""

    @property
    def name(self) -> str:
        """The name of the consumer that is meant; empty: a new ephemeral one."""
        return self.consumer or self.durable or self.config.name or ""

    def creates(self) -> ConsumerConfig:
        """The configuration for a consumer that does not exist yet."""
        config = self.config
        one = config.filter_subjects is None
        return replace(
            config,
            name=self.name or self.fresh_name,
            durable_name=self.durable or None,
            filter_subject=(self.subject or config.filter_subject) if one else None,
            deliver_group=self.queue or None,
            deliver_subject=None if self.pull else config.deliver_subject or self.fresh_inbox,
        )


def checked(call: SubscribeCall) -> SubscribeCall:
    """The call, with what follows from it filled in.

    Raises:
        JetStreamMisuse: it contradicts itself.
    """
    for broken in _broken_rules(call):
        raise JetStreamMisuse(rule=broken)
    for subject in (call.subject, *(call.config.filter_subjects or ())):
        if subject:
            slashed(subject, wildcards=True)
    durable = call.durable or call.config.durable_name or ""
    if call.queue and not durable and not call.consumer:
        durable = call.queue
    named = {
        "stream": call.stream, "queue": call.queue, "durable name": durable,
        "consumer": call.consumer, "name": call.config.name,
    }  # fmt: skip
    for what, name in named.items():
        if name:
            check_token(what, name)
    return replace(call, durable=durable, queue=call.queue or call.config.deliver_group or "")


def _broken_rules(call: SubscribeCall) -> Iterator[str]:
    config, kept = call.config, call.config.durable_name
    if not call.subject and not call.stream:
        yield "a subject is required, or a stream"
    if call.consumer is not None and not call.consumer:
        yield "the consumer to bind to has no name"
    if call.consumer and not call.stream:
        yield "a stream is required to bind to a consumer"
    if call.durable and kept and call.durable != kept:
        yield f"the durable name is given twice, as {call.durable} and {kept}"
    if call.consumer and (durable := call.durable or kept) and durable != call.consumer:
        yield f"two consumers are named, {durable} and {call.consumer}"
    if call.queue and config.deliver_group and call.queue != config.deliver_group:
        yield f"queue {call.queue} and deliver group {config.deliver_group} differ"
    if call.ordered:
        yield from _broken_by_ordered(call)
    yield from broken_config(config, pull=call.pull)
    yield from _broken_by_pull(call) if call.pull else _broken_by_push(call)


def _broken_by_pull(call: SubscribeCall) -> Iterator[str]:
    if call.config.deliver_subject:
        yield "a pull subscription has no deliver subject"
    if call.queue or call.config.deliver_group:
        yield "a pull subscription has no queue and no deliver group: several may pull anyway"


def _broken_by_push(call: SubscribeCall) -> Iterator[str]:
    queue = call.queue or call.config.deliver_group
    if queue and (call.config.idle_heartbeat or call.config.flow_control):
        yield "a queue has neither heartbeats nor flow control"


def _broken_by_ordered(call: SubscribeCall) -> Iterator[str]:
    config, ordered = call.config, "of an ordered consumer"
    if call.durable or config.durable_name:
        yield f"no durable name {ordered}"
    if config.ack_policy not in (None, AckPolicy.NONE):
        yield f"no ack policy but none {ordered}"
    if config.max_deliver not in (None, 1):
        yield f"no max_deliver but 1 {ordered}"
    if config.deliver_subject:
        yield f"no deliver subject {ordered}"
    if call.queue or config.deliver_group:
        yield f"no queue {ordered}"
    if call.consumer:
        yield f"no binding {ordered}"
    if call.pull:
        yield f"no pulling {ordered}"
    if config.mem_storage is False or config.flow_control is False:
        yield f"memory storage and flow control cannot be off {ordered}"
    if config.num_replicas not in (None, 1):
        yield f"no replicas but 1 {ordered}"


def broken_config(config: ConsumerConfig, *, pull: bool) -> Iterator[str]:
    """The rules that a configuration breaks, whoever makes the consumer."""
    for name in _SPANS:
        check_seconds(name, getattr(config, name))
    for step in config.backoff or ():
        check_seconds("backoff", step)
    if config.num_replicas is not None and config.num_replicas < 1:
        yield f"num_replicas {config.num_replicas} is less than 1"
    if config.name and config.durable_name and config.name != config.durable_name:
        yield f"name {config.name} and durable_name {config.durable_name} differ"
    if config.filter_subject and config.filter_subjects:
        yield "filter_subject and filter_subjects are not given together"
    if config.backoff and 0 < (config.max_deliver or 0) < len(config.backoff):
        yield "max_deliver is less than the steps of backoff"
    yield from _broken_start(config)
    yield from _broken_pull_config(config) if pull else _broken_push_config(config)


def _broken_pull_config(config: ConsumerConfig) -> Iterator[str]:
    if config.ack_policy not in (None, AckPolicy.EXPLICIT):
        yield f"a pull consumer acknowledges each message, not {config.ack_policy}"
    if config.flow_control or config.idle_heartbeat:
        yield "a pull consumer has neither flow control nor heartbeats of its own"
    if config.rate_limit_bps:
        yield "a pull consumer has no rate limit"


def _broken_push_config(config: ConsumerConfig) -> Iterator[str]:
    for name in _OF_PULL:
        if getattr(config, name):
            yield f"{name} is of pull consumers"
    if config.ack_policy == AckPolicy.NONE and (config.max_ack_pending or 0) > 0:
        yield "max_ack_pending without acknowledgements"
    if config.idle_heartbeat and config.idle_heartbeat < HEARTBEAT_S_MIN:
        yield f"idle_heartbeat is at least {HEARTBEAT_S_MIN} s"
    if config.flow_control and not config.idle_heartbeat:
        yield "flow control needs heartbeats"


def _broken_start(config: ConsumerConfig) -> Iterator[str]:
    policy = config.deliver_policy or DeliverPolicy.ALL
    wants = {
        DeliverPolicy.BY_START_SEQUENCE: "opt_start_seq",
        DeliverPolicy.BY_START_TIME: "opt_start_time",
    }
    for kind, name in wants.items():
        said = getattr(config, name) is not None
        if said and policy != kind:
            yield f"{name} is given, and the consumer delivers {policy}"
        if not said and policy == kind:
            yield f"the consumer delivers {policy}, and {name} is not given"
