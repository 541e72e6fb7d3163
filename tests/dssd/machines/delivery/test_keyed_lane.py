"""A lane of an ordered group: of each key records go in order, one at a time, whatever fails."""

from dataclasses import replace

import pytest

from dss_core.lane import DEAD, MAIN, RETRY
from dssd.limits import REFUSED_MOVE_MS
from dssd.machines.delivery import keyed_lane, stream
from dssd.machines.delivery.ack_wait import ACK_WAIT_GRAINS
from dssd.machines.delivery.causes import DIED, FOLLOWS, NO_KEY
from dssd.machines.delivery.events import (
    AskBack,
    Edited,
    Entry,
    Nak,
    Paused,
    RevokeBegun,
    RevokeFinished,
    Settle,
    StreamSealed,
    TakeBack,
    TakenBack,
    Unpaused,
)
from support.played_lane import ACK_WAIT_MS, GRANT, POLICY, Kept, PlayedLane

BLOCK = replace(POLICY, ordered=True, blocks=True)
SKIP = replace(POLICY, ordered=True)
A, B, C = 1, 2, 3


def lane_of(*keys: int, blocks: bool = True) -> PlayedLane:
    return PlayedLane(len(keys), BLOCK if blocks else SKIP, keys)


def out(lane: PlayedLane) -> list[tuple[int, int]]:
    """Origins and keys of what is with the client, in order."""
    origins = [at if level == MAIN else lane.queues[level][at].origin for level, at in lane.out]
    return sorted((origin, lane.keys[origin]) for origin in origins)


def live(lane: PlayedLane, level: int) -> list[int]:
    """The origins of what waits in a queue, by where they lie."""
    progress = lane.states()[level].progress  # type: ignore[union-attr]
    return [kept.origin for kept in lane.queues[level] if not progress.is_acked(kept.entry.offset)]


def test_what_was_sent_behind_a_refused_record_of_its_key_is_taken_back_and_follows_it() -> None:
    lane = lane_of(A, B, A, B, A)
    lane.nak(MAIN, 0, error="boom")
    assert lane.others == [TakeBack(GRANT, ((0, 1), (2, 3), (4, 5)))]
    assert out(lane) == [(1, B), (3, B)]
    assert [(kept.origin, kept.cause, kept.entry.attempt) for kept in lane.queues[RETRY]] == [
        (0, "refused", 1), (2, FOLLOWS, 0), (4, FOLLOWS, 0),
    ]  # fmt: skip
    assert lane.places() == [[RETRY], [MAIN], [RETRY], [MAIN], [RETRY]]


def test_a_refused_record_is_named_to_the_client_also_where_nothing_follows_it() -> None:
    lane = lane_of(A, B, 0)
    lane.nak(MAIN, 0)
    lane.nak(MAIN, 2)
    assert lane.others == [TakeBack(GRANT, ((0, 1),)), TakeBack(GRANT, ((2, 3),))]
    lane.tick(1_000)
    lane.nak(RETRY, 0)
    assert lane.others[-1] == TakeBack(GRANT + RETRY, ((0, 1),))


def test_of_a_key_one_entry_at_a_time_goes_and_the_next_once_it_is_acknowledged() -> None:
    lane = lane_of(A, B, A, A)
    lane.nak(MAIN, 0)
    lane.ack(MAIN, 1)
    lane.tick(999)
    assert not out(lane)
    for origin in (0, 2, 3):
        lane.tick(1)
        assert out(lane) == [(origin, A)]
        ((level, at),) = lane.out
        lane.ack(level, at)
    assert lane.places() == [[], [], [], []]


def test_a_failure_in_the_retry_queue_keeps_its_place_before_those_that_follow() -> None:
    lane = lane_of(A, A)
    lane.nak(MAIN, 0)
    lane.tick(1_000)
    lane.nak(RETRY, 0)
    lane.tick(4_999)
    assert not out(lane)
    lane.tick(1)
    assert out(lane) == [(0, A)]


def test_what_the_cursor_meets_of_a_held_key_follows_and_others_go_on() -> None:
    lane = lane_of(A, B, A, B)
    lane.nak(MAIN, 0)
    lane.save()
    lane.lend()
    assert out(lane) == [(1, B), (3, B)]
    assert live(lane, RETRY) == [0, 2]


def test_records_without_a_key_wait_for_nobody() -> None:
    lane = lane_of(0, 0, A)
    lane.nak(MAIN, 0)
    assert out(lane) == [(1, 0), (2, A)]
    assert live(lane, RETRY) == [0]


