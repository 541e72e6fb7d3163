"""What holds of the machines of both protocols, from their first input to their end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dss_core.progress import Progress
from dssd.limits import UNSUBSCRIBE_MS
from dssd.machines.borrower import borrow_machine, lease_machine
from dssd.machines.borrower.events import (
    BorrowerEffect,
    BorrowerInput,
    Disconnected,
    Ended,
    PauseTaken,
    Received,
    Reported,
    Standing,
    Started,
    Ticked,
    Unsubscribed,
)
from dssd.machines.borrower.leader_link import FIND_LEADER_MS
from dssd.machines.borrower.state import Borrower, BorrowerState, Holder, LeaseBorrower
from dssd.machines.borrower.stepping import Messages, Transitions
from dssd.machines.messages import (
    Disconnect,
    Grant,
    Invalidate,
    LeaderConnectResponse,
    LeaderWanted,
    LeaseStreams,
    Pause,
    PauseChanged,
    PingResponse,
    ProgressSaved,
    RenewStreamLease,
    Revoke,
    Revoked,
    Taken,
    ToBorrower,
    UpdateStreams,
)
from support.played_borrower import (
    LEADER,
    LEASE_MS,
    ME,
    SESSION,
    A,
    B,
    Obedient,
    bare,
    granted,
    report,
)
from support.proof_share import share

S = BorrowerState


@dataclass(frozen=True)
class Machine:
    """A protocol: what steps through which tables, and what lends to it for the first time."""

    kind: Callable[[bytes, bytes, str, int], Holder]
    step: Callable[..., tuple[Holder, list[BorrowerEffect]]]
    transitions: Transitions
    messages: Messages
    served: tuple[BorrowerState, ...]
    nothing: ToBorrower
    """From the leader, which has nothing to lend yet."""
    first: ToBorrower
    """It lends a first stream after that."""

    def made(self) -> Holder:
        return self.kind(ME, SESSION, "ann", LEASE_MS)


BORROW = Machine(
    Borrower,
    borrow_machine.step,
    borrow_machine.TRANSITIONS,
    borrow_machine.MESSAGES,
    (S.CONNECTED,),
    LeaderConnectResponse(ME, LEADER, LEASE_MS),
    Grant(ME, LEADER, (granted(),), LEASE_MS),
)
LEASE = Machine(
    LeaseBorrower,
    lease_machine.step,
    lease_machine.TRANSITIONS,
    lease_machine.MESSAGES,
    (S.REPLAYING, S.UPDATING),
    LeaseStreams(ME, LEADER, 1, (), LEASE_MS, 0),
    UpdateStreams(ME, LEADER, 1, 2, (granted(),), (), 0),
)


@pytest.fixture(params=[BORROW, LEASE], ids=["borrow", "lease"])
def machine(request: pytest.FixtureRequest) -> Machine:
    found: Machine = request.param
    return found


def test_the_tables_are_total(machine: Machine) -> None:
    living = (S.CONNECTING, *machine.served, S.UNSUBSCRIBING)
    assert set(machine.transitions) == {
        (state, kind) for state in (*living, S.GONE) for kind in get_args(BorrowerInput)
    }
    assert set(machine.messages) == {
        (state, kind) for state in living for kind in get_args(ToBorrower)
    }


def test_the_leader_is_looked_for_every_second_until_it_answers(machine: Machine) -> None:
    borrower = machine.made()
    machine.step(borrower, Started(0))
    for at_ms in (FIND_LEADER_MS, 2 * FIND_LEADER_MS):
        assert bare(machine.step(borrower, Ticked(at_ms - 1))[1]) == []
        [wanted] = bare(machine.step(borrower, Ticked(at_ms))[1])
        assert isinstance(wanted, LeaderWanted)
    machine.step(borrower, Received(machine.nothing, 2 * FIND_LEADER_MS))
    later = bare(machine.step(borrower, Ticked(3 * FIND_LEADER_MS))[1])
    assert not [each for each in later if isinstance(each, LeaderWanted)]


def test_standing_is_told_when_it_changes(machine: Machine) -> None:
    borrower = machine.made()
    told: list[str] = []
    for each in (
        Started(0),
        Received(machine.nothing, 1),
        Received(machine.first, 2),
        Received(machine.first, 3),
        Received(Revoked(ME, LEADER, A, 2, Progress(20)), 4),
    ):
        effects = machine.step(borrower, each)[1]
        told += [effect.state for effect in effects if isinstance(effect, Standing)]
    assert told == ["connecting", "standby", "active", "standby"]


def test_unsubscribing_ends_by_its_timeout_with_what_is_known(machine: Machine) -> None:
    borrower = machine.made()
    for each in (
        Started(0),
        Received(machine.nothing, 0),
        Received(machine.first, 0),
        Unsubscribed(0),
    ):
        machine.step(borrower, each)
    effects = bare(machine.step(borrower, Ticked(UNSUBSCRIBE_MS))[1])
    assert Disconnect(ME, LEADER, (report(),)) in effects
    assert effects[-1] == Ended("unsubscribe timed out")


STREAMS = st.sampled_from([A, B])
EPOCHS = st.integers(0, 3)
VERSIONS = st.integers(0, 4)
TIMES = st.integers(0, 12_000)
PROGRESS = st.integers(0, 9).map(Progress)
REPORTS = st.builds(report, STREAMS, EPOCHS, st.integers(0, 9), st.none() | st.integers(0, 9))
SETS = st.lists(st.builds(granted, STREAMS, EPOCHS, st.integers(0, 9)), max_size=2).map(tuple)
TAKEN = st.lists(st.builds(Taken, STREAMS, EPOCHS, st.just(5)), max_size=2).map(tuple)
ACCEPTED = st.lists(st.tuples(STREAMS, EPOCHS), max_size=2).map(tuple)
ME_TOO = st.just(ME)
OF_BOTH: Sequence[st.SearchStrategy[ToBorrower]] = (
    st.builds(LeaderConnectResponse, ME_TOO, EPOCHS, st.just(LEASE_MS)),
    st.builds(ProgressSaved, ME_TOO, EPOCHS, STREAMS, EPOCHS, PROGRESS),
    st.builds(Revoked, ME_TOO, EPOCHS, STREAMS, EPOCHS, PROGRESS),
    st.builds(Invalidate, ME_TOO, EPOCHS, st.just("x"), st.none() | STREAMS, EPOCHS),
    st.builds(PauseChanged, ME_TOO, EPOCHS, st.builds(Pause, EPOCHS, st.booleans())),
)
OF_BORROW: Sequence[st.SearchStrategy[ToBorrower]] = (
    st.builds(PingResponse, ME_TOO, EPOCHS, TIMES),
    st.builds(Grant, ME_TOO, EPOCHS, SETS, st.just(LEASE_MS)),
    st.builds(Revoke, ME_TOO, EPOCHS, STREAMS, EPOCHS, st.just(10_000)),
)
OF_LEASE: Sequence[st.SearchStrategy[ToBorrower]] = (
    st.builds(LeaseStreams, ME_TOO, EPOCHS, VERSIONS, SETS, st.just(LEASE_MS), TIMES),
    st.builds(UpdateStreams, ME_TOO, EPOCHS, VERSIONS, VERSIONS, SETS, TAKEN, TIMES),
    st.builds(RenewStreamLease, ME_TOO, EPOCHS, VERSIONS, TIMES, st.none() | VERSIONS, ACCEPTED),
)


def inputs_of(
    messages: Sequence[st.SearchStrategy[ToBorrower]],
) -> st.SearchStrategy[list[BorrowerInput]]:
    """Any inputs, with messages of the protocol."""
    return st.lists(
        st.one_of(
            st.builds(Started, TIMES),
            st.builds(Received, st.one_of(*OF_BOTH, *messages), TIMES),
            st.builds(Reported, st.lists(REPORTS, max_size=2).map(tuple), TIMES, st.booleans()),
            st.builds(PauseTaken, EPOCHS, TIMES),
            st.builds(Unsubscribed, TIMES),
            st.builds(Disconnected, TIMES),
            st.builds(Ticked, TIMES),
        ),
        max_size=40,
    )


@pytest.mark.parametrize(
    ("machine", "messages"), [(BORROW, OF_BORROW), (LEASE, OF_LEASE)], ids=["borrow", "lease"]
)
@settings(max_examples=share(25, 400), deadline=None)
@given(data=st.data())
def test_any_inputs_in_any_order_keep_the_session_consistent(
    machine: Machine, messages: Sequence[st.SearchStrategy[ToBorrower]], data: st.DataObject
) -> None:
    """What the session is told to install and drop always fits what it has; versions rise."""
    borrower, session, version = machine.made(), Obedient(), 0
    for each in data.draw(inputs_of(messages)):
        session.obey(borrower, machine.step(borrower, each)[1])
        assert (borrower.state, type(each)) in machine.transitions
        if isinstance(borrower, LeaseBorrower):
            assert borrower.version >= version
            version = borrower.version
