"""The barrier between storage topics: which streams of a group that keeps the order are closed.

A stream is closed until each of its parents is finished, durably, for this group; a closed stream
is never finished. So no key goes on in a new storage topic before the old one holds nothing of it
that is to come, however many switches there were. Invariant: a stream is judged when a parent of it
finishes, goes, or is to be read again, when it appears, and at a takeover; who holds it then is
asked for it. This module must not know how keys are routed.
"""

from dssd.machines.leader.events import Rehomed
from dssd.machines.leader.lent_stream import LentStream, StreamState
from dssd.machines.leader.state import unfinished_parents
from dssd.machines.leader.stream_acts import turn_stream
from dssd.machines.leader.stream_events import ParentsJudged, QueuesRehomed
from dssd.machines.leader.turn import LeaderTurn


def judge_all(turn: LeaderTurn) -> None:
    """Streams came or went, or another leader had them before."""
    state = turn.state
    state.barrier.children.clear()
    # Parents are older, so they come first: what closes one closes those behind it.
    for stream in state.order:
        lent = state.streams[stream]
        for parent in lent.parents or ():
            state.barrier.children.setdefault(parent, []).append(stream)
        _judge(turn, lent)


def go_on(turn: LeaderTurn) -> None:
    """At the end of a step: judge those of which a parent has finished in it, or is it no more."""
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
    """What could not begin while nothing was lent begins now, if there is anything to re-home."""
    for stream in sorted(turn.state.barrier.rehoming):
        lent = turn.state.streams[stream]
        turn_stream(turn, lent, ParentsJudged(lent.is_closed))


def take_rehomed(turn: LeaderTurn, given: Rehomed) -> None:
    """The children of a lane have what was in its queues."""
    lent = turn.state.streams.get(given.stream)
    if lent is not None:
        turn_stream(turn, lent, QueuesRehomed(given.grant_epoch, given.queues))
