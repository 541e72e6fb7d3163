"""Running a handler over records: many at once, those of one key one after the other.

A *chain* is the records of one key under one grant. Its order is kept across failures: a record is
handled only when no earlier record of its chain waits for redelivery; else it is refused too, and
comes after that one. A record that a handler itself acknowledged or refused stays so, however the
handler ends. Records that wait here when their stream is taken back are not handled. Each record
without a key is a chain of its own. Invariant: at most `concurrency` handlers run, and a bounded
number of records waits for a slot or for its key.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, NoReturn

from dss_client.limits import RUN_QUEUED_OF_CONCURRENCY
from dss_core.errors import IllegalArgument

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
        self._refused: dict[int, DeliveredRecord] = {}

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
        # Each refused record has its own delay, so later arrivals do not say when it comes. But
        # user code may have acknowledged a refused record after all.
        for offset, refused in list(self._refused.items()):
            if refused.acked:
                del self._refused[offset]
            elif offset < record.offset:
                return True
        return False

    def refused(self, record: "DeliveredRecord") -> None:
        """The record is to come again."""
        self._refused[record.offset] = record

    def handled(self, record: "DeliveredRecord") -> None:
        """The record is done with."""
        self._refused.pop(record.offset, None)

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
        ended_by: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            workers = [
                tasks.create_task(self._work(), name=f"dss handler {number}")
                for number in range(self._concurrency)
            ]
            try:
                async for record in records:
                    await self._room.acquire()
                    self._dispatch(record)
            except Exception as error:  # noqa: BLE001 - raised behind the group, which wraps it
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
            try:
                await self._handle(chain, record)
            finally:
                self._finished(chain, record)

    def _finished(self, chain: Chain, record: "DeliveredRecord") -> None:
        following = chain.finished()
        if following is not None:
            self._slots.put_nowait((chain, following))
        elif record.key is not None and (chain.is_idle or record.grant_over):
            self._chains.pop((record.grant_number, record.key), None)
        self._room.release()

    async def _handle(self, chain: Chain, record: "DeliveredRecord") -> None:
        if record.grant_over:
            # Another member may be handling it by now, and an ack from here would be refused.
            return
        if chain.follows_a_refused(record):
            chain.refused(record)
            await record.nak()
            return
        try:
            await self._handler(record)
        except asyncio.CancelledError:
            worker = asyncio.current_task()
            if worker is not None and worker.cancelling():
                raise
            # The worker was not cancelled, but something that the handler awaited was.
            await self._failed(chain, record)
        except Exception:  # noqa: BLE001 - a handler may raise anything; its record comes again
            await self._failed(chain, record)
        else:
            if record.refused:
                chain.refused(record)
            else:
                chain.handled(record)
                await record.ack()

    async def _failed(self, chain: Chain, record: "DeliveredRecord") -> None:
        """The handler raised what is being handled."""
        if record.acked:
            _LOG.exception("the handler failed for %r after acknowledging it", record)
            chain.handled(record)
            return
        _LOG.exception("the handler failed for %r; it will be redelivered", record)
        chain.refused(record)
        if not record.refused:
            await record.nak()
