"""Scripted lives of a daemon's log and store, told line by line.

`__main__` runs one, under strace. Lives: ``first`` makes everything and ends as by kill -9;
``second`` recovers, repeats what the first sent last, and stops cleanly; ``third`` goes on and
stops cleanly; ``recover`` only starts on whatever it finds and ends as by kill -9. The lives
``unsynced``, ``unsynced_again`` and ``unsynced_third`` end in the same ways, and have a topic whose
records are answered before they are durable.

Invariant: a request is told before it is made, and its answer right after it came, so the
operations of an answer lie before it in the trace. Every payload is sent once, except for repeats.
"""

import asyncio
import os
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.ids import StreamId
from dss_core.producer_ids import NO_PRODUCER
from dss_sim.played_sessions import Attached
from dss_sim.power_loss.adopted_rows import published
from dss_sim.power_loss.daemon_parts import Parts, opened
from dss_sim.power_loss.promises import (
    AckAsked,
    Acked,
    Fact,
    Granted,
    GroupMade,
    RemovalAsked,
    Sent,
    SentTogether,
    SessionMade,
    Stored,
    Synced,
    TopicAsked,
    TopicMade,
    TopicRemoved,
    TrimAsked,
    Trimmed,
    encode,
)
from dss_sim.power_loss.trace import TOLD_FD
from dssd.log.port import Append, Appended, Publication
from dssd.log.settings import LogSettings
from dssd.machines.start_point import Earliest
from dssd.sessions.client_items import Granted as GrantDecided
from dssd.sessions.client_items import Opening, Settled
from dssd.store.port import Put
from dssd.topics.catalogue import NewTopic, Topic

SETTINGS = LogSettings(segment_bytes_max=16 << 10, watermark_bytes=4 << 10)
GROUP, FILTER = "billing", "orders/#"
UNSYNCED_GROUP, UNSYNCED_FILTER = "counting", "clicks/#"
CLIENT = "consumer"
DIED = 70
LONG = 1_700
"""Bytes of a payload that spans sectors."""

Sending = tuple[bytes, int, int, Sequence[str]]
"""Producer, partition, sequence, payloads."""


def die(failure: BaseException) -> None:
    """End the process at once, as a daemon does when it dies."""
    traceback.print_exception(failure)
    os._exit(DIED)


def tell(fact: Fact) -> None:
    """Tell a fact, at once."""
    os.write(TOLD_FD, f"{encode(fact)}\n".encode())


def frame_of(topic: Topic, sending: Sending) -> bytes:
    """The frame of a sending, always the same one."""
    producer, partition, sequence, payloads = sending
    columns = Columns([text.encode() for text in payloads], None, topic.name, None, 1)
    return build_frame(columns, partition=partition, producer_id=producer, sequence=sequence)


async def send(parts: Parts, topic: Topic, *sendings: Sending) -> None:
    """Append frames at once, each with a call of its own, so that they share a group commit."""
    async with asyncio.TaskGroup() as tasks:
        for at, sending in enumerate(sendings):
            tasks.create_task(_send(parts, topic, sending), name=f"send {at}")


async def _send(parts: Parts, topic: Topic, sending: Sending) -> None:
    _, partition, _, payloads = sending
    stream = topic.producing.streams()[partition]
    tell(Sent(*stream, list(payloads)))
    append = Append(stream, frame_of(topic, sending), topic.topic_epoch, topic.durability)
    [result] = await parts.log.append([append])
    assert isinstance(result, Appended), result
    tell(Stored(*stream, result.base_offset, list(payloads)))


async def adopt(parts: Parts, topic: Topic, number: int, *sendings: Sending) -> None:
    """Adopt frames without a producer, one for each partition, all at once, with the row of a
    number."""
    streams = topic.producing.streams()
    for _, partition, _, payloads in sendings:
        tell(Sent(*streams[partition], list(payloads)))
    tell(SentTogether(number, [text for sending in sendings for text in sending[3]]))
    adopted = await parts.log.adopt(
        topic.producing.storage_topic_id,
        lambda: [[frame_of(topic, sending) for sending in sendings]],
        topic_epoch=topic.topic_epoch,
        publish=lambda _: Publication([Put(published(number))]),
    )
    for _, partition, _, payloads in sendings:
        tell(Stored(*streams[partition], adopted.ranges[partition][0], list(payloads)))


