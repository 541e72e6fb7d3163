"""A lane: what fails goes to its queues, once, whoever dies on the way."""

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dss_core.lane import DEAD, MAIN, RETRY
from dss_core.progress import Progress, normalised
from dssd.limits import ISOLATE_AFTER_DOUBTS, MOVE_RECORDS_MAX
from dssd.machines.delivery.events import (
    AnswerSettled,
    Closing,
    DeliveryInput,
    Edited,
    Entry,
    Grown,
    Nak,
    OpenLane,
    Paused,
    RevokeBegun,
    RevokeFinished,
    Saved,
    Settle,
    Ticked,
    Unpaused,
)
from dssd.machines.queues import BURY, RETRY_LATER, RETRY_NOW, SKIP, RetryPolicy
from support.played_lane import ACK_WAIT_MS, GRANT, POLICY, STREAMS, Kept, PlayedLane
from support.played_window import Stream
from support.proof_share import share


def test_a_refused_record_waits_in_the_retry_queue_and_is_done_in_its_stream() -> None:
    lane = PlayedLane(3)
    lane.nak(MAIN, 0, error="boom", error_type="ValueError")
    assert lane.places() == [[RETRY], [MAIN], [MAIN]]
    (kept,) = lane.queues[RETRY]
    assert (kept.cause, kept.error, kept.entry.attempt, kept.entry.due_ms) == (
        "refused", "boom", 1, 1_000,
    )  # fmt: skip
    assert lane.states()[0].floor == 1


def test_it_comes_again_at_its_time_from_the_retry_queue() -> None:
    lane = PlayedLane(1)
    lane.nak(MAIN, 0)
    lane.tick(999)
    assert not lane.out
    lane.tick(1)
    assert list(lane.out) == [(RETRY, 0)]
    lane.ack(RETRY, 0)
    assert lane.places() == [[]]


def test_each_failure_waits_as_the_back_off_says_and_the_last_makes_it_dead() -> None:
    lane = PlayedLane(1)
    lane.nak(MAIN, 0)
    lane.tick(1_000)
    lane.nak(RETRY, 0)
    lane.tick(4_999)
    assert not lane.out
    lane.tick(1)
    lane.nak(RETRY, 1, error="for good")
    assert lane.places() == [[DEAD]]
    (dead,) = lane.queues[DEAD]
    assert (dead.entry.attempt, dead.error, dead.origin) == (3, "for good", 0)


def test_a_rejected_record_is_dead_at_once_from_either_level() -> None:
    lane = PlayedLane(2)
    lane.nak(MAIN, 0, reject=True)
    lane.nak(MAIN, 1)
    lane.tick(1_000)
    lane.nak(RETRY, 0, reject=True)
    assert lane.places() == [[DEAD], [DEAD]]
    assert [kept.cause for kept in lane.queues[DEAD]] == ["rejected", "rejected"]


def test_a_delay_of_the_user_counts_instead_of_the_back_off() -> None:
    lane = PlayedLane(1)
    lane.nak(MAIN, 0, delay_ms=60_000)
    lane.tick(59_999)
    assert not lane.out
    lane.tick(1)
    assert list(lane.out) == [(RETRY, 0)]


def test_an_ack_wait_that_runs_out_is_a_failure() -> None:
    lane = PlayedLane(1)
    lane.settle(MAIN, handed_out=[0])
    lane.tick(ACK_WAIT_MS + 100)
    assert lane.queues[RETRY][0].cause == "ack wait"


def test_a_late_ack_settles_the_entry_that_was_not_sent_since() -> None:
    lane = PlayedLane(2)
    lane.settle(MAIN, handed_out=[0])
    lane.tick(ACK_WAIT_MS + 100)
    lane.ack(MAIN, 0)
    assert lane.places()[0] == []
    lane.tick(10_000)
    assert (RETRY, 0) not in lane.out


def test_a_late_ack_is_reported_and_answered_once_that_is_durable() -> None:
    lane = PlayedLane(1)
    lane.settle(MAIN, handed_out=[0])
    lane.tick(ACK_WAIT_MS + 100)
    lane.feed(Saved(GRANT, lane.states()[0]))
    lane.reports.clear()
    lane.feed(Settle(GRANT, acked=((0, 1),), frontier=1, token=9))
    lane.tick(1)
    assert not lane.others
    assert lane.reports[-1].queues[0].progress == Progress(1)
    lane.feed(Saved(GRANT + RETRY, Progress(1)))
    assert lane.others == [AnswerSettled(9)]


