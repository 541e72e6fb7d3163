"""What becomes of a stream once nobody holds it: free, finished, closed, or re-homed.

::

                       its parents are finished
    closed ─────────────────────────┬──────────► free, to be lent
      ▲                             │
      │ a parent is not             │ its records are all acknowledged, or in its queues
      │                             ▼
    nobody holds it              rehoming ──children have what was in its queues──► finished
                                                                                      │ durably
                                                            its children are judged ◄─┘

This keeps the order of keys over growth: records of a key are sent from a child only once its
parent has none of the key left to send. In groups that do not keep the order, a stream has no
parents. A finished stream is read again if a cursor goes back into it: `going_back`. Invariants: a
closed stream is never finished, however empty it is, so its children stay closed too; a lane that
is being re-homed is never lent again, not even by the next leader, as its children may have some of
its entries; a stream that goes back makes its move once all is back, not before.
"""

from dss_core.lane import DEAD
from dssd.machines.leader.cursor_moves import fence, make_move, moved
from dssd.machines.leader.events import CancelledMove, CursorMove
from dssd.machines.leader.lent_stream import LentStream, StreamState
from dssd.machines.leader.stream_events import (
    Act,
    Acts,
    MoveAsked,
    MoveCancelled,
    Reported,
    Saved,
    Sealed,
)
from dssd.machines.messages import Stall
from dssd.machines.queues import (
    asked_of_holder,
    have_been_asked,
    merged_queues,
    out_of_sight,
    without_asked,
)


def end(state: LentStream) -> Acts:
    """Nobody holds the stream, and it is kept for nobody: choose its next state."""
    state.stall = Stall.NONE
    state.grant_unsaved = True
    save = Act.SAVE_SOON if state.move is None else Act.SAVE_NOW
    if not state.goes_back:
        make_move(state)
    if state.is_closed:
        return (save, *close(state))
    if state.is_over():
        return (save, *finish(state))
    if state.is_to_rehome():
        return rehome(state)
    state.state = StreamState.FREE
    return (save, Act.PLACE)


def finish(state: LentStream) -> Acts:
    """Nothing is left of it."""
    state.state = StreamState.FINISHED
    state.heir = None
    state.reserved = False
    # Its children wait for it.
    return (Act.SAVE_NOW, Act.SHARE_ANEW) if state.keeps_order else (Act.SHARE_ANEW,)


def close(state: LentStream) -> Acts:
    """A parent of it is not finished, or no longer. Its last holder is fenced: it cannot append to
    the queues any more, nor come back for the stream. What an operation asked of who holds it is
    left undone: the operation ends, and says so. Else it would run until the stream opens, and
    keep away the one that the parent may need."""
    was_finished, state.finish_saved = state.finish_saved, False
    was_lent = state.grant_epoch > 0 and state.state is not StreamState.CLOSED
    is_asked = bool(asked_of_holder(state.queues))
    if was_lent:
        fence(state)
    if is_asked:
        state.queues = without_asked(state.queues)
    state.state = StreamState.CLOSED
    state.heir = None
    state.reserved = False
    if was_finished:
        return (Act.SAVE_NOW, Act.JUDGE_CHILDREN)
    return (Act.SAVE_NOW,) if was_lent or is_asked else ()


def rehome(state: LentStream) -> Acts:
    """Move the entries of its queues to its children, once it is durable that nobody holds it."""
    fence(state)
    state.state = StreamState.REHOMING
    state.heir = None
    state.unmeasured = False
    state.durable = False
    return (Act.SAVE_NOW,)


def open_up(state: LentStream) -> Acts:
    """All parents are finished. Their re-homing may have appended to its queues."""
    state.is_closed = False
    state.queues = out_of_sight(state.queues)
    return end(state)


def is_to_go_back(state: LentStream, move: CursorMove) -> bool:
    """Whether the move reopens a stream that was read to its end: then its children may hold
    records of its keys that have to be sent after those that it reopens."""
    if not (state.keeps_order and state.is_read()):
        return False
    return moved(state.progress, move).floor < (state.sealed_end or 0)


def go_back(state: LentStream) -> Acts:
    """Make the move only once nobody holds a descendant, and its entries there are back."""
    if state.goes_back:
        return ()
    state.goes_back = True
    return (Act.JUDGE_CHILDREN,)


def take_move(state: LentStream, event: MoveAsked) -> bool:
    """Take the move, unless it was made or cancelled before; returns whether it is to be made."""
    is_made = event.move.number <= state.cursor_generation and not _goes_further(state, event.move)
    if is_made or state.move is not None:
        return False
    if event.move.number in state.cancelled_moves:
        return False
    state.move = event.move
    return True


def _goes_further(state: LentStream, move: CursorMove) -> bool:
    """Whether it extends or stops a redrive of the same operation that was made before."""
    if not (state.queues and move.redriven):
        return move.stops_redrive
    known = state.queues[DEAD - 1].redrive
    return known.operation == move.number and bool(known.ranges) and known.ranges != move.redriven


def ask_move_free(state: LentStream, event: MoveAsked) -> Acts:
    """Nobody holds the stream: the move is made at once."""
    if not take_move(state, event) or state.reserved:
        return ()
    return end(state)


def ask_move_revoked(state: LentStream, event: MoveAsked) -> Acts:
    """The move is made once the stream is free."""
    take_move(state, event)
    return ()


def cancel_move(state: LentStream, event: MoveCancelled) -> Acts:
    """The move is not made, unless it is made already."""
    if state.move is None or state.move.number != event.number:
        return ()
    state.move = None
    state.cancelled_moves.add(event.number)
    state.ended_move = CancelledMove(event.number)
    return (Act.SAVE_NOW,)


def note_saved(state: LentStream, event: Saved) -> Acts:
    """This progress is durable."""
    if event.grant_epoch >= state.moved_epoch:
        state.saved = state.saved.merged(event.progress)
        state.saved_queues = merged_queues(state.saved_queues, event.queues)
    if event.grant_epoch == state.grant_epoch and event.measured_end is not None:
        state.suspect_end = max(state.suspect_end, event.measured_end)
        state.unmeasured = False
    return (Act.NOTE_MOVED,) if event.moved_by or have_been_asked(state.saved_queues) else ()


def saved_free(state: LentStream, event: Saved) -> Acts:
    """This progress is durable, and nobody waits for it."""
    return note_saved(state, event)


def seal(state: LentStream, event: Sealed) -> Acts:
    """The stream ends there."""
    state.sealed_end = event.end
    return ()


def invalidate(state: LentStream, event: Reported) -> Acts:
    """The borrower that reports does not hold it any more."""
    return (Act.SEND_INVALIDATE,)


def ignore(state: LentStream, event: object) -> Acts:
    """Nothing happens, and that is meant."""
    return ()
