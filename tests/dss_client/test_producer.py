import asyncio
from pathlib import Path
from typing import Any, cast

import pyarrow
import pytest

import dss_client
from dss_client import Client, Delivery
from dss_client.limits import RECORD_OVERHEAD_BYTES
from dss_client.testing import MemoryDaemon, until
from dss_core.errors import (
    BufferFull,
    DiskFull,
    HeaderReserved,
    IllegalArgument,
    OutcomeUnknown,
    ProducerForgotten,
    RecordTooLarge,
    StaleTopicEpoch,
    SubjectOutsideTopic,
    TooManyProducers,
    TopicNotFound,
    Unreachable,
)
from dss_core.routing import Router, key_hash, partition_of

CROWD = 500
PATIENCE_S = 60.0


def partition(key: bytes) -> int:
    return partition_of(Router.BLOCK, key_hash(key), 2, 1)


def client_of(daemon: MemoryDaemon) -> Client:
    return dss_client.connect(endpoint=daemon.endpoint)


async def test_a_sent_record_is_acknowledged_with_its_place(daemon: MemoryDaemon) -> None:
    async with client_of(daemon) as client, client.producer("t") as producer:
        first = await producer.send(b"a", key=b"k")
        second = await producer.send(b"b", key=b"k")
    assert first.stream == second.stream == f"t/0/{partition(b'k')}"
    assert (first.offset, second.offset) == (0, 1)
    assert (first.durability, first.repeated, first.records) == ("sync", False, 1)


async def test_whoever_waits_is_told_where_the_tasks_of_the_client_are_cancelled(
    daemon: MemoryDaemon,
) -> None:
    daemon.mute_acks = True
    async with client_of(daemon) as client, client.producer("t") as producer:
        delivery = producer.send_nowait(b"a", key=b"k")
        await until(lambda: daemon.stored() == 1)
        producer.call._task.cancel()
        with pytest.raises(OutcomeUnknown):
            await delivery
        with pytest.raises(OutcomeUnknown):
            await producer.send(b"b")


async def test_records_sent_together_travel_together(daemon: MemoryDaemon) -> None:
    async with client_of(daemon) as client, client.producer("t") as producer:
        handles = [producer.send_nowait(b"x", key=b"k") for _ in range(CROWD)]
        assert not handles[0].done()
        assert handles[0].offset is None
        await producer.flush()
        assert [handle.offset for handle in handles] == list(range(CROWD))
        assert (await handles[7]).offset == 7
    assert sum(len(request.frames) for request in daemon.requests) == 1


async def test_records_behind_a_frame_in_flight_wait_for_its_answer_and_go_as_one(
    daemon: MemoryDaemon,
) -> None:
    other = next(key for key in (b"%d" % n for n in range(99)) if partition(key) != partition(b"k"))
    daemon.mute_acks = True
    async with client_of(daemon) as client, client.producer("t") as producer:
        first = producer.send_nowait(b"first", key=b"k")
        await until(lambda: daemon.stored() == 1)
        behind = [producer.send_nowait(b"x", key=b"k") for _ in range(3)]
        # What comes later for a stream with nothing in flight is sent before them.
        producer.send_nowait(b"other", key=other)
        await until(lambda: daemon.stored() == 2)
        behind += [producer.send_nowait(b"x", key=b"k") for _ in range(3)]
        assert len(daemon.payloads(partition(b"k"))) == 1
        await daemon.cut()
        daemon.mute_acks = False
        daemon.requests.clear()
        await daemon.start()
        assert [(await each).offset for each in (first, *behind)] == list(range(7))
    resent, gathered = 2, 1
    assert sum(len(request.frames) for request in daemon.requests) == resent + gathered


async def test_records_of_one_key_keep_their_order_across_many_frames(daemon: MemoryDaemon) -> None:
    payloads = [b"%06d" % number + bytes(1_000) for number in range(2_000)]
    async with client_of(daemon) as client, client.producer("t") as producer:
        for payload in payloads:
            await producer.enqueue(payload, key=b"k")
        await producer.flush()
    assert daemon.payloads(partition(b"k")) == payloads


