"""The borrower of a lease group: one incarnation of a subscription, with a stream set.

docs/protocol.md, "The lease protocol", has the rules in full.

::

                  lease_streams              update_streams
      connecting ───────────────► replaying ◄──────────────► updating
        ▲   │                       │   renew_stream_lease    │
        │   │ left                  │                         │
        │   ▼                       ▼                         ▼
        │  gone ◄──final reports── unsubscribing ◄──unsubscribed
        │
        └── version mismatch, invalidate, renew_stream_lease_timeout

The way back to ``connecting`` is a new incarnation under a new id (`Recreate`): nothing that is
still under way to the old one can reach it. Rules:

1. A set of a version is taken once. A version below ours came late and is ignored. A version that
   does not follow ours is a mismatch: everything is dropped without a goodbye. The client may still
   hand out what it has, so the leader frees the streams at the end of the lease only.
2. When an update takes a stream over, its delivery stops. Settles of records that are out are still
   reported; the last report has the fully-acked flag, and is repeated until the leader names the
   stream as accepted. A stream that is neither in the set nor taken over is dropped.
3. While updating, a further update from the present version may come, so that one slow stream does
   not hold up others.
4. The lease runs from the newest send time of ours that the leader has heard.
5. A borrower that unsubscribes says so with every message. It takes no set after that, and gives
   new streams of a set back unused.
6. The link to the leader, reports, grant epochs, `Revoked` and `Invalidate` are those of the borrow
   protocol (`leader_link`, `grants`, `ending`).

The machine is total: `TRANSITIONS` has an entry for each state and input, `MESSAGES` for each
state and message. It has no clock; inputs carry the time, and `WakeAt` asks for the next `Ticked`.
"""

from collections.abc import Iterable
from itertools import product

from dssd.limits import UNSUBSCRIBE_MS
from dssd.machines.borrower import ending, grants, pausing
from dssd.machines.borrower.events import (
    BorrowerInput,
    ProgressDurable,
    Recreate,
    Reported,
    SendToLeader,
    SendToRegistry,
    Started,
    Unsubscribed,
)
from dssd.machines.borrower.leader_link import (
    LeaderLink,
    look_for_leader,
    note_heard,
    renew_later,
)
from dssd.machines.borrower.state import (
    BorrowerState,
    Effects,
    HeldStream,
    LeaseBorrower,
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
    GrantedStream,
    Invalidate,
    LeaderConnectResponse,
    LeaseStreams,
    PauseChanged,
    PingResponse,
    ProgressSaved,
    RenewStreamLease,
    Revoke,
    Revoked,
    Taken,
    TakenState,
    ToBorrower,
    UpdateStreams,
    UpdateStreamStates,
)


def step(state: LeaseBorrower, given: BorrowerInput) -> tuple[LeaseBorrower, Effects]:
    """Take one input: the state, updated in place and returned, and what to do, in order."""
    return take_step(TRANSITIONS, state, given)


# What the agent says


def _start(state: LeaseBorrower, given: Started, effects: Effects) -> None:
    look_for_leader(state, given.now_ms, effects)


def _begin_unsubscribing(state: LeaseBorrower, given: Unsubscribed, effects: Effects) -> None:
    if ending.is_finished(state):
        ending.leave(state, given, effects)
        return
    ending.begin_leaving(state, given.now_ms)
    _send_states(state, state.active(), given.now_ms, effects)
    for held in state.streams.values():
        grants.finish(held, UNSUBSCRIBE_MS, effects)


def _report(state: LeaseBorrower, given: Reported, effects: Effects) -> None:
    taken: list[HeldStream] = []
    for report in given.reports:
        held = grants.take_report(state, report, given)
        if held is not None:
            held.revoking = held.revoking or given.final
            taken.append(held)
    if taken:
        _send_states(state, taken, given.now_ms, effects)


def _report_last(state: LeaseBorrower, given: Reported, effects: Effects) -> None:
    _report(state, given, effects)
    ending.leave_when_finished(state, effects)


# What the leader says


def _begin_replaying(
    state: LeaseBorrower, message: LeaseStreams, now_ms: int, effects: Effects
) -> None:
    state.lease_ms = message.lease_ms
    if not 0 <= now_ms - message.heard_ms < state.lease_ms:
        # Its lease is over already; the answer to a later request will come.
        return
    state.state = BorrowerState.REPLAYING
    state.version = message.version
    state.timers.clear(Timer.FIND)
    renew_later(state, now_ms)
    if now_ms - message.heard_ms >= state.suspend_after_ms():
        suspend(state, effects)
    note_heard(state, message.heard_ms, now_ms, effects)
    fresh = _install_new(state, message.streams, now_ms, effects)
    _send_states(state, fresh, now_ms, effects, asks_renewal=True)


