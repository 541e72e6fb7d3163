"""Transfers, revokes and rebalances that operations ask for, under both protocols."""

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dss_core.progress import Progress
from dssd.limits import MOVES_A_STEP_MAX
from dssd.machines.leader.events import (
    Committed,
    Concluded,
    GrantRecord,
    Instructed,
    Instruction,
    MoveCursors,
)
from dssd.machines.leader.hand_over_events import (
    Ban,
    CancelHandOvers,
    Evict,
    HandOver,
    Rebalance,
    RevokeGrant,
    TransferGrant,
    Unpin,
)
from dssd.machines.leader.instructions import INSTRUCTIONS
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.leader.state import Alarm, Leader, view
from dssd.machines.messages import LeaderWanted, StreamReport, UpdateProgress
from support.played_group import PlayedGroup
from support.played_leader import LEADER, LeaderRun, fresh, session_of, stream
from support.proof_share import share

ANN, BOB, CAT = b"ann", b"bob", b"cat"
BOTH = pytest.mark.parametrize("protocol", ["borrow", "lease"])


def transfer(number: int, at: int, to: bytes) -> TransferGrant:
    return TransferGrant(number, stream(at), to, session_of(to))


def revoke(number: int, at: int, holder: bytes) -> RevokeGrant:
    return RevokeGrant(number, stream(at), session_of(holder))


def rebalance(number: int, *moves: tuple[int, bytes | None, bytes]) -> Rebalance:
    return Rebalance(number, tuple(HandOver(stream(at), giver, to) for at, giver, to in moves))


def group_of(protocol: str, *names: bytes, streams: int = 4) -> PlayedGroup:
    group = PlayedGroup(protocol, streams=streams)
    group.join(*names)
    return group


def epochs(group: PlayedGroup) -> list[int]:
    return [lent.grant_epoch for lent in group.leader.streams.values()]


# Transfer


@BOTH
def test_a_transferred_stream_is_with_its_taker_and_pinned_when_the_operation_is_done(
    protocol: str,
) -> None:
    group = group_of(protocol, ANN, BOB)
    before = epochs(group)
    assert group.ask(transfer(7, 0, BOB)) == [7]
    assert group.held(ANN) == [1]
    assert group.held(BOB) == [0, 2, 3]
    assert group.pinned_to(0) == session_of(BOB)
    assert epochs(group) == [before[0] + 1, *before[1:]]


@BOTH
def test_the_others_keep_their_grants_while_a_stream_is_transferred(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB))
    assert group.members[ANN].dropped == [stream(0)]
    assert group.members[BOB].dropped == []


