"""kill -9 of the daemon under load, many times on one data directory, with the real client.

Producers of three habits publish on through all of it. What was acknowledged is there; what is
there was sent, once, in the order of its producer.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import dss_client
from dss_client import Ack
from support.daemon_process import DaemonProcess, short_directory
from support.proof_share import share
from support.recorded_run import Place, Recorded
from support.trial_verdict import read

pytestmark = pytest.mark.slow("several lives of a daemon")


KILLS = share(2, 20)
PARTITIONS = 4
KEYS = 64
ACKS_BETWEEN_KILLS = (1, 10_000)
STEPS_BEFORE_KILL = (0, 200)
"""Steps of the event loop after the last of these acks: kills hit any moment of a send."""
BULK_RECORDS = 1_000
BULK_SENDS_AT_ONCE = 8
PATIENCE_S = 60.0


class Journal:
    """What the producers saw."""

    def __init__(self) -> None:
        self.stopping = False
        self.recorded = Recorded()
        self.acked = 0
        """Records that their producers know to be stored."""
        self._grown = asyncio.Event()

    def stored(self, ack: Ack, payload: bytes | None = None) -> None:
        """An ack came, perhaps of a frame."""
        self.recorded.stored(ack, payload)
        self.acked += ack.records
        self._grown.set()

    async def acked_beyond(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.acked <= count:
                self._grown.clear()
                await self._grown.wait()


def key_of(number: int) -> bytes:
    return b"k%d" % (number % KEYS)


async def one_by_one(producer: dss_client.Producer, name: bytes, journal: Journal) -> None:
    """Each record waits for the ack of the one before."""
    number = 0
    while not journal.stopping:
        payload = b"%s %d" % (name, number)
        journal.recorded.send(payload)
        journal.stored(await producer.send(payload, key=key_of(number)), payload)
        number += 1


async def many_in_flight(producer: dss_client.Producer, name: bytes, journal: Journal) -> None:
    """Up to 200 records are on their way."""
    number = 0
    while not journal.stopping:
        deliveries = {}
        for _ in range(200):
            payload = b"%s %d" % (name, number)
            journal.recorded.send(payload)
            deliveries[payload] = await producer.enqueue(payload, key=key_of(number))
            number += 1
        for payload, delivery in deliveries.items():
            journal.stored(await delivery, payload)


async def by_columns(producer: dss_client.Producer, name: bytes, journal: Journal) -> None:
    """Frames of the Arrow layout, some hundred records each, and many on their way."""
    number = 0

    async def send() -> None:
        nonlocal number
        numbers = range(number, number + BULK_RECORDS)
        number = numbers.stop
        payloads = [b"%s %d" % (name, at) for at in numbers]
        journal.recorded.send(*payloads)
        for ack in await producer.send_columns(payloads, [key_of(at) for at in numbers]):
            journal.stored(ack)

    async def send_on() -> None:
        while not journal.stopping:
            await send()

    async with asyncio.TaskGroup() as sends:
        for at in range(BULK_SENDS_AT_ONCE):
            sends.create_task(send_on(), name=f"send {at}")


HABITS: dict[bytes, Callable[[dss_client.Producer, bytes, Journal], Coroutine[Any, Any, None]]] = {
    b"slow": one_by_one,
    b"slow too": one_by_one,
    b"busy": many_in_flight,
    b"bulk": by_columns,
}


async def publish(endpoint: str, name: bytes, journal: Journal) -> None:
    async with (
        dss_client.connect(endpoint=endpoint) as client,
        client.producer("orders") as producer,
    ):
        await HABITS[name](producer, name, journal)


async def kill_and_restart(daemon: DaemonProcess, directory: Path) -> DaemonProcess:
    await daemon.kill()
    assert "Traceback" not in daemon.said, daemon.said
    return await DaemonProcess.start("--data-dir", str(directory))


async def test_kills_under_load_lose_nothing_and_invent_nothing(tmp_path: Path) -> None:
    journal = Journal()
    chance = random.Random(20)
    with short_directory() as directory:
        daemon = await DaemonProcess.start("--data-dir", str(directory))
        try:
            async with dss_client.connect(endpoint=daemon.endpoint) as client:
                await client.topics.create("orders", partitions=PARTITIONS)
            async with asyncio.TaskGroup() as producers:
                for name in HABITS:
                    producers.create_task(
                        publish(daemon.endpoint, name, journal), name=name.decode()
                    )
                for _ in range(KILLS):
                    await journal.acked_beyond(journal.acked + chance.randint(*ACKS_BETWEEN_KILLS))
                    for _ in range(chance.randint(*STEPS_BEFORE_KILL)):
                        await asyncio.sleep(0)
                    journal.recorded.disturb("the daemon is killed")
                    daemon = await kill_and_restart(daemon, directory)
                journal.stopping = True
            async with dss_client.connect(endpoint=daemon.endpoint) as client:
                log = await read(client, "orders")
            assert await daemon.stop() == 0
        finally:
            await daemon.kill()
    journal.recorded.judge(tmp_path / "history.jsonl", log)
    assert journal.acked == len(log)
    check_order(log)


def check_order(log: dict[Place, bytes]) -> None:
    """The records of a producer are in the order in which it sent them."""
    numbers: dict[tuple[str, bytes], list[int]] = defaultdict(list)
    for (stream, _), payload in sorted(log.items()):
        name, _, number = payload.rpartition(b" ")
        numbers[stream, name].append(int(number))
    for found in numbers.values():
        assert found == sorted(found), "a producer's records are out of order"
