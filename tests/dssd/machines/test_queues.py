"""Queues are merged the same in any order, and records rest by the steps of a policy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.ids import StreamId
from dss_core.progress import Progress, normalised
from dssd.limits import BACKOFF_MS
from dssd.machines.fate import Counts, Fate
from dssd.machines.queues import (
    Queues,
    QueueState,
    Redrive,
    RetryPolicy,
    backoff_text,
    merged_queues,
    parsed_backoff,
)

RETRY, DEAD = StreamId(8, 3), StreamId(9, 3)
OFFSETS = st.integers(0, 20)
RANGES = st.lists(st.tuples(OFFSETS, OFFSETS), max_size=3).map(normalised)
PROGRESS = st.builds(lambda floor, acked: Progress(floor).with_acked(acked), OFFSETS, RANGES)
FATES = st.builds(lambda acked: Fate(counts=Counts(acked=acked)), OFFSETS)
REDRIVES = st.integers(0, 3).map(lambda number: Redrive(number, ((0, number),) if number else ()))


def states(stream: StreamId) -> st.SearchStrategy[QueueState]:
    return st.builds(
        lambda done, applied, fate, redrive: QueueState(
            stream, done, applied, fate=fate, redrive=redrive
        ),
        PROGRESS,
        OFFSETS,
        FATES,
        REDRIVES,
    )


QUEUES = st.tuples(states(RETRY), states(DEAD))


@given(QUEUES, QUEUES, QUEUES)
def test_reports_of_queues_may_come_in_any_order(one: Queues, two: Queues, three: Queues) -> None:
    forward = merged_queues(merged_queues(one, two), three)
    assert forward == merged_queues(three, merged_queues(two, one))
    assert forward == merged_queues(one, merged_queues(two, three))


@given(QUEUES, QUEUES)
def test_a_report_that_comes_twice_says_nothing_new(one: Queues, two: Queues) -> None:
    both = merged_queues(one, two)
    assert merged_queues(both, one) == both == merged_queues(both, both)


@given(QUEUES, QUEUES)
def test_what_is_merged_covers_either(one: Queues, two: Queues) -> None:
    both = merged_queues(one, two)
    assert all(map(QueueState.covers, both, one))
    assert all(map(QueueState.covers, both, two))


@given(QUEUES)
def test_who_knows_of_no_queues_says_nothing_of_them(queues: Queues) -> None:
    assert merged_queues(queues, ()) == queues == merged_queues((), queues)


@pytest.mark.parametrize(
    ("knows", "told", "covers"),
    [
        (QueueState(RETRY, Progress(3), 5), QueueState(RETRY, Progress(3), 5), True),
        (QueueState(RETRY, Progress(3), 5), QueueState(RETRY, Progress(2), 4), True),
        (QueueState(RETRY, Progress(3), 5), QueueState(RETRY, Progress(3), 6), False),
        (QueueState(RETRY, Progress(3), 5), QueueState(RETRY, Progress(3, ((4, 5),)), 5), False),
    ],
)
def test_covering_goes_by_what_is_done(knows: QueueState, told: QueueState, covers: bool) -> None:
    assert knows.covers(told) == covers


def test_a_queue_is_empty_once_all_that_was_applied_is_done() -> None:
    assert QueueState(RETRY).is_empty
    assert QueueState(RETRY, Progress(5), 5).is_empty
    assert not QueueState(RETRY, Progress(4), 5).is_empty


def test_the_last_step_of_a_back_off_repeats() -> None:
    policy = RetryPolicy(9, (10, 20), 1, 1)
    assert [policy.rest_ms(failures) for failures in range(5)] == [10, 10, 20, 20, 20]


def test_a_row_without_a_back_off_has_the_usual_one() -> None:
    assert parsed_backoff("") == BACKOFF_MS
    assert parsed_backoff(backoff_text((0, 7))) == (0, 7)
