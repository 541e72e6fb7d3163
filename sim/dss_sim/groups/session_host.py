"""A connected session without a loop: the real delivery window, handler, agents and borrowers.

It carries out what `dssd.sessions.scheduler` and `dssd.sessions.session` carry out, with the time
and the messages of the world. Invariant: effects are carried out before the next input, and after
`close` nothing more goes to the client or to the log.
"""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, assert_never

from dss_core.errors import GrantNotHeld, GroupDestroyed
from dss_core.lane import LEVELS_MAX, RETRY, grant_and_level
from dss_core.progress import Progress
from dss_sim.groups.borrower_rules import BorrowerRules
from dss_sim.groups.lane_rules import LaneRules
from dss_sim.groups.log import cut_frames
from dss_sim.groups.queue_plans import RECORDS_A_RUN
from dss_sim.groups.queue_work import LaneAnswer, SessionJobs
from dss_sim.groups.reads import READ_US, SessionReads
from dss_sim.groups.session_rules import HeldGrant, SessionRules
from dss_sim.groups.turn_rules import check_shares
from dss_sim.groups.violation import Violation
from dssd.leaders.declarations import STALL, policy_of
from dssd.limits import REDELIVERY_MS
from dssd.machines.borrower.events import Ended
from dssd.machines.delivery.events import (
    AnswerSettled,
    AskBack,
    ChunkRead,
    Closing,
    Deliver,
    DeliveryEffect,
    DeliveryInput,
    Dropped,
    Grown,
    Installed,
    Left,
    Move,
    OpenLane,
    Paused,
    Read,
    ReadFailed,
    RefuseGrant,
    RefuseRange,
    Report,
    Resumed,
    RevokeBegun,
    RevokeFinished,
    Saved,
    SendRevoke,
    Settles,
    ShowStalled,
    Suspended,
    TakeBack,
    TakenBack,
    TellGone,
    Ticked,
    Unpaused,
    Unwanted,
)
from dssd.machines.delivery.window import DeliveryWindow
from dssd.machines.messages import (
    BorrowerId,
    GrantedStream,
    StreamReport,
    ToBorrower,
    ToLeader,
)
from dssd.queues.lane import Lane
from dssd.sessions import client_items
from dssd.sessions.client_items import (
    FinishRevoke,
    Granted,
    PauseSet,
    PauseTaken,
    PingSent,
    PongSent,
    Refused,
    Settled,
    Subscribe,
    Unsubscribe,
    UnsubscribedItem,
    Up,
)
from dssd.sessions.ended_subscriptions import condition_of
from dssd.store.rows import GroupRow
from dssd.subscriptions.agent import Agent, Subscriber
from dssd.subscriptions.handler import Handler

if TYPE_CHECKING:
    from dss_sim.groups.pipe import Pipe
    from dss_sim.groups.schedule import Host
    from dss_sim.groups.world import World

LATE_FINAL_US = (300_000, 9_000_000)
"""How late a session gives back that misses the leader's deadline."""


