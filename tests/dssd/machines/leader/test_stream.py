from dataclasses import replace
from typing import get_args

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.leader.events import (
    CancelledMove,
    CursorMove,
    GrantRecord,
    MadeMove,
    StoredStream,
)
from dssd.machines.leader.lent_stream import HELD, LentStream, StreamState
from dssd.machines.leader.stream import TRANSITIONS, step
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
from dssd.machines.messages import StreamReport
from dssd.machines.start_point import OFFSET_MAX

ANN, BOB = b"ann", b"bob"
STREAM = StreamId(1, 0)
EPOCH = 3
S = StreamState


def stream_in(state: StreamState, *, durable: bool = True) -> LentStream:
    stored = StoredStream(STREAM, Progress(10), 10, 100, None, grant_epoch=EPOCH - (state in HELD))
    lent = LentStream(stored)
    if state in HELD:
        step(lent, GrantDecided(ANN, b"session of ann"))
        lent.state = state
        lent.durable = durable
        lent.grant_unsaved = False
    else:
        lent.state = state
        lent.durable = False
        lent.is_closed = state is S.CLOSED
    return lent


def state_of(lent: LentStream) -> StreamState:
    """The state now; mypy takes an attribute for unchanged by a step."""
    return lent.state


def reported(
    *, by: bytes = ANN, epoch: int = EPOCH, floor: int = 20, final: bool = False, sent: int = 20
) -> Reported:
    return Reported(by, StreamReport(STREAM, epoch, Progress(floor), 20, sent=sent), final)


SAVED = Saved(EPOCH, Progress(10), current=True, measured_end=None)
SAVED_MOVE = replace(SAVED, moved_by=7)
TO_FIVE = CursorMove(STREAM, 7, dropped=((5, OFFSET_MAX),), added=())
"""A rewind to offset 5, by operation 7."""

