"""Reads over a real log: what is sent, in which order, and when a read ends."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any

import pytest

from dss_api.v1 import log_pb2
from dss_core.decode import decode
from dss_core.errors import (
    IllegalArgument,
    LogUnreadable,
    OffsetOutOfRange,
    Stopping,
    StreamNotFound,
)
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId, StreamName
from dss_core.limits import MESSAGE_BYTES_MAX, NAME_BYTES_MAX, PARTITIONS_MAX
from dss_core.producer_ids import new_producer_id
from dssd.limits import READ_AGAIN_MS
from dssd.log.port import Chunk
from dssd.log.read.chunk_builder import READ_BRIDGE_BYTES_MAX
from dssd.machines.start_point import AtOffset, AtTime, Earliest, Now, StartPoint
from dssd.rpc.read_call import READ_NAMES_PER_REPLY_MAX, ReadCall, Reading
from dssd.topics.catalogue import Topic
from support.log_in_process import Shelf


def reading(
    filter_text: str = "#",
    *,
    start: StartPoint = Earliest(),  # noqa: B008 - frozen
    end_time_us: int | None = None,
    follow: bool = False,
    stream: StreamName | None = None,
    records_max: int | None = None,
    end_offset: int | None = None,
) -> Reading:
    matching = TopicFilter.parse(filter_text)
    return Reading(matching, start, end_time_us, follow, stream, records_max, end_offset)


def call(shelf: Shelf, asked: Reading) -> ReadCall:
    return ReadCall(asked, shelf.catalogue, shelf.log, shelf.clock)


def payloads(replies: Iterable[log_pb2.ReadReply]) -> list[bytes]:
    found: list[bytes] = []
    for reply in replies:
        if reply.frames:
            mask = tuple((part.start, part.end) for part in reply.mask)
            found += decode(reply.frames, mask).payloads
    return found


async def read(shelf: Shelf, asked: Reading) -> list[bytes]:
    return payloads([reply async for reply in call(shelf, asked).replies()])


async def next_payloads(replies: AsyncIterator[log_pb2.ReadReply], count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        found += payloads([await anext(replies)])
    return found


async def test_a_read_tells_its_streams_and_ends_at_the_tail(shelf: Shelf) -> None:
    topic = await shelf.topic("a", 2)
    await shelf.store(topic, b"0", b"1")
    await shelf.store(topic, b"2", partition=1)
    replies = [reply async for reply in call(shelf, reading()).replies()]
    assert list(replies[0].streams) == ["a/0/0", "a/0/1"]
    assert list(replies[0].starts) == [0, 0]
    assert sorted(payloads(replies)) == [b"0", b"1", b"2"]
    (named,) = [reply async for reply in call(shelf, reading(start=Now())).replies()]
    assert list(named.starts) == [2, 1]


async def test_a_filter_that_meets_nothing_reads_nothing(shelf: Shelf) -> None:
    await shelf.store(await shelf.topic("a"), b"0")
    replies = [reply async for reply in call(shelf, reading("b/#")).replies()]
    assert replies == [log_pb2.ReadReply(incarnation=shelf.catalogue.incarnation)]
    assert shelf.catalogue.incarnation


async def test_records_that_the_filter_rejects_are_not_sent(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    for at in range(4):
        await shelf.store(topic, b"%d" % at, subject=f"a/{at % 2}")
    assert await read(shelf, reading("a/1")) == [b"1", b"3"]


async def test_a_read_may_begin_anywhere(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    await shelf.store(topic, b"0", b"1", b"2")
    third = await shelf.store(topic, b"3")
    one = StreamName("a", 0, 0)
    assert await read(shelf, reading(start=AtOffset(2), stream=one)) == [b"2", b"3"]
    assert await read(shelf, reading(start=AtOffset(4), stream=one)) == []
    assert await read(shelf, reading(start=AtTime(third.append_time_us))) == [b"3"]
    assert await read(shelf, reading(start=Now())) == []
    assert await read(shelf, reading(start=AtOffset(1))) == [b"1", b"2", b"3"]


async def test_a_read_may_end_before_an_offset_whatever_the_filter_rejects(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    for at in range(6):
        await shelf.store(topic, b"%d" % at, subject=f"a/{at % 2}")
    one = StreamName("a", 0, 0)
    assert await read(shelf, reading("a/1", stream=one, end_offset=5)) == [b"1", b"3"]
    assert await read(shelf, reading(stream=one, end_offset=2)) == [b"0", b"1"]
    assert await read(shelf, reading(stream=one, end_offset=60)) == [b"%d" % at for at in range(6)]
    assert await read(shelf, reading(stream=one, start=AtOffset(3), end_offset=2)) == []


async def test_no_frame_behind_the_end_of_a_read_is_sent(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    for at in range(0, 9, 3):
        await shelf.store(topic, *(b"%d" % each for each in range(at, at + 3)))
    one = StreamName("a", 0, 0)
    for asked in (reading(stream=one, end_offset=4), reading(stream=one, records_max=4)):
        replies = [reply async for reply in call(shelf, asked).replies()]
        assert payloads(replies) == [b"0", b"1", b"2", b"3"]
        [sent] = [reply for reply in replies if reply.frames]
        assert decode(sent.frames, ()).next_offset == 6
        assert [(each.start, each.end) for each in sent.mask] == [(4, 6)]
    [_, sent] = [reply async for reply in call(shelf, reading(stream=one, end_offset=6)).replies()]
    assert (decode(sent.frames, ()).next_offset, list(sent.mask)) == (6, [])


async def test_an_offset_must_lie_in_its_stream(shelf: Shelf) -> None:
    await shelf.store(await shelf.topic("a"), b"0")
    with pytest.raises(OffsetOutOfRange):
        await read(shelf, reading(start=AtOffset(2)))
    await shelf.topic("b", 2)
    with pytest.raises(IllegalArgument):
        await read(shelf, reading(start=AtOffset(0)))
    with pytest.raises(StreamNotFound):
        await read(shelf, reading(stream=StreamName("a", 0, 1)))


async def test_a_read_ends_after_so_many_records(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    await shelf.store(topic, b"0", b"1")
    await shelf.store(topic, b"2", b"3")
    for records_max in range(5):
        expected = [b"0", b"1", b"2", b"3"][:records_max]
        assert await read(shelf, reading(records_max=records_max)) == expected
    async with aclosing(call(shelf, reading(follow=True, records_max=3)).replies()) as replies:
        assert payloads([reply async for reply in replies]) == [b"0", b"1", b"2"]


async def test_records_that_the_filter_rejects_do_not_count(shelf: Shelf) -> None:
    topic = await shelf.topic("a", 1, "a/#")
    for number in range(3):
        await shelf.store(topic, b"%d" % number, subject="a/wanted")
        await shelf.store(topic, b"x", b"y", subject="a/other")
        # So many rejected bytes that the answer before them ends there.
        await shelf.store(topic, bytes(READ_BRIDGE_BYTES_MAX), subject="a/other")
    assert await read(shelf, reading("a/wanted", records_max=3)) == [b"0", b"1", b"2"]


async def test_a_read_ends_before_a_time(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    await shelf.store(topic, b"0")
    second = await shelf.store(topic, b"1")
    await shelf.store(topic, b"2")
    shelf.clock.ahead_us = 1_000_000
    for follow in (False, True):
        asked = reading(end_time_us=second.append_time_us, follow=follow)
        assert await read(shelf, asked) == [b"0"]


async def test_a_follower_ends_when_its_time_has_come(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    await shelf.store(topic, b"0")
    asked = reading(end_time_us=shelf.clock.wall_us() + 50_000, follow=True)
    assert await read(shelf, asked) == [b"0"]


async def test_a_follower_gets_what_comes_later_and_new_topics(shelf: Shelf) -> None:
    first = await shelf.topic("a")
    async with aclosing(call(shelf, reading(start=Now(), follow=True)).replies()) as replies:
        assert list((await anext(replies)).streams) == ["a/0/0"]
        await shelf.store(first, b"0")
        assert await next_payloads(replies, 1) == [b"0"]
        second = await shelf.topic("b")
        await shelf.store(second, b"1")
        assert list((await anext(replies)).streams) == ["b/0/0"]
        assert await next_payloads(replies, 1) == [b"1"]
        await shelf.store(first, b"2")
        assert await next_payloads(replies, 1) == [b"2"]


async def test_a_follower_survives_the_removal_of_a_topic(shelf: Shelf) -> None:
    await shelf.topic("a")
    kept = await shelf.topic("b")
    async with aclosing(call(shelf, reading(follow=True)).replies()) as replies:
        await anext(replies)
        await shelf.catalogue.remove("a")
        await shelf.store(kept, b"0")
        assert await next_payloads(replies, 1) == [b"0"]


async def test_no_stream_starves_the_others(shelf: Shelf) -> None:
    topic = await shelf.topic("a", 2)
    for _ in range(20):
        await shelf.store(topic, bytes(100_000))
    await shelf.store(topic, b"small", partition=1)
    streams = [reply.stream async for reply in call(shelf, reading()).replies()]
    assert streams.index("a/0/1") <= 2


async def test_a_stop_ends_a_follower(shelf: Shelf) -> None:
    await shelf.topic("a")
    following = call(shelf, reading(follow=True))
    async with aclosing(following.replies()) as replies:
        await anext(replies)
        asyncio.get_running_loop().call_soon(following.stop)
        with pytest.raises(Stopping):
            await anext(replies)


async def test_the_names_of_many_streams_come_in_several_answers(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.rpc.read_call.READ_NAMES_PER_REPLY_MAX", 3)
    topic = await shelf.topic("a", 7)
    await shelf.store(topic, b"0", partition=6)
    replies = [reply async for reply in call(shelf, reading()).replies()]
    assert [len(reply.streams) for reply in replies] == [3, 3, 1, 0]
    assert [name for reply in replies for name in reply.streams] == [
        f"a/0/{partition}" for partition in range(7)
    ]
    assert payloads(replies) == [b"0"]


async def test_names_of_the_greatest_length_leave_an_answer_within_a_message() -> None:
    longest = f"{'x' * NAME_BYTES_MAX}/{(1 << 32) - 1}/{PARTITIONS_MAX}"
    reply = log_pb2.ReadReply(streams=[longest] * READ_NAMES_PER_REPLY_MAX)
    assert reply.ByteSize() < MESSAGE_BYTES_MAX // 4


@pytest.fixture
async def lost(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> set[StreamId]:
    """Streams whose reads fail; of two with two records each, the first one at first."""
    topic = await shelf.topic("a", 2)
    for partition in (0, 1):
        await shelf.store(topic, b"%d" % partition, partition=partition)
        await shelf.store(topic, b"%d" % (partition + 2), partition=partition)
    plain, lost = shelf.log.read, {topic.producing.streams()[0]}

    async def read(stream: StreamId, offset: int, **how: Any) -> Chunk:  # noqa: ANN401 # as it is
        if stream in lost:
            raise LogUnreadable(path="x.seg", reason="Input/output error")
        return await plain(stream, offset, **how)

    monkeypatch.setattr(shelf.log, "read", read)
    return lost


async def test_a_stream_that_cannot_be_read_ends_a_read_after_all_others(
    shelf: Shelf, lost: set[StreamId]
) -> None:
    async with aclosing(call(shelf, reading()).replies()) as replies:
        assert await next_payloads(replies, 2) == [b"1", b"3"]
        with pytest.raises(LogUnreadable):
            await anext(replies)


async def test_a_read_that_follows_goes_on_around_a_stream_that_cannot_be_read(
    shelf: Shelf, lost: set[StreamId], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = 0
    monkeypatch.setattr(shelf.clock, "now_ms", lambda: now_ms, raising=False)
    async with aclosing(call(shelf, reading(follow=True)).replies()) as replies:
        assert await next_payloads(replies, 2) == [b"1", b"3"]
        topic = shelf.catalogue.get("a")
        await shelf.store(topic, b"5", partition=1)
        assert await next_payloads(replies, 1) == [b"5"]
        lost.clear()
        now_ms = READ_AGAIN_MS
        await shelf.store(topic, b"7", partition=1)
        assert sorted(await next_payloads(replies, 3)) == [b"0", b"2", b"7"]


async def test_a_read_up_to_a_time_ends_with_what_cannot_be_read(
    shelf: Shelf, lost: set[StreamId]
) -> None:
    asked = reading(follow=True, end_time_us=shelf.clock.wall_us() + 3_600_000_000)
    async with aclosing(call(shelf, asked).replies()) as replies:
        assert await next_payloads(replies, 2) == [b"1", b"3"]
        shelf.clock.ahead_us = 7_200_000_000
        with pytest.raises(LogUnreadable):
            await next_payloads(replies, 1)


async def grown(shelf: Shelf, *steps: int) -> Topic:
    """A topic of 2 partitions that grew in steps, with a record in each stream, by its number."""
    topic = await shelf.topic("a", 2)
    for ordinal, partitions in enumerate((2, *steps)):
        if ordinal:
            await shelf.catalogue.add_storage_topic(topic.topic_id, ordinal, partitions)
            await shelf.catalogue.switch(topic.topic_id, ordinal)
        topic = shelf.catalogue.get("a")
        goes_on(shelf, topic)
        for partition in range(partitions):
            await shelf.store(topic, b"%d" % ordinal, partition=partition)
    return topic


def goes_on(shelf: Shelf, topic: Topic) -> None:
    """The producer begins anew, as the storage topic that takes over wants it."""
    begins_us = shelf.log.producers_begin_us(topic.producing.storage_topic_id)
    shelf.producer_id = new_producer_id(begins_us)


async def test_older_storage_topics_are_read_before_newer_ones(shelf: Shelf) -> None:
    await grown(shelf, 4, 3)
    assert await read(shelf, reading()) == [b"0"] * 2 + [b"1"] * 4 + [b"2"] * 3
    assert await read(shelf, reading(stream=StreamName("a", 0, 1), follow=True)) == [b"0"]


async def test_a_read_that_follows_goes_on_over_a_switch_once_all_before_it_is_read(
    shelf: Shelf,
) -> None:
    topic = await grown(shelf, 4)
    asked = call(shelf, reading(follow=True))
    async with aclosing(asked.replies()) as replies:
        await anext(replies)
        assert await next_payloads(replies, 6) == [b"0"] * 2 + [b"1"] * 4
        await shelf.store(topic, b"late", partition=3)
        await shelf.catalogue.add_storage_topic(topic.topic_id, 2, 3)
        await shelf.catalogue.switch(topic.topic_id, 2)
        topic = shelf.catalogue.get("a")
        goes_on(shelf, topic)
        await shelf.store(topic, b"new")
        assert await next_payloads(replies, 2) == [b"late", b"new"]
        # What was read before is not read anew, and nothing of it is waited for.
        await shelf.store(topic, b"newer", partition=1)
        assert await next_payloads(replies, 1) == [b"newer"]


async def test_a_read_that_follows_goes_on_past_a_storage_topic_that_was_taken_back(
    shelf: Shelf,
) -> None:
    topic = await grown(shelf)
    asked = call(shelf, reading(follow=True))
    async with aclosing(asked.replies()) as replies:
        await anext(replies)
        assert await next_payloads(replies, 2) == [b"0"] * 2
        await shelf.catalogue.add_storage_topic(topic.topic_id, 1, 4)
        await shelf.store(topic, b"before")
        assert await next_payloads(replies, 1) == [b"before"]
        await shelf.catalogue.drop_storage_topics(topic.topic_id, [1])
        for ordinal, partitions in ((1, 3), (2, 4)):
            await shelf.catalogue.add_storage_topic(topic.topic_id, ordinal, partitions)
            await shelf.catalogue.switch(topic.topic_id, ordinal)
            topic = shelf.catalogue.get("a")
            goes_on(shelf, topic)
            await shelf.store(topic, b"%d" % ordinal, partition=1)
            assert await next_payloads(replies, 1) == [b"%d" % ordinal]


async def test_a_read_that_follows_one_stream_ends_where_that_is_sealed(shelf: Shelf) -> None:
    topic = await grown(shelf)
    asked = call(shelf, reading(stream=StreamName("a", 0, 1), follow=True))
    async with aclosing(asked.replies()) as replies:
        await anext(replies)
        assert await next_payloads(replies, 1) == [b"0"]
        await shelf.store(topic, b"last", partition=1)
        await shelf.catalogue.add_storage_topic(topic.topic_id, 1, 4)
        await shelf.catalogue.switch(topic.topic_id, 1)
        assert payloads([reply async for reply in replies]) == [b"last"]


@pytest.mark.parametrize("anew", [False, True])
async def test_a_read_that_follows_one_stream_fails_where_its_topic_is_removed(
    shelf: Shelf, anew: bool
) -> None:
    await shelf.topic("a", 2)
    asked = call(shelf, reading(stream=StreamName("a", 0, 1), follow=True))
    async with aclosing(asked.replies()) as replies:
        await anext(replies)
        await shelf.catalogue.remove("a")
        if anew:
            await shelf.topic("a", 2)
        with pytest.raises(StreamNotFound):
            await anext(replies)


async def test_what_stands_behind_a_stream_that_cannot_be_read_does_not_keep_the_read_open(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await grown(shelf, 4)
    broken = topic.storage_topics[0].streams()[1]
    unbroken = shelf.log.read

    async def failing(stream: StreamId, offset: int, **more: Any) -> Chunk:  # noqa: ANN401 - of read
        if stream == broken:
            raise LogUnreadable(reason="EIO")
        return await unbroken(stream, offset, **more)

    monkeypatch.setattr(shelf.log, "read", failing)
    async with aclosing(call(shelf, reading()).replies()) as replies:
        assert await next_payloads(replies, 1) == [b"0"]
        with pytest.raises(LogUnreadable):
            await next_payloads(replies, 1)
