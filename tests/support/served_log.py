"""A real log behind a real server, in this process: clients read it, tests trim and break it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import dss_client
from dss_api.v1 import log_pb2_grpc, topics_pb2_grpc
from dssd.addresses import UnixAddress
from dssd.leaders.dead_letters import DeadLetterPlaces
from dssd.rpc.log import LogServicer
from dssd.rpc.server import RpcServer
from dssd.rpc.topics import TopicsServicer
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Topic
from support.audits import unaudited, uncounted
from support.daemon_process import short_directory
from support.log_in_process import Shelf

NO_GROUPS = cast("DeadLetterPlaces", None)
"""Has no groups, so nobody asks for the dead letters of one."""


async def no_readers(topic: Topic) -> list[GroupRow]:
    """No group reads the topic."""
    return []


@asynccontextmanager
async def client_of(shelf: Shelf) -> AsyncIterator[dss_client.Client]:
    """A client that may produce, read, and ask for topics."""

    def crash(error: BaseException) -> None:
        raise AssertionError from error

    async with asyncio.TaskGroup() as tasks:
        log = LogServicer(shelf.catalogue, shelf.log, shelf.clock, tasks, NO_GROUPS)
        topics = TopicsServicer(shelf.catalogue, shelf.log, no_readers, NO_GROUPS)
        registers = [
            lambda server: log_pb2_grpc.add_LogServicer_to_server(log, server),
            lambda server: topics_pb2_grpc.add_TopicsServicer_to_server(topics, server),
        ]
        server = RpcServer(registers, crash, unaudited(), uncounted())
        with short_directory() as home:
            server.bind([UnixAddress(home / "s")])
            await server.start()
            await server.serving()
            try:
                async with dss_client.connect(endpoint=f"unix:{home / 's'}") as client:
                    yield client
            finally:
                log.stop()
                await server.stop(None)
