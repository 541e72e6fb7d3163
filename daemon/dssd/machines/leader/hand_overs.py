"""How operations let streams change their owners: rebalance, transfer, revoke, unpin.

Each hand-over is the orderly one of a rebalance: revoke with an heir, final report, grant. Rules:

1. A hand-over of a rebalance is begun only if the stream has the owner that was planned. They are
   begun in portions, as those of the leader's own rebalances are.
2. A transfer *pins* the stream to the taker's session, durably, with its grant. Allocation leaves
   a pinned stream with a member of that session, and counts it. The pin is void once shares are
   computed without a member of it. Where streams are shared out by shards, a whole shard goes, and
   is pinned.
3. A revoke gives the stream to the member that was planned, else to the other one that has the
   fewest, and pins it there: the next rebalance might hand it straight back otherwise.
4. While streams are kept for their last holders (`Leader.reserve`), hand-overs wait: the owner or
   the taker may not be back yet.
5. A cancellation drops hand-overs that were not begun. One that is under way is completed, because
   the holder may have let go of its stream already.

Invariant: an operation that is under way already is not begun again. This module does not know when
a hand-over is done (`hand_overs_under_way`).
"""

from collections import deque

from dssd.limits import MOVE_AGAIN_MS, MOVES_A_STEP_MAX
from dssd.machines.leader.commits import mark_dirty
from dssd.machines.leader.hand_over_events import (
    CancelHandOvers,
    HandOver,
    HandOverInstruction,
    Rebalance,
    RevokeGrant,
    TransferGrant,
    Unpin,
)
from dssd.machines.leader.hand_overs_under_way import (
    conclude_if_handed,
    end_hand_over,
    open_hand_over,
)
from dssd.machines.leader.lent_stream import NOT_LENT, LentStream, StreamState
from dssd.machines.leader.operated_state import OpenHandOver
from dssd.machines.leader.state import Alarm, KeptFor, Leader, Member, owner_of
from dssd.machines.leader.stream_acts import lend, turn_stream
from dssd.machines.leader.stream_events import RevokeDecided
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.messages import BorrowerId, SessionId


def is_postponed(turn: LeaderTurn, asked: HandOverInstruction) -> bool:
    """Whether the hand-over has to wait, or is under way already."""
    state = turn.state
    if state.reserve is not KeptFor.NOTHING:
        state.hand_overs.postponed[asked.number] = asked
        return True
    return asked.number in state.hand_overs.unended


def rebalance(turn: LeaderTurn, asked: Rebalance) -> None:
    """Begin the hand-overs that were planned."""
    if is_postponed(turn, asked):
        return
    moves = {move.stream: move for move in asked.moves}
    hand_overs = turn.state.hand_overs
    hand_overs.unended[asked.number] = set(moves)
    hand_overs.asked.extend((asked.number, move) for move in moves.values())
    conclude_if_handed(turn, asked.number)
    begin_hand_overs(turn)


def begin_hand_overs(turn: LeaderTurn) -> None:
    """Begin as many as a step may."""
    asked = turn.state.hand_overs.asked
    for _ in range(min(len(asked), MOVES_A_STEP_MAX)):
        _begin(turn, *asked.popleft())
    if asked:
        turn.state.timers.set(Alarm.HAND_OVER, turn.now_ms + MOVE_AGAIN_MS)


def _begin(turn: LeaderTurn, number: int, move: HandOver) -> None:
    state = turn.state
    lent, member = state.streams.get(move.stream), state.members.get(move.taker)
    is_void = lent is None or member is None or member.leaving or owner_of(lent) != move.giver
    if is_void or lent is None or member is None:
        end_hand_over(turn, number, move.stream)
        return
    _give(turn, lent, member)
    open_hand_over(turn, lent, OpenHandOver(number, member.session_id, pins=False))


def _give(turn: LeaderTurn, lent: LentStream, member: Member) -> None:
    if lent.state is StreamState.FREE:
        lend(turn, lent, member)
    else:
        turn_stream(turn, lent, RevokeDecided(member.borrower_id))


def transfer_grant(turn: LeaderTurn, asked: TransferGrant) -> None:
    """Pin the stream to the session, and hand it over."""
    if is_postponed(turn, asked):
        return
    lent = turn.state.streams.get(asked.stream)
    member = turn.state.members.get(asked.borrower_id)
    if member is None or member.leaving:
        member = _staying(turn.state, asked.session_id)
    if lent is None or member is None or lent.state in NOT_LENT:
        conclude_if_handed(turn, asked.number)
    else:
        for each in _together(turn.state, lent):
            _hand_to(turn, each, member, asked.number)


