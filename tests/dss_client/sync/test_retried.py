import asyncio
from collections.abc import Callable, Iterator
from threading import Thread

import pytest

import dss_client.sync
from dss_api.v1 import sessions_pb2
from dss_client.sync import DeliveredRecord, Subscription
from dss_client.testing import MemoryDaemon, until
from dss_core.errors import IllegalArgument
from support.retry_queue import acked_in_queue, entry, retried, settles_of_queue

WAYS = ("one by one", "fetch", "batches", "run")


def taken(subscription: Subscription, way: str, count: int) -> Iterator[DeliveredRecord]:
    """So many records, in a way."""
    if way == "fetch":
        yield from subscription.fetch(count)
    elif way == "batches":
        yield from next(subscription.batches())
    elif way == "one by one":
        records = iter(subscription)
        yield from (next(records) for _ in range(count))
    else:
        found: list[DeliveredRecord] = []

        def handle(record: DeliveredRecord) -> None:
            found.append(record)
            if len(found) == count:
                Thread(target=subscription.drain).start()

        subscription.run(handle, concurrency=1)
        yield from found


async def with_thread(
    daemon: MemoryDaemon, work: Callable[[Subscription], None], *deliveries: sessions_pb2.Deliver
) -> None:
    """Do something in a thread while the stream is lent and these are delivered."""
    daemon.hold_back = True

    def program() -> None:
        with (
            dss_client.sync.connect(endpoint=daemon.endpoint) as client,
            client.subscribe("$share/g/t/#") as subscription,
        ):
            work(subscription)

    working = asyncio.ensure_future(asyncio.to_thread(program))
    await until(lambda: daemon.subscribes)
    for each in deliveries:
        daemon.say(deliver=each)
    await asyncio.wait_for(working, 5)


@pytest.mark.parametrize("way", WAYS)
async def test_a_record_that_failed_before_says_so_in_every_way(
    daemon: MemoryDaemon, way: str
) -> None:
    seen: list[tuple[object, ...]] = []

    def work(subscription: Subscription) -> None:
        for record in taken(subscription, way, 2):
            seen.append((record.stream, record.offset, record.level, record.attempt))
            seen.append((record.last_error, record.last_error_type, record.headers))
            if way != "run":
                record.ack()

    await with_thread(daemon, work, retried(40, [entry(9, error_type="KeyError"), entry(5)]))
    headers = (("a", b"1"), ("b", b"2"))
    assert seen == [
        ("t/0/0", 9, 1, 2),
        ("no room", "KeyError", headers),
        ("t/0/0", 5, 1, 2),
        ("no room", None, headers),
    ]
    assert acked_in_queue(daemon) == [40, 41]


async def test_refusals_from_a_thread_say_why(daemon: MemoryDaemon) -> None:
    def work(subscription: Subscription) -> None:
        first, second = subscription.fetch(2)
        first.nak(error=ValueError("no such aircraft"))
        second.reject()
        batch = next(subscription.batches())
        assert (batch.level, [*batch.offsets]) == (1, [7])
        batch.reject("never")

    await with_thread(daemon, work, retried(40, [entry(9), entry(5)]), retried(42, [entry(7)]))
    naks = [nak for settle in settles_of_queue(daemon) for nak in settle.naks]
    assert naks == [
        sessions_pb2.Nak(start=40, end=41, error="no such aircraft", error_type="ValueError"),
        sessions_pb2.Nak(start=41, end=42, reject=True),
        sessions_pb2.Nak(start=42, end=43, error="never", reject=True),
    ]


async def test_a_delay_that_is_not_allowed_is_said_in_the_thread_and_ends_nothing(
    daemon: MemoryDaemon,
) -> None:
    def work(subscription: Subscription) -> None:
        (record,) = subscription.fetch(1)
        with pytest.raises(IllegalArgument, match=r"delay -1"):
            record.nak(delay=-1)
        record.ack()
        batch = next(subscription.batches())
        with pytest.raises(IllegalArgument, match=r"at most 1d"):
            batch.nak(delay=86_401)
        batch.ack()

    await with_thread(daemon, work, retried(40, [entry(9)]), retried(41, [entry(7)]))
    assert acked_in_queue(daemon) == [40, 41]
    assert [each for settle in settles_of_queue(daemon) for each in settle.naks] == []


async def test_a_handler_in_a_thread_rejects(daemon: MemoryDaemon) -> None:
    def work(subscription: Subscription) -> None:
        def handle(record: DeliveredRecord) -> None:
            Thread(target=subscription.drain).start()
            raise dss_client.sync.Reject("the payload is empty")

        subscription.run(handle, concurrency=1)

    await with_thread(daemon, work, retried(40, [entry(9)]))
    naks = [nak for settle in settles_of_queue(daemon) for nak in settle.naks]
    error = sessions_pb2.Nak(
        start=40, end=41, error="the payload is empty", error_type="Reject", reject=True
    )
    assert naks == [error]
