"""An ordered group with a daemon process: why a key waits, what a redrive takes, and its order."""

import asyncio
import json
from asyncio import TaskGroup
from typing import Any

import pytest

from dss_client import Client, DeliveredRecord, connect
from support.dssctl_call import Daemon, ok

GROUP = "$share/billing/orders/#"
KEYS = (b"ida", b"leo", b"eva")
RECORDS = 5
"""Of each key."""
PATIENCE_S = 30.0
LOOK_AGAIN_S = 0.02
ROOM = 2


def items(daemon: Daemon, *arguments: str) -> list[dict[str, Any]]:
    return list(json.loads(ok(daemon.dssctl(*arguments, "-o", "json")))["items"])


async def consumed(daemon: Daemon, count: int, *, fails: bool) -> list[tuple[bytes | None, int]]:
    """Keys and numbers of so many records: the first of ida is refused, that of leo rejected."""
    given: list[tuple[bytes | None, int]] = []
    async with (
        asyncio.timeout(PATIENCE_S),
        connect(endpoint=daemon.endpoint) as client,
        client.subscribe(GROUP) as subscription,
    ):
        async for record in subscription:
            number = int(bytes(record.payload))
            given.append((record.key, number))
            if fails and record.key == b"ida":
                await record.nak(error="busy")
            elif fails and record.key == b"leo":
                await record.reject(error="no price")
            else:
                await record.ack()
            if len(given) == count:
                break
        while fails:
            group = (await client.groups.describe("billing")).group
            if (group.retrying, group.dead) == (RECORDS, RECORDS):
                break
            await asyncio.sleep(LOOK_AGAIN_S)
    return given


async def failing_without_room(daemon: Daemon) -> None:
    """A key that fails has filled the queue of its stream; another one fails then."""
    async with asyncio.timeout(PATIENCE_S), connect(endpoint=daemon.endpoint) as client:
        async with client.producer("bills") as producer:
            for number in range(6):
                await producer.send(str(number).encode(), key=b"ida")
        async with client.subscribe("$share/team/bills/#") as subscription, TaskGroup() as tasks:
            running = tasks.create_task(subscription.run(refused, concurrency=8), name="run")
            await stand_still(client, 6)
            async with client.producer("bills") as producer:
                for number in range(6):
                    await producer.send(str(number).encode(), key=KEYS[number % 2 + 1])
            await stand_still(client, 6 + 3)
            await asyncio.to_thread(told_of_full_queues, daemon)
            running.cancel()


async def stand_still(client: Client, records: int) -> None:
    """So many are left, and the dead ones are as many as may be, or more: moves go whole."""
    while True:
        group = (await client.groups.describe("team")).group
        if group.dead >= ROOM and (group.lag + group.dead, group.retrying) == (records, 0):
            return
        await asyncio.sleep(LOOK_AGAIN_S)


async def refused(record: DeliveredRecord) -> None:
    if record.key != b"eva":
        raise ValueError("no price")


def told_of_full_queues(daemon: Daemon) -> None:
    """Whoever asks hears that the queues are full, what waits for what, and what helps."""
    *_, last = items(daemon, "groups", "why", "team", "--key", "ida")
    assert (last["code"], last["blocked_by"]) == ("behind-key", 0)
    assert last["command"] == "dssctl dlq redrive 'team@bills/#' --key ida"
    first, *behind = items(daemon, "groups", "why", "team", "--key", "leo")
    assert first["code"] == "queues-full"
    assert first["command"] == "dssctl dlq errors 'team@bills/#'"
    assert {(each["code"], each["blocked_by"]) for each in behind} == {
        ("behind-key", first["offset"])
    }
    page = ok(daemon.dssctl("groups", "describe", "team")).decode()
    assert "--queue-records 4" in page


async def published(daemon: Daemon) -> None:
    async with connect(endpoint=daemon.endpoint) as client, client.producer("orders") as producer:
        for number in range(RECORDS * len(KEYS)):
            await producer.send(str(number).encode(), key=KEYS[number % len(KEYS)])


@pytest.fixture(scope="module")
def failed(daemon: Daemon) -> Daemon:
    """A group in which one key waits for an hour, one is dead, and one is done."""
    ok(daemon.dssctl("topics", "create", "orders", "--partitions", "2"))
    create = ("groups", "create", GROUP, "--max-deliver", "2", "--backoff", "1h", "--ordered")
    ok(daemon.dssctl(*create, "--start", "earliest"))
    asyncio.run(published(daemon))
    given = asyncio.run(consumed(daemon, RECORDS + 2, fails=True))
    assert [number for key, number in given if key == b"eva"] == list(range(2, 15, 3))
    assert {(b"ida", 0), (b"leo", 1)} < set(given)
    return daemon


def test_a_key_is_explained_and_comes_back_whole_and_in_order(failed: Daemon) -> None:
    first, *behind = items(failed, "groups", "why", "billing", "--key", "ida")
    assert (first["code"], len(behind)) == ("retrying", RECORDS - 1)
    assert f"{RECORDS - 1} later records of its key wait for it" in first["sentence"]
    assert {(each["code"], each["blocked_by"]) for each in behind} == {
        ("behind-key", first["offset"])
    }
    dead, *behind = items(failed, "groups", "why", "billing", "--key", "leo")
    assert (dead["code"], len(behind)) == ("dead", RECORDS - 1)
    assert dead["command"] == "dssctl dlq redrive 'billing@orders/#' --key leo"
    assert {each["code"] for each in behind} == {"behind-key"}

    place = f"{behind[0]['stream']}@{behind[0]['offset']}"
    refused = failed.dssctl("dlq", "redrive", "billing", place, "--yes")
    assert refused.returncode == 6
    assert b"DSS2155" in refused.stderr
    assert b"dssctl dlq redrive 'billing@orders/#' --key leo" in refused.stderr
    [error] = [each for each in items(failed, "dlq", "errors", "billing") if each["error"]]
    redrive = ("dlq", "redrive", "billing", "--error", error["fingerprint"], "--yes")
    done = failed.dssctl(*redrive, "-o", "json")
    number = json.loads(ok(done))["item"]["number"]
    again = asyncio.run(consumed(failed, RECORDS, fails=False))
    assert again == [(b"leo", number) for number in range(1, 15, 3)]
    ok(failed.dssctl("ops", "wait", str(number)))
    [group] = items(failed, "groups", "ls")
    assert (group["dead"], group["retrying"]) == (0, RECORDS)


def test_full_queues_are_told_of_by_each_record_that_waits_for_room(daemon: Daemon) -> None:
    ok(daemon.dssctl("topics", "create", "bills", "--partitions", "1"))
    create = ("groups", "create", "$share/team/bills/#", "--max-deliver", "2", "--ordered")
    ok(daemon.dssctl(*create, "--backoff", "10ms", "--queue-records", str(ROOM)))
    asyncio.run(failing_without_room(daemon))
