"""A client's session: one Attach call at a time, renewed whenever it is lost.

The daemon keeps the session while the connection is away, so what survives here is little: the
ids to resume with and the subscriptions. Invariant: a lost connection never reaches a
subscription as an error, only as the end of its grants; a final refusal reaches all of them.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

import grpc.aio
from xxhash import xxh32_intdigest

from dss_api.v1 import sessions_pb2 as wire
from dss_client._attachment import Attachment
from dss_client._backoff import Backoff
from dss_client._connection import Connection, ConnectionLostError, error_from_wire
from dss_client._known_data import KnownData
from dss_client._malloc_heap import keep_heap
from dss_client._outage_log import Outage
from dss_client._session_options import SessionOptions
from dss_client._spans import span_ms
from dss_client._start_point import start_to_wire
from dss_client._stop import the_stop
from dss_client._task_spawner import Spawn
from dss_client.late_daemon import late
from dss_client.limits import CALL_TIMEOUT_S, CLOSE_TIMEOUT_S
from dss_core.errors import (
    PASSING,
    ClientClosed,
    DssError,
    NotSubscribed,
    SessionNotFound,
    Stopping,
)
from dss_core.lane import ORDERED, QUEUES

if TYPE_CHECKING:
    from dss_client.subscription import Subscription

    AttachCall = grpc.aio.StreamStreamCall[wire.SessionUp, wire.SessionDown]

FILTERS_TOLD_MAX = 8
"""Filters that an opening names, for the words of a denial: more of them would not be read."""

ACKS_STORED_S = 2.0
"""Acks are durable if the daemon was heard so long after they were sent: it stores them within a
second."""


_LOG = logging.getLogger("dss_client")


@dataclass(slots=True)
class _Wanted:
    """A subscription that the session shall have."""

    subscription: "Subscription"
    taken: "asyncio.Future[None]"
    """Done once the daemon has taken it, or refused it."""
    request: wire.SessionUp = field(default_factory=wire.SessionUp)
    asked: bool = False
    """The daemon has been asked for it on this connection, and has not answered yet."""


class Session:
    """Owns the Attach call and the subscriptions of a client."""

    def __init__(self, connection: Connection, options: SessionOptions, *, spawn: Spawn) -> None:
        self.client_id = options.client_id
        self.failed: DssError | None = None
        """Why the session is over."""
        self._connection = connection
        self._options = options
        self._spawn = spawn
        self._session_id = b""
        self._data = KnownData("the session")
        self._opened_once = False
        self._closing = False
        self._attachment: Attachment | None = None
        self._heard_s = monotonic()
        """When the daemon was heard last on a call that is over."""
        self._acked_s: dict[int, float] = {}
        """By subscription: when its newest acks were sent."""
        self._wanted: dict[int, _Wanted] = {}
        self._leaving: dict[int, asyncio.Future[None]] = {}
        self._uses: dict[str, int] = {}
        self._parked: dict[str, list[int]] = {}
        """By filter: subscriptions that the session keeps and nobody uses now."""
        self._used: set[int] = set()
        self._outage = Outage("the session", connection.endpoint.text)
        self._task: asyncio.Task[None]

    @property
    def never_opened(self) -> bool:
        """Whether it was given up before the daemon had it, so that another may be opened."""
        return self.failed is not None and not self._opened_once

    def start(self) -> None:
        """Open the session, and keep it open."""
        keep_heap()
        self._task = self._spawn(self._run(), "dss session")

    async def subscribe(self, subscription: "Subscription") -> None:
        """Add a subscription and wait until the daemon has taken it.

        Cancelled, it leaves nothing behind that records are sent to.

        Raises:
            DssError: the daemon refuses it, or the session is over.
        """
        if self.failed is not None:
            raise self.failed
        number = self._free_number(subscription.options.filter)
        subscription.number = number
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        wanted = _Wanted(subscription, taken, _subscribe_request(subscription))
        self._wanted[number] = wanted
        if self._attachment is not None:
            wanted.asked = True
            self._attachment.send(wanted.request)
        try:
            await taken
            the_stop.opened(subscription)
        except asyncio.CancelledError:
            if self._is_kept(subscription):
                self._park(subscription)
            else:
                self._begin_leaving(number)
            raise
        except DssError:
            self._wanted.pop(number, None)
            raise

    async def leave(self, subscription: "Subscription") -> None:
        """The user left a subscription's block: end it, unless the session is to keep it.

        Nobody will acknowledge the records that were handed out, so they go to others at once.
        """
        try:
            await self._leave(subscription)
        finally:
            the_stop.closed(subscription)

    async def _leave(self, subscription: "Subscription") -> None:
        if not self._is_kept(subscription):
            if self._attachment is not None:
                self._attachment.park(subscription.number)
            await self.unsubscribe(subscription)
            return
        try:
            await self.flush_acks(subscription)
        finally:
            self._park(subscription)

    async def unsubscribe(self, subscription: "Subscription") -> None:
        """End a subscription; what was acknowledged is settled first, where the daemon answers."""
        left = self._begin_leaving(subscription.number)
        if left is None:
            return
        began_s = monotonic()
        try:
            # Of a session that has ended with its client nothing comes any more.
            both, wait_s = (left, self._task), the_stop.left_s(CLOSE_TIMEOUT_S)
            await asyncio.wait(both, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            if not left.done():
                # The daemon ends it when the session expires; a resumed session is told again.
                self._tell_unanswered(subscription, "is left", monotonic() - began_s)
        finally:
            self._acked_s.pop(subscription.number, None)

    def _begin_leaving(self, number: int) -> "asyncio.Future[None] | None":
        """Tell the daemon to end a subscription; the future is done once it has; None: there is
        none."""
        if self._wanted.pop(number, None) is None or self.failed is not None:
            return None
        left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leaving[number] = left
        if self._attachment is not None:
            self._attachment.report(number)
            self._attachment.send(_unsubscribe_request(number))
        return left

    def _is_kept(self, subscription: "Subscription") -> bool:
        """Whether it outlives its block: it is private, in a session that outlives this one."""
        return not subscription.options.shared and self._options.session_expiry_s > 0

    def _park(self, subscription: "Subscription") -> None:
        """Keep a subscription in the session, but get nothing delivered until it is used again.

        Streams that are granted to it later are given back as they come.
        """
        number = subscription.number
        if number not in self._wanted:
            return
        if self._attachment is not None:
            self._attachment.park(number)
        del self._wanted[number]
        self._parked.setdefault(subscription.options.filter, []).append(number)

    def flush_soon(self) -> None:
        """Report acks and frontiers without waiting for the interval."""
        if self._attachment is not None:
            self._attachment.flush()

    def flush_if_worth_it(self) -> None:
        """Report acks without waiting for the interval, if the daemon may be waiting for them."""
        if self._attachment is not None:
            self._attachment.flush_if_worth_it()

    async def flush_acks(self, subscription: "Subscription") -> None:
        """Wait until the acks of a subscription are durable, as far as that can still happen."""
        if self._attachment is None:
            return
        wait_s = the_stop.left_s(CLOSE_TIMEOUT_S)
        try:
            async with asyncio.timeout(wait_s):
                await self._attachment.settled(subscription.number)
        except TimeoutError:
            self._tell_unanswered(subscription, "is kept", wait_s)

    def _tell_unanswered(self, subscription: "Subscription", done: str, waited_s: float) -> None:
        heard_s = self._heard_s if self._attachment is None else self._attachment.heard_s()
        acked_s = self._acked_s.get(subscription.number)
        open_acks = acked_s is not None and acked_s > heard_s - ACKS_STORED_S
        _LOG.warning(
            "%s %s, and the daemon did not answer within %.1f s%s",
            subscription.options.filter,
            done,
            waited_s,
            ": records that were acknowledged last may be redelivered" if open_acks else "",
        )

    def is_sure(self) -> bool:
        """Whether `wait_sure` would not wait."""
        return self._attachment is None or self._attachment.is_sure()

    async def wait_sure(self) -> None:
        """After a silence of the daemon, wait until it has answered, or the call is lost."""
        if self._attachment is not None:
            await self._attachment.sure()

    def silent_s(self) -> float:
        """For how long nothing was heard of the daemon."""
        attachment = self._attachment
        return monotonic() - (self._heard_s if attachment is None else attachment.heard_s())

    def ask(self) -> None:
        """Ask the daemon for a sign of life, unless a question is under way."""
        if self._attachment is not None:
            self._attachment.ask()

    async def close(self) -> None:
        """End the session's connection, with what was acknowledged.

        Whoever still takes records elsewhere in the program is told.
        """
        try:
            await self._close()
        finally:
            if self.failed is None:
                self._fail(ClientClosed())

    async def _close(self) -> None:
        self._closing = True
        if self._attachment is not None:
            for number in self._wanted:
                # These reports tell the daemon that no other record was handed out.
                self._attachment.park(number)
            self._attachment.close()
            try:
                await asyncio.wait([self._task], timeout=the_stop.left_s(CLOSE_TIMEOUT_S))
            finally:
                self._task.cancel()
        else:
            self._task.cancel()

    # The life of the session.

    async def _run(self) -> None:
        backoff = Backoff()
        while not self._closing:
            try:
                attachment = await self._attach()
            except DssError as error:
                if self._is_final(error):
                    self._fail(self._connection.outages.as_told(error))
                    return
                self._outage.began(error)
                await asyncio.sleep(backoff.pause_s())
                continue
            backoff.reset()
            await self._serve(attachment)
            if self.failed is not None:
                return
            await asyncio.sleep(backoff.pause_s())

    async def _serve(self, attachment: Attachment) -> None:
        self._attachment = attachment
        try:
            reason = await attachment.run()
        finally:
            self._attachment = None
            self._heard_s = attachment.heard_s()
        if self.failed is None and not isinstance(reason, (*PASSING, SessionNotFound)):
            self._fail(reason)
        if self.failed is None and not self._closing:
            self._outage.began(reason)

    def _is_final(self, error: DssError) -> bool:
        if isinstance(error, SessionNotFound) and self._session_id:
            # It expired while we were away, and nobody else has the client id: begin anew, with the
            # same subscriptions.
            self._session_id = b""
            return False
        if self._opened_once:
            return not isinstance(error, PASSING)
        return not self._connection.outages.are_waited_out(error)

    async def _attach(self) -> Attachment:
        """Open the call.

        Raises:
            DssError: the daemon refuses, or does not answer.
        """
        call = self._connection.sessions.Attach()
        asked_at = monotonic()
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                request = wire.SessionUp(open=self._open_request())
                await self._connection.write(call, request)
                first = await self._connection.read(call)
        except ConnectionLostError as lost:
            raise lost.reason from lost
        except TimeoutError as error:
            call.cancel()
            what, endpoint = "Opening the session", self._connection.endpoint.text
            raise late(endpoint, what=what, seconds=CALL_TIMEOUT_S) from error
        if first.WhichOneof("item") == "error":
            call.cancel()
            raise error_from_wire(first.error.error)
        return self._opened(call, first.opened, asked_at)

    def _open_request(self) -> wire.Open:
        options = self._options
        return wire.Open(
            client_id=self.client_id,
            # It counts for the first connection only; later ones resume its session.
            clean_start=options.clean_start and not self._opened_once,
            session_id=self._session_id,
            session_expiry_s=options.session_expiry_s,
            credit_records=options.credit_records,
            credit_bytes=options.credit_bytes,
            takes_bundles=True,
            features=[QUEUES, ORDERED],
            filters=[
                each.request.subscribe.filter
                for each in islice(self._wanted.values(), FILTERS_TOLD_MAX)
            ],
        )

    def _opened(self, call: "AttachCall", opened: wire.Opened, asked_at: float) -> Attachment:
        self.client_id = opened.client_id
        self._session_id = opened.session_id
        self._opened_once = True
        self._data.note(opened.incarnation)
        self._outage.ended()
        attachment = Attachment(self._connection, call, opened, self, asked_at)
        for wanted in self._wanted.values():
            # A resumed session has all its subscriptions, but gets records only for those that this
            # connection asks for.
            wanted.asked = True
            # Nothing is lent to it yet, and the first grant says whether the group is paused.
            wanted.subscription.set_paused(False)
            attachment.send(wanted.request)
        for number in self._leaving:
            attachment.send(_unsubscribe_request(number))
        return attachment

    def _fail(self, error: DssError) -> None:
        """The session is over: tell everybody who waits or iterates."""
        self.failed = error
        for wanted in self._wanted.values():
            self._refuse(wanted, error)
        for left in self._leaving.values():
            if not left.done():
                left.set_result(None)
        self._leaving.clear()

    def _refuse(self, wanted: _Wanted, error: DssError) -> None:
        if wanted.taken.done():
            wanted.subscription.fail(error)
        else:
            wanted.taken.set_exception(error)

    # Calls of the attachment.

    def subscription(self, number: int) -> "Subscription | None":
        """The subscription of the number, if it is still wanted."""
        wanted = self._wanted.get(number)
        return wanted.subscription if wanted is not None else None

    def subscribed(self, item: wire.Subscribed) -> None:
        """The daemon took a subscription."""
        wanted = self._wanted.get(item.subscription)
        if wanted is not None:
            wanted.asked = False
            wanted.subscription.group = item.group
            if not wanted.taken.done():
                wanted.subscription.declared = item.declared
                wanted.taken.set_result(None)

    def acked(self, number: int) -> None:
        """A report with acks of the subscription is on its way."""
        self._acked_s[number] = monotonic()

    def unsubscribed(self, number: int) -> None:
        """The daemon ended a subscription."""
        if self._attachment is not None:
            self._attachment.forget(number)
        left = self._leaving.pop(number, None)
        if left is not None and not left.done():
            left.set_result(None)

    def refused(self, error: DssError, *, subscription: int, final: bool) -> None:
        """The daemon refused something that is not about one grant."""
        if isinstance(error, Stopping):
            return  # the next connection asks for all of it again
        if subscription in self._leaving and isinstance(error, NotSubscribed):
            self.unsubscribed(subscription)
            return
        wanted = self._wanted.get(subscription)
        if subscription:
            if final and self._attachment is not None:
                self._attachment.forget(subscription)
            if wanted is not None and (final or wanted.asked):
                self._wanted.pop(subscription, None)
                self._refuse(wanted, error)
        elif final and not isinstance(error, PASSING):
            self._fail(error)

    def _free_number(self, filter: str) -> int:
        """A number for a new subscription, the same in every process that resumes the session.

        A session outlives this process, so the number is drawn from the filter: a resumed session
        goes on with the subscription that it has. One client uses it again only for a subscription
        that it left in the session.
        """
        if parked := self._parked.get(filter):
            return parked.pop(0)
        while True:
            use = self._uses[filter] = self._uses.get(filter, 0) + 1
            number = xxh32_intdigest(f"{use} {filter}".encode())
            if number and number not in self._used:
                self._used.add(number)
                return number


def _subscribe_request(subscription: "Subscription") -> wire.SessionUp:
    options = subscription.options
    ack_wait_ms = None if options.ack_wait is None else span_ms("ack_wait", options.ack_wait)
    return wire.SessionUp(
        subscribe=wire.Subscribe(
            subscription=subscription.number,
            filter=options.filter,
            start=start_to_wire(options.start),
            ack_wait_ms=ack_wait_ms,
            by_shard=options.by_shard,
        )
    )


def _unsubscribe_request(number: int) -> wire.SessionUp:
    return wire.SessionUp(unsubscribe=wire.Unsubscribe(subscription=number))
