"""Dead letters that come back, or are given up: what a lane is told, and when that is done."""

from dataclasses import replace

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.leader.events import (
    CancelMoves,
    Concluded,
    CursorMove,
    Instructed,
    Instruction,
    LeaderEffect,
    LeaderInput,
    MadeMove,
    MoveCursors,
    StoredStream,
)
from dssd.machines.leader.state import Leader
from dssd.machines.messages import (
    Grant,
    GrantedStream,
    LeaderWanted,
    Revoke,
    RevokeFinished,
    StreamReport,
    UpdateProgress,
)
from dssd.machines.queues import HAD_LEFT, Queues, QueueState, Redrive
from support.played_leader import LEADER, LeaderRun, fresh, session_of, stream

ANN = b"ann"
RETRY, DEAD = StreamId(8, 0), StreamId(9, 0)
SIX_DEAD: Queues = (QueueState(RETRY), QueueState(DEAD, Progress(0), 6))
NUMBER = 7
CHOSEN = ((1, 3), (5, 6))
REDRIVE = MoveCursors(NUMBER, (CursorMove(stream(0), NUMBER, (), (), redriven=CHOSEN),))
DISCARD = MoveCursors(NUMBER, (CursorMove(stream(0), NUMBER, (), (), discarded=CHOSEN),))


class Run(LeaderRun):
    """A leader of one lane."""

    def __init__(self, queues: Queues = SIX_DEAD, *, sealed_end: int | None = None) -> None:
        self.concluded: list[int] = []
        stored: StoredStream = replace(fresh(0, sealed_end=sealed_end), queues=queues)
        super().__init__(Leader(LEADER), stored)

    def feed(self, given_input: LeaderInput) -> list[LeaderEffect]:
        effects = super().feed(given_input)
        self.concluded += [each.number for each in effects if isinstance(each, Concluded)]
        return effects

    def ask(self, instruction: Instruction) -> None:
        self.feed(Instructed(instruction, self.now_ms))
        self.commit_all()

    def lend(self) -> GrantedStream:
        self.tell(LeaderWanted(ANN, 0, session_of(ANN), "ann"))
        self.pass_ms(200)
        grants = [each for each in self.commit_all() if isinstance(each, Grant)]
        return grants[-1].streams[0]

    def report(self, granted: GrantedStream, dead: QueueState, *, final: bool = False) -> None:
        progress, queues = granted.progress, (granted.queues[0], dead)
        epoch = granted.grant_epoch
        said = StreamReport(stream(0), epoch, progress, 10, sent=progress.floor, queues=queues)
        self.tell(UpdateProgress(ANN, LEADER, (said,), final=final))
        self.pass_ms(1_000)
        self.commit_all()


def test_a_lane_is_told_which_dead_letters_come_back_and_it_is_done_when_all_are() -> None:
    run = Run()
    run.ask(REDRIVE)
    dead = run.saved[stream(0)].queues[-1]
    assert (dead.redrive, dead.progress) == (Redrive(NUMBER, CHOSEN), Progress(0))
    assert run.concluded == []
    granted = run.lend()
    assert granted.queues[1].redrive == Redrive(NUMBER, CHOSEN)
    some = replace(dead, progress=Progress(0).with_acked([(1, 3)]))
    run.report(granted, some)
    assert run.concluded == []
    run.report(granted, replace(dead, progress=Progress(0).with_acked(CHOSEN)))
    assert run.concluded == [NUMBER]


def test_a_holder_gives_the_lane_back_first_and_what_it_said_of_dead_letters_stands() -> None:
    run = Run()
    granted = run.lend()
    run.feed(Instructed(REDRIVE, run.now_ms))
    assert any(isinstance(each, Revoke) for each in run.sent)
    more = replace(granted.queues[1], progress=Progress(1), applied_end=8)
    run.report(granted, more, final=True)
    run.tell(RevokeFinished(ANN, LEADER, stream(0), granted.grant_epoch))
    run.pass_ms(500)
    run.commit_all()
    dead = run.leader.streams[stream(0)].queues[1]
    assert (dead.applied_end, dead.progress.floor) == (8, 1)
    assert dead.redrive == Redrive(NUMBER, CHOSEN)
    assert run.concluded == []


def test_a_leader_that_takes_over_waits_for_what_is_not_back() -> None:
    half = replace(SIX_DEAD[1], progress=Progress(3), redrive=Redrive(NUMBER, CHOSEN))
    run = Run((SIX_DEAD[0], half))
    run.ask(MoveCursors(NUMBER, ()))  # as after a restart
    assert run.concluded == []
    run.report(run.lend(), replace(half, progress=Progress(6)))
    assert run.concluded == [NUMBER]
    done = replace(half, progress=Progress(6))
    again = Run((SIX_DEAD[0], done))
    again.ask(MoveCursors(NUMBER, ()))
    assert again.concluded == [NUMBER]


