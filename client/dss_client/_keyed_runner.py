"""Running a handler over records: many at once, those of one key one after the other.

A *chain* is the records of one key under one grant (`dss_client._chains`); records without a key
have no order. Records that wait here, for their key or for a free handler, were not handed out: a
record is handed out when a handler is called with it, and not at all once its stream is taken back.
If the daemon was silent, no handler is called before it answers again, and none while the group is
paused.

Invariants: at most `concurrency` handlers run. A bounded number of records waits here, not counting
those behind a refused one. A record that its handler acknowledged or refused stays so, however the
handler ends. An exception that ends the program, such as `SystemExit`, ends the run and is no
failure of a record: raised in a task, it would stop the loop before anything is closed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, cast

from dss_client._chains import Chain, Loose
from dss_client._failure import Reject
from dss_client._failure_log import log_failure
from dss_client.limits import YIELD_EVERY_S
from dss_client.record import grant_behind
from dss_core.errors import IllegalArgument

if TYPE_CHECKING:
    from dss_client._grant import HeldGrant
    from dss_client._ordered import Ordered
    from dss_client.record import DeliveredRecord

RUN_QUEUED_OF_CONCURRENCY = 4
"""`run` holds at most this many records per handler slot, waiting for their key or a slot."""


Handler = Callable[["DeliveredRecord"], Awaitable[None]]
Chains = dict[tuple["HeldGrant", bytes | None], Chain | Loose]
"""By grant and key. Not by the number of the grant: a new session counts its grants from the
beginning, while handlers may still work on records of the session before."""


class HandlerMisused(Exception):
    """The given handler cannot be one; the argument is the rule that it breaks."""


class HandlerEndedProgram(Exception):
    """A handler raised what is no failure but an end, as `sys.exit` does; the argument is that."""


class KeyedRunner:
    """Runs one handler over one stream of records.

    ``wait_sure`` returns once it is known that the grants are still held.
    """

    def __init__(
        self, handler: Handler, *, concurrency: int, wait_sure: Callable[[], Awaitable[None]]
    ) -> None:
        if concurrency < 1:
            raise IllegalArgument(argument=f"concurrency {concurrency}", rule="it is at least 1")
        self._handler = handler
        self._concurrency = concurrency
        self._wait_sure = wait_sure
        self._asking = asyncio.Lock()
        self._sure_until = 0.0
        self._room = asyncio.Semaphore(concurrency * RUN_QUEUED_OF_CONCURRENCY)
        self._slots: asyncio.Queue[tuple[Chain | Loose, DeliveredRecord]] = asyncio.Queue()
        self._chains: Chains = {}
        self._busy = 0
        """Chains of which a record is handled or waits for a handler."""
        self._quiet = asyncio.Event()
        self._paused = False
        self._draining = False
        self._moved_on = asyncio.Event()
        """Set, and replaced, when a waiting record should look again whether the pause is over."""
        self._ended = False
        self._left: list[DeliveredRecord] = []
        """Records that were not handed out when the records ended."""
        self._unfinished: list[DeliveredRecord] = []

    async def run(self, records: "AsyncIterator[DeliveredRecord]") -> None:
        """Handle every record; returns when the records end and all that can be handled are.

        Records that wait behind a refused one are left, because the refused one does not come
        again.

        Raises:
            DssError: the records ended with it; the running handlers have finished.
            IllegalArgument: the handler is no async function; its record stays as it is.
            BaseException: the handler raised it, and it is no `Exception`; the same.
        """
        try:
            await self._run(records)
        except ExceptionGroup as group:
            _raise_what_ended(group)
            raise

    async def _run(self, records: "AsyncIterator[DeliveredRecord]") -> None:
        ended_by: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            workers = [
                tasks.create_task(self._work(), name=f"dss handler {number}")
                for number in range(self._concurrency)
            ]
            try:
                # Room first, so that a cancellation never finds a record taken and not entered.
                await self._room.acquire()
                async for record in records:
                    self._dispatch(record)
                    await self._room.acquire()
            except Exception as error:  # noqa: BLE001 - raised behind the group, which wraps it
                ended_by = error
            self._end()
            while self._busy:
                self._quiet.clear()
                await self._quiet.wait()
            for worker in workers:
                worker.cancel()
        if ended_by is not None:
            raise ended_by

    def _end(self) -> None:
        """No record comes any more, so records that wait for a refused one are not handled."""
        self._ended = True
        self._move_on()
        for chain in self._chains.values():
            self._left += chain.take_parked()

    def set_paused(self, paused: bool) -> None:
        """Call no handlers, or call them again; running handlers go on."""
        self._paused = paused
        self._move_on()

    def take_no_more(self) -> None:
        """Take no more records, and handle none of those that wait."""
        self._draining = True
        self._move_on()

    def _move_on(self) -> None:
        moved_on, self._moved_on = self._moved_on, asyncio.Event()
        moved_on.set()

    def resume(self, chains: Chains) -> None:
        """Take over the refused records that an earlier run knew of; none of its records wait."""
        for at, chain in chains.items():
            chain.look_again()
            if not chain.is_idle:
                self._chains[at] = chain

    def left(self) -> "tuple[list[DeliveredRecord], Chains]":
        """After `run`: the records that were not handed out, in order, and what is refused."""
        records, self._left = self._left, []
        while not self._slots.empty():
            records.append(self._slots.get_nowait()[1])
        for chain in self._chains.values():
            records += chain.empty()
        return sorted(records, key=_in_order), self._chains

    def unfinished(self) -> "list[DeliveredRecord]":
        """After `run`: the records whose handlers were cancelled with it, in order, unsettled."""
        return sorted(self._unfinished, key=_in_order)

    def drop(self, grant: "HeldGrant") -> None:
        """The grant is not to be handed out from any more: forget its records that wait."""
        for at, chain in [*self._chains.items()]:
            if chain.grant is grant:
                del self._chains[at]
                self._leave_room(chain.drop())
        self._move_on()

    def refused_acked(self, grant: "HeldGrant") -> None:
        """A refused record was acknowledged after all, and does not come again."""
        if self._ended:
            return
        for at, chain in [*self._chains.items()]:
            if chain.grant is grant and chain.look_again():
                self._go_on(chain, chain.next())
                if chain.is_idle:
                    del self._chains[at]

    def _dispatch(self, record: "DeliveredRecord") -> None:
        grant, key = grant_behind(record).lane, record.key
        if grant.order is not None:
            key = None  # no other record of its key has come
        at = (grant, key)
        chain = self._chains.get(at)
        if chain is None:
            chain = self._chains[at] = Loose(grant) if key is None else Chain(grant)
        self._go_on(chain, chain.arrived(record))

    def _go_on(self, chain: Chain | Loose, step: "tuple[DeliveredRecord | None, int]") -> None:
        record, freed = step
        if record is not None:
            self._busy += 1
            self._slots.put_nowait((chain, record))
        if freed:
            self._leave_room(freed)

    def _leave_room(self, records: int) -> None:
        for _ in range(records):
            self._room.release()

    async def _work(self) -> None:
        # A handler may end its cancellation with another error, or go on to its end.
        while not _is_cancelled():
            chain, record = await self._slots.get()
            try:
                await self._handle(chain, record)
            finally:
                self._finished(chain, record)

    def _finished(self, chain: Chain | Loose, record: "DeliveredRecord") -> None:
        self._busy -= 1
        if chain.grant.order is not None:
            cast("Ordered", chain.grant.order).returned(record)
        self._go_on(chain, chain.finished())
        if chain.is_idle:
            self._chains.pop((chain.grant, record.key), None)
        if not self._busy:
            self._quiet.set()

    async def _handle(self, chain: Chain | Loose, record: "DeliveredRecord") -> None:
        while self._waits(chain) or monotonic() >= self._sure_until:
            await self._be_sure(chain, record)
        grant, held = chain.grant, grant_behind(record)
        if grant.stopped:
            # Another member may be handling it by now, and an ack from here would be refused.
            return
        if self._paused or self._draining:
            self._left.append(record)
            return
        if held.order is not None and not cast("Ordered", held.order).begins(record):
            return
        if held.acked_meanwhile(record._at):
            chain.handled(record)
            return
        held.hand_out(record._at)
        await self._call(chain, record)

    async def _call(self, chain: Chain | Loose, record: "DeliveredRecord") -> None:
        """Have it handled, and settle it.

        Raises:
            HandlerEndedProgram, GeneratorExit: the handler ended by what is no failure.
            HandlerMisused: it could not be called.
        """
        try:
            await self._handler(record)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a handler may raise anything
            await self._ended_by(error, chain, record)
        except GeneratorExit:
            self._cancelled(chain, record)
            raise
        except BaseException as error:
            self._cancelled(chain, record)
            raise HandlerEndedProgram(error) from error
        else:
            if record.refused:
                chain.refused(record)
            else:
                chain.handled(record)
                await record.ack()

    async def _ended_by(
        self,
        error: Exception | asyncio.CancelledError,
        chain: Chain | Loose,
        record: "DeliveredRecord",
    ) -> None:
        """The handler raised an error; if this run was being cancelled, its record has not
        failed."""
        if _is_cancelled() and not isinstance(error, Reject):
            self._cancelled(chain, record)
            return
        # The worker was not cancelled, so it was something that the handler awaited.
        if isinstance(error, Exception):
            self._refuse_misuse(chain, record, error)
        await self._failed(chain, record, error)

    def _waits(self, chain: Chain | Loose) -> bool:
        """Whether a record waits for the end of a pause."""
        return self._paused and not (self._ended or self._draining or chain.grant.stopped)

    async def _be_sure(self, chain: Chain | Loose, record: "DeliveredRecord") -> None:
        """Wait for the end of a pause; after a silence, until the grants are known to be held."""
        try:
            while self._waits(chain):
                await self._moved_on.wait()
            async with self._asking:
                while (now := monotonic()) >= self._sure_until:
                    await self._wait_sure()
                    # The time before the question: this process may stand still after the answer.
                    self._sure_until = now + YIELD_EVERY_S
        except asyncio.CancelledError:
            self._slots.put_nowait((chain, record))
            raise

    def _cancelled(self, chain: Chain | Loose, record: "DeliveredRecord") -> None:
        """The handler was cancelled with this run; later records of its chain wait for its
        record."""
        if record.acked:
            return
        chain.refused(record)
        if not record.refused:
            self._unfinished.append(record)

    def _refuse_misuse(
        self, chain: Chain | Loose, record: "DeliveredRecord", error: Exception
    ) -> None:
        """End the run if the handler could not be called at all.

        Raises:
            HandlerMisused: its record is left as it is.
        """
        if isinstance(error, HandlerMisused):
            self._cancelled(chain, record)
            raise error
        if raised_by_call(error):
            self._cancelled(chain, record)
            raise HandlerMisused("it is an async function of one record") from error

    async def _failed(
        self, chain: Chain | Loose, record: "DeliveredRecord", error: BaseException
    ) -> None:
        """The handler raised an error."""
        if record.acked:
            log_failure(record, error, "it is acknowledged already")
            chain.handled(record)
            return
        rejects = isinstance(error, Reject)
        log_failure(record, error, "it is rejected" if rejects else "it is refused")
        chain.refused(record)
        if record.refused:
            return
        await (record.reject(error) if rejects else record.nak(error=error))


def _raise_what_ended(group: "ExceptionGroup[Exception]") -> None:
    """Raise what a handler did to the run, if that is what ended it.

    Raises:
        IllegalArgument, BaseException: as `KeyedRunner.run` does.
    """
    if (misused := group.subgroup(HandlerMisused)) is not None:
        [rule] = misused.exceptions[0].args
        raise IllegalArgument(argument="handler", rule=rule) from None
    if (ended := group.subgroup(HandlerEndedProgram)) is not None:
        [error] = ended.exceptions[0].args
        raise error from None


def _is_cancelled() -> bool:
    """Whether this worker was cancelled, even if its handler hid that."""
    worker = asyncio.current_task()
    return worker is not None and bool(worker.cancelling())


def raised_by_call(error: Exception) -> bool:
    """Whether the call itself or its await failed: no frame of the handler raised."""
    trace = error.__traceback__
    return isinstance(error, TypeError) and trace is not None and trace.tb_next is None


def _in_order(record: "DeliveredRecord") -> tuple[int, int]:
    return record._at, record.grant_number
