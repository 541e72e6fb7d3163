"""A subscription that threads take records from.

Records come in chunks from the loop; inside a chunk a thread takes one after the other by itself.
Invariant: as with the subscription in the loop, a record counts as handed out when the user gets it
and not before; none is handed out of a stream that was taken back, of a paused group, or after a
silence of the daemon.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from dss_client._key_order import OUT
from dss_client._keyed_runner import HandlerMisused, raised_by_call
from dss_client._ordered import order_of
from dss_client.limits import FLUSH_RECORDS
from dss_client.record import DeliveredRecord as AsyncRecord
from dss_client.record import grant_behind
from dss_client.subscription import Subscription as AsyncSubscription
from dss_client.sync._acks import AckBox
from dss_client.sync._chunk import Chunk, PickedChunk, QuietChunk
from dss_client.sync.records import (
    DeliveredBatch,
    DeliveredRecord,
    as_kind,
    batch_for_threads,
    of_level,
)

if TYPE_CHECKING:
    from dss_client._grant import HeldGrant
    from dss_client._handout import Handout
    from dss_client._ordered import Ordered
    from dss_client.sync._portal import Portal
    from dss_core.progress import Ranges

PICKED_RECORDS = 512
"""How many records of an ordered group lie open for threads at most: a call into the loop for each
chunk costs a tenth of a microsecond a record."""


SURE_IN_THREADS_S = 0.05
"""How often a thread that hands out asks the loop whether the session stands. It does not hold the
loop, so it need not ask often; the daemon waits for seconds before it lends streams of a silent
client."""


class Pieces(AsyncSubscription):
    """The subscription in the loop, which lays chunks of its pieces open.

    An open chunk belongs to the current piece; any other way of taking calls it back first.
    """

    sure_s = SURE_IN_THREADS_S
    portal: "Portal"

    def serve(self, portal: "Portal") -> None:
        """Begin to serve threads; before anything is delivered."""
        self.portal = portal
        self._chunk: Chunk | PickedChunk | None = None
        self._boxes: dict[HeldGrant, AckBox] = {}

    def box_of(self, grant: "HeldGrant") -> AckBox:
        """The box for acks of the grant's records."""
        box = self._boxes.get(grant)
        if box is None:
            box = self._boxes[grant] = AckBox(self.portal, grant, self._note_picked)
        return box

    def _note_picked(self) -> None:
        """Tell the ordered group which records threads have taken, before they are settled."""
        if isinstance(self._chunk, PickedChunk):
            self._chunk.note()
        elif isinstance(self._chunk, QuietChunk):
            self._recall()

    def chunk(self) -> Chunk | PickedChunk | None:
        """The chunk to take from next; None after `drain`."""
        # Most chunks are ready: a task would cost the waiting thread two more turns of the loop.
        return self.portal.call(self._chunk_now) or self.portal.run(self._chunk_later())

    def _chunk_now(self) -> Chunk | PickedChunk | None:
        self.deliver_acks()
        if self._chunk is not None:
            self._chunk.note()
            if isinstance(self._chunk, Chunk) and self._chunk.handout.exhausted:
                self._finish(self._chunk.handout)
        if self._is_rest_due():
            return None
        if (chunk := self._open_chunk()) is not None:
            return chunk
        while (handout := self._next_now()) is not None:
            if (found := self._chunk_of(handout)) is not None:
                return found
        return None

    def _is_rest_due(self) -> bool:
        """Whether the loop must run, and the session be checked, before more is taken."""
        if self._chunk is None:
            return self._order is not None and monotonic() >= self._resume_at
        # A chunk of an ordered group may be short.
        is_long = isinstance(self._chunk, Chunk)
        return (self._chunk.is_spent and is_long) or monotonic() >= self._resume_at

    async def _chunk_later(self) -> Chunk | PickedChunk | None:
        if self._is_rest_due():
            # An open chunk stays open: several threads would take it from one another.
            await super()._breathe()
        if (chunk := self._open_chunk()) is not None:
            return chunk
        while (handout := await super()._next()) is not None:
            if (found := self._chunk_of(handout)) is not None:
                return found
        return None

    def _open_chunk(self) -> PickedChunk | None:
        """The open chunk, if its records are in no piece any more."""
        is_open = isinstance(self._chunk, PickedChunk) and self._chunk.is_open
        return cast("PickedChunk", self._chunk) if is_open else None

    def _chunk_of(self, handout: "Handout") -> Chunk | PickedChunk | None:
        if (order := order_of(handout.grant)) is not None:
            self._recall()
            self._chunk = self._chunk_in_order(handout, order)
        elif not isinstance(self._chunk, Chunk) or self._chunk.is_spent or handout.may_be_acked:
            self._recall()
            # Records that came again are looked at one by one: acks of them still come.
            self._chunk = Chunk(handout, 1 if handout.may_be_acked else FLUSH_RECORDS)
        return self._chunk

    def _chunk_in_order(
        self, handout: "Handout", order: "Ordered"
    ) -> QuietChunk | PickedChunk | None:
        """A chunk of the records that may go now, if any may."""
        order.note_hand()
        if handout is self._current:
            handout.rows()  # only after this it is known whether there are any
            if handout.exhausted:
                self._finish(handout)
                return None
            if order.is_quiet and not handout.may_be_acked:
                return QuietChunk(handout, FLUSH_RECORDS)
        picked = order.pick(PICKED_RECORDS, OUT, self._begun, self._finish)
        return PickedChunk(order, picked) if picked else None

    def _recall(self) -> None:
        chunk, self._chunk = self._chunk, None
        if chunk is None:
            return
        chunk.call_back()
        if isinstance(chunk, QuietChunk) and chunk.last is not None:
            cast("Ordered", chunk.handout.grant.order).in_hand([as_kind(AsyncRecord, chunk.last)])

    async def batches_for_threads(self) -> AsyncGenerator[DeliveredBatch, None]:
        """The records that came, as columns."""
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                yield batch_for_threads(batch, self.box_of(grant_behind(batch)))

    def records(self) -> Iterator[DeliveredRecord]:
        """Records, one by one, in the thread that takes them."""
        # Bound to names and kept short: this loop runs once a record.
        clock = monotonic
        while (chunk := self.chunk()) is not None:
            if isinstance(chunk, QuietChunk):
                yield from self._quietly(chunk)
                continue
            # The clock is read last, after records were made: this process may stand still.
            while chunk.lay_out() and clock() < self._resume_at:
                for record in chunk.rows:
                    # As `_begin` had it made; a `cast` a record would cost as much as its ack.
                    yield record  # type: ignore[misc]  # mypy knows that of the loop's side
                    if clock() >= self._resume_at:
                        break

    def _quietly(self, chunk: QuietChunk) -> Iterator[DeliveredRecord]:
        """The records of a chunk, while each is acknowledged before the next is taken."""
        clock, acked = monotonic, cast("AckBox", chunk.handout.taker).offsets
        while chunk.lay_out() and clock() < self._resume_at:
            for record in chunk.rows:
                yield record  # type: ignore[misc]  # as in `records`
                # If the loop has it already, the loop is asked.
                if acked[-1:] != [record._at] or clock() >= self._resume_at:
                    return

    def deliver_acks(self) -> None:
        """Bring the acks that threads left to their grants."""
        for box in self._boxes.values():
            box.deliver()

    def bring_acks(self) -> None:
        """Tell the grants of all acks that were given."""
        self.deliver_acks()

    def taken_back(self, grant: "HeldGrant", ranges: "Ranges") -> None:
        """The daemon has moved these records to a queue; those still here are not handed out."""
        self._recall()
        super().taken_back(grant, ranges)

    def asked_back(self, grant: "HeldGrant", ranges: "Ranges") -> bool:
        """The same, if the program has the first of these still, unsettled; whether it has."""
        self._recall()
        return super().asked_back(grant, ranges)

    def _begin(self, handout: "Handout") -> None:
        super()._begin(handout)
        handout.taker = self.box_of(handout.grant)
        # Whoever takes them knows their class.
        own = of_level(DeliveredRecord, handout.grant.level)
        handout.kind = cast("type[AsyncRecord]", own)

    async def _taken(self) -> AsyncGenerator[AsyncRecord, None]:
        async for record in super()._taken():
            yield as_kind(AsyncRecord, record)

    # Ways to take records other than from the open chunk.

    async def _next(self) -> "Handout | None":
        handout = await super()._next()
        self._recall()
        return handout

    async def _breathe(self) -> None:
        await super()._breathe()
        self._recall()

    def _count(self, enough: int) -> int:
        self._recall()
        return super()._count(enough)

    def _finish(self, handout: "Handout") -> None:
        self._recall()
        super()._finish(handout)

    def _stop_current(self) -> None:
        self._recall()
        super()._stop_current()

    def set_paused(self, paused: bool) -> None:
        """From now on hand out nothing new, whichever way it is taken; or hand out again."""
        self._recall()
        super().set_paused(paused)

    def note_current(self) -> None:
        """Bring the frontier of the piece that is being handed out up to date."""
        if self._chunk is not None:
            self._chunk.note()
        super().note_current()

    def ended(self, grant: "HeldGrant") -> None:
        """A grant is over; acks that still come for it are only counted."""
        box = self._boxes.pop(grant, None)
        if box is not None:
            box.deliver()
        super().ended(grant)


