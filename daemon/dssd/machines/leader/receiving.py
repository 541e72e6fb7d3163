"""The messages of borrowers to a leader, and what the leader does with them.

`MESSAGES` has an entry for each message of `ToLeader`. Invariant: from a borrower that is no member
only `LeaderWanted` and `Disconnect` are taken; any other message of it changes nothing. This module
does not know what a report does to a stream (`stream`), nor who should hold it (`rebalance`).
"""

from collections.abc import Callable, Iterable, Mapping

from dss_core.errors import GroupNotFound
from dssd.machines.leader import pausing, stream_sets
from dssd.machines.leader.events import Received
from dssd.machines.leader.evictions import ban_notice, eviction_notice
from dssd.machines.leader.lent_stream import LentStream
from dssd.machines.leader.members import extend_lease, note_departed, note_leaving, remove_member
from dssd.machines.leader.state import Alarm, KeptFor, Member
from dssd.machines.leader.stream_acts import invalidate, rebalance_by, turn_stream
from dssd.machines.leader.stream_events import Released, Reported, ReserveEnded
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.messages import (
    BorrowerId,
    Disconnect,
    Invalidate,
    LeaderConnectResponse,
    LeaderWanted,
    PauseObeyed,
    Ping,
    PingResponse,
    RevokeFinished,
    StreamReport,
    ToLeader,
    UpdateProgress,
    UpdateStreamStates,
)


def receive(turn: LeaderTurn, given: Received) -> None:
    """Take a message of a borrower, whether it is a member or not."""
    message = given.message
    state = turn.state
    if message.leader_epoch > state.leader_epoch:
        return
    member = state.members.get(message.borrower_id)
    if member is None and not isinstance(message, LeaderWanted | Disconnect):
        _answer_stranger(turn, message)
        return
    if member is not None:
        extend_lease(turn, member)
    MESSAGES[type(message)](turn, message)


def _answer_stranger(turn: LeaderTurn, message: ToLeader) -> None:
    state = turn.state
    if message.leader_epoch < state.leader_epoch:
        # It knows an older leader: the higher epoch makes it present what it holds.
        turn.send(
            LeaderConnectResponse(message.borrower_id, state.leader_epoch, state.timing.lease_ms)
        )
        return
    if not isinstance(message, RevokeFinished):
        _refuse(turn, _refusal(turn, message.borrower_id, "not a member"))


def _refuse(turn: LeaderTurn, refusal: Invalidate) -> None:
    """Tell a borrower to end; a late request must not make it a member."""
    note_departed(turn, refusal.borrower_id)
    turn.send(refusal)


def _refusal(turn: LeaderTurn, borrower_id: BorrowerId, reason: str) -> Invalidate:
    state = turn.state
    evicted = state.evictions.ended.get(borrower_id)
    if evicted is not None:
        return eviction_notice(state, borrower_id, evicted)
    return Invalidate(borrower_id, state.leader_epoch, reason)


def _why_not(turn: LeaderTurn, message: LeaderWanted) -> Invalidate | None:
    """The refusal for a borrower that is not admitted; None: it is."""
    state, borrower_id = turn.state, message.borrower_id
    if state.owner_session is not None and message.session_id != state.owner_session:
        return Invalidate(borrower_id, state.leader_epoch, GroupNotFound.code)
    if borrower_id not in state.evictions.ended:
        # Before the check of departed borrowers: a banned one must learn of the ban each time.
        banned = ban_notice(state, borrower_id, message.client_id)
        if banned is not None:
            return banned
    return _refusal(turn, borrower_id, "gone") if borrower_id in state.departed else None


def _admit(turn: LeaderTurn, message: LeaderWanted) -> None:
    state = turn.state
    refusal = _why_not(turn, message)
    if refusal is not None:
        _refuse(turn, refusal)
        return
    if message.borrower_id not in state.members:
        who = message.borrower_id, message.session_id, message.client_id
        member = Member(*who, turn.now_ms, message.subscription, by_shard=message.by_shard)
        state.members[member.borrower_id] = member
        state.sessions.setdefault(member.session_id, {})[member.borrower_id] = None
        state.timers.clear(Alarm.IDLE)
        extend_lease(turn, member)
        rebalance_by(turn, turn.now_ms + state.timing.gather_ms)
        pausing.tell_newcomer(turn, message)
    if state.stream_sets is not None:
        _take_presented(turn, state.stream_sets, message)
        return
    turn.send(LeaderConnectResponse(message.borrower_id, state.leader_epoch, state.timing.lease_ms))
    _take_reports(turn, message.borrower_id, message.held, final=False)