def entry_handed_out() -> PlayedLane:
    """The entry of a record that failed once is with the user, and durable as it stands."""
    lane = PlayedLane(1)
    lane.nak(MAIN, 0)
    lane.tick(1_000)
    lane.settle(RETRY, handed_out=[0])
    return lane


def acks_late(lane: PlayedLane, done: Progress) -> None:
    """The user acknowledges the entry, waits for that, and hears once this is durable."""
    lane.feed(Settle(GRANT + RETRY, acked=((0, 1),), token=9))
    lane.tick(1)
    assert AnswerSettled(9) not in lane.others
    assert lane.reports[-1].queues[0].progress == done
    lane.feed(Saved(GRANT + RETRY, done))
    assert lane.others[-1] == AnswerSettled(9)
    lane.out.clear()
    lane.feed(Unpaused(1))
    lane.tick(60_000)
    assert not lane.out
    assert lane.places() == [[]]


def test_an_entry_whose_ack_wait_ran_out_in_a_pause_is_done_by_a_late_ack() -> None:
    lane = entry_handed_out()
    lane.feed(Paused(1))
    lane.tick(ACK_WAIT_MS + 100)
    acks_late(lane, Progress(1))


def test_a_late_ack_of_an_entry_settles_the_next_one_that_was_not_sent_since() -> None:
    lane = entry_handed_out()
    lane.tick(ACK_WAIT_MS + 100)
    assert lane.queues[RETRY][1].cause == "ack wait"
    acks_late(lane, Progress(2))


def test_an_entry_that_was_sent_again_after_a_pause_is_acknowledged_once() -> None:
    lane = entry_handed_out()
    lane.feed(Paused(1))
    lane.tick(ACK_WAIT_MS + 100)
    lane.out.clear()
    lane.feed(Unpaused(1))
    lane.tick(1)
    assert list(lane.out) == [(RETRY, 0)]
    lane.ack(RETRY, 0)
    lane.ack(RETRY, 0)
    assert lane.places() == [[]]
    assert lane.states()[1].fate.counts.acked == 1


def test_what_is_due_in_a_pause_and_was_not_handed_out_cannot_be_acknowledged() -> None:
    lane = PlayedLane(1)
    lane.nak(MAIN, 0)
    lane.feed(Paused(1))
    lane.tick(1_000)
    lane.ack(RETRY, 0)
    assert lane.places() == [[RETRY]]


def test_a_record_that_is_acked_while_it_is_moved_is_done_in_the_queue_too() -> None:
    lane = PlayedLane(1)
    lane.holds = True
    lane.nak(MAIN, 0)
    lane.ack(MAIN, 0)
    lane.answer()
    assert lane.places() == [[]]


def test_an_ack_in_a_pause_counts_though_its_ack_wait_ran_out() -> None:
    lane = PlayedLane(1)
    lane.nak(MAIN, 0)
    lane.tick(1_000)
    lane.settle(RETRY, handed_out=[0])
    lane.feed(Paused(1))
    lane.tick(ACK_WAIT_MS)
    lane.feed(Settle(GRANT + RETRY, acked=((0, 1),), token=9))
    lane.out.clear()
    lane.feed(Unpaused(1))
    assert not lane.out
    assert lane.places() == [[]]


def test_what_fails_while_a_move_is_under_way_goes_with_the_next_one() -> None:
    lane = PlayedLane(4)
    lane.holds = True
    for at in range(4):
        lane.nak(MAIN, at)
    assert len(lane.moves) == 1
    lane.holds = False
    lane.answer()
    assert [len(move.pieces) for move in lane.moves] == [1, 3]
    assert lane.places() == [[RETRY]] * 4


def test_what_cannot_be_appended_stays_where_it_was_and_is_moved_later() -> None:
    lane = PlayedLane(2)
    lane.refuses = True
    lane.nak(MAIN, 0, error="boom")
    assert lane.places() == [[MAIN], [MAIN]]
    lane.refuses = False
    lane.tick(1_000)
    assert lane.places() == [[RETRY], [MAIN]]
    assert lane.queues[RETRY][0].error == "boom"


def test_an_entry_whose_answer_was_lost_acknowledges_its_source_for_the_next_holder() -> None:
    lane = PlayedLane(2)
    lane.holds = True
    lane.nak(MAIN, 0)
    lane.die()
    assert lane.places() == [[RETRY], [MAIN]]
    assert (MAIN, 0) not in lane.out


def test_nothing_that_was_not_saved_is_lost_or_doubled() -> None:
    lane = PlayedLane(2)
    lane.nak(MAIN, 0)
    lane.tick(1_000)
    lane.nak(RETRY, 0)
    lane.lend()  # without a report
    assert lane.places() == [[RETRY], [MAIN]]
    lane.tick(5_000)
    assert (RETRY, 1) in lane.out
    assert (RETRY, 0) not in lane.out