class Subscription:
    """Made by `Client.subscribe`; open inside its ``with`` block."""

    def __init__(self, portal: "Portal", pieces: Pieces) -> None:
        self._portal = portal
        self._pieces = pieces
        pieces.serve(portal)

    @property
    def group(self) -> str:
        """The group's name, once subscribed."""
        return self._pieces.group

    @property
    def declared(self) -> bool:
        """Whether the group was created by this use."""
        return self._pieces.declared

    @property
    def late_acks(self) -> int:
        """How many acks came after their stream was taken back; they were dropped."""
        self._portal.call(self._pieces.deliver_acks)
        return self._pieces.late_acks

    @property
    def state(self) -> str:
        """``standby``, ``active``, ``stalled`` or ``paused``, as the daemon last said."""
        return self._pieces.state

    def __enter__(self) -> Self:
        """Subscribe and wait until the daemon has taken it.

        Raises:
            DssError: as for the subscription of `dss_client`.
        """
        self._portal.run(self._pieces.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave: unacknowledged records of a group go to its other members."""
        self._portal.call(self._pieces.deliver_acks)
        self._portal.run(self._pieces.__aexit__(kind, error, trace))

    def __iter__(self) -> Iterator[DeliveredRecord]:
        """Records, one by one, until `drain` or a final error.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
        """
        return self._pieces.records()

    def batches(self) -> Iterator[DeliveredBatch]:
        """What came, as columns; until `drain` or a final error.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
        """
        return self._portal.iterate(self._pieces.batches_for_threads())

    def fetch(self, n: int, timeout: float | None = None) -> list[DeliveredRecord]:
        """Up to ``n`` records: as soon as there are ``n``, or what came within ``timeout`` seconds.

        In an ordered group each is of another key: they are fewer where others here wait for them.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
        """
        self._portal.call(self._pieces.deliver_acks)
        return cast("list[DeliveredRecord]", self._portal.run(self._pieces.fetch(n, timeout)))

    def run(self, handler: Callable[[DeliveredRecord], None], *, concurrency: int = 16) -> None:
        """Call the handler for every record, in threads: acks when it returns, naks when it raises.

        Records of one key of a stream are handled one after the other, in order; at most
        ``concurrency`` handlers run at once. One that raises `Reject` refuses its record for good.
        Returns after `drain`.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
            IllegalArgument: the handler is no plain function of one record.
            BaseException: the handler raised it, as `sys.exit` does; its record is not settled.
        """
        pieces = self._pieces
        with ThreadPoolExecutor(concurrency, thread_name_prefix="dss handler") as threads:

            async def handle(record: AsyncRecord) -> None:
                try:
                    own = as_kind(DeliveredRecord, record)
                    await asyncio.get_running_loop().run_in_executor(threads, _call, handler, own)
                finally:
                    pieces.deliver_acks()

            self._portal.run(pieces.run(handle, concurrency=concurrency))

    def unsubscribe(self) -> None:
        """Leave for good: a private subscription is forgotten, a group goes on without this one."""
        self._portal.call(self._pieces.deliver_acks)
        self._portal.run(self._pieces.unsubscribe())

    def drain(self) -> None:
        """Take no more: iteration ends, what was acknowledged is settled."""
        self._portal.call(self._pieces.deliver_acks)
        self._portal.run(self._pieces.drain())


def _call(handler: Callable[[DeliveredRecord], object], record: DeliveredRecord) -> None:
    """Call the handler.

    Raises:
        HandlerMisused: it takes other arguments, or is async and has not done anything yet.
        RuntimeError: it raised `StopIteration`, which no future may hold.
    """
    rule = "it is a plain function of one record"
    try:
        returned = handler(record)
    except StopIteration as error:
        raise RuntimeError("the handler raised StopIteration") from error
    except TypeError as error:
        if raised_by_call(error):
            raise HandlerMisused(rule) from error
        raise
    if isinstance(returned, Coroutine):
        returned.close()
        raise HandlerMisused(rule)
