"""What the servicer of topics tells of the log."""

from pathlib import Path
from typing import Any, cast

import grpc.aio

from dss_api.v1 import topics_pb2
from dssd.rpc.topics import TopicsServicer
from dssd.store.memory import MemoryStore
from dssd.store.port import Put
from dssd.store.rows import CeilingRow, GroupRow
from dssd.topics.catalogue import Topic
from support.log_in_process import Shelf, opened_shelf

NO_CONTEXT = cast("grpc.aio.ServicerContext[Any, Any]", None)
CEILING = 1_024


async def no_readers(topic: Topic) -> list[GroupRow]:
    return []


async def described(shelf: Shelf, name: str) -> topics_pb2.StreamBounds:
    """Its only stream."""
    topics = TopicsServicer(shelf.catalogue, shelf.log, no_readers)
    request = topics_pb2.DescribeTopicRequest(name=name)
    topic = await topics.Describe(request, NO_CONTEXT)
    return topic.storage_topics[0].streams[0]


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
        topics = TopicsServicer(shelf.catalogue, shelf.log, no_readers)
        listed = await topics.List(topics_pb2.ListTopicsRequest(), NO_CONTEXT)
        assert [summary.records for summary in listed.topics] == [3]