def test_full_queues_leave_records_in_their_stream_until_there_is_room() -> None:
    lane = PlayedLane(2, RetryPolicy(3, (60_000,), queue_records=1, queue_bytes=1 << 30))
    lane.nak(MAIN, 0)
    lane.nak(MAIN, 1)
    assert lane.places() == [[RETRY], [MAIN]]
    lane.tick(60_000)
    assert set(lane.out) == {(RETRY, 0), (MAIN, 1)}


def test_of_what_is_refused_together_only_as_much_is_moved_as_the_queues_have_room_for() -> None:
    lane = PlayedLane(9, RetryPolicy(3, (60_000,), queue_records=4, queue_bytes=1 << 30))
    lane.settle(MAIN, naks=[Nak(0, 1), Nak(1, 2), Nak(2, 9)])
    assert lane.places() == [[RETRY]] * 4 + [[MAIN]] * 5
    lane.tick(60_000)
    assert len(lane.out) == 9


@pytest.mark.parametrize("lent_again", [False, True])
def test_dead_letters_take_of_the_bytes_that_queues_may_hold(lent_again: bool) -> None:
    lane = PlayedLane(4, RetryPolicy(3, (60_000,), queue_records=100, queue_bytes=20))
    lane.nak(MAIN, 0, reject=True)
    lane.nak(MAIN, 1, reject=True)
    if lent_again:
        lane.die()
    lane.nak(MAIN, 2)
    assert lane.places() == [[DEAD], [DEAD], [MAIN], [MAIN]]


def test_dead_letters_that_came_back_and_are_done_leave_room_for_as_many_bytes() -> None:
    lane = PlayedLane(4, RetryPolicy(3, (60_000,), queue_records=100, queue_bytes=20))
    for at in (0, 1):
        lane.nak(MAIN, at, reject=True)
    lane.tick(10)
    lane.save()
    lane.redrive(0, 1)
    lane.tick(1_000)
    lane.nak(MAIN, 2)
    assert lane.places() == [[RETRY], [DEAD], [MAIN], [MAIN]]
    lane.ack(RETRY, 0)
    lane.nak(MAIN, 3)
    assert lane.places() == [[], [DEAD], [MAIN], [RETRY]]


def test_of_what_is_refused_together_only_as_many_bytes_are_moved_as_there_is_room_for() -> None:
    lane = PlayedLane(9)
    (main, _) = lane.window.streams()
    size = main.records.out.bytes // 9
    lane.feed(Edited(1, ACK_WAIT_MS, False, replace(POLICY, queue_bytes=4 * size)))
    lane.holds = True
    lane.settle(MAIN, naks=[Nak(0, 1), Nak(1, 2), Nak(2, 9)])
    lane.answer()
    assert sum(piece.end - piece.start for move in lane.moves for piece in move.pieces) == 4


def test_what_a_client_refused_as_it_gave_the_stream_back_is_moved_first() -> None:
    lane = PlayedLane(1)
    lane.feed(RevokeBegun(GRANT, 1_000))
    lane.holds = True
    lane.nak(MAIN, 0, error="last words")
    lane.feed(RevokeFinished(GRANT))
    lane.answer()
    assert lane.reports[-1].queues[0].applied_end == 1
    assert lane.reports[-1].progress.floor == 1


def test_what_a_client_refused_is_moved_first_also_where_it_gives_the_stream_back_unasked() -> None:
    lane = PlayedLane(1)
    lane.holds = True
    lane.nak(MAIN, 0)
    lane.feed(RevokeFinished(GRANT))
    assert not any(report.queues[0].applied_end for report in lane.reports)
    lane.answer()
    assert lane.reports[-1].queues[0].applied_end == 1


def test_a_record_that_killed_as_often_as_it_may_fail_is_dead_at_the_next_grant() -> None:
    lane = PlayedLane(1)
    for _ in range(POLICY.max_deliver):
        lane.tick(120_000)
        lane.die()
    assert lane.places() == [[DEAD]]
    assert lane.queues[DEAD][0].cause == "died"


def test_a_killer_around_which_the_stream_goes_on_is_dead_after_four_more_deaths() -> None:
    lane = PlayedLane(10_000)
    out_at_deaths: list[int] = []
    while not lane.queues[DEAD] and len(out_at_deaths) < 20:
        lane.tick(max(POLICY.backoff_ms))
        # More come at once, and are out with it.
        lane.ack(MAIN, *(at for _, at in list(lane.out) if at))
        if (MAIN, 0) in lane.out:
            out_at_deaths.append(len(lane.out))
            lane.die()
    assert len(out_at_deaths) <= POLICY.max_deliver + ISOLATE_AFTER_DOUBTS
    assert out_at_deaths[-1] > 1
    assert [(kept.origin, kept.cause) for kept in lane.queues[DEAD]] == [(0, "died")]


