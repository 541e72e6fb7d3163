"""What operations ask of a leader, and when the leader has done it.

An instruction may come more than once, and after a restart pending ones come with the takeover; so
each is harmless the second time. Invariant: every instruction is answered by `Concluded` sooner or
later, at once if there is nothing to do. This module does not know how a move changes progress
(`cursor_moves`).
"""

from collections.abc import Callable, Mapping

from dssd.machines.leader.events import (
    CancelMoves,
    CancelPause,
    Concluded,
    CursorMove,
    Instructed,
    Instruction,
    MoveCursors,
    PauseGroup,
    ShareByShards,
)
from dssd.machines.leader.evictions import evict, lift_ban
from dssd.machines.leader.hand_over_events import (
    CancelHandOvers,
    Evict,
    LiftBan,
    Rebalance,
    RevokeGrant,
    TransferGrant,
    Unpin,
)
from dssd.machines.leader.hand_overs import (
    cancel_hand_overs,
    rebalance,
    revoke_grant,
    transfer_grant,
    unpin,
)
from dssd.machines.leader.lent_stream import LentStream
from dssd.machines.leader.moves_under_way import conclude_if_done
from dssd.machines.leader.pausing import cancel_pause, change_pause
from dssd.machines.leader.rebalance import share_by
from dssd.machines.leader.state import KeptFor
from dssd.machines.leader.stream_acts import turn_stream
from dssd.machines.leader.stream_events import MoveAsked, MoveCancelled
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.messages import BorrowerId
from dssd.machines.queues import asked_of_holder


def take_instruction(turn: LeaderTurn, given: Instructed) -> None:
    """Begin to do what an operation asks."""
    INSTRUCTIONS[type(given.instruction)](turn, given.instruction)


def take_pending_moves(turn: LeaderTurn, moves: tuple[CursorMove, ...]) -> None:
    """Resume moves that an earlier leader had not ended, and errands that holders still have."""
    for lent in turn.state.streams.values():
        if lent.at_work():
            turn.state.moving.setdefault(lent.at_work(), set()).add(lent.stream)
    for number in sorted({move.number for move in moves}):
        of_number = tuple(move for move in moves if move.number == number)
        if of_number[0].cancelled:
            _give_up_moves(turn, number, of_number)
        else:
            _move_cursors(turn, MoveCursors(number, of_number))


def _give_up_moves(turn: LeaderTurn, number: int, moves: tuple[CursorMove, ...]) -> None:
    state = turn.state
    moving = state.moving.setdefault(number, set())
    for move in moves:
        lent = state.streams.get(move.stream)
        if lent is not None:
            moving.add(move.stream)
            lent.move = move
            turn_stream(turn, lent, MoveCancelled(number))
    conclude_if_done(turn, number)


def begin_postponed(turn: LeaderTurn) -> None:
    """Begin the instructions that waited for the end of the reservations."""
    state = turn.state
    postponed = state.hand_overs.postponed
    if postponed and state.reserve is KeptFor.NOTHING:
        state.hand_overs.postponed = {}
        for number in sorted(postponed):
            INSTRUCTIONS[type(postponed[number])](turn, postponed[number])


def void_postponed(turn: LeaderTurn) -> None:
    """No member is left: conclude the postponed instructions."""
    waiting, turn.state.hand_overs.postponed = turn.state.hand_overs.postponed, {}
    turn.effects.extend(Concluded(number) for number in sorted(waiting))


def _move_cursors(turn: LeaderTurn, asked: MoveCursors) -> None:
    state = turn.state
    moving = state.moving.setdefault(asked.number, set())
    for move in asked.moves:
        lent = state.streams.get(move.stream)
        if lent is None:
            continue
        turn_stream(turn, lent, MoveAsked(move, _who_stays(turn, lent)))
        if _is_moving(turn, lent, asked.number):
            moving.add(move.stream)
    conclude_if_done(turn, asked.number)


def _who_stays(turn: LeaderTurn, lent: LentStream) -> BorrowerId | None:
    """The holder, unless it is leaving: it shall have the stream again."""
    holder = turn.state.members.get(lent.holder) if lent.holder is not None else None
    return None if holder is None or holder.leaving else lent.holder


def _is_moving(turn: LeaderTurn, lent: LentStream, number: int) -> bool:
    waits = lent.move is not None and lent.move.number == number
    unsaved = lent.ended_move is not None and lent.ended_move.number == number
    committing = (each for each in turn.state.in_flight if each.stream == lent.stream)
    return waits or unsaved or any(each.moved_by == number for each in committing)


def _cancel_moves(turn: LeaderTurn, asked: CancelMoves) -> None:
    for stream in sorted(turn.state.moving.get(asked.number, ())):
        lent = turn.state.streams[stream]
        if asked_of_holder(lent.queues) == asked.number:
            # The holder may know of the move already, and goes on with what it has begun.
            stop = CursorMove(stream, asked.number, (), (), stops_redrive=True)
            turn_stream(turn, lent, MoveAsked(stop, _who_stays(turn, lent)))
        else:
            turn_stream(turn, lent, MoveCancelled(asked.number))
    conclude_if_done(turn, asked.number)


def _share_by_shards(turn: LeaderTurn, asked: ShareByShards) -> None:
    share_by(turn, asked.slicing)
    turn.state.shards.waiting.add(asked.number)


INSTRUCTIONS: Mapping[type[Instruction], Callable[..., None]] = {
    MoveCursors: _move_cursors,
    CancelMoves: _cancel_moves,
    Rebalance: rebalance,
    TransferGrant: transfer_grant,
    RevokeGrant: revoke_grant,
    Unpin: unpin,
    Evict: evict,
    LiftBan: lift_ban,
    CancelHandOvers: cancel_hand_overs,
    PauseGroup: change_pause,
    CancelPause: cancel_pause,
    ShareByShards: _share_by_shards,
}
