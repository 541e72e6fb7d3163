"""The borrower: one incarnation of a subscription, as its session sees it.

docs/protocol.md, "The borrower", has the rules in full; the protocol is that of EMQX EIP-0028.

::

    connecting ──response or grant──► connected ──unsubscribed──► unsubscribing
        │                                 │                             │
        └──left──► gone ◄──left, invalid──┴──────────final reports──────┘

A stream inside it goes ``granted → revoking →`` away, and never comes back under the same grant:
the borrower remembers the last grant epoch of each stream that ended, so a grant message that
comes late installs nothing.

Rules:

1. Each grant is answered by a report at once; so is each repetition.
2. A final report is sent again until the leader says `Revoked`.
3. The lease is renewed by pings and runs from the send time of the last one that was answered. A
   borrower that drops everything says goodbye, and the agent makes a new one.
4. `Revoked` is answered in every state, and so is a `Revoke` of a stream that is not held.
5. A borrower that unsubscribes says so at once and with each report. A grant that arrives after
   that is given back unused. An `Invalidate` ends it, and no new borrower is made: the session no
   longer has the subscription.

`leader_link`, `grants`, `ending` and `state` have what both protocols share.
The machine is total: `TRANSITIONS` has an entry for each state and input. It has no clock; inputs
carry the time, and `WakeAt` asks for the next `Ticked`.
"""

from dataclasses import replace

from dssd.limits import UNSUBSCRIBE_MS
from dssd.machines.borrower import ending, grants, pausing
from dssd.machines.borrower.events import (
    BorrowerInput,
    Reported,
    SendToLeader,
    Started,
    Unsubscribed,
)
from dssd.machines.borrower.leader_link import (
    LeaderLink,
    extend_lease,
    look_for_leader,
    note_heard,
    renew_later,
)
from dssd.machines.borrower.state import (
    Borrower,
    BorrowerState,
    Effects,
    HeldStream,
    Timer,
    suspend,
)
from dssd.machines.borrower.stepping import (
    Messages,
    Transitions,
    ignore_message,
    take_step,
)
from dssd.machines.messages import (
    Grant,
    Invalidate,
    LeaderConnectResponse,
    LeaseStreams,
    PauseChanged,
    Ping,
    PingResponse,
    ProgressSaved,
    RenewStreamLease,
    Revoke,
    Revoked,
    StreamReport,
    UpdateProgress,
    UpdateStreams,
)


def step(state: Borrower, given: BorrowerInput) -> tuple[Borrower, Effects]:
    """Take one input: the state, updated in place and returned, and what to do, in order."""
    return take_step(TRANSITIONS, state, given)


# What the agent says


def _start(state: Borrower, given: Started, effects: Effects) -> None:
    if state.started_ms is None:
        state.started_ms = given.now_ms
    look_for_leader(state, given.now_ms, effects)


def _begin_unsubscribing(state: Borrower, given: Unsubscribed, effects: Effects) -> None:
    if ending.is_finished(state):
        ending.leave(state, given, effects)
        return
    ending.begin_leaving(state, given.now_ms)
    unfinished = tuple(held.report for held in state.streams.values() if not held.finished)
    _send_reports(state, unfinished, False, effects)
    for held in state.streams.values():
        grants.finish(held, UNSUBSCRIBE_MS, effects)


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


def _connect(
    state: Borrower, message: LeaderConnectResponse | Grant, now_ms: int, effects: Effects
) -> None:
    state.state = BorrowerState.CONNECTED
    state.lease_ms = message.lease_ms
    state.timers.clear(Timer.FIND)
    started_ms = now_ms if state.started_ms is None else state.started_ms
    if now_ms - started_ms < state.suspend_after_ms():
        extend_lease(state, started_ms)
    else:
        # It may answer any of our requests, so nothing is delivered until a ping is answered.
        extend_lease(state, now_ms)
        suspend(state, effects)
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
    """Give the grants back unused: none of their records was sent to the client."""
    unused = tuple(each for each in message.streams if grants.is_new(state, each))
    if unused:
        _send_reports(state, tuple(map(grants.unused_report, unused)), True, effects)
    known = tuple(each for each in message.streams if each not in unused)
    _take_grants(state, replace(message, streams=known), now_ms, effects)


def _extend(state: Borrower, message: PingResponse, now_ms: int, effects: Effects) -> None:
    note_heard(state, message.sent_ms, now_ms, effects)


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


# What is said to the leader


def _present(state: Borrower, now_ms: int, effects: Effects) -> None:
    effects.append(SendToLeader(state.leader_wanted(now_ms)))
    _ping(state, now_ms, effects)


def _ping(state: Borrower, now_ms: int, effects: Effects) -> None:
    renew_later(state, now_ms)
    effects.append(SendToLeader(Ping(state.borrower_id, state.leader_epoch, now_ms)))


def _send_report(state: Borrower, held: HeldStream, now_ms: int, effects: Effects) -> None:
    _send_reports(state, (held.report,), held.finished, effects)


def _send_reports(
    state: Borrower, reports: tuple[StreamReport, ...], final: bool, effects: Effects
) -> None:
    leaving = state.state is BorrowerState.UNSUBSCRIBING
    message = UpdateProgress(state.borrower_id, state.leader_epoch, reports, final, leaving)
    effects.append(SendToLeader(message))


_S = BorrowerState

MESSAGES: Messages = {
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
    (_S.CONNECTING, PauseChanged): pausing.take_change,
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
    (_S.CONNECTED, PauseChanged): pausing.take_change,
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
    (_S.UNSUBSCRIBING, PauseChanged): pausing.take_change_last,
}
"""For every state but `GONE`: a borrower that is gone answers `Revoked` only."""

LINK = LeaderLink(MESSAGES, _present, _ping, _send_report, says_goodbye=True)

TRANSITIONS: Transitions = LINK.transitions(
    (_S.CONNECTED,),
    start=_start,
    unsubscribe=_begin_unsubscribing,
    report=_report,
    report_last=_report_last,
)
