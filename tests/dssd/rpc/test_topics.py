"""What the servicer of topics tells of the log."""

from pathlib import Path
from typing import Any, cast

import grpc.aio
import pytest

from dss_api.v1 import topics_pb2
from dss_core.errors import IllegalArgument
from dssd.leaders.dead_letters import DeadLetterPlaces
from dssd.rpc.topics import TopicsServicer
from dssd.store.memory import MemoryStore
from dssd.store.port import Put
from dssd.store.rows import CeilingRow, GroupRow
from dssd.topics.catalogue import Topic
from support.log_in_process import Shelf, opened_shelf

NO_CONTEXT = cast("grpc.aio.ServicerContext[Any, Any]", None)
NO_GROUPS = cast("DeadLetterPlaces", None)
CEILING = 1_024


async def no_readers(topic: Topic) -> list[GroupRow]:
    return []


async def described(shelf: Shelf, name: str) -> topics_pb2.StreamBounds:
    """Its only stream."""
    topics = TopicsServicer(shelf.catalogue, shelf.log, no_readers, NO_GROUPS)
    request = topics_pb2.DescribeTopicRequest(name=name)
    topic = await topics.Describe(request, NO_CONTEXT)
    return topic.storage_topics[0].streams[0]


async def located(
    shelf: Shelf, start_us: int | None = None, end_us: int | None = None
) -> list[tuple[str, int, int]]:
    topics = TopicsServicer(shelf.catalogue, shelf.log, no_readers, NO_GROUPS)
    request = topics_pb2.LocateRequest(name="orders", start_us=start_us, end_us=end_us)
    reply = await topics.Locate(request, NO_CONTEXT)
    return [(each.stream, each.start, each.end) for each in reply.ranges]


async def test_what_has_offsets_says_of_which_data_they_are(shelf: Shelf) -> None:
    await shelf.topic("orders")
    topics = TopicsServicer(shelf.catalogue, shelf.log, no_readers, NO_GROUPS)
    replies = (
        await topics.List(topics_pb2.ListTopicsRequest(), NO_CONTEXT),
        await topics.Describe(topics_pb2.DescribeTopicRequest(name="orders"), NO_CONTEXT),
        await topics.Locate(topics_pb2.LocateRequest(name="orders"), NO_CONTEXT),
    )
    assert {each.incarnation for each in replies} == {shelf.catalogue.incarnation}


async def test_who_routes_is_told_everything_but_the_streams(shelf: Shelf) -> None:
    await shelf.topic("orders", 2)
    topics = TopicsServicer(shelf.catalogue, shelf.log, no_readers, NO_GROUPS)
    whole, routing = [
        await topics.Describe(
            topics_pb2.DescribeTopicRequest(name="orders", without_streams=without), NO_CONTEXT
        )
        for without in (False, True)
    ]
    assert [len(part.streams) for part in whole.storage_topics] == [2]
    assert routing.producers_begin_us >= whole.producers_begin_us > 0
    for each in (whole, routing):
        each.ClearField("producers_begin_us")
        for part in each.storage_topics:
            part.ClearField("streams")
    assert routing == whole


async def test_every_stream_has_a_place_for_a_time(shelf: Shelf) -> None:
    topic = await shelf.topic("orders", 2)
    stored = [await shelf.store(topic, b"%d" % at) for at in range(4)]
    times_us = [each.append_time_us for each in stored]
    await shelf.log.trim(topic.streams()[0], 1)
    assert await located(shelf) == [("orders/0/0", 1, 4), ("orders/0/1", 0, 0)]
    assert (await located(shelf, start_us=times_us[2], end_us=times_us[3]))[0][1:] == (2, 3)
    assert (await located(shelf, start_us=times_us[0]))[0][1:] == (1, 4)
    assert (await located(shelf, end_us=times_us[0]))[0][1:] == (1, 1)
    assert (await located(shelf, start_us=times_us[3] + 1))[0][1:] == (4, 4)
    assert (await located(shelf, start_us=times_us[2], end_us=times_us[1]))[0][1:] == (2, 2)
    with pytest.raises(IllegalArgument):
        await located(shelf, start_us=-1)


async def test_what_retention_took_is_no_record(shelf: Shelf) -> None:
    topic = await shelf.topic("orders")
    for payload in (b"a", b"b", b"c"):
        await shelf.store(topic, payload)
    await shelf.log.trim(topic.streams()[0], 1)
    bounds = await described(shelf, "orders")
    assert (bounds.start, bounds.end, bounds.records) == (1, 3, 2)


async def test_offsets_that_a_start_left_out_are_no_records(tmp_path: Path) -> None:
    store = MemoryStore()
    async with opened_shelf(tmp_path, store) as shelf:
        topic = await shelf.topic("orders")
        await shelf.store(topic, b"a", b"b", b"c")
    await store.commit([Put(CeilingRow(*topic.streams()[0], CEILING))])
    async with opened_shelf(tmp_path, store) as shelf:
        bounds = await described(shelf, "orders")
        assert (bounds.start, bounds.end, bounds.records) == (0, CEILING, 3)
        topics = TopicsServicer(shelf.catalogue, shelf.log, no_readers, NO_GROUPS)
        listed = await topics.List(topics_pb2.ListTopicsRequest(), NO_CONTEXT)
        assert [summary.records for summary in listed.topics] == [3]