def test_of_the_suspects_of_both_levels_one_is_out_at_a_time() -> None:
    lane = PlayedLane(2, replace(POLICY, max_deliver=9))
    lane.nak(MAIN, 0)
    for _ in range(ISOLATE_AFTER_DOUBTS):
        lane.tick(max(POLICY.backoff_ms))
        assert set(lane.out) == {(RETRY, 0), (MAIN, 1)}
        lane.die()
    lane.tick(max(POLICY.backoff_ms))
    ((level, at),) = lane.out
    lane.ack(level, at)
    lane.tick(0)
    assert set(lane.out) == {(RETRY, 0), (MAIN, 1)} - {(level, at)}


def test_a_killer_on_its_way_to_the_dead_letters_does_not_come_again() -> None:
    lane = PlayedLane(1, replace(POLICY, max_deliver=5))
    for _ in range(5):
        lane.tick(120_000)
        lane.holds = True
        lane.die()
    lane.tick(120_000)
    assert len(lane.queues[DEAD]) == 1
    assert not lane.out


def test_what_is_due_before_the_lane_is_open_comes_once_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane = PlayedLane(1, replace(POLICY, max_deliver=2))
    lane.nak(MAIN, 0)
    lane.tick(1_000)
    lane.refuses = True
    lane.nak(RETRY, 0, delay_ms=5_000)
    lane.tick(10)
    lane.save()
    opened = lane._opened
    told: list[DeliveryInput] = []

    def later(asked: OpenLane) -> list[DeliveryInput]:
        told[:] = opened(asked)
        return []

    monkeypatch.setattr(lane, "_opened", later)
    lane.lend()
    lane.feed(Edited(1, ACK_WAIT_MS, False, lane.policy))  # anything that makes it look at times
    lane.tick(6_000)
    assert not lane.out
    lane.feed(*told)
    lane.refuses = False
    lane.tick(1_000)
    assert (len(lane.out), lane.places()) == (1, [[RETRY]])


def test_a_killer_that_comes_alone_rests_as_the_back_off_of_the_group_says() -> None:
    lane = PlayedLane(1, replace(POLICY, max_deliver=9))
    for _ in range(4):
        lane.die()
        lane.tick(0)
    assert not lane.out
    lane.tick(POLICY.backoff_ms[0])
    assert len(lane.out) == 1


def test_deaths_and_refusals_count_together() -> None:
    lane = PlayedLane(1)
    lane.nak(MAIN, 0)
    lane.tick(1_000)
    for _ in range(2):
        lane.die()
        lane.tick(120_000)
    assert lane.places() == [[DEAD]]


@pytest.mark.parametrize("level", [MAIN, RETRY])
def test_a_refusal_that_was_not_moved_is_no_death_although_a_client_vanished_before(
    level: int,
) -> None:
    lane = PlayedLane(2, replace(POLICY, max_deliver=1 + level))
    if level == RETRY:
        lane.nak(MAIN, 0, error="first")
        lane.tick(1_000)
        lane.settle(RETRY, handed_out=[0])
    lane.die()
    lane.tick(60_000)
    assert (level, 0) in lane.out
    lane.refuses = True
    lane.nak(level, 0, error="the disk was full")
    lane.tick(10)
    lane.save()
    lane.lend()
    lane.refuses = False
    lane.tick(60_000)
    assert lane.places()[0] == [level]
    lane.nak(level, 0, error="the last")
    assert lane.places()[0] == [DEAD]
    [dead] = lane.queues[DEAD]
    assert (dead.cause, dead.error) == ("refused", "the last")


def test_dead_letters_come_back_by_a_redrive_and_attempts_begin_anew() -> None:
    lane = PlayedLane(2)
    lane.nak(MAIN, 0, reject=True)
    lane.nak(MAIN, 1, reject=True)
    lane.tick(10)
    lane.save()
    lane.redrive(0, 1)
    lane.tick(1_000)
    assert lane.places() == [[RETRY], [DEAD]]
    assert list(lane.out) == [(RETRY, 0)]
    assert lane.queues[RETRY][0].entry.attempt == 0