async def test_records_without_a_key_are_spread_evenly(daemon: MemoryDaemon) -> None:
    async with client_of(daemon) as client, client.producer("t") as producer:
        for _ in range(10):
            producer.send_nowait(b"x")
    assert [stream.end for stream in daemon.streams] == [5, 5]


async def test_columns_are_stored_whole_and_routed_by_key(daemon: MemoryDaemon) -> None:
    keys = [None if number % 10 == 0 else b"k%d" % (number % 7) for number in range(5_000)]
    payloads = [b"%d" % number for number in range(5_000)]
    async with client_of(daemon) as client, client.producer("t") as producer:
        acks = await producer.send_columns(payloads, keys=keys, subjects="t/x")
    assert sum(ack.records for ack in acks) == daemon.stored() == 5_000
    for key in (b"k1", b"k2"):
        wanted = [p for p, k in zip(payloads, keys, strict=True) if k == key]
        stored = daemon.payloads(partition(key))
        assert [p for p in stored if p in set(wanted)] == wanted


async def test_columns_of_different_lengths_are_refused(daemon: MemoryDaemon) -> None:
    async with client_of(daemon) as client, client.producer("t") as producer:
        with pytest.raises(IllegalArgument):
            await producer.send_columns([b"a", b"b"], keys=[b"k"])


async def test_columns_may_be_arrow_or_any_bytes(daemon: MemoryDaemon) -> None:
    async with client_of(daemon) as client, client.producer("t") as producer:
        await producer.send_columns(pyarrow.array([b"a"]), keys=pyarrow.array([b"k"]))
        await producer.send_columns([bytearray(b"b"), memoryview(b"c")], keys=[b"k", b"k"])
    assert daemon.payloads(partition(b"k")) == [b"a", b"b", b"c"]


async def test_columns_follow_what_was_sent_before_them(daemon: MemoryDaemon) -> None:
    async with client_of(daemon) as client, client.producer("t") as producer:
        producer.send_nowait(b"first", key=b"k")
        await producer.send_columns([b"second"], keys=[b"k"])
    assert daemon.payloads(partition(b"k")) == [b"first", b"second"]


async def test_a_full_buffer_refuses_and_a_waiting_sender_gets_room(daemon: MemoryDaemon) -> None:
    daemon.mute_acks = True
    size_bytes = 100 + RECORD_OVERHEAD_BYTES
    async with (
        client_of(daemon) as client,
        client.producer("t", buffer_bytes=10 * size_bytes) as producer,
    ):
        for _ in range(10):
            producer.send_nowait(bytes(100))
        with pytest.raises(BufferFull) as full:
            producer.send_nowait(bytes(100))
        assert full.value.fields == {"limit": str(10 * size_bytes)}
        daemon.mute_acks = False
        await daemon.cut()
        await daemon.start()
        handle = await producer.enqueue(bytes(100))
        assert (await handle).offset is not None


async def test_a_record_larger_than_the_buffer_is_sent_alone(daemon: MemoryDaemon) -> None:
    async with (
        client_of(daemon) as client,
        client.producer("t", buffer_bytes=1_000) as producer,
    ):
        assert (await producer.send(bytes(10_000), key=b"k")).offset == 0


async def test_broken_records_are_refused_before_anything_is_sent(daemon: MemoryDaemon) -> None:
    async with client_of(daemon) as client, client.producer("t") as producer:
        with pytest.raises(RecordTooLarge):
            producer.send_nowait(bytes(2 << 20))
        with pytest.raises(SubjectOutsideTopic):
            producer.send_nowait(b"x", subject="other/1")
        text: Any = "text"  # what a caller without a type checker may pass for bytes
        with pytest.raises(IllegalArgument):
            producer.send_nowait(text)
        with pytest.raises(IllegalArgument):
            await producer.send(text)
        with pytest.raises(IllegalArgument):
            producer.send_nowait(b"x", key=text)
        with pytest.raises(IllegalArgument):
            await producer.send_columns([b"x", text])
        with pytest.raises(IllegalArgument):
            await producer.send_columns([b"x"], keys=[text])
        with pytest.raises(IllegalArgument):
            await producer.send_columns(pyarrow.array(["text"]))
        with pytest.raises(IllegalArgument):
            producer.send_nowait(b"x", headers={"name": bytes(9_000)})
        for name in ("dss-lane", "dss-error", "dss-mqtt-qos"):
            with pytest.raises(HeaderReserved, match=name):
                producer.send_nowait(b"x", headers={"fine": b"", name: b""})
            with pytest.raises(HeaderReserved, match=name):
                await producer.send_columns([b"x"] * 50, headers=[None] * 49 + [[(name, b"")]])
    assert daemon.requests == []