EXPECTED: dict[tuple[StreamState, StreamEvent], tuple[StreamState, Acts]] = {
    (S.FREE, GrantDecided(BOB, b"s")): (S.GRANTING, (Act.SAVE_NOW,)),
    (S.FREE, reported()): (S.FREE, (Act.SEND_INVALIDATE,)),
    (S.FREE, RevokeDecided(BOB)): (S.FREE, ()),
    (S.FREE, Released(ANN, EPOCH)): (S.FREE, ()),
    (S.FREE, HolderLost()): (S.FREE, ()),
    (S.FREE, MoveAsked(TO_FIVE, None)): (S.FREE, (Act.SAVE_NOW, Act.PLACE)),
    (S.FREE, MoveCancelled(7)): (S.FREE, ()),
    (S.FREE, ReserveEnded()): (S.FREE, ()),
    (S.FREE, SAVED_MOVE): (S.FREE, (Act.NOTE_MOVED,)),
    (S.FREE, Overdue()): (S.FREE, ()),
    (S.FREE, ResendDue()): (S.FREE, ()),
    (S.FREE, SAVED): (S.FREE, ()),
    (S.FREE, Sealed(11)): (S.FREE, ()),
    (S.FREE, Sealed(10)): (S.FINISHED, (Act.SAVE_SOON, Act.SHARE_ANEW)),
    (S.GRANTING, GrantDecided(BOB, b"s")): (S.GRANTING, ()),
    (S.GRANTING, reported()): (S.GRANTED, (Act.SAVE_SOON,)),
    (S.GRANTING, reported(by=BOB)): (S.GRANTING, (Act.SEND_INVALIDATE,)),
    (S.GRANTING, reported(epoch=EPOCH - 1)): (S.GRANTING, (Act.SEND_INVALIDATE,)),
    (S.GRANTING, reported(final=True)): (S.REVOKED, (Act.SAVE_NOW,)),
    (S.GRANTING, RevokeDecided(BOB)): (S.REVOKING, (Act.SEND_REVOKE,)),
    (S.GRANTING, Released(ANN, EPOCH)): (S.FREE, (Act.SAVE_SOON, Act.PLACE)),
    (S.GRANTING, Released(ANN, EPOCH - 1)): (S.GRANTING, ()),
    (S.GRANTING, HolderLost()): (S.FREE, (Act.SAVE_SOON, Act.PLACE)),
    (S.GRANTING, MoveAsked(TO_FIVE, ANN)): (S.REVOKING, (Act.SEND_REVOKE,)),
    (S.GRANTING, MoveCancelled(7)): (S.GRANTING, ()),
    (S.GRANTING, ReserveEnded()): (S.GRANTING, ()),
    (S.GRANTING, SAVED_MOVE): (S.GRANTING, (Act.NOTE_MOVED, Act.SEND_GRANT)),
    (S.GRANTING, replace(SAVED_MOVE, current=False)): (S.GRANTING, (Act.NOTE_MOVED,)),
    (S.GRANTING, Overdue()): (S.REVOKED, (Act.SAVE_NOW,)),
    (S.GRANTING, ResendDue()): (S.GRANTING, (Act.SEND_GRANT,)),
    (S.GRANTING, SAVED): (S.GRANTING, (Act.SEND_GRANT,)),
    (S.GRANTING, replace(SAVED, current=False)): (S.GRANTING, ()),
    (S.GRANTING, replace(SAVED, grant_epoch=EPOCH - 1)): (S.GRANTING, ()),
    (S.GRANTING, Sealed(10)): (S.GRANTING, ()),
    (S.GRANTED, GrantDecided(BOB, b"s")): (S.GRANTED, ()),
    (S.GRANTED, reported()): (S.GRANTED, (Act.SAVE_SOON,)),
    (S.GRANTED, reported(by=BOB)): (S.GRANTED, (Act.SEND_INVALIDATE,)),
    (S.GRANTED, reported(epoch=EPOCH - 1)): (S.GRANTED, (Act.SEND_INVALIDATE,)),
    (S.GRANTED, reported(final=True)): (S.REVOKED, (Act.SAVE_NOW,)),
    (S.GRANTED, RevokeDecided(BOB)): (S.REVOKING, (Act.SEND_REVOKE,)),
    (S.GRANTED, Released(ANN, EPOCH)): (S.FREE, (Act.SAVE_SOON, Act.PLACE)),
    (S.GRANTED, Released(BOB, EPOCH)): (S.GRANTED, ()),
    (S.GRANTED, HolderLost()): (S.FREE, (Act.SAVE_SOON, Act.PLACE)),
    (S.GRANTED, MoveAsked(TO_FIVE, ANN)): (S.REVOKING, (Act.SEND_REVOKE,)),
    (S.GRANTED, MoveCancelled(7)): (S.GRANTED, ()),
    (S.GRANTED, ReserveEnded()): (S.GRANTED, ()),
    (S.GRANTED, replace(SAVED, grant_epoch=EPOCH - 1)): (S.GRANTED, ()),
    (S.GRANTED, Overdue()): (S.GRANTED, ()),
    (S.GRANTED, ResendDue()): (S.GRANTED, ()),
    (S.GRANTED, SAVED): (S.GRANTED, (Act.SEND_SAVED,)),
    (S.GRANTED, Sealed(11)): (S.GRANTED, ()),
    (S.GRANTED, Sealed(10)): (S.REVOKED, (Act.SAVE_NOW,)),
    (S.REVOKING, GrantDecided(BOB, b"s")): (S.REVOKING, ()),
    (S.REVOKING, reported()): (S.REVOKING, (Act.SAVE_SOON,)),
    (S.REVOKING, reported(final=True)): (S.REVOKED, (Act.SAVE_NOW,)),
    (S.REVOKING, RevokeDecided(BOB)): (S.REVOKING, ()),
    (S.REVOKING, Released(ANN, EPOCH)): (S.FREE, (Act.SAVE_SOON, Act.PLACE)),
    (S.REVOKING, HolderLost()): (S.FREE, (Act.SAVE_SOON, Act.PLACE)),
    (S.REVOKING, MoveAsked(TO_FIVE, ANN)): (S.REVOKING, ()),
    (S.REVOKING, MoveCancelled(7)): (S.REVOKING, ()),
    (S.REVOKING, ReserveEnded()): (S.REVOKING, ()),
    (S.REVOKING, SAVED_MOVE): (S.REVOKING, (Act.NOTE_MOVED, Act.SEND_SAVED)),
    (S.REVOKING, Overdue()): (S.REVOKED, (Act.SAVE_NOW,)),
    (S.REVOKING, ResendDue()): (S.REVOKING, (Act.SEND_REVOKE,)),
    (S.REVOKING, SAVED): (S.REVOKING, (Act.SEND_SAVED,)),
    (S.REVOKING, Sealed(11)): (S.REVOKING, ()),
    (S.REVOKED, GrantDecided(BOB, b"s")): (S.REVOKED, ()),
    (S.REVOKED, reported(final=True)): (S.REVOKED, (Act.SAVE_NOW,)),
    (S.REVOKED, reported(by=BOB)): (S.REVOKED, (Act.SEND_INVALIDATE,)),
    (S.REVOKED, RevokeDecided(BOB)): (S.REVOKED, ()),
    (S.REVOKED, Released(ANN, EPOCH)): (S.FREE, (Act.SAVE_SOON, Act.PLACE)),
    (S.REVOKED, HolderLost()): (S.FREE, (Act.SAVE_SOON, Act.PLACE)),
    (S.REVOKED, MoveAsked(TO_FIVE, ANN)): (S.REVOKED, ()),
    (S.REVOKED, MoveCancelled(7)): (S.REVOKED, ()),
    (S.REVOKED, ReserveEnded()): (S.REVOKED, ()),
    (S.REVOKED, Overdue()): (S.REVOKED, ()),
    (S.REVOKED, ResendDue()): (S.REVOKED, (Act.SEND_REVOKED,)),
    (S.REVOKED, SAVED): (S.REVOKED, (Act.SEND_REVOKED,)),
    (S.REVOKED, replace(SAVED, current=False)): (S.REVOKED, ()),
    (S.REVOKED, Sealed(10)): (S.REVOKED, ()),
    (S.FINISHED, GrantDecided(BOB, b"s")): (S.FINISHED, ()),
    (S.FINISHED, reported()): (S.FINISHED, (Act.SEND_INVALIDATE,)),
    (S.FINISHED, RevokeDecided(BOB)): (S.FINISHED, ()),
    (S.FINISHED, Released(ANN, EPOCH)): (S.FINISHED, ()),
    (S.FINISHED, HolderLost()): (S.FINISHED, ()),
    (S.FINISHED, MoveAsked(TO_FIVE, None)): (S.FREE, (Act.SAVE_NOW, Act.PLACE)),
    (S.FINISHED, MoveCancelled(7)): (S.FINISHED, ()),
    (S.FINISHED, ReserveEnded()): (S.FINISHED, ()),
    (S.FINISHED, SAVED_MOVE): (S.FINISHED, (Act.NOTE_MOVED,)),
    (S.FINISHED, Overdue()): (S.FINISHED, ()),
    (S.FINISHED, ResendDue()): (S.FINISHED, ()),
    (S.FINISHED, SAVED): (S.FINISHED, ()),
    (S.FINISHED, Sealed(10)): (S.FINISHED, ()),
    (S.FREE, ParentsJudged(closed=False)): (S.FREE, ()),
    (S.FREE, ParentsJudged(closed=True)): (S.CLOSED, (Act.SAVE_NOW,)),
    (S.FREE, QueuesRehomed(EPOCH, ())): (S.FREE, ()),
    (S.GRANTING, ParentsJudged(closed=False)): (S.GRANTING, ()),
    (S.GRANTING, ParentsJudged(closed=True)): (S.REVOKING, (Act.SEND_REVOKE, Act.SHARE_ANEW)),
    (S.GRANTING, QueuesRehomed(EPOCH, ())): (S.GRANTING, ()),
    (S.GRANTED, ParentsJudged(closed=False)): (S.GRANTED, ()),
    (S.GRANTED, ParentsJudged(closed=True)): (S.REVOKING, (Act.SEND_REVOKE, Act.SHARE_ANEW)),
    (S.GRANTED, QueuesRehomed(EPOCH, ())): (S.GRANTED, ()),
    (S.REVOKING, ParentsJudged(closed=True)): (S.REVOKING, ()),
    (S.REVOKING, QueuesRehomed(EPOCH, ())): (S.REVOKING, ()),
    (S.REVOKED, ParentsJudged(closed=True)): (S.REVOKED, ()),
    (S.REVOKED, QueuesRehomed(EPOCH, ())): (S.REVOKED, ()),
    (S.FINISHED, ParentsJudged(closed=False)): (S.FINISHED, ()),
    (S.FINISHED, ParentsJudged(closed=True)): (S.CLOSED, (Act.SAVE_NOW,)),
    (S.FINISHED, QueuesRehomed(EPOCH, ())): (S.FINISHED, ()),
    (S.FREE, CameBack()): (S.FREE, ()),
    (S.GRANTING, CameBack()): (S.GRANTING, ()),
    (S.GRANTED, CameBack()): (S.GRANTED, ()),
    (S.REVOKING, CameBack()): (S.REVOKING, ()),
    (S.REVOKED, CameBack()): (S.REVOKED, ()),
    (S.REHOMING, CameBack()): (S.REHOMING, ()),
    (S.CLOSED, CameBack()): (S.CLOSED, (Act.SAVE_NOW, Act.SAVE_SOON)),
    (S.FINISHED, CameBack()): (S.FREE, (Act.SAVE_NOW, Act.SAVE_SOON, Act.PLACE)),
    (S.CLOSED, GrantDecided(BOB, b"s")): (S.CLOSED, ()),
    (S.CLOSED, RevokeDecided(BOB)): (S.CLOSED, ()),
    (S.CLOSED, Released(ANN, EPOCH)): (S.CLOSED, ()),
    (S.CLOSED, HolderLost()): (S.CLOSED, ()),
    (S.CLOSED, MoveCancelled(7)): (S.CLOSED, ()),
    (S.CLOSED, ReserveEnded()): (S.CLOSED, ()),
    (S.CLOSED, Overdue()): (S.CLOSED, ()),
    (S.CLOSED, ResendDue()): (S.CLOSED, ()),
    (S.CLOSED, Sealed(10)): (S.CLOSED, ()),
    (S.CLOSED, reported()): (S.CLOSED, (Act.SEND_INVALIDATE,)),
    (S.REHOMING, GrantDecided(BOB, b"s")): (S.REHOMING, ()),
    (S.REHOMING, RevokeDecided(BOB)): (S.REHOMING, ()),
    (S.REHOMING, Released(ANN, EPOCH)): (S.REHOMING, ()),
    (S.REHOMING, HolderLost()): (S.REHOMING, ()),
    (S.REHOMING, MoveCancelled(7)): (S.REHOMING, ()),
    (S.REHOMING, ReserveEnded()): (S.REHOMING, ()),
    (S.REHOMING, Overdue()): (S.REHOMING, ()),
    (S.REHOMING, ResendDue()): (S.REHOMING, ()),
    (S.REHOMING, Sealed(10)): (S.REHOMING, ()),
    (S.REHOMING, reported()): (S.REHOMING, (Act.SEND_INVALIDATE,)),
    (S.CLOSED, SAVED): (S.CLOSED, ()),
    (S.CLOSED, MoveAsked(TO_FIVE, None)): (S.CLOSED, (Act.SAVE_NOW,)),
    (S.CLOSED, ParentsJudged(closed=True)): (S.CLOSED, ()),
    (S.CLOSED, ParentsJudged(closed=False)): (S.FREE, (Act.SAVE_SOON, Act.PLACE)),
    (S.CLOSED, QueuesRehomed(EPOCH, ())): (S.CLOSED, ()),
    (S.REHOMING, SAVED): (S.REHOMING, (Act.REHOME,)),
    (S.REHOMING, replace(SAVED, current=False)): (S.REHOMING, ()),
    (S.REHOMING, replace(SAVED, grant_epoch=EPOCH - 1)): (S.REHOMING, ()),
    (S.REHOMING, MoveAsked(TO_FIVE, None)): (S.REHOMING, ()),
    (S.REHOMING, ParentsJudged(closed=True)): (S.REHOMING, (Act.SAVE_NOW,)),
    (S.REHOMING, ParentsJudged(closed=False)): (S.FREE, (Act.SAVE_SOON, Act.PLACE)),
    (S.REHOMING, QueuesRehomed(EPOCH, ())): (S.FINISHED, (Act.SAVE_NOW, Act.SHARE_ANEW)),
    (S.REHOMING, QueuesRehomed(EPOCH - 1, ())): (S.REHOMING, ()),
}


