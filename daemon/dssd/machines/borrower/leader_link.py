"""How a borrower finds its leader, hears from it, and keeps or loses its lease.

Both protocols do this in the same way; a `LeaderLink` holds the differences. Rules:

1. A message for another incarnation, or of a lower leader epoch, is ignored. A higher epoch means
   a new leader: the borrower obeys it, and presents what it holds.
2. The lease runs from the *send* time of a message that the leader is known to have heard, and is
   renewed every quarter of it. At 0.6 L delivery is suspended and the leader is looked for, once a
   second; at L everything is dropped.
3. A report is sent again, at doubling intervals, until the leader has shown that it is durable.

Invariants: the leader epoch never falls, and a lease that was extended never ends sooner. This
module does not know how streams are granted, nor in which states a message means something.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, assert_never

from dss_core.ids import StreamId
from dssd.machines.borrower import ending, grants, pausing
from dssd.machines.borrower.events import (
    BorrowerInput,
    Disconnected,
    Ended,
    PauseTaken,
    Received,
    Recreate,
    Reported,
    ResumeDelivery,
    SendToRegistry,
    Started,
    Ticked,
    Unsubscribed,
)
from dssd.machines.borrower.state import (
    SERVED,
    BorrowerState,
    Effects,
    HeldStream,
    Holder,
    Timer,
    due,
    suspend,
)
from dssd.machines.borrower.stepping import H, Messages, Transitions, ignore

FIND_LEADER_MS = 1_000
"""How often a borrower asks for its leader, until one answers."""


@dataclass(frozen=True, slots=True)
class LeaderLink(Generic[H]):
    """The link to the leader, with the functions that differ between the protocols."""

    messages: Messages
    present: Callable[[H, int, Effects], None]
    """Show a new leader what is held; called with the time."""
    renew: Callable[[H, int, Effects], None]
    """Ask the leader to renew the lease; called with the time."""
    report: Callable[[H, HeldStream, int, Effects], None]
    """Report how a stream stands; called with the time."""
    says_goodbye: bool
    """Whether a borrower that drops everything tells the leader, which then frees its streams."""

    def transitions(
        self,
        serving: Iterable[BorrowerState],
        *,
        start: Callable[[H, Started, Effects], None],
        unsubscribe: Callable[[H, Unsubscribed, Effects], None],
        report: Callable[[H, Reported, Effects], None],
        report_last: Callable[[H, Reported, Effects], None],
    ) -> Transitions:
        """What is done with each input in each state; all states in which it serves do the same."""
        in_each: dict[BorrowerState, tuple[Callable[..., None], ...]] = {
            BorrowerState.CONNECTING: (start, ignore, ending.leave, pausing.take_obeyed),
            **dict.fromkeys(serving, (self.start_anew, report, unsubscribe, pausing.take_obeyed)),
            BorrowerState.UNSUBSCRIBING: (ignore, report_last, ignore, ignore),
        }
        table: dict[tuple[BorrowerState, type[BorrowerInput]], Callable[..., None]] = {}
        for state, (started, reported, unsubscribed, pause_taken) in in_each.items():
            table |= {
                (state, Started): started,
                (state, Received): self.receive,
                (state, Reported): reported,
                (state, PauseTaken): pause_taken,
                (state, Unsubscribed): unsubscribed,
                (state, Disconnected): ending.leave,
                (state, Ticked): self.tick,
            }
        gone = dict.fromkeys(((BorrowerState.GONE, kind) for _, kind in table), ignore)
        return {**table, **gone, (BorrowerState.GONE, Received): ending.receive_gone}

    def start_anew(self, state: H, given: Started, effects: Effects) -> None:
        """Started while it runs: impossible, so this incarnation is not to be trusted."""
        if self.says_goodbye:
            ending.say_goodbye(state, effects, silent_ms=0)
        ending.end(state, Recreate("inconsistent"), effects)

    def receive(self, state: H, given: Received, effects: Effects) -> None:
        """Take a message of the leader, unless it is for another incarnation or came late."""
        message = given.message
        if message.borrower_id != state.borrower_id or message.leader_epoch < state.leader_epoch:
            return
        if message.leader_epoch > state.leader_epoch:
            self._meet_leader(state, message.leader_epoch, given.now_ms, effects)
        self.messages[state.state, type(message)](state, message, given.now_ms, effects)

    def tick(self, state: H, given: Ticked, effects: Effects) -> None:
        """Do what is due, earliest first."""
        for key in due(state, given.now_ms):
            self._fire(state, key, given.now_ms, effects)

    def _meet_leader(self, state: H, leader_epoch: int, now_ms: int, effects: Effects) -> None:
        known = state.leader_epoch
        state.leader_epoch = leader_epoch
        if known and state.state in SERVED:
            self.present(state, now_ms, effects)

    def _fire(self, state: H, key: Timer | StreamId, now_ms: int, effects: Effects) -> None:
        match key:
            case Timer.FIND:
                look_for_leader(state, now_ms, effects)
            case Timer.PING:
                self.renew(state, now_ms, effects)
            case Timer.SUSPEND:
                suspend(state, effects)
                look_for_leader(state, now_ms, effects)
            case Timer.LEASE:
                self._lose_lease(state, effects)
            case Timer.UNSUBSCRIBE:
                ending.leave(state, Unsubscribed(now_ms), effects, reason="unsubscribe timed out")
            case StreamId():
                self._report_again(state, key, now_ms, effects)
            case _:
                assert_never(key)

    def _report_again(self, state: H, stream: StreamId, now_ms: int, effects: Effects) -> None:
        held = grants.take_resend(state, stream, now_ms)
        if held is not None:
            self.report(state, held, now_ms, effects)

    def _lose_lease(self, state: H, effects: Effects) -> None:
        leaving = state.state is BorrowerState.UNSUBSCRIBING
        if leaving or self.says_goodbye:
            # The client hears of it next, after all that it was sent before.
            ending.say_goodbye(state, effects, None if leaving else 0)
        ending.end(state, Ended("lease ended") if leaving else Recreate("lease ended"), effects)


def look_for_leader(state: Holder, now_ms: int, effects: Effects) -> None:
    """Ask the registry for the leader, with all that is held; ask again later."""
    state.timers.set(Timer.FIND, now_ms + FIND_LEADER_MS)
    effects.append(SendToRegistry(state.leader_wanted(now_ms)))


def renew_later(state: Holder, now_ms: int) -> None:
    """The lease is renewed again after a quarter of it."""
    state.timers.set(Timer.PING, now_ms + state.lease_ms // 4)


def extend_lease(state: Holder, from_ms: int) -> None:
    """Let the lease run from this time, unless it runs from a later one already."""
    known_ms = state.timers.at_ms(Timer.LEASE)
    if known_ms is not None and known_ms >= from_ms + state.lease_ms:
        return
    state.timers.set(Timer.LEASE, from_ms + state.lease_ms)
    if state.state in SERVED:
        state.timers.set(Timer.SUSPEND, from_ms + state.suspend_after_ms())


def note_heard(state: Holder, sent_ms: int, now_ms: int, effects: Effects) -> None:
    """The leader heard what was sent at that time; delivery goes on where it was suspended."""
    if sent_ms > now_ms:
        return
    extend_lease(state, sent_ms)
    if state.suspended and now_ms - sent_ms < state.suspend_after_ms():
        state.suspended = False
        state.timers.clear(Timer.FIND)
        effects.append(ResumeDelivery())