def test_records_without_a_key_may_be_dead_at_once() -> None:
    lane = PlayedLane(3, replace(BLOCK, keyless_dead=True), (0, A, 0))
    assert out(lane) == [(1, A)]
    assert [(kept.origin, kept.cause) for kept in lane.queues[DEAD]] == [(0, NO_KEY), (2, NO_KEY)]


def test_a_dead_letter_holds_up_its_key_and_takes_what_follows_along() -> None:
    lane = lane_of(A, B, A, A)
    lane.nak(MAIN, 0, reject=True, error="never")
    assert live(lane, DEAD) == [0, 2, 3]
    assert live(lane, RETRY) == []
    assert [kept.cause for kept in lane.queues[DEAD]] == ["rejected", FOLLOWS, FOLLOWS]
    assert out(lane) == [(1, B)]


def test_what_is_met_later_of_a_dead_key_goes_to_the_dead_letters_over_deaths_of_holders() -> None:
    lane = lane_of(A, A, A)
    lane.nak(MAIN, 0, reject=True)
    lane.tick(10)
    lane.save()
    lane.records, lane.keys = 5, (A, A, A, A, B)
    lane.main = type(lane.main)([1] * 5)
    lane.lend()
    assert live(lane, DEAD) == [0, 1, 2, 3]
    assert [kept.entry.source_level for kept in lane.queues[DEAD]][-1] == MAIN
    assert out(lane) == [(4, B)]


def test_without_blocking_those_that_follow_go_on_once_the_dead_letter_is_durable() -> None:
    lane = lane_of(A, A, A, blocks=False)
    lane.holds = True
    lane.nak(MAIN, 0, reject=True)
    lane.tick(100)
    assert not out(lane)
    lane.holds = False
    lane.answer()
    lane.tick(1)
    assert live(lane, DEAD) == [0]
    assert out(lane) == [(1, A)]


def test_a_redrive_brings_a_key_back_in_the_order_of_its_origins() -> None:
    lane = lane_of(A, B, A, A)
    lane.nak(MAIN, 0, reject=True)
    lane.ack(MAIN, 1)
    lane.tick(10)
    lane.save()
    lane.redrive(0, 3)
    seen = []
    for _ in range(3):
        lane.tick(200)
        ((origin, _),) = out(lane)
        seen.append(origin)
        ((level, at),) = lane.out
        lane.ack(level, at)
    assert seen == [0, 2, 3]
    assert lane.places() == [[], [], [], []]


@pytest.mark.parametrize("whole_keys", [True, False])
def test_what_followed_a_key_to_the_dead_letters_before_its_redrive_began_comes_with_it(
    whole_keys: bool,
) -> None:
    lane = lane_of(A, B, A, A)
    lane.nak(MAIN, 1, reject=True)
    lane.nak(MAIN, 0, reject=True)
    assert live(lane, DEAD) == [1, 0, 2, 3]
    lane.tick(10)
    lane.save()
    # A plan chose the first two of A, before the last one was met; and nothing of B.
    lane.redrive(1, 3, whole_keys=whole_keys)
    seen = []
    for _ in range(3):
        lane.tick(500)
        for level, at in list(lane.out):
            seen.append(lane.queues[level][at].origin)
            lane.ack(level, at)
    assert seen == ([0, 2, 3] if whole_keys else [0, 2])
    assert lane.places() == [[], [DEAD], [], [] if whole_keys else [DEAD]]


def test_newcomers_wait_behind_what_a_redrive_brings_back() -> None:
    lane = lane_of(A, A)
    lane.nak(MAIN, 0, reject=True)
    lane.tick(10)
    lane.save()
    lane.records, lane.keys = 3, (A, A, A)
    lane.main = type(lane.main)([1] * 3)
    lane.redrive(0, 2)
    seen = []
    for _ in range(3):
        lane.tick(500)
        ((origin, _),) = out(lane)
        seen.append(origin)
        ((level, at),) = lane.out
        lane.ack(level, at)
    assert seen == [0, 1, 2]


def test_a_stopped_redrive_leaves_the_rest_of_a_key_dead_and_takes_back_what_came() -> None:
    lane = lane_of(A, A)
    lane.nak(MAIN, 0, reject=True)
    lane.tick(10)
    lane.save()
    lane.redrive(1, 2)
    lane.tick(1_000)
    assert not out(lane)
    assert sorted(live(lane, DEAD)) == [0, 1]


