"""A program that is told to end. Usage: FILE async|sync WORK ENDPOINT GRACE.

It says ``begun`` once it works, ``done N`` for each record whose work it ended, ``left`` behind its
blocks.
"""

import asyncio
import sys
import time

import dss_client
import dss_client.sync
from dss_client import DeliveredRecord
from dss_client.sync import DeliveredRecord as SyncRecord

_, SORT, WORK, ENDPOINT, GRACE = sys.argv
WORK_S = 0.1
FOREVER_S = 3_600


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")  # whole lines, from several threads
    sys.stdout.flush()


async def handle(record: DeliveredRecord) -> None:
    say("begun")
    await asyncio.sleep(FOREVER_S if WORK == "hang" else WORK_S)
    say(f"done {record.offset}")


async def consume(subscription: dss_client.Subscription) -> None:
    if WORK == "iterate":
        async for record in subscription:
            await handle(record)
            await record.ack()
    elif WORK == "fetch":
        while True:
            for record in await subscription.fetch(10, timeout=60):
                await handle(record)
                await record.ack()
    else:
        await subscription.run(handle, concurrency=4)


async def publish(client: dss_client.Client) -> None:
    sent = 0
    try:
        async with client.producer("t") as producer:
            while True:
                await producer.enqueue(b"x")
                sent += 1
                if sent == 100:
                    say("begun")
    finally:
        say(f"done {sent}")


async def main() -> None:
    async with dss_client.connect("stopped", endpoint=ENDPOINT) as client:
        if WORK == "publish":
            await publish(client)
        async with client.subscribe("$share/g/t/#", start="earliest") as subscription:
            if WORK == "idle":
                say("begun")
            await consume(subscription)
    say("left")


def handle_sync(record: SyncRecord) -> None:
    say("begun")
    time.sleep(WORK_S)
    say(f"done {record.offset}")


def consume_sync(subscription: dss_client.sync.Subscription) -> None:
    if WORK == "iterate":
        for record in subscription:
            handle_sync(record)
            record.ack()
    elif WORK == "fetch":
        while True:
            for record in subscription.fetch(10, timeout=60):
                handle_sync(record)
                record.ack()
    else:
        subscription.run(handle_sync, concurrency=4)


def publish_sync(client: dss_client.sync.Client) -> None:
    sent = 0
    try:
        with client.producer("t") as producer:
            while True:
                producer.enqueue(b"x")
                sent += 1
                if sent == 100:
                    say("begun")
    finally:
        say(f"done {sent}")


def main_sync() -> None:
    with dss_client.sync.connect("stopped", endpoint=ENDPOINT) as client:
        if WORK == "publish":
            publish_sync(client)
        with client.subscribe("$share/g/t/#", start="earliest") as subscription:
            if WORK == "idle":
                say("begun")
            consume_sync(subscription)
    say("left")


if SORT == "async":
    dss_client.run(main(), grace=float(GRACE))
else:
    dss_client.sync.run(main_sync, grace=float(GRACE))
