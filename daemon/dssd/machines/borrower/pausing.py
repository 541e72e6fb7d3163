"""How a borrower learns that its group is paused, and confirms that its client obeys.

Both protocols use it. A leader says whether the group is paused in `PauseChanged` and in each
grant. Its newest word counts; any word of a new leader replaces that of the old one. Invariant: a
change is confirmed only after the client has confirmed it, or if it changes nothing for the client.
This module does not know how streams are granted, nor why a group is paused.
"""

from dssd.machines.borrower.events import PauseTaken, SendToLeader, SetPaused
from dssd.machines.borrower.state import Effects, Holder
from dssd.machines.messages import Pause, PauseChanged, PauseObeyed


def take_change(state: Holder, message: PauseChanged, now_ms: int, effects: Effects) -> None:
    """The leader says whether the group is paused; it repeats itself until it is answered."""
    note_pause(state, message.pause, effects)
    _answer(state, effects)


def take_change_last(state: Holder, message: PauseChanged, now_ms: int, effects: Effects) -> None:
    """The same while leaving: the client hands out nothing of it any more, paused or not."""
    obeyed = PauseObeyed(state.borrower_id, state.leader_epoch, message.pause.change)
    effects.append(SendToLeader(obeyed))


def note_pause(state: Holder, pause: Pause, effects: Effects) -> None:
    """The present leader says, in whichever message, whether the group is paused."""
    known = state.pause
    if (state.leader_epoch, pause.change) <= (known.leader_epoch, known.change):
        return
    known.leader_epoch, known.change = state.leader_epoch, pause.change
    if pause.paused != known.paused:
        known.paused, known.obeyed = pause.paused, False
        known.asked += 1
        effects.append(SetPaused(known.paused, known.asked))


def take_obeyed(state: Holder, given: PauseTaken, effects: Effects) -> None:
    """The client has stopped, or goes on; the answer to an earlier request is ignored."""
    known = state.pause
    if given.turn == known.asked and not known.obeyed:
        known.obeyed = True
        _answer(state, effects)


def _answer(state: Holder, effects: Effects) -> None:
    known = state.pause
    if known.obeyed and known.leader_epoch == state.leader_epoch:
        obeyed = PauseObeyed(state.borrower_id, state.leader_epoch, known.change)
        effects.append(SendToLeader(obeyed))
