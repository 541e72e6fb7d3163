"""The scheduler of a connected session: carries out the effects of its window and borrowers.

Everything that happens is an input of the delivery window or of a borrower. The scheduler feeds it
at once, on the loop, and carries out the effects before the next input. Three kinds of task serve
it: the *pump* brings time and messages of leaders, *readers* read the part of the log that is not
in memory, and one opens lanes and moves records to their queues.
The task that sends to the client takes in the growth of streams, between two items.

Invariant: after `close`, every borrower has reported the last state of its grants and has ended,
nothing is read, and nothing more goes to the client. The scheduler knows no client protocol; it
hands items to the outgoing queue.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count, islice
from typing import assert_never

from dss_core.errors import AckOutOfRange, DssError, GrantNotHeld, StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.frame import spans_of
from dss_core.ids import StreamId
from dss_core.lane import LEVELS_MAX, MAIN, grant_and_level
from dss_core.limits import LEASE_MS
from dss_core.progress import Progress
from dssd.leaders.declarations import STALL, policy_of
from dssd.leaders.delivery_trouble import DeliveryTrouble
from dssd.leaders.lag import stall_sentence
from dssd.machines.borrower.events import Ended
from dssd.machines.delivery.credit import Credit
from dssd.machines.delivery.events import (
    AnswerSettled,
    AskBack,
    Closing,
    Deliver,
    DeliveryEffect,
    DeliveryInput,
    Draining,
    Dropped,
    Edited,
    Grown,
    Installed,
    Left,
    Move,
    OpenLane,
    Paused,
    Read,
    RefuseGrant,
    RefuseRange,
    Report,
    Resumed,
    RevokeBegun,
    Saved,
    SendRevoke,
    ShowStalled,
    Suspended,
    TakeBack,
    TellGone,
    Ticked,
    Unpaused,
    Unwanted,
)
from dssd.machines.delivery.frame_plan import FrameSpans
from dssd.machines.delivery.window import DeliveryWindow
from dssd.machines.messages import GrantedStream, Stall, ToBorrower
from dssd.queues.lane import Lane
from dssd.queues.moving import Parts
from dssd.sessions.client_items import (
    Down,
    Gone,
    Granted,
    Opened,
    PauseSet,
    Refused,
    Revoke,
    Revoked,
    Settled,
    Status,
)
from dssd.sessions.delivery_budget import DeliveryAccount
from dssd.sessions.lane_jobs import LaneJobs
from dssd.sessions.listing import HeldRecord
from dssd.sessions.log_reads import LogReads, SessionGrant
from dssd.sessions.pause_asked import PauseAsked
from dssd.sessions.sealed_ends import SealedEnds
from dssd.sessions.session_parts import Services
from dssd.store.rows import GroupRow
from dssd.subscriptions.agent import Agent, Subscriber
from dssd.subscriptions.handler import Handler

SESSION_STEP_INPUTS_MAX = 64
"""How many messages and grown streams a session takes before other tasks get their turn."""


BORROWER_ID_BYTES = 16
GRANT_BITS = 32
"""Above these bits a grant's number has the session's epoch: unique across its connections."""


class Scheduler:
    """Implements `dssd.subscriptions.agent.Delivery`."""

    def __init__(
        self,
        opened: Opened,
        services: Services,
        account: DeliveryAccount,
        *,
        send: Callable[[Down], None],
        over: Callable[[Agent, Ended], None],
        grown: Callable[[], None],
    ) -> None:
        subscriber = Subscriber(opened.session_id, opened.client_id, LEASE_MS)
        self.handler = Handler(subscriber, services.registry, self)
        self.drained = asyncio.Event()
        """After `drain`: the client has said how far it handed out, or its time is over."""
        self._account = account
        self._send = send
        self._over = over
        self._tell_grown = grown
        self._log = services.log
        self._catalogue = services.catalogue
        self._clock = services.clock
        self._random_bytes = services.random_bytes
        self._trouble = DeliveryTrouble(services.events, opened.client_id)
        self._window = DeliveryWindow(
            cut_frames,
            credit_records=opened.credit_records,
            credit_bytes=opened.credit_bytes,
        )
        self._grants: dict[int, SessionGrant] = {}
        self._grants_from = self._last_grant = opened.session_epoch << GRANT_BITS
        self._pauses: dict[int, PauseAsked] = {}
        """By subscription."""
        self._pause_turns = count(1)
        self._closed = False
        self._stopped = False
        self._draining = False
        self._mail: deque[tuple[Agent, bytes, ToBorrower]] = deque()
        self._grown: dict[int, None] = {}
        """Grants whose streams have grown, in order of arrival."""
        self._reads = LogReads(
            self._log, self._trouble, account, self._grants, self._window.not_done
        )
        parts = Parts(services.log, services.writers, services.clock)
        self._jobs = LaneJobs(parts, self._trouble, self._grants, self.feed)
        self._ends = SealedEnds(self._catalogue, self.feed)
        self._client_id = opened.client_id
        self._stepping = False
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0
        self._borrowers_heard = False
        """Agents that took an input since the timer was armed: their wake-up time may have
        changed."""

    @property
    def credit(self) -> Credit:
        """The credit of the client, and how much of it is used."""
        return self._window.credit

    # What the session tells

    def feed(self, given: DeliveryInput) -> None:
        """Give the window an input and carry out what it asks."""
        if self._closed or self._stopped:
            return
        now_ms = self._clock.now_ms()
        self._step(given, now_ms)
        if not self._stepping:
            while not self._closed and (answer := self._reads.at_once()) is not None:
                self._step(answer, now_ms)
        if self._draining and self._window.drained:
            self.drained.set()
        at_ms = self._window.wake_at_ms
        armed = self._timer is not None and at_ms is not None and self._timer_at_ms <= at_ms
        if self._borrowers_heard or not armed:
            self._arm(now_ms)

    def _step(self, given: DeliveryInput, now_ms: int) -> None:
        # An effect may feed an input, a nested step. Reads wait for the end of the outer one.
        within, self._stepping = self._stepping, True
        for effect in self._window.step(given, now_ms):
            self._carry_out(effect, now_ms)
        self._stepping = within
        self._account.window(self._window.held_bytes)

    def begin(self, subscription: int, group: GroupRow, *, by_shard: bool) -> None:
        """Start borrowing for a subscription."""
        now_ms = self._clock.now_ms()
        self.handler.begin(subscription, group, now_ms, by_shard=by_shard)
        self._arm(now_ms)

    def edit(self, group: GroupRow) -> None:
        """A group was edited: what its subscriptions hold is delivered by its new settings."""
        stalls, policy = group.on_damage == STALL, policy_of(group)
        for subscription in self.handler.edited(group):
            self.feed(Edited(subscription, group.ack_wait_ms, stalls, policy))

    def leave(self, subscription: int) -> None:
        """Wait for the client to settle the records that it was handed, then end the borrower.

        Does nothing where that has begun already, or the subscription has no borrower.
        """
        agent = self.handler.agent(subscription)
        if agent is not None and not agent.leaving:
            now_ms = self._clock.now_ms()
            agent.leave(now_ms)
            self._arm(now_ms)

    def held(self, group_id: int, stream: StreamId, offset: int) -> HeldRecord | None:
        """The state of an offset that a group of this session delivers; None where none does."""
        for number, grant in reversed(self._grants.items()):
            level = grant.level_of(stream)
            if level is not None and grant.agent.group.group_id == group_id:
                standing = self._window.standing(number + level, offset)
                if standing is not None:
                    return HeldRecord(standing, self._window.credit.records, self._taken())
        return None

    def grant_of(self, number: int) -> int:
        """The grant of a level number that a client names; an unknown number is returned as it
        is."""
        grant, _ = grant_and_level(number)
        return grant if self._grants_from < grant <= self._last_grant else number

    def _taken(self) -> tuple[tuple[str, int], ...]:
        agents = ((self.handler.agent(number), out) for number, out in self._window.taken().items())
        taken = ((agent.group.name, out) for agent, out in agents if agent is not None and out)
        return tuple(sorted(taken, key=lambda each: -each[1]))

    def tell_pause(self, subscription: int) -> None:
        """Tell the client again that its subscription is paused, if it is."""
        asked = self._pauses.get(subscription)
        if asked is not None and asked.item.paused:
            self._send(asked.item)

    def pause_taken(self, subscription: int, turn: int) -> None:
        """The client has done what it was asked; an answer to an earlier request is ignored."""
        asked = self._pauses.get(subscription)
        if self._closed or asked is None or asked.item.turn != turn:
            return
        now_ms = self._clock.now_ms()
        asked.agent.pause_taken(asked.borrower_id, asked.turn, now_ms)
        self._arm(now_ms)

    def drain(self, deadline_ms: int, *, charges: bool) -> None:
        """Ask the client to drop records that it has not handed out; it sets `drained`."""
        self._draining = True
        self.feed(Draining(deadline_ms, charges))

    def take_grown(self) -> bool:
        """Take in the growth of streams; returns whether there are more than are taken at once.

        On return, records that were just stored are read, and queued for the client.
        """
        if not self._grown:
            return False
        self._reads.begin_turn()
        for grant in list(islice(self._grown, SESSION_STEP_INPUTS_MAX)):
            del self._grown[grant]
            self.feed(Grown(grant))
        self._reads.end_turn()
        return bool(self._grown)

    def stop(self) -> None:
        """Read, send and take in nothing more; grants stay as they are until `close`."""
        self._stopped = True

    def close(self, silent_ms: int | None) -> None:
        """Report the last state of every grant and end every borrower.

        ``silent_ms``: the client may live, and hand out what it has, after a silence of so long.
        """
        if self._closed:
            return
        self._stopped = False
        self.feed(Closing())
        self._closed = True
        self._account.close()
        self.handler.disconnect(self._clock.now_ms(), silent_ms)
        for grant in self._grants.values():
            grant.unwatch()
        self._grants.clear()
        self._mail.clear()
        self._grown.clear()
        if self._timer is not None:
            self._timer.cancel()

    # Tasks

    async def pump(self) -> None:
        """Take timers and messages of leaders."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            now_ms = self._clock.now_ms()
            for _ in range(min(len(self._mail), SESSION_STEP_INPUTS_MAX)):
                agent, borrower_id, message = self._mail.popleft()
                agent.receive(borrower_id, message, now_ms)
            due_ms = self._window.wake_at_ms
            if due_ms is not None and due_ms <= now_ms:
                self.feed(Ticked())
            self.handler.tick(now_ms)
            self._arm(self._clock.now_ms())
            if self._mail:
                self._wake.set()
                await asyncio.sleep(0)

    async def serve_reads(self) -> None:
        """Read the part of the log that is not in memory, one chunk after the other."""
        while True:
            # Not in a variable: that would keep the chunk until the next one has come.
            self.feed(await self._reads.next())

    async def serve_lanes(self) -> None:
        """Open lanes, and move records to their queues."""
        await self._jobs.serve()

    def _arm(self, now_ms: int) -> None:
        """Arm the timer that wakes the pump for the window or a borrower."""
        if self._closed:
            return
        self._borrowers_heard = False
        window_ms, borrowers_ms = self._window.wake_at_ms, self.handler.wake_at_ms()
        times = [at_ms for at_ms in (window_ms, borrowers_ms) if at_ms is not None]
        if not times:
            return
        at_ms = min(times)
        if self._timer is not None:
            if self._timer_at_ms <= at_ms:
                return
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer_at_ms = at_ms
        self._timer = loop.call_later(max(0, at_ms - now_ms) / 1_000, self._ring)

    def _ring(self) -> None:
        # The loop's clock may be a little ahead of ours: then the pump arms the timer again.
        self._timer = None
        self._wake.set()

    # Effects of the window

    def _carry_out(self, effect: DeliveryEffect, now_ms: int) -> None:
        match effect:
            case Deliver() | TakeBack() | AskBack():
                self._send(effect)
            case Read():
                self._reads.ask(effect)
            case OpenLane() | Move():
                self._jobs.ask(effect)
            case Report(reports, final):
                self.handler.report(reports, now_ms, final=final)
                self._borrowers_heard = True
            case SendRevoke(grant, deadline_ms):
                self._send(Revoke(grant, deadline_ms))
            case TellGone() | AnswerSettled() | RefuseGrant() | RefuseRange():
                self._answer(effect)
            case ShowStalled(grant, subscription, stall, oldest):
                self._show_stalled(grant, subscription, stall, oldest)
            case Unwanted(subscription):
                self.leave(subscription)
            case _:
                assert_never(effect)

    def _answer(self, effect: TellGone | AnswerSettled | RefuseGrant | RefuseRange) -> None:
        match effect:
            case TellGone(grant, ranges):
                self._send(Gone(grant, ranges))
            case AnswerSettled(token):
                self._send(Settled(token))
            case RefuseGrant(grant, token):
                grant = self.grant_of(grant)
                self._refuse(GrantNotHeld(grant=grant, token=token), grant)
            case RefuseRange(grant, start, end):
                grant = self.grant_of(grant)
                self._refuse(AckOutOfRange(start=start, end=end, grant=grant), grant)
            case _:
                assert_never(effect)

    def _show_stalled(self, grant: int, subscription: int, stall: Stall, oldest: int) -> None:
        held = self._grants.get(grant)
        if stall is Stall.NONE or held is None:
            self._send(Status(subscription, "active", ""))
            return
        if stall is Stall.UNACKED:
            self._trouble.stalled(held.name, held.agent.group, oldest)
        reason = f"{held.name} {stall_sentence(stall, oldest)}"
        self._send(Status(subscription, "stalled", reason))

    def _refuse(self, error: DssError, grant: int) -> None:
        self._send(Refused(error, grant=grant))

    # What agents tell

    def install(self, agent: Agent, borrower_id: bytes, granted: GrantedStream) -> int:
        """Read and deliver the stream; returns the number of the grant."""
        number = self._last_grant = self._last_grant + LEVELS_MAX
        queues = [each.stream for each in granted.queues]
        policy = policy_of(agent.group) if queues else None
        is_ordered = policy is not None and policy.ordered
        try:
            names = [self._catalogue.name_of(each) for each in (granted.stream, *queues)]
        except StreamNotFound:
            # Its topic was removed; the leader takes the stream back.
            return number
        unwatch = self._log.watch(granted.stream, partial(self._note_grown, number))
        if is_ordered:
            unwatch = self._ends.watch(number, granted.stream, unwatch)
        matching = self._matching(agent.filter, granted.stream)
        self._grants[number] = SessionGrant(
            agent,
            granted.stream,
            tuple(map(str, names)),
            unwatch,
            matching,
            self._lane(granted, names[MAIN].ordinal, is_ordered=is_ordered),
        )
        self.handler.granted(number, agent, borrower_id)
        self._send(
            Granted(
                number,
                agent.subscription,
                str(names[MAIN]),
                granted.grant_epoch,
                granted.progress,
                granted.stream.storage_topic_id,
                bool(queues),
                is_ordered,
                granted.shard,
                granted.shard_epoch,
            )
        )
        self.feed(
            Installed(
                number,
                agent.subscription,
                granted,
                agent.group.ack_wait_ms,
                self._clock.wall_ms() - self._clock.now_ms(),
                agent.group.on_damage == STALL,
                policy,
            )
        )
        if is_ordered:
            self._ends.tell(number, granted.stream)
        if self._draining:
            self.feed(RevokeBegun(number, 0))
        return number

    def _lane(self, granted: GrantedStream, ordinal: int, *, is_ordered: bool) -> Lane | None:
        if not granted.queues:
            return None
        retry, dead = granted.queues
        levels = granted.stream, retry.stream, dead.stream
        epoch, generation = granted.grant_epoch, granted.cursor_generation
        return Lane(levels, ordinal, epoch, generation, self._client_id, is_ordered)

    def _matching(self, wanted: TopicFilter, stream: StreamId) -> TopicFilter | None:
        patterns = self._catalogue.topic_of(stream).patterns
        return None if all(map(wanted.covers, patterns)) else wanted

    def finish(self, grant: int, deadline_ms: int) -> None:
        """Stop delivering; a final report is wanted within the deadline."""
        self.feed(RevokeBegun(grant, deadline_ms))

    def drop(self, grant: int, reason: str) -> None:
        """The grant is over."""
        held = self._grants.pop(grant, None)
        if held is None:
            return
        held.unwatch()
        self._jobs.drop(grant)
        self.handler.dropped(grant)
        self.feed(Dropped(grant))
        self._send(Revoked(grant, reason))

    def saved(self, grant: int, progress: Progress) -> None:
        """This progress of the grant is durable."""
        self.feed(Saved(grant, progress))

    def suspend(self, subscription: int) -> None:
        """Deliver nothing until `resume`."""
        self.feed(Suspended(subscription))

    def resume(self, subscription: int) -> None:
        """Deliver again."""
        self.feed(Resumed(subscription))

    def set_paused(self, agent: Agent, borrower_id: bytes, turn: int, *, paused: bool) -> None:
        """Have the client hand out nothing new, or go on; it confirms by `pause_taken`."""
        number = agent.subscription
        item = PauseSet(number, paused, next(self._pause_turns))
        self._pauses[number] = PauseAsked(item, agent, borrower_id, turn)
        self.feed(Paused(number) if paused else Unpaused(number))
        self._send(item)

    def standing(self, subscription: int, state: str) -> None:
        """The state of the subscription, for people."""
        if state != "connecting":
            self._send(Status(subscription, state))

    def over(self, agent: Agent, ended: Ended) -> None:
        """The subscription has ended: as the client asked, or for good by an error."""
        if not self._closed:
            self.handler.ended(agent.subscription)
            self._end_pause(agent.subscription)
            self.feed(Left(agent.subscription))
            self._over(agent, ended)

    def _end_pause(self, subscription: int) -> None:
        # The client may have subscribed anew under the number before it heard of the pause: the
        # pause of the ended subscription does not stop the new one.
        asked = self._pauses.pop(subscription, None)
        if asked is not None and asked.item.paused:
            self._send(PauseSet(subscription, False, next(self._pause_turns)))

    def mailed(self, agent: Agent, borrower_id: bytes, message: ToBorrower) -> None:
        """A message came; the pump gives it to the agent."""
        self._mail.append((agent, borrower_id, message))
        self._wake.set()

    def new_borrower_id(self) -> bytes:
        """A random id."""
        return self._random_bytes(BORROWER_ID_BYTES)

    def _note_grown(self, grant: int) -> None:
        self._grown[grant] = None
        self._tell_grown()


def cut_frames(frames: bytes) -> FrameSpans:
    """Where consecutive frames lie."""
    return FrameSpans(*spans_of(frames))
