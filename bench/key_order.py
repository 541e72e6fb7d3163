"""What the order of keys costs a client of an ordered group while nothing fails.

Run by itself: ``python bench/key_order.py``. Frames are made by hand and delivered to subscriptions
without a daemon; plain and ordered take turns, and each pair gives one ratio. It counts processor
time, so that other work on the machine matters less.
"""

import asyncio
import statistics
from collections.abc import Awaitable, Callable
from time import process_time

from dss_client._grant import HeldGrant
from dss_client._handout import Handout
from dss_client._subscription_options import SubscriptionOptions
from dss_client.record import DeliveredRecord
from dss_client.subscription import Keeper, Subscription
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.frame import stamped

Way = Callable[[Subscription], Awaitable[None]]

RECORDS, PAIRS, KEYS, PAYLOAD = 40_000, 9, 4_000, b"x" * 100
FRAME_RECORDS = (20, 1_000)
"""In rows, and in Arrow."""


class Alone:
    """A session without a daemon: reports are made and go nowhere."""

    def __init__(self) -> None:
        self.subscription: Subscription
        self.grant: HeldGrant

    async def subscribe(self, subscription: Subscription) -> None:
        """It is there."""

    async def leave(self, subscription: Subscription) -> None:
        """Nobody else takes over."""

    async def unsubscribe(self, subscription: Subscription) -> None:
        """As `leave`."""

    async def flush_acks(self, subscription: Subscription) -> None:
        """Nobody keeps them."""

    def may_send_more(self, records: int, size_bytes: int) -> bool:
        """It may."""
        return True

    def is_sure(self) -> bool:
        """Nobody takes the stream back."""
        return True

    async def wait_sure(self) -> None:
        """As `is_sure`."""

    def flush_soon(self) -> None:
        """What costs a client its part of a report."""
        self.subscription.note_current()
        self.grant.report(lambda _: 1)

    flush_if_worth_it = flush_soon


def frames(records: int) -> list[bytes]:
    """Frames of so many records each, as they come of a stream."""
    found: list[bytes] = []
    for base in range(0, RECORDS, records):
        keys = [b"key-%d" % (at * 7_919 % KEYS) for at in range(base, base + records)]
        frame = build_frame(
            Columns([PAYLOAD] * records, keys, "t"), partition=0, producer_id=b"p" * 16, sequence=0
        )
        stamp = stamped(
            frame, base_offset=base, append_time_us=7, topic_epoch=1, storage_topic_id=1
        )
        found.append(stamp + frame[len(stamp) :])
    return found


def delivered(pieces: list[bytes], *, ordered: bool) -> Subscription:
    """A subscription to which all of these came."""
    alone = Alone()

    async def opened() -> Keeper:
        return alone

    subscription = alone.subscription = Subscription(opened, SubscriptionOptions.of("$share/g/t/#"))
    subscription._session = alone
    grant = alone.grant = HeldGrant(
        1,
        subscription=1,
        stream="t/0/0",
        grant_epoch=1,
        floor=0,
        redelivered_below=0,
        touched=lambda _grant, _urgent: None,
        queues=True,
    )
    grant.order = subscription.ordered() if ordered else None
    subscription.granted(grant)
    for piece in pieces:
        subscription.deliver(Handout(grant, piece, (), redelivered=False, attempt=1))
    return subscription


async def by_record(subscription: Subscription) -> None:
    """Each is acknowledged before the next is asked for."""
    taken = 0
    async for record in subscription:
        await record.ack()
        taken += 1
        if taken == RECORDS:
            return


async def by_batch(subscription: Subscription) -> None:
    """The same with batches."""
    taken = 0
    async for batch in subscription.batches():
        await batch.ack()
        taken += len(batch)
        if taken == RECORDS:
            return


async def by_fetch(subscription: Subscription) -> None:
    """A hundred at a time."""
    taken = 0
    while taken < RECORDS:
        records = await subscription.fetch(100)
        for record in records:
            await record.ack()
        taken += len(records)


async def by_run(subscription: Subscription) -> None:
    """A handler that does nothing."""
    taken, done = 0, asyncio.Event()

    async def handle(_: DeliveredRecord) -> None:
        nonlocal taken
        taken += 1
        if taken == RECORDS:
            done.set()

    running = asyncio.create_task(subscription.run(handle), name="run")
    await done.wait()
    running.cancel()


async def acked_by_others(subscription: Subscription) -> None:
    """Each is acknowledged by another task, while the next ones are asked for."""
    taken, queue = 0, asyncio.Queue[DeliveredRecord](64)

    async def work() -> None:
        while True:
            await (await queue.get()).ack()

    workers = [asyncio.create_task(work(), name=f"worker {each}") for each in range(4)]
    async for record in subscription:
        await queue.put(record)
        taken += 1
        if taken == RECORDS:
            break
    for worker in workers:
        worker.cancel()


WAYS: tuple[Way, ...] = (
    by_record,
    by_batch,
    by_fetch,
    by_run,
    acked_by_others,
)


async def seconds(way: Way, pieces: list[bytes], *, ordered: bool) -> float:
    """Of the processor, for all records."""
    subscription = delivered(pieces, ordered=ordered)
    begin_s = process_time()
    await way(subscription)
    return process_time() - begin_s


async def measured(way: Way, pieces: list[bytes]) -> str:
    """How fast it is plain, and how much of that it is ordered."""
    ratios: list[float] = []
    plain_ns: list[float] = []
    for pair in range(PAIRS):
        turns = (False, True) if pair % 2 else (True, False)
        took_s = {ordered: await seconds(way, pieces, ordered=ordered) for ordered in turns}
        ratios.append(took_s[False] / took_s[True])
        plain_ns.append(took_s[False] / RECORDS * 1e9)
    return (
        f"plain {statistics.median(plain_ns):>6.0f} ns a record, ordered"
        f" {statistics.median(ratios):.2f} of that speed ({min(ratios):.2f} to {max(ratios):.2f})"
    )


async def main() -> None:
    """A line a way and a size of frames."""
    for records in FRAME_RECORDS:
        pieces = frames(records)
        for way in WAYS:
            print(f"{records:>5} a frame  {way.__name__:<16} {await measured(way, pieces)}")


if __name__ == "__main__":
    asyncio.run(main())