async def make_topic(parts: Parts, name: str, partitions: int, durability: str = "sync") -> Topic:
    """Create a topic."""
    tell(TopicAsked(name))
    topic = await parts.catalogue.create(NewTopic(name, partitions, durability=durability))
    number = topic.producing.storage_topic_id
    tell(TopicMade(name, topic.topic_id, number, partitions, durability))
    return topic


async def remove_topic(parts: Parts, name: str) -> None:
    """Remove it."""
    tell(RemovalAsked(name))
    await parts.catalogue.remove(name)
    tell(TopicRemoved(name))


async def give_up(
    parts: Parts, streams: Sequence[StreamId], trim: Callable[[], Awaitable[object]]
) -> None:
    """Trim streams in some way; none of the records at or above their present ends may go by it."""
    for stream in streams:
        tell(TrimAsked(*stream, parts.log.bounds(stream).end))
    await trim()
    for stream in streams:
        tell(Trimmed(*stream, parts.log.bounds(stream).start))
        tell(TrimAsked(*stream, parts.log.bounds(stream).start))


@asynccontextmanager
async def attached(
    parts: Parts, group: str = GROUP, filter_: str = FILTER
) -> AsyncIterator[Attached]:
    """The consumer; it stays connected while the block runs."""
    session = await parts.sessions.attach(Opening(CLIENT, clean_start=False, expiry_s=3_600))
    client = Attached(session)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(session.run(), name="session")
        tasks.create_task(client.listen(), name="client")
        tell(SessionMade(CLIENT, session.session_epoch))
        await client.subscribe(f"$share/{group}/{filter_}", start=Earliest())
        tell(GroupMade(group, filter_))
        yield client
        parts.sessions.detach(session)


async def consume(client: Attached, topic: Topic, count: int, group: str = GROUP) -> None:
    """Take all records that there are, and acknowledge one stream after the other, durably."""
    records = await client.records(count)
    lent = {item.grant: item for item in client.heard if isinstance(item, GrantDecided)}
    for grant in sorted({record[0] for record in records}):
        offsets = [offset for number, offset, *_ in records if number == grant]
        end = max(offsets) + 1
        partition = int(lent[grant].stream.rpartition("/")[2])
        stream = topic.producing.streams()[partition]
        tell(Granted(group, *stream, lent[grant].grant_epoch))
        tell(AckAsked(group, *stream, end))
        await client.ack(grant, min(offsets), end, token=end)
        await client.next(Settled, token=end)
        tell(Acked(group, *stream, end))


def texts(name: str, count: int, length: int = 0) -> list[str]:
    """This many payloads that occur nowhere else."""
    return [f"{name}.{at}".ljust(length, ".") for at in range(count)]


ONE, TWO = b"first  producer!", b"second producer!"
UNANSWERED: tuple[Sending, ...] = tuple(
    (producer, partition, 4, texts(f"last of {producer[:6].decode()} {partition}", 2, LONG))
    for producer in (ONE, TWO)
    for partition in range(3)
)
"""What the first life sends last and the second sends again."""


def together(number: int, length: int = 0) -> list[Sending]:
    """Frames without a producer, one for each of three partitions."""
    return [
        (NO_PRODUCER, partition, 0, texts(f"together {partition} {number}", 3, length))
        for partition in range(3)
    ]


def round_of(number: int, length: int = 0) -> list[Sending]:
    """A frame of each producer for each partition."""
    return [
        (name, partition, number, texts(f"{name[:6].decode()} {partition} {number}", 3, length))
        for name in (ONE, TWO)
        for partition in range(3)
    ]