def test_a_redrive_goes_on_at_its_rate_for_the_next_holder() -> None:
    lane = PlayedLane(4)
    for at in range(4):
        lane.nak(MAIN, at, reject=True)
    lane.tick(10)
    lane.save()
    lane.redrive(0, 4, over_ms=8_000)
    lane.tick(4_000)
    assert lane.places() == [[RETRY], [RETRY], [DEAD], [DEAD]]
    lane.save()
    lane.lend()
    lane.tick(2_000)
    assert lane.places() == [[RETRY], [RETRY], [RETRY], [DEAD]]
    lane.tick(2_000)
    assert lane.places() == [[RETRY]] * 4


def test_what_was_reopened_and_waits_in_the_retry_queue_comes_from_there_alone() -> None:
    lane = PlayedLane(3)
    lane.nak(MAIN, 1)
    lane.ack(MAIN, 0)
    lane.tick(10)
    lane.save()
    lane.saved = replace(lane.saved, progress=Progress(0), frontier=0)  # a rewind
    lane.lend()
    assert lane.places() == [[MAIN], [RETRY], [MAIN]]
    assert set(lane.out) == {(MAIN, 0), (MAIN, 2)}


def test_what_a_holder_knew_of_waiting_entries_goes_with_its_grant() -> None:
    lane = PlayedLane(2)
    lane.nak(MAIN, 0)
    (retry,) = (part for part in lane.window.streams() if part.level == RETRY)
    assert retry.entries is not None
    assert retry.entries.records == 1
    lane.feed(Closing())
    assert retry.entries.records == 0


def test_a_move_takes_the_first_of_what_waits_and_leaves_the_rest_in_order() -> None:
    last = MOVE_RECORDS_MAX + 3
    lane = PlayedLane(last + 1)
    lane.holds = True
    lane.nak(MAIN, last, error="first")
    lane.settle(MAIN, naks=[Nak(0, 2), Nak(2, last - 1), Nak(last - 1, last)])
    lane.answer()
    lane.answer()
    moved = [normalised((piece.start, piece.end) for piece in move.pieces) for move in lane.moves]
    cut = MOVE_RECORDS_MAX
    assert moved == [((last, last + 1),), ((0, cut),), ((cut, last),)]


def test_an_edit_counts_for_what_fails_after_it() -> None:
    lane = PlayedLane(1)
    lane.feed(Edited(1, ACK_WAIT_MS, False, replace(POLICY, max_deliver=1)))
    lane.nak(MAIN, 0)
    assert lane.places() == [[DEAD]]


def test_entries_that_wait_between_done_ones_are_copied_to_the_end_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dssd.machines.delivery.copying.QUEUE_RANGES_MAX", 4)
    lane = PlayedLane(24, replace(POLICY, max_deliver=9))
    for at in range(24):
        lane.nak(MAIN, at, delay_ms=1_000 if at % 2 else 500_000)
    lane.tick(2_000)
    for at in range(1, 24, 2):
        lane.ack(RETRY, at)
    assert len(lane.queues[RETRY]) > 24
    assert len(lane.states()[1].progress.ranges) <= 5
    assert sorted(map(len, lane.places())) == [0] * 12 + [1] * 12


def test_an_entry_that_fails_before_it_could_be_copied_is_moved_once_with_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dssd.machines.delivery.copying.QUEUE_RANGES_MAX", 4)
    lane = PlayedLane(24, replace(POLICY, max_deliver=2))
    for at in range(24):
        lane.nak(MAIN, at, delay_ms=1_000 if at % 2 else 60_000, error="first")
    lane.tick(2_000)
    lane.refuses = True
    for at in range(1, 24, 2):
        lane.ack(RETRY, at)
    lane.tick(60_000)
    for level, at in sorted(lane.out):
        lane.nak(level, at, error="second")
    lane.refuses = False
    lane.tick(10_000)
    assert sorted(lane.places()) == [[]] * 12 + [[DEAD]] * 12
    assert {kept.error for kept in lane.queues[DEAD]} == {"second"}


@pytest.mark.parametrize("ordered", [False, True])
def test_an_entry_whose_time_comes_while_it_is_copied_comes_from_the_end_alone(
    monkeypatch: pytest.MonkeyPatch, ordered: bool
) -> None:
    monkeypatch.setattr("dssd.machines.delivery.copying.QUEUE_RANGES_MAX", 4)
    policy = replace(POLICY, max_deliver=9, ordered=ordered, keyless_dead=False)
    lane = PlayedLane(24, policy, keys=[0] * 24 if ordered else ())
    for at in range(24):
        lane.nak(MAIN, at, delay_ms=1_000 if at % 2 else 60_000)
    lane.tick(2_000)
    lane.holds = True
    for at in range(1, 24, 2):
        lane.ack(RETRY, at)
    copied = {piece.start for move in lane.moves for piece in move.pieces if piece.is_copied}
    lane.tick(60_000)
    assert copied
    assert not copied & {at for _, at in lane.out}
    lane.holds = False
    lane.answer()
    lane.tick(10)
    origins = sorted(lane.queues[level][at].origin for level, at in lane.out)
    assert origins == list(range(0, 24, 2))