@pytest.mark.parametrize("pair", EXPECTED, ids=lambda pair: f"{pair[0].value}-{pair[1]}")
def test_each_state_answers_each_event(pair: tuple[StreamState, StreamEvent]) -> None:
    state, event = pair
    lent = stream_in(state)
    acts = step(lent, event)
    assert (lent.state, acts) == EXPECTED[pair]


def test_the_table_is_total_and_every_pair_of_it_is_tested() -> None:
    pairs = {(state, event) for state in StreamState for event in get_args(StreamEvent)}
    assert set(TRANSITIONS) == pairs
    assert {(state, type(event)) for state, event in EXPECTED} == pairs


def test_lending_raises_the_epoch_and_names_the_holder_in_the_next_commit() -> None:
    lent = stream_in(S.FREE)
    step(lent, GrantDecided(BOB, b"session of bob"))
    assert lent.record().grant == GrantRecord(EPOCH + 1, b"session of bob", BOB)


@pytest.mark.parametrize("state", [S.GRANTING, S.REVOKED])
def test_nothing_is_sent_again_before_it_is_durable(state: StreamState) -> None:
    assert step(stream_in(state, durable=False), ResendDue()) == ()


def test_progress_only_grows_whatever_the_order_of_reports() -> None:
    lent = stream_in(S.GRANTED)
    step(lent, reported(floor=30))
    assert step(lent, reported(floor=15)) == (Act.SEND_SAVED,)
    assert lent.progress == Progress(30)


