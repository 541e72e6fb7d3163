"""The pause of a group: which members still hand out records, and who waits for them to stop.

The store says whether a group is paused. The leader tells its members, and each confirms once its
client hands out nothing more, or hands out again. Grants carry the pause too, so a member that
joins later is paused from the start. Invariants: a member that has not confirmed the present state
is in `Leader.telling`, and is told again until it confirms or is gone. An operation concludes when
that is empty, and no stream is reserved for a holder that may still hand out its records; an
operation that a later one has reversed concludes at once. A client that was lost without having
confirmed may live and hand out what it has. So a pause also waits for the time after which a silent
client hands out nothing more. While the daemon ends its sessions, no operation concludes: their
clients are alive, and the next daemon asks them. This module does not know what a pause means to a
stream.
"""

from dssd.machines.leader.events import CancelPause, Concluded, PauseGroup
from dssd.machines.leader.state import Alarm, TellPause, is_pause_obeyed
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.messages import BorrowerId, LeaderWanted, Pause, PauseChanged, PauseObeyed


def change_pause(turn: LeaderTurn, asked: PauseGroup) -> None:
    """An operation paused or resumed the group; it may say so more than once."""
    state = turn.state
    if asked.paused != state.pause.paused:
        _conclude(turn)
        state.pause = Pause(state.pause.change + 1, asked.paused)
        state.paused_ms = turn.now_ms
        for borrower_id in state.members:
            _tell(turn, borrower_id)
    state.pausing.add(asked.number)


def cancel_pause(turn: LeaderTurn, asked: CancelPause) -> None:
    """An operation waits no more. The members stay paused or resumed as they were told."""
    turn.state.pausing.discard(asked.number)
    turn.effects.append(Concluded(asked.number))


def tell_newcomer(turn: LeaderTurn, message: LeaderWanted) -> None:
    """A borrower became a member. Without a word of a pause it takes the group for not paused."""
    if turn.state.pause.paused or message.paused:
        _tell(turn, message.borrower_id)


def tell_again(turn: LeaderTurn, borrower_id: BorrowerId) -> None:
    """A member has not confirmed for a while."""
    state = turn.state
    _send(turn, borrower_id, min(2 * state.telling[borrower_id], state.timing.resend_max_ms))


def take_obeyed(turn: LeaderTurn, message: PauseObeyed) -> None:
    """A member confirms. A confirmation of an earlier change, or for another leader, is ignored."""
    state = turn.state
    if (message.leader_epoch, message.change) == (state.leader_epoch, state.pause.change):
        forget(turn, message.borrower_id)


def forget(turn: LeaderTurn, borrower_id: BorrowerId) -> None:
    """A member has confirmed, or is gone."""
    if turn.state.telling.pop(borrower_id, None) is not None:
        turn.state.timers.clear(TellPause(borrower_id))


def note_lost(turn: LeaderTurn, borrower_id: BorrowerId, silent_ms: int) -> None:
    """A client was lost after a silence of ``silent_ms``, and may still hand out, unless it has
    confirmed the pause. Later pauses wait for it too. Call this before the member is removed.
    """
    state = turn.state
    member = state.members.get(borrower_id)
    heard_ms = turn.now_ms
    if state.pause.paused and member is not None:
        if borrower_id not in state.telling:
            return
        # It has not heard of the pause, so the last message that it heard was sent before that.
        told_ms = max(state.paused_ms, member.joined_ms)
        heard_ms = min(max(told_ms, turn.now_ms - silent_ms), turn.now_ms)
    until_ms = heard_ms + state.timing.silent_holder_ms
    known_ms = state.timers.at_ms(Alarm.SILENCE)
    if until_ms > turn.now_ms and (known_ms is None or until_ms > known_ms):
        state.timers.set(Alarm.SILENCE, until_ms)


def conclude_if_obeyed(turn: LeaderTurn) -> None:
    """At the end of a step: conclude if every member has confirmed the present state."""
    state = turn.state
    if state.pausing and is_pause_obeyed(state) and not state.sessions_ending:
        _conclude(turn)


def _conclude(turn: LeaderTurn) -> None:
    turn.effects += [Concluded(number) for number in sorted(turn.state.pausing)]
    turn.state.pausing.clear()


def _tell(turn: LeaderTurn, borrower_id: BorrowerId) -> None:
    _send(turn, borrower_id, turn.state.timing.resend_first_ms)


def _send(turn: LeaderTurn, borrower_id: BorrowerId, again_ms: int) -> None:
    state = turn.state
    state.telling[borrower_id] = again_ms
    state.timers.set(TellPause(borrower_id), turn.now_ms + again_ms)
    turn.send(PauseChanged(borrower_id, state.leader_epoch, state.pause))
