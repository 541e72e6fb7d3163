"""A trial of a topic that grows under load, on a daemon that may die.

Its producers survive the daemon: they talk to whichever daemon is at the address, until all is
done. `Growth` notes what was sent, and what a full disk refused. `check` waits for the end and
judges: the topic is switched, and the records of each producer and key are there once and in order,
over both storage topics. `left` looks at what a dead daemon leaves: the switch is there as a whole
or not at all.
"""

import asyncio
import shutil
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import dss_client
from dss_client import Client, Producer
from dss_client.changes import AddStorageTopic, SwitchTopic
from dss_core.errors import PASSING, DiskFull, OutcomeUnknown
from dssd.data_directory import STORE_NAME
from dssd.store.rows import StorageTopicRow, TopicRow
from dssd.store.sqlite import SqliteStore

TOPIC, MARK, GROUP = "orders", "mark", "readers"
FILTER = f"$share/{GROUP}/{TOPIC}/#"
PARTITIONS = (2, 3)
KEYS = 2
RECORDS_BEFORE, RECORDS_BEHIND = 4, 12
"""How many are acknowledged before the switch is asked for, and after it."""
PORTION = 4
PATIENCE_S = 60.0
POLL_S = 0.02

Sent = tuple[bytes, int]
"""Key and number."""


@dataclass(slots=True)
class Growth:
    """What the producers did, each with its own keys."""

    sent: defaultdict[bytes, int] = field(default_factory=lambda: defaultdict(int))
    refused: set[Sent] = field(default_factory=set)
    """Certainly not stored, because the disk was full."""
    stored: int = 0
    is_over: bool = False
    """Set when the producers are to stop."""
    grown: asyncio.Event = field(default_factory=asyncio.Event)
    work: "asyncio.Task[None] | None" = None

    def portion(self, name: str) -> list[Sent]:
        """What to send next."""
        made = []
        for at in range(PORTION):
            key = f"{name}{at % KEYS}".encode()
            made.append((key, self.sent[key]))
            self.sent[key] += 1
        return made

    async def outcome(self, sent: Sent, delivery: Awaitable[object]) -> None:
        """Note the outcome of a record."""
        try:
            await delivery
        except DiskFull:
            self.refused.add(sent)
        else:
            self.stored += 1
            self.grown.set()

    async def stored_more(self, records: int) -> None:
        """Wait until this many more are stored."""
        enough = self.stored + records
        while self.stored < enough:
            self.grown.clear()
            await self.grown.wait()


@asynccontextmanager
async def growing() -> AsyncIterator[Growth]:
    """A trial; at the end of the block its unfinished work is abandoned."""
    growth = Growth()
    try:
        yield growth
    finally:
        if growth.work is not None:
            growth.work.cancel()
            await asyncio.gather(growth.work, return_exceptions=True)


async def perform(growth: Growth, endpoint: str, ended: Awaitable[object]) -> bool:
    """Do the work; returns whether it was complete before the daemon ended. If not, it goes on."""
    growth.work = asyncio.create_task(_all(growth, endpoint), name="trial")
    waiting = asyncio.ensure_future(ended)
    await asyncio.wait([growth.work, waiting], return_when=asyncio.FIRST_COMPLETED)
    if waiting.done():
        return False
    waiting.cancel()
    await growth.work
    return True


async def _all(growth: Growth, endpoint: str) -> None:
    async with dss_client.connect(endpoint=endpoint) as client:
        await client.topics.create(TOPIC, partitions=PARTITIONS[0])
        await client.groups.create(FILTER, start="earliest")
        await client.topics.create(MARK, partitions=1)
        async with client.producer(TOPIC) as ahead, client.producer(TOPIC) as slow:
            await _send_one_by_one(slow, growth)
            await _mark(client)
            await _done(client, AddStorageTopic(TOPIC, PARTITIONS[1]), "add")
            async with asyncio.TaskGroup() as senders:
                senders.create_task(_keep_on(_send_ahead, ahead, growth))
                senders.create_task(_keep_on(_send_one_by_one, slow, growth))
                await growth.stored_more(RECORDS_BEFORE)
                await _done(client, SwitchTopic(TOPIC), "switch")
                await growth.stored_more(RECORDS_BEHIND)
                growth.is_over = True