class SimulatedSession:
    """Implements `dssd.subscriptions.agent.Delivery`, and the mailboxes of its borrowers."""

    def __init__(
        self, world: "World", host: "Host", pipe: "Pipe", client_id: str, session_id: bytes
    ) -> None:
        self.host = host
        self.client_id = client_id
        self.session_id = session_id
        self.closed = False
        self.window = DeliveryWindow(
            cut_frames,
            credit_records=world.plan.credit_records,
            credit_bytes=world.plan.credit_bytes,
        )
        subscriber = Subscriber(session_id, client_id, world.plan.timing.lease_ms)
        self.handler = Handler(subscriber, self, self)
        self._world = world
        self._pipe = pipe
        self._reads = SessionReads(world, self)
        self._jobs = SessionJobs(world, self)
        self.grants: dict[int, HeldGrant] = {}
        self.rules = SessionRules(self)
        self.lane_rules = LaneRules()
        self.borrower_rules = BorrowerRules()
        self._held_up: dict[int, int] = {}
        """Grants whose final report reaches their borrower late, and how late."""
        self.growing: set[int] = set()
        """Grants whose streams have grown, which the window does not know yet."""
        self._wanted_again: set[int] = set()
        self._pauses: dict[int, tuple[PauseSet, Agent, bytes, int]] = {}
        """By subscription: the last request to its client, its borrower and its number."""
        self._pause_turns = count(1)
        self._wake_ms: int | None = None
        self._incarnation = host.incarnation
        self._said_ms = host.now_ms()

    # Items of the client

    def take(self, item: Up) -> None:
        """An item of the client came."""
        if self.closed or not self._alive():
            return
        self._said_ms = self.host.now_ms()
        match item:
            case Settles(settles):
                self.rules.settled(settles)
                self.lane_rules.settled(settles)
                self.feed(item)
            case FinishRevoke(grant):
                self.rules.given_back(grant)
                self.feed(RevokeFinished(grant))
            case TakenBack():
                self.feed(item)
            case PingSent(token):
                self._pipe.down(PongSent(token))
            case PauseTaken(subscription, turn):
                self._pause_taken(subscription, turn)
            case Subscribe(subscription, group):
                self._subscribe(subscription, group)
            case Unsubscribe(subscription):
                self._unsubscribe(subscription)
            case _:
                assert_never(item)
        self._arm()

    def lost(self) -> None:
        """The client's connection is gone."""
        if not self.closed and self._alive():
            self.close(self.host.now_ms() - self._said_ms)

    def _begin(self, subscription: int, group: GroupRow) -> None:
        by_shard = self.client_id in self._world.plan.keepers
        self.handler.begin(subscription, group, self.host.now_ms(), by_shard=by_shard)

    def _subscribe(self, subscription: int, name: str) -> None:
        agent = self.handler.agent(subscription)
        group = self._world.groups.get(name)
        if group is None:
            self._refuse(subscription, name)
        elif agent is None:
            self._begin(subscription, group)
        elif agent.leaving:
            self._wanted_again.add(subscription)
        elif subscription in self._pauses:
            self._pipe.down(self._pauses[subscription][0])

    def _pause_taken(self, subscription: int, turn: int) -> None:
        asked = self._pauses.get(subscription)
        if asked is not None and asked[0].turn == turn:
            _, agent, borrower_id, borrowers_turn = asked
            agent.pause_taken(borrower_id, borrowers_turn, self.host.now_ms())

    def _refuse(self, subscription: int, name: str) -> None:
        error = GroupDestroyed(group=name)
        self._pipe.down(Refused(error, subscription=subscription, final=True))

    def _unsubscribe(self, subscription: int) -> None:
        self._wanted_again.discard(subscription)
        self._leave(subscription)

    def _leave(self, subscription: int) -> None:
        agent = self.handler.agent(subscription)
        if agent is not None and not agent.leaving:
            self.rules.left(subscription)
            agent.leave(self.host.now_ms())
            self.borrower_rules.check_left(agent.borrowers())

    # The window

    def feed(self, given: DeliveryInput) -> None:
        """Give the window an input and carry out what it asks."""
        if self.closed:
            return
        now_ms = self.host.now_ms()
        self._world.say(self.client_id, given)
        effects = self.window.step(given, now_ms)
        self._world.touch_window(self)
        check_shares(self.window)
        for effect in effects:
            self._carry_out(effect, now_ms)
            self._world.count_effect(self.host)

    def _carry_out(self, effect: DeliveryEffect, now_ms: int) -> None:
        match effect:
            case Deliver() | TakeBack() | AskBack():
                self._send(effect)
            case Read():
                self._reads.begin(effect)
            case Report(reports, final):
                self.rules.reported(reports)
                if final:
                    self._report_last(reports)
                else:
                    self.handler.report(reports, now_ms, final=False)
            case SendRevoke(grant, deadline_ms):
                self._pipe.down(client_items.Revoke(grant, deadline_ms))
            case AnswerSettled() | RefuseGrant():
                self._answer(effect)
            case RefuseRange() | ShowStalled() | TellGone():
                self._world.noticed(effect)
            case Unwanted(subscription):
                self._leave(subscription)
            case OpenLane() | Move():
                self._jobs.ask(effect)
            case _:
                assert_never(effect)

    def _send(self, effect: Deliver | TakeBack | AskBack) -> None:
        if isinstance(effect, Deliver):
            self.rules.check_delivery(effect)
            self.lane_rules.check_delivery(effect, self.host.now_ms())
        self._pipe.down(effect)

    def _answer(self, effect: AnswerSettled | RefuseGrant) -> None:
        match effect:
            case AnswerSettled(token):
                self.rules.check_answered(token, self._world.ledger)
                self._pipe.down(Settled(token))
            case RefuseGrant(number, token):
                grant, _ = grant_and_level(number)
                self._pipe.down(Refused(GrantNotHeld(grant=grant, token=token), grant=grant))
            case _:
                assert_never(effect)

    def _report_last(self, reports: tuple[tuple[int, StreamReport], ...]) -> None:
        for grant, report in reports:
            self.rules.reported_last(grant, report)
            self.lane_rules.reported_last(grant, report)
            late_us = self._held_up.get(grant)
            if late_us is None:
                self._report_final(grant, report)
            else:
                act = partial(self._report_final, grant, report)
                self._world.schedule.after(late_us, act, self.host)

    def _report_final(self, grant: int, report: StreamReport) -> None:
        held = self.grants.get(grant)
        if held is not None:
            self.borrower_rules.reported_last(held.borrower_id, report)
        self.handler.report(((grant, report),), self.host.now_ms(), final=True)
        self._arm()

    def take_lane_answer(self, answer: LaneAnswer) -> None:
        """A job on the queues of a lane is done."""
        self.lane_rules.answered(answer)
        self.feed(answer)
        self._arm()

    def take_read(self, found: ChunkRead | ReadFailed) -> None:
        """A read is answered."""
        grant = self.grants.get(grant_and_level(found.grant)[0])
        if grant is not None:
            self.rules.turns.read(grant.agent.subscription)
        self.feed(found)
        self._arm()

    def _grow(self, grant: int) -> None:
        # News of several appends come as one, as from a real log.
        if grant not in self.growing:
            self.growing.add(grant)
            self._world.after(READ_US, partial(self._grown, grant), self.host)

    def _grown(self, grant: int) -> None:
        self.growing.discard(grant)
        self.feed(Grown(grant))
        self._arm()

    # Time

    def _arm(self) -> None:
        if self.closed:
            return
        window_ms, borrowers_ms = self.window.wake_at_ms, self.handler.wake_at_ms()
        times = [at_ms for at_ms in (window_ms, borrowers_ms) if at_ms is not None]
        if not times:
            return
        at_ms = min(times)
        if self._wake_ms is None or at_ms < self._wake_ms:
            self._wake_ms = at_ms
            wake = partial(self._wake, at_ms)
            self._world.schedule.after(self.host.until_us(at_ms), wake, self.host)

    def _wake(self, at_ms: int) -> None:
        if self._wake_ms != at_ms or self.closed:
            return
        self._wake_ms = None
        now_ms = self.host.now_ms()
        due_ms = self.window.wake_at_ms
        if due_ms is not None and due_ms <= now_ms:
            self.feed(Ticked())
        self.handler.tick(now_ms)
        self._arm()

    def close(self, silent_ms: int | None) -> None:
        """The client is gone, but may go on for a while: report all grants, end every borrower."""
        self.borrower_rules.closing()
        self.feed(Closing())
        self.closed = True
        self._jobs.drop_all()
        self.handler.disconnect(self.host.now_ms(), silent_ms)
        for grant in self.grants.values():
            grant.unwatch()
        self.grants.clear()
        self._world.session_closed(self, silent_ms)

    def end(self) -> None:
        """The daemon stops: the client learns it from the end of its connection."""
        if not self.closed:
            self.close(self.host.now_ms() - self._said_ms)
            self._pipe.cut()

    def abandon(self) -> None:
        """The host died: forget news of the log."""
        self.closed = True
        self._jobs.drop_all()
        for grant in self.grants.values():
            grant.unwatch()

    def _alive(self) -> bool:
        return self.host.incarnation == self._incarnation

    # Requests of agents

    def install(self, agent: Agent, borrower_id: bytes, granted: GrantedStream) -> int:
        """Read and deliver the stream; returns the number of the grant."""
        world = self._world
        self.borrower_rules.installed(borrower_id, granted)
        number = world.next_grant() * LEVELS_MAX
        if granted.stream not in world.log:
            return number
        unwatch = world.log.watch(granted.stream, partial(self._grow, number))
        every = world.every[agent.group.name]
        lane = self._lane(granted, is_ordered=agent.group.ordered)
        self.grants[number] = HeldGrant(
            agent, borrower_id, granted.stream, granted.grant_epoch, every, unwatch, lane
        )
        self.handler.granted(number, agent, borrower_id)
        name, storage_topic_id = world.names[granted.stream], granted.stream.storage_topic_id
        subscription = agent.subscription
        epoch, progress = granted.grant_epoch, granted.progress
        told = (number, subscription, name, epoch, progress, storage_topic_id, lane is not None)
        self._pipe.down(Granted(*told, ordered=lane is not None and lane.is_ordered))
        wall_ahead_ms = world.schedule.now_us // 1_000 - self.host.now_ms()
        group = agent.group
        stalls = group.on_damage == STALL
        policy = None if lane is None else policy_of(group)
        given = (granted, group.ack_wait_ms, wall_ahead_ms, stalls, policy)
        self.rules.installed(number, granted, min(policy.backoff_ms) if policy else REDELIVERY_MS)
        if lane is not None:
            may_be_full = group.queue_records < RECORDS_A_RUN
            hurried = granted.queues[RETRY - 1].hurried.ranges
            self.lane_rules.installed(
                number, lane, wall_ahead_ms, may_be_full=may_be_full, hurried=hurried
            )
        self.feed(Installed(number, subscription, *given))
        return number

    def _lane(self, granted: GrantedStream, *, is_ordered: bool) -> Lane | None:
        if not granted.queues:
            return None
        retry, dead = granted.queues
        levels = granted.stream, retry.stream, dead.stream
        epoch, generation = granted.grant_epoch, granted.cursor_generation
        ordinal = int(self._world.names[granted.stream].split("/")[1])
        return Lane(levels, ordinal, epoch, generation, self.client_id, is_ordered)

    def finish(self, grant: int, deadline_ms: int) -> None:
        """Stop delivering; a final report is wanted within the deadline."""
        self.rules.asked_back(grant, deadline_ms)
        late = self._world.chance.strike("late_final")
        if late is not None:
            self._held_up[grant] = late.randint(*LATE_FINAL_US)
        self.feed(RevokeBegun(grant, deadline_ms))

    def drop(self, grant: int, reason: str) -> None:
        """The grant is over."""
        held = self.grants.pop(grant, None)
        if held is None:
            return
        held.unwatch()
        self._jobs.drop(grant)
        self.lane_rules.dropped(grant)
        self.rules.dropped(grant, reason)
        self.borrower_rules.dropped(held.borrower_id, held.stream, held.grant_epoch)
        self.handler.dropped(grant)
        self.feed(Dropped(grant))
        self._pipe.down(client_items.Revoked(grant, reason))

    def saved(self, grant: int, progress: Progress) -> None:
        """Progress of the grant is durable."""
        held = self.grants.get(grant)
        if held is not None:
            self.borrower_rules.saved(progress)
            said = held.stream, progress, held.grant_epoch
            self._world.ledger.check_kept(held.agent.group.group_id, *said)
        self.feed(Saved(grant, progress))

    def suspend(self, subscription: int) -> None:
        """Deliver nothing until `resume`."""
        self.rules.suspended(subscription)
        self.feed(Suspended(subscription))

    def resume(self, subscription: int) -> None:
        """Deliver again."""
        self.rules.resumed(subscription)
        self.feed(Resumed(subscription))

    def set_paused(self, agent: Agent, borrower_id: bytes, turn: int, *, paused: bool) -> None:
        """Have the client hand out nothing new, or go on; it confirms by `PauseTaken`."""
        subscription = agent.subscription
        item = PauseSet(subscription, paused, next(self._pause_turns))
        self._pauses[subscription] = item, agent, borrower_id, turn
        self.rules.set_paused(subscription, paused=paused)
        self.feed(Paused(subscription) if paused else Unpaused(subscription))
        self._pipe.down(item)

    def standing(self, subscription: int, state: str) -> None:
        """The state of the subscription."""
        self.rules.standings[subscription] = state

    def over(self, agent: Agent, ended: Ended) -> None:
        """The subscription has ended: as the client asked, or for good by an error."""
        if self.closed:
            return
        subscription = agent.subscription
        self.rules.over(subscription)
        self.handler.ended(subscription)
        asked = self._pauses.pop(subscription, None)
        if asked is not None and asked[0].paused:
            self._pipe.down(PauseSet(subscription, False, next(self._pause_turns)))
        self.feed(Left(subscription))
        again = subscription in self._wanted_again
        self._wanted_again.discard(subscription)
        if ended.error_code:
            error = condition_of(ended, agent.group.name, self.client_id)
            self._pipe.down(Refused(error, subscription=subscription, final=True))
        elif again:
            self._begin(subscription, agent.group)
        else:
            self._pipe.down(UnsubscribedItem(subscription))

    def mailed(self, agent: Agent, borrower_id: bytes, message: ToBorrower) -> None:
        """A message came."""
        if self.closed:
            return
        self._world.say(self.client_id, message)
        borrower = next(each for each in agent.borrowers() if each.borrower_id == borrower_id)
        held = self.rules.held_besides(borrower_id, message)
        hearing = self.borrower_rules.about_to_hear(borrower, message)
        agent.receive(borrower_id, message, self.host.now_ms())
        if hearing is not None:
            self.borrower_rules.check_heard(hearing)
        if not agent.leaving and not held <= self.grants.keys():
            raise Violation("I15", f"a message about one stream cost others: {message}")
        self._arm()

    def new_borrower_id(self) -> bytes:
        """A new id."""
        return self._world.next_grant().to_bytes(16)

    # The mailboxes of its borrowers

    def attach_borrower(
        self, borrower_id: BorrowerId, receive: Callable[[ToBorrower], None]
    ) -> Callable[[], None]:
        """Deliver what is sent to this borrower to ``receive``; returns how to stop."""
        if self._world.healed_us is not None:
            self._world.incarnations.began(self.client_id)
        return self._world.attach_borrower(borrower_id, self.host, receive)

    def to_leader(self, group_id: int, message: ToLeader) -> None:
        """Send to the leader of the group."""
        self.borrower_rules.said(message)
        self._world.to_leader(self.host, group_id, message)
