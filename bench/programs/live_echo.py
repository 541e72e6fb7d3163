"""Baseline of `live`: the same payloads by the same clock to an echo that syncs before it answers.

``live_echo.py ENDPOINT SECONDS``, to an `echo_server`.
"""

import asyncio
import sys
from collections import deque

import grpc
from by_the_clock import measured
from workload import PAYLOAD

METHOD = "/bare.Bare/EchoSynced"


async def main(endpoint: str, seconds: float) -> None:
    waiting: deque[asyncio.Future[None]] = deque()
    writing = asyncio.Lock()
    async with grpc.aio.insecure_channel(endpoint) as channel, asyncio.TaskGroup() as tasks:
        call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(METHOD)()

        async def read() -> None:
            async for _message in call:
                waiting.popleft().set_result(None)

        async def send(_number: int) -> None:
            answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            async with writing:  # gRPC takes one message of a call at a time
                waiting.append(answered)
                await call.write(PAYLOAD)
            await answered

        reading = tasks.create_task(read(), name="read the echoes")
        await measured(send, seconds)
        await call.done_writing()
        await reading


asyncio.run(main(sys.argv[1], float(sys.argv[2])))
