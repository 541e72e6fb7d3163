"""One stream of a group, as its leader lends it: docs/protocol.md, "A stream at the leader".

::

              lent             reported            revoke         final report, deadline
      free ─────────► granting ─────────► granted ─────────► revoking ─────────────► revoked
       ▲ ▲               │  └──deadline──────│──final report, end reached──────────►  │ │
       │ └───────holder lost, released───────┴───────────────────┘                    │ │
       └──────────────────────────────────released, holder lost───────────────────────┘ │
    finished ◄───────the same, once the floor is at the recorded end────────────────────┘

`stream_ends` has the other states of a stream that nobody holds: closed, and re-homing.

Rules:

1. Lending raises the grant epoch; everything older is fenced by it from then on. The grant is sent
   once its epoch is durable (`Saved` with nothing changed since), `Revoked` once the final progress
   is.
2. Reports of the present epoch from the present holder are merged; progress only grows. Any other
   report is answered by an `Invalidate` of that stream and epoch, and changes nothing.
3. A grant ends *exactly* when a final report says how far records were sent. Otherwise we cannot
   know which records the consumer saw: unreported hand-outs may reach up to `suspect_end` or, if
   even that is unknown (`unmeasured`), up to the stream's end, which is measured when it is lent
   again. The stored row names the holder for as long as there is doubt, so a restart keeps it.
4. A holder that does not answer a grant or a revoke by the deadline is told `Revoked`. It may hand
   out records until it hears that, or until its lease ends; before, nobody else gets the stream.
5. A stream that is kept for its last holder (`reserved`) becomes that holder's again by a report of
   its epoch. A report that was sent to an earlier leader is merged only: the holder may have let go
   of the stream since, and would not say so again.
6. An operation moves the cursor (`cursor_moves`) once nobody holds the stream and it is not kept
   for its last holder: the leader revokes it first. A finished stream may be opened again; if its
   children may hold records of its keys, these go back to it before that (`going_back`).
7. Where the order of keys is kept, the leader also revokes a lane that is read to its end, if its
   queues may hold entries: these go to its children. And it revokes a lane whose parent is read
   again.

`step` is total over `TRANSITIONS`. It answers with acts that the leader carries out: the stream
knows neither members nor timers.
"""

from collections.abc import Callable, Mapping

