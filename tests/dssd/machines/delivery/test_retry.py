"""Known hand-outs, resting ranges and ack waits."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dssd.machines.delivery.retry import AckWaits, HandOuts, Resting, backoff_ms, run_records_max

SPANS = st.tuples(st.integers(0, 30), st.integers(1, 10)).map(lambda s: (s[0], s[0] + s[1]))


@pytest.mark.parametrize(
    ("hand_outs", "rest_ms"), [(0, 1_000), (1, 1_000), (2, 2_000), (6, 32_000), (7, 60_000)]
)
def test_the_back_off_doubles_up_to_a_minute(hand_outs: int, rest_ms: int) -> None:
    assert backoff_ms(hand_outs) == rest_ms


@pytest.mark.parametrize(("hand_outs", "records"), [(1, 500), (2, 250), (9, 1), (10, 1), (99, 1)])
def test_runs_are_halved_down_to_one_record(hand_outs: int, records: int) -> None:
    assert run_records_max(1_000, hand_outs) == records


@given(st.lists(st.tuples(st.booleans(), SPANS)), st.integers(0, 40), SPANS)
def test_hand_outs_agree_with_a_count_per_offset(
    actions: list[tuple[bool, tuple[int, int]]], frontier: int, asked: tuple[int, int]
) -> None:
    hand_outs = HandOuts()
    counts = {offset: int(offset < frontier) for offset in range(50)}
    for charge, (start, end) in actions:
        if charge:
            hand_outs.charge(start, end, frontier)
        else:
            hand_outs.forget(start, end)
        for offset in range(start, end):
            counts[offset] = counts[offset] + 1 if charge else int(offset < frontier)
    segments = hand_outs.segments(*asked, frontier)
    assert [segment[0] for segment in segments[1:]] == [segment[1] for segment in segments[:-1]]
    assert (segments[0][0], segments[-1][1]) == asked
    for start, end, count in segments:
        assert {counts[offset] for offset in range(start, end)} == {count}
    entries = hand_outs.entries()
    assert all(start < end for start, end, _ in entries)
    assert all(a[1] <= b[0] for a, b in pairwise(entries))


def test_what_rests_comes_due_in_order_of_offsets() -> None:
    resting = Resting()
    resting.rest(5, 6, 20)
    resting.rest(1, 2, 20)
    resting.rest(9, 10, 10)
    assert resting.next_ms() == 10
    assert not resting.wake(9)
    assert resting.wake(20)
    order = []
    while (due := resting.due()) is not None:
        order.append(due)
        resting.sent(due[1])
    assert order == [(1, 2), (5, 6), (9, 10)]
    assert len(resting) == 0


def test_a_range_that_was_sent_in_part_stays_due() -> None:
    resting = Resting()
    resting.rest(0, 9, 0)
    resting.wake(0)
    resting.sent(4)
    assert resting.due() == (4, 9)


def test_hand_outs_near_each_other_share_a_deadline() -> None:
    waits = AckWaits(30_000)
    for now_ms in range(0, 100_000, 10):
        waits.handed_out(now_ms, now_ms + 10, now_ms)
    assert waits.next_ms() is not None
    assert len(waits.expired(200_000)) <= 1_000


def test_a_wait_that_was_renewed_does_not_run_out() -> None:
    waits = AckWaits(1_000)
    waits.handed_out(0, 10, 0)
    waits.handed_out(4, 6, 500)
    assert waits.expired(1_000) == [(0, 4), (6, 10)]
    assert waits.expired(1_500) == [(4, 6)]


def test_waits_below_the_floor_are_forgotten() -> None:
    waits = AckWaits(1_000)
    waits.handed_out(0, 10, 0)
    waits.settled_below(10)
    assert waits.next_ms() is None