def test_a_dead_letter_that_was_given_up_before_it_was_applied_acknowledges_its_source() -> None:
    lane = lane_of(A, B)
    lane.holds = True
    lane.nak(MAIN, 0, reject=True)
    retry, dead = lane.saved.queues
    lane.saved = replace(lane.saved, queues=(retry, dead.discard(7, ((0, 1),))))
    lane.holds = False
    lane.lend()
    assert out(lane) == [(1, B)]
    assert lane.places()[0] == []


# The ack wait


def asked_lane() -> tuple[PlayedLane, int]:
    """The ack wait of the first record ran out, and the client was asked."""
    lane = lane_of(A, B, A)
    lane.feed(Settle(GRANT, frontier=1))
    lane.feed(Settle(GRANT, acked=((1, 2),), frontier=2))
    lane.out.pop((MAIN, 1))
    lane.tick(ACK_WAIT_MS + 100)
    (asked,) = (each for each in lane.others if isinstance(each, AskBack))
    assert (asked.grant, asked.ranges) == (GRANT, ((0, 1), (2, 3)))
    return lane, asked.number


def test_nothing_is_moved_before_the_client_answers_and_it_may_acknowledge_until_then() -> None:
    lane, number = asked_lane()
    assert lane.places() == [[MAIN], [], [MAIN]]
    lane.ack(MAIN, 0)
    lane.feed(TakenBack(GRANT, number, out=False))
    assert lane.places() == [[], [], [MAIN]]
    lane.ack(MAIN, 2)
    assert lane.places() == [[], [], []]
    assert not lane.moves


def test_what_is_with_the_program_still_fails_and_the_rest_of_its_key_follows() -> None:
    lane, number = asked_lane()
    lane.feed(TakenBack(GRANT, number, out=True))
    assert not [each for each in lane.others if isinstance(each, TakeBack)]
    assert [(kept.origin, kept.cause) for kept in lane.queues[RETRY]] == [
        (0, "ack wait"), (2, FOLLOWS),
    ]  # fmt: skip


def test_what_a_client_does_not_have_and_did_not_settle_is_taken_back_by_word() -> None:
    lane, number = asked_lane()
    lane.feed(TakenBack(GRANT, number, out=False))
    assert lane.others[-1] == TakeBack(GRANT, ((0, 1), (2, 3)))
    assert live(lane, RETRY) == [0, 2]


def test_a_refusal_that_comes_before_the_answer_counts() -> None:
    lane, number = asked_lane()
    lane.nak(MAIN, 0, error="slow")
    lane.feed(TakenBack(GRANT, number, out=False))
    assert [(kept.origin, kept.error) for kept in lane.queues[RETRY]] == [(0, "slow"), (2, "")]
    lane.feed(TakenBack(GRANT, number, out=True), TakenBack(GRANT, 99, out=True))
    assert live(lane, RETRY) == [0, 2]


def test_what_is_dropped_by_the_client_comes_again_though_its_record_was_settled() -> None:
    lane, number = asked_lane()
    lane.ack(MAIN, 0)
    lane.feed(TakenBack(GRANT, number, out=True))
    lane.tick(1)
    assert live(lane, RETRY) == [2]
    assert (RETRY, 0) in lane.out


def test_an_entry_whose_ack_wait_ran_out_is_asked_for_too() -> None:
    lane = lane_of(A, A)
    lane.nak(MAIN, 0)
    lane.tick(1_000)
    lane.settle(RETRY, handed_out=[0])
    lane.tick(ACK_WAIT_MS + 100)
    asked = lane.others[-1]
    assert isinstance(asked, AskBack)
    assert (asked.grant, asked.ranges) == (GRANT + RETRY, ((0, 1),))
    lane.feed(TakenBack(GRANT, asked.number, out=True))
    assert live(lane, RETRY) == [1, 0]
    lane.tick(60_000)
    assert (RETRY, 2) in lane.out


def test_a_late_ack_settles_the_record_that_was_asked_for_and_no_follower() -> None:
    lane, number = asked_lane()
    lane.feed(TakenBack(GRANT, number, out=True))
    lane.ack(MAIN, 0, 2)
    lane.tick(1)
    assert lane.places() == [[], [], [RETRY]]
    assert out(lane) == [(2, A)]