@BOTH
def test_a_transfer_is_not_done_before_its_holder_has_given_the_stream_back(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    assert group.ask(transfer(7, 0, BOB)) == []
    group.pass_ms(5_000)
    assert group.concluded == []
    assert group.holder(0) == ANN
    group.give_back(ANN)
    assert group.concluded == [7]
    assert 0 in group.held(BOB)


@BOTH
def test_a_transfer_from_a_frozen_member_is_done_once_its_lease_has_ended(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].frozen = True
    group.ask(transfer(7, 0, BOB))
    group.pass_ms(group.lease_ms + 1_000)
    assert group.concluded == [7]
    assert 0 in group.held(BOB)


@BOTH
def test_a_transfer_to_a_member_that_dies_meanwhile_is_void(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB, CAT)
    group.members[ANN].holding = True
    group.ask(transfer(7, 0, BOB))
    group.close(BOB)
    assert group.concluded == [7]
    group.give_back(ANN)
    group.pass_ms(1_000)
    assert group.holder(0) in (ANN, CAT)
    assert group.pinned_to(0) is None


@BOTH
def test_a_transfer_to_a_member_that_leaves_meanwhile_is_void(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    group.ask(transfer(7, 0, BOB))
    group.leave(BOB)
    assert group.concluded == [7]


@BOTH
def test_a_transfer_to_a_frozen_member_is_void_once_its_lease_has_ended(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[BOB].frozen = True
    group.ask(transfer(7, 0, BOB))
    assert group.concluded == []
    group.pass_ms(group.lease_ms + 1_000)
    assert group.concluded == [7]
    assert group.held(ANN) == [0, 1, 2, 3]
    assert group.pinned_to(0) is None


@BOTH
def test_a_transfer_to_whom_nobody_knows_or_of_a_stream_that_is_gone_is_void(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    assert group.ask(transfer(7, 0, CAT)) == [7]
    assert group.ask(transfer(8, 9, BOB)) == [8]
    assert group.held(ANN) == [0, 1]


@BOTH
def test_a_transfer_whose_topic_is_removed_meanwhile_is_void(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    group.ask(transfer(7, 0, BOB))
    group.gone(0)
    assert group.concluded == [7]


@BOTH
def test_a_transfer_of_what_its_taker_has_only_pins_it(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    before = epochs(group)
    assert group.ask(transfer(7, 0, ANN)) == [7]
    assert epochs(group) == before
    assert group.pinned_to(0) == session_of(ANN)


@BOTH
def test_a_transfer_that_is_asked_twice_is_done_once(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    assert group.ask(transfer(7, 0, BOB), transfer(7, 0, BOB)) == []
    group.give_back(ANN)
    assert group.concluded == [7]
    before = epochs(group)
    assert group.ask(transfer(7, 0, BOB)) == [7]
    assert epochs(group) == before


@BOTH
def test_a_later_transfer_of_the_stream_makes_the_one_before_void(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB, CAT)
    group.members[ANN].holding = True
    group.ask(transfer(7, 0, BOB))
    assert group.ask(transfer(8, 0, CAT)) == [7]
    group.give_back(ANN)
    assert group.concluded == [7, 8]
    assert group.holder(0) == CAT


@BOTH
def test_the_present_holder_may_get_back_what_is_being_revoked_from_it(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    group.ask(transfer(7, 0, BOB), transfer(8, 0, ANN))
    group.give_back(ANN)
    assert group.concluded == [7, 8]
    assert 0 in group.held(ANN)
    assert group.pinned_to(0) == session_of(ANN)


def test_a_pin_is_durable_with_the_commit_that_holds_it_though_its_holder_reports_on() -> None:
    run = LeaderRun(Leader(LEADER), fresh(0))
    run.tell(LeaderWanted(ANN, 0, session_of(ANN), "ann"))
    run.pass_ms(200)
    run.commit()
    run.tell(progress(10))
    effects = run.feed(Instructed(transfer(7, 0, ANN), run.now_ms))
    assert Concluded(7) not in effects
    [persist] = run.persists
    assert persist.records[0].grant == GrantRecord(1, session_of(ANN), ANN, session_of(ANN))
    run.tell(progress(11))
    run.persists.clear()
    effects = run.feed(Committed(persist.commit_id, run.now_ms))
    assert run.leader.dirty
    assert Concluded(7) in effects


def progress(floor: int) -> UpdateProgress:
    return UpdateProgress(ANN, LEADER, (StreamReport(stream(0), 1, Progress(floor), floor),))


# Pins


@BOTH
def test_a_pinned_stream_stays_and_counts_in_the_rebalances_that_follow(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB), transfer(8, 1, BOB))
    assert group.shares(ANN, BOB) == [0, 4]
    group.join(CAT)
    assert group.holder(0) == group.holder(1) == BOB
    assert group.shares(ANN, BOB, CAT) == [1, 2, 1]


@BOTH
def test_a_transfer_begins_no_rebalance_of_its_own(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB))
    group.pass_ms(20_000)
    assert group.shares(ANN, BOB) == [1, 3]


@BOTH
def test_a_pin_is_void_when_its_member_leaves(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB))
    group.leave(BOB)
    group.pass_ms(1_000)
    assert group.held(ANN) == [0, 1, 2, 3]
    assert group.pinned_to(0) is None
    group.join(BOB)
    assert group.pinned_to(0) is None


@BOTH
def test_a_pin_holds_for_a_session_that_comes_back_with_another_borrower_at_once(
    protocol: str,
) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB))
    group.leave(BOB)
    group.join(b"bob again", session=session_of(BOB))
    assert 0 in group.held(b"bob again")
    assert group.pinned_to(0) == session_of(BOB)


@BOTH
def test_a_pin_outlives_a_restart_of_the_daemon(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB))
    group.take_over(restarted=True)
    group.join(b"ann 2", session=session_of(ANN))
    group.pass_ms(2_000)
    assert 0 not in group.held(b"ann 2")
    group.join(b"bob 2", session=session_of(BOB))
    group.pass_ms(5_000)
    assert 0 in group.held(b"bob 2")
    assert group.pinned_to(0) == session_of(BOB)


@BOTH
def test_a_pin_is_void_when_its_session_does_not_come_back_after_a_restart(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB))
    group.take_over(restarted=True)
    group.join(b"ann 2", session=session_of(ANN))
    group.pass_ms(6_000)
    assert group.held(b"ann 2") == [0, 1, 2, 3]
    assert group.pinned_to(0) is None


@BOTH
def test_a_transfer_that_a_restart_interrupts_is_done_once_both_are_back(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    group.ask(transfer(7, 0, BOB))
    group.take_over(restarted=True)
    group.begin(b"ann 2", session=session_of(ANN))
    group.begin(b"bob 2", session=session_of(BOB))
    group.ask(transfer(7, 0, BOB))
    group.pass_ms(6_000)
    assert group.concluded == [7]
    assert 0 in group.held(b"bob 2")


@BOTH
def test_an_operation_that_nobody_comes_back_for_ends_with_the_reservations(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.take_over(restarted=True)
    assert group.ask(transfer(7, 0, BOB), revoke(8, 1, ANN), rebalance(9, (2, BOB, ANN))) == []
    group.pass_ms(5_000)
    assert group.concluded == [7, 8, 9]
    assert group.pinned_to(0) is None


@BOTH
def test_an_idle_leader_forgets_pins(protocol: str) -> None:
    group = group_of(protocol, ANN)
    group.ask(transfer(7, 0, ANN))
    group.close(ANN)
    assert group.pinned_to(0) == session_of(ANN)
    group.pass_ms(40_000)
    assert group.pinned_to(0) is None


@BOTH
def test_an_unpinned_stream_stays_where_it_is_until_shares_are_computed(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB), transfer(8, 1, BOB))
    before = epochs(group)
    assert group.ask(Unpin(9, stream(0), session_of(BOB))) == [9]
    assert group.pinned_to(0) is None
    assert epochs(group) == before
    group.join(CAT)
    assert group.shares(ANN, BOB, CAT) == [1, 2, 1]


@BOTH
def test_what_is_unpinned_while_it_is_kept_for_its_holder_is_kept_by_the_next_leader_too(
    protocol: str,
) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB))
    group.members[ANN].frozen = group.members[BOB].frozen = True
    # All that is there was acknowledged, so nothing is in doubt; but its holder reads on.
    group.rows[stream(0)] = replace(group.rows[stream(0)], end=10)
    group.take_over()
    assert group.ask(Unpin(8, stream(0), session_of(BOB))) == [8]
    assert group.rows[stream(0)].borrower_id == BOB
    group.take_over()
    group.join(CAT)
    group.pass_ms(2_000)
    assert group.held(CAT) == []


