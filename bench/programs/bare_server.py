"""Baseline: a gRPC server that streams ready bytes and does nothing else.

Prints one line when it listens. Each message is one frame of the workload.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
from workload import frames_by_partition


async def main(endpoint: str, records: int, records_per_frame: int) -> None:
    frames = [frame for own in frames_by_partition(records_per_frame, 4).values() for frame in own]
    count = records // records_per_frame

    async def stream(
        _request: bytes, _context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[bytes]:
        for number in range(count):
            yield frames[number % len(frames)]

    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(
                "bare.Bare", {"Stream": grpc.unary_stream_rpc_method_handler(stream)}
            ),
        )
    )
    server.add_insecure_port(endpoint)
    await server.start()
    print("ready", flush=True)
    await server.wait_for_termination()


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
