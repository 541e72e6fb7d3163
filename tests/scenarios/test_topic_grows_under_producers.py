"""A topic is switched again and again under producers of all kinds, and the daemon is killed.

Nothing that was acknowledged is lost, nothing is there twice, and what a key has lies in the order
in which it was sent: in each storage topic, and over them all.
"""

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

import dss_client
from dss_api.v1 import log_pb2, types_pb2
from dss_client import changes, sync
from dss_core.errors import OutcomeUnknown
from support.daemon_process import DaemonProcess, short_directory
from support.proof_share import share
from support.raw_stubs import connected
from support.started_program import StartedProgram, started

PARTITIONS = (4, 6, 12, 3, 7, 14, 2, 5, 10, 9, 4)
SWITCHES = share(3, 10)
KILLED_AT = share({1}, {0, 2, 3, 5, 7, 9})
"""Switches under which the daemon is killed."""
RECORDS_BETWEEN = (200, 1_500)
STEPS_BEFORE_KILL = (0, 300)
"""Steps of the event loop between the request of a switch and the kill."""
KEYS = 8
PORTION = 40
PATIENCE_S = 120.0


class Journal:
    """What the senders did. Each has keys of its own, and numbers the records of each key."""

    def __init__(self) -> None:
        self.stopping = False
        self.sent: dict[bytes, int] = defaultdict(int)
        """By key: how many were sent, each acknowledged before the end."""
        self.unsure: set[tuple[bytes, int]] = set()
        """May be there, for nobody knows what became of the call."""
        self.stored = 0
        self._grown = asyncio.Event()

    def portion(self, name: str) -> list[tuple[bytes, bytes]]:
        """Keys and payloads to send next."""
        made = []
        for at in range(PORTION):
            key = b"%s-%d" % (name.encode(), at % KEYS)
            made.append((key, b"%d" % self.sent[key]))
            self.sent[key] += 1
        return made

    def note(self, records: int) -> None:
        """So many more are stored."""
        self.stored += records
        self._grown.set()

    async def stored_more(self, records: int) -> None:
        enough = self.stored + records
        async with asyncio.timeout(PATIENCE_S):
            while self.stored < enough:
                self._grown.clear()
                await self._grown.wait()


async def one_by_one(producer: dss_client.Producer, journal: Journal) -> None:
    while not journal.stopping:
        for key, payload in journal.portion("one"):
            await producer.send(payload, key=key)
            journal.note(1)


async def many_in_flight(producer: dss_client.Producer, journal: Journal) -> None:
    while not journal.stopping:
        deliveries = [
            await producer.enqueue(payload, key=key) for key, payload in journal.portion("many")
        ]
        await deliveries[-1]
        journal.note(len(deliveries))
    await producer.flush()


async def by_columns(producer: dss_client.Producer, journal: Journal) -> None:
    while not journal.stopping:
        async with asyncio.TaskGroup() as sends:
            for _ in range(4):
                keys, payloads = zip(*journal.portion("columns"), strict=True)
                sends.create_task(producer.send_columns(payloads, keys))
        journal.note(4 * PORTION)


HABITS: list[Callable[[dss_client.Producer, Journal], Coroutine[Any, Any, None]]] = [
    one_by_one,
    many_in_flight,
    by_columns,
]


async def produce(endpoint: str, habit: int, journal: Journal) -> None:
    async with (
        dss_client.connect(endpoint=endpoint) as client,
        client.producer("orders") as producer,
    ):
        await HABITS[habit](producer, journal)


def in_threads(endpoint: str, journal: Journal) -> None:
    with sync.connect(endpoint=endpoint) as client, client.producer("orders") as producer:
        while not journal.stopping:
            for key, payload in journal.portion("threads"):
                last = producer.enqueue(payload, key=key)
            last.wait()


async def publish(endpoint: str, journal: Journal) -> None:
    """Plain records: whoever cannot know what became of a call does not repeat it."""
    async with connected(endpoint) as stubs:
        while not journal.stopping:
            portion = journal.portion("plain")
            records = [types_pb2.Record(key=key, payload=payload) for key, payload in portion]
            request = log_pb2.PublishRequest(topic="orders", records=records)
            try:
                await stubs.log.Publish(request, wait_for_ready=True)
                journal.note(PORTION)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                journal.unsure.update((key, int(payload)) for key, payload in portion)


