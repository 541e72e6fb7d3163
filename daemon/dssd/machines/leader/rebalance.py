"""A rebalance: who shall get which stream, and the moves that follow.

docs/protocol.md, "Allocation". Shares are computed at once, by `allocation`; that costs s log s for
s streams. Moves are begun in portions, one a step: each costs more than its part of the
computation, and a step must stay short. Everything else goes on between portions. As soon as
something asks for another rebalance, no stream is taken from a member any more, and that rebalance
drops the moves that were not begun. Invariant: while moves are left, `Alarm.MOVE` is set. A move
whose stream or taker is gone is void: what took it away has asked for a rebalance.
"""

from dss_core.ids import StreamId
from dssd.limits import MOVE_AGAIN_MS, MOVES_A_STEP_MAX
from dssd.machines.leader.allocation import sticky
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.leader.state import Alarm, Leader, Reserve, owner_of
from dssd.machines.leader.stream_acts import lend, turn_stream
from dssd.machines.leader.stream_events import RevokeDecided
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.messages import BorrowerId, SessionId


def rebalance_if_due(turn: LeaderTurn) -> None:
    """Compute shares and begin to move, where a rebalance is due."""
    state = turn.state
    at_ms = state.timers.at_ms(Alarm.REBALANCE)
    if at_ms is None or at_ms > turn.now_ms:
        return
    state.timers.clear(Alarm.REBALANCE)
    state.timers.clear(Alarm.MOVE)
    state.rebalanced_ms = turn.now_ms
    state.leaving.clear()
    state.moves.clear()
    state.returning = False
    if not state.members:
        return
    if state.reserve is Reserve.FOR_SESSIONS:
        state.moves.extend(_returns(state))
        state.returning = True
        begin_moves(turn)
    else:
        _share(turn)


def begin_moves(turn: LeaderTurn) -> None:
    """Begin as many moves as a step may; after the last return, shares are computed."""
    state = turn.state
    for _ in range(min(len(state.moves), MOVES_A_STEP_MAX)):
        _begin_move(turn, *state.moves.popleft())
    if state.moves:
        state.timers.set(Alarm.MOVE, turn.now_ms + MOVE_AGAIN_MS)
    elif state.returning:
        state.returning = False
        _share(turn)


def _returns(state: Leader) -> list[tuple[StreamId, BorrowerId]]:
    """Streams that are kept for sessions that are here again."""
    present: dict[SessionId | None, BorrowerId] = {}
    for borrower_id in sorted(state.members, reverse=True):
        member = state.members[borrower_id]
        if not member.leaving:
            present[member.session_id] = borrower_id
    kept = [stream for stream in state.order if state.streams[stream].reserved]
    sessions = [(stream, state.streams[stream].session_id) for stream in kept]
    return [(stream, present[session]) for stream, session in sessions if session in present]


def _share(turn: LeaderTurn) -> None:
    state = turn.state
    reserved = state.reserve is not Reserve.NOTHING
    if reserved and not any(lent.reserved for lent in state.streams.values()):
        state.reserve = Reserve.NOTHING
        state.timers.clear(Alarm.RESERVE)
    state.moves.extend(_shares(state).items())
    begin_moves(turn)


def _shares(state: Leader) -> dict[StreamId, BorrowerId]:
    open_streams: list[StreamId] = []
    owners: dict[StreamId, BorrowerId] = {}
    leaving = {member.borrower_id for member in state.members.values() if member.leaving}
    for stream in state.order:
        lent = state.streams[stream]
        if lent.state is StreamState.FINISHED or lent.reserved:
            continue
        owner = owner_of(lent)
        if owner in leaving:
            # It comes back by itself, and is shared out then.
            continue
        open_streams.append(stream)
        if owner is not None:
            owners[stream] = owner
    staying = tuple(member for member in state.members if member not in leaving)
    return sticky(open_streams, staying, owners)


def _begin_move(turn: LeaderTurn, stream: StreamId, taker: BorrowerId) -> None:
    state = turn.state
    lent, member = state.streams.get(stream), state.members.get(taker)
    if lent is None or member is None or member.leaving or owner_of(lent) == taker:
        return
    if lent.state is StreamState.FREE:
        lend(turn, lent, member)
    elif state.timers.at_ms(Alarm.REBALANCE) is not None:
        # Something changed since: its holder may have less than its share by now.
        return
    elif state.reserve is Reserve.NOTHING or lent.state not in (
        StreamState.GRANTING,
        StreamState.GRANTED,
    ):
        turn_stream(turn, lent, RevokeDecided(taker))
