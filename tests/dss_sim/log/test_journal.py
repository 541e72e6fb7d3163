"""Which commits a crash leaves."""

from random import Random

from dss_sim.groups.store import at_once
from dss_sim.log.journal import Entry, Journal
from dssd.store.port import Put
from dssd.store.rows import SegmentRow


def entry(number: int, began: int, made: int) -> Entry:
    return Entry(began, made, (Put(SegmentRow(1, number, "active", 64, 0)),))


JOURNAL = Journal([entry(1, 0, 2), entry(2, 1, 5), entry(3, 4, 6), Entry(7, 7, None)])


def left_after(place: int) -> set[int]:
    return {len(JOURNAL.after_crash(place, Random(seed)).entries) for seed in range(40)}


def test_what_could_be_read_is_there_and_what_was_asked_for_may_be_in_order() -> None:
    assert left_after(0) == {0, 1}
    assert left_after(1) == {0, 1, 2}
    assert left_after(2) == {1, 2}
    assert left_after(4) == {1, 2, 3}
    assert left_after(5) == {2, 3}
    assert left_after(6) == {3}
    assert left_after(7) == {4}


def test_a_store_is_made_of_it_with_its_rows_and_ids() -> None:
    store = JOURNAL.store()
    rows = at_once(store.scan(SegmentRow))
    assert [found.row.segment_id for found in rows] == [1, 2, 3]
    assert at_once(store.next_id()) == 2


def test_what_a_crash_left_is_there_after_every_later_one() -> None:
    left = JOURNAL.after_crash(6, Random(0))
    assert len(left.after_crash(0, Random(0)).entries) == 3
