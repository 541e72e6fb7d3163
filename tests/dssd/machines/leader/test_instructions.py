"""What operations ask of a leader: when it moves cursors, and when it says that it is done."""

from dataclasses import replace

import pytest

from dss_core.progress import Progress, Ranges
from dssd.machines.leader.events import (
    CancelledMove,
    CancelMoves,
    Committed,
    Concluded,
    CursorMove,
    Instructed,
    Instruction,
    LeaderEffect,
    LeaderInput,
    MadeMove,
    MoveCursors,
    SessionClosed,
    SetVersion,
    StoredStream,
    StreamsChanged,
    TookOver,
)
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.leader.machine import step
from dssd.machines.leader.state import Leader
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.leader.timing import LeaderTiming
from dssd.machines.messages import (
    Disconnect,
    Grant,
    Invalidate,
    LeaderWanted,
    LeaseStreams,
    Ping,
    RenewStreamLease,
    Revoke,
    RevokeFinished,
    StreamReport,
    TakenState,
    UpdateProgress,
    UpdateStreams,
    UpdateStreamStates,
)
from dssd.machines.start_point import OFFSET_MAX
from support.played_leader import LEADER, LeaderRun, fresh, of_kind, session_of, stream

ANN, BOB = b"ann", b"bob"
S = StreamState


def rewind(at: int, to: int = 0, number: int = 7) -> CursorMove:
    return CursorMove(stream(at), number, ((to, OFFSET_MAX),), ())


def skip(at: int, to: int, number: int = 7) -> CursorMove:
    return CursorMove(stream(at), number, (), ((0, to),))


def moves(*each: CursorMove) -> MoveCursors:
    return MoveCursors(each[0].number, each)


def held(at: int, holder: bytes, *, exact: bool = False) -> StoredStream:
    """As the leader before left it: lent under epoch 3."""
    borrower = None if exact else holder
    return StoredStream(stream(at), Progress(10), 10, 100, None, 3, session_of(holder), borrower)


class Run(LeaderRun):
    """A leader that is given instructions."""

    def __init__(
        self,
        *stored: StoredStream,
        pending: tuple[CursorMove, ...] = (),
        restarted: bool = False,
        leader: Leader | None = None,
        versions: tuple[SetVersion, ...] = (),
    ) -> None:
        self.concluded: list[int] = []
        self._pending = pending
        super().__init__(leader or Leader(LEADER), *stored, restarted=restarted, versions=versions)

    def feed(self, given_input: LeaderInput) -> list[LeaderEffect]:
        if isinstance(given_input, TookOver):
            given_input = TookOver(
                0, given_input.streams, given_input.restarted, given_input.versions, self._pending
            )
        effects = super().feed(given_input)
        self.concluded += [each.number for each in effects if isinstance(each, Concluded)]
        return effects

    def instruct(self, instruction: Instruction) -> None:
        self.feed(Instructed(instruction, self.now_ms))

    def join(self, *names: bytes) -> None:
        for name in names:
            self.tell(LeaderWanted(name, 0, session_of(name), name.decode()))
        self.pass_ms(200)
        self.confirm()

    def confirm(self) -> None:
        """Members report what they are granted."""
        for message in of_kind(self.commit_all(), Grant):
            assert isinstance(message, Grant)
            for granted in message.streams:
                report = StreamReport(
                    granted.stream, granted.grant_epoch, granted.progress, granted.frontier
                )
                self.tell(UpdateProgress(message.borrower_id, LEADER, (report,)))

    def report(self, name: bytes, at: int, floor: int, *, final: bool = False) -> None:
        epoch = self.epoch(at)
        report = StreamReport(stream(at), epoch, Progress(floor), floor, sent=floor)
        self.tell(UpdateProgress(name, LEADER, (report,), final=final))

    def give_back(self, name: bytes, at: int, floor: int) -> None:
        """The holder answers a revoke in full."""
        self.report(name, at, floor, final=True)
        self.commit_all()
        self.tell(RevokeFinished(name, LEADER, stream(at), self.epoch(at)))

    def epoch(self, at: int) -> int:
        return self.leader.streams[stream(at)].grant_epoch

    def state(self, at: int) -> StreamState:
        return self.leader.streams[stream(at)].state

    def floor(self, at: int) -> int:
        """Of the stored progress."""
        return self.saved[stream(at)].progress.floor