def test_a_report_that_says_nothing_new_is_answered_with_what_is_saved() -> None:
    lent = stream_in(S.GRANTED)
    step(lent, reported())
    step(lent, Saved(EPOCH, Progress(20), current=True, measured_end=None))
    assert step(lent, reported()) == (Act.SEND_SAVED,)
    assert lent.saved == Progress(20)


def test_a_final_report_that_bounds_what_was_sent_leaves_no_doubt() -> None:
    lent = stream_in(S.REVOKING)
    step(lent, reported(final=True, sent=20))
    step(lent, Released(ANN, EPOCH))
    assert lent.is_exact()
    assert lent.record().grant == GrantRecord(EPOCH, b"session of ann", None)


def test_records_sent_beyond_the_frontier_come_marked_to_the_next_holder() -> None:
    lent = stream_in(S.GRANTED)
    step(lent, reported(final=True, sent=33))
    step(lent, HolderLost())
    record = lent.record()
    assert record.grant is not None
    assert record.grant.borrower_id == ANN
    step(lent, GrantDecided(BOB, b"s"))
    assert lent.granted().frontier == 20
    assert lent.granted().suspect_end == 33


@pytest.mark.parametrize(
    "end", [(HolderLost(),), (Overdue(), Released(ANN, EPOCH)), (Released(ANN, EPOCH),)]
)
def test_a_grant_without_a_final_report_is_doubted_up_to_the_measured_end(
    end: tuple[StreamEvent, ...],
) -> None:
    lent = stream_in(S.REVOKING)
    for event in end:
        step(lent, event)
    assert not lent.is_exact()
    step(lent, GrantDecided(BOB, b"s"))
    step(lent, Saved(EPOCH + 1, Progress(10), current=True, measured_end=77))
    assert lent.granted().suspect_end == 77
    assert lent.granted().frontier == 10


