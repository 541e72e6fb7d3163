"""Which operations on members and grants are under way at a leader, and when each is done.

A hand-over is done when the stream is granted to a member of the taker's session, and its change of
the grant's row is durable. It is *void* once it cannot come to that: its stream or its taker is
gone, or the stream goes to somebody else. An eviction is done when the member is gone, however it
went. Invariant: `HandOvers.unended` has the number of an operation exactly while one of its
hand-overs is neither done nor void; after the last one the leader says `Concluded`. This module
does not know what begins a hand-over (`hand_overs`) or an eviction (`evictions`).
"""

from dss_core.ids import StreamId
from dssd.machines.leader.events import Concluded
from dssd.machines.leader.lent_stream import NOT_LENT, LentStream, StreamState
from dssd.machines.leader.operated_state import OpenHandOver
from dssd.machines.leader.state import Leader, Member, owner_of
from dssd.machines.leader.stream_events import Saved, StreamEvent
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.messages import SessionId


def open_hand_over(turn: LeaderTurn, lent: LentStream, opened: OpenHandOver) -> None:
    """Wait for a hand-over. It voids an earlier one of the stream by another operation."""
    hand_overs = turn.state.hand_overs
    before = hand_overs.open.get(lent.stream)
    hand_overs.open[lent.stream] = opened
    hand_overs.unended.setdefault(opened.number, set()).add(lent.stream)
    if before is not None and before.number != opened.number:
        end_hand_over(turn, before.number, lent.stream)
    _judge(turn, lent)


def note_stream(turn: LeaderTurn, lent: LentStream, event: StreamEvent) -> None:
    """The stream took an event."""
    opened = turn.state.hand_overs.open.get(lent.stream)
    if opened is None:
        return
    if isinstance(event, Saved) and not lent.grant_unsaved:
        opened.saved = True
    _judge(turn, lent)


def note_taker_left(turn: LeaderTurn, member: Member) -> None:
    """The member is gone, or takes nothing more."""
    state, session_id = turn.state, member.session_id
    found = state.hand_overs.open.items()
    for stream in [each for each, opened in found if opened.session_id == session_id]:
        _judge(turn, state.streams[stream])


def note_evicted(turn: LeaderTurn, member: Member) -> None:
    """The member is gone."""
    evictions = turn.state.evictions
    eviction = evictions.by_member.pop(member.borrower_id, None)
    if eviction is not None:
        evictions.ended[member.borrower_id] = eviction.reason
        conclude_if_evicted(turn, eviction.number)


def forget_hand_over(turn: LeaderTurn, stream: StreamId) -> None:
    """The stream is gone."""
    opened = turn.state.hand_overs.open.pop(stream, None)
    if opened is not None:
        end_hand_over(turn, opened.number, stream)


def _judge(turn: LeaderTurn, lent: LentStream) -> None:
    """End the hand-over if it is done or void."""
    opened = turn.state.hand_overs.open.get(lent.stream)
    if opened is None or _is_waiting(turn.state, lent, opened):
        return
    del turn.state.hand_overs.open[lent.stream]
    end_hand_over(turn, opened.number, lent.stream)


def _is_waiting(state: Leader, lent: LentStream, opened: OpenHandOver) -> bool:
    if opened.session_id is None:
        return not opened.saved
    if lent.state in NOT_LENT:
        return False
    owner = owner_of(lent)
    if lent.state is StreamState.FREE and state.shards.slicing is not None:
        # It waits for the rest of its shard.
        owner = lent.heir
    member = state.members.get(owner) if owner is not None else None
    if member is not None and member.session_id == opened.session_id and not member.leaving:
        return lent.state is not StreamState.GRANTED or not opened.saved
    # A pin brings the stream to its member with the next rebalance.
    is_pinned = opened.pins and lent.pinned_session_id == opened.session_id
    return is_pinned and stays(state, opened.session_id)


def stays(state: Leader, session_id: SessionId) -> bool:
    """Whether the session has a member that takes streams."""
    return any(not state.members[each].leaving for each in state.sessions.get(session_id, ()))


def end_hand_over(turn: LeaderTurn, number: int, stream: StreamId) -> None:
    """The operation waits for the stream no longer."""
    turn.state.hand_overs.unended[number].discard(stream)
    conclude_if_handed(turn, number)


def conclude_if_handed(turn: LeaderTurn, number: int) -> None:
    """Conclude the operation if none of its hand-overs is left."""
    unended = turn.state.hand_overs.unended
    if not unended.get(number):
        unended.pop(number, None)
        turn.effects.append(Concluded(number))


def conclude_if_evicted(turn: LeaderTurn, number: int) -> None:
    """Conclude the operation if no member is left that it evicts."""
    if all(each.number != number for each in turn.state.evictions.by_member.values()):
        turn.effects.append(Concluded(number))