async def test_an_unknown_topic_and_an_absent_daemon_are_told_at_once(daemon: MemoryDaemon) -> None:
    async with client_of(daemon) as client:
        with pytest.raises(TopicNotFound):
            async with client.producer("nothing"):
                pass
    await daemon.cut()
    async with client_of(daemon) as client:
        with pytest.raises(Unreachable):
            await client.topics.describe("t")


async def test_a_producer_that_the_daemon_forgot_goes_on(daemon: MemoryDaemon) -> None:
    async with client_of(daemon) as client, client.producer("t") as producer:
        await producer.send(b"0", key=b"k")
        daemon.refuse = [ProducerForgotten(stream="t/0/0")]
        assert (await producer.send(b"1", key=b"k")).offset == 1
        assert (await producer.send(b"2", key=b"k")).offset == 2
    assert daemon.payloads(partition(b"k")) == [b"0", b"1", b"2"]


async def test_what_may_be_stored_already_fails_when_its_producer_was_forgotten(
    daemon: MemoryDaemon,
) -> None:
    async with client_of(daemon) as client, client.producer("t") as producer:
        daemon.mute_acks = True
        handle = producer.send_nowait(b"0", key=b"k")
        await until(lambda: daemon.stored() == 1)
        await daemon.cut()
        daemon.mute_acks = False
        daemon.refuse = [ProducerForgotten(stream="t/0/0")]
        await daemon.start()
        with pytest.raises(ProducerForgotten):
            await handle
        assert (await producer.send(b"1", key=b"k")).offset == 1
    assert daemon.payloads(partition(b"k")) == [b"0", b"1"]


async def test_a_sender_is_told_that_no_more_producers_can_be_known(daemon: MemoryDaemon) -> None:
    daemon.refuse = [TooManyProducers(limit=1)]
    async with client_of(daemon) as client, client.producer("t") as producer:
        with pytest.raises(TooManyProducers):
            await producer.send(b"0", key=b"k")
        assert (await producer.send(b"1", key=b"k")).offset == 0


async def test_nothing_is_lost_or_doubled_when_answers_are_lost(daemon: MemoryDaemon) -> None:
    async with client_of(daemon) as client, client.producer("t") as producer:
        await producer.send(b"0", key=b"k")
        daemon.mute_acks = True
        handles = [producer.send_nowait(b"%d" % n, key=b"k") for n in range(1, 50)]
        await until(lambda: daemon.stored() == 50)
        await daemon.cut()
        daemon.mute_acks = False
        await daemon.start()
        acks = [await handle for handle in handles]
        assert acks[0].repeated
        assert [ack.offset for ack in acks] == list(range(1, 50))
    assert daemon.stored() == 50


async def test_five_losses_keep_every_record_once_and_in_order(daemon: MemoryDaemon) -> None:
    async with client_of(daemon) as client, client.producer("t") as producer:
        for round_number in range(5):
            for number in range(200):
                await producer.enqueue(b"%d" % (round_number * 200 + number), key=b"k")
                if number % 20 == 0:
                    await asyncio.sleep(0)
            await daemon.cut()
            await daemon.start()
        await producer.flush()
    assert daemon.payloads(partition(b"k")) == [b"%d" % number for number in range(1_000)]


