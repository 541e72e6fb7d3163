"""The plain path, with raw stubs on a real daemon: send, sync, read, kill -9, still there."""

import os

from dss_api.v1 import log_pb2, topics_pb2, types_pb2
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from support.daemon_process import running, short_directory
from support.raw_stubs import Stubs, connected, produced


def frame(payload: bytes, *, producer_id: bytes, sequence: int) -> bytes:
    columns = Columns(
        payloads=[payload], keys=None, subjects="orders", headers=None, timestamps_us=1
    )
    return build_frame(columns, partition=0, producer_id=producer_id, sequence=sequence)


async def read_all(stubs: Stubs) -> list[tuple[int, bytes]]:
    records: list[tuple[int, bytes]] = []
    async for reply in stubs.log.Read(log_pb2.ReadRequest(filter="orders/#")):
        if reply.frames:
            batch = decode(reply.frames)
            records += zip(batch.offsets, batch.payloads, strict=True)
    return records


async def create(stubs: Stubs) -> topics_pb2.Topic:
    return await stubs.topics.Create(topics_pb2.CreateTopicRequest(name="orders", partitions=1))


async def test_an_acknowledged_record_survives_kill_9() -> None:
    producer_id = os.urandom(16)
    with short_directory() as directory:
        async with running("--data-dir", str(directory)) as daemon:
            async with connected(daemon.endpoint) as stubs:
                topic = await create(stubs)
                sent = frame(b"hello", producer_id=producer_id, sequence=0)
                answers = await produced(stubs, "orders", topic.topic_epoch, sent)
                assert [(ack.base_offset, ack.durability) for ack in answers.acks] == [(0, "sync")]
                assert await read_all(stubs) == [(0, b"hello")]
            await daemon.kill()
        async with (
            running("--data-dir", str(directory)) as daemon,
            connected(daemon.endpoint) as stubs,
        ):
            assert await read_all(stubs) == [(0, b"hello")]
            # The same frame again gets its first answer, also from the next daemon.
            answers = await produced(stubs, "orders", topic.topic_epoch, sent)
            assert [(ack.base_offset, ack.repeated) for ack in answers.acks] == [(0, True)]
            following = frame(b"world", producer_id=producer_id, sequence=1)
            answers = await produced(stubs, "orders", topic.topic_epoch, following)
            assert [(ack.base_offset, ack.repeated) for ack in answers.acks] == [(1, False)]
            assert await read_all(stubs) == [(0, b"hello"), (1, b"world")]


async def test_a_burst_into_a_fresh_topic_is_stored_in_its_order() -> None:
    async with running("--dev") as daemon, connected(daemon.endpoint) as stubs:
        topic = await create(stubs)
        producer_id = os.urandom(16)
        call = stubs.log.Produce()
        for sequence in range(500):
            sent = frame(b"%d" % sequence, producer_id=producer_id, sequence=sequence)
            request = log_pb2.ProduceRequest(
                topic="orders", topic_epoch=topic.topic_epoch, frames=[sent]
            )
            await call.write(request)
        await call.done_writing()
        refusals = [refusal async for reply in call for refusal in reply.refusals]
        assert refusals == []
        assert await read_all(stubs) == [(offset, b"%d" % offset) for offset in range(500)]
        assert await daemon.stop() == 0


async def test_plain_records_are_published_to_the_stream_of_their_key() -> None:
    with short_directory() as directory:
        async with (
            running("--data-dir", str(directory)) as daemon,
            connected(daemon.endpoint) as stubs,
        ):
            await stubs.topics.Create(topics_pb2.CreateTopicRequest(name="orders", partitions=4))
            records = [
                types_pb2.Record(subject=f"orders/{at}", key=b"k%d" % (at % 3), payload=b"%d" % at)
                for at in range(60)
            ]
            published: list[log_pb2.Published] = []
            for part in (records[:40], records[40:]):
                reply = await stubs.log.Publish(
                    log_pb2.PublishRequest(topic="orders", records=part)
                )
                published += reply.published
            by_key: dict[bytes, set[str]] = {}
            for record, where in zip(records, published, strict=True):
                by_key.setdefault(record.key, set()).add(where.stream)
            assert all(len(streams) == 1 for streams in by_key.values())
            assert len({(where.stream, where.offset) for where in published}) == 60
            assert sorted(payload for _, payload in await read_all(stubs)) == sorted(
                record.payload for record in records
            )