def test_in_a_pause_nobody_is_asked_and_the_ack_wait_begins_anew() -> None:
    lane = lane_of(A, A)
    lane.feed(Settle(GRANT, frontier=1))
    lane.feed(Paused(1))
    lane.tick(ACK_WAIT_MS + 100)
    assert not lane.others
    lane.feed(Unpaused(1))
    lane.tick(ACK_WAIT_MS + 100)
    assert isinstance(lane.others[-1], AskBack)


def test_a_record_without_a_key_fails_without_a_question() -> None:
    lane = lane_of(0)
    lane.feed(Settle(GRANT, frontier=1))
    lane.tick(ACK_WAIT_MS + 100)
    assert not lane.others
    assert live(lane, RETRY) == [0]


def test_of_many_ack_waits_that_run_out_at_once_so_many_are_asked_for_in_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyed_lane, "ASKED_AT_ONCE_MAX", 3)
    lane = lane_of(*range(1, 9))
    lane.settle(MAIN)
    lane.tick(ACK_WAIT_MS)
    assert lane.others == [AskBack(GRANT, ((at, at + 1),), at + 1) for at in range(3)]
    lane.tick(10 * ACK_WAIT_MS // ACK_WAIT_GRAINS)
    assert lane.others == [AskBack(GRANT, ((at, at + 1),), at + 1) for at in range(8)]


def test_a_grant_that_ends_while_it_is_asked_moves_nothing() -> None:
    lane, number = asked_lane()
    lane.feed(RevokeBegun(GRANT, 1_000))
    lane.feed(TakenBack(GRANT, number, out=True), RevokeFinished(GRANT))
    assert not lane.moves
    lane.save()
    lane.lend()
    assert out(lane) == [(0, A), (2, A)]


# Holders that die


def test_entries_before_acks_survive_a_death_in_the_middle() -> None:
    lane = lane_of(A, A, B)
    lane.holds = True
    lane.nak(MAIN, 0)
    lane.die()
    lane.holds = False
    assert live(lane, RETRY) == [0, 1]
    lane.tick(1_000)
    assert (0, A) in out(lane)
    assert (1, A) not in out(lane)


def test_followers_that_were_moved_before_their_record_wait_for_the_cursor_to_meet_it() -> None:
    lane = lane_of(A, B, A)
    lane.settle(MAIN, naks=[Nak(2, 3, delay_ms=0)])
    assert live(lane, RETRY) == [2]
    lane.tick(100)
    assert (2, A) not in out(lane)
    lane.die()
    lane.tick(100)
    assert (0, A) in out(lane)
    assert (2, A) not in out(lane)
    ((level, at),) = [each for each in lane.out if each != (MAIN, 1)]
    lane.ack(level, at)
    lane.tick(100)
    assert (2, A) in out(lane)


def test_what_was_refused_behind_a_record_that_is_out_waits_for_it() -> None:
    lane = lane_of(A, A, A)
    lane.settle(MAIN, naks=[Nak(1, 2, delay_ms=0)])
    lane.tick(10_000)
    assert out(lane) == [(0, A)]
    lane.ack(MAIN, 0)
    lane.tick(1)
    assert out(lane) == [(1, A)]


def test_a_stream_that_is_given_back_moves_what_was_refused_and_none_that_follows() -> None:
    lane = lane_of(A, A)
    lane.feed(RevokeBegun(GRANT, 1_000))
    lane.nak(MAIN, 0)
    lane.feed(RevokeFinished(GRANT))
    assert [kept.origin for kept in lane.queues[RETRY]] == [0]
    lane.save()
    lane.lend()
    assert live(lane, RETRY) == [0, 1]
    assert not out(lane)


def test_what_rested_when_its_holder_died_is_passed_by_nothing_of_its_key() -> None:
    lane = lane_of(A, B, A)
    lane.refuses = True
    lane.nak(MAIN, 0, delay_ms=60_000)
    lane.die()
    lane.refuses = False
    lane.tick(2_000)
    assert out(lane) == [(1, B)]
    assert live(lane, RETRY) == [0, 2]
    lane.tick(58_000)
    assert out(lane) == [(0, A), (1, B)]


def test_a_suspect_holds_its_key_in_the_retry_queue_and_kills_so_often_at_most() -> None:
    lane = lane_of(A, B, A)
    deaths = 0
    while not lane.queues[DEAD]:
        lane.tick(120_000)
        assert (0, A) in out(lane)
        assert (2, A) not in out(lane) or (MAIN, 0) in lane.out
        lane.die()
        deaths += 1
        assert deaths <= POLICY.max_deliver + 4
    assert lane.queues[DEAD][0].cause == DIED
    lane.tick(120_000)
    assert live(lane, DEAD)[0] == 0


def test_the_cursor_is_not_held_up_by_what_it_has_met_and_not_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane = lane_of(A, *(B, A) * 6)
    lane.nak(MAIN, 0, reject=True)
    for at in range(1, 13, 2):
        lane.nak(MAIN, at)
    assert lane.places() == [[DEAD], *[[RETRY], [DEAD]] * 6]
    monkeypatch.setattr(stream, "RESTING_RANGES_MAX", 1)
    monkeypatch.setattr(stream, "ACKED_RANGES_MAX", 1)
    lane = lane_of(0, *(A, 0) * 6)
    lane.nak(MAIN, 1)
    lane.die()
    lane.tick(10)
    for at in range(0, 13, 2):
        lane.ack(MAIN, at)
    assert [place for place in lane.places() if place == [MAIN]] == []


# In portions


def test_of_many_followers_in_a_chunk_some_are_met_at_a_time_and_nothing_is_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyed_lane, "FOLLOWERS_MET_MAX", 2)
    lane = lane_of(A, A, B, A, A, 0, A, B, A)
    lane.nak(MAIN, 0)
    lane.die()
    assert out(lane) == [(2, B), (5, 0), (7, B)]
    lane.ack(MAIN, 2, 5, 7)
    assert [kept.origin for kept in lane.queues[RETRY]] == [0, 1, 3, 4, 6, 8]