def test_a_doubt_outlives_an_exact_grant_that_did_not_reach_it() -> None:
    lent = stream_in(S.GRANTED)
    step(lent, reported(final=True, sent=90))
    step(lent, HolderLost())
    step(lent, GrantDecided(BOB, b"s"))
    step(lent, reported(by=BOB, epoch=EPOCH + 1, floor=25, final=True, sent=25))
    step(lent, HolderLost())
    record = lent.record()
    assert record.grant is not None
    assert record.grant.borrower_id == BOB
    step(lent, GrantDecided(ANN, b"s"))
    assert lent.granted().suspect_end == 90


def test_a_reserved_stream_is_adopted_by_its_holder_only() -> None:
    stored = StoredStream(
        STREAM, Progress(10), 10, 50, None, EPOCH, session_id=b"s", borrower_id=ANN
    )
    lent = LentStream(stored)
    lent.reserved = True
    assert step(lent, reported(by=BOB)) == (Act.SEND_INVALIDATE,)
    assert step(lent, reported(epoch=EPOCH - 1)) == (Act.SEND_INVALIDATE,)
    assert step(lent, reported()) == (Act.SAVE_SOON,)
    assert lent.state is S.GRANTED
    assert not lent.reserved
    assert lent.suspect_end == 50


def test_a_holder_for_whom_a_stream_was_kept_in_vain_leaves_doubt() -> None:
    stored = StoredStream(STREAM, Progress(10), 10, 50, None, EPOCH, b"s", ANN)
    lent = LentStream(stored)
    lent.reserved = True
    assert step(lent, HolderLost()) == (Act.PLACE,)
    assert not lent.is_exact()


