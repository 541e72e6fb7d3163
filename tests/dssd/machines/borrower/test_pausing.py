from dssd.machines.borrower import borrow_machine, lease_machine
from dssd.machines.borrower.events import (
    BorrowerInput,
    InstallStream,
    PauseTaken,
    Received,
    SetPaused,
    Started,
)
from dssd.machines.borrower.state import Borrower, Holder, LeaseBorrower
from dssd.machines.messages import (
    Grant,
    GrantedStream,
    LeaderWanted,
    LeaseStreams,
    Pause,
    PauseChanged,
    PauseObeyed,
    ToBorrower,
)
from support.played_borrower import LEADER, LEASE_MS, ME, SESSION, A, bare, granted


def borrower() -> Borrower:
    made = Borrower(ME, SESSION, "ann", LEASE_MS)
    after(made, Started(0), Grant(ME, LEADER, (granted(),), LEASE_MS))
    return made


def after(state: Holder, *inputs: BorrowerInput | ToBorrower) -> list[object]:
    """The effects of the last input; messages bare, timers and standing left out."""
    effects: list[object] = []
    for each in inputs:
        given = each if isinstance(each, BorrowerInput) else Received(each, 10)
        if isinstance(state, LeaseBorrower):
            effects = bare(lease_machine.step(state, given)[1])
        else:
            assert isinstance(state, Borrower)
            effects = bare(borrow_machine.step(state, given)[1])
    return effects


def changed(change: int, leader: int = LEADER, *, paused: bool = True) -> PauseChanged:
    return PauseChanged(ME, leader, Pause(change, paused))


def paused_stream(change: int) -> GrantedStream:
    lent = granted()
    return GrantedStream(A, 3, lent.progress, 10, (), 10, pause=Pause(change, True))


def test_a_pause_is_confirmed_only_when_the_client_has_stopped() -> None:
    made = borrower()
    assert after(made, changed(2)) == [SetPaused(True, 1)]
    assert after(made, changed(2)) == []
    assert after(made, PauseTaken(1, 20)) == [PauseObeyed(ME, LEADER, 2)]
    assert after(made, changed(2)) == [PauseObeyed(ME, LEADER, 2)], "the answer was lost"


def test_a_confirmation_of_what_was_asked_before_the_last_is_late() -> None:
    made = borrower()
    after(made, changed(2), changed(3, paused=False), changed(4))
    assert after(made, PauseTaken(1, 20)) == []
    assert after(made, PauseTaken(3, 20)) == [PauseObeyed(ME, LEADER, 4)]


def test_a_change_that_comes_late_does_not_lift_a_pause() -> None:
    made = borrower()
    after(made, changed(3), PauseTaken(1, 20))
    assert after(made, changed(2, paused=False)) == [PauseObeyed(ME, LEADER, 3)]
    assert made.pause.paused


def test_a_grant_of_a_paused_group_pauses_before_its_stream_is_read() -> None:
    made = Borrower(ME, SESSION, "ann", LEASE_MS)
    effects = after(made, Started(0), Grant(ME, LEADER, (paused_stream(2),), LEASE_MS))
    assert [each for each in effects if isinstance(each, SetPaused | InstallStream)] == [
        SetPaused(True, 1),
        InstallStream(paused_stream(2)),
    ]


def test_a_stream_set_of_a_paused_group_pauses_before_its_streams_are_read() -> None:
    made = LeaseBorrower(ME, SESSION, "ann", LEASE_MS)
    effects = after(made, Started(0), LeaseStreams(ME, LEADER, 1, (paused_stream(2),), LEASE_MS, 0))
    assert effects[:2] == [SetPaused(True, 1), InstallStream(paused_stream(2))]


def test_a_grant_that_left_before_a_pause_does_not_lift_it() -> None:
    made = borrower()
    after(made, changed(2))
    late = GrantedStream(A, 3, granted().progress, 10, (), 10, pause=Pause(1, False))
    effects = after(made, Grant(ME, LEADER, (late,), LEASE_MS))
    assert not any(isinstance(each, SetPaused) for each in effects)
    assert made.pause.paused


def test_a_new_leader_hears_that_it_is_paused_and_may_say_otherwise() -> None:
    made = borrower()
    after(made, changed(9), PauseTaken(1, 20))
    told = after(made, changed(1, LEADER + 1, paused=False))
    assert [each.paused for each in told if isinstance(each, LeaderWanted)] == [True]
    assert SetPaused(False, 2) in told


def test_what_the_client_did_for_a_leader_before_is_confirmed_to_the_new_one() -> None:
    made = borrower()
    after(made, changed(9), PauseTaken(1, 20))
    assert after(made, changed(1, LEADER + 1))[-1] == PauseObeyed(ME, LEADER + 1, 1)
