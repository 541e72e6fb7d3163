"""Loops whose length a client chooses do not hold the event loop."""

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

import grpc.aio
import pytest

from dss_api.v1 import log_pb2, topics_pb2, types_pb2
from dss_core.filters import TopicFilter
from dssd.core.start import Earliest
from dssd.rpc.intake import Gate
from dssd.rpc.publish import Publisher
from dssd.rpc.reading import ReadCall, Reading
from dssd.rpc.room import Room
from dssd.rpc.topics import TopicsServicer
from dssd.rpc.turns import Turn
from dssd.testing.shelf import Shelf

STREAMS = 50
NO_CONTEXT = cast("grpc.aio.ServicerContext[Any, Any]", None)


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dssd.rpc.turns.TURN_S", 0)


async def turns_of_others(call: Awaitable[object]) -> int:
    """How often another task ran while the call did."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(other(), name="other")
        await call
        running.cancel()
    return turns


async def rounds(count: int) -> None:
    turn = Turn()
    for _ in range(count):
        await turn.give_way()


async def test_a_turn_that_is_not_over_costs_the_loop_nothing() -> None:
    assert await turns_of_others(rounds(3)) <= 1


@pytest.mark.usefixtures("short_turns")
async def test_a_turn_that_is_over_is_given_up_in_each_round() -> None:
    assert await turns_of_others(rounds(STREAMS)) >= STREAMS


@pytest.mark.usefixtures("short_turns")
async def test_topics_are_described_and_listed_with_others_in_between(shelf: Shelf) -> None:
    topics = TopicsServicer(shelf.catalogue, shelf.log, lambda topic: [])
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
    gate = Gate(await shelf.topic("a", 2))
    publisher = Publisher(shelf.log, Room(1 << 20), shelf.clock)
    records = [types_pb2.Record(subject=f"a/{at}", payload=b"x") for at in range(STREAMS)]
    # At least for the subject, for the partition, for the columns and for the answer of each.
    assert await turns_of_others(publisher.publish(gate, records)) >= 4 * STREAMS
