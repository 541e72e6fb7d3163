"""The agent of one subscription: its borrowers, one per incarnation.

A borrower runs the protocol of its group, borrow or lease; its effects are the same in both. The
leader may end a borrower while the subscription lives on; then the agent makes a new one under a
new id. A leaving borrower may exist beside its successor until it has ended.

Invariant: at most one borrower of a subscription is not leaving. The agent carries out what the
borrower machine asks, in order, and decides nothing itself. It knows no wire and no clock: the
session brings messages and time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, assert_never

from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.lane import RETRY
from dss_core.progress import Progress
from dssd.leaders.mailboxes import Mailboxes
from dssd.leaders.takeover import LEASE
from dssd.machines.borrower import borrow_machine, lease_machine
from dssd.machines.borrower.events import (
    BorrowerEffect,
    BorrowerInput,
    Disconnected,
    DropStream,
    Ended,
    InstallStream,
    PauseTaken,
    ProgressDurable,
    Received,
    Recreate,
    Reported,
    ResumeDelivery,
    RevokeStream,
    SendToLeader,
    SendToRegistry,
    SetPaused,
    Standing,
    Started,
    SuspendDelivery,
    Ticked,
    Unsubscribed,
    WakeAt,
)
from dssd.machines.borrower.state import Borrower, LeaseBorrower
from dssd.machines.messages import GrantedStream, SessionId, StreamReport, ToBorrower
from dssd.store.rows import GroupRow


class Delivery(Protocol):
    """What an agent asks of the session."""

    def install(self, agent: "Agent", borrower_id: bytes, granted: GrantedStream) -> int:
        """Read and deliver the stream; returns the number of the grant."""

    def finish(self, grant: int, deadline_ms: int) -> None:
        """Stop delivering; a final report is wanted within the deadline."""

    def drop(self, grant: int, reason: str) -> None:
        """The grant is over."""

    def saved(self, grant: int, progress: Progress) -> None:
        """This progress of the grant is durable."""

    def suspend(self, subscription: int) -> None:
        """Deliver nothing until `resume`."""

    def resume(self, subscription: int) -> None:
        """Deliver again."""

    def set_paused(self, agent: "Agent", borrower_id: bytes, turn: int, *, paused: bool) -> None:
        """Have the client hand out nothing new, or go on; `Agent.pause_taken` once it does."""

    def standing(self, subscription: int, state: str) -> None:
        """The state of the subscription, for people."""

    def over(self, agent: "Agent", ended: Ended) -> None:
        """The subscription has ended: as the client asked, or for good by an error."""

    def mailed(self, agent: "Agent", borrower_id: bytes, message: ToBorrower) -> None:
        """A message came; give it to `Agent.receive` soon."""

    def new_borrower_id(self) -> bytes:
        """A random id."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Whose subscription it is."""

    session_id: SessionId
    client_id: str
    lease_ms: int


@dataclass(slots=True)
class _Incarnation:
    machine: Borrower | LeaseBorrower
    detach: Callable[[], None]
    wake_at_ms: int | None = None
    grants: dict[tuple[StreamId, int], int] = field(default_factory=dict)


def _step(machine: Borrower | LeaseBorrower, given: BorrowerInput) -> list[BorrowerEffect]:
    """Let a borrower of either protocol take an input."""
    if isinstance(machine, LeaseBorrower):
        return lease_machine.step(machine, given)[1]
    return borrow_machine.step(machine, given)[1]


