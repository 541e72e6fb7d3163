"""One connection of a session: takes the client's items and answers them.

Invariant: every item of the client is untrusted; a wrong one is answered by an error and changes
nothing, and the session lives on. After `end`, items of the client are ignored. State that outlives
the connection is in the store and with the leaders, not here.

A subscription borrows streams only while the client uses it: from the moment it subscribes to the
number on this connection, until it unsubscribes, or gives back a grant unasked because it does not
know the subscription. A subscription of an earlier connection *rests* until the client subscribes
to it again; its records stay with the group.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from dss_core.errors import (
    ClientTooOld,
    DiskFull,
    DssError,
    GroupDestroyed,
    GroupNotFound,
    IllegalArgument,
    NotSubscribed,
    Overloaded,
    SessionTakenOver,
)
from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dss_core.lane import ORDERED, QUEUES
from dss_core.limits import SETTLE_RANGES_MAX, SUBSCRIPTIONS_PER_SESSION_MAX
from dssd.leaders.declarations import EXCLUSIVE
from dssd.limits import (
    ACK_WAIT_MS_MAX,
    FULL_DISK_RETRY_S,
    NAK_RANGES,
    OUTGOING_ITEMS_MAX,
    SETTLE_STEP_RANGES,
)
from dssd.loop_yield import LoopTurn
from dssd.machines.borrower.events import Ended
from dssd.machines.delivery.credit import Credit
from dssd.machines.delivery.events import (
    Deliver,
    RevokeFinished,
    Settle,
    Settles,
    TakenBack,
    pieces_of,
    ranges_in,
    work_of,
)
from dssd.sessions.client_items import (
    Bundle,
    Down,
    FinishRevoke,
    Opened,
    Opening,
    PauseTaken,
    PingSent,
    PongSent,
    Refused,
    Subscribe,
    Subscribed,
    Unsubscribe,
    UnsubscribedItem,
    Up,
)
from dssd.sessions.ended_subscriptions import condition_of
from dssd.sessions.listing import HeldRecord
from dssd.sessions.outgoing import Outgoing
from dssd.sessions.scheduler import Scheduler
from dssd.sessions.session_parts import Services
from dssd.store.port import Delete, PreconditionFailed, Put, VersionIs, Write
from dssd.store.rows import GroupRow, SubscriptionRow
from dssd.store.uninterrupted import finished
from dssd.subscriptions.agent import Agent

READERS_PER_SESSION = 2
"""How many reads a session has under way: while one waits for the disk, another goes on. More would
only compete for two cores."""


SUBSCRIPTION_MAX = (1 << 63) - 1
"""The store keeps signed 64-bit integers."""


class Session:
    """One connection. `run` runs its tasks; `take` takes an item of the client."""

    def __init__(
        self, opened: Opened, opening: Opening, services: Services, fence: VersionIs
    ) -> None:
        self.client_id = opened.client_id
        self.session_id = opened.session_id
        self.session_epoch = opened.session_epoch
        self.account = services.budget.account(opening.payer)
        self.outgoing = Outgoing(self.account, takes_bundles=opening.takes_bundles)
        self.ended = asyncio.Event()
        self.released = asyncio.Event()
        """It has given back its streams."""
        self.left = False
        """The client has sent its last item: it leaves of its own accord."""
        self._is_local = opening.is_local
        """The kernel ends its connection exactly when the client ends."""
        self._services = services
        self._said_ms = services.clock.now_ms()
        """When the client sent its last item."""
        self._fence = fence
        """The precondition of its commits: no later connection of this client id has begun."""
        self._rows: dict[int, tuple[SubscriptionRow, GroupRow]] = {}
        """The stored row and the group of each subscription, by number."""
        self._leaving: set[int] = set()
        """Subscriptions that the client asked to end."""
        self._forgotten: set[int] = set()
        """Numbers that the client left, and whose rows are durably gone."""
        self._wanted_again: dict[int, bool] = {}
        """Numbers that it subscribed to again while their borrowers were still ending, and whether
        its program keeps state by shard."""
        self._features = opened.features
        self._scheduler = Scheduler(
            opened,
            services,
            self.account,
            send=self._send,
            over=self._over,
            grown=self.outgoing.wake,
        )
        self._ended_agents: asyncio.Queue[tuple[Agent, str]] = asyncio.Queue()
        """Bounded by the subscriptions."""
        self._send(opened)

    @property
    def subscriptions(self) -> int:
        """How many subscriptions it has."""
        return len(self._rows)

    @property
    def credit(self) -> Credit:
        """The credit of the client, and how much of it is used."""
        return self._scheduler.credit

    def note_sent(self, item: Deliver | Bundle) -> None:
        """An item is about to be written to the client."""
        deliveries = item.deliveries if isinstance(item, Bundle) else (item,)
        self._services.deliveries.note(deliveries, self._services.clock.wall_us())

    async def next_item(self) -> Down | None:
        """The next item for the client, when the one before is written; None after the last.

        A record that was just stored is read here, by the task that sends it: it goes to the client
        a round of the loop earlier than if another task had read it.
        """
        self.outgoing.written()
        while True:
            more = self._scheduler.take_grown()
            item = self.outgoing.take()
            if item is not None or self.outgoing.closed:
                return item
            if more:
                await asyncio.sleep(0)
            else:
                await self.outgoing.changed()

    async def run(self) -> None:
        """Work until the session has ended."""
        async with asyncio.TaskGroup() as tasks:
            name = self.client_id
            working = [
                tasks.create_task(self._scheduler.pump(), name=f"pump {name}"),
                tasks.create_task(self._forget_ended(), name=f"subscriptions {name}"),
                tasks.create_task(self._scheduler.serve_lanes(), name=f"lanes {name}"),
            ]
            for _ in range(READERS_PER_SESSION):
                reading = self._scheduler.serve_reads()
                working.append(tasks.create_task(reading, name=f"reader {name}"))
            await self.ended.wait()
            for task in working:
                task.cancel()

    def resume(self, rows: Sequence[tuple[SubscriptionRow, GroupRow]]) -> None:
        """Take over the subscriptions of earlier connections; each rests until it is used."""
        for row, group in rows:
            self._rows[row.subscription] = row, self._services.groups.as_it_is(group)

    def edit(self, group: GroupRow) -> None:
        """A group was edited."""
        for number, (row, known) in self._rows.items():
            if known.group_id == group.group_id:
                self._rows[number] = row, group
        self._scheduler.edit(group)
        if (unknown := self._unknown_of(group)) is not None:
            self._end_those_of(group, unknown)

    def _unknown_of(self, group: GroupRow) -> str | None:
        """The feature of the group that the client does not know, if any."""
        wanted = [QUEUES] if group.max_deliver else []
        wanted += [ORDERED] if group.max_deliver and group.ordered else []
        return next((each for each in wanted if each not in self._features), None)

    def _end_those_of(self, group: GroupRow, unknown: str) -> None:
        """End the subscriptions to a group that got a feature that the client does not know."""
        for number in self._scheduler.handler.edited(group):
            error = ClientTooOld(group=group.name, feature=unknown)
            self.refuse(error, subscription=number, final=True)
            self._scheduler.leave(number)

    def held(self, group_id: int, stream: StreamId, offset: int) -> HeldRecord | None:
        """The state of an offset that a group of this session delivers; None where none does."""
        return self._scheduler.held(group_id, stream, offset)

    def refuse(self, error: DssError, *, subscription: int = 0, final: bool = False) -> None:
        """Tell the client of an error."""
        self._send(Refused(error, subscription=subscription, final=final))

    async def take(self, item: Up) -> None:
        """Take an item of the client; a wrong one is answered by an error."""
        if self.ended.is_set():
            return
        self._said_ms = self._services.clock.now_ms()
        match item:
            case Settles(settles):
                await self._settle(settles)
            case FinishRevoke(grant):
                self._scheduler.feed(RevokeFinished(grant))
            case TakenBack():
                self._scheduler.feed(item)
            case PingSent(token):
                self._send(PongSent(token))
            case PauseTaken(subscription, turn):
                self._scheduler.pause_taken(subscription, turn)
            case Subscribe() | Unsubscribe():
                try:
                    if isinstance(item, Subscribe):
                        await self._subscribe(item)
                    else:
                        await self._unsubscribe(item.subscription)
                except DssError as error:
                    self.refuse(error, subscription=item.subscription)

    async def drain(self, seconds: float, *, charges: bool) -> None:
        """Wait at most so long for the client to report how far it handed out.

        ``charges``: whether records that it does not report are in doubt. They are not if the
        daemon stops, or an operator ends the session.
        """
        self._scheduler.drain(int(seconds * 1_000), charges=charges)
        waits = [self._scheduler.drained.wait(), self.ended.wait()]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
                first = [tasks.create_task(wait, name="drain") for wait in waits]
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
                for task in first:
                    task.cancel()

    @property
    def dies_with_connection(self) -> bool:
        """Whether the client hands out nothing more once its connection is over."""
        return self.left or self._is_local

    def silent_ms(self) -> int:
        """For how long the client said nothing."""
        return self._services.clock.now_ms() - self._said_ms

    def end(self, error: DssError | None = None, *, is_silent: bool = False) -> None:
        """End the connection; the client is told why.

        ``is_silent``: the client hands out nothing more, even if it does not hear of this.
        """
        self.stop(error)
        self.release(is_silent=is_silent)

    def stop(self, error: DssError | None = None) -> None:
        """Send the client nothing more but the reason, and take nothing more from it.

        It keeps its streams until `release`. Does nothing the second time.
        """
        if self.ended.is_set():
            return
        self.ended.set()
        if error is not None:
            self.outgoing.put(Refused(error, final=True))
        elif not self.left:
            groups = self._scheduler.handler.group_ids()
            self._services.registry.session_missed(self.session_id, groups)
        self._scheduler.stop()
        self.outgoing.close()

    def release(self, *, is_silent: bool = False) -> None:
        """Give back its streams, with the last progress that the client reported."""
        if self.released.is_set():
            return
        self.released.set()
        groups = self._scheduler.handler.group_ids()
        silent_ms = None if is_silent or self.left else self.silent_ms()
        self._scheduler.close(silent_ms)
        self._services.registry.session_closed(self.session_id, groups, silent_ms)

    async def _settle(self, settles: Sequence[Settle]) -> None:
        """Take settles in steps of so many ranges; between them other tasks get their turn."""
        step: list[Settle] = []
        size = 0
        for settle in settles:
            if ranges_in(settle) > SETTLE_RANGES_MAX:
                rule = f"at most {SETTLE_RANGES_MAX} ranges in a settle"
                error = IllegalArgument(argument="settles", rule=rule)
                self._send(Refused(error, grant=self._scheduler.grant_of(settle.grant)))
                continue
            for piece in pieces_of(settle, SETTLE_STEP_RANGES):
                more = 1 + work_of(piece)
                if step and size + more > SETTLE_STEP_RANGES:
                    if not await self._settled(step):
                        await asyncio.sleep(0)
                    step, size = [], 0
                step.append(piece)
                size += more
        await self._settled(step)

    async def _settled(self, step: list[Settle]) -> bool:
        """Take a step of settles; returns whether other tasks got turns because of its refusals."""
        naks = sum(len(settle.naks) for settle in step)
        if not naks:
            self._scheduler.feed(Settles(tuple(step)))
            return False
        spent = LoopTurn()
        self._scheduler.feed(Settles(tuple(step)))
        part = NAK_RANGES * naks / sum(1 + work_of(settle) for settle in step)
        await self._services.refusals.give_way(spent.taken_s() * part)
        return True

    # Subscriptions

    async def _subscribe(self, item: Subscribe) -> None:
        parsed = SubscriptionFilter.parse(item.filter)
        with self._services.groups.gate.joining(parsed):
            await self._subscribe_to(parsed, item)

    async def _subscribe_to(self, parsed: SubscriptionFilter, item: Subscribe) -> None:
        number = item.subscription
        known = self._rows.get(number)
        _check_subscribe(item, parsed, known[0].filter if known else None, len(self._rows))
        if number in self._leaving:
            raise IllegalArgument(argument="subscription", rule=f"{number} is being left")

        def row_of(group: GroupRow) -> SubscriptionRow:
            return SubscriptionRow(self.session_id, number, parsed.text, group.group_id)

        try:
            joined = await self._services.groups.join(
                parsed,
                start=item.start,
                ack_wait_ms=item.ack_wait_ms,
                session_id=self.session_id,
                subscription=number,
                fence=self._fence,
                beside=lambda group: [Put(row_of(group))],
            )
        except PreconditionFailed:
            raise SessionTakenOver(client_id=self.client_id) from None
        except GroupDestroyed:
            await self._forget_resting(number)
            raise
        group = joined.group
        if (unknown := self._unknown_of(group)) is not None:
            raise ClientTooOld(group=group.name, feature=unknown)
        row = row_of(group)
        if not joined.declared and (known is None or known[0] != row):
            await self._commit(Put(row))
        if self.ended.is_set():
            return
        group = self._services.groups.as_it_is(group)
        self._rows[number] = row, group
        self._send(Subscribed(number, group.name, joined.declared))
        agent = self._scheduler.handler.agent(number)
        if agent is None:
            self._scheduler.begin(number, group, by_shard=item.by_shard)
        elif agent.leaving:
            self._wanted_again[number] = item.by_shard
        else:
            # The client may have forgotten the subscription, and its pause.
            self._scheduler.tell_pause(number)

    async def _forget_resting(self, subscription: int) -> None:
        """Forget it: its group was removed while it rested, and no borrower could notice."""
        known = self._rows.get(subscription)
        if known is not None and self._scheduler.handler.agent(subscription) is None:
            await finished(self._forget(*known), name=f"forget resting {subscription}")
            self._rows.pop(subscription, None)

    async def _unsubscribe(self, subscription: int) -> None:
        known = self._rows.get(subscription)
        if known is None or subscription in self._leaving:
            raise NotSubscribed(subscription=subscription)
        self._leaving.add(subscription)
        self._wanted_again.pop(subscription, None)
        try:
            # Durable first: if the connection is lost now, a resumed session must not include it.
            await finished(self._forget(*known), name=f"forget subscription {subscription}")
        except DssError:
            self._leaving.discard(subscription)
            raise
        self._forgotten.add(subscription)
        if self._scheduler.handler.agent(subscription) is None:
            self._has_left(subscription)
        else:
            self._scheduler.leave(subscription)

    def _has_left(self, subscription: int) -> None:
        if self._rows.pop(subscription, None) is not None:
            self._leaving.discard(subscription)
            self._forgotten.discard(subscription)
            self._send(UnsubscribedItem(subscription))

    def _over(self, agent: Agent, ended: Ended) -> None:
        error_code = ended.error_code
        if error_code and agent.subscription not in self._leaving:
            error = condition_of(ended, agent.group.name, self.client_id)
            self.refuse(error, subscription=agent.subscription, final=True)
        self._ended_agents.put_nowait((agent, error_code))

    async def _forget_ended(self) -> None:
        """Forget subscriptions whose agents have ended, or start them again where wanted."""
        while True:
            agent, error_code = await self._ended_agents.get()
            subscription = agent.subscription
            if subscription in self._forgotten:
                self._has_left(subscription)
            elif subscription in self._leaving:
                continue  # the client gave its streams back first; its row is not gone yet
            elif error_code:
                known = self._rows.get(subscription)
                if known is None or self._scheduler.handler.agent(subscription) is not None:
                    continue  # it was left, or subscribed to anew, meanwhile
                try:
                    await finished(self._forget(*known), name=f"forget ended {subscription}")
                except SessionTakenOver:
                    return  # the newer connection finds the same and reports it to its client
                except DiskFull:
                    # Its row is removed later; the client's other subscriptions go on.
                    again = asyncio.get_running_loop().call_later
                    again(FULL_DISK_RETRY_S, self._ended_agents.put_nowait, (agent, error_code))
                    continue
                self._rows.pop(subscription, None)
                self._wanted_again.pop(subscription, None)
            elif subscription in self._wanted_again:
                by_shard = self._wanted_again.pop(subscription)
                group = self._rows[subscription][1]
                self._scheduler.begin(subscription, group, by_shard=by_shard)

    async def _forget(self, row: SubscriptionRow, group: GroupRow) -> None:
        """Remove the row of a subscription; one commit removes a private one and its group."""
        gone = Delete(SubscriptionRow, (self.session_id, row.subscription))
        if group.kind != EXCLUSIVE:
            await self._commit(gone)
            return
        remove = self._services.groups.remove
        try:
            await remove(group.group_id, beside=[gone], fence=self._fence)
        except PreconditionFailed:
            raise SessionTakenOver(client_id=self.client_id) from None
        except (GroupNotFound, GroupDestroyed):
            await self._commit(gone)

    async def _commit(self, write: Write) -> None:
        try:
            await self._services.store.commit([write], [self._fence])
        except PreconditionFailed:
            raise SessionTakenOver(client_id=self.client_id) from None

    def _send(self, item: Down) -> None:
        if not self.outgoing.put(item):
            self.stop(Overloaded(what="The queue of unread items", limit=OUTGOING_ITEMS_MAX))


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
