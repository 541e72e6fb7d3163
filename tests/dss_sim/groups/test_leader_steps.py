"""For each rule the shortest step of a leader that breaks it, and one beside it that does not."""

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.groups.leader_steps import (
    check_staying,
    check_step,
    epochs_of,
    seen_before,
)
from dssd.machines.leader.events import (
    LeaderEffect,
    LeaderInput,
    Received,
    Send,
    SessionClosed,
    StoredStream,
    Ticked,
    TookOver,
)
from dssd.machines.leader.lent_stream import LentStream, StreamState
from dssd.machines.leader.machine import step
from dssd.machines.leader.state import Leader
from dssd.machines.messages import (
    Disconnect,
    Grant,
    GrantedStream,
    Invalidate,
    LeaderConnectResponse,
    LeaderWanted,
    Pause,
    PauseChanged,
    Ping,
    PingResponse,
    StreamReport,
    ToBorrower,
    ToLeader,
    UpdateProgress,
)
from support.judged import broken

A = StreamId(1, 0)
ANN, BOB = b"ann", b"bob"
LEASE_MS = 6_000


def report(epoch: int = 3, floor: int = 10, *, sent: int | None = None) -> StreamReport:
    return StreamReport(A, epoch, Progress(floor), floor, sent=sent)


def leader_of(state: StreamState, *, taken_over: bool = False) -> Leader:
    """Ann holds the stream under epoch 3, or held it under the leader before; Bob is a member."""
    leader = Leader(1)
    holder = ANN if taken_over else None
    stored = StoredStream(A, Progress(5), 5, 20, None, 3, b"ann's" if taken_over else None, holder)
    step(leader, TookOver(0, (stored,), restarted=False))
    for name in (ANN, BOB):
        step(leader, Received(LeaderWanted(name, 0, name + b"'s", name.decode()), 0))
    lent = leader.streams[A]
    lent.state, lent.holder = state, ANN
    return leader


def judged(leader: Leader, given: LeaderInput, *said: ToBorrower, **changes: object) -> None:
    """Judge a step that changes the stream like this and says that."""
    sight = seen_before(leader, given, kept=True)
    assert sight is not None
    for name, value in changes.items():
        setattr(leader.streams[A], name, value)
    effects: list[LeaderEffect] = [Send(message) for message in said]
    check_step(sight, leader, effects, kept_until_ms=LEASE_MS)


def told(message: ToLeader) -> Received:
    return Received(message, 10)


def of_ann(*reports: StreamReport, final: bool = False) -> Received:
    return told(UpdateProgress(ANN, 1, reports, final))


def refused(epoch: int, to: bytes = ANN) -> Invalidate:
    return Invalidate(to, 1, "not the holder", A, epoch)


# Reports


def test_a_report_of_the_holder_must_be_taken() -> None:
    leader = leader_of(StreamState.GRANTED)
    judged(leader, of_ann(report()), progress=Progress(10), frontier=10)
    with broken("S2"):
        judged(leader, of_ann(report(floor=11)))


def test_who_presents_what_is_kept_for_it_must_be_adopted() -> None:
    leader = leader_of(StreamState.FREE, taken_over=True)
    with broken("S2"):
        judged(leader, of_ann(report(floor=5)))
    judged(leader, of_ann(report(floor=5)), state=StreamState.GRANTED, reserved=False)


@pytest.mark.parametrize(
    ("sender", "epoch"), [(ANN, 2), (BOB, 3)], ids=["an older grant", "another"]
)
def test_a_report_of_another_grant_must_change_nothing_and_be_refused(
    sender: bytes, epoch: int
) -> None:
    leader = leader_of(StreamState.GRANTING)
    given = told(UpdateProgress(sender, 1, (report(epoch),)))
    judged(leader, given, refused(epoch, sender))
    with broken("S3"):
        judged(leader, given, refused(epoch, sender), progress=Progress(10))
    with broken("S3"):
        judged(leader, given, refused(epoch, sender), state=StreamState.GRANTED)
    with broken("S3"):
        judged(leader_of(StreamState.GRANTED), given)


# Doubt