def test_the_end_of_a_sealed_stream_ends_its_grant_and_finishes_it() -> None:
    lent = stream_in(S.GRANTED)
    step(lent, Sealed(20))
    assert step(lent, reported(floor=20)) == (Act.SAVE_NOW,)
    assert state_of(lent) is S.REVOKED
    assert step(lent, Released(ANN, EPOCH)) == (Act.SAVE_SOON, Act.SHARE_ANEW)
    assert state_of(lent) is S.FINISHED
    assert lent.record().finished


@pytest.mark.parametrize("finished", [True, False])
def test_a_stream_that_is_at_its_end_is_loaded_as_finished(finished: bool) -> None:
    floor = 10 if finished else 20
    stored = StoredStream(STREAM, Progress(floor), floor, 20, 20, finished=finished)
    assert LentStream(stored).state is S.FINISHED


# Moves of the cursor


def moving(state: StreamState, *, reserved: bool = False) -> LentStream:
    """A stream that is asked to move once nobody holds it."""
    lent = stream_in(state)
    if reserved:
        lent.reserved, lent.holder, lent.session_id = True, ANN, b"session of ann"
    step(lent, MoveAsked(TO_FIVE, ANN if state in HELD else None))
    return lent


@pytest.mark.parametrize("state", [S.FREE, S.FINISHED])
def test_a_stream_that_nobody_holds_moves_at_once_under_a_new_epoch(state: StreamState) -> None:
    lent = moving(state)
    record = lent.record()
    assert (record.progress, record.frontier, record.marked_below) == (Progress(5), 5, 10)
    assert record.ended_move == MadeMove(7, Progress(10), Progress(5))
    assert (record.cursor_generation, record.finished) == (7, False)
    assert record.grant is not None
    assert record.grant.grant_epoch == EPOCH + 1
    assert record.grant.session_id is None


@pytest.mark.parametrize("state", [S.GRANTING, S.GRANTED, S.REVOKING, S.REVOKED])
@pytest.mark.parametrize(
    "end",
    [
        (HolderLost(),),
        (Overdue(), Released(ANN, EPOCH), HolderLost()),
        (reported(final=True), Released(ANN, EPOCH)),
    ],
)
def test_a_held_stream_moves_as_its_holder_lets_go_and_goes_back_to_it(
    state: StreamState, end: tuple[StreamEvent, ...]
) -> None:
    lent = moving(state)
    assert lent.move == TO_FIVE
    for event in end:
        step(lent, event)
    assert (state_of(lent), lent.progress) == (S.FREE, Progress(5))
    assert (lent.grant_epoch, lent.cursor_generation) == (EPOCH + 1, 7)
    assert lent.heir == (None if state in (S.REVOKING, S.REVOKED) else ANN)