def _lease_again(
    state: LeaseBorrower, message: LeaseStreams, now_ms: int, effects: Effects
) -> None:
    """Another version than ours comes from a leader that does not know our set yet."""
    if message.version == state.version:
        note_heard(state, message.heard_ms, now_ms, effects)
        _send_states(state, state.active(), now_ms, effects, asks_renewal=True)


def _update(state: LeaseBorrower, message: UpdateStreams, now_ms: int, effects: Effects) -> None:
    if message.version < state.version:
        return
    fresh: list[HeldStream] = []
    if message.version > state.version:
        if message.version_old != state.version:
            ending.end(state, Recreate("version mismatch"), effects)
            return
        state.state = BorrowerState.UPDATING
        state.version, state.version_old = message.version, message.version_old
        _drop_what_is_over(state, message, effects)
        fresh = _install_new(state, message.streams, now_ms, effects)
    else:
        # The leader repeats itself: one of our answers was lost.
        fresh = state.active()
    note_heard(state, message.heard_ms, now_ms, effects)
    _take_over(state, message.taken_over, effects)
    _send_states(state, fresh, now_ms, effects, asks_renewal=True)


def _drop_what_is_over(state: LeaseBorrower, message: UpdateStreams, effects: Effects) -> None:
    known = {granted.stream for granted in message.streams}
    known |= {taken.stream for taken in message.taken_over}
    for stream, held in tuple(state.streams.items()):
        if stream not in known and not held.revoking:
            grants.drop(state, stream, "not in the set", effects)


def _install_new(
    state: LeaseBorrower, streams: Iterable[GrantedStream], now_ms: int, effects: Effects
) -> list[HeldStream]:
    fresh: list[HeldStream] = []
    for granted in streams:
        if grants.is_new(state, granted):
            fresh.append(grants.install(state, granted, effects))
            grants.send_again_later(state, fresh[-1], now_ms)
        else:
            grants.answer_if_over(state, granted, effects)
    return fresh


def _take_over(state: LeaseBorrower, streams: Iterable[Taken], effects: Effects) -> None:
    for taken in streams:
        held = grants.held_under(state, taken.stream, taken.grant_epoch)
        if held is not None:
            grants.finish(held, taken.deadline_ms, effects)
        else:
            grants.release(state, taken.stream, taken.grant_epoch, effects)


def _decline(
    state: LeaseBorrower, message: LeaseStreams | UpdateStreams, now_ms: int, effects: Effects
) -> None:
    """Give streams that are not held back unused: none of their records was sent to the client."""
    note_heard(state, message.heard_ms, now_ms, effects)
    unused: list[HeldStream] = []
    for granted in message.streams:
        if grants.is_new(state, granted):
            unused.append(HeldStream(grants.unused_report(granted)))
            unused[-1].revoking = unused[-1].finished = True
        else:
            grants.answer_if_over(state, granted, effects)
    if unused:
        _send_states(state, unused, now_ms, effects)
    if isinstance(message, UpdateStreams):
        _take_over(state, message.taken_over, effects)
        ending.leave_when_finished(state, effects)


def _renew(state: LeaseBorrower, message: RenewStreamLease, now_ms: int, effects: Effects) -> None:
    if message.version < state.version:
        return
    if message.version > state.version:
        ending.end(state, Recreate("version mismatch"), effects)
        return
    note_heard(state, message.heard_ms, now_ms, effects)
    _drop_accepted(state, message, effects)
    if message.version_old is not None:
        return
    taken_over = state.taken_over()
    if taken_over:
        # A new leader does not know that they are taken over.
        _send_states(state, taken_over, now_ms, effects)
    else:
        state.state = BorrowerState.REPLAYING


def _renew_last(
    state: LeaseBorrower, message: RenewStreamLease, now_ms: int, effects: Effects
) -> None:
    note_heard(state, message.heard_ms, now_ms, effects)
    _drop_accepted(state, message, effects)
    ending.leave_when_finished(state, effects)


def _drop_accepted(state: LeaseBorrower, message: RenewStreamLease, effects: Effects) -> None:
    for stream, grant_epoch in message.accepted:
        held = grants.held_under(state, stream, grant_epoch)
        if held is not None:
            report = held.report
            effects.append(ProgressDurable(stream, grant_epoch, report.progress, report.queues))
            grants.drop(state, stream, "revoked", effects)