class Agent:
    """A subscription as the group protocol sees it."""

    def __init__(
        self,
        subscription: int,
        group: GroupRow,
        subscriber: Subscriber,
        mailboxes: Mailboxes,
        delivery: Delivery,
    ) -> None:
        self.subscription = subscription
        self.group = group
        """The present row: an operator may edit it."""
        self.filter = TopicFilter.parse(group.filter)
        self.leaving = False
        self.by_shard = False
        """Its program keeps state by shard."""
        self._subscriber = subscriber
        self._mailboxes = mailboxes
        self._delivery = delivery
        self._incarnations: dict[bytes, _Incarnation] = {}

    def start(self, now_ms: int) -> None:
        """Make a borrower and look for the leader."""
        assert not self.leaving
        borrower_id = self._delivery.new_borrower_id()
        kind = LeaseBorrower if self.group.protocol == LEASE else Borrower
        machine = kind(
            borrower_id,
            self._subscriber.session_id,
            self._subscriber.client_id,
            self._subscriber.lease_ms,
            self.subscription,
        )
        machine.by_shard = self.by_shard

        def receive(message: ToBorrower) -> None:
            self._delivery.mailed(self, borrower_id, message)

        detach = self._mailboxes.attach_borrower(borrower_id, receive)
        self._incarnations[borrower_id] = _Incarnation(machine, detach)
        self._feed(borrower_id, Started(now_ms))

    def receive(self, borrower_id: bytes, message: ToBorrower, now_ms: int) -> None:
        """Take a message of the leader."""
        self._feed(borrower_id, Received(message, now_ms))

    def report(
        self, borrower_id: bytes, reports: tuple[StreamReport, ...], now_ms: int, *, final: bool
    ) -> None:
        """Give the borrower reports on its grants."""
        self._feed(borrower_id, Reported(reports, now_ms, final=final))

    def pause_taken(self, borrower_id: bytes, turn: int, now_ms: int) -> None:
        """The client has stopped handing out, or goes on, as it was asked."""
        self._feed(borrower_id, PauseTaken(turn, now_ms))

    def leave(self, now_ms: int) -> None:
        """The client left the subscription, or does not know it; final reports follow."""
        self.leaving = True
        for borrower_id in list(self._incarnations):
            self._feed(borrower_id, Unsubscribed(now_ms))

    def disconnect(self, now_ms: int, silent_ms: int | None) -> None:
        """The client is gone: end every borrower, with what was reported last.

        ``silent_ms``: it may live, and hand out what it has, after a silence of so long.
        """
        self.leaving = True
        for borrower_id in list(self._incarnations):
            self._feed(borrower_id, Disconnected(now_ms, silent_ms))
        for incarnation in self._incarnations.values():
            incarnation.detach()
        self._incarnations.clear()

    def borrowers(self) -> Iterator[Borrower | LeaseBorrower]:
        """Its borrowers, for those who look and change nothing."""
        return (incarnation.machine for incarnation in self._incarnations.values())

    def wake_at_ms(self) -> int | None:
        """When `tick` is wanted."""
        times = (each.wake_at_ms for each in self._incarnations.values())
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def tick(self, now_ms: int) -> None:
        """Wake the borrowers whose time has come."""
        for borrower_id, incarnation in list(self._incarnations.items()):
            if incarnation.wake_at_ms is not None and incarnation.wake_at_ms <= now_ms:
                incarnation.wake_at_ms = None
                self._feed(borrower_id, Ticked(now_ms))

    def _feed(self, borrower_id: bytes, given: BorrowerInput) -> None:
        incarnation = self._incarnations.get(borrower_id)
        if incarnation is None:
            return
        for effect in _step(incarnation.machine, given):
            self._carry_out(borrower_id, incarnation, effect, given.now_ms)

    def _carry_out(
        self, borrower_id: bytes, incarnation: _Incarnation, effect: BorrowerEffect, now_ms: int
    ) -> None:
        match effect:
            case SendToRegistry(message) | SendToLeader(message):
                self._mailboxes.to_leader(self.group.group_id, message)
            case WakeAt(at_ms):
                incarnation.wake_at_ms = at_ms
            case Recreate():
                self._end(borrower_id)
                if not self.leaving:
                    self._begin_anew(borrower_id, incarnation, now_ms)
            case Ended():
                self._end(borrower_id)
                self._delivery.over(self, effect)
            case SuspendDelivery() | ResumeDelivery() | SetPaused() | Standing():
                self._tell_delivery(borrower_id, effect)
            case InstallStream() | RevokeStream() | DropStream() | ProgressDurable():
                self._carry_out_stream(borrower_id, incarnation, effect)
            case _:
                assert_never(effect)

    def _tell_delivery(
        self, borrower_id: bytes, effect: SuspendDelivery | ResumeDelivery | SetPaused | Standing
    ) -> None:
        match effect:
            case SuspendDelivery():
                self._delivery.suspend(self.subscription)
            case ResumeDelivery():
                self._delivery.resume(self.subscription)
            case SetPaused(paused, turn):
                self._delivery.set_paused(self, borrower_id, turn, paused=paused)
            case Standing(state):
                self._delivery.standing(self.subscription, state)
            case _:
                assert_never(effect)

    def _begin_anew(self, borrower_id: bytes, before: _Incarnation, now_ms: int) -> None:
        """Make the next borrower. It holds no stream, and its leader tells it anew of a pause."""
        self._delivery.resume(self.subscription)
        if before.machine.pause.paused:
            turn = before.machine.pause.asked
            self._delivery.set_paused(self, borrower_id, turn, paused=False)
        self.start(now_ms)

    def _carry_out_stream(
        self,
        borrower_id: bytes,
        incarnation: _Incarnation,
        effect: InstallStream | RevokeStream | DropStream | ProgressDurable,
    ) -> None:
        if isinstance(effect, InstallStream):
            granted = effect.granted
            number = self._delivery.install(self, borrower_id, granted)
            incarnation.grants[granted.stream, granted.grant_epoch] = number
            return
        key = (effect.stream, effect.grant_epoch)
        grant = incarnation.grants.get(key)
        if grant is None:
            return
        match effect:
            case RevokeStream():
                self._delivery.finish(grant, effect.deadline_ms)
            case DropStream():
                del incarnation.grants[key]
                self._delivery.drop(grant, effect.reason)
            case ProgressDurable():
                self._delivery.saved(grant, effect.progress)
                for level, queue in enumerate(effect.queues, RETRY):
                    self._delivery.saved(grant + level, queue.progress)
            case _:
                assert_never(effect)

    def _end(self, borrower_id: bytes) -> None:
        incarnation = self._incarnations.pop(borrower_id)
        incarnation.detach()
        for grant in incarnation.grants.values():
            self._delivery.drop(grant, "ended")
