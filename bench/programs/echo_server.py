"""Baseline: a gRPC server that echoes each message of a call, at once or once it is durable.

It runs on the event loop that the daemon runs on. `/bare.Bare/Echo` does nothing else;
`/bare.Bare/EchoSynced` first appends the message to a file and syncs it, in a thread, which is the
least that a record needs. Prints one line when it listens.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import uvloop

Context = grpc.aio.ServicerContext[Any, Any]


async def main(endpoint: str, directory: str) -> None:
    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
    descriptor = os.open(Path(directory) / "echoed", flags)
    thread = ThreadPoolExecutor(1)

    def append(message: bytes) -> None:
        os.write(descriptor, message)
        os.fdatasync(descriptor)

    async def echo(requests: AsyncIterator[bytes], _context: Context) -> AsyncIterator[bytes]:
        async for message in requests:
            yield message

    async def echo_synced(
        requests: AsyncIterator[bytes], _context: Context
    ) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        async for message in requests:
            await loop.run_in_executor(thread, append, message)
            yield message

    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Echo": grpc.stream_stream_rpc_method_handler(echo),
        "EchoSynced": grpc.stream_stream_rpc_method_handler(echo_synced),
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bare.Bare", methods),))
    server.add_insecure_port(endpoint)
    await server.start()
    print("ready", flush=True)
    await server.wait_for_termination()


uvloop.run(main(sys.argv[1], sys.argv[2]))
