"""A topic grows while the connection of its producer is cut, with frames out that were stored."""

import asyncio
from collections import defaultdict

import pytest

import dss_client
from dss_client import Ack, Client, Producer
from dss_client.changes import GrowTopic
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES
from support.cut_line import line_to
from support.proof_share import share
from support.revived_daemon import revived

KEYS = [b"%d" % number for number in range(12)]
WAITING = 3
"""Frames of a stream behind those that are out."""
PATIENCE_S = 60.0


async def stored_so_many(client: Client, records: int) -> None:
    while True:
        topic = await client.topics.describe("orders")
        if sum(stream.end for stream in topic.producing.streams) == records:
            return
        await asyncio.sleep(0.01)


def sent(
    producer: Producer, tasks: asyncio.TaskGroup, first: int, count: int
) -> list["asyncio.Task[list[Ack]]"]:
    """Frames with one record of each key, one a stream and a number."""
    return [
        tasks.create_task(producer.send_columns([b"%d" % number] * len(KEYS), KEYS))
        for number in range(first, first + count)
    ]


async def in_log(client: Client) -> dict[str, dict[bytes, list[int]]]:
    """By storage topic, what each key has, in order."""
    found: dict[str, dict[bytes, list[int]]] = defaultdict(lambda: defaultdict(list))
    async for record in client.read("orders/#"):
        assert record.key is not None
        found[record.stream.rpartition("/")[0]][record.key].append(int(record.payload))
    return found


@pytest.mark.parametrize("synced", share([2], [2, PRODUCER_WINDOW_SEQUENCES]))
async def test_frames_that_were_synced_before_the_cut_are_answered_and_the_rest_goes_on(
    synced: int,
) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        revived() as daemon,
        line_to(daemon.data.with_name("d.sock"), daemon.data.with_name("line.sock")) as line,
        dss_client.connect(endpoint=daemon.endpoint) as operator,
        dss_client.connect(endpoint=line.endpoint) as client,
    ):
        await operator.topics.create("orders", partitions=4)
        async with client.producer("orders") as producer, asyncio.TaskGroup() as tasks:
            await producer.send_columns([b"0"] * len(KEYS), KEYS)
            line.answers.clear()
            out = sent(producer, tasks, 1, synced)
            # Records are seen once they are synced.
            await stored_so_many(operator, (1 + synced) * len(KEYS))
            line.requests.clear()
            lost = sent(producer, tasks, 1 + synced, PRODUCER_WINDOW_SEQUENCES - synced)
            if lost:
                await line.holds_requests.wait()
            line.cut()
            grown = await operator.operations.apply(GrowTopic("orders", 6))
            assert (await operator.operations.ended(grown.number)).state == "done"
            later = sent(producer, tasks, 1 + PRODUCER_WINDOW_SEQUENCES, WAITING)
            await line.start()
            acks = [ack for each in out for ack in await each]
            assert all(ack.repeated and ack.stream.startswith("orders/0/") for ack in acks)
            acks = [ack for each in (*lost, *later) for ack in await each]
            assert all(ack.stream.startswith("orders/1/") for ack in acks)
        whole = 1 + PRODUCER_WINDOW_SEQUENCES + WAITING
        assert await in_log(operator) == {
            "orders/0": {key: list(range(1 + synced)) for key in KEYS},
            "orders/1": {key: list(range(1 + synced, whole)) for key in KEYS},
        }
