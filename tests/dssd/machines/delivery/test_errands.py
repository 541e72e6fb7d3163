"""What operations ask of a retry queue, carried out by who opens its lane."""

from dataclasses import replace

import pytest

from dss_core.lane import DEAD, MAIN, RETRY
from dssd.machines.delivery.causes import FOLLOWS, GIVEN_UP
from dssd.machines.queues import BURY, RETRY_LATER, RETRY_NOW, SKIP
from support.played_lane import POLICY, PlayedLane

BLOCK = replace(POLICY, ordered=True, blocks=True)
A, B = 1, 2


def failed_lane(count: int, keys: tuple[int, ...] = (), *, blocks: bool = True) -> PlayedLane:
    """A lane whose records failed once and rest for an hour; what it reported is saved."""
    policy = POLICY if not keys else replace(BLOCK, blocks=blocks)
    lane = PlayedLane(count, policy, keys)
    for at in range(count):
        if (MAIN, at) in lane.out:
            lane.nak(MAIN, at, delay_ms=3_600_000, error="boom")
    lane.tick(10)
    lane.save()
    return lane


def out(lane: PlayedLane) -> list[int]:
    """The origins of what is with the client."""
    return sorted(lane.queues[RETRY][at].origin for level, at in lane.out if level == RETRY)


def test_what_is_brought_forward_comes_at_once_with_the_attempts_that_it_had() -> None:
    lane = failed_lane(3)
    lane.errand(RETRY_NOW, 1)
    lane.tick(1)
    assert out(lane) == [1]
    assert lane.out[RETRY, 1] == 2


def test_it_comes_at_once_for_the_holder_after_one_that_died_too_but_not_once_it_failed() -> None:
    lane = failed_lane(2)
    lane.errand(RETRY_NOW, 0)
    lane.lend()  # nothing was saved
    lane.tick(1)
    assert out(lane) == [0]
    lane.nak(RETRY, 0, delay_ms=60_000)
    lane.tick(10)
    lane.save()
    lane.lend()
    lane.tick(1_000)
    assert out(lane) == []


def test_what_was_brought_forward_and_refused_again_rests_though_it_was_not_moved() -> None:
    lane = failed_lane(2)
    lane.errand(RETRY_NOW, 0)
    lane.tick(1)
    lane.refuses = True
    lane.nak(RETRY, 0, delay_ms=60_000)
    lane.die()
    lane.tick(50_000)
    assert out(lane) == []
    lane.tick(11_000)
    assert out(lane) == [0]


def test_what_rests_as_it_could_not_be_moved_is_brought_forward_too() -> None:
    lane = failed_lane(2)
    lane.errand(RETRY_NOW, 0, number=7)
    lane.tick(1)
    lane.refuses = True
    lane.nak(RETRY, 0, delay_ms=60_000)
    lane.die()
    lane.errand(RETRY_NOW, 0, number=8)
    lane.tick(1)
    assert out(lane) == [0]


def test_what_one_operation_brings_forward_stays_so_when_the_next_one_brings_others() -> None:
    lane = failed_lane(3)
    lane.errand(RETRY_NOW, 0, number=7)
    lane.errand(RETRY_NOW, 2, number=8)
    lane.tick(1)
    assert out(lane) == [0, 2]


def test_what_is_brought_forward_is_not_copied_to_the_end_of_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dssd.machines.delivery.copying.QUEUE_RANGES_MAX", 4)
    lane = PlayedLane(24, replace(POLICY, max_deliver=9))
    for at in range(24):
        lane.nak(MAIN, at, delay_ms=1_000 if at % 2 else 3_600_000)
    lane.tick(2_000)
    lane.refuses = True
    for at in range(1, 24, 2):
        lane.ack(RETRY, at)
    lane.tick(10)
    lane.save()
    lane.refuses = False
    monkeypatch.setattr("dssd.machines.delivery.entries.ENTRIES_DUE_MAX", 1)
    lane.errand(RETRY_NOW, *range(0, 24, 2))
    for _ in range(12):
        lane.tick(1)
        [(level, at)] = lane.out
        lane.ack(level, at)
    assert lane.places() == [[]] * 24


def test_what_is_put_off_again_comes_at_its_own_time() -> None:
    lane = failed_lane(2)
    lane.errand(RETRY_NOW, 0, 1, number=7)
    lane.errand(RETRY_LATER, 1, number=8)
    lane.tick(1)
    assert out(lane) == [0]
    lane.tick(3_600_000)
    assert out(lane) == [0, 1]