# What is said to the leader


def _present(state: LeaseBorrower, now_ms: int, effects: Effects) -> None:
    effects.append(SendToRegistry(state.leader_wanted(now_ms)))


def _ask_renewal(state: LeaseBorrower, now_ms: int, effects: Effects) -> None:
    renew_later(state, now_ms)
    _send_states(state, (), now_ms, effects, asks_renewal=True)


def _send_state(state: LeaseBorrower, held: HeldStream, now_ms: int, effects: Effects) -> None:
    _send_states(state, (held,), now_ms, effects)


def _send_states(
    state: LeaseBorrower,
    streams: Iterable[HeldStream],
    now_ms: int,
    effects: Effects,
    *,
    asks_renewal: bool = False,
) -> None:
    """Report these streams; with a request for renewal, name all streams that are taken over."""
    told = list(streams)
    taken = state.streams.values() if asks_renewal else told
    message = UpdateStreamStates(
        state.borrower_id,
        state.leader_epoch,
        now_ms,
        state.version,
        tuple(held.report for held in told if not held.revoking),
        state.version_old if state.state is BorrowerState.UPDATING else None,
        tuple(TakenState(held.report, held.finished) for held in taken if held.revoking),
        asks_renewal,
        state.state is BorrowerState.UNSUBSCRIBING,
    )
    effects.append(SendToLeader(message))


_S = BorrowerState

_LIVE = (_S.CONNECTING, _S.REPLAYING, _S.UPDATING, _S.UNSUBSCRIBING)
_OF_BORROWING: tuple[type[ToBorrower], ...] = (PingResponse, Grant, Revoke)
"""Messages of the borrow protocol only; a leader of a lease group sends none of them."""

MESSAGES: Messages = {
    **dict.fromkeys(product(_LIVE, _OF_BORROWING), ignore_message),
    (_S.CONNECTING, LeaderConnectResponse): ignore_message,
    (_S.CONNECTING, ProgressSaved): ignore_message,
    (_S.CONNECTING, Revoked): grants.revoked,
    (_S.CONNECTING, Invalidate): ending.invalidate,
    (_S.CONNECTING, LeaseStreams): _begin_replaying,
    (_S.CONNECTING, UpdateStreams): ignore_message,
    (_S.CONNECTING, RenewStreamLease): ignore_message,
    (_S.CONNECTING, PauseChanged): pausing.take_change,
    (_S.REPLAYING, LeaderConnectResponse): ignore_message,
    (_S.REPLAYING, ProgressSaved): grants.note_saved,
    (_S.REPLAYING, Revoked): grants.revoked,
    (_S.REPLAYING, Invalidate): ending.invalidate,
    (_S.REPLAYING, LeaseStreams): _lease_again,
    (_S.REPLAYING, UpdateStreams): _update,
    (_S.REPLAYING, RenewStreamLease): _renew,
    (_S.REPLAYING, PauseChanged): pausing.take_change,
    (_S.UPDATING, LeaderConnectResponse): ignore_message,
    (_S.UPDATING, ProgressSaved): grants.note_saved,
    (_S.UPDATING, Revoked): grants.revoked,
    (_S.UPDATING, Invalidate): ending.invalidate,
    (_S.UPDATING, LeaseStreams): _lease_again,
    (_S.UPDATING, UpdateStreams): _update,
    (_S.UPDATING, RenewStreamLease): _renew,
    (_S.UPDATING, PauseChanged): pausing.take_change,
    (_S.UNSUBSCRIBING, LeaderConnectResponse): ignore_message,
    (_S.UNSUBSCRIBING, ProgressSaved): grants.note_saved,
    (_S.UNSUBSCRIBING, Revoked): ending.revoked_last,
    (_S.UNSUBSCRIBING, Invalidate): ending.invalidate_last,
    (_S.UNSUBSCRIBING, LeaseStreams): _decline,
    (_S.UNSUBSCRIBING, UpdateStreams): _decline,
    (_S.UNSUBSCRIBING, RenewStreamLease): _renew_last,
    (_S.UNSUBSCRIBING, PauseChanged): pausing.take_change_last,
}
"""For every state but `GONE`: a borrower that is gone answers `Revoked` only."""

LINK = LeaderLink(MESSAGES, _present, _ask_renewal, _send_state, says_goodbye=False)

TRANSITIONS: Transitions = LINK.transitions(
    (_S.REPLAYING, _S.UPDATING),
    start=_start,
    unsubscribe=_begin_unsubscribing,
    report=_report,
    report_last=_report_last,
)
