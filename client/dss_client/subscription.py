"""A subscription: records as they come, acknowledged one by one or by the batch.

Invariant: records of a stream, in an ordered group those of a key, are handed out in order; a
record of a grant that was taken back is not handed out any more; whatever this client handed out
before is marked when it comes again.
Whether records are taken one by one, by `fetch` or by the batch may change at any time.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial
from itertools import islice
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from dss_client._coming import Coming
from dss_client._key_order import HANDLED, OUT
from dss_client._ordered import order_of
from dss_client._stop import the_stop
from dss_client._subscription_options import SubscriptionOptions
from dss_client.limits import FLUSH_RECORDS, HANDY_RECORDS, YIELD_EVERY_S
from dss_core.progress import total

if TYPE_CHECKING:
    from dss_client._handout import Handout
    from dss_client._ordered import Ordered
    from dss_client.record import DeliveredBatch, DeliveredRecord


class Keeper(Protocol):
    """The session, as a subscription knows it."""

    async def subscribe(self, subscription: "Subscription") -> None:
        """Add it and wait until the daemon has taken it."""

    async def leave(self, subscription: "Subscription") -> None:
        """End it, unless the session is to keep it."""

    async def unsubscribe(self, subscription: "Subscription") -> None:
        """End it."""

    async def flush_acks(self, subscription: "Subscription") -> None:
        """Wait until its acks are durable, as far as that can still happen."""

    def is_sure(self) -> bool:
        """Whether `wait_sure` would not wait."""

    async def wait_sure(self) -> None:
        """After a silence of the daemon, wait until it has answered."""

    def flush_soon(self) -> None:
        """Report acks and frontiers without waiting for the interval."""

    def flush_if_worth_it(self) -> None:
        """Report acks now, if the daemon may be waiting for them."""


class Subscription(Coming):
    """Made by `Client.subscribe`; open inside its ``async with`` block."""

    sure_s = YIELD_EVERY_S
    """How long records are handed out before the loop runs and the session is checked again."""

    def __init__(
        self, session: "Callable[[], Awaitable[Keeper]]", options: SubscriptionOptions
    ) -> None:
        super().__init__(options)
        self.number = 0
        """Names it in the session."""
        self.group = ""
        """The group's name, once subscribed."""
        self.declared = False
        """Whether the group was created by this use."""
        self._open_session = session
        self._session: Keeper
        self._has_to_end = False
        self._resume_at = 0.0

    @property
    def late_acks(self) -> int:
        """How many acks came after their stream was taken back; they were dropped."""
        return self._late_acks + sum(grant.late for grant in self._ended)

    @property
    def state(self) -> str:
        """``standby``, ``active``, ``stalled`` or ``paused``, as the daemon last said.

        Paused, nothing new is handed out until the group is resumed; what was may be acknowledged.
        """
        return "paused" if self._paused else self._standing

    async def __aenter__(self) -> Self:
        """Subscribe and wait until the daemon has taken it.

        Raises:
            GroupDestroyed, StartConflict, QueueNotDeclared, IllegalArgument: it refuses.
            SessionTakenOver: a newer connection uses the client id.
            Unreachable, TimedOut: as the first thing that this client asks, and no daemon answers,
                or it stands still. It may be asked again.
        """
        self._session = await self._open_session()
        await self._session.subscribe(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave: unacknowledged records of a group go to its other members.

        Raises:
            Exception: what `on_grant` or `on_revoke` raised, unless the iteration raised it.
        """
        self._take_no_more()
        await self._session.leave(self)
        if error is None:
            self._raise_callback_error()

    def __aiter__(self) -> "AsyncGenerator[DeliveredRecord, None]":
        """Records, one by one, until `drain` or a final error.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
        """
        return self._records()

    async def _records(self) -> "AsyncGenerator[DeliveredRecord, None]":
        # Bound to names and kept short: this loop runs once a record.
        clock = monotonic
        while (handout := await self._next()) is not None:
            resume_at = self._resume_at
            if (order := order_of(handout.grant)) is not None:
                is_current = handout is self._current
                for record in order.one_by_one(handout, is_current=is_current, resume_at=resume_at):
                    yield record
                await self._go_on(handout, order)
                continue
            kind, rows = handout.kind, islice(handout.rows(), FLUSH_RECORDS)
            for offset, subject, key, payload, headers, timestamp_us in rows:
                # As `record.made`, whose step would cost as much as all of these.
                record = kind()
                record._source = handout
                record._at = offset
                record.subject = subject
                record.key = key
                record.payload = payload
                record.headers = headers
                record.timestamp_us = timestamp_us
                # Checked last: this process may stand still before it.
                if clock() >= resume_at:
                    handout.put_back((offset, subject, key, payload, headers, timestamp_us))
                    break
                handout.last_offset = offset
                yield record
                if handout.stopped:
                    break
            # Nothing is awaited between taking a record and handing it out: a cancellation there
            # would skip the record.
            if handout.exhausted:
                self._finish(handout)
            else:
                await self._breathe()

    async def _go_on(self, handout: "Handout", order: "Ordered") -> None:
        """Go from piece to piece, with the pauses that the loop and the acks need."""
        if handout is self._current and handout.exhausted:
            self._finish(handout)
            return
        comes_first = handout is not self._current or order.interrupted
        if monotonic() >= self._resume_at or not comes_first:
            await self._breathe()

    async def batches(self) -> "AsyncGenerator[DeliveredBatch, None]":
        """What came, as columns; until `drain` or a final error.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
        """
        while (handout := await self._next()) is not None:
            if (order := order_of(handout.grant)) is not None:
                self.bring_acks()
                order.note_hand()
                if not order.is_quiet:
                    if (batch := await self._batch_in_order(handout, order)) is not None:
                        yield batch
                    continue
            taken = handout.last_offset
            batch = handout.rest()
            while handout is self._current and monotonic() >= self._resume_at:
                await self._breathe()
            if handout is not self._current or handout.last_offset != taken:
                continue
            if handout.leave_out_acked():
                continue
            self._finish(handout)
            if len(batch):
                if order is not None:
                    order.in_hand(batch)
                yield batch

    async def _batch_in_order(
        self, handout: "Handout", order: "Ordered"
    ) -> "DeliveredBatch | None":
        """The records of the piece, or held ones, that may go; None if they must wait."""
        is_current = handout is self._current
        if is_current:
            # Before the clock is read: this process may stand still meanwhile.
            _ = handout.decoded.keys
        if monotonic() >= self._resume_at:
            await self._breathe()
            return None
        batch = order.batch(handout if is_current else None)
        if is_current and handout.exhausted:
            self._finish(handout)
        return batch

    async def fetch(
        self,
        n: int,
        timeout: float | None = None,  # noqa: ASYNC109 - what came by then is returned
    ) -> "list[DeliveredRecord]":
        """Up to ``n`` records: as soon as there are ``n``, or what came within ``timeout`` seconds.

        Until it returns, none of them counts as handed out; cancelled, it leaves them for the next.
        In an ordered group each is of another key: they are fewer where others here wait for them.
        Under `dss_client.run` it does not return once the program is to end.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
        """
        from dss_client._made_records import MadeRecords

        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._wait_for(n)
        if self._has_to_end:
            await the_stop.wait_for_end(self)
        self._count(n)
        while True:
            while monotonic() >= self._resume_at:
                await self._breathe()
                # Counting decodes, before the clock is looked at: this process may stand still.
                self._count(n)
            order = self._order
            if order is not None and not self._may_all_go(order):
                return await self._fetch_in_order(n, order)
            made = MadeRecords()
            while made.count < n and (handout := self._at_hand()) is not None:
                if made.make(handout, n) < n:
                    self._current = None
            # Looked at last, for the same reason: no record is made behind it.
            is_sure = self._session.is_sure() or not made.count
            if is_sure and (order is None or made.are_of_different_keys()):
                records = made.handed_out(n, self._finish)
                if order is not None:
                    order.in_hand(records)
                return records
            self._current, *others = made.put_back()
            self._inbox.extendleft(reversed(others))
            if is_sure and order is not None:
                return await self._fetch_in_order(n, order)
            self._resume_at = 0.0

    async def _fetch_in_order(self, n: int, order: "Ordered") -> "list[DeliveredRecord]":
        while True:
            while monotonic() >= self._resume_at:
                await self._breathe()
            picked = order.pick(n, OUT, self._begun, self._finish)
            records = [aside.record() for aside in picked]
            # Looked at last: no record is made behind it.
            if self._session.is_sure() or not records:
                for aside in picked:
                    aside.grant.hand_out(aside.at)
                return records
            for aside in reversed(picked):
                order.put_back(aside)
            self._resume_at = 0.0

    async def run(
        self,
        handler: "Callable[[DeliveredRecord], Awaitable[None]]",
        *,
        concurrency: int = 16,
    ) -> None:
        """Call the handler for every record: acks when it returns, naks when it raises.

        Records of one key of a stream are handled one after the other, in order; at most
        ``concurrency`` handlers run at once. Records of a key behind a failed one wait in the
        client until that one came again, but not in a group with ``max_deliver``: in an ordered
        one the daemon keeps them, in any other they go on. A handler that
        raises `Reject` refuses its record for good. What waits has not been handed out, and is not
        handled any more once its stream is taken back. Cancelled, it leaves both what waits and
        what its handlers had to whoever takes records of this subscription next. Returns after
        `drain`.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
            IllegalArgument: the handler is no async function of one record.
            BaseException: the handler raised it, as `sys.exit` does; its record is not settled.
        """
        from dss_client._keyed_runner import KeyedRunner

        session = self._session
        runner = KeyedRunner(handler, concurrency=concurrency, wait_sure=session.wait_sure)
        self._runs.begin(runner)
        try:
            async with aclosing(self._taken()) as records:
                await runner.run(records)
        finally:
            self._runs.end(runner, keep=not self._draining)

    async def _taken(self) -> "AsyncGenerator[DeliveredRecord, None]":
        """Records for `run`, in order; yielding them does not hand them out."""
        while (record := self._runs.next_left()) is not None:
            yield record
        while (handout := await self._next()) is not None:
            if (order := order_of(handout.grant)) is not None:
                async with aclosing(self._taken_in_order(order)) as picked:
                    async for record in picked:
                        yield record
                continue
            grant, rows = handout.grant, handout.take()
            grant.refused_acked = partial(self._runs.refused_acked, grant)
            self._unflushed_records += total(handout.ranges)
            self._current = None
            try:
                for record in rows:
                    yield record
                    if monotonic() >= self._resume_at:
                        await self._breathe()
                    if self._draining or grant.stopped:
                        break
            finally:
                if not (self._draining or grant.stopped):
                    self._runs.leave(rows)
            # In a group with queues, records that a run left are handed out from here again.
            handout.release(for_good=not grant.queues)

    async def _taken_in_order(self, order: "Ordered") -> "AsyncGenerator[DeliveredRecord, None]":
        """The records that may go: at most one of each key."""
        while not (self._draining or self._is_flush_due()):
            picked = order.pick(HANDY_RECORDS, HANDLED, self._begun, self._finish)
            records = iter([order.dispatch(aside) for aside in picked])
            try:
                for record in records:
                    yield record
                    if monotonic() >= self._resume_at:
                        await self._breathe()
            finally:
                for record in records:
                    order.left(record)
            if not picked:
                return

    async def unsubscribe(self) -> None:
        """Leave for good: a private subscription is forgotten, a group goes on without this one.

        Iteration ends. Leaving the ``async with`` block does it too, except for a private
        subscription of a session that outlives its connection (``session_expiry``).
        """
        self._take_no_more()
        await self._session.unsubscribe(self)

    async def drain(self) -> None:
        """Take no more: iteration ends, what was acknowledged is settled.

        Records that were not handed out go back to the group.
        """
        self._take_no_more()
        await self._session.flush_acks(self)

    def end_taking(self) -> None:
        """The program is to end: iteration ends, as by `drain`."""
        self._has_to_end = True
        self._take_no_more()

    async def _next(self) -> "Handout | None":
        """The piece to hand out from; None after `drain`."""
        while True:
            self._raise_callback_error()
            if self._draining:
                return None
            handout = self._next_now()
            if handout is not None:
                return handout
            if self._is_flush_due():
                await self._breathe()
            elif self._error is not None:
                raise self._error
            else:
                await self._arrival()

    def _next_now(self) -> "Handout | None":
        """The same at once, if nothing is to be awaited, raised or ended first; else None."""
        if self._draining or self._callback_error is not None:
            return None
        if left := self._runs.refuse_left():
            self._inbox.extendleft(reversed(left))
        return None if self._is_flush_due() else self._at_hand()

    async def _wait_for(self, n: int) -> None:
        """Wait until so many records are here, or no more will come."""
        if left := self._runs.refuse_left():
            self._inbox.extendleft(reversed(left))
        while True:
            self._raise_callback_error()
            waiting = self._count(n)
            enough = waiting >= n or self._draining or (waiting and self._error is not None)
            if enough and (not waiting or self._may_any_go()):
                return
            if self._error is not None:
                raise self._error
            await self._arrival()

    def _may_any_go(self) -> bool:
        """Whether any record that is here may go, and does not wait for its key."""
        if (order := self._order) is None or self._may_all_go(order):
            return True
        picked = order.pick(1, OUT, self._begun, self._finish)
        for aside in picked:
            order.put_back(aside)
        return bool(picked)

    def _may_all_go(self, order: "Ordered") -> bool:
        self.bring_acks()
        return order.may_all_go()

    async def _arrival(self) -> None:
        self._unflushed_records = 0
        self._session.flush_if_worth_it()
        self._arrived.clear()
        await self._arrived.wait()
        # The loop has run, so records are handed out at once, unless the daemon was silent before.
        # The clock is read first: this process may stand still after the answer.
        now = monotonic()
        if self._session.is_sure():
            self._resume_at = now + self.sure_s

    async def _breathe(self) -> None:
        """Let the loop run, and after a silence check that the grants are still held."""
        self._unflushed_records = 0
        self._touch_current()
        self._session.flush_soon()
        await asyncio.sleep(0)
        # The time before the question: this process may stand still after the answer.
        asked_at = monotonic()
        await self._session.wait_sure()
        # Records handed out from now on must be reported too, even if never acknowledged.
        self._touch_current()
        self._resume_at = asked_at + self.sure_s