def test_what_is_passed_over_is_done_and_counted_as_an_operators() -> None:
    lane = failed_lane(3)
    lane.errand(SKIP, 0, 2)
    assert lane.places() == [[], [RETRY], []]
    state = lane.states()[1]
    assert (state.fate.counts.moved, state.errand.ranges) == (2, ())
    lane.tick(10)
    lane.save()
    assert lane.saved.queues[0].errand == (7, SKIP, ())


def test_what_is_given_up_is_a_dead_letter_with_its_error_and_says_who_asked() -> None:
    lane = failed_lane(2)
    lane.errand(BURY, 1)
    assert lane.places() == [[RETRY], [DEAD]]
    [dead] = lane.queues[DEAD]
    assert (dead.cause, dead.entry.attempt, dead.entry.operation) == (GIVEN_UP, 1, 7)
    assert lane.states()[1].errand.ranges == ()


def test_an_errand_is_over_once_its_entries_are_durable_elsewhere() -> None:
    lane = failed_lane(2)
    lane.refuses = True
    lane.errand(BURY, 0, 1)
    assert lane.places() == [[RETRY], [RETRY]]
    assert lane.states()[1].errand.ranges == ((0, 2),)
    lane.tick(10)
    lane.save()
    lane.refuses = False
    lane.lend()
    assert lane.places() == [[DEAD], [DEAD]]
    assert lane.states()[1].errand.ranges == ()


def test_a_record_that_was_out_and_failed_meanwhile_is_meant_by_what_it_was_before() -> None:
    lane = failed_lane(1)
    lane.tick(3_600_000)
    assert out(lane) == [0]
    # It was planned for entry 0; giving the lane back, the client refuses it once more.
    lane.nak(RETRY, 0)
    lane.tick(10)
    lane.save()
    lane.errand(BURY, 0)
    assert lane.places() == [[DEAD]]
    assert lane.queues[DEAD][0].entry.attempt == 2


def test_an_acknowledgement_of_what_waits_to_be_given_up_counts() -> None:
    lane = failed_lane(1)
    lane.refuses = True
    lane.errand(BURY, 0)
    lane.ack(RETRY, 0)
    lane.refuses = False
    lane.tick(2_000)
    assert lane.places() == [[]]
    assert lane.states()[1].errand.ranges == ()


def test_of_a_key_the_next_one_comes_once_the_head_is_passed_over() -> None:
    lane = failed_lane(3, (A, A, A))
    lane.errand(SKIP, 0)
    lane.tick(1)
    assert out(lane) == [1]
    assert lane.places() == [[], [RETRY], [RETRY]]


def test_what_follows_a_head_that_is_given_up_goes_along_where_dead_letters_block() -> None:
    lane = failed_lane(4, (A, A, B, A))
    lane.errand(BURY, 0)
    lane.tick(1)
    assert [(kept.origin, kept.cause) for kept in lane.queues[DEAD]] == [
        (0, GIVEN_UP),
        (1, FOLLOWS),
        (3, FOLLOWS),
    ]
    assert lane.places()[2] == [RETRY]


def test_what_follows_a_head_that_is_given_up_is_next_where_they_do_not_block() -> None:
    lane = failed_lane(2, (A, A), blocks=False)
    lane.errand(BURY, 0)
    lane.tick(1)
    assert lane.places() == [[DEAD], [RETRY]]
    assert out(lane) == [1]


def test_a_head_that_is_brought_forward_comes_and_what_follows_waits_for_it() -> None:
    lane = failed_lane(3, (A, A, B))
    heads = [kept.entry.offset for kept in lane.queues[RETRY] if kept.origin in (0, 1)]
    lane.errand(RETRY_NOW, *heads)
    lane.tick(1)
    assert out(lane) == [0]
    lane.ack(RETRY, 0)
    lane.tick(1)
    assert out(lane) == [1]


def test_an_entry_that_nobody_applied_acknowledges_its_source_though_it_is_passed_over() -> None:
    lane = PlayedLane(1)
    lane.holds = True
    lane.nak(MAIN, 0)
    lane.holds = False
    lane.errand(SKIP, 0)
    assert lane.places() == [[]]


def test_what_died_while_the_lane_was_taken_back_stays_dead_though_it_was_to_be_passed_over() -> (
    None
):
    lane = failed_lane(1)
    lane.tick(3_600_000)
    lane.nak(RETRY, 0, reject=True)  # durable, and nobody reported it
    lane.errand(SKIP, 0)
    assert lane.places() == [[DEAD]]
    assert lane.states()[2].fate.counts.acked == 0
