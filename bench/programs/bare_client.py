"""Baseline: reads the bare stream to its end, counting bytes."""

import asyncio
import json
import sys
import time

import grpc

from dss_core.limits import MESSAGE_BYTES_MAX


async def main(endpoint: str, records: int) -> None:
    options = [("grpc.max_receive_message_length", MESSAGE_BYTES_MAX)]
    async with grpc.aio.insecure_channel(endpoint, options=options) as channel:
        await channel.channel_ready()
        stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes]
        stream = channel.unary_stream("/bare.Bare/Stream")
        began = time.perf_counter()
        size = 0
        async for message in stream(b""):
            size += len(message)
        seconds = time.perf_counter() - began
    print(json.dumps({"records": records, "seconds": seconds, "bytes": size}))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
