"""A trial of a group with queues: records that fail in each way, on a daemon that may die.

A record's number decides its fate. `Lanes` notes what was tried and what was answered, each fact
before the daemon can act on it, or after it answered. `check` judges a later daemon, and takes what
is left: each record must be acknowledged, or wait, or be dead, and only one of these.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Iterable, Set
from dataclasses import dataclass, field
from pathlib import Path

import dss_client
from dss_client import Client, DeliveredRecord, Producer, Subscription
from dss_client.changes import RedriveDeadLetters
from dss_client.queues import QueueEntry
from dss_core.errors import DiskFull
from support import trial_verdict
from support.client_trial import done_before
from support.started_program import started

TOPIC, GROUP = "orders", "lanes"
FILTER = f"$share/{GROUP}/{TOPIC}/#"
RECORDS, MAX_DELIVER = 14, 2
ACKED, ACKED_SOON, FAILS_ONCE, RESTS, FAILS, REJECTED, STUBBORN = range(7)
"""The fate of a record, by its number modulo seven. Dead letters are acknowledged once they are
redriven, except for the stubborn ones, which are rejected again."""
KILLER = RECORDS
"""Each consumer dies of it."""
LONG_S = 3_600.0
"""How long some wait."""
DOOMED = Path(__file__).parents[1] / "scenarios" / "programs" / "doomed_member.py"
PATIENCE_S = 60.0
POLL_S = 0.02


@dataclass(slots=True)
class Lanes:
    """What was tried, and what the daemon answered; records by number."""

    stored: set[int] = field(default_factory=set)
    acking: set[int] = field(default_factory=set)
    acked: set[int] = field(default_factory=set)
    """The daemon confirmed that this is durable."""
    errors: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The errors that were given."""
    seen: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Level and attempt of the last hand-out since it was redriven."""
    dead: set[int] = field(default_factory=set)
    """Seen among the dead letters."""
    redriven: set[int] = field(default_factory=set)
    """Records that an operation was asked to bring back."""


# The trial


async def perform(lanes: Lanes, endpoint: str, ended: Awaitable[object]) -> bool:
    """Do the work until it is complete or the daemon ends; tells which."""
    return await done_before(_all(lanes, endpoint), ended)


async def _all(lanes: Lanes, endpoint: str) -> None:
    async with dss_client.connect("member", endpoint=endpoint) as client:
        await client.topics.create(TOPIC, partitions=2)
        await client.groups.create(
            FILTER, start="earliest", max_deliver=MAX_DELIVER, backoff=[0.01]
        )
        await _send(client, lanes, range(RECORDS))
        async with client.subscribe(FILTER) as subscription:
            await _take(client, subscription, lanes, dead=6)
            await _redrive(client, lanes)
            await _take(client, subscription, lanes, dead=2)
            await subscription.drain()
        await _send(client, lanes, [KILLER])
        async with asyncio.TaskGroup() as tasks, asyncio.timeout(PATIENCE_S):
            dying = tasks.create_task(_die_again_and_again(endpoint), name="dying members")
            await _until_dead(client, 3)
            lanes.dead.add(KILLER)
            dying.cancel()


async def _send(client: Client, lanes: Lanes, numbers: Iterable[int]) -> None:
    async with client.producer(TOPIC) as producer:
        for number in numbers:
            await _until_stored(producer, b"%d" % number)
            lanes.stored.add(number)


async def _until_stored(producer: Producer, payload: bytes) -> None:
    """Publish it, again if the disk had no room."""
    while True:
        try:
            await producer.send(payload, key=payload)
        except DiskFull:
            await asyncio.sleep(POLL_S)
        else:
            return


async def _take(client: Client, subscription: Subscription, lanes: Lanes, *, dead: int) -> None:
    """Handle records until only those that wait for long are left, and this many dead ones."""
    async with asyncio.timeout(PATIENCE_S):
        while await group_stands(client) != (0, 2, dead):
            for record in await subscription.fetch(RECORDS, POLL_S):
                await _meet(record, lanes)
    lanes.dead |= {int(letter.payload) for letter in await _entries(client, "dead")}


async def _meet(record: DeliveredRecord, lanes: Lanes) -> None:
    number, now = int(record.payload), (record.level, record.attempt)
    assert now > lanes.seen.get(number, (-1, 0)), f"{number} came again as {now}"
    lanes.seen[number] = now
    fate, error = number % 7, f"{number} failed as {now}"
    if fate in (ACKED, ACKED_SOON) or (fate != STUBBORN and number in lanes.redriven):
        await _ack(record, lanes, sync=fate != ACKED_SOON)
    elif fate == FAILS_ONCE and record.level:
        await _ack(record, lanes, sync=True)
    else:
        lanes.errors[number].append(error)
        if fate in (REJECTED, STUBBORN):
            await record.reject(error)
        else:
            await record.nak(LONG_S if fate == RESTS else None, error)


async def _ack(record: DeliveredRecord, lanes: Lanes, *, sync: bool) -> None:
    number = int(record.payload)
    lanes.acking.add(number)
    await record.ack(sync=sync)
    if sync:
        lanes.acked.add(number)


async def _redrive(client: Client, lanes: Lanes) -> None:
    lanes.redriven |= lanes.dead
    for number in lanes.redriven:
        del lanes.seen[number]
    lanes.dead.clear()
    await client.operations.apply(RedriveDeadLetters(GROUP), reason="mended")


async def _until_dead(client: Client, dead: int) -> None:
    while True:
        if await group_stands(client) == (0, 2, dead):
            return
        await asyncio.sleep(POLL_S)


async def _die_again_and_again(endpoint: str) -> None:
    command = (str(DOOMED), endpoint, "doomed", FILTER, str(KILLER))
    while True:
        program = await started(*command, pipes=["stdout"])
        try:
            await program.wait()
        finally:
            program.kill()
            await program.wait()


# What is found


async def group_stands(client: Client) -> tuple[int, int, int]:
    """The unsettled records in their streams, those in retry queues, and the dead ones."""
    group = (await client.groups.describe(GROUP)).group
    return group.lag, group.retrying, group.dead


async def _entries(client: Client, level: str) -> list[QueueEntry]:
    look = client.queues.dead_letters if level == "dead" else client.queues.retries
    return [each async for each in look(GROUP, whole=True)]


async def check(endpoint: str, lanes: Lanes) -> None:
    """Take all records that come, once, and judge where each record is then."""
    async with dss_client.connect("next", endpoint=endpoint) as client:
        stored = {
            int(payload): place
            for place, payload in (await trial_verdict.read(client, TOPIC)).items()
        }
        async with client.subscribe(FILTER) as subscription:
            taken = await _taken(client, subscription, lanes)
            # The lane's holder knows why a record does not come.
            resting = [each for each in stored if await _rests(client, *stored[each])]
            await subscription.drain()
        waiting, dead = [await _entries(client, level) for level in ("retry", "dead")]
        for each in (*waiting, *dead):
            _check_error(each, lanes)
        numbers = [[int(each.payload) for each in found] for found in (waiting, dead)]
        _check_places(stored.keys(), [taken, *map(Counter, (resting, *numbers))], lanes)
        await _check_sums(client, len(stored), len(resting))


async def _taken(client: Client, subscription: Subscription, lanes: Lanes) -> Counter[int]:
    """Acknowledge all records that come until only those that wait for long are left."""
    taken: Counter[int] = Counter()
    async with asyncio.timeout(PATIENCE_S):
        while not await _is_settled(client, lanes, taken):
            for record in await subscription.fetch(RECORDS, POLL_S):
                number, now = int(record.payload), (record.level, record.attempt)
                assert now >= lanes.seen.get(number, (0, 0)), f"{number} comes as {now}: {lanes}"
                assert not record.level or record.last_error in lanes.errors[number], record
                taken[number] += 1
                await record.ack(sync=True)
    return taken


async def _is_settled(client: Client, lanes: Lanes, taken: Counter[int]) -> bool:
    """Whether only long refusals are left: in their queue, or in their stream if the holder died
    before it moved them.
    """
    lag, retrying, _ = await group_stands(client)
    running = [each for each in await client.operations.list() if not each.ended]
    refused = {each for each in lanes.errors if each % 7 == RESTS} - taken.keys()
    return not running and lag + retrying == len(refused)


async def _rests(client: Client, stream: str, offset: int) -> bool:
    """Whether a record waits in its stream."""
    answer = await client.groups.why(GROUP, stream=stream, offset=offset)
    return answer.records[0].reason.code == "resting"


async def _check_sums(client: Client, stored: int, resting: int) -> None:
    sums = await client.groups.verify(GROUP, scan=True)
    assert not any(each.problem for each in sums), sums
    main = [each.fates for each in sums if each.stream.startswith(f"{TOPIC}/")]
    assert sum(each.acked + each.retried for each in main) == stored - resting, sums


def _check_error(entry: QueueEntry, lanes: Lanes) -> None:
    """Check that it has the error that was given last."""
    errors = lanes.errors[int(entry.payload)]
    assert entry.error == errors[-1] if errors else entry.cause == "died", f"{entry}: {errors}"


def _check_places(stored: Set[int], places: list[Counter[int]], lanes: Lanes) -> None:
    """Check that each record is in one place, unless it was acknowledged before."""
    assert lanes.stored <= stored, f"lost: {lanes.stored - stored}"
    for number in stored:
        found = [each[number] for each in places]
        least = 0 if number in lanes.acking else 1
        most = 0 if number in lanes.acked else 1
        assert least <= sum(found) <= most, f"{number} is at {found}: {lanes}"
        assert number not in lanes.acking or not sum(found[1:]), f"{number} is at {found}: {lanes}"
    lost = lanes.dead - places[-1].keys()
    assert not lost, f"{lost} are dead no more: {lanes}"
