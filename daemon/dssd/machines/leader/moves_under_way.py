"""Which operations still have moves of cursors under way at a leader.

Invariant: `Leader.moving` has the number of an operation exactly while one of its moves is not
durably ended, or a holder has not dealt with all its entries. After the last one the leader says
`Concluded`. This module does not know what operations ask for (`instructions`).
"""

from dss_core.ids import StreamId
from dssd.machines.leader.events import Concluded
from dssd.machines.leader.lent_stream import LentStream
from dssd.machines.leader.turn import LeaderTurn


def note_moved(turn: LeaderTurn, lent: LentStream, number: int) -> None:
    """The end of the stream's move, or of work on entries of its queues, is durable."""
    waiting = {each.number for each in (lent.move, lent.ended_move) if each is not None}
    for ended in {number, *_dealt_with(lent)} - {0, lent.at_work()} - waiting:
        if lent.stream in turn.state.moving.get(ended, ()):
            _end(turn, lent.stream, ended)


def _dealt_with(lent: LentStream) -> tuple[int, ...]:
    """The operations whose entries were dealt with last; none while a move is not durable."""
    if lent.move is not None or lent.ended_move is not None or not lent.saved_queues:
        return ()
    retry, dead = lent.saved_queues
    return retry.errand.operation, dead.redrive.operation


def forget_moves(turn: LeaderTurn, stream: StreamId) -> None:
    """The stream is gone, and so are its moves."""
    for number in list(turn.state.moving):
        _end(turn, stream, number)


def _end(turn: LeaderTurn, stream: StreamId, number: int) -> None:
    turn.state.moving[number].discard(stream)
    conclude_if_done(turn, number)


def conclude_if_done(turn: LeaderTurn, number: int) -> None:
    """Conclude the operation if none of its moves is left."""
    if not turn.state.moving.get(number):
        turn.state.moving.pop(number, None)
        turn.effects.append(Concluded(number))