async def test_a_refused_frame_fails_alone(daemon: MemoryDaemon) -> None:
    daemon.refuse = [DiskFull()]
    async with client_of(daemon) as client, client.producer("t") as producer:
        first = producer.send_nowait(b"first", key=b"k")
        producer.call.close(partition(b"k"))
        second = producer.send_nowait(b"second", key=b"k")
        producer.call.close(partition(b"k"))
        with pytest.raises(DiskFull):
            await first
        assert (await second).offset == 0
        assert (await producer.send(b"third", key=b"k")).offset == 1


async def test_a_flush_tells_of_failures_that_nobody_awaited_once(daemon: MemoryDaemon) -> None:
    daemon.refuse = [DiskFull()]
    async with client_of(daemon) as client, client.producer("t") as producer:
        producer.send_nowait(b"x", key=b"k")
        with pytest.raises(DiskFull):
            await producer.flush()
        await producer.flush()


async def test_a_topic_whose_epoch_moved_is_described_again(daemon: MemoryDaemon) -> None:
    daemon.refuse = [StaleTopicEpoch(topic="t", current=2, given=1)]
    daemon.reshape = {"topic_epoch": 1}
    async with client_of(daemon) as client, client.producer("t") as producer:
        daemon.reshape = {"topic_epoch": 2}
        assert (await producer.send(b"x", key=b"k")).offset == 0
    assert daemon.requests[-1].topic_epoch == 2


async def test_what_waits_goes_to_the_streams_of_a_topic_that_was_made_anew(
    daemon: MemoryDaemon,
) -> None:
    keys = [b"%d" % number for number in range(40)]
    async with client_of(daemon) as client, client.producer("t") as producer:
        assert await producer.send(b"before", key=b"k")
        # From now on the topic is another one, of one partition; afterwards of two again.
        for topic_id, there in ((2, 1), (3, 2)):
            daemon.reshape = {
                "topic_id": topic_id,
                "topic_epoch": topic_id,
                "partitions": there,
            }
            one_by_one = [producer.send_nowait(key, key=key) for key in keys]
            columns = asyncio.create_task(producer.send_columns(keys, keys))
            for key, delivery in zip(keys, one_by_one, strict=True):
                ack = await delivery
                assert delivery.offset == ack.offset
                expected = partition_of(Router.BLOCK, key_hash(key), there, 1)
                assert ack.stream == f"t/0/{expected}"
                assert daemon.payloads(expected)[ack.offset] == key
            assert sum(ack.records for ack in await columns) == len(keys)
        await producer.flush()
    assert daemon.stored() == 1 + 2 * 2 * len(keys)


async def test_a_removed_topic_refuses_records_and_does_not_end_the_producer(
    daemon: MemoryDaemon,
) -> None:
    async with client_of(daemon) as client, client.producer("t") as producer:
        daemon.reshape = {"gone": True, "topic_epoch": 2}
        with pytest.raises(TopicNotFound):
            await producer.send(b"into the void")
        daemon.reshape = {"topic_id": 2, "topic_epoch": 2}
        assert (await producer.send(b"x")).offset == 0


async def test_leaving_by_an_exception_leaves_the_outcome_unknown(daemon: MemoryDaemon) -> None:
    daemon.mute_acks = True
    async with client_of(daemon) as client:
        handles: list[Delivery] = []

        async def leave() -> None:
            async with client.producer("t") as producer:
                handles.append(producer.send_nowait(b"x"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await leave()
        with pytest.raises(OutcomeUnknown):
            await handles[0]


async def leave_after(daemon: MemoryDaemon, steps: int) -> None:
    """Lose the connection of a producer, and leave it so many steps of the loop later."""
    async with client_of(daemon) as client, client.producer("t") as producer:
        await producer.send(b"x")
        await daemon.cut()
        for _ in range(steps):
            await asyncio.sleep(0)
        raise ZeroDivisionError


async def test_a_producer_ends_however_shortly_after_the_loss_of_its_connection_it_is_left(
    socket: Path,
) -> None:
    for steps in range(30):
        # Each at an address of its own: channels to one address share what they know of it.
        daemon: MemoryDaemon = cast(Any, MemoryDaemon)(socket.with_name(f"{steps}"))
        await daemon.start()
        with pytest.raises(ZeroDivisionError):
            async with asyncio.timeout(PATIENCE_S):
                await leave_after(daemon, steps)