def _take_presented(turn: LeaderTurn, sets: StreamSets, message: LeaderWanted) -> None:
    presents = stream_sets.presents(sets, message)
    if presents:
        stream_sets.enter(sets, message)
    stream_sets.hear(sets, message)
    _take_reports(turn, message.borrower_id, message.held, final=False)
    if presents:
        stream_sets.adopt(turn.state, sets, message.borrower_id)


def _take_states(turn: LeaderTurn, message: UpdateStreamStates) -> None:
    sets, borrower_id = turn.state.stream_sets, message.borrower_id
    if sets is None:
        return
    if message.leaving:
        note_leaving(turn, turn.state.members[borrower_id])
    if not stream_sets.hear(sets, message):
        # It begins anew without a goodbye, so what it held is free at the end of its lease.
        turn.send(Invalidate(borrower_id, turn.state.leader_epoch, "version mismatch"))
    outdated = message.leader_epoch < turn.state.leader_epoch
    _take_reports(turn, borrower_id, message.states, final=False, outdated=outdated)
    for taken in message.taken_over:
        if stream_sets.note_taken(turn.state, sets, borrower_id, taken):
            _take_reports(turn, borrower_id, (taken.report,), final=taken.final)


def _answer_ping(turn: LeaderTurn, message: Ping) -> None:
    turn.send(PingResponse(message.borrower_id, turn.state.leader_epoch, message.sent_ms))


def _take_progress(turn: LeaderTurn, message: UpdateProgress) -> None:
    if message.leaving:
        note_leaving(turn, turn.state.members[message.borrower_id])
    outdated = message.leader_epoch < turn.state.leader_epoch
    borrower_id, final = message.borrower_id, message.final
    _take_reports(turn, borrower_id, message.reports, final=final, outdated=outdated)


def _take_reports(
    turn: LeaderTurn,
    borrower_id: BorrowerId,
    reports: Iterable[StreamReport],
    *,
    final: bool,
    outdated: bool = False,
) -> None:
    for report in reports:
        lent = turn.state.streams.get(report.stream)
        if lent is None:
            invalidate(turn, borrower_id, report.stream, report.grant_epoch, "unknown stream")
        else:
            turn_stream(turn, lent, Reported(borrower_id, report, final, outdated))
            if turn.state.stream_sets is not None:
                stream_sets.note_adopted(turn.state.stream_sets, lent, borrower_id)


def _take_release(turn: LeaderTurn, message: RevokeFinished) -> None:
    lent = turn.state.streams.get(message.stream)
    if lent is not None:
        turn_stream(turn, lent, Released(message.borrower_id, message.grant_epoch))


def _take_goodbye(turn: LeaderTurn, message: Disconnect) -> None:
    state = turn.state
    if message.silent_ms is not None:
        pausing.note_lost(turn, message.borrower_id, message.silent_ms)
    for report in message.reports:
        lent = state.streams.get(report.stream)
        if lent is None or lent.holder != message.borrower_id:
            continue
        turn_stream(turn, lent, Reported(message.borrower_id, report, final=True))
        if lent.reserved:
            _note_doubt(lent, report)
            if state.reserve is KeptFor.FOR_HOLDERS:
                turn_stream(turn, lent, ReserveEnded())
            # Else it is a late message from before the restart: the client may still hand out.
    member = state.members.get(message.borrower_id)
    if member is None:
        note_departed(turn, message.borrower_id)
    else:
        state.leaving.add(member.session_id)
        remove_member(turn, member, rebalance_at_ms=turn.now_ms + state.timing.gather_ms)


def _note_doubt(lent: LentStream, report: StreamReport) -> None:
    if report.sent is None:
        lent.unmeasured = True
    else:
        lent.suspect_end = max(lent.suspect_end, report.sent)


MESSAGES: Mapping[type[ToLeader], Callable[..., None]] = {
    LeaderWanted: _admit,
    Ping: _answer_ping,
    UpdateProgress: _take_progress,
    RevokeFinished: _take_release,
    Disconnect: _take_goodbye,
    UpdateStreamStates: _take_states,
    PauseObeyed: pausing.take_obeyed,
}
"""While leading, from a member; a stranger gets only as far as `LeaderWanted` and `Disconnect`."""