def test_a_lane_that_is_done_with_is_lent_again_for_its_dead_letters() -> None:
    run = Run(sealed_end=10)
    assert run.leader.streams[stream(0)].is_at_end()
    run.ask(REDRIVE)
    granted = run.lend()
    assert granted.queues[1].redrive.ranges == CHOSEN


def test_a_redrive_that_is_cancelled_is_taken_back_from_the_holder_and_the_rest_stays_dead() -> (
    None
):
    run = Run()
    run.ask(REDRIVE)
    granted = run.lend()
    run.feed(Instructed(CancelMoves(NUMBER), run.now_ms))
    assert any(isinstance(each, Revoke) for each in run.sent)
    some = replace(granted.queues[1], progress=Progress(0).with_acked([(1, 2)]))
    run.report(granted, some, final=True)
    assert run.concluded == []
    run.tell(RevokeFinished(ANN, LEADER, stream(0), granted.grant_epoch))
    run.pass_ms(500)
    run.commit_all()
    assert run.concluded == [NUMBER]
    dead = run.saved[stream(0)].queues[-1]
    assert (dead.progress, dead.redriving) == (some.progress, 0)
    assert run.leader.streams[stream(0)].queues[1].redriving == 0


def test_a_redrive_that_nobody_carries_out_is_cancelled_at_once() -> None:
    run = Run()
    run.ask(REDRIVE)
    run.ask(CancelMoves(NUMBER))
    assert run.concluded == [NUMBER]
    assert run.lend().queues[1].redriving == 0


def test_a_redrive_that_is_cancelled_as_it_begins_brings_nothing_back() -> None:
    run = Run()
    run.feed(Instructed(REDRIVE, run.now_ms))
    run.feed(Instructed(CancelMoves(NUMBER), run.now_ms))
    assert run.concluded == []
    run.commit_all()
    assert run.concluded == [NUMBER]
    assert run.saved[stream(0)].queues[-1].redriving == 0


def test_a_redrive_that_is_cancelled_before_it_is_in_a_commit_was_made_all_the_same() -> None:
    run = Run()
    run.tell(LeaderWanted(ANN, 0, session_of(ANN), "ann"))
    run.pass_ms(200)
    run.feed(Instructed(REDRIVE, run.now_ms))
    run.tell(RevokeFinished(ANN, LEADER, stream(0), 1))
    run.feed(Instructed(CancelMoves(NUMBER), run.now_ms))
    run.tell(RevokeFinished(ANN, LEADER, stream(0), run.leader.streams[stream(0)].grant_epoch))
    assert len(run.persists) == 1, "the commit that lends the stream is still under way"
    run.commit()
    [record] = run.persists[0].records
    assert record.cursor_generation == NUMBER
    assert isinstance(record.ended_move, MadeMove)
    run.commit_all()
    assert run.concluded == [NUMBER]
    assert run.saved[stream(0)].queues[-1].redriving == 0


def test_a_leader_that_takes_over_stops_what_was_cancelled_before() -> None:
    half = replace(SIX_DEAD[1], progress=Progress(3), redrive=Redrive(NUMBER, CHOSEN))
    run = Run((SIX_DEAD[0], half))
    run.ask(MoveCursors(NUMBER, ()))
    run.ask(CancelMoves(NUMBER))
    run.ask(CancelMoves(NUMBER))
    assert run.concluded[:1] == [NUMBER]
    assert run.lend().queues[1].redriving == 0


def test_discarded_dead_letters_are_done_and_counted_as_moved_by_an_operator() -> None:
    run = Run()
    run.ask(DISCARD)
    dead = run.saved[stream(0)].queues[-1]
    assert dead.progress == Progress(0).with_acked(CHOSEN)
    assert dead.fate.counts.moved == 3
    assert run.saved[stream(0)].progress == Progress(10)
    assert run.concluded == [NUMBER]


def test_what_its_holder_had_brought_back_is_not_given_up_and_the_lane_says_which() -> None:
    run = Run()
    granted = run.lend()
    run.feed(Instructed(DISCARD, run.now_ms))
    back = Progress(0).with_acked([(1, 2)])
    run.report(granted, replace(granted.queues[1], progress=back), final=True)
    run.tell(RevokeFinished(ANN, LEADER, stream(0), granted.grant_epoch))
    run.pass_ms(500)
    run.commit_all()
    dead = run.saved[stream(0)].queues[-1]
    assert dead.progress == Progress(0).with_acked(CHOSEN)
    assert dead.fate.counts.moved == 2
    assert dead.errand == (NUMBER, HAD_LEFT, ((1, 2),))
    assert run.concluded == [NUMBER]


def test_an_instruction_that_comes_twice_is_carried_out_once() -> None:
    run = Run()
    run.ask(DISCARD)
    run.ask(DISCARD)
    assert run.leader.streams[stream(0)].queues[1].fate.counts.moved == 3
    assert run.concluded == [NUMBER, NUMBER]
