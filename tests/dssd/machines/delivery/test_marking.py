"""How records are marked: by what was handed out before the grant, and under it."""

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.attempts import Attempts
from dssd.machines.delivery.frame_plan import Stretch
from dssd.machines.delivery.marking import Marking, together_max
from dssd.machines.delivery.outstanding import Outstanding, SentRange
from dssd.machines.fate import Fate
from dssd.machines.messages import GrantedStream

CREDIT = 100


def marking(
    attempts: Attempts = (),
    *,
    frontier: int = 0,
    suspect_end: int = 0,
    doubts: Attempts = (),
) -> Marking:
    fate = Fate(doubts=doubts)
    granted = GrantedStream(StreamId(1, 0), 1, Progress(0), frontier, attempts, suspect_end, fate)
    return Marking(granted, CREDIT)


def stretch(marks: Marking, start: int, end: int) -> Stretch:
    return marks.first_stretch(((start, end),), 0, Outstanding())


@pytest.mark.parametrize(("attempts", "records"), [(1, 500), (2, 250), (9, 1), (10, 1), (99, 1)])
def test_records_out_together_are_halved_down_to_one(attempts: int, records: int) -> None:
    assert together_max(1_000, attempts, 0) == records


@pytest.mark.parametrize(("doubts", "records"), [(1, 500), (2, 31), (3, 1), (4, 1), (99, 1)])
def test_from_the_second_doubt_on_they_are_sixteen_times_fewer(doubts: int, records: int) -> None:
    assert together_max(1_000, doubts, doubts) == records


def test_what_was_handed_out_above_the_frontier_is_counted_once() -> None:
    marks = marking()
    marks.note_handed_out_early(5, 7)
    marks.note_handed_out_early(6, 8)
    assert marks.attempts() == ((5, 8, 1),)
    assert marks.note_handed_out(Progress(0), 0, 10, ()) == ((0, 5), (8, 10))
    assert marks.counted(0, 12, 10) == [(0, 5, 1), (5, 8, 1), (8, 10, 1), (10, 12, 0)]


def test_what_was_out_as_the_client_vanished_counts_as_an_attempt_unless_it_did_already() -> None:
    marks = marking(((6, 8, 2),), frontier=8)
    marks.note_handed_out(Progress(0), 0, 2, ())
    marks.note_handed_out_early(4, 5)
    marks.note_in_doubt(0, 10, 2)
    assert marks.counted(0, 12, 2) == [(0, 6, 2), (6, 8, 3), (8, 10, 1), (10, 12, 0)]


def test_what_is_new_is_the_first_attempt_and_goes_without_a_mark() -> None:
    assert stretch(marking(), 0, 10) == Stretch(0, 10, False, 1, 10)


def test_what_was_handed_out_under_an_older_grant_is_a_suspect() -> None:
    assert stretch(marking(frontier=4), 0, 10) == Stretch(0, 4, True, 2, CREDIT // 2)
    twice = marking(((0, 3, 2),), frontier=4)
    assert stretch(twice, 0, 10) == Stretch(0, 3, True, 3, CREDIT // 4)


def test_a_suspect_that_clients_vanished_with_goes_with_fewer_others() -> None:
    twice = marking(((0, 3, 2),), frontier=4, doubts=((0, 2, 2),))
    assert stretch(twice, 0, 10) == Stretch(0, 2, True, 3, CREDIT // 32, 2)
    assert stretch(twice, 2, 10) == Stretch(2, 3, True, 3, CREDIT // 4)


def test_what_was_perhaps_handed_out_is_marked_but_no_attempt() -> None:
    assert stretch(marking(suspect_end=6), 0, 10) == Stretch(0, 6, True, 1, 6)


def test_what_comes_again_under_this_grant_is_no_suspect() -> None:
    out = Outstanding()
    out.add(SentRange(20, 70, 50, suspects_max=50))
    marks = marking(frontier=4)
    assert marks.first_stretch(((0, 4),), 0, out).records_max == 0
    assert marks.of_one_mark(((0, 4),), 0)[1].records_max == CREDIT // 2


def test_what_comes_again_goes_with_all_of_the_same_attempts_and_doubts() -> None:
    marks = marking(((0, 2, 2), (4, 9, 2)), frontier=9, doubts=((0, 6, 2), (6, 9, 1)))
    same, first = marks.of_one_mark(((0, 3), (5, 9)), 0)
    assert same == ((0, 2), (5, 6))
    assert first == Stretch(0, 6, True, 3, CREDIT // 32, 2)
    assert marks.of_one_mark(((2, 3), (7, 9)), 0)[0] == ((2, 3),)
    assert marks.of_one_mark(((7, 9),), 0) == (((7, 9),), Stretch(7, 9, True, 3, CREDIT // 4, 1))


def test_an_attempt_of_what_had_one_under_an_older_grant_is_counted() -> None:
    marks = marking(frontier=4)
    assert marks.note_handed_out(Progress(0), 0, 6, ()) == ((0, 6),)
    assert marks.attempts() == ((0, 4, 2),)


def test_what_is_handed_out_again_is_counted_until_it_is_acknowledged() -> None:
    marks = marking()
    marks.note_handed_out_again(SentRange(0, 6, 4), 6)
    assert marks.attempts() == ((0, 6, 2),)
    marks.forget(0, 5)
    assert marks.attempts() == ((5, 6, 2),)
