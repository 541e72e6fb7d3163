"""Which operations still have moves of cursors under way at a leader.

Invariant: `Leader.moving` has a number exactly while a move of it is not durably ended; when the
last one is, the leader says `Concluded`. This module does not know what operations ask for
(`instructions`).
"""

from dss_core.ids import StreamId
from dssd.machines.leader.events import Concluded
from dssd.machines.leader.turn import LeaderTurn


def note_moved(turn: LeaderTurn, stream: StreamId, number: int) -> None:
    """It is durable that the stream's move ended."""
    if number in turn.state.moving:
        turn.state.moving[number].discard(stream)
        conclude_if_done(turn, number)


def forget_moves(turn: LeaderTurn, stream: StreamId) -> None:
    """The stream is gone, and with it what was to be made of its progress."""
    for number in list(turn.state.moving):
        note_moved(turn, stream, number)


def conclude_if_done(turn: LeaderTurn, number: int) -> None:
    """Say so where no move of the operation is left."""
    if not turn.state.moving.get(number):
        turn.state.moving.pop(number, None)
        turn.effects.append(Concluded(number))
