"""Baseline: frames built before the clock starts, through the same Produce call, bare stubs.

The third argument is how many records a frame has. Small frames, which only fill a topic, go one of
every partition in a request.
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

FRAMES_IN_FLIGHT_MIN = 4
RECORDS_IN_FLIGHT_MIN = 20
"""On their way to each partition."""
SMALL_FRAME_RECORDS = 100
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
        in_flight = max(FRAMES_IN_FLIGHT_MIN, RECORDS_IN_FLIGHT_MIN // records_per_frame)
        slots = asyncio.Semaphore(in_flight * len(frames))

        async def requests() -> AsyncIterator[log_pb2.ProduceRequest]:
            for number in range(per_partition):
                round_ = [own[number] for own in frames.values()]
                for sent in [round_] if records_per_frame < SMALL_FRAME_RECORDS else zip(round_):
                    for _ in sent:
                        await slots.acquire()
                    yield log_pb2.ProduceRequest(
                        topic=TOPIC, topic_epoch=topic.topic_epoch, frames=sent
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