def test_of_a_chunk_that_is_cut_records_without_a_key_are_dead_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyed_lane, "FOLLOWERS_MET_MAX", 2)
    lane = PlayedLane(6, replace(BLOCK, keyless_dead=True), [0, A, 0, 0, B, 0])
    assert live(lane, DEAD) == [0, 2, 3, 5]
    assert out(lane) == [(1, A), (4, B)]


def test_however_many_wait_behind_a_head_that_dies_all_of_them_are_dead_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyed_lane, "MOVE_RECORDS_MAX", 2)
    lane = lane_of(*[A] * 9)
    lane.nak(MAIN, 0)
    lane.tick(1_000)
    lane.nak(RETRY, 0, reject=True)
    lane.tick(1_000)
    assert live(lane, DEAD) == [*range(9)]
    assert live(lane, RETRY) == []


# Full queues


def test_full_queues_hold_a_failed_record_and_its_key_back_and_not_others() -> None:
    policy = replace(BLOCK, queue_records=1)
    lane = PlayedLane(4, policy, (A, B, B, C))
    lane.nak(MAIN, 0, delay_ms=60_000)
    lane.nak(MAIN, 1)
    assert lane.places() == [[RETRY], [MAIN], [MAIN], [MAIN]]
    assert out(lane) == [(3, C)]
    lane.tick(60_000)
    assert (0, A) in out(lane)
    lane.ack(RETRY, 0)
    lane.tick(2_000)
    assert live(lane, RETRY)[:1] == [1]


def test_what_found_no_room_is_tried_again_though_nothing_else_happens() -> None:
    lane = PlayedLane(3, replace(BLOCK, queue_records=1), (A, B, B))
    lane.nak(MAIN, 0, reject=True)
    lane.nak(MAIN, 1, reject=True)
    lane.tick(REFUSED_MOVE_MS)
    assert lane.places() == [[DEAD], [MAIN], [MAIN]]
    lane.feed(Edited(1, ACK_WAIT_MS, False, BLOCK))
    lane.tick(REFUSED_MOVE_MS)
    assert lane.places() == [[DEAD], [DEAD], [DEAD]]


def test_what_finds_no_room_does_not_keep_its_stream_from_being_given_back() -> None:
    lane = PlayedLane(3, replace(BLOCK, queue_records=1), (A, B, B))
    lane.nak(MAIN, 0, reject=True)
    lane.nak(MAIN, 1, reject=True)
    lane.feed(RevokeBegun(GRANT, 10_000))
    lane.feed(RevokeFinished(GRANT))
    assert all(each.finished for each in lane.window.streams())
    lane.save()
    lane.lend()
    assert out(lane) == [(1, B), (2, B)]