@BOTH
def test_unpinning_what_is_pinned_to_another_changes_nothing(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB))
    assert group.ask(Unpin(8, stream(0), session_of(ANN))) == [8]
    assert group.pinned_to(0) == session_of(BOB)


@BOTH
def test_a_view_names_the_client_that_a_stream_is_pinned_to(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB))
    [pinned, *others] = view(group.leader, group.now_ms).streams
    assert (pinned.pinned_to, pinned.owner) == (session_of(BOB).decode(), BOB)
    assert {each.pinned_to for each in others} == {""}


@BOTH
def test_a_pinned_stream_that_is_rewound_comes_back_to_its_member(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB))
    assert group.ask(MoveCursors(8, (group.rewind(8, 0),))) == [8]
    assert 0 in group.held(BOB)
    assert group.pinned_to(0) == session_of(BOB)


# Revoke


@BOTH
def test_a_revoked_stream_goes_to_the_other_member_with_the_fewest_and_stays_there(
    protocol: str,
) -> None:
    group = group_of(protocol, ANN, BOB, CAT, streams=5)
    [at] = group.held(CAT)
    assert group.shares(ANN, BOB, CAT) == [2, 2, 1]
    assert group.ask(revoke(7, 0, ANN)) == [7]
    assert group.held(CAT) == sorted([0, at])
    group.join(b"dan")
    assert group.holder(0) == CAT
    assert group.shares(ANN, BOB, CAT, b"dan") == [1, 2, 1, 1]