def revoke_grant(turn: LeaderTurn, asked: RevokeGrant) -> None:
    """Revoke the stream; it goes to the planned member, or to the one with the fewest."""
    if is_postponed(turn, asked):
        return
    state = turn.state
    lent = state.streams.get(asked.stream)
    others = [
        member
        for member in state.members.values()
        if member.session_id != asked.session_id and not member.leaving
    ]
    if lent is None or not others or _owning_session(state, lent) != asked.session_id:
        conclude_if_handed(turn, asked.number)
        return
    taker = min(others, key=lambda each: _fitness(each, asked.taker))
    for each in _together(state, lent):
        if _owning_session(state, each) == asked.session_id:
            _hand_to(turn, each, taker, asked.number)


def unpin(turn: LeaderTurn, asked: Unpin) -> None:
    """Take the pin away; the stream stays where it is."""
    lent = turn.state.streams.get(asked.stream)
    if asked.number in turn.state.hand_overs.unended:
        return
    if lent is None or lent.pinned_session_id != asked.session_id:
        conclude_if_handed(turn, asked.number)
        return
    for each in _together(turn.state, lent):
        if each.pinned_session_id == asked.session_id:
            pin(turn, each, None)
            open_hand_over(turn, each, OpenHandOver(asked.number, None, pins=False))


def cancel_hand_overs(turn: LeaderTurn, asked: CancelHandOvers) -> None:
    """Drop what the operation has not begun; an eviction that was begun ends by itself."""
    state, number = turn.state, asked.number
    hand_overs = state.hand_overs
    postponed = hand_overs.postponed.get(number)
    if postponed is not None and _was_begun(state, postponed):
        return
    hand_overs.postponed.pop(number, None)
    left_out = [move for of, move in hand_overs.asked if of == number]
    hand_overs.asked = deque(each for each in hand_overs.asked if each[0] != number)
    if number in hand_overs.unended:
        hand_overs.unended[number].difference_update(move.stream for move in left_out)
    if all(each.number != number for each in state.evictions.by_member.values()):
        conclude_if_handed(turn, number)


def _was_begun(state: Leader, asked: HandOverInstruction) -> bool:
    """Whether an earlier leader has pinned the stream for it: then the pin moves the stream."""
    if not isinstance(asked, TransferGrant | RevokeGrant):
        return False
    lent = state.streams.get(asked.stream)
    pinned = None if lent is None else lent.pinned_session_id
    if isinstance(asked, TransferGrant):
        return pinned == asked.session_id
    return pinned not in (None, asked.session_id)


def pin(turn: LeaderTurn, lent: LentStream, session_id: SessionId | None) -> None:
    """Pin the stream, or take the pin away: part of the next commit."""
    lent.pinned_session_id = session_id
    lent.grant_unsaved = True
    mark_dirty(turn, lent.stream)
    turn.state.urgent = True


def _hand_to(turn: LeaderTurn, lent: LentStream, taker: Member, number: int) -> None:
    pin(turn, lent, taker.session_id)
    if _owning_session(turn.state, lent) != taker.session_id:
        _give(turn, lent, taker)
    open_hand_over(turn, lent, OpenHandOver(number, taker.session_id, pins=True))


def _together(state: Leader, lent: LentStream) -> list[LentStream]:
    """The stream, and all others of its shard in a group that is shared out by shards."""
    if state.shards.slicing is None:
        return [lent]
    mates = state.shards.lanes[state.shards.slicing.shard_of(lent.stream).number]
    found = [state.streams[mate] for mate in mates]
    return [each for each in found if each is lent or each.state not in NOT_LENT]


def _owning_session(state: Leader, lent: LentStream) -> SessionId | None:
    owner = owner_of(lent)
    member = state.members.get(owner) if owner is not None else None
    return None if member is None else member.session_id


def _staying(state: Leader, session_id: SessionId) -> Member | None:
    members = (state.members[each] for each in state.sessions.get(session_id, ()))
    return next((member for member in members if not member.leaving), None)


def _fitness(member: Member, planned: BorrowerId | None) -> tuple[bool, int, BorrowerId]:
    share = len(member.streams) + len(member.inherits)
    return member.borrower_id != planned, share, member.borrower_id
