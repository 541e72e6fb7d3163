"""A rebalance: who shall get which stream, and the moves that follow.

docs/protocol.md, "Allocation". Shares are computed at once, by `allocation`; that costs s log s for
s streams. Moves are begun in portions, one in each step, as a step must stay short: beginning a
move costs more than computing it. If there is more than one portion, the first one has a step of
its own too. Everything else goes on between portions. As soon as something asks for another
rebalance, no more streams are taken from members, and that rebalance drops the moves that were not
begun. Invariant: while moves are left, `Alarm.MOVE` is set. A move whose stream or taker is gone is
void: their end has asked for another rebalance.
"""

from collections.abc import Mapping, Sequence

from dss_core.ids import StreamId
from dssd.limits import MOVE_AGAIN_MS, MOVES_A_STEP_MAX
from dssd.machines.leader.allocation import limited, sticky
from dssd.machines.leader.hand_over_events import HandOver
from dssd.machines.leader.hand_overs import pin
from dssd.machines.leader.hand_overs_under_way import stays
from dssd.machines.leader.lent_stream import NOT_LENT, LentStream, StreamState
from dssd.machines.leader.shard_allocation import Situation, by_shard
from dssd.machines.leader.sharding import is_outdated, slice_anew
from dssd.machines.leader.slicing import Slicing
from dssd.machines.leader.state import Alarm, KeptFor, Leader, owner_of
from dssd.machines.leader.stream_acts import lend, rebalance_by, turn_stream
from dssd.machines.leader.stream_events import RevokeDecided
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.messages import BorrowerId, SessionId


def rebalance_if_due(turn: LeaderTurn) -> None:
    """If a rebalance is due, compute shares and begin to move."""
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
    if state.reserve is KeptFor.FOR_SESSIONS:
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
    reserved = state.reserve is not KeptFor.NOTHING
    if reserved and not any(lent.reserved for lent in state.streams.values()):
        state.reserve = KeptFor.NOTHING
        state.timers.clear(Alarm.RESERVE)
    if state.reserve is KeptFor.NOTHING:
        if state.hand_overs.postponed:
            # Postponed instructions begin in the next step, and change the shares.
            rebalance_by(turn, turn.now_ms)
            return
        _void_pins(turn)
    now = _sharing(state)
    moves = _shared_out(now, state.shards.slicing)
    state.moves.extend(moves.items())
    if state.shards.former:
        state.moves.extend(
            (stream, owner)
            for stream, owner in now.owners.items()
            if stream not in moves and is_outdated(state, state.streams[stream])
        )
    if len(state.moves) > MOVES_A_STEP_MAX:
        # Computing so many moves took long enough; they begin in the next step.
        state.timers.set(Alarm.MOVE, turn.now_ms + MOVE_AGAIN_MS)
    else:
        begin_moves(turn)


def share_by(turn: LeaderTurn, slicing: Slicing | None) -> None:
    """Cut the streams into these shards, and rebalance if the number of shards changed."""
    before = turn.state.shards.slicing
    slice_anew(turn.state, slicing)
    if (before and before.of) != (slicing and slicing.of):
        # Cutting many anew takes its time too.
        later_ms = MOVE_AGAIN_MS if len(turn.state.streams) > MOVES_A_STEP_MAX else 0
        rebalance_by(turn, turn.now_ms + later_ms)


def _shared_out(
    now: Situation, slicing: Slicing | None, moves_max: int | None = None
) -> dict[StreamId, BorrowerId]:
    """The streams that change owners, each with its new owner."""
    if slicing is not None:
        return by_shard(now, slicing.lanes_of(now.streams), moves_max)
    streams, members, owners, pins, _ = now
    if moves_max is None:
        return sticky(streams, members, owners, pins)
    return limited(streams, members, owners, pins, moves_max=moves_max)


