"""How a borrower ends: it leaves, the leader ends it, or its state cannot be trusted any more.

Both protocols use it; `borrow_machine` and `lease_machine` say when. Invariant: a borrower that is
gone holds nothing, waits for nothing and never comes back. If its subscription goes on, it asks the
agent for a new borrower (`Recreate`). This module does not know how a protocol tells the leader
that a borrower is leaving, nor what becomes of grants that arrive until then.
"""

from dss_core.errors import REGISTRY
from dssd.limits import UNSUBSCRIBE_MS
from dssd.machines.borrower.events import (
    Disconnected,
    Ended,
    Received,
    Recreate,
    SendToLeader,
    Unsubscribed,
)
from dssd.machines.borrower.grants import answer_finished, drop, forget_up_to, revoked
from dssd.machines.borrower.state import BorrowerState, Effects, Holder, Timer
from dssd.machines.deadlines import Deadlines
from dssd.machines.messages import Disconnect, Invalidate, Revoked


def end(state: Holder, last: Ended | Recreate, effects: Effects) -> None:
    """Drop everything; this incarnation is over."""
    for stream in tuple(state.streams):
        drop(state, stream, last.reason, effects)
    state.state = BorrowerState.GONE
    state.timers = Deadlines()
    effects.append(last)


def say_goodbye(state: Holder, effects: Effects, silent_ms: int | None = None) -> None:
    """Tell the leader that this borrower ends, with final reports. If its client may still hand
    out records for a while, say also how long the client has been silent.
    """
    reports = tuple(held.report for held in state.streams.values())
    goodbye = Disconnect(state.borrower_id, state.leader_epoch, reports, silent_ms)
    effects.append(SendToLeader(goodbye))


# Leaving


def is_finished(state: Holder) -> bool:
    """Whether the final report of every stream was made."""
    return all(held.finished for held in state.streams.values())


def begin_leaving(state: Holder, now_ms: int) -> None:
    """From now on it waits for final reports only, for `UNSUBSCRIBE_MS` at most."""
    state.state = BorrowerState.UNSUBSCRIBING
    state.timers.clear(Timer.SUSPEND)
    state.timers.clear(Timer.FIND)
    state.timers.set(Timer.UNSUBSCRIBE, now_ms + UNSUBSCRIBE_MS)


def leave(
    state: Holder, given: Unsubscribed | Disconnected, effects: Effects, *, reason: str = ""
) -> None:
    """Send final reports, and end as the session asked."""
    say_goodbye(state, effects, given.silent_ms if isinstance(given, Disconnected) else None)
    left = "unsubscribed" if isinstance(given, Unsubscribed) else "disconnected"
    end(state, Ended(reason or left), effects)


def leave_when_finished(state: Holder, effects: Effects) -> None:
    """A borrower that is leaving ends once every final report was made."""
    if is_finished(state):
        say_goodbye(state, effects)
        end(state, Ended("unsubscribed"), effects)


# What the leader says


def invalidate(state: Holder, message: Invalidate, now_ms: int, effects: Effects) -> None:
    """Drop one stream, or end; a reason that is an error code ends it for good."""
    if message.stream is not None:
        forget_up_to(state, message.stream, message.grant_epoch, message.reason, effects)
        return
    reason = message.reason
    if reason in REGISTRY:
        end(state, Ended(reason, error_code=reason, detail=message.detail), effects)
    else:
        end(state, Recreate(reason), effects)


def invalidate_last(state: Holder, message: Invalidate, now_ms: int, effects: Effects) -> None:
    """The same while leaving: there is no new borrower, because the subscription is over."""
    if message.stream is not None:
        forget_up_to(state, message.stream, message.grant_epoch, message.reason, effects)
        leave_when_finished(state, effects)
        return
    end(state, Ended(message.reason), effects)


def revoked_last(state: Holder, message: Revoked, now_ms: int, effects: Effects) -> None:
    """The leader took a stream back while the borrower is leaving."""
    revoked(state, message, now_ms, effects)
    leave_when_finished(state, effects)


def receive_gone(state: Holder, given: Received, effects: Effects) -> None:
    """Answer `Revoked`: nothing is held. Else the leader would wait for the end of its lease."""
    message = given.message
    if isinstance(message, Revoked) and message.borrower_id == state.borrower_id:
        answer_finished(state, message.stream, message.grant_epoch, effects)
