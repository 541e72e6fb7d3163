"""A program that was written for NATS JetStream, on DSS: `Client.jetstream` is the way in.

Invariant: it keeps the names, the errors' reasons and the order of JetStream's subscribe workflow;
what DSS cannot do truly is refused at the call, with a sentence and a code.
"""

from dss_client.jetstream.config import (
    AckPolicy,
    ConsumerConfig,
    ConsumerInfo,
    DeliverPolicy,
    PubAck,
    ReplayPolicy,
    StreamInfo,
)
from dss_client.jetstream.context import JetStream
from dss_client.jetstream.message import Metadata, Msg
from dss_client.jetstream.ordered import OrderedSubscription
from dss_client.jetstream.subscriptions import PullSubscription, PushSubscription
from dss_client.jetstream.tokens import AckSubject

__all__ = [
    "AckPolicy",
    "AckSubject",
    "ConsumerConfig",
    "ConsumerInfo",
    "DeliverPolicy",
    "JetStream",
    "Metadata",
    "Msg",
    "OrderedSubscription",
    "PubAck",
    "PullSubscription",
    "PushSubscription",
    "ReplayPolicy",
    "StreamInfo",
]
