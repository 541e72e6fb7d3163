"""A stream with queues is lent, reported and stored as one: its lane."""

from dataclasses import replace

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.borrower.borrow_machine import step as step_borrower
from dssd.machines.borrower.events import Received, Reported, Started
from dssd.machines.borrower.lease_machine import step as step_lease_borrower
from dssd.machines.borrower.state import Borrower, LeaseBorrower
from dssd.machines.leader.events import (
    CursorMove,
    PresentStream,
    StoredStream,
    StreamsChanged,
)
from dssd.machines.leader.lent_stream import LentStream, StreamState
from dssd.machines.leader.state import Leader, glance, view
from dssd.machines.leader.stream import step as step_stream
from dssd.machines.leader.stream_events import (
    Act,
    GrantDecided,
    HolderLost,
    MoveAsked,
    Released,
    Sealed,
)
from dssd.machines.leader.stream_events import Reported as StreamReported
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.messages import (
    Disconnect,
    Grant,
    GrantedStream,
    LeaderWanted,
    LeaseStreams,
    ProgressSaved,
    StreamReport,
    UpdateProgress,
    UpdateStreamStates,
)
from dssd.machines.queues import Queues, QueueState
from support.played_leader import LEADER, LeaderRun, fresh, session_of, stream

ANN, BOB = b"ann", b"bob"
RETRY, DEAD = StreamId(8, 0), StreamId(9, 0)
NEW: Queues = (QueueState(RETRY), QueueState(DEAD))
FAILED: Queues = (QueueState(RETRY, Progress(0), 2), QueueState(DEAD))
"""Two records were moved to the retry queue."""
ONE_DEAD: Queues = (QueueState(RETRY, Progress(1), 2), QueueState(DEAD, Progress(0), 1))
ALL_DONE: Queues = (QueueState(RETRY, Progress(2), 2), QueueState(DEAD, Progress(0), 1))


def lane(queues: Queues = NEW, *, sealed_end: int | None = None) -> StoredStream:
    return replace(fresh(0, sealed_end=sealed_end), queues=queues)


def said(floor: int, queues: Queues, epoch: int = 1, *, sent: int | None = None) -> StreamReport:
    return StreamReport(stream(0), epoch, Progress(floor), floor, sent=sent, queues=queues)


def after(begun: int, ended: int, queues: Queues) -> Queues:
    """As who holds the lane tells of them that has begun and ended so much."""
    return (replace(queues[0], begun=begun, ended=ended), *queues[1:])


def run_of(stored: StoredStream, *, leases: bool = False) -> LeaderRun:
    return LeaderRun(Leader(LEADER, stream_sets=StreamSets() if leases else None), stored)


def lend(run: LeaderRun, name: bytes) -> GrantedStream:
    """The stream as a member is told of it that joins."""
    run.tell(LeaderWanted(name, 0, session_of(name), name.decode()))
    run.pass_ms(200)
    [granted] = [
        each
        for message in run.commit_all()
        if isinstance(message, Grant | LeaseStreams)
        for each in message.streams
    ]
    return granted


def test_a_lane_is_lent_with_its_queues_and_generation() -> None:
    granted = lend(run_of(replace(lane(FAILED), cursor_generation=7)), ANN)
    assert (granted.queues, granted.cursor_generation) == (FAILED, 7)


def test_what_a_report_says_of_queues_is_stored_where_it_changed_and_told_as_durable() -> None:
    run = run_of(lane())
    lend(run, ANN)
    run.tell(UpdateProgress(ANN, LEADER, (said(12, FAILED),)))
    run.pass_ms(100)
    told = [each for each in run.commit_all() if isinstance(each, ProgressSaved)]
    assert run.saved[stream(0)].queues == FAILED[:1]
    assert told == [ProgressSaved(ANN, LEADER, stream(0), 1, Progress(12), FAILED)]
    run.tell(UpdateProgress(ANN, LEADER, (said(13, FAILED),)))
    run.pass_ms(100)
    run.commit_all()
    assert run.saved[stream(0)].queues == ()


def test_a_report_of_queues_alone_is_something_new() -> None:
    run = run_of(lane(FAILED))
    lend(run, ANN)
    run.tell(UpdateProgress(ANN, LEADER, (said(10, FAILED),)))
    run.commit_all()
    run.tell(UpdateProgress(ANN, LEADER, (said(10, ONE_DEAD),)))
    run.pass_ms(100)
    run.commit_all()
    assert run.saved[stream(0)].queues == ONE_DEAD


def test_the_next_holder_gets_the_queues_of_the_last_words_of_the_one_before() -> None:
    run = run_of(lane())
    lend(run, ANN)
    run.tell(Disconnect(ANN, LEADER, (said(12, ONE_DEAD, sent=12),)))
    run.pass_ms(300)
    run.commit_all()
    assert lend(run, BOB).queues == ONE_DEAD


def test_a_lease_group_carries_queues_both_ways() -> None:
    run = run_of(lane(FAILED), leases=True)
    assert lend(run, ANN).queues == FAILED
    run.tell(UpdateStreamStates(ANN, LEADER, run.now_ms, 1, (said(10, ONE_DEAD),)))
    run.pass_ms(100)
    run.commit_all()
    assert run.saved[stream(0)].queues == ONE_DEAD


def test_a_stream_that_appears_brings_its_queues() -> None:
    run = run_of(lane())
    run.feed(StreamsChanged(run.now_ms, (PresentStream(stream(1), None, NEW),)))
    assert run.leader.streams[stream(1)].queues == NEW


