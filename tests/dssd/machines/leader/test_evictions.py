"""Members that operations end, and clients that they keep out, under both protocols."""

import pytest

from dss_core.errors import BorrowerEvicted, ClientBanned
from dssd.machines.borrower.events import Ended, Recreate
from dssd.machines.leader.events import Received, Send
from dssd.machines.leader.hand_over_events import Ban, CancelHandOvers, Evict, LiftBan
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.leader.machine import step
from dssd.machines.messages import Invalidate, LeaderWanted
from dssd.operations.kinds.eviction import EVICTION_ANSWER_MS
from support.played_group import PlayedGroup
from support.played_leader import session_of, stream

ANN, BOB, CAT = b"ann", b"bob", b"cat"
BOTH = pytest.mark.parametrize("protocol", ["borrow", "lease"])
EVICTED = Ended(BorrowerEvicted.code, BorrowerEvicted.code, "stuck")
UNTIL_MS = 1_700_000_000_000


def evict(number: int, name: bytes, *, grace_ms: int | None = None) -> Evict:
    return Evict(number, name, session_of(name), "stuck", grace_ms)


def with_ban(number: int, name: bytes, ends_ms: int) -> Evict:
    ban = Ban(session_of(name).decode(), UNTIL_MS, ends_ms)
    return Evict(number, name, session_of(name), "stuck", None, ban)


def group_of(protocol: str, *names: bytes, streams: int = 4) -> PlayedGroup:
    group = PlayedGroup(protocol, streams=streams)
    group.join(*names)
    return group


