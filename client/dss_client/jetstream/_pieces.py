"""A DSS subscription whose records are JetStream messages; it also measures the daemon's silence.

Invariant: if no message needs a check of its own, messages come from the subscription's own loop,
and cost as much as its records.
"""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from itertools import chain
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, cast

from dss_client._handout import Handout, Handouts
from dss_client._ordered import order_of
from dss_client._retried import RetriedHandout
from dss_client._subscription_options import SubscriptionOptions
from dss_client.jetstream._subjects import dotted
from dss_client.jetstream.message import Hold, Msg, RetriedHeaders, as_messages
from dss_client.subscription import Subscription

if TYPE_CHECKING:
    from dss_client._retried import EntryHeaders
    from dss_client.session import Session
    from dss_core.decode import Row

_ALL = 1 << 62


class Pieces(Subscription):
    """The messages of one consumer."""

    def __init__(
        self,
        session: "Callable[[], Awaitable[Session]]",
        options: SubscriptionOptions,
        hold: Hold,
    ) -> None:
        super().__init__(session, options)
        self.hold = hold
        self.handouts = _handouts_of(hold)
        self._takes_what_came = False
        self.released: Callable[[], None] = _nothing
        """Called once the subscription is left."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave."""
        try:
            await super().__aexit__(kind, error, trace)
        finally:
            self.released()

    @property
    def last_seq(self) -> int:
        """The sequence of the last message that was handed out."""
        self.note_current()
        return max(self._handed.values(), default=0)

    def deliver(self, handout: "Handout") -> None:
        """Records came; for a puller redelivered ones are first, as from a JetStream server."""
        if self._takes_what_came:
            return
        super().deliver(handout)
        if self._inbox and self.hold.info.config.is_pull and _comes_again(handout):
            self._put_first(self._inbox.pop())

    def _put_first(self, handout: "Handout") -> None:
        if (rest := self._current) is not None and not _comes_again(rest):
            self.note_current()
            rest.grant.touch()
            self._inbox.appendleft(rest.split_off())
            self._current = None
        first = (at for at, each in enumerate(self._inbox) if not _comes_again(each))
        self._inbox.insert(next(first, len(self._inbox)), handout)

    def _take_no_more(self) -> None:
        super()._take_no_more()
        self.hold.end()

    def end_behind_what_came(self) -> None:
        """Hand out the messages that are here, then end."""
        self._takes_what_came = True
        self._arrived.set()

    @property
    def here(self) -> int:
        """How many messages are here and not handed out."""
        return self._count(_ALL)

    @property
    def fresh(self) -> int:
        """How many of these messages, as far as this client knows, were never handed out before."""
        begun = [] if self._current is None else [self._current]
        return sum(map(_fresh_in, [*begun, *self._inbox]))

    @property
    def is_drained(self) -> bool:
        """Whether it was asked to end after the messages that had come."""
        return self._takes_what_came

    @property
    def is_over(self) -> bool:
        """Whether nothing more is handed out."""
        return self._draining

    async def _arrival(self) -> None:
        if self._takes_what_came:
            self._take_no_more()
        else:
            await super()._arrival()

    def messages(self) -> "AsyncGenerator[Msg, None]":
        """Messages, one by one, until the end."""
        records = cast("AsyncGenerator[Msg, None]", self._records())
        return self._noted(records) if self.hold.looks_at_each else records

    async def _noted(self, records: "AsyncGenerator[Msg, None]") -> "AsyncGenerator[Msg, None]":
        async with aclosing(records):
            while await self.hold.room(1):
                message = await anext(records, None)
                if message is None:
                    return
                self.hold.hand_out((message,))
                yield message

    async def take(self, most: int, wait_s: float | None) -> list[Msg]:
        """Take up to so many messages; waits so long for the first one, and not for more."""
        ends_s = None if wait_s is None else monotonic() + wait_s
        try:
            async with asyncio.timeout(wait_s):
                most = await self.hold.room(most)
        except TimeoutError:
            return []
        left_s = None if ends_s is None else max(ends_s - monotonic(), 0)
        found = await self.fetch(min(most, self.here) or 1, timeout=left_s)
        if found and (more := min(most - len(found), self.here)) > 0:
            found += await self.fetch(more, timeout=0)
        messages = cast("list[Msg]", found)
        if self.hold.looks_at_each:
            self.hold.hand_out(messages)
        return messages

    def silent_s(self) -> float:
        """For how long nothing was heard of the daemon."""
        return cast("Session", self._session).silent_s()

    async def acks_durable(self) -> None:
        """Wait until what was acknowledged is durable, as far as that can still happen."""
        await self._session.flush_acks(self)

    def ask(self) -> None:
        """Ask the daemon whether it is there."""
        cast("Session", self._session).ask()


def _nothing() -> None:
    pass


def _comes_again(handout: Handout) -> bool:
    """Whether all of it was sent before; where keys have an order, the daemon keeps it."""
    return handout.came_again and order_of(handout.grant) is None


def _fresh_in(handout: Handout) -> int:
    first = max(handout.last_offset + 1, handout.redelivered_below)
    offsets = handout.decoded.offsets
    return len(offsets) - bisect_left(offsets, first)


class _MsgHandout(Handout):
    """Frames whose records are messages."""

    __slots__ = ()

    def _all_rows(self) -> "Iterator[Row]":
        rows = self.decoded.rows(as_messages)
        return chain.from_iterable(rows)


class _RetriedMsgHandout(RetriedHandout):
    """Frames of a retry queue whose records are messages."""

    __slots__ = ()

    def _all_rows(self) -> "Iterator[Row]":
        for offset, subject, key, payload, headers, timestamp_us in super()._all_rows():
            seen = RetriedHeaders(cast("EntryHeaders", headers))
            yield offset, dotted(subject), key, payload, seen, timestamp_us  # type: ignore[misc]


def _handouts_of(hold: Hold) -> Handouts:
    """The classes of pieces for one subscription: pieces that are split make others of their
    class."""
    kinds = {_MsgHandout: hold.kind, _RetriedMsgHandout: hold.retried_kind}
    main, retried = (
        cast(
            "type[Handout]",
            type(base.__name__, (base,), {"__slots__": (), "kind_of_records": kind}),
        )
        for base, kind in kinds.items()
    )
    return Handouts(main, retried)