from dssd.machines.attempts import merged_attempts
from dssd.machines.leader.cursor_moves import make_move
from dssd.machines.leader.lent_stream import LentStream, StreamState
from dssd.machines.leader.not_held import NOT_HELD
from dssd.machines.leader.stream_ends import (
    ask_move_free,
    ask_move_revoked,
    cancel_move,
    close,
    end,
    finish,
    ignore,
    note_saved,
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
from dssd.machines.messages import Stall, StreamReport
from dssd.machines.queues import lent_anew, merged_queues, out_of_sight


def step(state: LentStream, event: StreamEvent) -> Acts:
    """Take one event: the state is updated in place; the acts are to be done in order."""
    return TRANSITIONS[state.state, type(event)](state, event)


def _lend(state: LentStream, event: GrantDecided) -> Acts:
    # A stream that was kept for the session may have a pending move, or be closed since.
    make_move(state)
    if state.is_closed:
        return (Act.SAVE_NOW, *close(state))
    if state.is_over():
        return (Act.SAVE_NOW, *finish(state))
    if state.is_to_rehome():
        return rehome(state)
    state.state = StreamState.GRANTING
    state.grant_epoch += 1
    state.queues = lent_anew(state.queues)
    state.holder = event.borrower_id
    state.session_id = event.session_id
    state.heir = None
    state.stall = Stall.NONE
    state.reserved = False
    state.durable = False
    state.grant_unsaved = True
    return (Act.SAVE_NOW,)


def _merge(state: LentStream, report: StreamReport) -> bool:
    """Whether the report said anything new."""
    progress = state.progress.merged(report.progress)
    frontier = max(state.frontier, report.frontier)
    attempts = merged_attempts(state.attempts, report.attempts, progress)
    fate = state.fate.merged(report.fate, progress)
    queues = merged_queues(state.queues, report.queues)
    known = (state.progress, state.frontier, state.attempts, state.fate, state.queues)
    state.progress, state.frontier, state.attempts, state.fate = progress, frontier, attempts, fate
    state.queues = queues
    return known != (progress, frontier, attempts, fate, queues)


def _is_holders(state: LentStream, event: Reported) -> bool:
    return event.borrower_id == state.holder and event.report.grant_epoch == state.grant_epoch


def _lose_sight(state: LentStream) -> None:
    """From now on we do not know how far its holder came."""
    state.unmeasured = True
    state.queues = out_of_sight(state.queues)


def _note_sent(state: LentStream, sent: int | None) -> None:
    if sent is None:
        _lose_sight(state)
    else:
        state.suspect_end = max(state.suspect_end, sent)


def _report(state: LentStream, event: Reported) -> Acts:
    if not _is_holders(state, event):
        return (Act.SEND_INVALIDATE,)
    fresh = _merge(state, event.report)
    state.stall = event.report.stall
    if state.state is StreamState.GRANTING:
        state.state = StreamState.GRANTED
    if event.final or state.is_over():
        _note_sent(state, event.report.sent if event.final else state.progress.floor)
        state.state = StreamState.REVOKED
        state.durable = False
        return (Act.SAVE_NOW,)
    if state.is_to_rehome() and state.state is StreamState.GRANTED:
        return (Act.SAVE_SOON, *_revoke(state, RevokeDecided(None)), Act.SHARE_ANEW)
    if event.report.is_awaited:
        # Even if nothing is new: what is known may not be durable yet.
        return (Act.SAVE_NOW,)
    return (Act.SAVE_SOON,) if fresh else (Act.SEND_SAVED,)


def _report_revoked(state: LentStream, event: Reported) -> Acts:
    if not _is_holders(state, event):
        return (Act.SEND_INVALIDATE,)
    if _merge(state, event.report):
        state.durable = False
        return (Act.SAVE_NOW,)
    return (Act.SEND_REVOKED,) if state.durable else ()


def _report_free(state: LentStream, event: Reported) -> Acts:
    if not _is_holders(state, event):
        return (Act.SEND_INVALIDATE,)
    fresh = _merge(state, event.report)
    adopts = state.reserved and not event.final
    if adopts and event.outdated:
        # Not refused either: a present holder has still to present it to this leader.
        return (Act.SAVE_SOON,) if fresh else ()
    if adopts and _is_wanted(state):
        # Even at the end of the stream: the move opens it again, so its holder must let go first.
        state.stall = event.report.stall
        state.reserved = False
        state.state = StreamState.REVOKING
        return (Act.SAVE_SOON, Act.SEND_REVOKE)
    if state.is_over() or (state.is_to_rehome() and not state.reserved):
        return (*end(state), Act.SEND_INVALIDATE)
    if adopts:
        state.stall = event.report.stall
        state.reserved = False
        state.state = StreamState.GRANTED
        return (Act.SAVE_SOON,) if fresh else (Act.SEND_SAVED,)
    return (Act.SAVE_SOON, Act.SEND_INVALIDATE) if fresh else (Act.SEND_INVALIDATE,)


def _revoke(state: LentStream, event: RevokeDecided) -> Acts:
    state.state = StreamState.REVOKING
    state.heir = event.heir
    return (Act.SEND_REVOKE,)


def _change_heir(state: LentStream, event: RevokeDecided) -> Acts:
    state.heir = event.heir
    return ()


def _is_of_grant(state: LentStream, event: Released) -> bool:
    return event.borrower_id == state.holder and event.grant_epoch == state.grant_epoch


def _ask_move_held(state: LentStream, event: MoveAsked) -> Acts:
    if not take_move(state, event):
        return ()
    return _revoke(state, RevokeDecided(event.heir))


def _release_doubtful(state: LentStream, event: Released) -> Acts:
    """Released without a final report: the report was lost, or the grant never arrived."""
    if not _is_of_grant(state, event):
        return ()
    _lose_sight(state)
    return end(state)


def _release(state: LentStream, event: Released) -> Acts:
    return end(state) if _is_of_grant(state, event) else ()


def _give_up_holder(state: LentStream, event: HolderLost) -> Acts:
    """The holder for which it was kept did not come back."""
    if not state.reserved:
        return ()
    _lose_sight(state)
    return _end_reserve(state, ReserveEnded())


def _end_reserve(state: LentStream, event: ReserveEnded) -> Acts:
    if not state.reserved:
        return ()
    state.reserved = False
    return end(state) if _is_wanted(state) else (Act.PLACE,)


def _is_wanted(state: LentStream) -> bool:
    """Whether there is something to do before it may be lent again."""
    return state.move is not None or state.is_closed or state.is_to_rehome()


def _lose_holder(state: LentStream, event: HolderLost) -> Acts:
    _lose_sight(state)
    return end(state)


def _end_exactly(state: LentStream, event: HolderLost) -> Acts:
    return end(state)


def _take_back(state: LentStream, event: Overdue) -> Acts:
    """The holder did not answer in time: all unreported records are sent again, marked."""
    _lose_sight(state)
    state.state = StreamState.REVOKED
    state.durable = False
    return (Act.SAVE_NOW,)


def _grant_again(state: LentStream, event: ResendDue) -> Acts:
    return (Act.SEND_GRANT,) if state.durable else ()


def _revoke_again(state: LentStream, event: ResendDue) -> Acts:
    return (Act.SEND_REVOKE,)


def _revoked_again(state: LentStream, event: ResendDue) -> Acts:
    return (Act.SEND_REVOKED,) if state.durable else ()


def _saved(state: LentStream, event: Saved) -> Acts:
    acts = note_saved(state, event)
    return (*acts, Act.SEND_SAVED) if event.grant_epoch == state.grant_epoch else acts


def _saved_granting(state: LentStream, event: Saved) -> Acts:
    acts = note_saved(state, event)
    if not event.current or event.grant_epoch != state.grant_epoch:
        return acts
    state.durable = True
    return (*acts, Act.SEND_GRANT)


def _saved_revoked(state: LentStream, event: Saved) -> Acts:
    acts = note_saved(state, event)
    if not event.current:
        return acts
    state.durable = True
    return (*acts, Act.SEND_REVOKED)


def _seal_free(state: LentStream, event: Sealed) -> Acts:
    state.sealed_end = event.end
    # A move would let it be lent again while its last holder may still hand out records.
    waits = state.reserved and _is_wanted(state)
    is_done = state.is_over() or state.is_to_rehome()
    return end(state) if is_done and not waits else ()


def _seal_granted(state: LentStream, event: Sealed) -> Acts:
    state.sealed_end = event.end
    if state.is_to_rehome() and state.state is StreamState.GRANTED:
        return (*_revoke(state, RevokeDecided(None)), Act.SHARE_ANEW)
    if not state.is_over():
        return ()
    state.state = StreamState.REVOKED
    state.durable = False
    return (Act.SAVE_NOW,)


def _judge_free(state: LentStream, event: ParentsJudged) -> Acts:
    state.is_closed = event.closed
    # Records of a lane that is kept for its last holder may still be with that client.
    if state.reserved:
        return ()
    if event.closed:
        return close(state)
    return end(state) if state.is_over() or state.is_to_rehome() else ()


def _judge_granted(state: LentStream, event: ParentsJudged) -> Acts:
    state.is_closed = event.closed
    return (*_revoke(state, RevokeDecided(None)), Act.SHARE_ANEW) if event.closed else ()


def _judge_revoked(state: LentStream, event: ParentsJudged) -> Acts:
    state.is_closed = event.closed
    return _change_heir(state, RevokeDecided(None)) if event.closed else ()


_S = StreamState

TRANSITIONS: Mapping[tuple[StreamState, type[StreamEvent]], Callable[..., Acts]] = {
    (_S.FREE, GrantDecided): _lend,
    (_S.FREE, Reported): _report_free,
    (_S.FREE, RevokeDecided): ignore,
    (_S.FREE, MoveAsked): ask_move_free,
    (_S.FREE, MoveCancelled): cancel_move,
    (_S.FREE, Released): ignore,
    (_S.FREE, HolderLost): _give_up_holder,
    (_S.FREE, ReserveEnded): _end_reserve,
    (_S.FREE, Overdue): ignore,
    (_S.FREE, ResendDue): ignore,
    (_S.FREE, Saved): saved_free,
    (_S.FREE, Sealed): _seal_free,
    (_S.FREE, ParentsJudged): _judge_free,
    (_S.FREE, QueuesRehomed): ignore,
    (_S.FREE, CameBack): ignore,
    (_S.GRANTING, GrantDecided): ignore,
    (_S.GRANTING, Reported): _report,
    (_S.GRANTING, RevokeDecided): _revoke,
    (_S.GRANTING, MoveAsked): _ask_move_held,
    (_S.GRANTING, MoveCancelled): cancel_move,
    (_S.GRANTING, Released): _release_doubtful,
    (_S.GRANTING, HolderLost): _lose_holder,
    (_S.GRANTING, ReserveEnded): ignore,
    (_S.GRANTING, Overdue): _take_back,
    (_S.GRANTING, ResendDue): _grant_again,
    (_S.GRANTING, Saved): _saved_granting,
    (_S.GRANTING, Sealed): seal,
    (_S.GRANTING, ParentsJudged): _judge_granted,
    (_S.GRANTING, QueuesRehomed): ignore,
    (_S.GRANTING, CameBack): ignore,
    (_S.GRANTED, GrantDecided): ignore,
    (_S.GRANTED, Reported): _report,
    (_S.GRANTED, RevokeDecided): _revoke,
    (_S.GRANTED, MoveAsked): _ask_move_held,
    (_S.GRANTED, MoveCancelled): cancel_move,
    (_S.GRANTED, Released): _release_doubtful,
    (_S.GRANTED, HolderLost): _lose_holder,
    (_S.GRANTED, ReserveEnded): ignore,
    (_S.GRANTED, Overdue): ignore,
    (_S.GRANTED, ResendDue): ignore,
    (_S.GRANTED, Saved): _saved,
    (_S.GRANTED, Sealed): _seal_granted,
    (_S.GRANTED, ParentsJudged): _judge_granted,
    (_S.GRANTED, QueuesRehomed): ignore,
    (_S.GRANTED, CameBack): ignore,
    (_S.REVOKING, GrantDecided): ignore,
    (_S.REVOKING, Reported): _report,
    (_S.REVOKING, RevokeDecided): _change_heir,
    (_S.REVOKING, MoveAsked): ask_move_revoked,
    (_S.REVOKING, MoveCancelled): cancel_move,
    (_S.REVOKING, Released): _release_doubtful,
    (_S.REVOKING, HolderLost): _lose_holder,
    (_S.REVOKING, ReserveEnded): ignore,
    (_S.REVOKING, Overdue): _take_back,
    (_S.REVOKING, ResendDue): _revoke_again,
    (_S.REVOKING, Saved): _saved,
    (_S.REVOKING, Sealed): _seal_granted,
    (_S.REVOKING, ParentsJudged): _judge_revoked,
    (_S.REVOKING, QueuesRehomed): ignore,
    (_S.REVOKING, CameBack): ignore,
    (_S.REVOKED, GrantDecided): ignore,
    (_S.REVOKED, Reported): _report_revoked,
    (_S.REVOKED, RevokeDecided): _change_heir,
    (_S.REVOKED, MoveAsked): ask_move_revoked,
    (_S.REVOKED, MoveCancelled): cancel_move,
    (_S.REVOKED, Released): _release,
    (_S.REVOKED, HolderLost): _end_exactly,
    (_S.REVOKED, ReserveEnded): ignore,
    (_S.REVOKED, Overdue): ignore,
    (_S.REVOKED, ResendDue): _revoked_again,
    (_S.REVOKED, Saved): _saved_revoked,
    (_S.REVOKED, Sealed): seal,
    (_S.REVOKED, ParentsJudged): _judge_revoked,
    (_S.REVOKED, QueuesRehomed): ignore,
    (_S.REVOKED, CameBack): ignore,
    **NOT_HELD,
}