def test_a_stream_reads_on_once_what_waited_to_be_moved_is_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dssd.machines.delivery.stream.RESTING_RANGES_MAX", 3)
    lane = PlayedLane(1, replace(POLICY, ordered=True), keys=[7] * 5 + [8])
    lane.holds = True
    lane.nak(MAIN, 0)
    for records in (5, 6):
        lane.main = Stream([1] * records)
        lane.feed(Grown(GRANT))
    assert not lane.out
    lane.answer()
    assert len(lane.moves) == 2
    assert list(lane.out) == [(MAIN, 5)]


def test_an_entry_that_waits_long_does_not_keep_the_floor_of_its_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dssd.machines.delivery.copying.SPARSE_RECORDS_MIN", 8)
    lane = PlayedLane(12, replace(POLICY, max_deliver=9))
    lane.nak(MAIN, 0, delay_ms=500_000, error="later")
    for at in range(1, 12):
        lane.nak(MAIN, at, delay_ms=1_000)
        lane.tick(1_000)
        lane.ack(RETRY, *(at for level, at in lane.out if level == RETRY))
    assert lane.states()[1].progress.floor > 6
    assert lane.places()[0] == [RETRY]
    assert len(lane.queues[RETRY]) == 13
    lane.tick(10)
    lane.save()
    lane.lend()
    lane.tick(500_000)
    assert list(lane.out) == [(RETRY, 9)]


def test_an_ack_of_a_retried_record_that_is_waited_for_is_reported_at_once_and_answered() -> None:
    lane = PlayedLane(1)
    lane.nak(MAIN, 0)
    lane.tick(1_000)
    lane.feed(Settle(GRANT + RETRY, acked=((0, 1),), token=9))
    lane.tick(1)
    assert (lane.reports[-1].stream, lane.reports[-1].is_awaited) == (STREAMS[MAIN], True)
    lane.feed(Saved(GRANT + RETRY, lane.reports[-1].queues[0].progress))
    assert lane.others == [AnswerSettled(9)]


@pytest.mark.parametrize("why", ["the disk is full", "the queues are full"])
def test_a_delay_outlives_a_holder_that_could_not_move_its_record(why: str) -> None:
    lane = PlayedLane(2, replace(POLICY, queue_records=0 if "queues" in why else 1_000))
    lane.refuses = True
    lane.nak(MAIN, 0, delay_ms=60_000)
    lane.tick(10)
    lane.die()
    lane.tick(59_000)
    assert (MAIN, 0) not in lane.out
    lane.tick(1_000)
    assert (MAIN, 0) in lane.out


def test_nothing_is_sent_of_the_retry_queue_before_the_dead_letters_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane = PlayedLane(1)
    lane.nak(MAIN, 0)
    lane.tick(1_000)
    lane.save()
    lane.nak(RETRY, 0, reject=True)
    opened = lane._opened
    told: list[DeliveryInput] = []

    def of_retry_queue(asked: OpenLane) -> list[DeliveryInput]:
        told[:] = opened(asked)
        return [told.pop(0)]

    monkeypatch.setattr(lane, "_opened", of_retry_queue)
    lane.lend()
    lane.feed(Edited(1, ACK_WAIT_MS, False, POLICY))  # anything that makes it look at its times
    lane.tick(10)
    lane.feed(*told)
    assert not lane.out
    assert lane.places() == [[DEAD]]


def test_a_lane_that_is_lent_with_many_moves_that_were_not_reported_is_read_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dssd.machines.delivery.stream.ACKED_RANGES_MAX", 2)
    monkeypatch.setattr("dssd.machines.delivery.stream.RANGES_ADDED_MAX", 1)
    lane = PlayedLane(8)
    for at in (1, 3, 5):
        lane.nak(MAIN, at, reject=True)
    lane.lend()
    assert lane.out


def test_a_move_that_fails_again_and_again_is_no_news_to_the_leader() -> None:
    lane = PlayedLane(1)
    lane.refuses = True
    lane.nak(MAIN, 0)
    lane.tick(10)
    lane.reports.clear()
    lane.tick(10_000)
    assert len(lane.moves) > 5
    assert not lane.reports


def test_a_record_that_is_to_be_dead_does_not_come_again_while_it_cannot_be_moved() -> None:
    lane = PlayedLane(1, replace(POLICY, max_deliver=1))
    lane.refuses = True
    lane.die()
    lane.tick(120_000)
    assert not lane.out
    lane.refuses = False
    lane.tick(1_000)
    assert lane.places() == [[DEAD]]


