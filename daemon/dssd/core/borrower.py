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

The machine is total: `TRANSITIONS` has an entry for each state and input. It has no clock; inputs
carry the time, and `WakeAt` asks for the next `Ticked`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never

from dss_core.errors import REGISTRY
from dss_core.ids import StreamId
from dssd.core.borrowing import (
    BorrowerEffect,
    BorrowerInput,
    Disconnected,
    DropStream,
    Ended,
    FinishStream,
    InstallStream,
    ProgressDurable,
    Received,
    Recreate,
    Reported,
    ResumeDelivery,
    SendToLeader,
    SendToRegistry,
    Standing,
    Started,
    SuspendDelivery,
    Ticked,
    Unsubscribed,
    WakeAt,
)
from dssd.core.deadlines import Deadlines
from dssd.core.holding import (
    RESEND_FIRST_MS,
    Borrower,
    BorrowerState,
    HeldStream,
    Timer,
    merge_report,
    unused_report,
)
from dssd.core.messages import (
    Disconnect,
    Grant,
    GrantedStream,
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
    RevokeFinished,
    StreamReport,
    ToBorrower,
    ToLeader,
    UpdateProgress,
    UpdateStreams,
)

FIND_LEADER_MS = 1_000
UNSUBSCRIBE_MS = 5_000
"""Below the lease, so that the leader still knows the borrower when it says goodbye."""

__all__ = ["Borrower", "BorrowerState", "step"]

Effects = list[BorrowerEffect]


def step(state: Borrower, given: BorrowerInput) -> tuple[Borrower, Effects]:
    """Take one input: the state, updated in place and returned, and what to do, in order."""
    effects: Effects = []
    TRANSITIONS[state.state, type(given)](state, given, effects)
    _tell_standing(state, effects)
    wake_ms = state.timers.next_ms()
    if wake_ms is not None and wake_ms != state.wake_ms:
        effects.append(WakeAt(wake_ms))
    state.wake_ms = wake_ms
    return state, effects


# What the agent says


def _start(state: Borrower, given: Started, effects: Effects) -> None:
    _look_for_leader(state, given.now_ms, effects)


def _start_anew(state: Borrower, given: Started, effects: Effects) -> None:
    """Started while it runs: impossible, so this incarnation is not to be trusted."""
    _say_goodbye(state, effects)
    _drop_all(state, "inconsistent", effects)
    _end(state, Recreate("inconsistent"), effects)


def _leave(
    state: Borrower, given: Unsubscribed | Disconnected, effects: Effects, *, reason: str = ""
) -> None:
    _say_goodbye(state, effects)
    left = "unsubscribed" if isinstance(given, Unsubscribed) else "disconnected"
    _drop_all(state, reason or left, effects)
    _end(state, Ended(reason or left), effects)


def _begin_unsubscribing(state: Borrower, given: Unsubscribed, effects: Effects) -> None:
    if all(held.finished for held in state.streams.values()):
        _leave(state, given, effects)
        return
    state.state = BorrowerState.UNSUBSCRIBING
    state.timers.clear(Timer.SUSPEND)
    state.timers.clear(Timer.FIND)
    state.timers.set(Timer.UNSUBSCRIBE, given.now_ms + UNSUBSCRIBE_MS)
    unfinished = tuple(held.report for held in state.streams.values() if not held.finished)
    _send_reports(state, unfinished, False, effects)
    for stream, held in state.streams.items():
        if not held.revoking:
            held.revoking = True
            effects.append(FinishStream(stream, held.report.grant_epoch, UNSUBSCRIBE_MS))


def _report(state: Borrower, given: Reported, effects: Effects) -> None:
    taken: list[StreamReport] = []
    for report in given.reports:
        held = state.streams.get(report.stream)
        if held is None or held.report.grant_epoch != report.grant_epoch:
            continue
        merge_report(held, report, final=given.use_finished)
        taken.append(held.report)
        held.resend_ms = RESEND_FIRST_MS
        state.timers.set(report.stream, given.now_ms + RESEND_FIRST_MS)
    if taken:
        _send_reports(state, tuple(taken), given.use_finished, effects)


def _report_last(state: Borrower, given: Reported, effects: Effects) -> None:
    _report(state, given, effects)
    _leave_when_finished(state, effects)


# What the leader says


def _receive(state: Borrower, given: Received, effects: Effects) -> None:
    message = given.message
    if message.borrower_id != state.borrower_id or message.leader_epoch < state.leader_epoch:
        return
    if message.leader_epoch > state.leader_epoch:
        _meet_leader(state, message.leader_epoch, given.now_ms, effects)
    MESSAGES[state.state, type(message)](state, message, given.now_ms, effects)


