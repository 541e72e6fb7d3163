"""A subscription: records as they come, acknowledged one by one or by the batch.

Invariant: records of a stream are handed out in order; a record of a grant that was taken back is
not handed out any more; whatever this client handed out before is marked when it comes again.
Whether records are taken one by one, by `fetch` or by the batch may change at any time.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial
from itertools import islice
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from dss_client._runs import Runs
from dss_client._stop import the_stop
from dss_client._subscription_options import GrantNotice, SubscriptionOptions
from dss_client.limits import ENDED_GRANTS_MAX, FLUSH_RECORDS, YIELD_EVERY_S
from dss_core.errors import DssError
from dss_core.lane import MAIN
from dss_core.progress import total

if TYPE_CHECKING:
    from dss_client._grant import HeldGrant
    from dss_client._handout import Handout
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


class Subscription:
    """Made by `Client.subscribe`; open inside its ``async with`` block."""

    sure_s = YIELD_EVERY_S
    """So long records are handed out before the loop runs, and the session is looked at again."""

    def __init__(
        self, session: "Callable[[], Awaitable[Keeper]]", options: SubscriptionOptions
    ) -> None:
        self.options = options
        self.number = 0
        """Names it in the session."""
        self.group = ""
        """The group's name, once subscribed."""
        self.declared = False
        """Whether the group was created by this use."""
        self._open_session = session
        self._session: Keeper
        self._inbox: deque[Handout] = deque()  # bounded by the credit given to the daemon
        self._current: Handout | None = None
        self._arrived = asyncio.Event()
        self._error: DssError | None = None
        self._callback_error: Exception | None = None
        self._draining = False
        self._has_to_end = False
        self._standing = ""
        self._paused = False
        self._handed: dict[tuple[int, str], int] = {}
        """By storage topic and stream, because a name comes back with a topic made anew."""
        self._resume_at = 0.0
        self._unflushed_records = 0
        """Handed out since the last report, but for the piece in hand."""
        self._runs = Runs()
        self._ended: deque[HeldGrant] = deque()
        self._late_acks = 0

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
                # Looked at last: this process may stand still before it.
                if clock() >= resume_at:
                    handout.put_back((offset, subject, key, payload, headers, timestamp_us))
                    break
                handout.last_offset = offset
                yield record
                if handout.stopped:
                    break
            # Nothing is awaited while a record is taken and not handed out: cancelled there, it
            # would be skipped.
            if handout.exhausted:
                self._finish(handout)
            else:
                await self._breathe()

    async def batches(self) -> "AsyncGenerator[DeliveredBatch, None]":
        """What came, as columns; until `drain` or a final error.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
        """
        while (handout := await self._next()) is not None:
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
                yield batch

    async def fetch(
        self,
        n: int,
        timeout: float | None = None,  # noqa: ASYNC109 - what came by then is returned
    ) -> "list[DeliveredRecord]":
        """Up to ``n`` records: as soon as there are ``n``, or what came within ``timeout`` seconds.

        Until it returns, none of them counts as handed out; cancelled, it leaves them for the next.
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
            made = MadeRecords()
            while made.count < n and (handout := self._at_hand()) is not None:
                if made.make(handout, n) < n:
                    self._current = None
            # Looked at last, for the same reason: no record is made behind it.
            if self._session.is_sure() or not made.count:
                return made.handed_out(n, self._finish)
            self._current, *others = made.put_back()
            self._inbox.extendleft(reversed(others))
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
        client until that one came again, but not in a group with ``max_deliver``. A handler that
        raises `Reject` refuses its record for good. What waits has not been handed out, and is not
        handled any more once its stream is taken back. Cancelled, it leaves both what waits and
        what its handlers had to whoever takes records of this subscription next. Returns after
        `drain`.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
            IllegalArgument: the handler is no async function of one record.
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
        """Records for `run`, in order; they are not handed out by being yielded."""
        while (record := self._runs.next_left()) is not None:
            yield record
        while (handout := await self._next()) is not None:
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
            # In a group with queues what was left is handed out from here again.
            handout.release(for_good=not grant.queues)

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

    def _take_no_more(self) -> None:
        self._draining = True
        self._runs.take_no_more()
        self._inbox.clear()
        self._stop_current()
        self._arrived.set()

    def _stop_current(self) -> None:
        """Hand out no more of the current piece; the records handed out before are noted."""
        if self._current is not None:
            self.note_current()
            self._current.grant.touch()
            self._current.stopped = True
            self._current = None

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
        """The same, if nothing is to be awaited, raised or ended first."""
        if self._draining or self._callback_error is not None:
            return None
        if left := self._runs.refuse_left():
            self._inbox.extendleft(reversed(left))
        return None if self._is_flush_due() else self._at_hand()

    def _is_flush_due(self) -> bool:
        return bool(self._inbox) and self._unflushed_records >= FLUSH_RECORDS

    def _at_hand(self) -> "Handout | None":
        """The piece to hand out from, if any is here."""
        while self._current is None and self._inbox and not self._paused:
            self._begin(self._inbox.popleft())
        return self._current

    async def _wait_for(self, n: int) -> None:
        """Wait until so many records are here, or no more will come."""
        if left := self._runs.refuse_left():
            self._inbox.extendleft(reversed(left))
        while True:
            self._raise_callback_error()
            waiting = self._count(n)
            if waiting >= n or self._draining or (waiting and self._error is not None):
                return
            if self._error is not None:
                raise self._error
            await self._arrival()

    def _count(self, enough: int) -> int:
        """How many records wait to be handed out, counted until there are enough."""
        if self._paused:
            return 0
        count = 0 if self._current is None else self._current.count_left()
        for handout in self._inbox:
            if count >= enough:
                break
            count += handout.count_left()
        return count

    async def _arrival(self) -> None:
        self._unflushed_records = 0
        self._session.flush_if_worth_it()
        self._arrived.clear()
        await self._arrived.wait()
        # The loop has run, so what came is handed out at once, unless the daemon was silent before.
        # The clock is read first: this process may stand still behind the answer.
        now = monotonic()
        if self._session.is_sure():
            self._resume_at = now + self.sure_s

    def _begin(self, handout: "Handout") -> None:
        if handout.grant.stopped:
            return
        self._current = handout
        handout.grant.touch()

    def _finish(self, handout: "Handout") -> None:
        """Everything of it was handed out, or it was stopped."""
        if self._current is handout:
            self._current = None
        grant = handout.grant
        if not handout.stopped:
            self._note_handed(handout, handout.end)
            self._unflushed_records += total(handout.ranges)
            grant.touch()
        handout.release()

    async def _breathe(self) -> None:
        """Let the loop run, and after a silence check that the grants are still held."""
        self._unflushed_records = 0
        self._touch_current()
        self._session.flush_soon()
        await asyncio.sleep(0)
        # From before the question: this process may stand still behind the answer.
        asked_at = monotonic()
        await self._session.wait_sure()
        # Records handed out from now on must be reported too, even if never acknowledged.
        self._touch_current()
        self._resume_at = asked_at + self.sure_s

    def _touch_current(self) -> None:
        if self._current is not None:
            self._current.grant.touch()

    # What follows is called by the session.

    def _note_handed(self, handout: "Handout", end: int) -> None:
        """Remember how far a stream was handed out."""
        handout.note(end)
        grant = handout.grant
        # What comes from a queue is marked as redelivered anyhow.
        if grant.level == MAIN:
            stream = grant.storage_topic_id, grant.stream
            self._handed[stream] = max(self._handed.get(stream, 0), end)

    def note_current(self) -> None:
        """Bring the frontier of the piece that is being handed out up to date."""
        if self._current is not None and self._current.last_offset >= 0:
            self._note_handed(self._current, self._current.last_offset + 1)

    def handed_below(self, storage_topic_id: int, stream: str) -> int:
        """Offsets of the stream below it may have been handed out by this client."""
        return self._handed.get((storage_topic_id, stream), 0)

    def granted(self, grant: "HeldGrant") -> None:
        """A stream was lent to this subscription."""
        self._call_back(self.options.on_grant, grant)

    def revoked(self, grant: "HeldGrant") -> None:
        """A stream was taken back."""
        self._call_back(self.options.on_revoke, grant)

    def stands(self, state: str) -> None:
        """The daemon says how it stands."""
        self._standing = state

    def set_paused(self, paused: bool) -> None:
        """From now on hand out nothing new, whichever way it is taken; or hand out again."""
        self._paused = paused
        self._runs.set_paused(paused)
        if paused and self._current is not None:
            rest = self._current
            self.note_current()
            rest.grant.touch()
            self._inbox.appendleft(rest.split_off())
            self._current = None
        self._arrived.set()

    def refused(self, acks: int) -> None:
        """The daemon refused acks."""
        self._late_acks += acks

    def deliver(self, handout: "Handout") -> None:
        """Records came."""
        if not self._draining:
            self._inbox.append(handout)
            self._arrived.set()

    def stop(self, grant: "HeldGrant") -> None:
        """Hand out no more of the grant."""
        if grant.stopped:
            return
        grant.stopped = True
        if self._current is not None and self._current.grant is grant:
            self._stop_current()
        self._runs.drop(grant)
        if grant.level == MAIN:
            stream = grant.storage_topic_id, grant.stream
            self._handed[stream] = max(self.handed_below(*stream), grant.seen_below())
        self._inbox = deque(handout for handout in self._inbox if handout.grant is not grant)

    def ended(self, grant: "HeldGrant") -> None:
        """A grant is over; acks that still come for it are only counted."""
        self._ended.append(grant)
        if len(self._ended) > ENDED_GRANTS_MAX:
            self._late_acks += self._ended.popleft().late

    def fail(self, error: DssError) -> None:
        """The subscription is over: iteration raises once what came is handed out."""
        self._error = error
        self._arrived.set()

    def _call_back(
        self, callback: Callable[[GrantNotice], None] | None, grant: "HeldGrant"
    ) -> None:
        """Call the user's callback; its exception is raised in the user's task, not in ours."""
        if callback is None:
            return
        try:
            callback(GrantNotice(grant.stream, grant.grant_epoch, grant.floor))
        except Exception as error:  # noqa: BLE001 - raised again where records are taken
            self._callback_error = error
            self._arrived.set()

    def _raise_callback_error(self) -> None:
        error, self._callback_error = self._callback_error, None
        if error is not None:
            raise error
