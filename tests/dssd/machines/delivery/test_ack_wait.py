"""Ack waits: when what was handed out comes again."""

from dssd.machines.delivery.ack_wait import AckWaits


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


def test_a_wait_that_is_changed_counts_from_when_it_began() -> None:
    waits = AckWaits(1_000)
    waits.handed_out(0, 10, 0)
    waits.handed_out(10, 20, 900)
    waits.last(400)
    assert waits.next_ms() == 400
    assert waits.expired(500) == [(0, 10)]
    waits.last(5_000)
    assert waits.expired(5_899) == []
    assert waits.expired(5_900) == [(10, 20)]
    waits.last(1_000)
    assert waits.next_ms() is None