def _receive_gone(state: Borrower, given: Received, effects: Effects) -> None:
    message = given.message
    if isinstance(message, Revoked) and message.borrower_id == state.borrower_id:
        _answer_finished(state, message.stream, message.grant_epoch, effects)


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
    if now_ms - wanted_ms < _suspend_after_ms(state):
        _extend_lease(state, wanted_ms)
    else:
        # Which request was answered is not known; so nothing is handed out before a ping is.
        _extend_lease(state, now_ms)
        _suspend(state, now_ms, effects)
    state.wanted_ms = None
    _ping(state, now_ms, effects)
    if isinstance(message, Grant):
        _take_grants(state, message, now_ms, effects)


def _take_grants(state: Borrower, message: Grant, now_ms: int, effects: Effects) -> None:
    fresh: list[StreamReport] = []
    final: list[StreamReport] = []
    for granted in message.streams:
        held = state.streams.get(granted.stream)
        if granted.grant_epoch <= state.ended_epochs.get(granted.stream, 0):
            _answer_finished(state, granted.stream, granted.grant_epoch, effects)
        elif held is None or held.report.grant_epoch < granted.grant_epoch:
            fresh.append(_install(state, granted, effects))
        elif held.report.grant_epoch == granted.grant_epoch:
            (final if held.finished else fresh).append(held.report)
    if fresh:
        _send_reports(state, tuple(fresh), False, effects)
    if final:
        _send_reports(state, tuple(final), True, effects)


def _decline_grants(state: Borrower, message: Grant, now_ms: int, effects: Effects) -> None:
    """What is not held is given back as it came: nothing of it was sent to the client."""
    unused = tuple(each for each in message.streams if _is_fresh(state, each))
    if unused:
        _send_reports(state, tuple(unused_report(granted) for granted in unused), True, effects)
    known = tuple(each for each in message.streams if each not in unused)
    _take_grants(state, replace(message, streams=known), now_ms, effects)


def _is_fresh(state: Borrower, granted: GrantedStream) -> bool:
    held = state.streams.get(granted.stream)
    known = state.ended_epochs.get(granted.stream, 0) if held is None else held.report.grant_epoch
    return granted.grant_epoch > known


def _install(state: Borrower, granted: GrantedStream, effects: Effects) -> StreamReport:
    if granted.stream in state.streams:
        _drop(state, granted.stream, "granted anew", effects)
    report = StreamReport(
        granted.stream,
        granted.grant_epoch,
        granted.progress,
        granted.frontier,
        granted.attempts,
    )
    state.streams[granted.stream] = HeldStream(report)
    effects.append(InstallStream(granted))
    return report


def _extend(state: Borrower, message: PingResponse, now_ms: int, effects: Effects) -> None:
    if message.sent_ms > now_ms:
        return
    _extend_lease(state, message.sent_ms)
    if state.suspended and now_ms - message.sent_ms < _suspend_after_ms(state):
        state.suspended = False
        state.wanted_ms = None
        state.timers.clear(Timer.FIND)
        effects.append(ResumeDelivery())


def _note_saved(state: Borrower, message: ProgressSaved, now_ms: int, effects: Effects) -> None:
    held = state.streams.get(message.stream)
    if held is None or held.report.grant_epoch != message.grant_epoch:
        return
    saved = message.progress
    if not held.finished and (
        saved == held.report.progress or saved.merged(held.report.progress) == saved
    ):
        state.timers.clear(message.stream)
    effects.append(ProgressDurable(message.stream, message.grant_epoch, saved))


def _revoke(state: Borrower, message: Revoke, now_ms: int, effects: Effects) -> None:
    held = state.streams.get(message.stream)
    if held is not None and held.report.grant_epoch == message.grant_epoch:
        if held.finished:
            _send_reports(state, (held.report,), True, effects)
        elif not held.revoking:
            held.revoking = True
            effects.append(FinishStream(message.stream, message.grant_epoch, message.deadline_ms))
        return
    _forget_up_to(state, message.stream, message.grant_epoch, "revoked", effects)
    _answer_finished(state, message.stream, message.grant_epoch, effects)


def _revoke_last(state: Borrower, message: Revoke, now_ms: int, effects: Effects) -> None:
    _revoke(state, message, now_ms, effects)
    _leave_when_finished(state, effects)


def _revoked(state: Borrower, message: Revoked, now_ms: int, effects: Effects) -> None:
    held = state.streams.get(message.stream)
    if held is not None and held.report.grant_epoch == message.grant_epoch:
        effects.append(ProgressDurable(message.stream, message.grant_epoch, message.progress))
    _forget_up_to(state, message.stream, message.grant_epoch, "revoked", effects)
    _answer_finished(state, message.stream, message.grant_epoch, effects)