# When it is done


def test_what_asks_for_nothing_is_concluded_at_once() -> None:
    run = Run(fresh(0))
    run.instruct(MoveCursors(7, ()))
    assert run.concluded == [7]
    assert run.persists == []


def test_a_move_of_a_free_stream_is_concluded_once_it_is_durable() -> None:
    run = Run(fresh(0), fresh(1))
    run.instruct(moves(rewind(0)))
    [persist] = run.persists
    assert [each.ended_move for each in persist.records] == [MadeMove(7, Progress(10), Progress(0))]
    assert run.concluded == []
    run.commit()
    assert run.concluded == [7]


def test_a_move_that_waits_for_a_commit_under_way_is_concluded_by_its_own() -> None:
    run = Run(fresh(0), fresh(1))
    run.instruct(moves(rewind(0)))
    run.instruct(moves(rewind(1, number=8)))
    run.commit()
    assert run.concluded == [7]
    run.commit()
    assert run.concluded == [7, 8]
    assert run.saved[stream(1)].cursor_generation == 8


def test_a_held_stream_is_asked_for_moved_and_lent_to_its_holder_again() -> None:
    run = Run(fresh(0), fresh(1))
    run.join(ANN)
    run.instruct(moves(rewind(0)))
    [revoke] = of_kind(run.sent, Revoke)
    assert isinstance(revoke, Revoke)
    assert (revoke.borrower_id, revoke.stream) == (ANN, stream(0))
    run.give_back(ANN, 0, 40)
    [grant] = of_kind(run.commit_all(), Grant)
    assert isinstance(grant, Grant)
    [granted] = grant.streams
    assert (grant.borrower_id, granted.stream, granted.progress) == (ANN, stream(0), Progress(0))
    assert (granted.frontier, granted.suspect_end) == (0, 40)
    assert granted.grant_epoch == revoke.grant_epoch + 2
    assert run.concluded == [7]


def test_streams_that_are_not_named_stay_with_their_holder_undisturbed() -> None:
    run = Run(*map(fresh, range(4)))
    run.join(ANN, BOB)
    epochs = {at: run.epoch(at) for at in range(1, 4)}
    run.instruct(moves(rewind(0)))
    [revoke] = of_kind(run.sent, Revoke)
    assert isinstance(revoke, Revoke)
    run.give_back(revoke.borrower_id, 0, 40)
    run.confirm()
    run.pass_ms(1_000)
    assert epochs == {at: run.epoch(at) for at in range(1, 4)}
    assert all(run.state(at) is S.GRANTED for at in range(4))
    assert len(of_kind(run.sent, Revoke)) == 1


def test_what_the_holder_reported_before_the_move_is_what_an_undo_restores() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.instruct(moves(rewind(0)))
    run.give_back(ANN, 0, 40)
    [persist] = run.persists
    assert persist.records[0].ended_move == MadeMove(7, Progress(40), Progress(0))


def test_a_report_of_before_the_move_is_refused_after_it() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    epoch = run.epoch(0)
    run.instruct(moves(rewind(0)))
    run.give_back(ANN, 0, 40)
    run.confirm()
    late = StreamReport(stream(0), epoch, Progress(60), 60, sent=60)
    assert run.tell(UpdateProgress(ANN, LEADER, (late,))) == [
        Invalidate(ANN, LEADER, "not the holder", stream(0), epoch)
    ]
    assert run.leader.streams[stream(0)].progress == Progress(0)


def test_a_commit_of_before_the_move_does_not_make_its_progress_count_as_saved() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.report(ANN, 0, 40)
    run.pass_ms(50)
    assert len(run.persists) == 1
    run.instruct(moves(rewind(0)))
    run.feed(SessionClosed(session_of(ANN), run.now_ms))
    run.commit()
    assert run.concluded == []
    assert run.leader.streams[stream(0)].saved == Progress(0)
    run.commit()
    assert (run.concluded, run.floor(0)) == ([7], 0)