def test_a_finished_stream_that_is_moved_to_its_end_stays_finished() -> None:
    lent = LentStream(StoredStream(STREAM, Progress(20), 20, 20, 20, EPOCH, finished=True))
    by_hand = CursorMove(STREAM, 7, (), ((12, 13),))
    assert step(lent, MoveAsked(by_hand, None)) == (Act.SAVE_NOW, Act.SHARE_ANEW)
    assert lent.state is S.FINISHED
    assert lent.ended_move == MadeMove(7, Progress(20), Progress(20))


def test_a_finished_stream_that_is_rewound_is_lent_again() -> None:
    lent = LentStream(StoredStream(STREAM, Progress(20), 20, 20, 20, EPOCH, finished=True))
    assert step(lent, MoveAsked(TO_FIVE, None)) == (Act.SAVE_NOW, Act.PLACE)
    assert step(lent, GrantDecided(BOB, b"s")) == (Act.SAVE_NOW,)
    assert lent.granted().progress == Progress(5)
    assert lent.granted().suspect_end == 20


def test_a_stream_that_is_skipped_to_its_sealed_end_finishes() -> None:
    lent = LentStream(StoredStream(STREAM, Progress(10), 10, 20, 20, EPOCH))
    skip = CursorMove(STREAM, 7, (), ((0, 20),))
    assert step(lent, MoveAsked(skip, None)) == (Act.SAVE_NOW, Act.SHARE_ANEW)
    assert lent.state is S.FINISHED


def test_a_reserved_stream_moves_only_once_it_is_kept_no_more() -> None:
    lent = moving(S.FREE, reserved=True)
    assert lent.progress == Progress(10)
    assert step(lent, ReserveEnded()) == (Act.SAVE_NOW, Act.PLACE)
    assert (lent.progress, lent.unmeasured, lent.reserved) == (Progress(5), False, False)


def test_a_reserved_stream_whose_holder_is_lost_moves_in_doubt() -> None:
    lent = moving(S.FREE, reserved=True)
    assert step(lent, HolderLost()) == (Act.SAVE_NOW, Act.PLACE)
    assert (lent.progress, lent.unmeasured, lent.reserved) == (Progress(5), True, False)


def test_a_holder_that_presents_a_stream_that_is_to_move_is_adopted_and_asked_for_it() -> None:
    lent = moving(S.FREE, reserved=True)
    assert step(lent, reported()) == (Act.SAVE_SOON, Act.SEND_REVOKE)
    assert (state_of(lent), lent.reserved, lent.progress) == (S.REVOKING, False, Progress(20))
    step(lent, reported(floor=30, final=True))
    assert step(lent, Released(ANN, EPOCH)) == (Act.SAVE_NOW, Act.PLACE)
    assert lent.progress == Progress(5)
    assert lent.ended_move == MadeMove(7, Progress(30), Progress(5))


def test_a_holder_that_presents_a_stream_at_its_end_lets_go_before_it_moves() -> None:
    lent = LentStream(StoredStream(STREAM, Progress(10), 10, 20, 20, EPOCH, b"s", ANN))
    lent.reserved = True
    step(lent, MoveAsked(TO_FIVE, None))
    assert step(lent, reported(floor=20)) == (Act.SAVE_SOON, Act.SEND_REVOKE)
    assert (state_of(lent), lent.progress) == (S.REVOKING, Progress(20))
    step(lent, reported(floor=20, final=True))
    assert step(lent, Released(ANN, EPOCH)) == (Act.SAVE_NOW, Act.PLACE)
    assert (state_of(lent), lent.progress) == (S.FREE, Progress(5))


def test_a_reserved_stream_that_is_sealed_where_it_stands_still_waits_with_its_move() -> None:
    lent = moving(S.FREE, reserved=True)
    assert step(lent, Sealed(10)) == ()
    assert step(lent, HolderLost()) == (Act.SAVE_NOW, Act.PLACE)
    assert (state_of(lent), lent.progress) == (S.FREE, Progress(5))


