"""Loops whose length a client chooses do not hold the event loop."""

from typing import Any, cast

import grpc.aio
import pytest

from dss_api.v1 import log_pb2, topics_pb2, types_pb2
from dss_core.filters import TopicFilter
from dssd.leaders.dead_letters import DeadLetterPlaces
from dssd.machines.start_point import Earliest
from dssd.rpc.backpressure import AppendBudget
from dssd.rpc.frame_checks import Gates
from dssd.rpc.publish import RecordPublisher
from dssd.rpc.read_call import ReadCall, Reading
from dssd.rpc.topics import TopicsServicer
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Topic
from support.log_in_process import Shelf
from support.loop_yields import turns_of_others

STREAMS = 50
NO_CONTEXT = cast("grpc.aio.ServicerContext[Any, Any]", None)
NO_GROUPS = cast("DeadLetterPlaces", None)


async def no_readers(topic: Topic) -> list[GroupRow]:
    return []


@pytest.mark.usefixtures("short_turns")
async def test_topics_are_described_and_listed_with_others_in_between(shelf: Shelf) -> None:
    topics = TopicsServicer(shelf.catalogue, shelf.log, no_readers, NO_GROUPS)
    await shelf.topic("wide", STREAMS)
    describe = topics.Describe(topics_pb2.DescribeTopicRequest(name="wide"), NO_CONTEXT)
    assert await turns_of_others(describe) >= STREAMS
    listed = topics.List(topics_pb2.ListTopicsRequest(), NO_CONTEXT)
    assert await turns_of_others(listed) >= STREAMS


@pytest.mark.usefixtures("short_turns")
async def test_a_read_of_many_streams_is_opened_with_others_in_between(shelf: Shelf) -> None:
    await shelf.topic("wide", STREAMS)
    asked = Reading(TopicFilter.parse("#"), Earliest(), None, False, None, None)

    async def read() -> list[log_pb2.ReadReply]:
        call = ReadCall(asked, shelf.catalogue, shelf.log, shelf.clock)
        return [reply async for reply in call.replies()]

    assert await turns_of_others(read()) >= STREAMS


@pytest.mark.usefixtures("short_turns")
async def test_many_records_are_published_with_others_in_between(shelf: Shelf) -> None:
    await shelf.topic("a", 2)
    publisher = RecordPublisher(shelf.log, shelf.clock)
    budget = AppendBudget(1 << 20).of("")
    records = [types_pb2.Record(subject=f"a/{at}", payload=b"x") for at in range(STREAMS)]
    # At least for the subject, for the partition, for the columns and for the answer of each.
    assert (
        await turns_of_others(publisher.publish(Gates(shelf.catalogue), budget, "a", records))
        >= 4 * STREAMS
    )