def test_a_frozen_holder_delays_its_own_streams_for_its_lease_at_most() -> None:
    run = Run(fresh(0), fresh(1))
    run.join(ANN, BOB)
    of_ann = next(each.partition for each in run.leader.members[ANN].streams)
    of_bob = 1 - of_ann
    run.instruct(moves(rewind(0), rewind(1)))
    run.give_back(BOB, of_bob, 20)
    run.confirm()
    assert (run.floor(of_bob), run.concluded) == (0, [])
    for _ in range(run.leader.timing.lease_ms // 1_000 + 1):
        run.tell(Ping(BOB, LEADER, 0))
        run.pass_ms(1_000)
        run.confirm()
    assert (run.floor(of_ann), run.concluded) == (0, [7])
    assert run.leader.members.keys() == {BOB}


def test_a_holder_that_leaves_meanwhile_is_not_given_the_stream_again() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.tell(LeaderWanted(BOB, 0, session_of(BOB), "bob"))
    run.instruct(moves(rewind(0)))
    run.tell(UpdateProgress(ANN, LEADER, (), leaving=True))
    run.give_back(ANN, 0, 40)
    run.pass_ms(200)
    [grant] = of_kind(run.commit_all(), Grant)
    assert isinstance(grant, Grant)
    assert (grant.borrower_id, grant.streams[0].progress) == (BOB, Progress(0))


def test_a_holder_that_is_leaving_is_asked_for_the_stream_and_inherits_nothing() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.tell(UpdateProgress(ANN, LEADER, (), leaving=True))
    run.instruct(moves(rewind(0)))
    assert len(of_kind(run.sent, Revoke)) == 1
    run.give_back(ANN, 0, 40)
    run.commit_all()
    assert (run.state(0), run.floor(0), run.concluded) == (S.FREE, 0, [7])


def test_a_rebalance_meanwhile_changes_who_gets_the_moved_stream() -> None:
    run = Run(fresh(0), fresh(1))
    run.join(ANN)
    run.instruct(moves(rewind(0), rewind(1)))
    run.tell(LeaderWanted(BOB, 0, session_of(BOB), "bob"))
    run.pass_ms(200)
    run.give_back(ANN, 0, 40)
    run.give_back(ANN, 1, 50)
    run.confirm()
    assert {len(member.streams) for member in run.leader.members.values()} == {1}
    assert (run.floor(0), run.floor(1), run.concluded) == (0, 0, [7])


def test_a_stream_that_is_removed_meanwhile_keeps_nothing_waiting() -> None:
    run = Run(fresh(0), fresh(1))
    run.join(ANN)
    run.instruct(moves(rewind(0), rewind(1)))
    run.feed(StreamsChanged(run.now_ms, gone=(stream(0),)))
    assert run.concluded == []
    run.give_back(ANN, 1, 40)
    run.confirm()
    assert run.concluded == [7]
    run.instruct(moves(rewind(1, number=8)))
    run.feed(StreamsChanged(run.now_ms, gone=(stream(1),)))
    assert run.concluded == [7, 8]


def test_a_stream_that_is_not_there_keeps_nothing_waiting() -> None:
    run = Run(fresh(0))
    run.instruct(moves(rewind(5)))
    assert run.concluded == [7]


def test_a_stream_that_is_removed_while_its_move_is_committed_is_concluded_once() -> None:
    run = Run(fresh(0))
    run.instruct(moves(rewind(0)))
    run.feed(StreamsChanged(run.now_ms, gone=(stream(0),)))
    run.commit()
    assert run.concluded == [7]


def test_an_instruction_that_comes_again_is_done_once() -> None:
    run = Run(fresh(0), fresh(1))
    run.join(ANN)
    run.instruct(moves(rewind(0)))
    run.instruct(moves(rewind(0)))
    assert run.concluded == []
    run.give_back(ANN, 0, 40)
    run.instruct(moves(rewind(0)))
    assert run.concluded == []
    run.confirm()
    assert run.concluded == [7]
    run.report(ANN, 0, 30)
    epoch = run.epoch(0)
    run.instruct(moves(rewind(0)))
    assert (run.concluded, run.epoch(0)) == ([7, 7], epoch)
    assert run.leader.streams[stream(0)].progress == Progress(30)


def test_a_leader_that_has_not_taken_over_does_nothing() -> None:
    assert step(Leader(LEADER), Instructed(moves(rewind(0)), 0))[1] == []


# Cancel


def test_a_cancelled_move_is_concluded_once_that_is_durable_and_its_stream_goes_back() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.instruct(moves(rewind(0)))
    run.instruct(CancelMoves(7))
    [persist] = run.persists
    assert persist.records[0].ended_move == CancelledMove(7)
    assert run.concluded == []
    run.commit()
    assert run.concluded == [7]
    run.give_back(ANN, 0, 40)
    run.confirm()
    assert (run.state(0), run.floor(0)) == (S.GRANTED, 40)
    assert run.saved[stream(0)].cursor_generation == 0


def test_a_cancelled_move_that_is_asked_once_more_is_not_made() -> None:
    """Who lost sight of the leader repeats what it asked, the move before its cancellation."""
    run = Run(fresh(0))
    run.join(ANN)
    run.instruct(moves(rewind(0)))
    run.instruct(CancelMoves(7))
    run.commit_all()
    run.instruct(moves(rewind(0)))
    run.give_back(ANN, 0, 40)
    run.commit_all()
    assert run.saved[stream(0)].cursor_generation == 0
    assert run.concluded == [7, 7]


def test_what_was_moved_before_a_cancel_stays_moved() -> None:
    run = Run(fresh(0), fresh(1))
    run.join(ANN)
    run.instruct(moves(rewind(0), rewind(1)))
    run.give_back(ANN, 0, 40)
    run.instruct(CancelMoves(7))
    run.confirm()
    assert run.concluded == [7]
    assert (run.floor(0), run.saved[stream(0)].cursor_generation) == (0, 7)
    assert (run.floor(1), run.saved[stream(1)].cursor_generation) == (10, 0)


def test_a_cancel_of_what_is_done_is_concluded_at_once() -> None:
    run = Run(fresh(0))
    run.instruct(moves(rewind(0)))
    run.commit()
    run.instruct(CancelMoves(7))
    assert run.concluded == [7, 7]
    assert run.persists == []


# Takeover


def test_a_new_leader_makes_the_moves_that_wait() -> None:
    run = Run(fresh(0), fresh(1), pending=(rewind(0), skip(1, 50, number=8)))
    run.commit_all()
    assert (run.floor(0), run.floor(1)) == (0, 50)
    assert run.concluded == [7, 8]


def test_a_new_leader_gives_up_a_move_that_was_cancelled_and_makes_the_others() -> None:
    cancelled = replace(rewind(0), cancelled=True)
    known = StoredStream(stream(0), Progress(10), 10, 100, None, 9)
    run = Run(known, fresh(1), pending=(cancelled, skip(1, 50, number=8)))
    ended = [each.ended_move for persist in run.persists for each in persist.records]
    assert CancelledMove(7) in ended
    assert run.concluded == []
    run.commit_all()
    assert (run.floor(0), run.floor(1)) == (10, 50)
    assert sorted(run.concluded) == [7, 8]
    assert run.saved[stream(0)].cursor_generation == 0


def test_a_new_leader_asks_no_holder_for_a_stream_whose_move_was_cancelled() -> None:
    run = Run(held(0, ANN), pending=(replace(rewind(0), cancelled=True),))
    presented = StreamReport(stream(0), 3, Progress(20), 20)
    sent = run.tell(LeaderWanted(ANN, LEADER - 1, session_of(ANN), "ann", (presented,)))
    assert of_kind(sent, Revoke) == []
    run.commit_all()
    assert (run.state(0), run.concluded) == (S.GRANTED, [7])
    assert run.leader.streams[stream(0)].progress.floor == 20


def test_a_move_that_was_made_and_waits_by_mistake_is_not_made_again() -> None:
    made = StoredStream(stream(0), Progress(30), 30, 100, None, 9, cursor_generation=7)
    run = Run(made, pending=(rewind(0),))
    assert (run.concluded, run.persists) == ([7], [])


def test_a_new_leader_asks_the_holder_that_it_adopts_for_the_stream() -> None:
    run = Run(held(0, ANN), pending=(rewind(0),))
    presented = StreamReport(stream(0), 3, Progress(20), 20)
    sent = run.tell(LeaderWanted(ANN, LEADER - 1, session_of(ANN), "ann", (presented,)))
    assert len(of_kind(sent, Revoke)) == 1
    assert run.state(0) is S.REVOKING
    run.give_back(ANN, 0, 25)
    run.pass_ms(200)
    run.confirm()
    assert (run.state(0), run.floor(0), run.concluded) == (S.GRANTED, 0, [7])


def test_a_move_waits_for_a_holder_that_may_still_come_for_a_lease() -> None:
    run = Run(held(0, ANN), pending=(rewind(0),))
    run.pass_ms(run.leader.timing.lease_ms - 1)
    assert run.persists == []
    run.pass_ms(1)
    run.commit_all()
    assert (run.floor(0), run.concluded) == (0, [7])


def test_a_stream_that_is_kept_for_a_session_moves_as_the_session_comes_back() -> None:
    run = Run(held(0, ANN, exact=True), pending=(rewind(0),), restarted=True)
    run.join(ANN)
    assert (run.state(0), run.concluded) == (S.GRANTED, [7])
    assert run.leader.streams[stream(0)].holder == ANN
    assert run.floor(0) == 0


def test_a_stream_that_is_kept_for_a_session_in_vain_moves_without_a_new_doubt() -> None:
    run = Run(held(0, ANN, exact=True), pending=(rewind(0),), restarted=True)
    run.pass_ms(run.leader.timing.reserve_ms)
    [persist] = run.persists
    assert persist.records[0].marked_below == 10
    assert not run.leader.streams[stream(0)].unmeasured
    run.commit()
    assert run.concluded == [7]


def test_a_move_is_made_when_the_holder_that_it_waits_for_says_goodbye() -> None:
    run = Run(held(0, ANN), pending=(rewind(0),))
    last = StreamReport(stream(0), 3, Progress(20), 20, sent=25)
    run.tell(Disconnect(ANN, LEADER - 1, (last,)))
    [persist] = run.persists
    assert persist.records[0].ended_move == MadeMove(7, Progress(20), Progress(0))
    assert run.leader.streams[stream(0)].suspect_end == 100
    run.commit()
    assert run.concluded == [7]


def test_a_move_is_made_when_the_session_that_it_waits_for_closes() -> None:
    run = Run(held(0, ANN), pending=(rewind(0),))
    run.feed(SessionClosed(session_of(ANN), 0))
    run.commit_all()
    assert (run.floor(0), run.concluded) == (0, [7])


def test_a_move_that_waits_for_a_reserved_stream_can_be_cancelled() -> None:
    run = Run(held(0, ANN), pending=(rewind(0),))
    run.instruct(CancelMoves(7))
    run.commit_all()
    assert run.concluded == [7]
    presented = StreamReport(stream(0), 3, Progress(20), 20)
    run.tell(LeaderWanted(ANN, LEADER - 1, session_of(ANN), "ann", (presented,)))
    assert run.state(0) is S.GRANTED


def test_a_leader_does_not_stop_idle_while_a_move_waits() -> None:
    hasty = Leader(LEADER, timing=LeaderTiming(idle_ms=1_000))
    run = Run(held(0, ANN), pending=(rewind(0),), leader=hasty)
    for _ in range(2):
        run.pass_ms(1_500)
        run.commit_all()
    assert run.stopped == []
    run.pass_ms(run.leader.timing.lease_ms)
    run.commit_all()
    assert run.concluded == [7]
    run.pass_ms(2_000)
    run.commit_all()
    run.pass_ms(2_000)
    assert run.stopped == ["idle"]


# The lease protocol


def lease_run(*stored: StoredStream, pending: tuple[CursorMove, ...] = ()) -> Run:
    leader = Leader(LEADER, stream_sets=StreamSets())
    return Run(*stored, leader=leader, pending=pending)


def states(
    version: int, *reports: StreamReport, over: tuple[TakenState, ...] = ()
) -> UpdateStreamStates:
    return UpdateStreamStates(ANN, LEADER, 1, version, reports, None, over, asks_renewal=True)


def report_of(at: int, epoch: int, floor: int = 10) -> StreamReport:
    return StreamReport(stream(at), epoch, Progress(floor), floor, sent=floor)


def test_in_a_lease_group_a_stream_is_taken_over_moved_and_in_the_next_set_again() -> None:
    run = lease_run(fresh(0), fresh(1))
    run.tell(LeaderWanted(ANN, 0, session_of(ANN), "ann", sent_ms=1))
    run.pass_ms(200)
    [lease] = of_kind(run.commit_all(), LeaseStreams)
    assert isinstance(lease, LeaseStreams)
    run.tell(states(1, report_of(0, 1), report_of(1, 1)))
    run.instruct(moves(rewind(0)))
    [update] = of_kind(run.commit_all(), UpdateStreams)
    assert isinstance(update, UpdateStreams)
    assert [each.stream for each in update.streams] == [stream(1)]
    assert [each.stream for each in update.taken_over] == [stream(0)]
    before = len(run.sent)
    run.tell(states(2, over=(TakenState(report_of(0, 1, 40), final=True),)))
    run.commit_all()
    sent = run.sent[before:]
    [renewal] = [each for each in sent if isinstance(each, RenewStreamLease) and each.accepted]
    assert renewal.accepted == ((stream(0), 1),)
    [update] = of_kind(sent, UpdateStreams)
    assert isinstance(update, UpdateStreams)
    again = next(each for each in update.streams if each.stream == stream(0))
    assert (again.grant_epoch, again.progress, again.suspect_end) == (3, Progress(0), 40)
    assert update.taken_over == ()
    assert run.concluded == [7]
    run.tell(states(3, report_of(0, 3, 5), report_of(1, 1)))
    assert (run.state(0), run.state(1)) == (S.GRANTED, S.GRANTED)


@pytest.mark.parametrize("version", [1, 4])
def test_in_a_lease_group_a_presented_stream_that_is_to_move_is_taken_over(version: int) -> None:
    run = lease_run(held(0, ANN), held(1, ANN), pending=(rewind(0),))
    presented = (report_of(0, 3, 20), report_of(1, 3, 20))
    run.tell(LeaderWanted(ANN, LEADER - 1, session_of(ANN), "ann", presented, version, 1))
    [update] = of_kind(run.commit_all(), UpdateStreams)
    assert isinstance(update, UpdateStreams)
    assert (update.version_old, update.version) == (version, version + 1)
    assert [each.stream for each in update.streams] == [stream(1)]
    assert [each.stream for each in update.taken_over] == [stream(0)]
    run.tell(states(version + 1, over=(TakenState(report_of(0, 3, 30), final=True),)))
    run.pass_ms(200)
    run.commit_all()
    assert (run.concluded, run.floor(0)) == ([7], 0)


def kept(ranges: Ranges) -> Progress:
    return Progress(0).with_acked(ranges)


def test_a_record_that_is_skipped_by_hand_leaves_what_is_known_of_its_neighbours() -> None:
    stored = StoredStream(
        stream(0), Progress(10), 10, 100, None, 3, attempts=((10, 14, 3), (20, 22, 2))
    )
    run = Run(stored)
    run.instruct(moves(CursorMove(stream(0), 7, (), ((12, 13),))))
    run.commit()
    record = run.saved[stream(0)]
    assert record.progress == kept(((0, 10), (12, 13)))
    assert record.attempts == ((10, 12, 3), (13, 14, 3), (20, 22, 2))


def test_a_committed_answer_that_comes_twice_concludes_once() -> None:
    run = Run(fresh(0))
    run.instruct(moves(rewind(0)))
    [persist] = run.persists
    run.commit()
    run.feed(Committed(persist.commit_id, run.now_ms))
    assert run.concluded == [7]
