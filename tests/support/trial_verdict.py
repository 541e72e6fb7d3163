"""What must hold of a daemon that was started again after a trial, however the trial ended.

Every acknowledged record is there, once, at the offset of its ack, in its producer's order; offsets
have no gap; nothing is there that nobody sent. Durably settled records do not come again, those
that were handed out come marked, and everything else comes. The daemon takes records again.
"""

import asyncio
from collections import Counter, defaultdict

import dss_client
from dss_client import Client, DeliveredRecord
from support.client_trial import EXPIRING, FILTER, GROUP, MEMBER, ORDERS, Journal, Place

PATIENCE_S = 60.0


async def check(endpoint: str, journal: Journal) -> None:
    """Check all that a client can see. It leaves one more record, and the group without lag."""
    async with dss_client.connect(MEMBER, endpoint=endpoint) as client:
        names = {summary.topic.name for summary in await client.topics.list()}
        assert journal.created - journal.removing <= names, f"a topic was lost: {names}"
        assert names <= journal.creating - journal.removed, f"a topic came back: {names}"
        stored = {name: await read(client, name) for name in sorted(names)}
        for name, records in stored.items():
            _check_topic(name, records, journal)
        await _check_group(client, stored.get(ORDERS, {}), journal)
        await _publish(client, ORDERS in names, stored.get(ORDERS, {}))
        status = await client.daemon.status()
        damaged = [each for each in status.quarantined if "damage" in each.reason]
        assert not damaged, damaged


async def read(client: Client, topic: str) -> dict[Place, bytes]:
    """All records of a topic; checks that its streams have no gap, and the length that they
    report."""
    ends = {
        f"{topic}/0/{bounds.partition}": bounds.end
        for bounds in (await client.topics.describe(topic)).producing.streams
    }
    stored: dict[Place, bytes] = {}
    offsets: dict[str, list[int]] = defaultdict(list)
    async for record in client.read(f"{topic}/#"):
        stored[record.stream, record.offset] = record.payload
        offsets[record.stream].append(record.offset)
    for stream, end in ends.items():
        found = offsets[stream]
        start = found[0] if found and topic == EXPIRING else 0
        assert found == list(range(start, end)), f"{stream}: not {start}..{end} but {found}"
    return stored


def _check_topic(topic: str, stored: dict[Place, bytes], journal: Journal) -> None:
    unsent = set(stored.values()) - journal.tried[topic]
    assert not unsent, f"{topic}: records that nobody sent: {unsent}"
    doubled = [payload for payload, count in Counter(stored.values()).items() if count > 1]
    assert not doubled, f"{topic}: more than once: {doubled}"
    starts: dict[str, int] = {}
    for stream, offset in stored:
        starts[stream] = min(offset, starts.get(stream, offset))
    for place, payload in journal.stored.items():
        if not place[0].startswith(f"{topic}/"):
            continue
        expired = topic == EXPIRING and place[1] < starts.get(place[0], 0)
        assert expired or stored.get(place) == payload, f"{place} is {stored.get(place)!r}"
    numbers: dict[tuple[str, bytes], list[int]] = defaultdict(list)
    for (stream, _), payload in sorted(stored.items()):
        habit, number, *_ = payload.split(b" ")
        numbers[stream, habit].append(int(number))
    for sender, found in numbers.items():
        assert found == sorted(found), f"{topic}: {sender} is out of order: {found}"


async def _check_group(client: Client, stored: dict[Place, bytes], journal: Journal) -> None:
    """Take the remaining records of the group, and settle them."""
    if not stored:
        assert not journal.settled
        return
    wanted = stored.keys() - journal.settling
    taken: dict[Place, DeliveredRecord] = {}
    async with client.subscribe(FILTER, start="earliest") as subscription:
        async with asyncio.timeout(PATIENCE_S):
            while wanted - taken.keys():
                for record in await subscription.fetch(len(wanted - taken.keys()), 0.2):
                    taken[record.stream, record.offset] = record
                    await record.ack()
        await subscription.drain()
    again = taken.keys() & journal.settled
    assert not again, f"delivered again although settled: {sorted(again)}"
    for place in taken.keys() & journal.handed:
        assert taken[place].redelivered, f"{place} was handed out before, and is not marked"
    assert (await client.groups.describe(GROUP)).group.lag == 0


async def _publish(client: Client, exists: bool, stored: dict[Place, bytes]) -> None:
    if not exists:
        await client.topics.create(ORDERS, partitions=2)
    async with client.producer(ORDERS) as producer:
        ack = await producer.send(b"after all", key=b"k")
    ends = [offset + 1 for stream, offset in stored if stream == ack.stream]
    assert ack.offset == max(ends, default=0)