def test_a_stream_that_is_kept_for_a_session_moves_before_it_is_lent_to_it() -> None:
    lent = moving(S.FREE, reserved=True)
    assert step(lent, GrantDecided(BOB, b"session of ann")) == (Act.SAVE_NOW,)
    assert (state_of(lent), lent.grant_epoch, lent.reserved) == (S.GRANTING, EPOCH + 2, False)
    assert lent.granted().progress == Progress(5)


def test_a_stream_that_is_skipped_to_its_end_for_a_session_is_not_lent_to_it() -> None:
    lent = LentStream(StoredStream(STREAM, Progress(10), 10, 20, 20, EPOCH, b"s", ANN))
    lent.reserved = True
    step(lent, MoveAsked(CursorMove(STREAM, 7, (), ((0, 20),)), None))
    assert step(lent, GrantDecided(BOB, b"s")) == (Act.SAVE_NOW, Act.SHARE_ANEW)
    assert (state_of(lent), lent.reserved) == (S.FINISHED, False)


@pytest.mark.parametrize("final", [True, False])
def test_a_report_of_before_a_move_changes_nothing_after_it(final: bool) -> None:
    lent = moving(S.GRANTED)
    step(lent, HolderLost())
    assert step(lent, reported(floor=90, final=final)) == (Act.SEND_INVALIDATE,)
    step(lent, GrantDecided(ANN, b"session of ann"))
    assert step(lent, reported(floor=90, final=final)) == (Act.SEND_INVALIDATE,)
    assert lent.progress == Progress(5)


def test_a_commit_of_before_a_move_says_nothing_of_what_is_saved_after_it() -> None:
    lent = moving(S.GRANTED)
    step(lent, HolderLost())
    step(lent, GrantDecided(ANN, b"session of ann"))
    step(lent, Saved(EPOCH, Progress(50), current=False, measured_end=None))
    assert lent.saved == Progress(0)
    step(lent, Saved(EPOCH + 2, Progress(5), current=True, measured_end=None, moved_by=7))
    assert lent.saved == Progress(5)


def test_the_doubt_of_before_a_move_is_measured_after_it() -> None:
    lent = moving(S.GRANTED)
    step(lent, HolderLost())
    step(lent, GrantDecided(ANN, b"session of ann"))
    assert not lent.is_exact()
    step(lent, Saved(EPOCH + 2, Progress(5), current=True, measured_end=77, moved_by=7))
    assert lent.granted().suspect_end == 77
    assert lent.granted().frontier == 5


def test_a_move_that_is_asked_for_twice_is_made_once() -> None:
    lent = moving(S.GRANTED)
    assert step(lent, MoveAsked(TO_FIVE, ANN)) == ()
    step(lent, HolderLost())
    known = lent.record()
    assert step(lent, MoveAsked(TO_FIVE, None)) == ()
    assert lent.record() == known


@pytest.mark.parametrize("state", [S.GRANTING, S.GRANTED, S.REVOKING, S.REVOKED])
def test_a_move_that_is_cancelled_in_time_is_not_made(state: StreamState) -> None:
    lent = moving(state)
    assert step(lent, MoveCancelled(6)) == ()
    assert step(lent, MoveCancelled(7)) == (Act.SAVE_NOW,)
    assert lent.ended_move == CancelledMove(7)
    step(lent, HolderLost())
    assert (lent.progress, lent.grant_epoch) == (Progress(10), EPOCH)


def test_a_reserved_stream_whose_move_is_cancelled_stays_reserved() -> None:
    lent = moving(S.FREE, reserved=True)
    assert step(lent, MoveCancelled(7)) == (Act.SAVE_NOW,)
    assert lent.reserved
    assert step(lent, reported()) == (Act.SAVE_SOON,)
    assert lent.state is S.GRANTED


def test_a_move_that_was_made_stays_made_when_it_is_cancelled() -> None:
    lent = moving(S.FREE)
    assert step(lent, MoveCancelled(7)) == ()
    assert lent.progress == Progress(5)
