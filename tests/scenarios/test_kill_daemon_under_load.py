"""kill -9 of the daemon under load, twenty times on one data directory, with the real client.

Producers of three habits publish on through all of it. What was acknowledged is there; what is
there was sent, once, in the order of its producer.
"""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import dss_client
from dss_core.ids import StreamName
from dssd.testing.daemon_process import DaemonProcess, short_directory

KILLS = 20
PARTITIONS = 4
KEYS = 64
ACKS_BETWEEN_KILLS = (1, 10_000)
STEPS_BEFORE_KILL = (0, 200)
"""Steps of the event loop after the last of these acks: kills hit any moment of a send."""
BULK_RECORDS = 1_000
BULK_SENDS_AT_ONCE = 8
PATIENCE_S = 60.0

Place = tuple[str, int]
"""Stream and offset."""


class Journal:
    """What was sent and what was acknowledged, as the producers saw it."""

    def __init__(self) -> None:
        self.stopping = False
        self.sent: set[bytes] = set()
        self.places: dict[bytes, Place] = {}
        """Where an acknowledged record lies; only where its ack said so."""
        self.ranges: list[tuple[str, int, int]] = []
        """Stream, first offset, records: acks of whole frames."""
        self.acked = 0
        self._grown = asyncio.Event()

    def note(self, acked: int) -> None:
        self.acked += acked
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
        journal.sent.add(payload)
        ack = await producer.send(payload, key=key_of(number))
        journal.places[payload] = (ack.stream, ack.offset)
        journal.note(1)
        number += 1


async def many_in_flight(producer: dss_client.Producer, name: bytes, journal: Journal) -> None:
    """Up to 200 records are on their way."""
    number = 0
    while not journal.stopping:
        deliveries = {}
        for _ in range(200):
            payload = b"%s %d" % (name, number)
            journal.sent.add(payload)
            deliveries[payload] = await producer.enqueue(payload, key=key_of(number))
            number += 1
        for payload, delivery in deliveries.items():
            ack = await delivery
            journal.places[payload] = (ack.stream, ack.offset)
            journal.note(1)


async def by_columns(producer: dss_client.Producer, name: bytes, journal: Journal) -> None:
    """Frames of the Arrow layout, some hundred records each, and many on their way."""
    number = 0

    async def send() -> None:
        nonlocal number
        numbers = range(number, number + BULK_RECORDS)
        number = numbers.stop
        payloads = [b"%s %d" % (name, at) for at in numbers]
        journal.sent.update(payloads)
        for ack in await producer.send_columns(payloads, [key_of(at) for at in numbers]):
            journal.ranges.append((ack.stream, ack.offset, ack.records))
            journal.note(ack.records)

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


async def test_twenty_kills_under_load_lose_nothing_and_invent_nothing() -> None:
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
                    daemon = await kill_and_restart(daemon, directory)
                journal.stopping = True
            stored = await read_all(daemon.endpoint)
            assert await daemon.stop() == 0
        finally:
            await daemon.kill()
    check(journal, stored)


async def read_all(endpoint: str) -> dict[Place, bytes]:
    stored: dict[Place, bytes] = {}
    async with dss_client.connect(endpoint=endpoint) as client:
        async for record in client.read("orders/#"):
            place = (record.stream, record.offset)
            assert place not in stored
            stored[place] = record.payload
    return stored


def check(journal: Journal, stored: dict[Place, bytes]) -> None:
    lost = {payload for payload, place in journal.places.items() if stored.get(place) != payload}
    assert not lost
    for stream, offset, records in journal.ranges:
        assert all((stream, at) in stored for at in range(offset, offset + records))
    assert set(stored.values()) <= journal.sent, "a record that nobody sent"
    # Nobody gave up, so all that was sent was acknowledged in the end.
    assert Counter(stored.values()) == Counter(journal.sent)
    assert journal.acked == len(journal.sent)
    numbers: dict[tuple[str, bytes], list[int]] = defaultdict(list)
    offsets: dict[str, list[int]] = defaultdict(list)
    for (stream, offset), payload in sorted(stored.items()):
        name, _, number = payload.rpartition(b" ")
        numbers[stream, name].append(int(number))
        offsets[stream].append(offset)
    assert set(offsets) == {str(StreamName("orders", 0, at)) for at in range(PARTITIONS)}
    for found in offsets.values():
        assert found == list(range(len(found))), "a gap"
    for found in numbers.values():
        assert found == sorted(found), "a producer's records are out of order"