@BOTH
def test_a_revoked_stream_does_not_go_straight_back_with_the_next_rebalance(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB, streams=2)
    [at] = group.held(ANN)
    group.ask(revoke(7, at, ANN))
    assert group.shares(ANN, BOB) == [0, 2]
    group.begin(CAT)
    group.leave(CAT)
    group.pass_ms(2_000)
    assert group.holder(at) == BOB
    assert group.shares(ANN, BOB) == [1, 1]


@BOTH
def test_a_revoke_is_void_where_there_is_nobody_else_or_another_has_the_stream(
    protocol: str,
) -> None:
    group = group_of(protocol, ANN)
    assert group.ask(revoke(7, 0, ANN)) == [7]
    group.join(BOB)
    [at, *_] = group.held(BOB)
    assert group.ask(revoke(8, at, ANN)) == [8]
    assert group.holder(at) == BOB


@BOTH
def test_a_revoke_that_is_asked_twice_moves_the_stream_once(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB, CAT)
    group.members[ANN].holding = True
    assert group.ask(revoke(7, 0, ANN), revoke(7, 0, ANN)) == []
    group.give_back(ANN)
    assert group.concluded == [7]
    taker = group.holder(0)
    assert group.ask(revoke(7, 0, ANN)) == [7]
    assert group.holder(0) == taker != ANN


