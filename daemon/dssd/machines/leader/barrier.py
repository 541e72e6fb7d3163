"""The barrier between storage topics: which streams of a group that keeps the order are closed.

A stream is closed until each of its parents is durably finished for this group; a closed stream is
never finished. So no record of a key is sent from a new storage topic while the older ones still
have records of the key to send, however often the topic grew. Invariant: a stream is judged when it
appears, at a takeover, and when a parent of it finishes, goes, or is to be read again; if it is
closed by that, it is revoked from its holder. This module must not know how keys are routed.
"""

from dssd.machines.leader.events import Rehomed
from dssd.machines.leader.lent_stream import LentStream, StreamState
from dssd.machines.leader.state import unfinished_parents
from dssd.machines.leader.stream_acts import turn_stream
from dssd.machines.leader.stream_events import ParentsJudged, QueuesRehomed
from dssd.machines.leader.turn import LeaderTurn


def judge_all(turn: LeaderTurn) -> None:
    """Judge all streams: some came or went, or this leader has just taken over."""
    state = turn.state
    state.barrier.children.clear()
    # Parents are older, so they come first: a closed parent closes its children.
    for stream in state.order:
        lent = state.streams[stream]
        for parent in lent.parents or ():
            state.barrier.children.setdefault(parent, []).append(stream)
        _judge(turn, lent)


def go_on(turn: LeaderTurn) -> None:
    """At the end of a step: judge the children of streams that turned finished or unfinished."""
    state = turn.state
    while state.barrier.turned:
        stream = state.barrier.turned.pop()
        if stream in state.streams and state.streams[stream].goes_back:
            state.barrier.going_back.add(stream)
        for child in state.barrier.children.get(stream, ()):
            _judge(turn, state.streams[child])


def _judge(turn: LeaderTurn, lent: LentStream) -> None:
    closed = bool(unfinished_parents(turn.state, lent))
    if closed != lent.is_closed or (lent.keeps_order and lent.state is StreamState.FREE):
        turn_stream(turn, lent, ParentsJudged(closed))


def judge_rehoming(turn: LeaderTurn) -> None:
    """Begin the re-homing that had to wait while nothing was lent, if it is still needed."""
    for stream in sorted(turn.state.barrier.rehoming):
        lent = turn.state.streams[stream]
        turn_stream(turn, lent, ParentsJudged(lent.is_closed))


def take_rehomed(turn: LeaderTurn, given: Rehomed) -> None:
    """The entries of a lane's queues are in the queues of its children."""
    lent = turn.state.streams.get(given.stream)
    if lent is not None:
        turn_stream(turn, lent, QueuesRehomed(given.grant_epoch, given.queues))