async def first(root: Path) -> None:
    """Makes all kinds of changes, on an empty directory."""
    async with opened(root, SETTINGS, failed=die) as parts:
        orders = await make_topic(parts, "orders", 3)
        await send(parts, orders, *round_of(0))
        async with attached(parts) as client:
            await consume(client, orders, 18)
            await send(parts, orders, *round_of(1, length=LONG))
            await consume(client, orders, 18)
            await parts.log.roll(orders.producing.storage_topic_id)
            bills = await make_topic(parts, "bills", 1)
            await send(parts, bills, (ONE, 0, 0, texts("bill", 4, LONG)))
            await send(parts, orders, *round_of(2, length=LONG))
            await consume(client, orders, 18)
            await parts.log.roll(orders.producing.storage_topic_id)
            streams = orders.streams()
            number = orders.producing.storage_topic_id
            await give_up(parts, streams[:1], lambda: parts.log.trim(streams[0], 5))
            await give_up(parts, streams, lambda: parts.log.enforce_retention(number, None, 1, 0))
            await send(parts, orders, *round_of(3))
            await adopt(parts, orders, 0, *together(0, LONG))
            await remove_topic(parts, "bills")
            await consume(client, orders, 27)
            await send(parts, orders, *UNANSWERED)
            os._exit(0)


async def second(root: Path) -> None:
    """Recovers, repeats, goes on, stops."""
    async with opened(root, SETTINGS, failed=die) as parts:
        orders = parts.catalogue.get("orders")
        await send(parts, orders, *UNANSWERED)
        await send(parts, orders, *round_of(5, length=LONG))
        async with attached(parts) as client:
            await consume(client, orders, 30)
        await make_topic(parts, "notes", 2)


async def third(root: Path) -> None:
    """Goes on after a clean stop, and stops."""
    async with opened(root, SETTINGS, failed=die) as parts:
        orders, notes = parts.catalogue.get("orders"), parts.catalogue.get("notes")
        await send(parts, notes, (ONE, 1, 0, texts("note", 40)))
        await adopt(parts, orders, 1, *together(1))
        await send(parts, orders, *round_of(6))
        streams = notes.streams()
        await give_up(parts, streams[1:], lambda: parts.log.trim(streams[1], 40))


async def unsynced(root: Path) -> None:
    """Consumes records before they are durable, on an empty directory."""
    async with opened(root, SETTINGS, failed=die) as parts:
        clicks = await make_topic(parts, "clicks", 3, "os")
        async with attached(parts, UNSYNCED_GROUP, UNSYNCED_FILTER) as client:
            for number in range(3):
                await send(parts, clicks, *round_of(number))
                await consume(client, clicks, 18, UNSYNCED_GROUP)
            await parts.log.roll(clicks.producing.storage_topic_id)
            tell_synced(parts, clicks)
            for number in range(3, 9):
                await send(parts, clicks, *round_of(number))
            await consume(client, clicks, 108, UNSYNCED_GROUP)
            await send(parts, clicks, *round_of(9, LONG))
            await consume(client, clicks, 18, UNSYNCED_GROUP)
            await send(parts, clicks, *round_of(10, LONG))
            os._exit(0)


async def unsynced_again(root: Path) -> None:
    """Recovers, repeats, goes on, stops."""
    async with opened(root, SETTINGS, failed=die) as parts:
        clicks = parts.catalogue.get("clicks")
        await send(parts, clicks, *round_of(10, LONG))
        await send(parts, clicks, *round_of(11))
        async with attached(parts, UNSYNCED_GROUP, UNSYNCED_FILTER) as client:
            await consume(client, clicks, 36, UNSYNCED_GROUP)
            await send(parts, clicks, *round_of(12))
            await consume(client, clicks, 18, UNSYNCED_GROUP)


async def unsynced_third(root: Path) -> None:
    """Goes on after a clean stop, and stops."""
    async with opened(root, SETTINGS, failed=die) as parts:
        clicks = parts.catalogue.get("clicks")
        tell_synced(parts, clicks)
        async with attached(parts, UNSYNCED_GROUP, UNSYNCED_FILTER) as client:
            await send(parts, clicks, *round_of(13))
            await consume(client, clicks, 18, UNSYNCED_GROUP)


def tell_synced(parts: Parts, topic: Topic) -> None:
    """Tell that everything is durable: after a roll or an orderly stop, with nothing new since."""
    for stream in topic.streams():
        tell(Synced(*stream, parts.log.bounds(stream).end))


async def recover(root: Path) -> None:
    """Start on whatever is found, and die."""
    async with opened(root, SETTINGS, failed=die):
        os._exit(0)


LIVES = {
    life.__name__: life
    for life in (first, second, third, unsynced, unsynced_again, unsynced_third, recover)
}