async def feed(program: StartedProgram, journal: Journal) -> None:
    """What `dssctl produce` publishes, of which it says at its end that all is stored."""
    assert program.stdin is not None
    while not journal.stopping:
        for key, payload in journal.portion("dssctl"):
            line = {"key": key.decode(), "payload": payload.decode()}
            program.stdin.write(json.dumps(line).encode() + b"\n")
        await journal.stored_more(PORTION)
    program.stdin.close()
    _, said = await program.communicate()
    assert program.returncode == 0, said


async def grow(client: dss_client.Client, partitions: int) -> None:
    change = changes.GrowTopic("orders", partitions)
    name = f"to-{partitions}-{random.getrandbits(32)}"
    while True:
        try:
            operation = await client.operations.apply(change, operation_id=name)
            break
        except OutcomeUnknown:
            continue
    assert (await client.operations.ended(operation.number)).state == "done"


async def grow_and_kill(
    daemon: DaemonProcess, client: dss_client.Client, turn: int, directory: Path
) -> DaemonProcess:
    """One more switch, with a kill of the daemon in its midst in some turns."""
    growing = asyncio.create_task(grow(client, PARTITIONS[turn + 1]), name="grow")
    if turn in KILLED_AT:
        for _ in range(random.Random(turn).randint(*STEPS_BEFORE_KILL)):
            await asyncio.sleep(0)
        await daemon.kill()
        assert "Traceback" not in daemon.said, daemon.said
        daemon = await DaemonProcess.start("--data-dir", str(directory))
    async with asyncio.timeout(PATIENCE_S):
        await growing
    return daemon


@pytest.mark.slow("six producers, and several lives of a daemon")
async def test_all_kinds_of_producers_go_on_through_switches_and_kills() -> None:
    journal = Journal()
    chance = random.Random(29)
    with short_directory() as directory:
        daemon = await DaemonProcess.start("--data-dir", str(directory))
        try:
            async with dss_client.connect(endpoint=daemon.endpoint) as client:
                await client.topics.create("orders", partitions=PARTITIONS[0])
                arguments = ("produce", "orders", "--input", "jsonl", "--endpoint", daemon.endpoint)
                program = await started("-m", "dssctl", *arguments, pipes=["stdin", "stderr"])
                async with asyncio.TaskGroup() as senders:
                    for habit in range(len(HABITS)):
                        senders.create_task(produce(daemon.endpoint, habit, journal))
                    senders.create_task(asyncio.to_thread(in_threads, daemon.endpoint, journal))
                    senders.create_task(publish(daemon.endpoint, journal))
                    senders.create_task(feed(program, journal))
                    for turn in range(SWITCHES):
                        await journal.stored_more(chance.randint(*RECORDS_BETWEEN))
                        daemon = await grow_and_kill(daemon, client, turn, directory)
                    await journal.stored_more(RECORDS_BETWEEN[0])
                    journal.stopping = True
                await judge(client, journal)
            assert await daemon.stop() == 0
        finally:
            await daemon.kill()


async def judge(client: dss_client.Client, journal: Journal) -> None:
    topic = await client.topics.describe("orders")
    assert [part.partitions for part in topic.storage_topics] == list(PARTITIONS[: SWITCHES + 1])
    assert [part.sealed for part in topic.storage_topics] == [True] * SWITCHES + [False]
    places: dict[bytes, list[tuple[int, int, int]]] = defaultdict(list)
    async for record in client.read("orders/#"):
        _, ordinal, _ = record.stream.split("/")
        assert record.key is not None
        places[record.key].append((int(ordinal), record.offset, int(record.payload)))
    assert places.keys() == journal.sent.keys()
    for key, found in places.items():
        numbers = [number for _, _, number in sorted(found)]
        # Of those nobody is sure of, some are there.
        unsure = {number for other, number in journal.unsure if other == key} - set(numbers)
        expected = [number for number in range(journal.sent[key]) if number not in unsure]
        assert numbers == expected, key