def _void_pins(turn: LeaderTurn) -> None:
    state = turn.state
    pinned = [lent for lent in state.streams.values() if lent.pinned_session_id is not None]
    for lent in pinned:
        if lent.pinned_session_id is not None and not stays(state, lent.pinned_session_id):
            pin(turn, lent, None)
    if pinned and state.shards.slicing is not None:
        for mates in state.shards.slicing.lanes_of(sorted(each.stream for each in pinned)).values():
            _void_rivals(turn, [state.streams[each] for each in mates])


def _void_rivals(turn: LeaderTurn, mates: Sequence[LentStream]) -> None:
    """A new number of shards may join streams with different pins in one shard: keep one pin."""
    pinned = [
        each for each in mates if each.pinned_session_id is not None and each.state not in NOT_LENT
    ]
    for each in pinned[1:]:
        if each.pinned_session_id != pinned[0].pinned_session_id:
            pin(turn, each, None)


def planned_hand_overs(state: Leader, moves_max: int) -> tuple[HandOver, ...]:
    """What a rebalance of so many moves would do now; changes nothing."""
    now = _sharing(state)
    return _hand_overs(now, _shared_out(now, state.shards.slicing, moves_max))


def planned_shares(state: Leader, slicing: Slicing | None) -> tuple[HandOver, ...]:
    """What cutting the streams anew would move now; changes nothing."""
    now = _sharing(state)
    return _hand_overs(now, _shared_out(now, slicing))


def _hand_overs(now: Situation, moves: Mapping[StreamId, BorrowerId]) -> tuple[HandOver, ...]:
    return tuple(HandOver(stream, now.owners.get(stream), moves[stream]) for stream in moves)


def _sharing(state: Leader) -> Situation:
    """The situation to share out: streams, members that stay, owners, pins."""
    open_streams: list[StreamId] = []
    owners: dict[StreamId, BorrowerId] = {}
    pins: dict[StreamId, BorrowerId] = {}
    last: dict[StreamId, BorrowerId] = {}
    leaving = {member.borrower_id for member in state.members.values() if member.leaving}
    streams = state.streams
    for stream in state.order:  # up to 10,000: rare attributes are looked at first
        lent = streams[stream]
        if lent.state in NOT_LENT or lent.reserved:
            continue
        if lent.sealed_end is not None and lent.is_to_rehome():
            continue
        if lent.state is StreamState.FREE:
            owner = None
        else:
            owner = lent.holder if lent.state is StreamState.GRANTED else owner_of(lent)
        if owner in leaving:
            # A leaving member gives the stream back, and it is shared out then.
            continue
        open_streams.append(stream)
        if owner is not None:
            owners[stream] = owner
        elif lent.heir or lent.holder:
            last[stream] = lent.heir or lent.holder or b""
        if lent.pinned_session_id is not None:
            pinned_to = _pinned_to(state, lent, owner)
            if pinned_to is not None:
                pins[stream] = pinned_to
    staying = tuple(member for member in state.members if member not in leaving)
    return Situation(open_streams, staying, owners, pins, last)


def _pinned_to(state: Leader, lent: LentStream, owner: BorrowerId | None) -> BorrowerId | None:
    """The member of the pinned session that keeps the stream: its owner, if it is one of them."""
    if lent.pinned_session_id is None:
        return None
    of_session = state.sessions.get(lent.pinned_session_id, {})
    staying = [each for each in of_session if not state.members[each].leaving]
    return owner if owner in staying else min(staying, default=None)


def _begin_move(turn: LeaderTurn, stream: StreamId, taker: BorrowerId) -> None:
    state = turn.state
    lent, member = state.streams.get(stream), state.members.get(taker)
    if lent is None or member is None or member.leaving:
        return
    if owner_of(lent) == taker and not is_outdated(state, lent):
        return
    if lent.state is StreamState.FREE:
        lend(turn, lent, member)
    elif state.timers.at_ms(Alarm.REBALANCE) is not None:
        # A rebalance is due: by now the holder may have less than its share.
        return
    elif state.reserve is KeptFor.NOTHING or lent.state not in (
        StreamState.GRANTING,
        StreamState.GRANTED,
    ):
        turn_stream(turn, lent, RevokeDecided(taker))