async def _mark(client: Client) -> None:
    """Send a record that tells where the two steps begin."""
    async with client.producer(MARK) as producer:
        while True:
            with suppress(DiskFull):
                await producer.send(b"here it begins")
                return


async def _done(client: Client, change: AddStorageTopic | SwitchTopic, name: str) -> None:
    """Let one operation end, whatever happens to the daemon that was asked for it."""
    while True:
        with suppress(OutcomeUnknown, DiskFull, *PASSING):
            row = await client.operations.apply(change, operation_id=name)
            ended = await client.operations.ended(row.number)
            assert ended.state == "done", ended
            return
        await asyncio.sleep(POLL_S)


async def _keep_on(
    send: Callable[[Producer, Growth], Awaitable[None]], producer: Producer, growth: Growth
) -> None:
    while not growth.is_over:
        await send(producer, growth)


async def _send_one_by_one(producer: Producer, growth: Growth) -> None:
    for key, number in growth.portion("slow"):
        await growth.outcome((key, number), producer.send(b"%d" % number, key=key))


async def _send_ahead(producer: Producer, growth: Growth) -> None:
    """Have many in flight at once."""
    sent = [
        (each, await producer.enqueue(b"%d" % each[1], key=each[0]))
        for each in growth.portion("ahead")
    ]
    for each, delivery in sent:
        await growth.outcome(each, delivery)
    # Sends that failed before anybody awaited them raise once more here.
    with suppress(DiskFull):
        await producer.flush()


# What is found


async def left(data: Path) -> str:
    """What is wrong with the rows that a daemon left; nothing if they are consistent."""
    with tempfile.TemporaryDirectory() as copied:
        _copy_store(data, Path(copied))
        store = await SqliteStore.open(Path(copied) / STORE_NAME)
        try:
            [topic] = [each.row for each in await store.scan(TopicRow) if each.row.name == TOPIC]
            parts = [each.row for each in await store.scan(StorageTopicRow, (topic.topic_id,))]
        finally:
            await store.close()
    sealed = [part.ends is not None for part in parts]
    is_open = topic.produce_ordinal == 0 and sealed in ([False], [False, False])
    is_switched = topic.produce_ordinal == 1 and sealed == [True, False]
    is_of_it = topic.topic_epoch == parts[topic.produce_ordinal].storage_topic_id
    return "" if is_of_it and (is_open or is_switched) else f"half a switch: {topic}, {parts}"


def _copy_store(data: Path, target: Path) -> None:
    for path in data.glob(f"{STORE_NAME}*"):
        shutil.copy(path, target)


async def check(endpoint: str, growth: Growth) -> None:
    """Wait until all is done, and judge the result."""
    assert growth.work is not None
    async with asyncio.timeout(PATIENCE_S):
        await growth.work
    async with dss_client.connect(endpoint=endpoint) as client:
        topic = await client.topics.describe(TOPIC)
        shape = [(part.partitions, part.sealed) for part in topic.storage_topics]
        assert shape == [(PARTITIONS[0], True), (PARTITIONS[1], False)]
        places: dict[bytes, list[tuple[int, int, int]]] = defaultdict(list)
        async for record in client.read(f"{TOPIC}/#"):
            assert record.key is not None
            ordinal = int(record.stream.split("/")[1])
            places[record.key].append((ordinal, record.offset, int(record.payload)))
        for key, count in growth.sent.items():
            found = [number for _, _, number in sorted(places[key])]
            expected = [at for at in range(count) if (key, at) not in growth.refused]
            assert found == expected, f"{key!r}: {found}"
        states = {each.kind: each.state for each in await client.operations.list()}
        assert states == {"topics.add-storage": "done", "topics.switch": "done"}
        sums = await client.groups.verify(GROUP, scan=True)
        assert [each.problem for each in sums] == [""] * sum(PARTITIONS), sums
        records = sum(map(len, places.values()))
        assert (await client.groups.describe(GROUP)).group.lag == records
