"""A move of a cursor: what an operation makes of a stream's progress.

Every operation on cursors is two sets of offsets, so one rule serves all of them::

    after = (before without dropped) with added        t: the target        max: `OFFSET_MAX`

    operation               dropped                      added
    rewind to t             [t, max)                     nothing
    skip to t               nothing                      [0, t)
    seek t                  [t, max)                     [0, t)
    skip records by hand    nothing                      the records
    import                  [0, max)                     the exported progress
    undo of any             what it gave the stream      what the stream had before

So an undo keeps what was acknowledged since: that is in neither set. What is *reopened*,
acknowledged before and not after, comes again as if for the first time: the hand-out frontier falls
to the first of it, and attempts, failures, doubts and rests from there on are forgotten. It comes
marked, because `suspect_end` rises above everything that may have been handed out before. Where
nothing is reopened, all that is known of unacknowledged records stays known.

A move with neither set names dead letters to redrive or discard, or entries of the retry queue to
deal with; the next holder of the lane does what is left to do. Another move of the same number
stops that.

A move is made while nobody holds the stream. The grant epoch rises with it, so no report from
before counts afterwards. Invariant: a move of a number that is not above the stream's cursor
generation was made already, and is not made again. This module does not know who holds a stream.
"""

from dss_core.progress import Progress, Ranges, without
from dssd.machines.attempts import Count, CountOf, unacked_attempts
from dssd.machines.fate import Fate
from dssd.machines.leader.events import CancelledMove, CursorMove, MadeMove
from dssd.machines.leader.lent_stream import LentStream
from dssd.machines.queues import Queues, Redrive
from dssd.machines.start_point import OFFSET_MAX


def make_move(state: LentStream) -> None:
    """Make the move that waits, if there is one. The stream has no holder."""
    move = state.move
    if move is None:
        return
    state.move = None
    if move.stops_redrive:
        # If no commit has said yet that the move was made, the next one says it was cancelled.
        if state.ended_move is None or state.ended_move.number != move.number:
            state.ended_move = CancelledMove(move.number)
        state.queues = _stopped(state.queues, move.number)
        return
    before, after = state.progress, moved(state.progress, move)
    state.ended_move = MadeMove(move.number, before, after)
    state.cursor_generation = move.number
    fence(state)
    state.suspect_end = max(state.suspect_end, _handed_out_below(state))
    known_below = _first_reopened(before, after)
    state.frontier = max(min(state.frontier, known_below), after.floor)
    state.attempts = _kept(state.attempts, known_below, after)
    state.fate = _moved_fate(state.fate, known_below, before, after)
    state.progress = after
    state.saved = Progress(0)
    state.queues = _asked_of(state.queues, move)


def _stopped(queues: Queues, number: int) -> Queues:
    """The queues without what the operation asked of them."""
    retry, dead = queues
    if retry.errand.operation == number:
        retry = retry.end_errand()
    return retry, dead.stop_redrive() if dead.redrive.operation == number else dead


def _asked_of(queues: Queues, move: CursorMove) -> Queues:
    """The queues with what the move asks of them."""
    if not queues:
        return queues
    retry, dead = queues
    if move.errand:
        retry = retry.take_errand(move.number, move.errand, move.entries)
    redrive = Redrive(move.number, move.redriven, move.redrive_ms, move.whole_keys)
    return retry, dead.discard(move.number, move.discarded).bring_back(redrive)


def fence(state: LentStream) -> None:
    """Fence all grants so far: their reports do not count, and no holder comes back."""
    state.grant_epoch += 1
    state.grant_unsaved = True
    state.moved_epoch = state.grant_epoch
    state.session_id = None
    state.reserved = False


def _handed_out_below(state: LentStream) -> int:
    """Nothing at or above it was handed out, as far as reports say."""
    known = state.attempts, state.fate.failures, state.fate.doubts, state.fate.rests
    ends = (entries[-1][1] for entries in (*known, state.progress.ranges) if entries)
    return max(state.frontier, state.progress.floor, *ends)


def moved(before: Progress, move: CursorMove) -> Progress:
    """What the move makes of the progress."""
    return before.without(move.dropped).with_acked(move.added)


def _first_reopened(before: Progress, after: Progress) -> int:
    """The first offset that was acknowledged and is not any more; above all if there is none."""
    reopened = without(all_of(before), all_of(after))
    return reopened[0][0] if reopened else OFFSET_MAX


def _kept(
    entries: tuple[CountOf[Count], ...], below: int, after: Progress
) -> tuple[CountOf[Count], ...]:
    return unacked_attempts(
        ((start, min(end, below), count) for start, end, count in entries if start < below), after
    )


def _moved_fate(fate: Fate, below: int, before: Progress, after: Progress) -> Fate:
    more = _covered(after) - _covered(before)
    return Fate(
        _kept(fate.failures, below, after),
        _kept(fate.doubts, below, after),
        _kept(fate.rests, below, after),
        fate.damaged,
        fate.counts.plus("moved", more),
    )


def _covered(progress: Progress) -> int:
    return progress.floor + progress.acked_above_floor()


def everything_below(offset: int) -> Ranges:
    """All offsets below one."""
    return ((0, offset),) if offset else ()


def all_of(progress: Progress) -> Ranges:
    """What the progress has acknowledged."""
    return (*everything_below(progress.floor), *progress.ranges)
