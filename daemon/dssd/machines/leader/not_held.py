"""The states of a stream that nobody may hold: finished, closed, or re-homing; see `stream_ends`.

`stream` has the other states. Invariant: an answer to a `Rehome` counts only under the grant epoch
of the request; appends under an older epoch are refused. A stream that goes back is finished or
closed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from dssd.machines.leader.lent_stream import LentStream, StreamState
from dssd.machines.leader.stream_ends import (
    ask_move_revoked,
    cancel_move,
    close,
    end,
    finish,
    go_back,
    ignore,
    invalidate,
    is_to_go_back,
    note_saved,
    open_up,
    rehome,
    saved_free,
    seal,
    take_move,
)
from dssd.machines.leader.stream_events import (
    Act,
    Acts,
    CameBack,
    GrantDecided,
    HolderLost,
    MoveAsked,
    MoveCancelled,
    Overdue,
    ParentsJudged,
    QueuesRehomed,
    Released,
    Reported,
    ResendDue,
    ReserveEnded,
    RevokeDecided,
    Saved,
    Sealed,
    StreamEvent,
)
from dssd.machines.queues import out_of_sight


def _ask_move_finished(state: LentStream, event: MoveAsked) -> Acts:
    return _move_finished(state) if take_move(state, event) else ()


def _move_finished(state: LentStream) -> Acts:
    """Make the move. One about entries of its queues is cancelled: the entries are with the
    children now, under other offsets."""
    move = state.move
    assert move is not None
    if state.keeps_order and (move.redriven or move.discarded or move.errand):
        return cancel_move(state, MoveCancelled(move.number))
    return go_back(state) if is_to_go_back(state, move) else end(state)


def _ask_move_closed(state: LentStream, event: MoveAsked) -> Acts:
    """A stream that was finished before it was closed may have entries in its children's queues."""
    if not take_move(state, event):
        return ()
    return go_back(state) if is_to_go_back(state, event.move) else end(state)


def _cancel_move(state: LentStream, event: MoveCancelled) -> Acts:
    """While the stream goes back, only note the cancellation: some entries may be back already,
    and are re-homed again afterwards."""
    if not state.goes_back or state.move is None or state.move.number != event.number:
        return cancel_move(state, event)
    state.move = replace(state.move, cancelled=True)
    return ()


def _come_back(state: LentStream, event: CameBack) -> Acts:
    """The way back is complete: make the move, or, if it was cancelled, re-home the entries."""
    state.goes_back = state.finish_saved = False
    # Entries may have been appended to its queues.
    state.queues = out_of_sight(state.queues)
    if state.move is not None and state.move.cancelled:
        cancel_move(state, MoveCancelled(state.move.number))
    return (Act.SAVE_NOW, *end(state))


def _saved_rehoming(state: LentStream, event: Saved) -> Acts:
    acts = note_saved(state, event)
    if state.durable or not event.current or event.grant_epoch != state.grant_epoch:
        return acts
    state.durable = True
    return (*acts, Act.REHOME)


def _saved_finished(state: LentStream, event: Saved) -> Acts:
    acts = note_saved(state, event)
    if state.finish_saved or not (event.current and state.keeps_order):
        return acts
    state.finish_saved = True
    return (*acts, Act.JUDGE_CHILDREN)


def _judge_closed(state: LentStream, event: ParentsJudged) -> Acts:
    if not (event.closed or state.goes_back):
        return open_up(state)
    state.is_closed = event.closed
    return ()


def _judge_rehoming(state: LentStream, event: ParentsJudged) -> Acts:
    """Begin the re-homing anew, which fences the one under way. A closed stream is re-homed too:
    some of its entries may be with its children."""
    state.is_closed = event.closed
    return rehome(state) if event.closed else end(state)


def _judge_finished(state: LentStream, event: ParentsJudged) -> Acts:
    state.is_closed = event.closed
    return close(state) if event.closed else ()


def _take_rehomed(state: LentStream, event: QueuesRehomed) -> Acts:
    if event.grant_epoch != state.grant_epoch:
        return ()
    state.queues = event.queues
    acts = (Act.SAVE_NOW, *finish(state))
    if state.is_closed:
        acts = (*acts, *close(state))
    return acts if state.move is None else (*acts, *_move_finished(state))


_S = StreamState

NOT_HELD: Mapping[tuple[StreamState, type[StreamEvent]], Callable[..., Acts]] = {
    (_S.FINISHED, GrantDecided): ignore,
    (_S.FINISHED, Reported): invalidate,
    (_S.FINISHED, RevokeDecided): ignore,
    (_S.FINISHED, MoveAsked): _ask_move_finished,
    (_S.FINISHED, MoveCancelled): _cancel_move,
    (_S.FINISHED, Released): ignore,
    (_S.FINISHED, HolderLost): ignore,
    (_S.FINISHED, ReserveEnded): ignore,
    (_S.FINISHED, Overdue): ignore,
    (_S.FINISHED, ResendDue): ignore,
    (_S.FINISHED, Saved): _saved_finished,
    (_S.FINISHED, Sealed): ignore,
    (_S.FINISHED, ParentsJudged): _judge_finished,
    (_S.FINISHED, QueuesRehomed): ignore,
    (_S.FINISHED, CameBack): _come_back,
    (_S.CLOSED, GrantDecided): ignore,
    (_S.CLOSED, Reported): invalidate,
    (_S.CLOSED, RevokeDecided): ignore,
    (_S.CLOSED, MoveAsked): _ask_move_closed,
    (_S.CLOSED, MoveCancelled): _cancel_move,
    (_S.CLOSED, Released): ignore,
    (_S.CLOSED, HolderLost): ignore,
    (_S.CLOSED, ReserveEnded): ignore,
    (_S.CLOSED, Overdue): ignore,
    (_S.CLOSED, ResendDue): ignore,
    (_S.CLOSED, Saved): saved_free,
    (_S.CLOSED, Sealed): seal,
    (_S.CLOSED, ParentsJudged): _judge_closed,
    (_S.CLOSED, QueuesRehomed): ignore,
    (_S.CLOSED, CameBack): _come_back,
    (_S.REHOMING, GrantDecided): ignore,
    (_S.REHOMING, Reported): invalidate,
    (_S.REHOMING, RevokeDecided): ignore,
    (_S.REHOMING, MoveAsked): ask_move_revoked,
    (_S.REHOMING, MoveCancelled): cancel_move,
    (_S.REHOMING, Released): ignore,
    (_S.REHOMING, HolderLost): ignore,
    (_S.REHOMING, ReserveEnded): ignore,
    (_S.REHOMING, Overdue): ignore,
    (_S.REHOMING, ResendDue): ignore,
    (_S.REHOMING, Saved): _saved_rehoming,
    (_S.REHOMING, Sealed): ignore,
    (_S.REHOMING, ParentsJudged): _judge_rehoming,
    (_S.REHOMING, QueuesRehomed): _take_rehomed,
    (_S.REHOMING, CameBack): ignore,
}