@BOTH
def test_an_evicted_member_gives_back_what_it_holds_and_is_ended_for_good(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    assert group.ask(evict(7, ANN)) == [7]
    assert group.members[ANN].over == EVICTED
    assert ANN not in group.leader.members
    group.pass_ms(1_000)
    assert group.held(BOB) == [0, 1, 2, 3]
    assert not any(lent.unmeasured for lent in group.leader.streams.values())


@BOTH
def test_the_others_keep_their_grants_while_a_member_is_evicted(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB, CAT, streams=6)
    group.ask(evict(7, ANN))
    group.pass_ms(1_000)
    assert group.members[BOB].dropped == group.members[CAT].dropped == []
    assert group.shares(BOB, CAT) == [3, 3]


@BOTH
def test_what_an_evicted_member_holds_has_heirs_before_it_is_given_back(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB, CAT, streams=4)
    group.members[ANN].holding = True
    group.ask(evict(7, ANN))
    assert group.concluded == []
    assert all(group.leader.streams[stream(at)].heir in (BOB, CAT) for at in (0, 1))
    group.give_back(ANN)
    assert group.concluded == [7]
    assert group.shares(BOB, CAT) == [2, 2]


@BOTH
def test_an_evicted_member_has_the_grace_that_the_operation_gives(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    group.ask(evict(7, ANN, grace_ms=3_500))
    group.pass_ms(3_400)
    assert group.members[ANN].deadlines_ms == [3_500, 3_500]
    assert group.concluded == []
    group.pass_ms(1_000)
    assert group.concluded == [7]
    assert group.held(BOB) == [0, 1, 2, 3]


@BOTH
def test_without_a_grace_it_has_as_long_as_for_every_revoke(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    group.ask(evict(7, ANN))
    assert set(group.members[ANN].deadlines_ms) == {group.leader.timing.revoke_deadline_ms}


@BOTH
def test_without_any_grace_it_has_the_time_to_say_how_far_it_handed_out(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    group.ask(evict(7, ANN, grace_ms=0))
    assert set(group.members[ANN].deadlines_ms) == {EVICTION_ANSWER_MS}


@BOTH
def test_a_frozen_member_is_evicted_once_its_lease_has_ended(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].frozen = True
    group.ask(evict(7, ANN, grace_ms=100))
    group.pass_ms(3_000)
    assert group.concluded == []
    group.pass_ms(group.lease_ms)
    assert group.concluded == [7]
    assert group.held(BOB) == [0, 1, 2, 3]


@BOTH
def test_who_did_not_hear_of_its_eviction_is_told_when_it_speaks_again(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(evict(7, ANN))
    group.begin(ANN)
    assert group.members[ANN].over == EVICTED
    assert ANN not in group.leader.members


@BOTH
def test_that_a_borrower_was_evicted_is_forgotten_after_a_lease(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(evict(7, ANN))
    group.pass_ms(group.lease_ms)
    assert group.leader.evictions.ended == {}


@BOTH
def test_an_evicted_client_may_subscribe_again(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(evict(7, ANN))
    group.join(b"ann 2", session=session_of(ANN))
    assert group.shares(b"ann 2", BOB) == [2, 2]


@BOTH
def test_a_member_that_goes_by_itself_meanwhile_ends_the_operation(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    group.ask(evict(7, ANN))
    group.close(ANN)
    assert group.concluded == [7]


@BOTH
def test_an_eviction_of_whom_nobody_knows_is_done_at_once(protocol: str) -> None:
    group = group_of(protocol, BOB)
    assert group.ask(evict(7, ANN)) == [7]


@BOTH
def test_the_only_member_may_be_evicted(protocol: str) -> None:
    group = group_of(protocol, ANN)
    assert group.ask(evict(7, ANN)) == [7]
    states = {lent.state for lent in group.leader.streams.values()}
    assert states == {StreamState.FREE}


@BOTH
def test_a_member_that_stands_by_is_evicted_at_once(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB, streams=1)
    [idle] = [name for name in (ANN, BOB) if not group.held(name)]
    assert group.ask(evict(7, idle)) == [7]
    assert group.members[idle].over == EVICTED


@BOTH
def test_an_eviction_that_is_asked_twice_is_done_once(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    assert group.ask(evict(7, ANN), evict(7, ANN)) == []
    group.give_back(ANN)
    assert group.concluded == [7]


@BOTH
def test_a_later_eviction_of_the_member_takes_the_place_of_the_one_before(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    assert group.ask(evict(7, ANN), evict(8, ANN)) == [7]
    group.give_back(ANN)
    assert group.concluded == [7, 8]


@BOTH
def test_an_eviction_that_a_restart_interrupts_ends_the_member_that_comes_back(
    protocol: str,
) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    group.ask(evict(7, ANN))
    group.take_over(restarted=True)
    group.begin(b"ann 2", session=session_of(ANN))
    group.begin(b"bob 2", session=session_of(BOB))
    group.ask(evict(7, ANN))
    group.pass_ms(6_000)
    assert group.concluded == [7]
    assert group.members[b"ann 2"].over == EVICTED
    assert group.held(b"bob 2") == [0, 1, 2, 3]


@BOTH
def test_an_eviction_waits_for_a_member_that_has_not_met_the_new_leader(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.take_over()
    assert group.ask(evict(7, ANN)) == []
    group.pass_ms(group.lease_ms + 1_000)
    assert group.concluded == [7]
    assert group.members[ANN].over == EVICTED
    assert group.members[BOB].over is None
    assert group.held(BOB) == [0, 1, 2, 3]


@BOTH
@pytest.mark.parametrize("before", [(BOB,), (BOB, CAT)], ids=["all are back", "its time is over"])
def test_who_is_to_be_evicted_takes_no_stream_from_another_as_the_reserve_ends(
    protocol: str, before: tuple[bytes, ...]
) -> None:
    group = group_of(protocol, *before, streams=6)
    group.take_over(restarted=True)
    group.ask(evict(7, ANN))
    for name in (ANN, BOB):
        group.begin(name + b" 2", session=session_of(name))
    group.pass_ms(6_000)
    assert group.concluded == [7]
    assert group.held(b"bob 2") == [0, 1, 2, 3, 4, 5]
    # Each was lent once since the restart: none was taken and given back.
    assert {lent.grant_epoch for lent in group.leader.streams.values()} == {2}


@BOTH
def test_an_idle_leader_ends_the_evictions_that_wait(protocol: str) -> None:
    group = group_of(protocol, ANN)
    group.take_over(restarted=True)
    group.leader.timing = type(group.leader.timing)(idle_ms=10)
    group.ask(evict(7, ANN))
    group.pass_ms(40_000)
    assert group.concluded == [7]


@BOTH
def test_an_eviction_that_a_restart_interrupts_spares_what_its_client_subscribed_to_anew(
    protocol: str,
) -> None:
    group = group_of(protocol, ANN, BOB)
    group.take_over(restarted=True)
    group.begin(b"ann 2", session=session_of(ANN), subscription=2)
    group.begin(b"ann 1", session=session_of(ANN), subscription=1)
    group.ask(Evict(7, ANN, session_of(ANN), "stuck", subscription=1))
    group.pass_ms(6_000)
    assert group.concluded == [7]
    assert group.members[b"ann 1"].over == EVICTED
    assert group.members[b"ann 2"].over is None
    assert len(group.held(b"ann 2")) == 4


@BOTH
def test_an_eviction_that_is_cancelled_before_it_begins_ends_nobody(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.take_over(restarted=True)
    group.begin(b"ann 2", session=session_of(ANN))
    assert group.ask(evict(7, ANN), CancelHandOvers(7)) == [7]
    group.pass_ms(6_000)
    assert group.members[b"ann 2"].over is None


@BOTH
def test_an_eviction_that_is_under_way_is_done_although_it_is_cancelled(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    assert group.ask(evict(7, ANN), CancelHandOvers(7)) == []
    group.give_back(ANN)
    assert group.concluded == [7]
    assert group.members[ANN].over == EVICTED


# Bans


def refusals(group: PlayedGroup, name: bytes) -> list[str]:
    """Why a request of a borrower of Ann's client is refused."""
    wanted = LeaderWanted(name, 0, session_of(ANN), session_of(ANN).decode())
    effects = step(group.leader, Received(wanted, group.now_ms))[1]
    answers = [effect.message for effect in effects if isinstance(effect, Send)]
    return [each.reason for each in answers if isinstance(each, Invalidate)]


@BOTH
def test_a_banned_client_is_kept_out_until_the_end_of_the_ban(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    assert group.ask(with_ban(7, ANN, group.now_ms + 20_000)) == [7]
    assert group.members[ANN].over == EVICTED
    group.join(b"ann 2", session=session_of(ANN))
    assert group.members[b"ann 2"].over == Ended(
        ClientBanned.code, ClientBanned.code, str(UNTIL_MS)
    )
    assert group.held(BOB) == [0, 1, 2, 3]
    group.pass_ms(20_000)
    group.join(b"ann 3", session=session_of(ANN))
    assert group.members[b"ann 3"].over is None
    assert group.shares(b"ann 3", BOB) == [2, 2]


@BOTH
def test_a_ban_ends_every_member_of_its_client(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.join(b"ann 2", session=session_of(ANN))
    assert group.ask(with_ban(7, ANN, group.now_ms + 20_000)) == [7]
    assert group.members[ANN].over == group.members[b"ann 2"].over == EVICTED
    assert group.members[BOB].over is None


@BOTH
def test_a_banned_member_presents_what_it_holds_to_a_new_leader_and_is_evicted_in_order(
    protocol: str,
) -> None:
    group = group_of(protocol, ANN, BOB)
    group.members[ANN].holding = True
    asked = with_ban(7, ANN, group.now_ms + 60_000)
    group.ask(asked)
    group.take_over()
    group.ask(asked)
    group.pass_ms(group.lease_ms)
    group.give_back(ANN)
    group.pass_ms(1_000)
    assert group.concluded == [7]
    assert group.members[ANN].over == EVICTED
    assert not any(lent.unmeasured for lent in group.leader.streams.values())
    group.join(b"ann 2", session=session_of(ANN))
    assert isinstance(group.members[b"ann 2"].over, Ended)


@BOTH
def test_a_lifted_ban_lets_the_client_in(protocol: str) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(with_ban(7, ANN, group.now_ms + 20_000))
    assert group.ask(LiftBan(8, session_of(ANN).decode())) == [8]
    group.join(b"ann 2", session=session_of(ANN))
    assert group.members[b"ann 2"].over is None


@BOTH
def test_who_was_kept_out_by_a_ban_is_told_so_again_and_does_not_become_a_member_after_it(
    protocol: str,
) -> None:
    group = group_of(protocol, ANN, BOB)
    group.ask(with_ban(7, ANN, group.now_ms + 1_000))
    assert refusals(group, b"ann 2") == refusals(group, b"ann 2") == [ClientBanned.code]
    group.ask(LiftBan(8, session_of(ANN).decode()))
    assert refusals(group, b"ann 2") == ["gone"]


@BOTH
def test_lifting_a_ban_that_is_not_there_is_done_at_once(protocol: str) -> None:
    group = group_of(protocol, ANN)
    assert group.ask(LiftBan(8, "nobody")) == [8]


@BOTH
def test_a_new_leader_knows_the_bans_that_last(protocol: str) -> None:
    group = PlayedGroup(protocol, streams=2)
    lasting = Ban(session_of(ANN).decode(), UNTIL_MS, 5_000)
    over = Ban(session_of(BOB).decode(), UNTIL_MS, 0)
    group.take_over(bans=(lasting, over))
    group.join(ANN, BOB)
    assert isinstance(group.members[ANN].over, Ended)
    assert group.held(BOB) == [0, 1]


@BOTH
def test_other_reasons_than_codes_still_bring_a_borrower_back(protocol: str) -> None:
    group = group_of(protocol, ANN)
    group._say(Invalidate(ANN, group.leader.leader_epoch, "not a member"))
    assert isinstance(group.members[ANN].over, Recreate)
