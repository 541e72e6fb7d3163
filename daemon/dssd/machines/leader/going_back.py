"""A stream that was read to its end is read again, where the order of keys is kept.

Records of its keys may be out, or wait, in its *descendants*: its children, theirs, and so on. ::

    a move opens it again ──► its descendants are closed, and come back from who holds them
            │  all of them are closed
            ▼
    it is fenced ──durably──► `GoBack` ──► what waits there, and does not come behind all of its
                                           records, is appended to its queues
            │  `WentBack`
            ▼
    that it is gone from their queues is made durable ──► the move is made; it may be lent

Entries of a descendant that come behind all records of the stream stay where they are: a closed
lane is lent to nobody, and when it opens again, its index of keys has them in order. So a held key
stays held in the stream that is read again, just as in a topic that never grew.

One stream goes back at a time, the oldest first: entries that go back to it need not go back to
later ones. Invariants: until the move is made the stream counts as unfinished; once begun, going
back is completed, even if its operation is cancelled, or under the next leader, which finds the
move pending. A cancelled move is not made, and the entries that came back are re-homed once more.
This module must not know how keys are routed, nor what queues hold.
"""

from collections.abc import Iterable

from dss_core.ids import StreamId
from dssd.machines.leader.barrier_state import BackPhase, WayBack
from dssd.machines.leader.commits import mark_dirty
from dssd.machines.leader.cursor_moves import fence
from dssd.machines.leader.events import ClosedLane, CursorMove, GoBack, WentBack
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.leader.state import Holding, Leader
from dssd.machines.leader.stream_acts import turn_stream
from dssd.machines.leader.stream_ends import is_to_go_back
from dssd.machines.leader.stream_events import CameBack
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.queues import merged_queues


def take_pending(turn: LeaderTurn, moves: Iterable[CursorMove]) -> None:
    """Go on with moves that an earlier leader may have begun, before any re-homing or lending."""
    state = turn.state
    for move in moves:
        lent = state.streams.get(move.stream)
        if lent is None or lent.reserved or not is_to_go_back(lent, move):
            continue
        lent.move, lent.goes_back = move, True
        if lent.state is StreamState.FREE:
            lent.state = StreamState.CLOSED
        state.barrier.going_back.add(lent.stream)


def go_on(turn: LeaderTurn) -> None:
    """At the end of a step: begin the next phase, if the present one is over."""
    barrier = turn.state.barrier
    while barrier.back is not None or barrier.going_back:
        if barrier.back is None:
            stream = min(barrier.going_back)
            barrier.back = WayBack(stream, _descendants(turn.state, stream))
        if not _is_further(turn, barrier.back):
            return


def _descendants(state: Leader, stream: StreamId) -> tuple[StreamId, ...]:
    found: dict[StreamId, None] = {stream: None}
    waiting = [stream]
    while waiting:
        for child in state.barrier.children.get(waiting.pop(), ()):
            if child not in found:
                found[child] = None
                waiting.append(child)
    del found[stream]
    return tuple(sorted(found))


def _is_further(turn: LeaderTurn, back: WayBack) -> bool:
    """Begin the next phase if this one is over; returns whether it did."""
    match back.phase:
        case BackPhase.CLOSING:
            return _close(turn, back)
        case BackPhase.FENCING:
            return _begin(turn, back)
        case BackPhase.SAVING:
            return _end(turn, back)
        case BackPhase.MOVING:
            return False


def _close(turn: LeaderTurn, back: WayBack) -> bool:
    state = turn.state
    while back.waits_for and state.streams[back.waits_for[-1]].state is StreamState.CLOSED:
        back.waits_for.pop()
    if back.waits_for or state.holding is not Holding.NOTHING:
        return False
    lent = state.streams[back.stream]
    fence(lent)
    back.grant_epoch = lent.grant_epoch
    mark_dirty(turn, lent.stream)
    state.urgent = True
    back.phase = BackPhase.FENCING
    return True


def _begin(turn: LeaderTurn, back: WayBack) -> bool:
    state = turn.state
    if _are_unsaved(state, (back.stream, *back.lanes)):
        return False
    lanes = tuple(
        ClosedLane(lent.stream, lent.grant_epoch, lent.progress, lent.queues)
        for lent in map(state.streams.__getitem__, back.lanes)
        if lent.queues
    )
    queues = state.streams[back.stream].queues
    turn.effects.append(GoBack(back.stream, back.grant_epoch, queues, lanes))
    back.phase = BackPhase.MOVING
    return False


def take_went_back(turn: LeaderTurn, given: WentBack) -> None:
    """The entries of descendants that had to go back are in the stream's queues."""
    state, back = turn.state, turn.state.barrier.back
    if back is None or (back.stream, back.grant_epoch) != (given.stream, given.grant_epoch):
        return
    for stream, queues in given.lanes:
        lent = state.streams[stream]
        lent.queues = merged_queues(lent.queues, queues)
        mark_dirty(turn, stream)
        state.urgent = True
    back.phase = BackPhase.SAVING


def _end(turn: LeaderTurn, back: WayBack) -> bool:
    state = turn.state
    if _are_unsaved(state, back.lanes):
        return False
    state.barrier.back = None
    state.barrier.going_back.discard(back.stream)
    turn_stream(turn, state.streams[back.stream], CameBack())
    return True


def _are_unsaved(state: Leader, streams: Iterable[StreamId]) -> bool:
    committing = {each.stream for each in state.in_flight}
    return any(stream in state.dirty or stream in committing for stream in streams)


def forget(turn: LeaderTurn, stream: StreamId) -> None:
    """The stream is gone; a way back that involves it begins anew."""
    barrier = turn.state.barrier
    barrier.going_back.discard(stream)
    if barrier.back is not None and stream in (barrier.back.stream, *barrier.back.lanes):
        barrier.back = None


def is_under_way(state: Leader) -> bool:
    """Whether entries are being moved from one lane's queues to another's."""
    back = state.barrier.back
    return back is not None and back.phase is not BackPhase.CLOSING