def _revoked_last(state: Borrower, message: Revoked, now_ms: int, effects: Effects) -> None:
    _revoked(state, message, now_ms, effects)
    _leave_when_finished(state, effects)


def _invalidate(state: Borrower, message: Invalidate, now_ms: int, effects: Effects) -> None:
    if message.stream is not None:
        _forget_up_to(state, message.stream, message.grant_epoch, message.reason, effects)
        return
    _drop_all(state, message.reason, effects)
    final = message.reason in REGISTRY
    over = Ended(message.reason, message.reason) if final else Recreate(message.reason)
    _end(state, over, effects)


def _invalidate_last(state: Borrower, message: Invalidate, now_ms: int, effects: Effects) -> None:
    if message.stream is not None:
        _forget_up_to(state, message.stream, message.grant_epoch, message.reason, effects)
        _leave_when_finished(state, effects)
        return
    _drop_all(state, message.reason, effects)
    _end(state, Ended(message.reason), effects)


# What the time brings


def _tick(state: Borrower, given: Ticked, effects: Effects) -> None:
    for key in state.timers.due(given.now_ms):
        # A timer that came due first may have ended the borrower.
        if state.state is BorrowerState.GONE:
            return
        _fire(state, key, given.now_ms, effects)


def _fire(state: Borrower, key: Timer | StreamId, now_ms: int, effects: Effects) -> None:
    match key:
        case Timer.FIND:
            _look_for_leader(state, now_ms, effects)
        case Timer.PING:
            _ping(state, now_ms, effects)
        case Timer.SUSPEND:
            _suspend(state, now_ms, effects)
            _look_for_leader(state, now_ms, effects)
        case Timer.LEASE:
            _lose_lease(state, effects)
        case Timer.UNSUBSCRIBE:
            _leave(state, Unsubscribed(now_ms), effects, reason="unsubscribe timed out")
        case StreamId():
            _report_again(state, key, now_ms, effects)
        case _:
            assert_never(key)


