"""Raw stubs on a channel, without a client between them and the daemon."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc.aio

from dss_api.v1 import (
    daemon_pb2_grpc,
    events_pb2_grpc,
    groups_pb2_grpc,
    log_pb2,
    log_pb2_grpc,
    sessions_pb2_grpc,
    topics_pb2_grpc,
    types_pb2,
)
from dss_core.errors import DssError, from_wire
from dss_core.limits import MESSAGE_BYTES_MAX
from dss_core.routing import SWITCHES
from dssd.rpc.errors import ERROR_METADATA_KEY


@dataclass(frozen=True, slots=True)
class Stubs:
    """One stub for each service."""

    daemon: daemon_pb2_grpc.DaemonStub
    topics: topics_pb2_grpc.TopicsStub
    groups: groups_pb2_grpc.GroupsStub
    log: log_pb2_grpc.LogStub
    sessions: sessions_pb2_grpc.SessionsStub
    events: events_pb2_grpc.EventsStub


@asynccontextmanager
async def connected(endpoint: str) -> AsyncIterator[Stubs]:
    """Stubs on a channel of their own."""
    options = (
        ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
        ("grpc.max_send_message_length", -1),
        # Channels of one process share connections unless they are told not to.
        ("grpc.use_local_subchannel_pool", 1),
    )
    async with grpc.aio.insecure_channel(endpoint, options=options) as channel:
        yield Stubs(
            daemon_pb2_grpc.DaemonStub(channel),
            topics_pb2_grpc.TopicsStub(channel),
            groups_pb2_grpc.GroupsStub(channel),
            log_pb2_grpc.LogStub(channel),
            sessions_pb2_grpc.SessionsStub(channel),
            events_pb2_grpc.EventsStub(channel),
        )


async def produced(
    stubs: Stubs, topic: str, topic_epoch: int, *frames: bytes
) -> log_pb2.ProduceReply:
    """All answers to these frames, sent in one request of one call."""
    call = stubs.log.Produce()
    request = log_pb2.ProduceRequest(topic=topic, topic_epoch=topic_epoch, frames=frames)
    request.features.append(SWITCHES)
    await call.write(request)
    await call.done_writing()
    answers = log_pb2.ProduceReply()
    async for reply in call:
        answers.MergeFrom(reply)
    return answers


def condition_of(error: grpc.aio.AioRpcError) -> DssError:
    """The condition that ended a call."""
    metadata = dict(error.trailing_metadata() or ())
    return condition(types_pb2.Error.FromString(metadata[ERROR_METADATA_KEY]))


def condition(error: types_pb2.Error) -> DssError:
    """The condition in an item."""
    return from_wire(error.code, error.fields, error.message)
