"""Programs that take records themselves: one by one, by `fetch`, or as batches.

They do with each record what `run` does: acknowledge it when its handler returns, refuse it when
that raises. They also refuse records whose handlers are cancelled, as careful programs do.

Invariant: a record is told as handed out when the library hands it out, before anything else runs.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from random import Random

from dss_client.record import DeliveredRecord
from dss_client.subscription import Subscription
from dss_core.errors import DssError
from dss_sim.sessions.handlers import Handler, HandlerFailed
from dss_sim.sessions.run_rules import Handled

FETCHED = (1, 6)
FETCH_WITHIN_S = (0.0, 0.5)

Pieces = AsyncGenerator[Sequence[DeliveredRecord], None]


@dataclass(frozen=True, slots=True)
class Taking:
    """What a program takes, and how."""

    subscription: Subscription
    way: str
    concurrency: int
    """About how many are handled at once."""
    chance: Random
    is_drained: Callable[[], bool]


async def take(taking: Taking, handler: Handler) -> None:
    """Take records until it is cancelled, or until they end.

    Raises:
        DssError: it ended the records.
    """
    ended_by: DssError | None = None
    room = asyncio.Semaphore(taking.concurrency)

    async def settled(record: DeliveredRecord, handled: Handled) -> None:
        try:
            await _settled(record, handled, handler)
        finally:
            room.release()

    async with asyncio.TaskGroup() as tasks, aclosing(WAYS[taking.way](taking)) as pieces:
        try:
            async for records in pieces:
                for record, handled in [(each, handler.begun(each)) for each in records]:
                    tasks.create_task(settled(record, handled), name="settled")
                for _ in records:
                    await room.acquire()
        except DssError as error:
            ended_by = error
    if ended_by is not None:
        raise ended_by


async def _settled(record: DeliveredRecord, handled: Handled, handler: Handler) -> None:
    try:
        await handler.work(record, handled)
    except HandlerFailed:
        await _refused(record, None)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or not task.cancelling():
            await _refused(record, None)
            return
        if not record.acked:
            await _refused(record, 0)
        raise
    else:
        if not record.refused:
            await record.ack()


async def _refused(record: DeliveredRecord, delay_s: float | None) -> None:
    if not record.refused:
        await record.nak(delay_s)


async def _one_by_one(taking: Taking) -> Pieces:
    async for record in taking.subscription:
        yield [record]


async def _batches(taking: Taking) -> Pieces:
    async for batch in taking.subscription.batches():
        yield list(batch)


async def _fetched(taking: Taking) -> Pieces:
    chance, fetch = taking.chance, taking.subscription.fetch
    while not taking.is_drained():
        yield await fetch(chance.randint(*FETCHED), chance.uniform(*FETCH_WITHIN_S))


WAYS: Mapping[str, Callable[[Taking], Pieces]] = {
    "one by one": _one_by_one,
    "batches": _batches,
    "fetch": _fetched,
}
