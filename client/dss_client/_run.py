"""Running a handler over records: many at once, those of one key one after the other.

A *chain* is the records of one key under one grant. Its order is kept across failures: a record is
handled only when no earlier one of its chain waits to come again; else it is refused too, and
follows it. Invariant: at most `concurrency` handlers run, and a bounded number of records waits
for a slot or for its key. Records without a key are chains of their own.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, NoReturn

from dss_client.limits import RUN_QUEUED_OF_CONCURRENCY
from dss_core.errors import DssError, IllegalArgument

if TYPE_CHECKING:
    from dss_client.record import DeliveredRecord

_LOG = logging.getLogger("dss_client")

Handler = Callable[["DeliveredRecord"], Awaitable[None]]


class Chain:
    """The records of one key under one grant. Pure: it decides, the runner acts."""

    __slots__ = ("_busy", "_refused", "_waiting")

    def __init__(self) -> None:
        self._busy = False
        self._waiting: deque[DeliveredRecord] = deque()  # bounded by the runner's slots
        self._refused: set[int] = set()

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it is known any more."""
        return not (self._busy or self._waiting or self._refused)

    def arrived(self, record: "DeliveredRecord") -> "DeliveredRecord | None":
        """A record came; the one to handle now, if any."""
        self._waiting.append(record)
        return None if self._busy else self._advance()

    def follows_a_refused(self, record: "DeliveredRecord") -> bool:
        """Whether an earlier record of the chain is to come again first."""
        return any(offset < record.offset for offset in self._refused)

    def refused(self, record: "DeliveredRecord") -> None:
        """The record is to come again."""
        self._refused.add(record.offset)

    def handled(self, record: "DeliveredRecord") -> None:
        """The record is done with."""
        self._refused.discard(record.offset)

    def finished(self) -> "DeliveredRecord | None":
        """A handler returned; the next record to handle, if any."""
        self._busy = False
        return self._advance()

    def _advance(self) -> "DeliveredRecord | None":
        if not self._waiting:
            return None
        self._busy = True
        return self._waiting.popleft()


class KeyedRunner:
    """Runs one handler over one stream of records."""

    def __init__(self, handler: Handler, *, concurrency: int) -> None:
        if concurrency < 1:
            raise IllegalArgument(argument=f"concurrency {concurrency}", rule="it is at least 1")
        self._handler = handler
        self._concurrency = concurrency
        self._room = asyncio.Semaphore(concurrency * RUN_QUEUED_OF_CONCURRENCY)
        self._slots: asyncio.Queue[tuple[Chain, DeliveredRecord]] = asyncio.Queue()
        self._chains: dict[tuple[int, bytes], Chain] = {}

    async def run(self, records: "AsyncIterator[DeliveredRecord]") -> None:
        """Handle every record; returns when they end and all are handled.

        Raises:
            DssError: the records ended by it; what was being handled is finished first.
        """
        ended_by: DssError | None = None
        async with asyncio.TaskGroup() as tasks:
            workers = [
                tasks.create_task(self._work(), name=f"dss handler {number}")
                for number in range(self._concurrency)
            ]
            try:
                async for record in records:
                    await self._room.acquire()
                    self._dispatch(record)
            except DssError as error:
                # Raised behind the group, which would wrap it.
                ended_by = error
            for _ in range(self._concurrency * RUN_QUEUED_OF_CONCURRENCY):
                await self._room.acquire()
            for worker in workers:
                worker.cancel()
        if ended_by is not None:
            raise ended_by

    def _dispatch(self, record: "DeliveredRecord") -> None:
        chain = self._chain(record)
        ready = chain.arrived(record)
        if ready is not None:
            self._slots.put_nowait((chain, ready))

    def _chain(self, record: "DeliveredRecord") -> Chain:
        if record.key is None:
            return Chain()
        return self._chains.setdefault((record.grant_number, record.key), Chain())

    async def _work(self) -> NoReturn:
        while True:
            chain, record = await self._slots.get()
            await self._handle(chain, record)
            following = chain.finished()
            if following is not None:
                self._slots.put_nowait((chain, following))
            elif record.key is not None and (chain.is_idle or record.grant_over):
                self._chains.pop((record.grant_number, record.key), None)
            self._room.release()

    async def _handle(self, chain: Chain, record: "DeliveredRecord") -> None:
        if chain.follows_a_refused(record):
            chain.refused(record)
            await record.nak()
            return
        try:
            await self._handler(record)
        except Exception:  # noqa: BLE001 - a handler may raise anything; its record comes again
            _LOG.exception("the handler failed for %r; it will come again", record)
            chain.refused(record)
            await record.nak()
        else:
            chain.handled(record)
            await record.ack()