def _report_again(state: Borrower, stream: StreamId, now_ms: int, effects: Effects) -> None:
    held = state.streams.get(stream)
    if held is None:
        return
    held.resend_ms = min(2 * held.resend_ms, state.lease_ms // 4)
    state.timers.set(stream, now_ms + held.resend_ms)
    _send_reports(state, (held.report,), held.finished, effects)


def _suspend(state: Borrower, now_ms: int, effects: Effects) -> None:
    if not state.suspended:
        state.suspended = True
        effects.append(SuspendDelivery())


def _lose_lease(state: Borrower, effects: Effects) -> None:
    _say_goodbye(state, effects)
    _drop_all(state, "lease ended", effects)
    leaving = state.state is BorrowerState.UNSUBSCRIBING
    _end(state, Ended("lease ended") if leaving else Recreate("lease ended"), effects)


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


def _suspend_after_ms(state: Borrower) -> int:
    return state.lease_ms * 6 // 10


def _extend_lease(state: Borrower, from_ms: int) -> None:
    known_ms = state.timers.at_ms(Timer.LEASE)
    if known_ms is not None and known_ms >= from_ms + state.lease_ms:
        return
    state.timers.set(Timer.LEASE, from_ms + state.lease_ms)
    if state.state is BorrowerState.CONNECTED:
        state.timers.set(Timer.SUSPEND, from_ms + _suspend_after_ms(state))


def _send_reports(
    state: Borrower, reports: tuple[StreamReport, ...], final: bool, effects: Effects
) -> None:
    leaving = state.state is BorrowerState.UNSUBSCRIBING
    message: ToLeader = UpdateProgress(
        state.borrower_id, state.leader_epoch, reports, final, leaving
    )
    effects.append(SendToLeader(message))


def _answer_finished(state: Borrower, stream: StreamId, grant_epoch: int, effects: Effects) -> None:
    answer = RevokeFinished(state.borrower_id, state.leader_epoch, stream, grant_epoch)
    effects.append(SendToLeader(answer))


def _say_goodbye(state: Borrower, effects: Effects) -> None:
    reports = tuple(held.report for held in state.streams.values())
    effects.append(SendToLeader(Disconnect(state.borrower_id, state.leader_epoch, reports)))


def _leave_when_finished(state: Borrower, effects: Effects) -> None:
    if all(held.finished for held in state.streams.values()):
        _say_goodbye(state, effects)
        _drop_all(state, "unsubscribed", effects)
        _end(state, Ended("unsubscribed"), effects)


def _forget_up_to(
    state: Borrower, stream: StreamId, grant_epoch: int, reason: str, effects: Effects
) -> None:
    """The grants of the stream up to that epoch are over, come what may."""
    held = state.streams.get(stream)
    if held is not None and held.report.grant_epoch <= grant_epoch:
        _drop(state, stream, reason, effects)
    state.ended_epochs[stream] = max(state.ended_epochs.get(stream, 0), grant_epoch)


def _drop(state: Borrower, stream: StreamId, reason: str, effects: Effects) -> None:
    grant_epoch = state.streams.pop(stream).report.grant_epoch
    state.ended_epochs[stream] = max(state.ended_epochs.get(stream, 0), grant_epoch)
    state.timers.clear(stream)
    effects.append(DropStream(stream, grant_epoch, reason))


def _drop_all(state: Borrower, reason: str, effects: Effects) -> None:
    for stream in tuple(state.streams):
        _drop(state, stream, reason, effects)


def _end(state: Borrower, last: Ended | Recreate, effects: Effects) -> None:
    state.state = BorrowerState.GONE
    state.timers = Deadlines()
    effects.append(last)


def _tell_standing(state: Borrower, effects: Effects) -> None:
    if state.state is BorrowerState.GONE:
        return
    standing = "active" if state.streams else "standby"
    if state.state is BorrowerState.CONNECTING:
        standing = "connecting"
    if standing != state.standing:
        state.standing = standing
        effects.append(Standing(standing))


def ignore(state: Borrower, given: object, effects: Effects) -> None:
    """Nothing happens, and that is meant."""


def ignore_message(state: Borrower, message: object, now_ms: int, effects: Effects) -> None:
    """Nothing happens, and that is meant."""


_S = BorrowerState

TRANSITIONS: Mapping[tuple[BorrowerState, type[BorrowerInput]], Callable[..., None]] = {
    (_S.CONNECTING, Started): _start,
    (_S.CONNECTING, Received): _receive,
    (_S.CONNECTING, Reported): ignore,
    (_S.CONNECTING, Unsubscribed): _leave,
    (_S.CONNECTING, Disconnected): _leave,
    (_S.CONNECTING, Ticked): _tick,
    (_S.CONNECTED, Started): _start_anew,
    (_S.CONNECTED, Received): _receive,
    (_S.CONNECTED, Reported): _report,
    (_S.CONNECTED, Unsubscribed): _begin_unsubscribing,
    (_S.CONNECTED, Disconnected): _leave,
    (_S.CONNECTED, Ticked): _tick,
    (_S.UNSUBSCRIBING, Started): ignore,
    (_S.UNSUBSCRIBING, Received): _receive,
    (_S.UNSUBSCRIBING, Reported): _report_last,
    (_S.UNSUBSCRIBING, Unsubscribed): ignore,
    (_S.UNSUBSCRIBING, Disconnected): _leave,
    (_S.UNSUBSCRIBING, Ticked): _tick,
    (_S.GONE, Started): ignore,
    (_S.GONE, Received): _receive_gone,
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
    (_S.CONNECTING, Revoked): _revoked,
    (_S.CONNECTING, Invalidate): _invalidate,
    (_S.CONNECTING, LeaseStreams): ignore_message,
    (_S.CONNECTING, UpdateStreams): ignore_message,
    (_S.CONNECTING, RenewStreamLease): ignore_message,
    (_S.CONNECTED, LeaderConnectResponse): ignore_message,
    (_S.CONNECTED, PingResponse): _extend,
    (_S.CONNECTED, Grant): _take_grants,
    (_S.CONNECTED, ProgressSaved): _note_saved,
    (_S.CONNECTED, Revoke): _revoke,
    (_S.CONNECTED, Revoked): _revoked,
    (_S.CONNECTED, Invalidate): _invalidate,
    (_S.CONNECTED, LeaseStreams): ignore_message,
    (_S.CONNECTED, UpdateStreams): ignore_message,
    (_S.CONNECTED, RenewStreamLease): ignore_message,
    (_S.UNSUBSCRIBING, LeaderConnectResponse): ignore_message,
    (_S.UNSUBSCRIBING, PingResponse): _extend,
    (_S.UNSUBSCRIBING, Grant): _decline_grants,
    (_S.UNSUBSCRIBING, ProgressSaved): _note_saved,
    (_S.UNSUBSCRIBING, Revoke): _revoke_last,
    (_S.UNSUBSCRIBING, Revoked): _revoked_last,
    (_S.UNSUBSCRIBING, Invalidate): _invalidate_last,
    (_S.UNSUBSCRIBING, LeaseStreams): ignore_message,
    (_S.UNSUBSCRIBING, UpdateStreams): ignore_message,
    (_S.UNSUBSCRIBING, RenewStreamLease): ignore_message,
}
"""While connected or on the way there or away; a borrower that is gone answers `Revoked` only."""
