"""One connection of a session, as its client sees it: what it asks, and what it is told.

Invariant: every item of the client is untrusted; a wrong one is answered by an error and changes
nothing, and the session lives on. After `end` nothing that the client says is heard. What outlives
the connection is in the store and with the leaders, not here.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from dss_core.errors import (
    REGISTRY,
    DssError,
    GroupNotFound,
    IllegalArgument,
    NotSubscribed,
    Overloaded,
    SessionTakenOver,
    UnknownCondition,
)
from dss_core.filters import SubscriptionFilter
from dss_core.limits import SUBSCRIPTIONS_PER_SESSION_MAX
from dssd.core.delivering import RevokeFinished
from dssd.limits import OUTGOING_ITEMS_MAX, READERS_PER_SESSION
from dssd.sessions.items import (
    Down,
    FinishRevoke,
    Opened,
    PingSent,
    PongSent,
    Refused,
    Settles,
    Subscribe,
    Subscribed,
    Unsubscribe,
    UnsubscribedItem,
    Up,
)
from dssd.sessions.outgoing import Outgoing
from dssd.sessions.scheduler import Scheduler
from dssd.sessions.services import Services
from dssd.store.port import Delete, PreconditionFailed, Put, VersionIs, Write
from dssd.store.rows import GroupRow, SubscriptionRow
from dssd.subscriptions.agent import Agent

EXCLUSIVE = "exclusive"
SUBSCRIPTION_MAX = (1 << 63) - 1
"""The store keeps signed 64-bit integers."""
ACK_WAIT_MS_MAX = 7 * 24 * 3_600_000


class Session:
    """One connection. `run` its tasks; give it what the client says by `take`."""

    def __init__(self, opened: Opened, services: Services, fence: VersionIs) -> None:
        self.client_id = opened.client_id
        self.session_id = opened.session_id
        self.session_epoch = opened.session_epoch
        self.outgoing = Outgoing()
        self.ended = asyncio.Event()
        self._services = services
        self._fence = fence
        """No later connection of this client id has begun."""
        self._filters: dict[int, str] = {}
        """As subscribed, in canonical spelling, by number."""
        self._scheduler = Scheduler(opened, services, send=self._send, over=self._over)
        self._ended_agents: asyncio.Queue[Agent] = asyncio.Queue()
        """Bounded by the subscriptions."""
        self._send(opened)

    @property
    def subscriptions(self) -> int:
        """How many subscriptions it has."""
        return len(self._filters)

    async def run(self) -> None:
        """Work until the session has ended."""
        async with asyncio.TaskGroup() as tasks:
            name = self.client_id
            working = [
                tasks.create_task(self._scheduler.pump(), name=f"pump {name}"),
                tasks.create_task(self._forget_ended(), name=f"subscriptions {name}"),
            ]
            for _ in range(READERS_PER_SESSION):
                reading = self._scheduler.serve_reads()
                working.append(tasks.create_task(reading, name=f"reader {name}"))
            await self.ended.wait()
            for task in working:
                task.cancel()

    def resume(self, rows: Sequence[tuple[SubscriptionRow, GroupRow]]) -> None:
        """Take up the subscriptions that the session had before."""
        for row, group in rows:
            self._filters[row.subscription] = row.filter
            self._begin(row.subscription, group)

    def refuse(self, error: DssError, *, subscription: int = 0, final: bool = False) -> None:
        """Tell the client of an error."""
        self._send(Refused(error, subscription=subscription, final=final))

    async def take(self, item: Up) -> None:
        """Take an item of the client; what is wrong with it is told to the client."""
        if self.ended.is_set():
            return
        match item:
            case Settles(settles):
                for settle in settles:
                    self._scheduler.feed(settle)
            case FinishRevoke(grant):
                self._scheduler.feed(RevokeFinished(grant))
            case PingSent(token):
                self._send(PongSent(token))
            case Subscribe() | Unsubscribe():
                try:
                    if isinstance(item, Subscribe):
                        await self._subscribe(item)
                    else:
                        await self._unsubscribe(item.subscription)
                except DssError as error:
                    self.refuse(error, subscription=item.subscription)

    async def drain(self, seconds: float) -> None:
        """Let the client say how far it handed out, for so long at most."""
        self._scheduler.drain(int(seconds * 1_000))
        waits = [self._scheduler.drained.wait(), self.ended.wait()]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
                first = [tasks.create_task(wait, name="drain") for wait in waits]
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
                for task in first:
                    task.cancel()

    def end(self, error: DssError | None = None) -> None:
        """End the connection; the client is told why. Does nothing the second time."""
        if self.ended.is_set():
            return
        self.ended.set()
        self._scheduler.close()
        self._services.registry.session_closed(self.session_id)
        if error is not None:
            self.outgoing.put(Refused(error, final=True))
        self.outgoing.close()

    # Subscriptions

    async def _subscribe(self, item: Subscribe) -> None:
        parsed = SubscriptionFilter.parse(item.filter)
        known = self._filters.get(item.subscription)
        _check_subscribe(item, parsed, known, len(self._filters))
        joined = await self._services.groups.join(
            parsed,
            start=item.start,
            ack_wait_ms=item.ack_wait_ms,
            session_id=self.session_id,
            subscription=item.subscription,
        )
        group = joined.group
        if known is None:
            row = SubscriptionRow(self.session_id, item.subscription, parsed.text, group.group_id)
            await self._commit(Put(row))
        if self.ended.is_set():
            return
        self._send(Subscribed(item.subscription, group.name, joined.declared))
        if known is None:
            self._filters[item.subscription] = parsed.text
            self._begin(item.subscription, group)

    def _begin(self, subscription: int, group: GroupRow) -> None:
        self._scheduler.handler.begin(subscription, group, self._services.clock.now_ms())

    async def _unsubscribe(self, subscription: int) -> None:
        agent = self._scheduler.handler.agent(subscription)
        if agent is None or agent.leaving:
            raise NotSubscribed(subscription=subscription)
        # Durable first: should the connection be lost now, a resumed session must not have it.
        await self._forget_row(subscription)
        if self._scheduler.handler.agent(subscription) is agent and not self.ended.is_set():
            self._scheduler.leave(subscription)

    def _over(self, agent: Agent, error_code: str) -> None:
        if error_code:
            error = _error_of(error_code, agent.group)
            self.refuse(error, subscription=agent.subscription, final=True)
        self._ended_agents.put_nowait(agent)

    async def _forget_ended(self) -> None:
        """Remove what is stored of subscriptions that are over."""
        while True:
            agent = await self._ended_agents.get()
            subscription = agent.subscription
            if not agent.leaving:
                try:
                    await self._forget_row(subscription)
                except SessionTakenOver:
                    return  # the newer connection finds the same and tells its client
            if agent.group.kind == EXCLUSIVE:
                with suppress(GroupNotFound):
                    await self._services.groups.remove(agent.group.group_id)
            self._filters.pop(subscription, None)
            if agent.leaving:
                self._send(UnsubscribedItem(subscription))

    async def _forget_row(self, subscription: int) -> None:
        await self._commit(Delete(SubscriptionRow, (self.session_id, subscription)))

    async def _commit(self, write: Write) -> None:
        try:
            await self._services.store.commit([write], [self._fence])
        except PreconditionFailed:
            raise SessionTakenOver(client_id=self.client_id) from None

    def _send(self, item: Down) -> None:
        if not self.outgoing.put(item):
            self.end(Overloaded(what="The queue of unread items", limit=OUTGOING_ITEMS_MAX))


def _check_subscribe(
    item: Subscribe, parsed: SubscriptionFilter, known: str | None, subscriptions: int
) -> None:
    if not 0 < item.subscription <= SUBSCRIPTION_MAX:
        raise IllegalArgument(argument="subscription", rule=f"1 to {SUBSCRIPTION_MAX}")
    if item.ack_wait_ms is not None and not 0 < item.ack_wait_ms <= ACK_WAIT_MS_MAX:
        raise IllegalArgument(argument="ack_wait_ms", rule=f"1 to {ACK_WAIT_MS_MAX}")
    if known is None and subscriptions >= SUBSCRIPTIONS_PER_SESSION_MAX:
        raise Overloaded(
            what="The number of subscriptions of a session", limit=SUBSCRIPTIONS_PER_SESSION_MAX
        )
    if known is not None and known != parsed.text:
        rule = f"{item.subscription} stands for {known} in this session"
        raise IllegalArgument(argument="subscription", rule=rule)


def _error_of(code: str, group: GroupRow) -> DssError:
    leaf = REGISTRY.get(code)
    if leaf is None:
        return UnknownCondition(code=code, text=f"the group {group.name} ended")
    return leaf(group=group.name)