def test_views_and_glances_show_queues() -> None:
    run = run_of(lane(FAILED))
    [shown], [glanced] = view(run.leader, 0).streams, glance(run.leader).streams
    assert shown.queues == glanced.queues == FAILED


@pytest.mark.parametrize(("queues", "finished"), [(ONE_DEAD, False), (ALL_DONE, True)])
def test_a_sealed_stream_is_finished_once_nothing_waits_in_its_retry_queue(
    queues: Queues, finished: bool
) -> None:
    lent = LentStream(lane(NEW, sealed_end=20))
    step_stream(lent, GrantDecided(ANN, b"s"))
    acts = step_stream(lent, StreamReported(ANN, said(20, after(1, 1, queues)), final=False))
    assert acts == ((Act.SAVE_NOW,) if finished else (Act.SAVE_SOON,))
    assert LentStream(lane(queues, sealed_end=10)).is_at_end() == finished


def test_a_stream_that_is_sealed_stays_with_its_holder_while_records_wait() -> None:
    lent = LentStream(lane(NEW))
    step_stream(lent, GrantDecided(ANN, b"s"))
    step_stream(lent, StreamReported(ANN, said(20, FAILED), final=False))
    assert step_stream(lent, Sealed(20)) == ()
    assert step_stream(lent, StreamReported(ANN, said(20, after(1, 1, ALL_DONE)), final=False))
    step_stream(lent, Released(ANN, 1))
    assert lent.state is StreamState.FINISHED


def test_a_sealed_stream_stays_with_its_holder_while_a_move_is_under_way() -> None:
    lent = LentStream(lane(NEW, sealed_end=20))
    step_stream(lent, GrantDecided(ANN, b"s"))
    before = StreamReported(ANN, said(19, after(1, 1, NEW)), final=False)
    # What is moved was acknowledged late: nothing waits, as far as its holder knows.
    moving = StreamReported(ANN, said(20, after(2, 1, NEW)), final=False)
    for told, act in ((before, Act.SAVE_SOON), (moving, Act.SAVE_SOON), (before, Act.SEND_SAVED)):
        assert step_stream(lent, told) == (act,)
    arrived = StreamReported(ANN, said(20, after(2, 2, ALL_DONE)), final=False)
    assert step_stream(lent, arrived) == (Act.SAVE_NOW,)
    step_stream(lent, Released(ANN, 1))
    assert lent.state is StreamState.FINISHED


@pytest.mark.parametrize("begun", [1, 2])
def test_a_sealed_stream_whose_holder_was_lost_is_looked_at_once_more(begun: int) -> None:
    lent = LentStream(lane(NEW, sealed_end=20))
    step_stream(lent, GrantDecided(ANN, b"s"))
    step_stream(lent, StreamReported(ANN, said(12, after(begun, begun, NEW)), final=False))
    step_stream(lent, HolderLost())
    step_stream(lent, MoveAsked(CursorMove(stream(0), 7, (), ((0, 20),)), None))
    assert (lent.state, lent.is_at_end()) == (StreamState.FREE, True)
    step_stream(lent, GrantDecided(BOB, b"t"))
    opening = StreamReported(BOB, said(20, after(1, 0, NEW), 3), final=False)
    assert step_stream(lent, opening) == (Act.SEND_SAVED,)
    opened = StreamReported(BOB, said(20, after(1, 1, ALL_DONE), 3), final=False)
    assert step_stream(lent, opened) == (Act.SAVE_NOW,)
    assert lent.state is StreamState.REVOKED


def test_a_holder_hears_what_its_leader_heard_of_though_nothing_of_it_is_stored() -> None:
    run = run_of(lane(FAILED))
    lend(run, ANN)
    opened = said(10, after(1, 1, FAILED))
    for _ in range(2):
        run.sent.clear()
        run.tell(UpdateProgress(ANN, LEADER, (opened,)))
        run.pass_ms(100)
        run.commit_all()
    [told] = [each for each in run.sent if isinstance(each, ProgressSaved)]
    assert (told.queues[0].begun, told.queues[0].ended) == (1, 1)
    assert run.saved[stream(0)].queues == ()


# Borrowers


def test_a_borrower_reports_what_it_was_granted_and_what_its_session_adds() -> None:
    borrower = Borrower(ANN, b"s", "ann", 6_000)
    step_borrower(borrower, Started(0))
    granted = GrantedStream(stream(0), 1, Progress(10), 10, (), 10, queues=NEW)
    step_borrower(borrower, Received(Grant(ANN, LEADER, (granted,), 6_000), 1))
    held = borrower.streams[stream(0)]
    assert held.report.queues == NEW
    step_borrower(borrower, Reported((said(12, FAILED),), 2))
    assert held.report.queues == FAILED


def test_a_borrower_that_leaves_gives_back_a_lane_with_its_queues() -> None:
    borrower = LeaseBorrower(ANN, b"s", "ann", 6_000)
    step_lease_borrower(borrower, Started(0))
    granted = GrantedStream(stream(0), 1, Progress(10), 10, (), 10, queues=FAILED)
    leased = LeaseStreams(ANN, LEADER, 1, (granted,), 6_000, 0)
    step_lease_borrower(borrower, Received(leased, 1))
    assert borrower.streams[stream(0)].report.queues == FAILED