@pytest.mark.parametrize(
    "given",
    [Ticked(10), SessionClosed(b"ann's", 10), of_ann(report(), final=True)],
    ids=["dead", "closed", "without an end"],
)
def test_a_grant_that_ends_without_a_final_report_must_leave_a_doubt(given: LeaderInput) -> None:
    over = {"state": StreamState.FREE, "progress": Progress(10), "frontier": 10}
    judged(leader_of(StreamState.GRANTED), given, unmeasured=True, **over)
    with broken("S4"):
        judged(leader_of(StreamState.GRANTED), given, **over)


@pytest.mark.parametrize(
    "message",
    [UpdateProgress(ANN, 1, (report(sent=14),), True), Disconnect(ANN, 1, (report(sent=14),))],
    ids=["a final report", "a goodbye"],
)
def test_what_was_sent_beyond_the_frontier_must_be_in_doubt(message: ToLeader) -> None:
    over = {"state": StreamState.REVOKED, "progress": Progress(10), "frontier": 10}
    judged(leader_of(StreamState.REVOKING), told(message), suspect_end=14, **over)
    with broken("S4"):
        judged(leader_of(StreamState.REVOKING), told(message), suspect_end=13, **over)


def test_a_stream_that_is_lent_anew_in_the_step_is_in_doubt_too() -> None:
    leader = leader_of(StreamState.GRANTED)
    with broken("S4"):
        judged(leader, Ticked(10), state=StreamState.GRANTING, grant_epoch=4, holder=BOB)


def test_a_finished_stream_is_not_in_doubt() -> None:
    leader = leader_of(StreamState.GRANTED)
    leader.streams[A].sealed_end = 5
    judged(leader, Ticked(10), state=StreamState.FINISHED)


# Takeover


def test_a_stream_must_be_kept_for_its_holder_until_its_lease_is_over() -> None:
    over = {"reserved": False, "unmeasured": True}
    for given in (Ticked(LEASE_MS), SessionClosed(b"ann's", 10), told(Disconnect(ANN, 1, ()))):
        judged(leader_of(StreamState.FREE, taken_over=True), given, **over)
    with broken("S4"):
        judged(leader_of(StreamState.FREE, taken_over=True), Ticked(LEASE_MS - 1), **over)


# Answers


def test_a_stranger_must_not_be_told_anything_that_lets_it_live_on() -> None:
    given = told(Ping(b"eve", 1, 7))
    judged(leader_of(StreamState.GRANTED), given, Invalidate(b"eve", 1, "not a member"))
    with broken("S1"):
        judged(leader_of(StreamState.GRANTED), given, PingResponse(b"eve", 1, 7))
    judged(leader_of(StreamState.GRANTED), told(Ping(ANN, 1, 7)), PingResponse(ANN, 1, 7))


def test_who_came_and_was_put_out_in_one_step_may_have_heard_of_a_pause() -> None:
    given = told(LeaderWanted(b"eve", 1, b"eve's", "eve"))
    paused, out = PauseChanged(b"eve", 1, Pause(1, True)), Invalidate(b"eve", 1, "evicted")
    judged(leader_of(StreamState.GRANTED), given, paused, out)
    with broken("S1"):
        judged(leader_of(StreamState.GRANTED), given, paused)
    with broken("S1"):
        judged(leader_of(StreamState.GRANTED), given, PingResponse(b"eve", 1, 7), out)


def test_a_request_must_be_answered_each_time() -> None:
    given = told(LeaderWanted(BOB, 1, b"bob's", "bob"))
    judged(leader_of(StreamState.GRANTED), given, LeaderConnectResponse(BOB, 1, LEASE_MS))
    with broken("I11"):
        judged(leader_of(StreamState.GRANTED), given)


def test_who_leaves_must_be_lent_nothing_more() -> None:
    left = {ANN: epochs_of(leader_of(StreamState.GRANTING))}
    lent = LentStream(StoredStream(A, Progress(5), 5, 20, None, 3))

    def grant(to: bytes, epoch: int) -> Grant:
        return Grant(to, 1, (GrantedStream(A, epoch, lent.progress, 5, (), 5),), LEASE_MS)

    check_staying(left, grant(ANN, 3))
    check_staying(left, grant(BOB, 4))
    with broken("L1"):
        check_staying(left, grant(ANN, 4))