@BOTH
def test_a_revoke_replaces_the_pin(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(transfer(7, 0, BOB))
    assert group.ask(revoke(8, 0, BOB)) == [8]
    assert 0 in group.held(ANN)
    assert group.pinned_to(0) == session_of(ANN)


# Rebalance


@BOTH
def test_a_rebalance_makes_the_planned_moves_and_no_others(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB, streams=6)
    group.ask(*(transfer(number, at, BOB) for number, at in ((1, 0), (2, 1), (3, 2))))
    group.ask(*(Unpin(number, stream(number - 4), session_of(BOB)) for number in (4, 5, 6)))
    assert group.shares(ANN, BOB) == [0, 6]
    moves = list(group.planned(2))
    assert len(moves) == 2
    assert group.ask(rebalance(7, *moves)) == [7]
    assert group.shares(ANN, BOB) == [2, 4]
    assert group.held(ANN) == sorted(at for at, _, _ in moves)
    assert group.ask(rebalance(8, *group.planned())) == [8]
    assert group.shares(ANN, BOB) == [3, 3]
    assert group.planned() == []


@BOTH
def test_a_move_whose_stream_or_taker_is_gone_or_whose_holder_is_another_is_void(
    protocol: str,
) -> None:
    group = group_of(protocol, ANN, BOB)
    moves = ((9, ANN, BOB), (0, ANN, CAT), (2, ANN, BOB), (1, None, BOB))
    before = epochs(group)
    assert group.ask(rebalance(7, *moves)) == [7]
    assert epochs(group) == before


@BOTH
def test_a_rebalance_of_no_moves_is_done_at_once(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    assert group.ask(rebalance(7)) == [7]


@BOTH
def test_a_rebalance_is_done_when_its_last_member_that_holds_on_has_given_back(
    protocol: str,
) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    moves = ((0, ANN, BOB), (1, ANN, BOB), (2, BOB, ANN))
    assert group.ask(rebalance(7, *moves), rebalance(7, *moves)) == []
    assert 2 in group.held(ANN)
    group.give_back(ANN)
    assert group.concluded == [7]
    assert group.held(BOB) == [0, 1, 3]


@BOTH
def test_a_move_is_void_when_the_leaders_own_rebalance_gives_the_stream_to_another(
    protocol: str,
) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[BOB].holding = True
    assert group.ask(rebalance(7, (3, BOB, ANN))) == []
    group.join(CAT)
    assert group.leader.streams[stream(3)].heir == CAT
    assert group.concluded == [7]
    group.give_back(BOB)
    assert group.held(CAT) == [3]


@BOTH
def test_a_move_is_void_when_its_member_dies(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].frozen = True
    group.ask(rebalance(7, (0, ANN, BOB)))
    group.close(BOB)
    assert group.concluded == [7]


@BOTH
def test_many_moves_are_begun_in_portions(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB, streams=450)
    moves = [(at, ANN, BOB) for at in group.held(ANN)]
    group.members[ANN].holding = True
    group.ask(rebalance(7, *moves))
    assert len(group.leader.hand_overs.asked) == len(moves) - 200
    assert group.leader.timers.at_ms(Alarm.HAND_OVER) == group.now_ms + 1
    group.give_back(ANN)
    group.pass_ms(1_000)
    assert group.concluded == [7]
    assert group.shares(ANN, BOB) == [0, 450]


# Cancellations


@BOTH
def test_hand_overs_that_were_not_begun_are_left_out_by_a_cancellation(protocol: str) -> None:
    many = MOVES_A_STEP_MAX + 50
    group = group_of(protocol, ANN, streams=many)
    group.begin(BOB)
    moves = [(at, ANN, BOB) for at in range(many)]
    group.members[ANN].holding = True
    group.ask(rebalance(7, *moves))
    assert group.ask(CancelHandOvers(7)) == []
    group.give_back(ANN)
    assert group.concluded == [7]
    assert len(group.held(BOB)) == MOVES_A_STEP_MAX
    assert not group.leader.hand_overs.asked


@BOTH
def test_a_hand_over_that_is_under_way_is_done_although_it_is_cancelled(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    assert group.ask(transfer(7, 0, BOB), CancelHandOvers(7)) == []
    group.give_back(ANN)
    assert group.concluded == [7]
    assert 0 in group.held(BOB)


@BOTH
def test_what_waits_for_reservations_is_forgotten_when_it_is_cancelled(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.take_over(restarted=True)
    group.begin(b"ann 2", session=session_of(ANN))
    group.begin(b"bob 2", session=session_of(BOB))
    asked = transfer(7, 0, BOB), revoke(8, 1, ANN), rebalance(9, (2, BOB, ANN))
    assert group.ask(*asked, *(CancelHandOvers(number) for number in (7, 8, 9))) == [7, 8, 9]
    group.pass_ms(6_000)
    assert group.shares(b"ann 2", b"bob 2") == [2, 2]
    assert [group.pinned_to(at) for at in range(4)] == [None] * 4


@BOTH
@pytest.mark.parametrize("kind", ["transfer", "revoke"])
def test_what_a_leader_before_has_begun_is_done_although_it_is_cancelled(
    protocol: str, kind: str
) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    asked = transfer(7, 0, BOB) if kind == "transfer" else revoke(7, 0, ANN)
    group.ask(asked)
    assert group.pinned_to(0) == session_of(BOB)
    group.take_over(restarted=True)
    group.begin(b"ann 2", session=session_of(ANN))
    group.begin(b"bob 2", session=session_of(BOB))
    assert group.ask(asked, CancelHandOvers(7)) == []
    group.pass_ms(6_000)
    assert group.concluded == [7]
    assert 0 in group.held(b"bob 2")


def test_a_cancellation_of_what_nobody_knows_concludes() -> None:
    assert group_of("borrow", ANN).ask(CancelHandOvers(7)) == [7]


def test_nothing_is_begun_where_nothing_was_asked_for() -> None:
    group = group_of("borrow", ANN)
    group.pass_ms(10)
    assert group.leader.timers.at_ms(Alarm.HAND_OVER) is None


@BOTH
@pytest.mark.parametrize(
    "asked",
    [
        transfer(7, 0, ANN),
        revoke(7, 0, ANN),
        Unpin(7, stream(0), session_of(ANN)),
        rebalance(7, (0, None, ANN)),
    ],
)
def test_an_operation_on_a_group_without_members_is_done_at_once(
    protocol: str, asked: Instruction
) -> None:
    group = PlayedGroup(protocol, streams=2)
    assert group.ask(asked) == [7]


def test_every_instruction_has_its_entry() -> None:
    assert set(INSTRUCTIONS) == set(get_args(Instruction))


# Any order

NAMES = st.sampled_from([ANN, BOB, CAT])
AT = st.integers(0, 4)
STEPS = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from(["transfer", "revoke", "unpin"]), AT, NAMES),
    st.tuples(st.just("evict"), NAMES, st.booleans(), st.sampled_from([None, 0, 700])),
    st.tuples(st.just("rebalance"), st.lists(st.tuples(AT, NAMES, NAMES), max_size=3)),
    st.tuples(st.sampled_from(["begin", "leave", "close", "freeze", "hold", "settle"]), NAMES),
    st.tuples(st.just("take over"), st.booleans()),
    st.tuples(st.just("pass"), st.integers(0, 3_000)),
    st.tuples(st.just("gone"), AT),
    st.tuples(st.just("cancel"), st.integers(1, 10)),
)


class Unruly:
    """A group to which anything happens; what is not concluded is asked of each new leader."""

    def __init__(self, protocol: str) -> None:
        self.group = group_of(protocol, ANN, BOB, streams=4)
        self.asked: dict[int, Instruction] = {}
        self.cancelled: set[int] = set()
        self.borrowers = 0
        self.present: dict[bytes, bytes] = {ANN: ANN, BOB: BOB}
        """The borrower of each session that has one."""

    def ask(self, instruction: Instruction) -> None:
        self.asked[instruction.number] = instruction
        self.group.ask(instruction)

    def borrower(self, name: bytes) -> bytes:
        return self.present.get(name, name)

    def begin(self, name: bytes) -> None:
        self.borrowers += 1
        borrower = b"%s %d" % (name, self.borrowers)
        self.present[name] = borrower
        self.group.begin(borrower, session=session_of(name))

    def perform(self, act: tuple[object, ...]) -> None:
        group, number = self.group, len(self.asked) + 1
        match act:
            case ("ask", "transfer", int(at), bytes(name)):
                to = self.borrower(name)
                self.ask(TransferGrant(number, stream(at), to, session_of(name)))
            case ("ask", "revoke", int(at), bytes(name)):
                self.ask(revoke(number, at, name))
            case ("ask", "unpin", int(at), bytes(name)):
                self.ask(Unpin(number, stream(at), session_of(name)))
            case ("evict", bytes(name), bool(banned), grace_ms):
                client = session_of(name).decode()
                ban = Ban(client, 0, group.now_ms + 2_000) if banned else None
                whom, session = self.borrower(name), session_of(name)
                assert grace_ms is None or isinstance(grace_ms, int)
                self.ask(Evict(number, whom, session, "stuck", grace_ms, ban))
            case ("rebalance", list(moves)):
                planned = [(at, self.borrower(a), self.borrower(b)) for at, a, b in moves]
                self.ask(rebalance(number, *planned))
            case ("take over", bool(restarted)):
                self.take_over(restarted=restarted)
            case ("pass", int(duration_ms)):
                group.pass_ms(duration_ms)
            case ("gone", int(at)):
                group.rows.pop(stream(at), None)
                group.gone(at)
            case ("cancel", int(asked)):
                self.cancel(asked)
            case _:
                self.let(*act)  # type: ignore[arg-type] # what is left

    def cancel(self, number: int) -> None:
        if number in self.asked:
            self.cancelled.add(number)
            self.group.ask(CancelHandOvers(number))

    def let(self, what: str, name: bytes) -> None:
        group, borrower = self.group, self.borrower(name)
        member = group.members.get(borrower)
        if member is None or member.over is not None:
            if what == "begin":
                self.begin(name)
        elif what == "leave":
            group.leave(borrower)
        elif what == "close":
            group.close(borrower)
        elif what == "freeze":
            member.frozen = True
        elif what == "hold":
            member.holding = True
        elif what == "settle":
            group.give_back(borrower)

    def take_over(self, *, restarted: bool) -> None:
        group = self.group
        group.take_over(restarted=restarted)
        for number in sorted(self.asked.keys() - set(group.concluded)):
            group.ask(self.asked[number])
            if number in self.cancelled:
                group.ask(CancelHandOvers(number))


@settings(max_examples=share(20, 400), deadline=None)
@given(st.lists(STEPS, max_size=25), st.sampled_from(["borrow", "lease"]))
def test_in_any_order_every_operation_is_done_once_members_answer_or_their_leases_end(
    steps: list[tuple[object, ...]], protocol: str
) -> None:
    unruly = Unruly(protocol)
    group = unruly.group
    for act in steps:
        unruly.perform(act)
    for borrower, member in group.members.items():
        if member.holding:
            group.give_back(borrower)
    group.pass_ms(3 * group.lease_ms)
    assert set(group.concluded) == set(unruly.asked)
    leader = group.leader
    assert not leader.hand_overs.unended
    assert not leader.hand_overs.open
    assert not leader.evictions.by_member
    staying = {member.session_id for member in leader.members.values() if not member.leaving}
    if staying and leader.streams:
        pins = {lent.pinned_session_id for lent in leader.streams.values()} - {None}
        assert pins <= staying
        assert all(lent.state is StreamState.GRANTED for lent in leader.streams.values())
