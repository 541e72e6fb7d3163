"""Who is a member of the group: how members stay, leave and die.

Invariants: a borrower that is gone is no member again for a lease; a member that is leaving
inherits nothing. This module does not know what members say (`receiving`), nor what they should
hold (`rebalance`).
"""

from dssd.limits import MOVES_A_STEP_MAX
from dssd.machines.leader import pausing, stream_sets
from dssd.machines.leader.events import SessionClosed
from dssd.machines.leader.hand_overs_under_way import note_evicted, note_taker_left
from dssd.machines.leader.state import Alarm, ForgetDeparted, KeptFor, Leader, Member, MemberLease
from dssd.machines.leader.stream_acts import rebalance_by, turn_stream
from dssd.machines.leader.stream_events import HolderLost
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.messages import BorrowerId


def extend_lease(turn: LeaderTurn, member: Member) -> None:
    """The member counts as dead if no message of it comes within a lease from now."""
    ends_ms = turn.now_ms + turn.state.timing.lease_ms
    turn.state.timers.set(MemberLease(member.borrower_id), ends_ms)


def note_leaving(turn: LeaderTurn, member: Member) -> None:
    """It takes nothing more, and inherits nothing."""
    if not member.leaving:
        member.leaving = True
        _disinherit(turn.state, member)
        note_taker_left(turn, member)
        rebalance_by(turn, turn.now_ms + turn.state.timing.gather_ms)


def _disinherit(state: Leader, member: Member) -> None:
    for stream in member.inherits:
        state.streams[stream].heir = None
    member.inherits.clear()


def remove_member(turn: LeaderTurn, member: Member, *, rebalance_at_ms: int) -> None:
    """The member is gone: its streams are free, and shares are computed at that time."""
    state = turn.state
    many = len(member.streams) > MOVES_A_STEP_MAX
    del state.members[member.borrower_id]
    _forget_in_session(state, member)
    if state.stream_sets is not None:
        stream_sets.leave(state.stream_sets, member.borrower_id)
    state.timers.clear(MemberLease(member.borrower_id))
    pausing.forget(turn, member.borrower_id)
    note_departed(turn, member.borrower_id)
    # The streams that this leave frees must not bring a planned rebalance forward.
    for stream in sorted(member.streams):
        turn_stream(turn, state.streams[stream], HolderLost(), place=False)
    _disinherit(state, member)
    note_taker_left(turn, member)
    note_evicted(turn, member)
    # If that was enough work for one step, shares are computed in the next.
    rebalance_by(turn, rebalance_at_ms + many)
    if not state.members:
        state.timers.set(Alarm.IDLE, turn.now_ms + state.timing.idle_ms)


def _forget_in_session(state: Leader, member: Member) -> None:
    of_session = state.sessions[member.session_id]
    del of_session[member.borrower_id]
    if not of_session:
        del state.sessions[member.session_id]


def note_departed(turn: LeaderTurn, borrower_id: BorrowerId) -> None:
    """The borrower is gone: for a lease, a late request of it does not make it a member again."""
    turn.state.departed.add(borrower_id)
    turn.state.timers.set(ForgetDeparted(borrower_id), turn.now_ms + turn.state.timing.lease_ms)


def close_session(turn: LeaderTurn, given: SessionClosed) -> None:
    """The session's borrowers are dead."""
    state = turn.state
    for borrower_id in list(state.sessions.get(given.session_id, ())):
        if given.silent_ms is not None:
            pausing.note_lost(turn, borrower_id, given.silent_ms)
        remove_member(turn, state.members[borrower_id], rebalance_at_ms=turn.now_ms)
    if given.session_id in state.leaving:
        rebalance_by(turn, turn.now_ms)
    if state.reserve is KeptFor.FOR_HOLDERS:
        for lent in state.streams.values():
            if lent.reserved and lent.session_id == given.session_id:
                if given.silent_ms is not None and lent.holder is not None:
                    pausing.note_lost(turn, lent.holder, given.silent_ms)
                turn_stream(turn, lent, HolderLost())
