"""The borrower: one incarnation of a subscription, seen from the session (seed 000, DESIGN §5).

::

    connecting ──response or grant──► connected ──unsubscribed──► unsubscribing
        │                                 │                             │
        └──left──► gone ◄──left, invalid──┴──────────final reports──────┘

A stream inside it goes ``granted → revoking →`` away, and never comes back under the same grant:
the borrower remembers the last grant epoch of each stream that ended, so a grant message that
comes late installs nothing.

Rules:

1. A message of a lower leader epoch is ignored. A higher one means a new leader: it is obeyed, and
   what is held is presented to it with a `LeaderWanted`.
2. Each grant is answered by a report at once; so is each repetition.
3. A report is sent again, 250 ms later and then at doubling intervals, until the leader has shown
   that it is durable. A final report is sent again until the leader says `Revoked`.
4. The lease runs from the *send* time of the last answered ping. At 0.6 L delivery is suspended
   and the leader is looked for; at L everything is dropped and the agent makes a new borrower.
5. `Revoked` is answered in every state, and so is a `Revoke` of a stream that is not held.
6. Who unsubscribes says so at once and with each report, and gives back each grant that is still
   on its way to it, unused. An `Invalidate` only ends it: it must not come back for a subscription
   that the session no longer has.

What is the same in a lease group is in `state`, `grants`, `ending`.
The machine is total: `TRANSITIONS` has an entry for each state and input. It has no clock; inputs
carry the time, and `WakeAt` asks for the next `Ticked`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never

from dss_core.ids import StreamId
from dssd.machines.borrower import ending, grants
from dssd.machines.borrower.events import (
    BorrowerInput,
    Disconnected,
    Ended,
    Received,
    Recreate,
    Reported,
    ResumeDelivery,
    SendToLeader,
    SendToRegistry,
    Started,
    Ticked,
    Unsubscribed,
)
from dssd.machines.borrower.state import (
    FIND_LEADER_MS,
    Borrower,
    BorrowerState,
    Effects,
    Timer,
    due,
    suspend,
    tell_changes,
)
from dssd.machines.messages import (
    Grant,
    Invalidate,
    LeaderConnectResponse,
    LeaderWanted,
    LeaseStreams,
    Ping,
    PingResponse,
    ProgressSaved,
    RenewStreamLease,
    Revoke,
    Revoked,
    StreamReport,
    ToBorrower,
    UpdateProgress,
    UpdateStreams,
)

__all__ = ["Borrower", "BorrowerState", "step"]


def step(state: Borrower, given: BorrowerInput) -> tuple[Borrower, Effects]:
    """Take one input: the state, updated in place and returned, and what to do, in order."""
    effects: Effects = []
    TRANSITIONS[state.state, type(given)](state, given, effects)
    tell_changes(state, effects)
    return state, effects


# What the agent says


def _start(state: Borrower, given: Started, effects: Effects) -> None:
    _look_for_leader(state, given.now_ms, effects)


def _start_anew(state: Borrower, given: Started, effects: Effects) -> None:
    """Started while it runs: impossible, so this incarnation is not to be trusted."""
    ending.say_goodbye(state, effects)
    ending.end(state, Recreate("inconsistent"), effects)


def _begin_unsubscribing(state: Borrower, given: Unsubscribed, effects: Effects) -> None:
    if ending.is_finished(state):
        ending.leave(state, given, effects)
        return
    ending.begin_leaving(state, given.now_ms)
    unfinished = tuple(held.report for held in state.streams.values() if not held.finished)
    _send_reports(state, unfinished, False, effects)
    for held in state.streams.values():
        grants.finish(held, ending.UNSUBSCRIBE_MS, effects)


def _report(state: Borrower, given: Reported, effects: Effects) -> None:
    taken: list[StreamReport] = []
    for report in given.reports:
        held = grants.take_report(state, report, given)
        if held is not None:
            taken.append(held.report)
    if taken:
        _send_reports(state, tuple(taken), given.final, effects)


def _report_last(state: Borrower, given: Reported, effects: Effects) -> None:
    _report(state, given, effects)
    ending.leave_when_finished(state, effects)


# What the leader says


def _receive(state: Borrower, given: Received, effects: Effects) -> None:
    message = given.message
    if message.borrower_id != state.borrower_id or message.leader_epoch < state.leader_epoch:
        return
    if message.leader_epoch > state.leader_epoch:
        _meet_leader(state, message.leader_epoch, given.now_ms, effects)
    MESSAGES[state.state, type(message)](state, message, given.now_ms, effects)


def _meet_leader(state: Borrower, leader_epoch: int, now_ms: int, effects: Effects) -> None:
    known = state.leader_epoch
    state.leader_epoch = leader_epoch
    if known and state.state is BorrowerState.CONNECTED:
        effects.append(SendToLeader(_wanted(state)))
        _ping(state, now_ms, effects)


def _connect(
    state: Borrower, message: LeaderConnectResponse | Grant, now_ms: int, effects: Effects
) -> None:
    state.state = BorrowerState.CONNECTED
    state.lease_ms = message.lease_ms
    state.timers.clear(Timer.FIND)
    wanted_ms = now_ms if state.wanted_ms is None else state.wanted_ms
    if now_ms - wanted_ms < state.suspend_after_ms():
        _extend_lease(state, wanted_ms)
    else:
        # Which request was answered is not known; so nothing is handed out before a ping is.
        _extend_lease(state, now_ms)
        suspend(state, effects)
    state.wanted_ms = None
    _ping(state, now_ms, effects)
    if isinstance(message, Grant):
        _take_grants(state, message, now_ms, effects)


def _take_grants(state: Borrower, message: Grant, now_ms: int, effects: Effects) -> None:
    fresh: list[StreamReport] = []
    final: list[StreamReport] = []
    for granted in message.streams:
        held = grants.held_under(state, granted.stream, granted.grant_epoch)
        if held is not None:
            (final if held.finished else fresh).append(held.report)
        elif grants.is_new(state, granted):
            fresh.append(grants.install(state, granted, effects).report)
        else:
            grants.answer_if_over(state, granted, effects)
    if fresh:
        _send_reports(state, tuple(fresh), False, effects)
    if final:
        _send_reports(state, tuple(final), True, effects)


def _decline_grants(state: Borrower, message: Grant, now_ms: int, effects: Effects) -> None:
    """What is not held is given back as it came: nothing of it was sent to the client."""
    unused = tuple(each for each in message.streams if grants.is_new(state, each))
    if unused:
        _send_reports(state, tuple(map(grants.unused_report, unused)), True, effects)
    known = tuple(each for each in message.streams if each not in unused)
    _take_grants(state, replace(message, streams=known), now_ms, effects)


def _extend(state: Borrower, message: PingResponse, now_ms: int, effects: Effects) -> None:
    if message.sent_ms > now_ms:
        return
    _extend_lease(state, message.sent_ms)
    if state.suspended and now_ms - message.sent_ms < state.suspend_after_ms():
        state.suspended = False
        state.wanted_ms = None
        state.timers.clear(Timer.FIND)
        effects.append(ResumeDelivery())


def _revoke(state: Borrower, message: Revoke, now_ms: int, effects: Effects) -> None:
    held = grants.held_under(state, message.stream, message.grant_epoch)
    if held is None:
        grants.release(state, message.stream, message.grant_epoch, effects)
    elif held.finished:
        _send_reports(state, (held.report,), True, effects)
    else:
        grants.finish(held, message.deadline_ms, effects)


def _revoke_last(state: Borrower, message: Revoke, now_ms: int, effects: Effects) -> None:
    _revoke(state, message, now_ms, effects)
    ending.leave_when_finished(state, effects)


# What the time brings


def _tick(state: Borrower, given: Ticked, effects: Effects) -> None:
    for key in due(state, given.now_ms):
        _fire(state, key, given.now_ms, effects)


def _fire(state: Borrower, key: Timer | StreamId, now_ms: int, effects: Effects) -> None:
    match key:
        case Timer.FIND:
            _look_for_leader(state, now_ms, effects)
        case Timer.PING:
            _ping(state, now_ms, effects)
        case Timer.SUSPEND:
            suspend(state, effects)
            _look_for_leader(state, now_ms, effects)
        case Timer.LEASE:
            _lose_lease(state, effects)
        case Timer.UNSUBSCRIBE:
            ending.leave(state, Unsubscribed(now_ms), effects, reason="unsubscribe timed out")
        case StreamId():
            _report_again(state, key, now_ms, effects)
        case _:
            assert_never(key)


def _report_again(state: Borrower, stream: StreamId, now_ms: int, effects: Effects) -> None:
    held = grants.take_resend(state, stream, now_ms)
    if held is not None:
        _send_reports(state, (held.report,), held.finished, effects)


def _lose_lease(state: Borrower, effects: Effects) -> None:
    ending.say_goodbye(state, effects)
    leaving = state.state is BorrowerState.UNSUBSCRIBING
    ending.end(state, Ended("lease ended") if leaving else Recreate("lease ended"), effects)


# Parts of the above


def _look_for_leader(state: Borrower, now_ms: int, effects: Effects) -> None:
    if state.wanted_ms is None:
        state.wanted_ms = now_ms
    state.timers.set(Timer.FIND, now_ms + FIND_LEADER_MS)
    effects.append(SendToRegistry(_wanted(state)))


def _wanted(state: Borrower) -> LeaderWanted:
    held = tuple(held.report for held in state.streams.values())
    return LeaderWanted(
        state.borrower_id, state.leader_epoch, state.session_id, state.client_id, held
    )


def _ping(state: Borrower, now_ms: int, effects: Effects) -> None:
    state.timers.set(Timer.PING, now_ms + state.lease_ms // 4)
    effects.append(SendToLeader(Ping(state.borrower_id, state.leader_epoch, now_ms)))


def _extend_lease(state: Borrower, from_ms: int) -> None:
    known_ms = state.timers.at_ms(Timer.LEASE)
    if known_ms is not None and known_ms >= from_ms + state.lease_ms:
        return
    state.timers.set(Timer.LEASE, from_ms + state.lease_ms)
    if state.state is BorrowerState.CONNECTED:
        state.timers.set(Timer.SUSPEND, from_ms + state.suspend_after_ms())


def _send_reports(
    state: Borrower, reports: tuple[StreamReport, ...], final: bool, effects: Effects
) -> None:
    leaving = state.state is BorrowerState.UNSUBSCRIBING
    message = UpdateProgress(state.borrower_id, state.leader_epoch, reports, final, leaving)
    effects.append(SendToLeader(message))


def ignore(state: Borrower, given: object, effects: Effects) -> None:
    """Nothing happens, and that is meant."""


def ignore_message(state: Borrower, message: object, now_ms: int, effects: Effects) -> None:
    """Nothing happens, and that is meant."""


_S = BorrowerState

TRANSITIONS: Mapping[tuple[BorrowerState, type[BorrowerInput]], Callable[..., None]] = {
    (_S.CONNECTING, Started): _start,
    (_S.CONNECTING, Received): _receive,
    (_S.CONNECTING, Reported): ignore,
    (_S.CONNECTING, Unsubscribed): ending.leave,
    (_S.CONNECTING, Disconnected): ending.leave,
    (_S.CONNECTING, Ticked): _tick,
    (_S.CONNECTED, Started): _start_anew,
    (_S.CONNECTED, Received): _receive,
    (_S.CONNECTED, Reported): _report,
    (_S.CONNECTED, Unsubscribed): _begin_unsubscribing,
    (_S.CONNECTED, Disconnected): ending.leave,
    (_S.CONNECTED, Ticked): _tick,
    (_S.UNSUBSCRIBING, Started): ignore,
    (_S.UNSUBSCRIBING, Received): _receive,
    (_S.UNSUBSCRIBING, Reported): _report_last,
    (_S.UNSUBSCRIBING, Unsubscribed): ignore,
    (_S.UNSUBSCRIBING, Disconnected): ending.leave,
    (_S.UNSUBSCRIBING, Ticked): _tick,
    (_S.GONE, Started): ignore,
    (_S.GONE, Received): ending.receive_gone,
    (_S.GONE, Reported): ignore,
    (_S.GONE, Unsubscribed): ignore,
    (_S.GONE, Disconnected): ignore,
    (_S.GONE, Ticked): ignore,
}

MESSAGES: Mapping[tuple[BorrowerState, type[ToBorrower]], Callable[..., None]] = {
    (_S.CONNECTING, LeaderConnectResponse): _connect,
    (_S.CONNECTING, PingResponse): ignore_message,
    (_S.CONNECTING, Grant): _connect,
    (_S.CONNECTING, ProgressSaved): ignore_message,
    (_S.CONNECTING, Revoke): _revoke,
    (_S.CONNECTING, Revoked): grants.revoked,
    (_S.CONNECTING, Invalidate): ending.invalidate,
    (_S.CONNECTING, LeaseStreams): ignore_message,
    (_S.CONNECTING, UpdateStreams): ignore_message,
    (_S.CONNECTING, RenewStreamLease): ignore_message,
    (_S.CONNECTED, LeaderConnectResponse): ignore_message,
    (_S.CONNECTED, PingResponse): _extend,
    (_S.CONNECTED, Grant): _take_grants,
    (_S.CONNECTED, ProgressSaved): grants.note_saved,
    (_S.CONNECTED, Revoke): _revoke,
    (_S.CONNECTED, Revoked): grants.revoked,
    (_S.CONNECTED, Invalidate): ending.invalidate,
    (_S.CONNECTED, LeaseStreams): ignore_message,
    (_S.CONNECTED, UpdateStreams): ignore_message,
    (_S.CONNECTED, RenewStreamLease): ignore_message,
    (_S.UNSUBSCRIBING, LeaderConnectResponse): ignore_message,
    (_S.UNSUBSCRIBING, PingResponse): _extend,
    (_S.UNSUBSCRIBING, Grant): _decline_grants,
    (_S.UNSUBSCRIBING, ProgressSaved): grants.note_saved,
    (_S.UNSUBSCRIBING, Revoke): _revoke_last,
    (_S.UNSUBSCRIBING, Revoked): ending.revoked_last,
    (_S.UNSUBSCRIBING, Invalidate): ending.invalidate_last,
    (_S.UNSUBSCRIBING, LeaseStreams): ignore_message,
    (_S.UNSUBSCRIBING, UpdateStreams): ignore_message,
    (_S.UNSUBSCRIBING, RenewStreamLease): ignore_message,
}
"""While connected or on the way there or away; a borrower that is gone answers `Revoked` only."""