@pytest.mark.parametrize("why", ["the disk is full", "the queues are full"])
@pytest.mark.parametrize("level", [MAIN, RETRY])
def test_what_was_refused_for_the_last_time_and_could_not_be_moved_dies_of_its_error(
    level: int, why: str
) -> None:
    lane = PlayedLane(2)
    lane.policy = replace(POLICY, max_deliver=1 + level)
    full = replace(lane.policy, queue_records=0 if "queues" in why else 1_000)
    if level == RETRY:
        lane.nak(MAIN, 0, error="first")
        lane.tick(1_000)
    lane.feed(Edited(1, ACK_WAIT_MS, False, full))
    lane.refuses = True
    lane.nak(level, 0, error="boom")
    lane.ack(MAIN, 1)
    lane.tick(10)
    lane.die()
    lane.refuses = False
    lane.tick(max(POLICY.backoff_ms))
    assert not lane.queues[DEAD]
    lane.nak(level, 0, error="the last")
    assert [(kept.cause, kept.error) for kept in lane.queues[DEAD]] == [("refused", "the last")]


@pytest.mark.parametrize("answered", [True, False])
def test_what_is_acknowledged_while_it_waits_to_be_moved_holds_up_nothing(answered: bool) -> None:
    lane = PlayedLane(1)
    lane.refuses, lane.holds = True, not answered
    lane.nak(MAIN, 0)
    lane.ack(MAIN, 0)
    lane.answer()
    (main, _) = lane.window.streams()
    assert main.records.moving == 0
    lane.tick(10)
    lane.now_ms += 2_000
    lane.feed(Ticked())
    assert (lane.window.wake_at_ms or ACK_WAIT_MS) > lane.now_ms


@pytest.mark.parametrize("level", [MAIN, RETRY])
@pytest.mark.parametrize("refuses", [True, False])
def test_a_holder_tells_of_a_move_until_it_is_over_also_where_its_record_was_acknowledged(
    level: int, refuses: bool
) -> None:
    lane = PlayedLane(1)
    if level == RETRY:
        lane.nak(MAIN, 0)
    lane.tick(1_000)
    lane.holds, lane.refuses = True, refuses
    lane.nak(level, 0)
    lane.ack(level, 0)
    lane.tick(10)
    under_way = lane.reports[-1].queues[0]
    assert lane.states()[level] == Progress(1) if level == MAIN else under_way.is_empty
    assert under_way.begun == under_way.ended + 1 == len(lane.moves) + 1
    lane.answer()
    lane.tick(10)
    over = lane.reports[-1].queues[0]
    assert over.begun == over.ended == under_way.begun
    assert over.is_empty


def test_a_dead_letter_that_was_brought_back_and_was_acknowledged_before_is_counted_once() -> None:
    lane = PlayedLane(1)
    lane.queues[DEAD].append(Kept(Entry(0, 0, 1, MAIN, 0, 10, 0), 0, "refused", ""))
    lane.queues[RETRY].append(Kept(Entry(0, 0, 0, DEAD, 0, 10, 0), 0, "redriven", ""))
    lane.saved = replace(lane.saved, progress=Progress(1))
    lane.lend()
    _, _, dead = lane.states()
    assert (dead.progress, sum(dead.fate.counts)) == (Progress(1), 1)


@pytest.mark.parametrize("ends_at", [RETRY, DEAD])
def test_what_an_operator_gave_up_does_not_come_back_by_moves_that_nobody_reported(
    ends_at: int,
) -> None:
    lane = PlayedLane(1)
    dead, retry = lane.queues[DEAD], lane.queues[RETRY]
    dead.append(Kept(Entry(0, 0, 3, MAIN, 0, 10, 0), 0, "refused", ""))
    retry.append(Kept(Entry(0, 0, 0, DEAD, 0, 10, 0), 0, "redriven", ""))
    again = Entry(len(lane.queues[ends_at]), 0, 1, RETRY, 0, 10, 0)
    lane.queues[ends_at].append(Kept(again, 0, "refused", ""))
    of_retries, of_dead = lane.saved.queues
    of_dead = replace(of_dead, applied_end=1).discard(7, ((0, 1),))
    lane.saved = replace(lane.saved, progress=Progress(1), queues=(of_retries, of_dead))
    lane.lend()
    lane.tick(60_000)
    assert not lane.out
    assert lane.places() == [[]]


