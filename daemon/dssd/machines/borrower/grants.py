"""What a borrower does with its grants: it takes them, reports on them and gives them up.

Both protocols use it; `borrow_machine` and `lease_machine` say when. Invariant: under one grant
epoch a stream is installed at most once, and a dropped grant stays dropped. This module knows only
messages that both protocols have: `RevokeFinished`, `ProgressSaved` and `Revoked`.
"""

from dss_core.ids import StreamId
from dssd.limits import RESEND_FIRST_MS
from dssd.machines.borrower.events import (
    DropStream,
    InstallStream,
    ProgressDurable,
    Reported,
    RevokeStream,
    SendToLeader,
)
from dssd.machines.borrower.pausing import note_pause
from dssd.machines.borrower.state import Effects, HeldStream, Holder, merge_report
from dssd.machines.messages import (
    GrantedStream,
    ProgressSaved,
    Revoked,
    RevokeFinished,
    StreamReport,
)
from dssd.machines.queues import QueueState


def held_under(state: Holder, stream: StreamId, grant_epoch: int) -> HeldStream | None:
    """The stream, where it is held under exactly that grant."""
    held = state.streams.get(stream)
    return held if held is not None and held.report.grant_epoch == grant_epoch else None


# Taking


def is_new(state: Holder, granted: GrantedStream) -> bool:
    """Whether the grant is newer than every grant of the stream that is held or was held."""
    if granted.grant_epoch <= state.ended_epochs.get(granted.stream, 0):
        return False
    held = state.streams.get(granted.stream)
    return held is None or held.report.grant_epoch < granted.grant_epoch


def install(state: Holder, granted: GrantedStream, effects: Effects) -> HeldStream:
    """Hold a stream under a new grant; an older one of it ends.

    A pause that comes with it is known before anything of the stream is read.
    """
    note_pause(state, granted.pause, effects)
    if granted.stream in state.streams:
        drop(state, granted.stream, "granted anew", effects)
    report = StreamReport(
        granted.stream,
        granted.grant_epoch,
        granted.progress,
        granted.frontier,
        granted.attempts,
        fate=granted.fate,
        queues=granted.queues,
    )
    held = state.streams[granted.stream] = HeldStream(report)
    effects.append(InstallStream(granted))
    return held


def unused_report(granted: GrantedStream) -> StreamReport:
    """The final report of a grant of which nothing was sent to the client."""
    return StreamReport(
        granted.stream,
        granted.grant_epoch,
        granted.progress,
        granted.frontier,
        granted.attempts,
        sent=granted.frontier,
        fate=granted.fate,
        queues=granted.queues,
    )


# Reporting


def take_report(state: Holder, report: StreamReport, given: Reported) -> HeldStream | None:
    """Note a report of the session, to be sent until it is durable; None where nothing is held."""
    held = held_under(state, report.stream, report.grant_epoch)
    if held is not None:
        merge_report(held, report, final=given.final)
        send_again_later(state, held, given.now_ms)
    return held


def send_again_later(state: Holder, held: HeldStream, now_ms: int) -> None:
    """A report is sent for the first time: set when it is sent again, if it is not durable."""
    held.resend_ms = RESEND_FIRST_MS
    state.timers.set(held.report.stream, now_ms + RESEND_FIRST_MS)


def take_resend(state: Holder, stream: StreamId, now_ms: int) -> HeldStream | None:
    """A report is sent again, and the next time after twice as long; None if it is not held."""
    held = state.streams.get(stream)
    if held is not None:
        held.resend_ms = min(2 * held.resend_ms, state.lease_ms // 4)
        state.timers.set(stream, now_ms + held.resend_ms)
    return held


def note_saved(state: Holder, message: ProgressSaved, now_ms: int, effects: Effects) -> None:
    """Some progress is durable; a report that says no more than that is not sent again."""
    held = held_under(state, message.stream, message.grant_epoch)
    if held is None:
        return
    if not held.finished and _says_no_more(held.report, message):
        state.timers.clear(message.stream)
    saved = message.progress, message.queues
    effects.append(ProgressDurable(message.stream, message.grant_epoch, *saved))


def _says_no_more(report: StreamReport, message: ProgressSaved) -> bool:
    saved = message.progress
    if saved != report.progress and saved.merged(report.progress) != saved:
        return False
    return all(map(QueueState.covers, message.queues, report.queues))


# Giving up


def finish(held: HeldStream, deadline_ms: int, effects: Effects) -> None:
    """Stop the delivery of a stream, unless it was stopped before."""
    if not held.revoking:
        held.revoking = True
        report = held.report
        effects.append(RevokeStream(report.stream, report.grant_epoch, deadline_ms))


def revoked(state: Holder, message: Revoked, now_ms: int, effects: Effects) -> None:
    """The leader took the stream back, and says which progress is durable. Always answer it."""
    if held_under(state, message.stream, message.grant_epoch) is not None:
        effects.append(
            ProgressDurable(message.stream, message.grant_epoch, message.progress, message.queues)
        )
    release(state, message.stream, message.grant_epoch, effects)


def release(state: Holder, stream: StreamId, grant_epoch: int, effects: Effects) -> None:
    """Drop the stream under this grant or an older one, and tell the leader so."""
    forget_up_to(state, stream, grant_epoch, "revoked", effects)
    answer_finished(state, stream, grant_epoch, effects)


def forget_up_to(
    state: Holder, stream: StreamId, grant_epoch: int, reason: str, effects: Effects
) -> None:
    """From now on no grant of the stream up to that epoch is held."""
    held = state.streams.get(stream)
    if held is not None and held.report.grant_epoch <= grant_epoch:
        drop(state, stream, reason, effects)
    state.ended_epochs[stream] = max(state.ended_epochs.get(stream, 0), grant_epoch)


def drop(state: Holder, stream: StreamId, reason: str, effects: Effects) -> None:
    """Forget a stream; its grant never comes back."""
    grant_epoch = state.streams.pop(stream).report.grant_epoch
    state.ended_epochs[stream] = max(state.ended_epochs.get(stream, 0), grant_epoch)
    state.timers.clear(stream)
    effects.append(DropStream(stream, grant_epoch, reason))


def answer_finished(state: Holder, stream: StreamId, grant_epoch: int, effects: Effects) -> None:
    """Tell the leader that a grant is not held."""
    answer = RevokeFinished(state.borrower_id, state.leader_epoch, stream, grant_epoch)
    effects.append(SendToLeader(answer))


def answer_if_over(state: Holder, granted: GrantedStream, effects: Effects) -> None:
    """Answer a grant that came after its end: it is not held."""
    if granted.grant_epoch <= state.ended_epochs.get(granted.stream, 0):
        answer_finished(state, granted.stream, granted.grant_epoch, effects)
