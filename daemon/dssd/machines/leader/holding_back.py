"""Nothing is lent while the queues of a group come or go.

::

      Hold ──► what is kept for holders of before is waited for
                 │
                 ▼
               each stream is asked back, with its holder as the heir
                 │  nobody holds one
                 ▼
               each is fenced ──durably──► Held ──► the group's row is changed, or not
                                                       │
      LendAgain ───────────────────────────────────────┘
               each stream has the queues and the parents that it is given, and is lent to its heir

Invariant: from `Held` to `LendAgain` the progress of each stream, and of its queues, is durable as
it stands. No report changes it: those of older grants are fenced. So a decision that is made then
from the contents of the queues stays true. This module must not know why queues come or go.
"""

from dataclasses import replace

from dss_core.ids import StreamId
from dssd.machines.leader.barrier import judge_all, judge_rehoming
from dssd.machines.leader.commits import mark_dirty
from dssd.machines.leader.cursor_moves import fence
from dssd.machines.leader.events import Held, Hold, LendAgain
from dssd.machines.leader.going_back import is_under_way
from dssd.machines.leader.lent_stream import LentStream, StreamState
from dssd.machines.leader.sharding import slice_anew
from dssd.machines.leader.state import Holding, KeptFor, Leader
from dssd.machines.leader.stream_acts import place, rebalance_by, turn_stream
from dssd.machines.leader.stream_events import RevokeDecided
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.queues import Queues


def hold(turn: LeaderTurn, given: Hold) -> None:
    """Lend nothing from now on."""
    turn.state.holding = Holding.WAITING


def go_on(turn: LeaderTurn) -> None:
    """At the end of a step: begin the next phase, if the present one is over."""
    state = turn.state
    if state.holding is Holding.WAITING and state.reserve is KeptFor.NOTHING:
        state.holding = Holding.TAKING_BACK
        _ask_back(turn)
    taken_back = not any(member.streams for member in state.members.values())
    is_moving = bool(state.barrier.rehoming) or is_under_way(state)
    if state.holding is Holding.TAKING_BACK and taken_back and not is_moving:
        state.holding = Holding.FENCING
        _fence_all(turn)
    if state.holding is Holding.FENCING and not state.dirty and not state.is_committing():
        state.holding = Holding.HELD
        turn.effects.append(Held())


def _ask_back(turn: LeaderTurn) -> None:
    state = turn.state
    for member in list(state.members.values()):
        for stream in sorted(member.streams):
            lent = state.streams[stream]
            if lent.state in (StreamState.GRANTING, StreamState.GRANTED):
                heir = None if member.leaving else member.borrower_id
                turn_stream(turn, lent, RevokeDecided(heir))


def _fence_all(turn: LeaderTurn) -> None:
    for lent in turn.state.streams.values():
        fence(lent)
        mark_dirty(turn, lent.stream)
    turn.state.urgent = True


def lend_again(turn: LeaderTurn, given: LendAgain) -> None:
    """The streams that are named have these queues from now on; all may be lent."""
    state = turn.state
    state.holding = Holding.NOTHING
    slice_anew(state, given.slicing)
    for stream, queues, parents in given.lanes:
        lent = state.streams.get(stream)
        if lent is None:
            continue
        lent.parents = parents
        if lent.state is StreamState.FINISHED and not _is_unsaved(state, stream):
            lent.finish_saved = True
        if bool(queues) != bool(lent.queues):
            _change_queues(lent, queues)
    judge_all(turn)
    judge_rehoming(turn)
    for lent in state.streams.values():
        if lent.state is StreamState.FREE and lent.heir is not None:
            place(turn, lent)
    rebalance_by(turn, turn.now_ms)


def _is_unsaved(state: Leader, stream: StreamId) -> bool:
    return stream in state.dirty or any(each.stream == stream for each in state.in_flight)


def _change_queues(lent: LentStream, queues: Queues) -> None:
    """Replace the queues, and fence commits and reports that are about the queues before."""
    fence(lent)
    lent.queues = lent.saved_queues = queues
    if queues:
        lent.attempts, lent.fate = (), replace(lent.fate, failures=(), rests=())


def is_holding(state: Leader) -> bool:
    """Whether nothing is lent."""
    return state.holding is not Holding.NOTHING