class AnyLane(RuleBasedStateMachine):
    """Whatever happens, each record is in one place, or done."""

    def __init__(self) -> None:
        super().__init__()
        self.lane = PlayedLane(6)
        self.acked: set[int] = set()
        """Or passed over."""
        self.given_up: set[int] = set()
        self.number = 7

    def _origin(self, level: int, at: int) -> int:
        return at if level == MAIN else self.lane.queues[level][at].origin

    @precondition(lambda self: self.lane.out)
    @rule(data=st.data(), how=st.sampled_from(["ack", "nak", "reject", "delay"]))
    def settle(self, data: st.DataObject, how: str) -> None:
        level, at = data.draw(st.sampled_from(sorted(self.lane.out)))
        if how == "ack":
            self.acked.add(self._origin(level, at))
            self.lane.ack(level, at)
        else:
            delay_ms = 7_000 if how == "delay" else None
            nak = Nak(at, at + 1, delay_ms, how, "", how == "reject")
            self.lane.settle(level, naks=[nak])

    @rule(by_ms=st.sampled_from([10, 1_000, 40_000]))
    def pass_time(self, by_ms: int) -> None:
        self.lane.tick(by_ms)

    @rule()
    def save(self) -> None:
        self.lane.save()

    @rule()
    def lose_what_was_not_saved(self) -> None:
        self.lane.lend()

    @rule()
    def die(self) -> None:
        self.lane.die()

    @precondition(lambda self: self.lane.queues[RETRY])
    @rule(data=st.data(), what=st.sampled_from([RETRY_NOW, RETRY_LATER, SKIP, BURY]))
    def ask_for_entries(self, data: st.DataObject, what: str) -> None:
        if self.lane.saved.queues[0].errand.ranges:
            return  # one operation at a time
        every = range(len(self.lane.queues[RETRY]))
        chosen = data.draw(st.sets(st.sampled_from(every), min_size=1))
        if what == SKIP:
            made = [each for each in self.lane.queues[RETRY] if each.entry.source_level == RETRY]
            of_chosen = {each.origin for each in made if each.entry.source_offset in chosen}
            self.acked |= of_chosen | {self._origin(RETRY, at) for at in chosen}
        self.number += 1
        self.lane.errand(what, *chosen, number=self.number)

    def _dead_as_saved(self) -> list[int]:
        """What an operator sees of the dead letters."""
        is_done = self.lane.saved.queues[1].progress.is_acked
        return [at for at in range(len(self.lane.queues[DEAD])) if not is_done(at)]

    @precondition(lambda self: self._dead_as_saved())
    @rule(data=st.data())
    def redrive(self, data: st.DataObject) -> None:
        at = data.draw(st.sampled_from(self._dead_as_saved()))
        self.lane.redrive(at, at + 1)

    @precondition(lambda self: self._dead_as_saved())
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        retry, dead = self.lane.saved.queues
        if dead.redriving:
            dead = dead.stop_redrive()
        named = data.draw(st.sets(st.sampled_from(self._dead_as_saved()), min_size=1))
        given_up = {self._origin(DEAD, at) for at in named}
        dead = dead.discard(7, normalised((at, at + 1) for at in named))
        self.lane.saved = replace(self.lane.saved, queues=(retry, dead))
        self.lane.lend()
        self.given_up |= given_up
        self.acked |= given_up

    @rule(holds=st.booleans(), refuses=st.booleans())
    def change_the_log(self, holds: bool, refuses: bool) -> None:
        self.lane.holds, self.lane.refuses = holds, refuses
        if not holds:
            self.lane.answer()

    @invariant()
    def each_record_is_in_one_place_or_done(self) -> None:
        under_way = {
            (entry.source_level, entry.source_offset)
            for answer in self.lane.answers
            for _, entry in answer.entries
        }
        if under_way:
            return
        for record, levels in enumerate(self.lane.places()):
            assert len(levels) == 1 or (not levels and record in self.acked), (record, levels)

    @invariant()
    def nobody_has_what_was_given_up(self) -> None:
        assert not self.given_up & {self._origin(*place) for place in self.lane.out}

    def teardown(self) -> None:
        """In the end each is acknowledged or dead."""
        self.change_the_log(holds=False, refuses=False)
        for _ in range(40):
            for level, at in sorted(self.lane.out):
                self.acked.add(self._origin(level, at))
                self.lane.ack(level, at)
            self.lane.tick(60_000)
        assert not self.lane.states()[1].errand.ranges
        for record, levels in enumerate(self.lane.places()):
            assert levels == [DEAD] or (not levels and record in self.acked), (record, levels)


TestAnyLane = AnyLane.TestCase
TestAnyLane.settings = settings(max_examples=share(30, 1_000), stateful_step_count=30)
