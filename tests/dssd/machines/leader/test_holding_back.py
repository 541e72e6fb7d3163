"""While the queues of a group come or go nobody holds a stream, and what is stored stays true."""

from dataclasses import replace

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.attempts import Due
from dssd.machines.fate import Fate
from dssd.machines.leader.events import Held, Hold, LeaderEffect, LeaderInput, LendAgain
from dssd.machines.leader.state import Leader
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.messages import (
    Grant,
    GrantedStream,
    Invalidate,
    LeaderWanted,
    Revoke,
    RevokeFinished,
    StreamReport,
    UpdateProgress,
)
from dssd.machines.queues import Queues, QueueState
from support.played_leader import LEADER, LeaderRun, fresh, session_of, stream

ANN, BOB = b"ann", b"bob"
NEW: Queues = (QueueState(StreamId(8, 0)), QueueState(StreamId(9, 0)))
FAILED = replace(
    fresh(0),
    attempts=((10, 12, 2),),
    fate=Fate(((10, 11, 40),), ((11, 12, 1),), ((10, 11, Due(9, 4)),)),
)


class Run(LeaderRun):
    """A leader of one stream that Ann may hold."""

    def __init__(self, stored: object = FAILED, **more: object) -> None:
        self.is_held = False
        super().__init__(Leader(LEADER), stored, **more)  # type: ignore[arg-type] # of LeaderRun

    def feed(self, given_input: LeaderInput) -> list[LeaderEffect]:
        effects = super().feed(given_input)
        self.is_held |= any(isinstance(each, Held) for each in effects)
        return effects

    def join(self, name: bytes) -> list[GrantedStream]:
        self.tell(LeaderWanted(name, 0, session_of(name), name.decode()))
        self.pass_ms(200)
        return self.granted()

    def granted(self) -> list[GrantedStream]:
        sent = self.commit_all()
        return [each for one in sent if isinstance(one, Grant) for each in one.streams]

    def give_back(self, queues: Queues = (), epoch: int = 1) -> None:
        report = StreamReport(stream(0), epoch, Progress(20), 20, sent=20, queues=queues)
        self.tell(UpdateProgress(ANN, LEADER, (report,), final=True))
        self.commit_all()
        self.tell(RevokeFinished(ANN, LEADER, stream(0), epoch))


def test_all_is_taken_back_fenced_durably_and_lent_to_its_holder_with_what_it_is_given() -> None:
    run = Run()
    assert [each.queues for each in run.join(ANN)] == [()]
    before = len(run.sent)
    run.feed(Hold(run.now_ms))
    assert [type(each) for each in run.sent[before:]] == [Revoke]
    run.give_back()
    assert not run.is_held
    assert run.granted() == []
    assert run.is_held
    grant = run.saved[stream(0)].grant
    assert grant is not None
    assert grant.grant_epoch == 2
    run.feed(LendAgain(run.now_ms, ((stream(0), NEW, None),)))
    [again] = run.granted()
    assert (again.grant_epoch, again.queues, again.progress) == (4, NEW, Progress(20))


def test_attempts_begin_anew_with_queues_but_what_somebody_died_with_still_comes_alone() -> None:
    run = Run()
    run.feed(Hold(0))
    run.commit_all()
    run.feed(LendAgain(0, ((stream(0), NEW, None),)))
    [granted] = run.join(ANN)
    assert granted.attempts == ()
    assert granted.fate == Fate(doubts=((11, 12, 1),))


def test_who_joins_meanwhile_gets_nothing_before_streams_are_lent_again() -> None:
    run = Run()
    run.feed(Hold(0))
    assert run.join(BOB) == []
    assert run.is_held
    run.pass_ms(1_000)
    run.feed(LendAgain(run.now_ms))
    assert [each.queues for each in run.granted()] == [()]


def test_a_report_of_before_says_nothing_once_nobody_holds_a_stream() -> None:
    run = Run(replace(fresh(0), queues=NEW))
    run.join(ANN)
    run.feed(Hold(run.now_ms))
    run.give_back(NEW)
    run.commit_all()
    moved = (replace(NEW[0], applied_end=1), NEW[1])
    late = StreamReport(stream(0), 1, Progress(21), 21, sent=21, queues=moved)
    told = run.tell(UpdateProgress(ANN, LEADER, (late,), final=True))
    assert [type(each) for each in told] == [Invalidate]
    run.feed(LendAgain(run.now_ms, ((stream(0), (), None),)))
    [again] = run.granted()
    assert (again.queues, again.progress) == ((), Progress(20))


@pytest.mark.parametrize("restarted", [True, False])
def test_what_is_kept_for_its_holders_is_waited_for(restarted: bool) -> None:
    kept = replace(FAILED, grant_epoch=1, session_id=session_of(ANN), borrower_id=ANN)
    run = Run(kept, restarted=restarted)
    run.feed(Hold(0))
    run.commit_all()
    assert not run.is_held
    run.pass_ms(10_000)
    run.commit_all()
    assert run.is_held


def test_a_leader_of_the_lease_protocol_takes_all_back_too() -> None:
    run = LeaderRun(Leader(LEADER, stream_sets=StreamSets()), FAILED)
    run.tell(LeaderWanted(ANN, 0, session_of(ANN), "ann"))
    run.pass_ms(200)
    run.commit_all()
    run.feed(Hold(run.now_ms))
    run.pass_ms(60_000)
    run.commit_all()
    assert run.leader.streams[stream(0)].holder is not None
    assert not any(member.streams for member in run.leader.members.values())
