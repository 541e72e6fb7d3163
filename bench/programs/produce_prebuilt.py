"""Baseline: frames built before the clock starts, through the same Produce call, bare stubs.

With a third argument the frames have so many records (else 1,000), and `fill` ignores the time.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator

import grpc
from workload import TOPIC, frames_by_partition

from dss_api.v1 import log_pb2, log_pb2_grpc, topics_pb2, topics_pb2_grpc
from dss_core.limits import MESSAGE_BYTES_MAX

IN_FLIGHT_PER_PARTITION = 4
OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
]


async def main(endpoint: str, records: int, records_per_frame: int) -> None:
    per_partition = max(1, records // records_per_frame // 12)
    frames = frames_by_partition(records_per_frame, per_partition)
    async with grpc.aio.insecure_channel(endpoint, options=OPTIONS) as channel:
        topic = await topics_pb2_grpc.TopicsStub(channel).Describe(
            topics_pb2.DescribeTopicRequest(name=TOPIC)
        )
        slots = asyncio.Semaphore(IN_FLIGHT_PER_PARTITION * len(frames))

        async def requests() -> AsyncIterator[log_pb2.ProduceRequest]:
            for number in range(per_partition):
                for own in frames.values():
                    await slots.acquire()
                    yield log_pb2.ProduceRequest(
                        topic=TOPIC, topic_epoch=topic.topic_epoch, frames=[own[number]]
                    )

        total = per_partition * len(frames)
        began = time.perf_counter()
        call = log_pb2_grpc.LogStub(channel).Produce(requests())
        answered = 0
        async for reply in call:
            assert not reply.refusals, reply.refusals[0]
            answered += len(reply.acks)
            for _ in reply.acks:
                slots.release()
            if answered == total:
                break
        seconds = time.perf_counter() - began
        call.cancel()
    print(json.dumps({"records": total * records_per_frame, "seconds": seconds}))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