def test_what_finds_queues_that_last_moves_filled_does_not_keep_its_stream() -> None:
    lane = PlayedLane(3, replace(BLOCK, queue_records=2), (A, B, C))
    lane.holds = True
    for at in range(3):
        lane.nak(MAIN, at)
    lane.feed(RevokeBegun(GRANT, 10_000))
    lane.feed(RevokeFinished(GRANT))
    lane.holds = False
    lane.answer()
    assert all(each.finished for each in lane.window.streams())
    lane.save()
    lane.lend()
    assert lane.places() == [[RETRY], [RETRY], [MAIN]]
    assert out(lane) == [(2, C)]


def test_a_record_that_holds_up_what_is_in_full_queues_is_moved_all_the_same() -> None:
    policy = replace(BLOCK, queue_records=1)
    lane = PlayedLane(2, policy, (A, A))
    lane.settle(MAIN, naks=[Nak(1, 2, delay_ms=0)])
    lane.nak(MAIN, 0, delay_ms=0)
    lane.tick(10)
    assert sorted(live(lane, RETRY)) == [0, 1]
    assert out(lane) == [(0, A)]


def test_so_many_followers_wait_at_most_that_the_cursor_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "RESTING_RANGES_MAX", 3)
    lane = lane_of(A, B, A, B, A)
    lane.refuses = True
    lane.nak(MAIN, 0)
    (main, _) = lane.window.streams()
    assert main.capped()
    lane.refuses = False
    lane.tick(1_000)
    assert not main.capped()


# Growth


def test_at_the_end_of_a_sealed_stream_work_in_progress_renews_for_one_more_ack_wait() -> None:
    lane = lane_of(A)
    lane.feed(StreamSealed(GRANT, 1), Settle(GRANT, frontier=1))
    for _ in range(3):
        lane.tick(ACK_WAIT_MS * 3 // 4)
        lane.feed(Settle(GRANT, in_progress=((0, 1),)))
    lane.tick(ACK_WAIT_MS // 2)
    (asked,) = (each for each in lane.others if isinstance(each, AskBack))
    lane.feed(TakenBack(GRANT, asked.number, out=True))
    assert live(lane, RETRY) == [0]


def test_before_the_end_of_a_sealed_stream_it_renews_for_ever() -> None:
    lane = lane_of(A)
    lane.feed(StreamSealed(GRANT, 5), Settle(GRANT, frontier=1))
    for _ in range(8):
        lane.tick(ACK_WAIT_MS * 3 // 4)
        lane.feed(Settle(GRANT, in_progress=((0, 1),)))
    assert not [each for each in lane.others if isinstance(each, AskBack)]


def rehomed(offset: int, origin: int) -> Kept:
    """An entry that came from the lane of an earlier storage topic."""
    entry = Entry(offset, 0, 1, MAIN, 1, 10, origin, A, is_rehomed=True)
    return Kept(entry, origin, "refused", "")


def test_what_comes_from_an_earlier_storage_topic_goes_before_all_of_its_key_in_its_order() -> None:
    lane = lane_of(A, A)
    lane.queues[RETRY] = [rehomed(0, -5), rehomed(1, -9)]
    lane.lend()
    lane.tick(1)
    seen = []
    for _ in range(2):
        ((level, at),) = lane.out
        assert level == RETRY
        seen.append(lane.queues[RETRY][at].origin)
        lane.ack(level, at)
        lane.tick(1)
    assert seen == [-9, -5]
    # What the stream has of the key had to wait behind them, in the queue.
    assert [each.origin for each in lane.queues[RETRY]][2:] == [0, 1]


def test_a_dead_letter_of_an_earlier_storage_topic_holds_up_its_key_alone() -> None:
    lane = lane_of(A, B)
    lane.queues[DEAD] = [rehomed(0, -5)]
    lane.lend()
    lane.tick(1)
    assert list(lane.out) == [(MAIN, 1)]
    assert live(lane, DEAD) == [-5, 0]


def test_what_came_from_another_lane_acknowledges_nothing_in_this_one() -> None:
    lane = lane_of(B, B, B)
    lane.queues[RETRY] = [rehomed(0, -5)]
    lane.lend()
    lane.tick(1)
    assert sorted(lane.out) == [(MAIN, 0), (MAIN, 1), (MAIN, 2), (RETRY, 0)]


def test_a_later_attempt_of_what_came_from_another_lane_replaces_it_over_a_death() -> None:
    lane = lane_of(B)
    again = Kept(Entry(1, 0, 2, RETRY, 0, 10, -5, A), -5, "refused", "")
    lane.queues[RETRY] = [rehomed(0, -5), again]
    lane.lend()
    lane.tick(1)
    assert (RETRY, 1) in lane.out
    assert (RETRY, 0) not in lane.out
